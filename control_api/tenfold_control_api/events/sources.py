"""What changed in clusters, runs and sessions, as events. Pure.

An event is of the change from one stored value to the next, whichever service made the one before: what a service
remembers of its own changes would tell those of another one again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold_control_api.cluster import TaskState
from tenfold_control_api.events.event import Event
from tenfold_core.exit_codes import described
from tenfold_core.run_states import error_line

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from tenfold_control_api.cluster import Cluster
    from tenfold_control_api.runs.record import RunRecord
    from tenfold_control_api.session_record import SessionRecord


def cluster_changed(old: Cluster | None, new: Cluster, now: float) -> list[Event]:
    """A cluster's new value: its declaration, and each task whose state or process changed."""
    events: list[Event] = []
    if old is None or dict(old.jobs) != dict(new.jobs):
        sizes = ", ".join(f"{job}={size}" for job, size in new.jobs.items())
        data = {"version": new.version, "jobs": dict(new.jobs)}
        events.append(Event("cluster", "declared", new.name, f"its jobs are {sizes}", now, new.name, data=data))
    for place in new.differing(old):
        task, before = new.tasks[place], None if old is None else old.tasks.get(place)
        if before is None and task.state is TaskState.MISSING:
            continue
        if before is not None and (before.state, before.incarnation) == (task.state, task.incarnation):
            continue
        data = {"version": new.version, "address": task.address, "exit_code": task.exit_code}
        events.append(Event("task", str(task.state), task.name, task.reason, now, new.name, data=data))
    return events


def cluster_deleted(cluster: Cluster, now: float) -> list[Event]:
    """A cluster that was deleted, and the leases that ended with it."""
    events = [
        Event("task", "lost", task.name, "its cluster was deleted", now, cluster.name)
        for task in cluster.tasks.values()
        if task.state is TaskState.READY
    ]
    return [*events, Event("cluster", "deleted", cluster.name, "deleted by request", now, cluster.name)]


def run_changed(old: RunRecord | None, new: RunRecord, now: float) -> list[Event]:
    """A run's new value: its state, a new attempt, the wish to stop it, and each task that ended."""
    events: list[Event] = []
    if old is not None and new.attempt > max(old.attempt, 1):
        text = f"attempt {new.attempt} began"
        events.append(Event("run", "attempt", new.id, text, now, run=new.id, data={"attempt": new.attempt}))
    if new.stop is not None and (old is None or old.stop is None):
        events.append(Event("run", "stop-asked", new.id, new.stop, now, run=new.id))
    ended = {} if old is None else {_key(task): task for task in old.tasks}
    for task in new.tasks:
        before = ended.get(_key(task))
        if task["ended"] is not None and (before is None or before["ended"] != task["ended"]):
            events.append(_task_ended(new.id, task, now))
    if old is None or new.state is not old.state:
        data = {"attempt": new.attempt, "launcher": new.launcher}
        events.append(Event("run", str(new.state), new.id, new.reason, now, run=new.id, data=data))
    return events


def checkpoints(run_id: str, report: Mapping[str, Any], now: float) -> list[Event]:
    """The checkpoints that a program of the run wrote."""
    return [
        Event("checkpoint", "written", each["path"], "a checkpoint was written", now, run=run_id)
        for each in report["checkpoints"]
    ]


def session_changed(record: SessionRecord, action: str, message: str, now: float) -> list[Event]:
    data = {"master": record.master}
    return [Event("session", action, record.id, message, now, record.cluster, data=data, owner=record.owner)]


def _key(task: Mapping[str, Any]) -> tuple[str, int]:
    return task["job"], task["index"]


def _task_ended(run_id: str, task: Mapping[str, Any], now: float) -> Event:
    name, code, error = f"{task['job']}/{task['index']}", task["exit_code"], task["error"]
    # a program that others started may not have said how it ended
    text = f"it {'ended' if code is None else described(code)}{error_line(error)}"
    data = {"exit_code": code, "node": (error or {}).get("node"), "task": (error or {}).get("task")}
    return Event("task", task["state"], name, text[:1000], now, run=run_id, data=data)
