"""One task's worker: devices, sessions, registered graphs, steps. interfaces.WorkerInterface in this process.

Called by the master of the same task directly and by rpc/worker_service.py for everybody else. Everything runs on the
event loop of its server; long programs and compilation run in a bounded pool. In TensorFlow: worker.cc, graph_mgr.cc.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from tenfold.framework import errors
from tenfold_kernels.state import ResourceManager

from ..interfaces import DEFAULT_EXEC_OPTIONS, ExecOptions, RunGraphResult, Value, WorkerCache
from ..limits import DEFAULT_LIMITS, Limits
from .devices import local_devices
from .driver import StepDriver
from .execution import StepIO, owned
from .program import Program, compile_program
from .rendezvous import Rendezvous, StepTable, parse_key
from .sessions import SessionTable, WorkerSession

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tenfold_protos.config_pb2 import ConfigProto
    from tenfold_protos.device_attributes_pb2 import DeviceAttributes
    from tenfold_protos.graph_pb2 import GraphDef
    from tenfold_protos.tensorflow_server_pb2 import ServerDef


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
    ) -> None:
        self.task = task
        #: Who can be asked for tensors; set by the server once there is a cluster.
        self.workers = workers
        self.devices = local_devices(task)
        #: Shared by all sessions that are not isolated.
        self.resources = resources if resources is not None else ResourceManager()
        self._limits = limits
        self._incarnations = {device.name: device.incarnation for device in self.devices}
        self._sessions = SessionTable(task, self.resources, limits)
        self._steps = StepTable(limits)
        self._pool = ThreadPoolExecutor(limits.pool_threads, thread_name_prefix=f"tenfold{task.replace('/', '-')}")
        #: Set once: why no new work is taken.
        self._refusal: errors.OpError | None = None
        #: Partitions that run now, and who waits for there being none.
        self._running = 0
        self._drained: set[asyncio.Future[None]] = set()

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
        for stale in self._sessions.create(session_handle, isolate, master_task, master_incarnation):
            _cancel_steps(stale, f"Session {stale.handle} ended: its master {master_task} restarted.")

    async def delete_worker_session(self, session_handle: str) -> None:
        session = self._sessions.remove(session_handle)
        if session is not None:
            _cancel_steps(session, "Step was cancelled by an explicit call to `Session::Close()`.")

    async def register_graph(self, session_handle: str, graph_def: GraphDef, config: ConfigProto) -> str:
        self._check_open()
        session = self._sessions.get(session_handle)
        stateful = session.stateful if session.handle else None
        program = await asyncio.get_running_loop().run_in_executor(
            self._pool, compile_program, graph_def, self.task, session.resources, self._limits, stateful
        )
        return session.add_graph(program, self._limits)

    async def deregister_graph(self, session_handle: str, graph_handle: str) -> None:
        session = self._sessions.get(session_handle)
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
        self._check_open()
        session = self._sessions.get(session_handle)
        program = session.graph(graph_handle)
        if options.is_partial:
            raise errors.UnimplementedError(None, None, f"{self.task} does not run partial steps (PartialRunSetup).")
        rendezvous = self._steps.get(step_id, time.monotonic())
        io = StepIO(feeds, rendezvous.send)
        running = _Running(rendezvous, io)
        session.running.add(running)
        rendezvous.runs += 1
        self._running += 1
        try:
            if rendezvous.error is not None:
                raise rendezvous.error
            return RunGraphResult(_select(await self._execute(program, rendezvous, io), fetches))
        except errors.OpError as error:
            if error.code == errors.INTERNAL:
                _log.error("Step %d on %s: %s", step_id, self.task, error.message, exc_info=error.__cause__ or error)
            # the first error of the step on this task is the one that everybody hears of
            rendezvous.abort(error)
            raise rendezvous.error or error from None
        except asyncio.CancelledError:
            rendezvous.abort(errors.CancelledError(None, None, f"Step {step_id} was cancelled on {self.task}."))
            raise
        except Exception as error:
            failure = errors.InternalError(None, None, f"{self.task}: {type(error).__name__}: {error}")
            rendezvous.abort(failure)
            raise failure from error
        finally:
            io.stop.append(True)
            rendezvous.runs -= 1
            session.running.discard(running)
            self._running -= 1
            if self._drained and not self._running:
                self._tell_drained()

    async def _execute(self, program: Program, rendezvous: Rendezvous, io: StepIO) -> dict[str, Value]:
        execution = program.start(io)
        if program.is_straight and StepDriver.runs_inline(program, self._limits):
            begin = time.perf_counter_ns()
            execution.advance()
            program.note_time(time.perf_counter_ns() - begin)
        else:
            driver = StepDriver(self.task, program, rendezvous, self._recv_remote, self._pool, self._limits)
            await driver.run(execution, io.stop)
        return execution.fetched()

    async def _recv_remote(self, task: str, step_id: int, key: str) -> tuple[Value, bool]:
        if self.workers is None:
            raise errors.InternalError(None, None, f"{self.task} knows no other task; {task} was asked for {key}.")
        return await self.workers.worker(task).recv_tensor(step_id, key)

    async def recv_tensor(self, step_id: int, key: str) -> tuple[Value, bool]:
        self._check_key(key)
        rendezvous = self._steps.get(step_id, time.monotonic())
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
        for session in self._sessions:
            for running in session.running:
                running.io.stop.append(True)
        self._steps.abort_all(error)

    def close(self) -> None:
        """Gives the pool's threads back; does not wait for a kernel that still runs."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _check_open(self) -> None:
        if self._refusal is not None:
            raise self._refusal


class _Running:
    """A step of a session while it runs."""

    __slots__ = ("io", "rendezvous")

    def __init__(self, rendezvous: Rendezvous, io: StepIO) -> None:
        self.rendezvous, self.io = rendezvous, io

    def cancel(self, error: errors.OpError) -> None:
        self.io.stop.append(True)
        self.rendezvous.abort(error)


def _cancel_steps(session: WorkerSession, text: str) -> None:
    for running in list(session.running):
        running.cancel(errors.CancelledError(None, None, text))


def _select(values: dict[str, Value], fetches: Sequence[str]) -> dict[str, Value]:
    """The fetches that were asked for, as the caller's own. Raises InvalidArgumentError for one that is not there."""
    if len(fetches) == len(values) and all(key in values for key in fetches):
        return values
    missing = [key for key in fetches if key not in values]
    if missing:
        raise errors.InvalidArgumentError(
            None, None, f"This graph has no fetch {missing[0]!r}; it has {', '.join(map(repr, values)) or 'none'}."
        )
    return {key: owned(values[key]) for key in fetches}
