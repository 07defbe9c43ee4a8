"""What changed, as events: of clusters, of runs, of their tasks, checkpoints and sessions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tenfold_control_api.cluster import Cluster, Newcomer, TaskState
from tenfold_control_api.events.event import Event
from tenfold_control_api.events.sources import (
    checkpoints,
    cluster_changed,
    cluster_deleted,
    run_changed,
    session_changed,
)
from tenfold_control_api.runs.record import LOCAL, RunRecord
from tenfold_control_api.session_record import SessionRecord
from tenfold_core.run_states import RunState

NAME = "/job:worker/replica:0/task:0"


def a_cluster() -> Cluster:
    return Cluster.new("c", "u", {"worker": 1, "ps": 2}, now=0.0)


def registered(cluster: Cluster, life: str = "life") -> Cluster:
    return cluster.register("worker", 0, Newcomer("h:1", life, f"lease of {life}"), 1.0).cluster


def a_run(**given: Any) -> RunRecord:
    return replace(RunRecord("r", "once", "f", LOCAL, {}, 1.0), **given)


def a_task(**given: Any) -> dict[str, Any]:
    return {"job": "worker", "index": 0, "state": "failed", "ended": 5.0, "exit_code": 1, "error": None, **given}


def said(events: list[Event]) -> list[tuple[str, str]]:
    return [(event.kind, event.action) for event in events]


def test_a_cluster_is_declared_once_and_again_with_other_jobs() -> None:
    cluster = a_cluster()

    (event,) = cluster_changed(None, cluster, 9.0)

    assert event == Event(
        *("cluster", "declared", "c", "its jobs are worker=1, ps=2", 9.0, "c"),
        data={"version": 1, "jobs": {"worker": 1, "ps": 2}},
    )
    assert cluster_changed(cluster, cluster, 9.0) == []
    grown = cluster.declare({"worker": 2, "ps": 2}, 2.0)
    assert said(cluster_changed(cluster, grown, 9.0)) == [("cluster", "declared")]


def test_a_task_that_changes_its_state_or_its_process_is_told() -> None:
    cluster = a_cluster()
    ready = registered(cluster)

    (event,) = cluster_changed(cluster, ready, 9.0)

    task = ready.task("worker", 0)
    assert event == Event(
        *("task", "ready", NAME, task.reason, 9.0, "c"),
        data={"version": ready.version, "address": "h:1", "exit_code": None},
    )
    lost = ready.end("worker", 0, TaskState.LOST, "killed", 3.0, 9)
    (event,) = cluster_changed(ready, lost, 9.0)
    assert (event.action, event.message, event.data["exit_code"]) == ("lost", "killed", 9)
    again = registered(lost, "second life")
    assert said(cluster_changed(lost, again, 9.0)) == [("task", "ready")]
    other = registered(ready.deregister("worker", 0, "x", 3.0), "second life")
    assert said(cluster_changed(ready, other, 9.0)) == [("task", "ready")]
    assert said(cluster_changed(None, ready, 9.0)) == [("cluster", "declared"), ("task", "ready")]


def test_a_deleted_cluster_ends_the_leases_of_its_living_tasks() -> None:
    assert cluster_deleted(registered(a_cluster()), 9.0) == [
        Event("task", "lost", NAME, "its cluster was deleted", 9.0, "c"),
        Event("cluster", "deleted", "c", "deleted by request", 9.0, "c"),
    ]
    assert said(cluster_deleted(a_cluster(), 9.0)) == [("cluster", "deleted")]


def test_a_runs_state_is_told_when_it_changes() -> None:
    pending = a_run(attempt=1, reason="waits")
    (event,) = run_changed(None, pending, 9.0)
    assert event == Event("run", "PENDING", "r", "waits", 9.0, run="r", data={"attempt": 1, "launcher": "local"})
    assert run_changed(pending, replace(pending, version=2), 9.0) == []
    assert said(run_changed(pending, a_run(state=RunState.RUNNING), 9.0)) == [("run", "RUNNING")]


@pytest.mark.parametrize(
    ("before", "after", "told"), [(0, 1, False), (1, 1, False), (1, 2, True), (2, 3, True), (3, 3, False)]
)
def test_a_further_attempt_is_told(before: int, after: int, told: bool) -> None:
    events = run_changed(a_run(attempt=before), a_run(attempt=after), 9.0)
    expected = Event("run", "attempt", "r", f"attempt {after} began", 9.0, run="r", data={"attempt": after})
    assert events == ([expected] if told else [])
    assert said(run_changed(None, a_run(attempt=after), 9.0)) == [("run", "PENDING")]


def test_the_wish_to_stop_is_told_once() -> None:
    asked = a_run(stop="enough")
    expected = Event("run", "stop-asked", "r", "enough", 9.0, run="r")
    assert run_changed(a_run(), asked, 9.0) == [expected]
    assert run_changed(asked, asked, 9.0) == []
    assert said(run_changed(None, asked, 9.0)) == [("run", "stop-asked"), ("run", "PENDING")]


def test_a_task_that_ended_is_told_with_its_error() -> None:
    task = a_task(error={"node": "add", "task": NAME, "code": "INTERNAL", "message": "x" * 2000})
    (event,) = run_changed(a_run(tasks=(a_task(ended=None),)), a_run(tasks=(task,)), 9.0)
    assert (event.kind, event.action, event.object, event.time, event.run) == ("task", "failed", "worker/0", 9.0, "r")
    assert event.data == {"exit_code": 1, "node": "add", "task": NAME}
    assert len(event.message) == 1000
    assert event.message.startswith("it ")


def test_a_task_is_told_for_each_of_its_ends() -> None:
    task = a_task()
    assert said(run_changed(None, a_run(tasks=(task,)), 9.0)) == [("task", "failed"), ("run", "PENDING")]
    assert run_changed(a_run(tasks=(task,)), a_run(tasks=(task,)), 9.0) == []
    assert said(run_changed(a_run(tasks=(task,)), a_run(tasks=(a_task(ended=6.0),)), 9.0)) == [("task", "failed")]
    other = a_task(index=1)
    events = run_changed(a_run(tasks=(task,)), a_run(tasks=(task, other)), 9.0)
    assert [event.object for event in events] == ["worker/1"]
    assert run_changed(a_run(), a_run(tasks=(a_task(ended=None),)), 9.0) == []


def test_a_task_that_nobody_started_here_may_not_say_how_it_ended() -> None:
    (event,) = run_changed(a_run(), a_run(tasks=(a_task(exit_code=None),)), 9.0)
    assert event.message == "it ended"
    assert event.data == {"exit_code": None, "node": None, "task": None}


def test_checkpoints_and_sessions_are_told() -> None:
    report = {"checkpoints": [{"path": "/a-1"}, {"path": "/a-2"}]}
    assert checkpoints("r", report, 9.0) == [
        Event("checkpoint", "written", path, "a checkpoint was written", 9.0, run="r") for path in ("/a-1", "/a-2")
    ]
    record = SessionRecord("s", "c", "worker", 0, "life", "grpc://h:1", "handle", 1, 2.0, "ann")
    assert session_changed(record, "opened", "it was opened", 9.0) == [
        Event("session", "opened", "s", "it was opened", 9.0, "c", data={"master": record.master}, owner="ann")
    ]
