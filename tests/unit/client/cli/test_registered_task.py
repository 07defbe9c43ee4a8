"""The joint between a task's heartbeat and its server: which spec reaches the server, and when. No sockets."""

from __future__ import annotations

import dataclasses
from typing import Any

import click
import pytest

from tenfold.cli.registered_task import RegisteredTask, addresses
from tenfold.control import Spec
from tenfold_core import errors


class RecordingServer:
    """Stands for a BackgroundServer: notes the clusters that it is given, or refuses them."""

    def __init__(self, refuses: bool = False) -> None:
        self.refuses = refuses
        self.clusters: list[Any] = []
        self.finished: Any = None
        self.lost: Any = None
        self.ends_with_workers: bool | None = None
        #: Its end is this process's doing, so `join` returning ends nothing.
        self.stopped_by_caller = True

    def join(self) -> None:
        pass

    def declare_ended(self, finished: Any, lost: Any) -> None:
        self.finished, self.lost = finished, lost

    def end_with_workers(self, wanted: bool) -> None:
        self.ends_with_workers = wanted

    def update_cluster(self, cluster: Any) -> None:
        if self.refuses:
            raise errors.UnavailableError(None, None, "the server has stopped")
        self.clusters.append(cluster)


def nothing() -> None:
    pass


def spec(version: int, **tasks: dict[int, str]) -> Spec:
    return Spec("default", version, False, {"ps": 1, "worker": 2}, tasks, {}, ())


def test_a_task_that_has_not_registered_has_an_empty_address() -> None:
    assert addresses(spec(1, worker={1: "b:2"})) == {"ps": {0: ""}, "worker": {0: "", 1: "b:2"}}


def test_the_newest_spec_that_came_before_the_server_is_not_lost() -> None:
    joint, server = RegisteredTask(stop_with_workers=False, end=nothing), RecordingServer()

    joint.on_spec(spec(1))
    joint.on_spec(spec(2, ps={0: "a:1"}))
    joint.attach(server)  # type: ignore[arg-type]

    assert server.clusters == [{"ps": {0: "a:1"}, "worker": {0: "", 1: ""}}]


def test_a_task_ends_with_the_workers_where_it_or_its_cluster_wants_that() -> None:
    for own, clusters in ((False, False), (True, False), (False, True)):
        joint, server = RegisteredTask(stop_with_workers=own, end=nothing), RecordingServer()
        joint.attach(server)  # type: ignore[arg-type]

        joint.on_spec(dataclasses.replace(spec(1), stop_with_workers=clusters))

        assert server.ends_with_workers is (own or clusters)
        assert list(server.finished) == []


def test_later_specs_go_straight_to_the_server() -> None:
    joint, server = RegisteredTask(stop_with_workers=False, end=nothing), RecordingServer()
    joint.attach(server)  # type: ignore[arg-type]

    joint.on_spec(spec(1))
    joint.on_spec(spec(2, ps={0: "a:1"}))

    assert [cluster["ps"] for cluster in server.clusters] == [{0: ""}, {0: "a:1"}]


def test_a_server_that_is_stopping_does_not_end_the_heartbeat(caplog: pytest.LogCaptureFixture) -> None:
    joint = RegisteredTask(stop_with_workers=False, end=nothing)
    joint.attach(RecordingServer(refuses=True))  # type: ignore[arg-type]

    joint.on_spec(spec(7))

    assert "version 7 was not taken: the server has stopped" in caplog.text


def test_a_lost_place_ends_the_process() -> None:
    ended: list[bool] = []
    joint = RegisteredTask(stop_with_workers=False, end=lambda: ended.append(True))

    joint.on_lost("taken by another")

    assert joint.lost == "taken by another"
    assert ended == [True]
    with pytest.raises(click.ClickException, match="taken by another"):
        joint.wait_for_spec()


def test_a_task_that_is_told_that_it_is_over_ends(capsys: pytest.CaptureFixture[str]) -> None:
    ended: list[bool] = []
    joint = RegisteredTask(stop_with_workers=False, end=lambda: ended.append(True))

    joint.on_told("finished", "its client is done")
    joint.wait_for_spec()

    assert (joint.lost, ended) == (None, [True])
    assert capsys.readouterr().out == "the control service says that this task is finished: its client is done\n"
