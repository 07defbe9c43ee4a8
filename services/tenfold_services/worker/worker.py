"""One task's worker: devices, sessions, registered graphs, steps. interfaces.WorkerInterface in this process.

Called by the master of the same task directly and by rpc/worker_service.py for everybody else. Everything runs on the
event loop of its server; long programs and compilation run in a bounded pool. In TensorFlow: worker.cc, graph_mgr.cc.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from typing import TYPE_CHECKING, Any, cast

from tenfold.framework import errors
from tenfold.framework.sizes import check_room
from tenfold_kernels.state import ResourceManager
from tenfold_kernels.threads import limit_blas_threads

from ..interfaces import DEFAULT_EXEC_OPTIONS, ExecOptions, RunGraphResult, Value, WorkerCache
from ..limits import DEFAULT_LIMITS, Limits
from .devices import local_devices
from .driver import Arrivals
from .graph_run import GraphRun, explained, run_at_once
from .partial_runs import PartialRun
from .program import Program, compile_program
from .push import Outbox
from .rendezvous import StepTable, parse_key
from .sessions import SessionTable, WorkerSession
from .step_pool import StepPool
from .tiers import NO_FUSION, FusionCompiler
from .tracing import TracedExecution, TransferLog

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tenfold_protos.config_pb2 import ConfigProto
    from tenfold_protos.device_attributes_pb2 import DeviceAttributes
    from tenfold_protos.graph_pb2 import GraphDef
    from tenfold_protos.tensorflow_server_pb2 import ServerDef

    from ..session_cluster import SessionCluster
    from .graph_run import Done
    from .push import Push, PushPlan
    from .rendezvous import Rendezvous
    from .tiers import FusionOptions


_log = logging.getLogger(__name__)


class Worker:
    """The worker service of `task` ("/job:ps/replica:0/task:0"). Made once per server, before its loop serves."""

    def __init__(
        self,
        task: str,
        *,
        workers: WorkerCache | None = None,
        limits: Limits = DEFAULT_LIMITS,
        resources: ResourceManager | None = None,
        fusion: FusionOptions = NO_FUSION,
        cpus: int = 1,
    ) -> None:
        self.task = task
        #: Who can be asked for tensors; set by the server once there is a cluster.
        self.workers = workers
        self.devices = local_devices(task, cpus)
        #: Shared by all sessions that are not isolated.
        self.resources = resources if resources is not None else ResourceManager()
        self.limits = limits
        #: This worker under other names, for sessions that bring a cluster of their own (session_cluster.py).
        self.guests: list[Worker] = []
        #: Those of them that other tasks' masters made, with what ends them, by session handle.
        self._guest_of: dict[str, tuple[Worker, SessionCluster]] = {}
        self.take_names()
        self._sessions = SessionTable(task, self.resources, limits)
        self._steps = StepTable(limits)
        #: Told the task and the incarnation of each master that opens a session in our own cluster.
        self.on_master: Callable[[str, int], None] = lambda task, incarnation: None
        #: For the Logging RPC.
        self.transfers = TransferLog()
        #: Runs long programs and compiles graphs.
        self.pool = StepPool(task, limits)
        #: Whether a session's intra_op_parallelism_threads counts, or only the server's.
        self.sessions_set_threads = False
        #: Fuses programs that are hot.
        self._fusion = FusionCompiler(fusion)
        #: Entered by whoever hands out several tensors at once.
        self.arrivals = Arrivals()
        #: Set once: why no new work is taken.
        self._refusal: errors.OpError | None = None
        #: Partitions that run now, and who waits for there being none.
        self._running = 0
        self._drained: set[asyncio.Future[None]] = set()

    def take_names(self) -> None:
        """Answers for the devices as they are called now."""
        self._incarnations = {device.name: device.incarnation for device in self.devices}

    def take_sessions(self, sessions: SessionTable) -> None:
        """Starts anew, without any session; steps and resources stay shared with the worker that this is a copy of."""
        self._sessions, self.guests, self._guest_of = sessions, [], {}
        self._running, self._drained = 0, set()

    def _guest(self, session_handle: str) -> Worker:
        """The worker of a session: this one, or a guest."""
        found = self._guest_of.get(session_handle)
        return self if found is None else found[0]

    # -- set-up ------------------------------------------------------------------------------------------------------

    async def get_status(self, timeout: float | None = None) -> list[DeviceAttributes]:  # noqa: ASYNC109 - passed on to the RPC as its deadline
        return self.devices

    async def create_worker_session(
        self,
        session_handle: str,
        server_def: ServerDef | None,
        isolate: bool,
        master_task: str,
        master_incarnation: int,
    ) -> None:
        self._check_open()
        await self._leave_stale(master_task, master_incarnation)
        if server_def is not None and server_def.cluster.job:
            await self._create_guest(session_handle, server_def, isolate, master_task, master_incarnation)
            return
        # the message has it signed, devices do not
        self.on_master(master_task, master_incarnation % 2**64)
        for stale in self._sessions.create(session_handle, isolate, master_task, master_incarnation):
            _cancel_steps(stale, f"Session {stale.handle} ended: its master {master_task} restarted.")

    async def _create_guest(
        self, session_handle: str, server_def: ServerDef, isolate: bool, master_task: str, master_incarnation: int
    ) -> None:
        from ..session_cluster import join  # needs this module

        if session_handle in self._guest_of:
            raise errors.AlreadyExistsError(None, None, f"Session {session_handle} exists already on {self.task}.")
        if len(self.guests) >= self.limits.sessions:
            raise errors.ResourceExhaustedError(
                None, None, f"{self.task} has {len(self.guests)} sessions with their own clusters, which is its limit."
            )
        task = f"/job:{server_def.job_name}/replica:0/task:{server_def.task_index}"
        worker, tasks = join(self, server_def.cluster, task)
        self._guest_of[session_handle] = worker, tasks
        await worker.create_worker_session(session_handle, None, isolate, master_task, master_incarnation)

    async def _leave_stale(self, master_task: str, master_incarnation: int) -> None:
        """Ends guests of the same master before its restart."""
        for handle, (guest, _) in list(self._guest_of.items()):
            for session in guest._sessions:
                if master_task and session.master_task == master_task:
                    if session.master_incarnation != master_incarnation:
                        await self.delete_worker_session(handle)
                    break

    async def delete_worker_session(self, session_handle: str) -> None:
        found = self._guest_of.pop(session_handle, None)
        if found is not None:
            from ..session_cluster import leave

            await found[0].delete_worker_session(session_handle)
            await leave(self, *found)
            return
        session = self._sessions.remove(session_handle)
        if session is not None:
            _cancel_steps(session, "Step was cancelled by an explicit call to `Session::Close()`.")

    async def register_graph(self, session_handle: str, graph_def: GraphDef, config: ConfigProto) -> str:
        self._check_open()
        guest = self._guest(session_handle)
        if guest is not self:
            return await guest.register_graph(session_handle, graph_def, config)
        check_room("another graph")
        session = self._sessions.get(session_handle)
        stateful = session.stateful if session.handle else None
        if self.sessions_set_threads:
            limit_blas_threads(self, config.intra_op_parallelism_threads)
        job = self.pool.submit(
            session.handle,
            lambda: compile_program(graph_def, self.task, session.resources, self.limits, stateful, self._fusion),
        )
        program = await asyncio.wrap_future(job.future)
        return session.add_graph(program, self.limits)

    def program(self, session_handle: str, graph_handle: str) -> Program:
        """What `register_graph` made, for a master of this process. Raises AbortedError for an unknown handle."""
        return self._guest(session_handle)._sessions.get(session_handle).graph(graph_handle)

    async def deregister_graph(self, session_handle: str, graph_handle: str) -> None:
        session = self._guest(session_handle)._sessions.get(session_handle)
        session.graph(graph_handle)
        del session.graphs[graph_handle]

    # -- steps -------------------------------------------------------------------------------------------------------

    async def run_graph(
        self,
        session_handle: str,
        graph_handle: str,
        step_id: int,
        feeds: Mapping[str, Value],
        fetches: Sequence[str],
        options: ExecOptions = DEFAULT_EXEC_OPTIONS,
    ) -> RunGraphResult:
        guest = self._guest(session_handle)
        if guest is not self:
            return await guest.run_graph(session_handle, graph_handle, step_id, feeds, fetches, options)
        if options.is_partial:
            return await self._run_partial(session_handle, graph_handle, step_id, feeds, fetches, options)
        future: asyncio.Future[RunGraphResult] = asyncio.get_running_loop().create_future()

        def done(result: RunGraphResult | None, error: errors.OpError | None) -> None:
            if future.done():
                return
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(cast("RunGraphResult", result))

        run = self.start_run(session_handle, graph_handle, step_id, feeds, fetches, options, done)
        try:
            result = future.result() if future.done() else await future
        except asyncio.CancelledError:
            run.cancel(errors.CancelledError(None, None, f"Step {step_id} was cancelled on {self.task}."))
            raise
        if options.record_partition_graphs:
            result.partition_graphs.append(self.program(session_handle, graph_handle).as_graph_def())
        return result

    async def _run_partial(
        self,
        session_handle: str,
        graph_handle: str,
        step_id: int,
        feeds: Mapping[str, Value],
        fetches: Sequence[str],
        options: ExecOptions,
    ) -> RunGraphResult:
        """One of the calls of a partial run; the first starts it."""
        self._check_open()
        session = self._sessions.get(session_handle)
        program = session.graph(graph_handle)
        rendezvous = self._steps.get(step_id, time.monotonic())
        if rendezvous.error is not None:
            raise rendezvous.error
        if rendezvous.partial is None:
            rendezvous.partial = PartialRun(self, session, program, rendezvous)
        return await rendezvous.partial.call(feeds, fetches, options.is_last_partial_run, self._receive)

    def start_run(
        self,
        session_handle: str,
        graph_handle: str,
        step_id: int,
        feeds: Mapping[str, Value],
        fetches: Sequence[str],
        options: ExecOptions,
        done: Done,
        plan: PushPlan | None = None,
        push: Push | None = None,
    ) -> GraphRun:
        """`run_graph` without waiting: `done` is called once, maybe before this returns.

        Raises what keeps it from starting.
        With a `plan`, what it says goes out through `push`, and what it expects is waited for. The step is forgotten
        at its end unless somebody may still ask for a tensor of it.
        """
        self._check_open()
        session = self._sessions.get(session_handle)
        program = session.graph(graph_handle)
        rendezvous = self._steps.get(step_id, time.monotonic())
        outbox = None if plan is None or push is None else Outbox(plan, rendezvous, push)
        kind = TracedExecution if options.record_timeline else None
        run = GraphRun(self, session, program, rendezvous, fetches, done, plan, outbox, kind)
        run.start(feeds)
        return run

    def run_at_once(
        self,
        session_handle: str,
        graph_handle: str,
        step_id: int,
        feeds: Mapping[str, Value],
        brought: Mapping[str, tuple[Value, bool]],
        plan: PushPlan,
        push: Push,
    ) -> RunGraphResult | None:
        """The whole run within this call, if it is short and has all it needs; None if not, use `start_run`.

        Raises as `run_graph`.
        """
        self._check_open()
        program = self._sessions.get(session_handle).graph(graph_handle)
        if not plan.expected <= brought.keys():
            return None
        if self._steps.find(step_id) is not None:
            return None  # something of it is here already
        try:
            return run_at_once(program, plan, step_id, feeds, brought, push, self.limits)
        except errors.OpError as error:
            raise explained(error, self.task, step_id) from None
        except Exception as error:
            raise explained(error, self.task, step_id) from error

    def runs_inline(self, session_handle: str, graph_handle: str) -> bool:
        """Whether the graph's last runs were short. False for an unknown one. A run may go to the pool all the same."""
        try:
            program = self._sessions.get(session_handle).graph(graph_handle)
        except errors.OpError:
            return False
        return program.was_short(self.limits.inline_nanoseconds)

    def began(self, session: WorkerSession, run: GraphRun) -> None:
        """A run starts."""
        session.running.add(run)
        self._running += 1

    def over(self, session: WorkerSession, run: GraphRun) -> None:
        """A run has ended."""
        session.running.discard(run)
        self._running -= 1
        if self._drained and not self._running:
            self._tell_drained()

    def forget_step(self, rendezvous: Rendezvous) -> None:
        """Nobody will come for anything of this step any more."""
        if not rendezvous.runs:
            self._steps.forget(rendezvous.step_id)

    def pushed(self, step_id: int, key: str, value: Value, is_dead: bool) -> None:
        """A tensor that its producer brought. Never blocks. Late ones, of steps that are over, are dropped."""
        try:
            rendezvous = self._steps.get(step_id, time.monotonic())
        except errors.AbortedError:
            return
        if rendezvous.error is not None:
            return
        try:
            rendezvous.send(key, value, is_dead)
        except errors.OpError as error:
            rendezvous.abort(error)

    def producer_lost(self, task: str, error: errors.OpError) -> None:
        """The link over which `task` pushed is gone: steps that still wait for its tensors end with `error`."""
        for session in self._sessions:
            for run in list(session.running):
                if run.plan is not None and run.rendezvous.waits_for(f"{task}/"):
                    run.cancel(error)

    async def recv_remote(self, task: str, step_id: int, key: str) -> tuple[Value, bool]:
        """Asks another task for a tensor."""
        if self.workers is None:
            raise errors.InternalError(None, None, f"{self.task} knows no other task; {task} was asked for {key}.")
        if not self.transfers.enabled:
            return await self.workers.worker(task).recv_tensor(step_id, key)
        begin = time.time_ns()
        value, is_dead = await self.workers.worker(task).recv_tensor(step_id, key)
        self.transfers.note(step_id, key, begin, value)
        return value, is_dead

    async def recv_tensor(self, step_id: int, key: str) -> tuple[Value, bool]:
        self._check_key(key)
        return await self._receive(self._steps.get(step_id, time.monotonic()), key)

    async def _receive(self, rendezvous: Rendezvous, key: str) -> tuple[Value, bool]:
        """Waits for a tensor of a step of this task."""
        loop, thread = asyncio.get_running_loop(), threading.get_ident()
        future: asyncio.Future[tuple[Value, bool]] = loop.create_future()

        def settle(value: Value, is_dead: bool, error: errors.OpError | None) -> None:
            if future.done():
                return
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result((value, is_dead))

        def done(value: Any, is_dead: bool, error: errors.OpError | None) -> None:
            if threading.get_ident() == thread:
                settle(value, is_dead, error)
            else:
                loop.call_soon_threadsafe(settle, value, is_dead, error)

        rendezvous.recv(key, done)
        try:
            return await future
        except asyncio.CancelledError:
            rendezvous.cancel_recv(key, done)
            raise

    def _check_key(self, key: str) -> None:
        """Raises InvalidArgumentError for a device of another task, AbortedError for an earlier life of this one."""
        parsed = parse_key(key)
        incarnation = self._incarnations.get(parsed.send_device)
        for guest in self.guests if incarnation is None else ():
            incarnation = incarnation or guest._incarnations.get(parsed.send_device)
        if incarnation is None:
            raise errors.InvalidArgumentError(
                None,
                None,
                f"{self.task} was asked for a tensor of {parsed.send_device}; its devices are "
                f"{', '.join(self._incarnations)}. The key was {key!r}.",
            )
        if incarnation != parsed.send_incarnation:
            raise errors.AbortedError(
                None,
                None,
                f"RecvTensor expects a different device incarnation: {parsed.send_incarnation} vs. {incarnation}. "
                f'Your worker job ("{self.task}") was probably restarted. '
                "Check your worker job for the reason why it was restarted.",
            )

    async def cleanup_graph(self, step_id: int) -> None:
        self._steps.finish(step_id)

    def finish_step(self, step_id: int) -> None:
        """`cleanup_graph` for callers that cannot wait."""
        self._steps.finish(step_id)

    async def cleanup_all(self, containers: Sequence[str]) -> None:
        self.resources.clear(containers)

    # -- life --------------------------------------------------------------------------------------------------------

    @property
    def incarnation(self) -> int:
        """CPU:0's incarnation, which stands for the task's."""
        return self.devices[0].incarnation

    @property
    def steps(self) -> int:
        """Steps that this worker knows, running or not cleaned up yet."""
        return len(self._steps)

    @property
    def running(self) -> int:
        """Partitions that run here now."""
        return self._running

    def sweep(self) -> int:
        """Forgets steps that nobody cleaned up; returns how many. The server calls it now and then."""
        return self._steps.sweep(time.monotonic())

    def refuse(self, error: errors.OpError) -> None:
        """From now on new work gets `error`. First step of stopping."""
        self._refusal = error

    async def drained(self) -> None:
        """Returns once no partition runs here."""
        if self._running:
            future = asyncio.get_running_loop().create_future()
            self._drained.add(future)
            await future

    def _tell_drained(self) -> None:
        for future in self._drained:
            if not future.done():
                future.set_result(None)
        self._drained.clear()

    def abort_steps(self, error: errors.OpError) -> None:
        """Ends every step on this task with `error`."""
        for guest in self.guests:
            guest.abort_steps(error)
        for session in self._sessions:
            for running in session.running:
                if running.io is not None:
                    running.io.stop.append(True)
        self._steps.abort_all(error)

    def close(self) -> None:
        """Gives the pool's threads back; does not wait for a kernel that still runs."""
        self.pool.close()
        self._fusion.close(timeout=0)
        limit_blas_threads(self, 0)

    def _check_open(self) -> None:
        if self._refusal is not None:
            raise self._refusal


def _cancel_steps(session: WorkerSession, text: str) -> None:
    for running in list(session.running):
        running.cancel(errors.CancelledError(None, None, text))
