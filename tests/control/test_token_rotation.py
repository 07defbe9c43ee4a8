"""A token is changed while clients and a registered task of the control service go on, without a restart."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from tenfold.control import TaskRegistration
from tenfold_core import errors
from tenfold_core.access.credentials import shown_token

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tenfold.control import ControlClient

    from .conftest import Service

OLD, NEW = "tenfold-the-old-one", "tenfold-the-new-one"
WAIT_S = 20.0


class Beats:
    """The figures of a task; counts how often they were sent."""

    def __init__(self) -> None:
        self._changed, self._count = threading.Condition(), 0

    def __call__(self) -> dict[str, int]:
        with self._changed:
            self._count += 1
            self._changed.notify_all()
        return {"steps": self._count}

    def wait_for_more(self, count: int = 3) -> None:
        """So many heartbeats from now on."""
        with self._changed:
            wanted = self._count + count
            assert self._changed.wait_for(lambda: self._count >= wanted, WAIT_S)


def test_clients_and_tasks_go_on_while_the_token_is_changed(
    start_service: Callable[..., Service],
    connect: Callable[..., ControlClient],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tenfold_core.access.tokens._LOOK_S", 0.0)
    file = tmp_path / "tokens"
    file.write_text(f"{OLD} role=admin\n")
    url = start_service(token_file=str(file), heartbeat=0.05, lease_ttl=5.0).url
    beats, lost = Beats(), threading.Event()

    with connect(url, shown_token({"TENFOLD_TOKEN_FILE": str(file)})) as client, connect(url, OLD) as fixed:
        client.declare_cluster("default", {"ps": 1})
        with TaskRegistration(
            client, "default", "ps", 0, "h:1", figures=beats, on_lost=lambda _: lost.set()
        ) as registration:
            lease = registration.lease.id
            beats.wait_for_more()
            for content in (f"{NEW} role=admin\n{OLD} role=admin\n", f"{NEW} role=admin\n"):
                file.write_text(content)
                beats.wait_for_more()
                assert client.task_status("default", "ps", 0).state == "ready"
            with pytest.raises(errors.UnauthenticatedError):
                fixed.clusters()
            assert (registration.lease.id, lost.is_set()) == (lease, False)
            assert [cluster.name for cluster in client.clusters()] == ["default"]
