"""Sessions over REST: choosing a master, its loss, steps at most once, expiry. Async; session_record.py is pure.

Called by routes/sessions.py. Owns one asyncio task, `control:session-sweeper`. A session is a row in the database plus
a session in a task's master, found again by target and handle after this service restarted. Decoding and encoding of
tensors happens in the call's thread (steps.py), not on the event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy.exc import SQLAlchemyError

from tenfold_control_api import needed_tasks
from tenfold_control_api.loops import end_loop
from tenfold_control_api.masters import Registered
from tenfold_control_api.problems import ApiError
from tenfold_control_api.session_record import OpenSessions, SessionRecord
from tenfold_core import errors, graph_wire
from tenfold_core.access import audit

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Iterable

    from tenfold.session.master_interface import MasterInterface
    from tenfold_control_api.cluster import Cluster, Task
    from tenfold_control_api.leases import Clock
    from tenfold_control_api.masters import Masters
    from tenfold_control_api.registry import Registry
    from tenfold_control_api.service_settings import Settings
    from tenfold_control_api.store import ControlStore
    from tenfold_core.access.roles import Role
    from tenfold_protos.config_pb2 import ConfigProto
    from tenfold_protos.graph_pb2 import GraphDef

log = logging.getLogger(__name__)
T = TypeVar("T")

#: Seconds added to the master's own time-out, because the master's error names what it waited for.
_SLACK = 5.0
#: Seconds to wait for a master to close a session.
_CLOSE_TIMEOUT = 10.0
#: Nodes of a graph that is gone through in a thread.
_MANY_NODES = 2_000
#: Codes after which it is unknown whether the call took effect.
_UNKNOWN_OUTCOME = ("UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED", "UNKNOWN")


class SessionService:
    """All sessions of the service."""

    def __init__(
        self,
        store: ControlStore,
        registry: Registry,
        masters: Masters,
        settings: Settings,
        *,
        clock: Clock = time.monotonic,
        wall_clock: Clock = time.time,
    ) -> None:
        self._store = store
        self._registry = registry
        self._masters = masters
        self._settings = settings
        self._wall = wall_clock
        self.table = OpenSessions(
            clock,
            limit=settings.max_sessions,
            limit_per_caller=settings.max_sessions_per_caller,
            idle_timeout=settings.session_idle_timeout,
            ttl=settings.session_ttl,
        )
        self._locks: dict[str, asyncio.Lock] = {}
        #: Calls in flight that must end when their master's task is lost.
        self._in_flight: dict[asyncio.Future[str], SessionRecord] = {}
        self._owned: set[asyncio.Task[Any]] = set()
        self._sweeper: asyncio.Task[None] | None = None
        #: Called with a session, what it became (`opened`, `closed`), and why; must not block.
        self.listeners: list[Callable[[SessionRecord, str, str], None]] = []
        registry.listeners.append(self._cluster_changed)
        registry.removal_listeners.append(self._cluster_removed)

    async def start(self) -> None:
        for record in await self._store.load_sessions():
            self.table.add(record)
        self._sweeper = asyncio.create_task(self._sweep_for_ever(), name="control:session-sweeper")

    async def stop(self) -> None:
        """1 ends the sweeper · 2 ends the connections, and with them the calls · 3 waits for what was still
        creating."""
        await end_loop(self._sweeper)
        await self._masters.close(self._settings.grace)
        if self._owned:
            await asyncio.wait(self._owned, timeout=self._settings.grace)

    def trouble(self) -> str:
        """Why sessions are not closed as they should; "" where they are."""
        return "the session sweeper does not run" if self._sweeper is None or self._sweeper.done() else ""

    # -- looking

    async def get(self, session_id: str) -> SessionRecord:
        """Raises NOT_FOUND. Another replica's sessions are found in the shared database."""
        try:
            return self.table.get(session_id)
        except ApiError:
            record = await self._store.load_session(session_id) if self._store.shared else None
            if record is None:
                raise
            self.table.add(record)
            return record

    def cluster_of(self, record: SessionRecord) -> Cluster | None:
        return self._registry.known(record.cluster)

    # -- acting

    async def create(
        self,
        cluster_name: str,
        job: str | None,
        index: int | None,
        graph_def: GraphDef,
        config: ConfigProto,
        acting: Callable[[], None],
        wait: float = 0.0,
        as_role: Role | None = None,
        owner: str | None = None,
    ) -> SessionRecord:
        """Opens a session of the principal `owner` on a master. `acting` is called just before that is. Raises
        UNAVAILABLE when no task can be the master, or tasks that the graph needs are not there after `wait` seconds,
        and what the master answers. `as_role` is the caller's where the master is to grant no more: it knows what its
        sessions may do, and refuses the other calls of such a caller for sessions that are not its own."""
        if index is not None and job is None:
            raise ApiError("missing-parameter", f"index {index} names no task without a job.", at=("index",))
        task = await self._master_for(cluster_name, job, index, graph_def, wait)
        assert task.address is not None
        assert task.incarnation is not None
        await self._make_room(owner)
        self.table.reserve(owner)
        target, name, incarnation = f"grpc://{task.address}", task.name, task.incarnation
        if not config.operation_timeout_in_ms:
            config.operation_timeout_in_ms = int(self._settings.session_timeout * 1000)
        timeout = config.operation_timeout_in_ms / 1000 + _SLACK
        draft = SessionRecord(
            uuid.uuid4().hex, cluster_name, task.job, task.index, incarnation, target, "", 0, self._wall(), owner
        )
        acting()

        async def create() -> SessionRecord:
            try:
                async with self._losing(draft) as lost:
                    handle, version = await self._masters.call(
                        target,
                        lambda master, left: master.create_session(graph_def, config, left),
                        limit=timeout,
                        task=name,
                        lost=lost,
                        as_role=as_role,
                        known=Registered.of(task),
                    )
                record = replace(draft, handle=handle, graph_version=version)
                try:
                    await self._store.add_session(record)
                except BaseException:  # nobody would close it
                    await self._close_at_master(record)
                    raise
                self.table.add(record)
                self._tell(record, "opened", f"opened on {record.master}")
                return record
            except ApiError as error:
                if error.code in ("UNAVAILABLE", "DEADLINE_EXCEEDED") and not error.missing_tasks:
                    now = self._registry.known(cluster_name)
                    error.missing_tasks = now.missing if now is not None else ()
                raise
            finally:
                self.table.unreserve(owner)

        # Owned by the service, not by the request: a session that the master opened must get into the table.
        return await asyncio.shield(self._start_task(create(), f"control:create-session:{draft.id}"))

    async def _master_for(
        self, cluster_name: str, job: str | None, index: int | None, graph_def: GraphDef, wait: float
    ) -> Task:
        """The task of the master. Raises UNAVAILABLE unless it and the tasks that the graph needs are there, or come
        within `wait` seconds: a master would wait for them, and name them only at the end."""
        many = len(graph_def.node) > _MANY_NODES or graph_def.HasField("library")
        if many:
            wanted = await asyncio.wrap_future(graph_wire.apart(needed_tasks.places, graph_def))
        else:
            wanted = needed_tasks.places(graph_def)
        cluster = await self._registry.cluster(cluster_name)
        if wait > 0:

            def there(now: Cluster) -> bool:
                try:
                    now.pick_master(job, index)
                except ApiError as error:
                    if error.kind != "no-master":
                        raise
                    return False
                return not needed_tasks.absent(now, wanted)

            cluster, _ = await self._registry.wait(cluster_name, there, wait)
        task = cluster.pick_master(job, index)
        if missing := needed_tasks.absent(cluster, wanted):
            now = self._wall()
            listed = "; ".join(needed_tasks.reason_text(each, now) for each in missing[:10])
            waited = f" The session waited {wait:g} s for them." if wait > 0 else " Start them, or add ?wait=60s."
            raise ApiError(
                "tasks-missing",
                f"the graph needs tasks of cluster {cluster_name!r} that are not there: {listed}"
                f"{'; …' if len(missing) > 10 else ''}.{waited}",
                task=missing[0].name if len(missing) == 1 else None,
                missing_tasks=[each.name for each in missing],
            )
        return task

    async def extend(
        self,
        session_id: str,
        graph_def: GraphDef,
        current_version: int | None,
        acting: Callable[[], None],
        as_role: Role | None = None,
    ) -> SessionRecord:
        """Adds nodes to the session's graph. Raises ABORTED when `current_version` is not the graph's."""
        async with self._locks.setdefault(session_id, asyncio.Lock()), self._using(session_id) as record:
            if current_version is not None and current_version != record.graph_version:
                raise ApiError(
                    "graph-version",
                    f"the graph of session {session_id} is at version {record.graph_version}, not {current_version}: "
                    "another client extended it.",
                    at=("current_graph_version",),
                )

            def extend(master: MasterInterface, left: float) -> int:
                acting()
                return master.extend_session(record.handle, graph_def, record.graph_version, left)

            version = await self._call(record, extend, self._settings.session_timeout, as_role)
            await self._store.set_graph_version(session_id, version)
            return self.table.replace(session_id, graph_version=version)

    async def run_step(
        self,
        session_id: str,
        work: Callable[[MasterInterface, str, float, Callable[[], None]], T],
        limit: float | None,
        acting: Callable[[], None],
        as_role: Role | None = None,
    ) -> T:
        """Runs `work(master, handle, seconds left, acting)`, which decodes, runs and encodes one step. It calls
        `acting` just before it sends the step."""
        async with self._using(session_id) as record:
            return await self._call(
                record,
                lambda master, left: work(master, record.handle, left, acting),
                (limit if limit is not None else self._settings.step_timeout) + _SLACK,
                as_role,
            )

    async def ask(self, session_id: str, work: Callable[[MasterInterface, str, float], T], limit: float) -> T:
        """What `work(master, handle, seconds left)` asks of the session's master; it changes nothing there."""
        async with self._using(session_id) as record, self._losing(record) as lost:
            return await self._masters.call(
                record.target,
                lambda master, left: work(master, record.handle, left),
                limit=limit,
                task=record.master,
                lost=lost,
                known=self._registered(record),
            )

    async def close_for(self, session_id: str, as_role: Role | None) -> SessionRecord:
        """As `close`. For a caller with `as_role` its master is asked first, which refuses a session of others."""
        if as_role is not None:
            async with self._using(session_id) as record:
                await self._call(
                    record, lambda master, left: master.close_session(record.handle, left), _CLOSE_TIMEOUT, as_role
                )
        return await self.close(session_id, at_master=as_role is None)

    async def close(self, session_id: str, why: str = "closed by request", *, at_master: bool = True) -> SessionRecord:
        """Closes a session; steps that run in it are cancelled. A master that is gone does not keep it open. One that
        the database does not forget is still there, and can be closed again. Without `at_master` it is closed there
        already."""
        record = await self.get(session_id)
        self.table.remove(session_id)
        self._locks.pop(session_id, None)
        closing = self._close(record, why, at_master=at_master)
        await asyncio.shield(self._start_task(closing, f"control:close-session:{session_id}"))
        return record

    async def _close(self, record: SessionRecord, why: str, *, at_master: bool) -> None:
        """First at the master: a service that ends in between finds the session again, so that nobody's session stays
        open there."""
        if at_master:
            await self._close_at_master(record)
        try:
            await self._store.remove_sessions([record.id])
        except BaseException:
            self.table.add(record)
            raise
        self._tell(record, "closed", why)

    async def require_none_open(self, cluster_name: str) -> None:
        """Raises FAILED_PRECONDITION if sessions of the cluster are open, and NOT_FOUND for a cluster that is not
        there."""
        await self._registry.cluster(cluster_name)
        if there := await self._of_cluster(cluster_name):
            raise ApiError(
                "sessions-open",
                f"cluster {cluster_name!r} cannot be deleted: {len(there)} sessions are open, as {there[0].id}. DELETE "
                "them first, or add ?force=true.",
            )

    async def close_all(self, cluster_name: str, why: str) -> None:
        """Closes every session of a cluster, all at once."""

        async def close(session_id: str) -> None:
            with contextlib.suppress(ApiError):  # another request closed it meanwhile
                await self.close(session_id, why)

        await asyncio.gather(*(close(record.id) for record in await self._of_cluster(cluster_name)))

    async def _of_cluster(self, name: str) -> list[SessionRecord]:
        """The open sessions of a cluster, with those that other replicas opened."""
        records: Iterable[SessionRecord] = self.table if not self._store.shared else await self._store.load_sessions()
        return [record for record in records if record.cluster == name]

    async def undo(self, session_id: str) -> None:
        """Closes a session whose creation could not be answered. Never raises; the database may fail meanwhile."""
        record = self.table.remove(session_id)
        if record is None:
            return
        self._tell(record, "closed", "its creation could not be written down")
        await self._close_at_master(record)
        with contextlib.suppress(SQLAlchemyError, OSError):
            await self._store.remove_sessions([session_id])

    async def sweep(self) -> None:
        """Closes the sessions that are over. Called periodically, and by tests."""
        for record, why in self.table.expired():
            log.info("session %s is closed: %s", record.id, why)
            audit.done(audit.ITSELF, "end session", session=record.id, cluster=record.cluster, reason=why)
            with contextlib.suppress(ApiError):
                await self.close(record.id, why)

    # -- inside

    def _tell(self, record: SessionRecord, action: str, why: str) -> None:
        for listener in self.listeners:
            listener(record, action, why)

    async def _call(
        self,
        record: SessionRecord,
        work: Callable[[MasterInterface, float], T],
        limit: float,
        as_role: Role | None = None,
    ) -> T:
        async with self._losing(record) as lost:
            try:
                return await self._masters.call(
                    record.target,
                    work,
                    limit=limit,
                    task=record.master,
                    lost=lost,
                    as_role=as_role,
                    known=self._registered(record),
                )
            except ApiError as error:
                if error.code in _UNKNOWN_OUTCOME and "outcome" not in error.extra:
                    error.extra = {**error.extra, "outcome": "unknown"}
                    error.retryable = False
                raise

    def _registered(self, record: SessionRecord) -> Registered | None:
        """What may be shown to the session's master."""
        cluster = self.cluster_of(record)
        task = None if cluster is None else cluster.tasks.get((record.job, record.index))
        return None if task is None or task.incarnation != record.incarnation else Registered.of(task)

    @contextlib.asynccontextmanager
    async def _using(self, session_id: str) -> AsyncIterator[SessionRecord]:
        record = await self.get(session_id)
        if self._store.shared:
            await self._registry.cluster(record.cluster)
        record.require_ready(self.cluster_of(record))
        self.table.begin(session_id)
        try:
            yield record
        finally:
            self.table.end(session_id)

    @contextlib.asynccontextmanager
    async def _losing(self, record: SessionRecord) -> AsyncIterator[asyncio.Future[str]]:
        """A future that gets the reason when the record's master is lost."""
        lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._in_flight[lost] = record
        try:
            yield lost
        finally:
            del self._in_flight[lost]
            lost.cancel()

    def _cluster_changed(self, cluster: Cluster) -> None:
        for lost, record in self._in_flight.items():
            if record.cluster == cluster.name and not lost.done():
                state, why = record.standing(cluster)
                if state == "lost":
                    lost.set_result(why)

    def _cluster_removed(self, cluster: Cluster) -> None:
        for lost, record in self._in_flight.items():
            if record.cluster == cluster.name and not lost.done():
                lost.set_result(record.standing(None)[1])

    async def _close_at_master(self, record: SessionRecord) -> None:
        if record.standing(self.cluster_of(record))[0] == "lost":
            return
        try:
            async with self._losing(record) as lost:
                await self._masters.call(
                    record.target,
                    lambda master, left: master.close_session(record.handle, left),
                    limit=_CLOSE_TIMEOUT,
                    task=record.master,
                    lost=lost,
                    closing=True,
                    known=self._registered(record),
                )
        except (ApiError, errors.OpError) as error:
            log.warning("session %s was closed, but %s did not confirm it: %s", record.id, record.master, error)

    async def _make_room(self, owner: str | None) -> None:
        """Drops sessions whose master was restarted, where there is no room for another one of that principal: nothing
        can use them."""
        if self.table.has_room(owner):
            return
        for record in list(self.table):
            task = (
                None if (cluster := self.cluster_of(record)) is None else cluster.tasks.get((record.job, record.index))
            )
            if task is None or task.incarnation != record.incarnation:
                with contextlib.suppress(ApiError):
                    await self.close(record.id)

    def _start_task(self, work: Coroutine[Any, Any, T], name: str) -> asyncio.Task[T]:
        """A task of the service, which `stop` waits for."""
        task = asyncio.create_task(work, name=name)
        self._owned.add(task)
        task.add_done_callback(self._owned.discard)
        return task

    async def _sweep_for_ever(self) -> None:
        while True:
            await asyncio.sleep(min(30.0, self._settings.session_idle_timeout / 4))
            try:
                await self.sweep()
            except Exception:
                log.exception("the session sweeper could not do its work; it tries again")
