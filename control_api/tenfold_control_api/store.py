"""The registry's durable side: values of cluster.py and sessions to rows and back. No decision is made here.

Called by cluster_table.py, registry.py and session_service.py (answers under an Idempotency-Key have answer_store.py).
A method that returns has committed. `save_cluster` is a compare-and-set on the version, so that replicas never
overwrite each other's changes.
"""

from __future__ import annotations

import json
import time
from contextlib import asynccontextmanager, nullcontext
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from sqlalchemy import ARRAY, String, any_, bindparam, case, delete, event, insert, select, update
from sqlalchemy.exc import IntegrityError, InterfaceError, OperationalError

from tenfold_control_api import schema
from tenfold_control_api.cluster import Cluster, Drain, Task, TaskState
from tenfold_control_api.database import FileLock, database_url, first_row, open_engine, open_schema
from tenfold_control_api.session_record import SessionRecord

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Sequence

    from sqlalchemy.engine import ExceptionContext
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine
    from sqlalchemy.sql.dml import ReturningUpdate


#: A row that is written and deleted to see whether the database takes writes, as large as a request may be: on a disk
#: that is nearly full small ones find room in pages that are free.
_PROBE, _PROBE_BYTES = "probe", 1 << 20


@dataclass(frozen=True, slots=True)
class LeaseRow:
    """A lease as stored; `outcome`, `reason`, `ended` are set once it has ended."""

    id: str
    cluster: str
    job: str
    index: int
    incarnation: str
    ttl: float
    live: bool
    outcome: str | None
    reason: str | None
    exit_code: int | None
    ended: float | None
    renewals: int


class ControlStore:
    """One open database. `shared` tells whether other control services may write to it."""

    def __init__(self, database: str, *, wall_clock: Callable[[], float] = time.time) -> None:
        self._url = database_url(database)
        self.shared = self._url.get_backend_name() != "sqlite"
        self.engine: AsyncEngine = open_engine(self._url)
        self._wall = wall_clock
        name = self._url.database
        self._lock = FileLock(name) if not self.shared and name else None
        #: What the database said when it failed; "" once it has taken a write since.
        self._failure = ""
        event.listen(self.engine.sync_engine, "handle_error", self._note_failure)

    async def open(self) -> None:
        """Takes the file lock and makes the tables. Raises DatabaseError."""
        if self._lock is not None:
            self._lock.acquire()
        try:
            # what brings tables up to date may take long, and waits for other services that do
            patient = open_engine(self._url, patient=True) if self.shared else self.engine
            try:
                await open_schema(patient)
            finally:
                if patient is not self.engine:
                    await patient.dispose()
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        await self.engine.dispose()
        if self._lock is not None:
            self._lock.release()

    async def ping(self) -> None:
        """Raises when the database does not answer; after it has failed also when it takes no write yet, as on a full
        disk, which everything can be read from."""
        if not self._failure:
            async with self.engine.connect() as db:
                await db.execute(select(schema.meta.c.value).limit(1))
            return
        async with self.engine.begin() as db:
            await db.execute(insert(schema.meta).values(key=_PROBE, value=" " * _PROBE_BYTES))
            await db.execute(delete(schema.meta).where(schema.meta.c.key == _PROBE))
        self._failure = ""

    def _note_failure(self, context: ExceptionContext) -> None:
        if isinstance(context.sqlalchemy_exception, OperationalError | InterfaceError):
            self._failure = str(context.original_exception)

    # -- clusters

    @asynccontextmanager
    async def turn(self, name: str) -> AsyncIterator[AsyncConnection]:
        """A transaction of the one service that may change the cluster now, committed at the end. Waits behind those
        that have asked before, in the order of asking: a compare-and-set that finds its value outdated may be outrun
        again and again by a service that need not read."""
        async with self.engine.begin() as db:
            await db.execute(select(schema.clusters.c.version).where(schema.clusters.c.name == name).with_for_update())
            yield db

    async def load_clusters(
        self, name: str | None = None, known: Cluster | None = None, turn: AsyncConnection | None = None
    ) -> list[Cluster]:
        """All clusters, or the named one (an empty list when there is none). Of one of which the caller has a former
        value, `known`, the tasks that have changed since are read, as far as the rows tell which those are."""
        clusters, tasks = schema.clusters.c, schema.tasks.c
        which = [] if name is None else [clusters.name == name]
        whose = [] if name is None else [tasks.cluster == name]
        by_cluster: dict[str, dict[tuple[str, int], Task]] = {}
        in_order = False
        async with self.engine.connect() if turn is None else nullcontext(turn) as db:
            heads = (await db.execute(select(schema.clusters).where(*which))).mappings().all()
            if known is not None and heads and _tells_since(heads[0], known):
                by_cluster[known.name], in_order = dict(known.tasks), True
                whose.append(tasks.version > known.version)
            rows = (await db.execute(select(schema.tasks).where(*whose))).mappings().all()
        for row in rows:
            task, there = _task(row), by_cluster.setdefault(row["cluster"], {})
            # one that is not among those of a known value came with a change of the jobs after the heads were read
            if not in_order or (task.job, task.index) in there:
                there[task.job, task.index] = task
        return [_cluster(head, by_cluster.get(head["name"], {}), in_order=in_order) for head in heads]

    async def versions(self) -> dict[str, tuple[str, int]]:
        """Every cluster's (uid, version): a cheap way to see what other replicas changed."""
        async with self.engine.connect() as db:
            c = schema.clusters.c
            rows = await db.execute(select(c.name, c.uid, c.version))
            return {name: (uid, version) for name, uid, version in rows}

    async def save_cluster(
        self,
        old: Cluster | None,
        new: Cluster,
        *,
        lease_ttl: float,
        expired: tuple[str, int] | None = None,
        turn: AsyncConnection | None = None,
    ) -> bool:
        """Writes what differs between `old` (as stored) and `new`. False, with nothing written, when another replica
        changed the cluster meanwhile, or renewed the lease `expired` = (id, renewals seen) that this change
        treats as expired."""
        before = {} if old is None else old.tasks
        changed, gone = [new.tasks[place] for place in new.differing(old)], new.dropped(old)
        head = {
            "version": new.version,
            "jobs": json.dumps(list(new.jobs.items())),
            "stop_with_workers": int(new.stop_with_workers),
            "marked": new.version,
        }
        try:
            async with self.engine.begin() if turn is None else _within(turn) as db:
                if old is None:
                    values = {"name": new.name, "uid": new.uid, "created": new.created, "marked_since": new.version}
                    values |= head
                    await db.execute(insert(schema.clusters).values(values))
                else:
                    c = schema.clusters.c
                    where = (c.name == new.name, c.version == old.version, c.uid == old.uid)
                    since = case((c.marked == c.version, c.marked_since), else_=new.version)
                    changes = update(schema.clusters).where(*where).values(**head, marked_since=since)
                    if (await db.execute(changes)).rowcount != 1:
                        raise _LostRaceError
                for job, index in [*gone, *((task.job, task.index) for task in changed)]:
                    t = schema.tasks.c
                    where = (t.cluster == new.name, t.job == job, t.task_index == index)
                    await db.execute(delete(schema.tasks).where(*where))
                if changed:
                    await db.execute(insert(schema.tasks), [_task_row(new, task) for task in changed])
                for task in changed:
                    was = before.get((task.job, task.index))
                    if was is not None and was.lease_id is not None and was.lease_id != task.lease_id:
                        await self._end_lease(db, was.lease_id, task, expired)
                    if task.lease_id is not None and (was is None or was.lease_id != task.lease_id):
                        await db.execute(insert(schema.leases).values(_lease_row(new.name, task, lease_ttl)))
        except (_LostRaceError, IntegrityError):
            return False
        return True

    async def remove_cluster(self, old: Cluster) -> bool:
        """Deletes a cluster, its tasks and leases. False, with nothing deleted, when it is not stored as `old` any
        more."""
        c = schema.clusters.c
        try:
            async with self.engine.begin() as db:
                # takes the row's lock before anything goes, so that no replica adds a lease meanwhile
                mine = (c.name == old.name, c.version == old.version, c.uid == old.uid)
                taken = update(schema.clusters).where(*mine).values(version=old.version + 1)
                if (await db.execute(taken)).rowcount != 1:
                    raise _LostRaceError
                for table in (schema.leases, schema.tasks):
                    await db.execute(delete(table).where(table.c.cluster == old.name))
                await db.execute(delete(schema.clusters).where(c.name == old.name))
        except _LostRaceError:
            return False
        return True

    async def _end_lease(self, db: AsyncConnection, lease_id: str, task: Task, expired: tuple[str, int] | None) -> None:
        c = schema.leases.c
        where = [c.id == lease_id, c.state == "live"]
        if expired is not None and expired[0] == lease_id:
            where.append(c.renewals == expired[1])
        ended = {
            "state": "ended",
            "outcome": str(task.state),
            "reason": task.reason,
            "exit_code": task.exit_code,
            "ended": self._wall(),
        }
        if (await db.execute(update(schema.leases).where(*where).values(ended))).rowcount != 1:
            raise _LostRaceError

    # -- leases

    async def live_leases(self) -> list[LeaseRow]:
        async with self.engine.connect() as db:
            rows = await db.execute(select(schema.leases).where(schema.leases.c.state == "live"))
            return [_lease(row) for row in rows.mappings()]

    async def lease(self, lease_id: str) -> LeaseRow | None:
        row = await first_row(self.engine, select(schema.leases).where(schema.leases.c.id == lease_id))
        return None if row is None else _lease(row)

    async def renewal_counts(self) -> list[tuple[str, float, int]]:
        """(id, ttl, renewals) of every live lease."""
        c = schema.leases.c
        async with self.engine.connect() as db:
            rows = await db.execute(select(c.id, c.ttl, c.renewals).where(c.state == "live"))
            return [tuple(row) for row in rows]

    async def count_renewals(self, lease_ids: Sequence[str]) -> set[str]:
        """Tells the other replicas of renewals, in one statement. Returns the leases whose renewals are counted. Left
        out are those that are not live, and those whose rows others are changing now: waiting for these while holding
        rows that others wait for would be a deadlock. PostgreSQL only."""
        async with self.engine.begin() as db:
            return {row[0] for row in await db.execute(_COUNT_RENEWALS, {"lease_ids": list(lease_ids)})}

    async def count_renewal(self, lease_id: str) -> bool:
        """Tells the other replicas of a renewal. False when the lease is not live any more."""
        c = schema.leases.c
        async with self.engine.begin() as db:
            result = await db.execute(
                update(schema.leases).where(c.id == lease_id, c.state == "live").values(renewals=c.renewals + 1)
            )
            return bool(result.rowcount == 1)

    async def forget_ended_leases(self, before: float) -> None:
        c = schema.leases.c
        async with self.engine.begin() as db:
            await db.execute(delete(schema.leases).where(c.state == "ended", c.ended < before))

    # -- sessions

    async def load_sessions(self) -> list[SessionRecord]:
        async with self.engine.connect() as db:
            return [_session(row) for row in (await db.execute(select(schema.sessions))).mappings()]

    async def load_session(self, session_id: str) -> SessionRecord | None:
        row = await first_row(self.engine, select(schema.sessions).where(schema.sessions.c.id == session_id))
        return None if row is None else _session(row)

    async def add_session(self, record: SessionRecord) -> None:
        async with self.engine.begin() as db:
            await db.execute(insert(schema.sessions).values(_session_row(record)))

    async def set_graph_version(self, session_id: str, graph_version: int) -> None:
        c = schema.sessions.c
        async with self.engine.begin() as db:
            await db.execute(update(schema.sessions).where(c.id == session_id).values(graph_version=graph_version))

    async def remove_sessions(self, session_ids: Iterable[str]) -> None:
        async with self.engine.begin() as db:
            await db.execute(delete(schema.sessions).where(schema.sessions.c.id.in_(list(session_ids))))


def _count_renewals() -> ReturningUpdate[Any]:
    # one array, not a list of values: the same statement for every number of them, which PostgreSQL plans once
    c, wanted = schema.leases.c, bindparam("lease_ids", type_=ARRAY(String))
    free = select(c.id).where(c.id == any_(wanted), c.state == "live").with_for_update(skip_locked=True)
    return update(schema.leases).where(c.id.in_(free)).values(renewals=c.renewals + 1).returning(c.id)


_COUNT_RENEWALS = _count_renewals()


class _LostRaceError(Exception):
    """Rolls a transaction back: another process changed the row first."""


@asynccontextmanager
async def _within(turn: AsyncConnection) -> AsyncIterator[AsyncConnection]:
    """A part of the transaction that is undone by itself."""
    async with turn.begin_nested():
        yield turn


def _cluster(head: Any, tasks: dict[tuple[str, int], Task], *, in_order: bool) -> Cluster:
    jobs = dict(json.loads(head["jobs"]))
    if not in_order:
        tasks = {(job, i): tasks[job, i] for job, size in jobs.items() for i in range(size)}
    return Cluster(
        head["name"],
        head["uid"],
        head["created"],
        head["version"],
        MappingProxyType(jobs),
        MappingProxyType(tasks),
        bool(head["stop_with_workers"]),
    )


def _tells_since(head: Any, known: Cluster) -> bool:
    """Whether the versions of the task rows tell which have changed since `known`: all changes marked theirs, and none
    took tasks away, which leaves no row."""
    every = head["marked"] == head["version"] and head["marked_since"] <= known.version + 1
    jobs: list[list[Any]] = json.loads(head["jobs"])
    return bool(every and head["uid"] == known.uid and jobs == [list(job) for job in known.jobs.items()])


def _task(row: Any) -> Task:
    return Task(
        row["job"],
        row["task_index"],
        TaskState(row["state"]),
        row["since"],
        row["reason"],
        row["address"],
        row["incarnation"],
        tuple(json.loads(row["devices"])),
        row["lease_id"],
        row["exit_code"],
        None if row["drain"] is None else Drain(**json.loads(row["drain"])),
        bool(row["insecure"]),
        row["registrar"],
        bool(row["own_lease"]),
    )


def _task_row(cluster: Cluster, task: Task) -> dict[str, Any]:
    return {
        "cluster": cluster.name,
        "version": cluster.version,
        "job": task.job,
        "task_index": task.index,
        "state": str(task.state),
        "since": task.since,
        "reason": task.reason,
        "address": task.address,
        "incarnation": task.incarnation,
        "devices": json.dumps([dict(device) for device in task.devices]),
        "lease_id": task.lease_id,
        "exit_code": task.exit_code,
        "drain": None if task.drain is None else json.dumps(asdict(task.drain)),
        "insecure": int(task.insecure),
        "registrar": task.registrar,
        "own_lease": int(task.own_lease),
    }


def _lease_row(cluster: str, task: Task, ttl: float) -> dict[str, Any]:
    return {
        "id": task.lease_id,
        "cluster": cluster,
        "job": task.job,
        "task_index": task.index,
        "incarnation": task.incarnation,
        "ttl": ttl,
        "state": "live",
        "renewals": 0,
    }


def _lease(row: Any) -> LeaseRow:
    return LeaseRow(
        row["id"],
        row["cluster"],
        row["job"],
        row["task_index"],
        row["incarnation"],
        row["ttl"],
        row["state"] == "live",
        row["outcome"],
        row["reason"],
        row["exit_code"],
        row["ended"],
        row["renewals"],
    )


def _session(row: Any) -> SessionRecord:
    values = dict(row)
    return SessionRecord(index=values.pop("task_index"), **values)


def _session_row(record: SessionRecord) -> dict[str, Any]:
    return {
        "id": record.id,
        "cluster": record.cluster,
        "job": record.job,
        "task_index": record.index,
        "incarnation": record.incarnation,
        "target": record.target,
        "handle": record.handle,
        "graph_version": record.graph_version,
        "created": record.created,
        "owner": record.owner,
    }
