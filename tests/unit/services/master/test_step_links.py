"""Sets of links of one step: one wait for all of them, and what a link that ends does to it."""

from __future__ import annotations

import socket
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from tenfold_services.master import step_links as lines_module
from tenfold_services.master.arrangement import Arrangement
from tenfold_services.master.caller_cluster_run import CallerClusterGraph
from tenfold_services.master.step_links import StepLinks

if TYPE_CHECKING:
    from collections.abc import Iterator


class FakeLink:
    """As much of a StepLink as StepLinks uses, over a socket pair."""

    def __init__(self) -> None:
        self.ours, self.theirs = socket.socketpair()
        self.heard: list[bytes] = []
        self.closed = False
        self.looked_for_life = self.ended = 0
        self.on_notice: Any = None

    def fileno(self) -> int:
        return self.ours.fileno()

    def receive(self) -> None:
        data = self.ours.recv(100)
        self.heard.append(data)
        self.closed = not data

    def check_life(self) -> None:
        self.looked_for_life += 1

    def end(self) -> None:
        self.ended += 1
        self.ours.close()
        self.theirs.close()


@pytest.fixture
def links() -> Iterator[dict[str, FakeLink]]:
    made = {"ps:0": FakeLink(), "ps:1": FakeLink()}
    yield made
    for link in made.values():
        link.end()


@pytest.fixture
def lines(links: dict[str, FakeLink], monkeypatch: pytest.MonkeyPatch) -> StepLinks:
    monkeypatch.setattr(lines_module, "_TICK", 1)
    made = StepLinks()
    for task, link in links.items():
        made.put(task, cast("Any", link))
    return made


def test_one_wait_reads_from_all_that_have_something(lines: StepLinks, links: dict[str, FakeLink]) -> None:
    for link in links.values():
        link.theirs.send(b"x")
    lines.receive()
    assert [link.heard for link in links.values()] == [[b"x"], [b"x"]]


def test_peers_that_stay_silent_are_looked_after(lines: StepLinks, links: dict[str, FakeLink]) -> None:
    lines.receive()
    assert [link.looked_for_life for link in links.values()] == [1, 1]
    links["ps:1"].theirs.send(b"x")
    lines.receive()
    assert [link.looked_for_life for link in links.values()] == [1, 1]


def test_a_link_that_ended_is_no_longer_waited_for(lines: StepLinks, links: dict[str, FakeLink]) -> None:
    links["ps:0"].theirs.close()
    lines.receive()
    assert links["ps:0"].heard == [b""]
    assert not lines.has(["ps:1", "ps:0"])
    assert lines.has(["ps:1"])
    lines.receive()
    assert links["ps:0"].heard == [b""], "what is at its end is always ready"
    links["ps:1"].theirs.send(b"x")
    lines.receive()
    assert links["ps:1"].heard == [b"x"]


def test_a_new_link_takes_the_place_of_the_old_one(lines: StepLinks, links: dict[str, FakeLink]) -> None:
    lines.receive()
    new = FakeLink()
    lines.put("ps:0", cast("Any", new))
    assert links["ps:0"].ended == 1
    new.theirs.send(b"x")
    lines.receive()
    assert new.heard == [b"x"]
    new.end()


def test_a_task_on_our_core_is_called_last() -> None:
    others: Any = {f"ps:{index}": SimpleNamespace() for index in range(3)}
    pushes = Arrangement("here", cast("Any", None), {"here": cast("Any", None), **others}, {}, frozenset())
    graph = CallerClusterGraph(*(cast("Any", None),) * 4, pushes, *(cast("Any", None),) * 2)
    assert graph.order == ("ps:0", "ps:1", "ps:2")
    graph.call_last("ps:0")
    assert graph.order == ("ps:1", "ps:2", "ps:0")
    graph.call_last("ps:2")
    assert graph.order == ("ps:1", "ps:0", "ps:2")
