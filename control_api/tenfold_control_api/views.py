"""Registry and session values → the answers of models.py, and the spec rendered as TF_CONFIG. Pure.

Called by the routes. Times are RFC 3339 text in UTC, durations are seconds.
"""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tenfold_control_api.cluster import Cluster, Task, TaskState
from tenfold_control_api.figures import TaskFigures
from tenfold_control_api.models import (
    ClusterView,
    Condition,
    Device,
    DrainView,
    JobView,
    LeaseView,
    SessionView,
    SpecTask,
    SpecView,
    TaskView,
)
from tenfold_control_api.problems import ApiError
from tenfold_control_api.tables import TableParts

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tenfold_control_api.figures import NewestFigures
    from tenfold_control_api.leases import LeaseTable
    from tenfold_control_api.models import TablesView
    from tenfold_control_api.session_record import OpenSessions, SessionRecord


#: Tasks that are written in one turn of the event loop, some milliseconds.
TURN = 100


def timestamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def task_view(cluster: Cluster, task: Task, leases: LeaseTable) -> TaskView:
    age = leases.age(task.lease_id) if task.lease_id is not None else None
    figures = leases.figures(task.lease_id)
    return TaskView(
        name=task.name,
        uid=uuid.uuid5(uuid.UUID(cluster.uid), task.name).hex,
        version=cluster.version,
        state=task.state.value,
        conditions=[_condition("Ready", task.state is TaskState.READY, task.state.value.capitalize(), task.reason)],
        cluster=cluster.name,
        job=task.job,
        index=task.index,
        since=timestamp(task.since),
        reason=task.reason,
        address=task.address,
        incarnation=task.incarnation,
        devices=[Device(**device) for device in task.devices],
        exit_code=task.exit_code,
        drain=_drain(task),
        insecure=task.insecure,
        last_heartbeat_age=None if age is None else round(age, 3),
        figures=None if figures is None else figures_view(figures),
    )


def figures_view(newest: NewestFigures) -> TaskFigures:
    return TaskFigures.model_construct(updated=timestamp(newest.updated), **dict(newest.report))


def task_json(cluster: Cluster, task: Task, leases: LeaseTable) -> str:
    """The JSON of `task_view`, in a tenth of the time: what changes with the task's value alone is kept with it."""
    if not task.shown:
        settled = task_view(cluster, task, leases).model_dump_json(exclude={"version", "last_heartbeat_age", "figures"})
        task.shown.append(settled[:-1])
    age, figures = leases.age(task.lease_id) if task.lease_id is not None else None, leases.figures(task.lease_id)
    return (
        f'{task.shown[0]},"version":{cluster.version}'
        f',"last_heartbeat_age":{"null" if age is None else round(age, 3)}'
        f',"figures":{"null" if figures is None else _figures_json(figures)}}}'
    )


def job_view(cluster: Cluster, job: str, leases: LeaseTable) -> JobView:
    """Raises NOT_FOUND for a job that the cluster lacks."""
    return _job(cluster, job, [task_view(cluster, task, leases) for task in cluster.job(job)])


def _figures_json(newest: NewestFigures) -> str:
    return f'{newest.report.model_dump_json()[:-1]},"updated":"{timestamp(newest.updated)}"}}'


async def jobs_json(cluster: Cluster, jobs: Iterable[str], leases: LeaseTable) -> list[bytes]:
    """The JSON of `job_view` of each; others have their turn while many tasks are written. Raises NOT_FOUND."""
    found = []
    for job in jobs:
        head = _job(cluster, job, []).model_dump_json(exclude={"tasks"})
        tasks = await tasks_json(cluster, cluster.job(job), leases)
        found.append(b'%b,"tasks":[%b]}' % (head[:-1].encode(), tasks))
    return found


async def tasks_json(cluster: Cluster, tasks: Iterable[Task], leases: LeaseTable) -> bytes:
    """The elements of a list of tasks."""
    found: list[str] = []
    for task in tasks:
        found.append(task_json(cluster, task, leases))
        if len(found) % TURN == 0:
            await asyncio.sleep(0)
    return ",".join(found).encode()


async def tables_of(cluster: Cluster, jobs: Iterable[str], leases: LeaseTable) -> TablesView | None:
    """The tables of these jobs' tasks, as far as they are known here; others have their turn meanwhile."""
    parts = TableParts()
    for at, task in enumerate((task for job in jobs for task in cluster.job(job)), 1):
        newest = leases.figures(task.lease_id)
        if newest is not None:
            told = newest.report
            parts.add(task.job, task.index, told.tables, told.table_rows, told.table_bytes, told.tables_left_out)
        if at % TURN == 0:
            await asyncio.sleep(0)
    # 256 tables on 16 parameter servers take tens of milliseconds
    return await asyncio.to_thread(parts.view) if parts else None


def _job(cluster: Cluster, job: str, shown: list[TaskView]) -> JobView:
    tasks = list(cluster.job(job))
    absent = [task for task in tasks if task.absent]
    return JobView(
        name=job,
        uid=uuid.uuid5(uuid.UUID(cluster.uid), job).hex,
        version=cluster.version,
        state=summary(tasks),
        conditions=[_complete(absent)],
        cluster=cluster.name,
        size=len(tasks),
        counts=counts(tasks),
        missing_tasks=[task.name for task in absent],
        tasks=shown,
    )


def cluster_view(cluster: Cluster) -> ClusterView:
    tasks = list(cluster.tasks.values())
    return ClusterView(
        name=cluster.name,
        uid=cluster.uid,
        version=cluster.version,
        state=summary(tasks),
        conditions=[_complete([task for task in tasks if task.absent])],
        created=timestamp(cluster.created),
        jobs=dict(cluster.jobs),
        stop_with_workers=cluster.stop_with_workers,
        complete=cluster.complete,
        counts=counts(tasks),
        missing_tasks=list(cluster.missing),
        spec=cluster.addresses(),
    )


def spec_view(cluster: Cluster, *, after: int | None) -> SpecView:
    return SpecView(
        cluster=cluster.name,
        version=cluster.version,
        complete=cluster.complete,
        changed=after is None or cluster.version > after,
        jobs=dict(cluster.jobs),
        stop_with_workers=cluster.stop_with_workers,
        spec=cluster.addresses(),
        tasks=[
            SpecTask(name=t.name, job=t.job, index=t.index, state=t.state, address=t.address, incarnation=t.incarnation)
            for t in cluster.tasks.values()
        ],
        missing_tasks=list(cluster.missing),
    )


def spec_json(cluster: Cluster, *, after: int | None) -> bytes:
    """The JSON of `spec_view`, which is made once for all that wait for this value."""
    if not cluster.shown:
        cluster.shown.append(spec_view(cluster, after=None).model_dump_json(exclude={"changed"})[:-1].encode())
    return b'%b,"changed":%b}' % (cluster.shown[0], b"true" if after is None or cluster.version > after else b"false")


def tf_config(cluster: Cluster, job: str, index: int) -> dict[str, Any]:
    """What the environment variable TF_CONFIG of one task holds. TF_CONFIG lists a job's addresses in order, so it
    cannot be written while one is unknown: raises UNAVAILABLE naming the missing tasks, and NOT_FOUND for a task not
    declared."""
    cluster.task(job, index)
    unknown = [task.name for task in cluster.tasks.values() if task.address is None]
    if unknown:
        raise ApiError(
            "cluster-incomplete",
            f"TF_CONFIG of cluster {cluster.name!r} cannot be written yet: the address of "
            f"{', '.join(unknown[:10])} is unknown.",
            missing_tasks=unknown,
        )
    addresses = cluster.addresses()
    return {
        "cluster": {name: [addresses[name][i] for i in range(size)] for name, size in cluster.jobs.items()},
        "task": {"type": job, "index": index},
    }


def lease_view(cluster: Cluster, task: Task, leases: LeaseTable, heartbeat: float, ttl: float) -> LeaseView:
    """A live lease, in the form that its task gets."""
    assert task.lease_id is not None
    return LeaseView(
        id=task.lease_id,
        state="live",
        cluster=cluster.name,
        task=task.name,
        ttl=ttl,
        heartbeat=heartbeat,
        expires_in=leases.remaining(task.lease_id),
        spec_version=cluster.version,
        complete=cluster.complete,
        drain=_drain(task),
    )


def _drain(task: Task) -> DrainView | None:
    return None if task.drain is None else DrainView(grace=task.drain.grace, reason=task.drain.reason)


def session_view(record: SessionRecord, cluster: Cluster | None, table: OpenSessions) -> SessionView:
    state, why = record.standing(cluster)
    return SessionView(
        name=record.id,
        uid=record.id,
        version=record.graph_version,
        state=state,
        conditions=[_condition("Ready", state == "ready", "MasterReady" if state == "ready" else "MasterLost", why)],
        cluster=record.cluster,
        job=record.job,
        index=record.index,
        master=record.master,
        target=record.target,
        graph_version=record.graph_version,
        created=timestamp(record.created),
        idle=round(table.idle_for(record.id), 3),
    )


def summary(tasks: list[Task]) -> str:
    """One word for a set of tasks: degraded (one was lost), waiting (one never came), stopped (one was told to stop),
    finished (all are), or ready."""
    states = {task.state for task in tasks}
    if TaskState.LOST in states:
        return "degraded"
    if TaskState.MISSING in states:
        return "waiting"
    if TaskState.STOPPED in states:
        return "stopped"
    return "finished" if states == {TaskState.FINISHED} else "ready"


def counts(tasks: list[Task]) -> dict[str, int]:
    found = Counter(task.state for task in tasks)
    return {state.value: found[state] for state in TaskState}


def _complete(absent: list[Task]) -> Condition:
    if not absent:
        return _condition("Complete", True, "AllTasksPresent", "every declared task is ready or finished")
    told = "; ".join(f"{task.name} is {task.state}: {task.reason}" for task in absent[:20])
    return _condition("Complete", False, "TasksMissing", told + ("; …" if len(absent) > 20 else ""))


def _condition(type_: str, status: bool, reason: str, message: str) -> Condition:
    return Condition(type=type_, status=status, reason=reason, message=message)
