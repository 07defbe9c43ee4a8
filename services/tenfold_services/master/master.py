"""The master of one task: sessions by handle, and what concerns no single session.

Called by rpc/master_service.py, rpc/link_master_service.py and in-process sessions. A client's session,
graph and steps are in master_session.py. Error texts follow TensorFlow's master.cc.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from tenfold_compiler.part.graph_sizes import is_small
from tenfold_core import errors, telemetry
from tenfold_core.access import audit
from tenfold_core.access.gate import Caller
from tenfold_core.access.roles import Role
from tenfold_core.memory_limits import check_room
from tenfold_kernels import families, registry
from tenfold_protos import config_pb2
from tenfold_services.master import untrusted
from tenfold_services.master.device_finder import find_devices, tasks_named
from tenfold_services.master.env import SessionEnv
from tenfold_services.master.limits import DEFAULT_MASTER_LIMITS, MasterLimits, SetUpBudget
from tenfold_services.master.master_session import CLOSED_BY_CLIENT, MasterSession
from tenfold_services.master.partial_runs import value_bytes
from tenfold_services.master.peer_use import PeerTable, PeerUse, peer_name
from tenfold_services.master.request_ids import RecentRequests
from tenfold_services.master.worker_sessions import LeftSessions
from tenfold_services.owned_tasks import OwnedTasks, in_time
from tenfold_services.session_cluster import own_task
from tenfold_services.worker.execution import kept

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from tenfold_compiler.graph.place import DevicesWithKernel
    from tenfold_protos.config_pb2 import CallableOptions, ConfigProto, RunMetadata, RunOptions
    from tenfold_protos.device_attributes_pb2 import DeviceAttributes
    from tenfold_protos.graph_pb2 import GraphDef
    from tenfold_protos.placement_pb2 import GetPlacementResponse
    from tenfold_services.interfaces import Value
    from tenfold_services.master.caller_graph import CallerStep
    from tenfold_services.master.env import MasterEnv

T = TypeVar("T")

_log = logging.getLogger("tenfold.master")
#: Who opens sessions within the task's own process.
_THIS_PROCESS = Caller(Role.ADMIN, "")
#: Of a step that was not traced.
_NO_METADATA = config_pb2.RunMetadata()


class Master:
    """The master service. All methods are coroutines of the server's event loop; sessions run beside each other."""

    def __init__(
        self,
        env: MasterEnv,
        *,
        limits: MasterLimits = DEFAULT_MASTER_LIMITS,
        devices_with_kernel: DevicesWithKernel | None = None,
    ) -> None:
        """`devices_with_kernel` is the registry's, unless another one is given."""
        self._env = env
        self._limits = limits
        #: Nodes that a session's graph may have.
        self.most_nodes = limits.nodes
        self._devices_with_kernel = devices_with_kernel
        self._sessions: dict[str, MasterSession] = {}
        #: Sessions that are being created; they count towards the limit.
        self._creating = 0
        numbers, size = limits.remembered_requests, limits.remembered_answer_bytes
        self._requests: RecentRequests[tuple[list[Value], RunMetadata]] = RecentRequests(
            numbers, limits.remembered_answers, size, lambda answer: sum(map(value_bytes, answer[0]))
        )
        #: Handles that were given: of partial runs and of callables.
        self._setups: RecentRequests[Any] = RecentRequests(numbers, numbers, size, lambda handle: 100)
        self._peers = PeerTable()
        self._stopping = False
        #: Sessions that are being closed; kept here, because the client that asked may go away meanwhile.
        self._closing = OwnedTasks(f"The master of {env.task}")
        self._left = LeftSessions(env, limits)

    @property
    def open_sessions(self) -> list[MasterSession]:
        """Any thread."""
        return list(self._sessions.values())

    def session_statuses(self, limit: int) -> list[dict[str, Any]]:
        """The statuses of open sessions, `limit` of them, those first that were used last. Any thread."""
        statuses = [session.as_status() for session in list(self._sessions.values())]
        return sorted(statuses, key=lambda session: session["idle"])[:limit]

    async def create_session(
        self,
        graph_def: GraphDef,
        config: ConfigProto,
        target: str = "",
        seconds: float | None = None,
        client: str = "",
        caller: Caller = _THIS_PROCESS,
    ) -> tuple[str, int]:
        """(session handle of 16 hex digits, graph version 0).

        `target` is where the client reached this server; a session that brings a cluster of its own needs it. `seconds`
        is how long the client waits, if it said so. `client` is its address, "" in this process, and `caller` what it
        was accepted as. What its role may not do is refused, with PermissionDeniedError, now and in all that comes for
        the session (untrusted.py).

        Waits for every task that the session may use. Raises DeadlineExceededError naming those that did not answer,
        InvalidArgumentError for a graph that is malformed or cannot be placed, ResourceExhaustedError at a limit.
        """
        spans = telemetry.NO_SPAN
        if telemetry.tracer is not None:
            spans = telemetry.span("master CreateSession", task=self._env.task, nodes=len(graph_def.node))
        with spans as opened:
            session = await self._admit(graph_def, config, target, seconds, client, caller)
            opened.set_attribute("tenfold.session", session.handle)
            return session.handle, session.graph.version

    async def _admit(
        self, graph_def: GraphDef, config: ConfigProto, target: str, seconds: float | None, client: str, caller: Caller
    ) -> MasterSession:
        """The session that `create_session` opens, in its place in the table. Raises as that."""
        if self._stopping:
            raise errors.unavailable(f"The master of {self._env.task} is shutting down.")
        check_room("a new session")
        if len(self._sessions) + self._creating >= self._limits.sessions and not self._close_unused():
            text = f"The master of {self._env.task} has {len(self._sessions)} sessions open"
            raise self._limits.reached("sessions", text)
        peer = self._peers.find(peer_name(caller.name, client))
        if peer is not None and peer.sessions >= self._limits.sessions_per_peer and not self._close_unused(peer):
            text = f"{peer.name} has {peer.sessions} sessions open at the master of {self._env.task}"
            raise self._limits.reached("sessions_per_peer", text)
        merged = config_pb2.ConfigProto()
        merged.CopyFrom(self._env.default_config)
        merged.MergeFrom(config)
        functions = None
        if untrusted.is_untrusted(caller.role):
            untrusted.isolate(merged)
            functions = await self._aside(graph_def, lambda: untrusted.check_graph(graph_def, frozenset()))
        self._creating += 1
        if peer is not None:
            self._peers.enter(peer)
        try:
            session = await self._create(graph_def, merged, target, seconds)
        except BaseException:
            if peer is not None:
                self._peers.leave(peer)
            raise
        finally:
            self._creating -= 1
        session.client, session.untrusted_functions, session.peer = client, functions, peer
        session.owner = caller.principal
        self._sessions[session.handle] = session
        return session

    def _close_unused(self, peer: PeerUse | None = None) -> bool:
        """Closes the session, of that `peer` if one is named, that was unused for longest, if that was long enough;
        whether there was one."""
        horizon = time.monotonic() - self._limits.idle_session_seconds
        those = [session for session in self._sessions.values() if peer is None or session.peer is peer]
        unused = [session for session in those if session.unused_since() < horizon]
        if not unused:
            return False
        session = min(unused, key=MasterSession.unused_since)
        del self._sessions[session.handle]
        _log.warning("Session %s is closed to make room: it was not used for long.", session.handle)
        audit.done(audit.ITSELF, "end session", session=session.handle, reason="another one needed its place")
        self._close_in_background(session, CLOSED_BY_CLIENT)
        return True

    async def _create(
        self, graph_def: GraphDef, config: ConfigProto, target: str, patience: float | None
    ) -> MasterSession:
        env = self._env
        if config.cluster_def.job:
            if env.join is None:
                raise errors.unimplemented("ConfigProto.cluster_def is not served here.")
            env = env.join(config.cluster_def, own_task(config.cluster_def, target))
        try:
            budget = SetUpBudget.of(config, patience, self._limits)
            first = True
            while True:
                finished = set(env.finished.known) if env.finished is not None else set()
                try:
                    return await self._create_within(env, graph_def, config, budget)
                except errors.UnavailableError:
                    # A task that finished between two of our calls to it is no reason to fail, heard or unheard.
                    if self._stopping or env.finished is None or not (first or env.finished.known.keys() - finished):
                        raise
                    first = False
        except BaseException:
            if env.leave is not None:
                await asyncio.shield(env.leave())
            raise

    async def _create_within(
        self, env: MasterEnv, graph_def: GraphDef, config: ConfigProto, budget: SetUpBudget
    ) -> MasterSession:
        """One attempt."""
        tasks = env.workers.tasks()
        needed = await budget.place(graph_def, self._aside(graph_def, lambda: tasks_named(graph_def, tasks)))
        devices = await find_devices(env, config.device_filters, budget, self._limits, needed)
        # kernels of device types that no task has are not even looked for
        types = [each for each in families.FOLDERS if each in devices.types]
        kernels = self._devices_with_kernel or partial(registry.devices_with_kernel, device_types=types)
        session = MasterSession(SessionEnv(secrets.token_hex(8), env, config, devices, kernels, self._limits))
        await budget.place(graph_def, session.graph.load(graph_def))
        try:
            await session.worker_sessions.create(budget.left())
            if self._stopping:
                raise errors.unavailable(f"The master of {self._env.task} is shutting down.")
        except BaseException:
            # Some workers have the session. Not awaited: the client may be gone already.
            self._close_in_background(session, "The session could not be created.")
            raise
        return session

    async def extend_session(self, handle: str, graph_def: GraphDef, current_version: int) -> int:
        """The new graph version. Raises AbortedError on another `current_version` than the master's."""
        check_room("a larger graph")
        session = self._session(handle)
        functions = known = session.untrusted_functions
        if known is not None:
            functions = await self._aside(graph_def, lambda: untrusted.check_graph(graph_def, known))
        version = await session.extend(graph_def, current_version)
        session.untrusted_functions = functions
        return version

    async def _aside(self, graph_def: GraphDef, work: Callable[[], T]) -> T:
        """The result of `work`, which goes through the graph: in the pool, if that takes long."""
        pool = self._env.graph_pool
        return work() if pool is None or is_small(graph_def) else await pool.run("", work)

    def check_caller(self, handle: str, caller: Caller) -> None:
        """Raises PermissionDeniedError where that caller, over the network, may not use the session.

        Nobody uses one that was opened within this process, whose functions it may call. Who may only compute uses
        those that it opened: a handle is no secret, tasks report it with their figures. Never blocks.
        """
        session = self._sessions.get(handle)
        if session is not None and not session.client:
            raise errors.permission_denied(
                f"Session {handle} was opened within the process of its task, {self._env.task}, and is used there only."
            )
        if untrusted.is_untrusted(caller.role):
            if session is None or session.untrusted_functions is None:
                raise untrusted.not_his(handle)
            untrusted.check_owner(handle, session.owner, caller)

    def check_reader(self, handle: str, caller: Caller) -> None:
        """Raises PermissionDeniedError where that caller may not see what is in the session: below the role run it
        sees what it opened. Never blocks."""
        session = self._sessions.get(handle)
        if untrusted.is_untrusted(caller.role) and session is not None:
            untrusted.check_owner(handle, session.owner, caller)

    def find_step(
        self, handle: str, feeds: tuple[str, ...], fetches: tuple[str, ...], targets: tuple[str, ...]
    ) -> CallerStep | None:
        """What runs this step on the thread of its caller, as CallerSteps.find; None if only `run_step` can."""
        steps = self._env.caller_steps
        return None if steps is None else steps.find(handle, feeds, fetches, targets)

    def run_at_once(
        self,
        handle: str,
        feeds: Mapping[str, Value],
        fetches: Sequence[str],
        targets: Sequence[str],
        request_id: int = 0,
        timeout_in_ms: int = 0,
    ) -> list[Value] | None:
        """A step without options but a time-out, if it is short and needs no other task: the fetched values.

        None: it did not run, ask `run_step`, as which it raises. Runs on the event loop's thread, which it holds up."""
        session = self._sessions.get(handle)
        # a caller's step has its session's deadline, which clients repeat in each step
        if session is None or timeout_in_ms not in (0, session.timeout_in_ms):
            return None
        step = self.find_step(handle, tuple(feeds), tuple(fetches), tuple(targets))
        key = (handle, request_id)
        values = list(feeds.values())
        if step is None or not step.is_short(values) or (request_id and self._requests.knows(key, session.owner)):
            return None
        try:
            found = step.run_timed(values)
        except errors.OpError as error:
            if request_id:
                self._requests.note(key, None, error, session.owner)
            raise
        if found is None:
            return None
        # what is read-only belongs to a variable, which may change before the answer is asked for again
        values = [kept(value) for value in found]
        if request_id:
            self._requests.note(key, (values, _NO_METADATA), by=session.owner)
        return values

    async def run_step(
        self,
        handle: str,
        feeds: Mapping[str, Value],
        fetches: Sequence[str],
        targets: Sequence[str],
        options: RunOptions,
        request_id: int = 0,
        partial_run_handle: str = "",
    ) -> tuple[list[Value], RunMetadata]:
        """The fetched values in the order of `fetches`. A request_id other than 0 seen before gets the first answer.

        With a `partial_run_handle` it is one call of that partial run. InvalidArgumentError for what was not set up or
        came before.
        """
        spans = telemetry.NO_SPAN
        if telemetry.tracer is not None:
            names = telemetry.wanted_names(fetches, targets)
            spans = telemetry.span("master RunStep", task=self._env.task, session=handle, fetches=names)
        with spans:
            session = self._session(handle)
            return await _once(
                self._requests,
                session,
                request_id,
                lambda: session.run_step(feeds, fetches, targets, options, partial_run_handle),
            )

    async def partial_run_setup(
        self, handle: str, feeds: Sequence[str], fetches: Sequence[str], targets: Sequence[str], request_id: int = 0
    ) -> str:
        """The handle of a partial run: a step whose feeds and fetches come in several `run_step`s.

        As for `run_step`, a `request_id` seen before gets the first answer.
        """
        session = self._session(handle)
        return await _once(
            self._setups, session, request_id, lambda: session.partial_run_setup(feeds, fetches, targets)
        )

    async def close_session(self, handle: str) -> None:
        """Cancels the session's steps and ends it. Bounded. AbortedError for a handle that is not known."""
        session = self._session(handle, " Possibly, this master has restarted.")
        del self._sessions[handle]
        await asyncio.shield(self._close_in_background(session, CLOSED_BY_CLIENT))

    async def list_devices(self, handle: str) -> list[DeviceAttributes]:
        """All devices of the session, the master's own task first; of the cluster for an empty handle.

        Without a session, tasks that do not answer within a few seconds are left out.
        """
        if handle:
            if handle not in self._sessions:
                raise errors.invalid_argument(f"Session {handle} is not found. Possibly, this master has restarted.")
            return self._sessions[handle].env.devices.attributes
        found = list(await self._env.workers.worker(self._env.task).get_status())
        others = [task for task in self._env.workers.tasks() if task != self._env.task]
        seconds, ask = self._limits.list_devices_seconds, self._env.workers.devices
        none: list[DeviceAttributes] = []
        asked = [in_time(seconds, partial(ask, task, timeout=seconds), none) for task in others]
        answers = await asyncio.gather(*asked)
        return found + [device for answer in answers for device in answer]

    async def placement(self, handle: str) -> GetPlacementResponse:
        """Where the session's nodes are, and why. AbortedError for a handle that is not known."""
        return await self._session(handle, " Possibly, this master has restarted.").graph.placement()

    async def reset(self, containers: Sequence[str]) -> None:
        """Closes all sessions and clears the containers (the default one if none is named) on every task."""
        await self._close_all(CLOSED_BY_CLIENT)

        async def one(task: str) -> None:
            try:
                async with asyncio.timeout(self._limits.cleanup_seconds):
                    await self._env.workers.worker(task).cleanup_all(list(containers))
            except (errors.OpError, TimeoutError) as e:
                _log.warning("Reset: %s could not be cleared: %s", task, str(e) or "no answer in time")

        await asyncio.gather(*(one(task) for task in self._env.workers.tasks()))

    async def make_callable(self, handle: str, options: CallableOptions, request_id: int = 0) -> int:
        """A callable's handle, from 1 on. As for `run_step`, a `request_id` seen before gets the first answer."""
        session = self._session(handle)
        return await _once(self._setups, session, request_id, lambda: session.make_callable(options))

    async def run_callable(
        self, handle: str, callable_handle: int, feeds: Sequence[Value], request_id: int = 0
    ) -> tuple[list[Value], RunMetadata]:
        """Runs a callable: the step that its options name; feeds and fetched values in their order.

        As for `run_step`, a `request_id` seen before gets the first answer.
        """
        session = self._session(handle)
        found = session.callable(callable_handle, len(feeds))
        options = found.options
        fed = dict(zip(options.feed, feeds, strict=True))
        return await _once(
            self._requests,
            session,
            request_id,
            lambda: session.run_step(fed, options.fetch, options.target, options.run_options, prepared=found),
        )

    async def release_callable(self, handle: str, callable_handle: int) -> None:
        """Forgets a callable. An unknown one is no error."""
        self._session(handle).release_callable(callable_handle)

    def other_tasks(self) -> dict[str, str]:
        """The other tasks of the cluster, each with its address, "" where that is not known."""
        workers = self._env.workers
        return {task: workers.address(task) or "" for task in workers.tasks() if task != self._env.task}

    async def stop(self) -> None:
        """Refuses new sessions and closes all there are: running steps get CancelledError. Bounded; never raises."""
        self._stopping = True
        try:
            await self._close_all("Step was cancelled because the server is shutting down.")
            await self._left.close()
        except Exception:
            _log.exception("Stopping the master of %s", self._env.task)

    async def _close_all(self, reason: str) -> None:
        sessions, self._sessions = list(self._sessions.values()), {}
        for session in sessions:
            audit.done(audit.ITSELF, "end session", session=session.handle, reason=reason)
            self._close_in_background(session, reason)
        await self._closing.settled()

    def _close_in_background(self, session: MasterSession, reason: str) -> asyncio.Task[None]:
        if session.peer is not None:
            self._peers.leave(session.peer)

        async def close() -> None:
            self._left.add(session.handle, await session.close(reason))

        return self._closing.spawn(close(), f"close:{session.handle}")

    def _session(self, handle: str, hint: str = "") -> MasterSession:
        session = self._sessions.get(handle)
        if session is None:
            raise errors.aborted(f"Session {handle} is not found.{hint}")
        session.last_used = time.monotonic()
        return session


async def _once(
    requests: RecentRequests[T], session: MasterSession, request_id: int, work: Callable[[], Awaitable[T]]
) -> T:
    """The outcome of `work`, or of the earlier work of a session for the same number; 0 stands for none."""
    if not request_id:
        return await work()
    return await requests.run((session.handle, request_id), work, session.owner)
