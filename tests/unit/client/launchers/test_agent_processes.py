"""What agents are asked before an attempt. tests/launchers has the rest, on real ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tenfold.launchers import agent_protocol as protocol
from tenfold.launchers.agent_processes import AgentProcesses, AgentSpec
from tenfold.launchers.interface import LaunchRefusedError, LaunchRequest
from tenfold.launchers.placing import own_agents

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tenfold.launchers.agent_pipe import Heard

_JOBS = {"ps": 1, "worker": 2}
_TASKS = ("ps/0", "worker/0", "worker/1")


class Line:
    """The end of an agent that answers at once. `offers`: the ports that it gives, one each time; None: it is lost."""

    def __init__(self, heard: Heard, lost: Callable[[str], None], address: str, offers: Iterator[int | None]) -> None:
        self._heard, self._lost, self._offers = heard, lost, offers
        ready = {"version": "1", "protocol": protocol.PROTOCOL, "host": "h", "address": address, "rsync": False}
        heard("ready", ready)

    def send(self, kind: str, **members: Any) -> None:
        if kind == "ports":
            assert members == {"count": 1}
            port = next(self._offers)
            if port is None:
                self._lost("it hung up")
            else:
                self._heard("ports", {"numbers": [port]})
        elif kind == "begin":
            self._heard("begun", {})

    def send_slowly(self, kind: str, **members: Any) -> bool:
        self.send(kind, **members)
        return True

    def end(self, why: str) -> None:
        self._lost(why)

    def close(self) -> None:
        pass


def spec(name: str, address: str, offers: list[int | None]) -> AgentSpec:
    given = iter(offers)
    return AgentSpec(name, lambda heard, lost, say: Line(heard, lost, address, given))


def processes(
    tmp_path: Path, offers: dict[str, list[int | None]], addresses: tuple[str, ...] = ("127.0.0.1",) * 3
) -> AgentProcesses:
    specs = [spec(name, at, offers[name]) for name, at in zip(_TASKS, addresses, strict=True)]
    request = LaunchRequest("run", _JOBS, str(tmp_path))
    return AgentProcesses(request, lambda name, text: None, specs, lambda there: own_agents(_JOBS, there))


def test_agents_of_one_address_that_give_the_same_port_are_asked_again(tmp_path: Path) -> None:
    offers: dict[str, list[int | None]] = {"ps/0": [5], "worker/0": [5, 6, 7], "worker/1": [5, 6, 8]}
    with processes(tmp_path, offers) as made:
        assert made.addresses(_JOBS) == {"ps": ["127.0.0.1:5"], "worker": ["127.0.0.1:6", "127.0.0.1:8"]}


def test_the_same_port_of_another_address_is_another_one(tmp_path: Path) -> None:
    offers: dict[str, list[int | None]] = {name: [5] for name in _TASKS}
    with processes(tmp_path, offers, ("127.0.0.1", "127.0.0.2", "127.0.0.3")) as made:
        found = made.addresses(_JOBS)
    assert found == {"ps": ["127.0.0.1:5"], "worker": ["127.0.0.2:5", "127.0.0.3:5"]}


def test_an_agent_that_is_lost_when_it_is_asked_is_named(tmp_path: Path) -> None:
    offers: dict[str, list[int | None]] = {"ps/0": [5], "worker/0": [6], "worker/1": [5, None]}
    with processes(tmp_path, offers) as made, pytest.raises(LaunchRefusedError, match=r"^worker/1: it hung up"):
        made.addresses(_JOBS)
