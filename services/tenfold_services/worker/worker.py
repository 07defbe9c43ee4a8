"""One task's worker: interfaces.WorkerInterface in this process, what waits put over graph_manager.py's runs.

Called by the master of the same task directly and by rpc/worker_service.py for other tasks. Everything runs on the
event loop of its server; long programs and compilation run in a bounded pool. In TensorFlow: worker.cc, session_mgr.cc.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from tenfold_compiler.node_kernels import Target
from tenfold_compiler.part.graph_sizes import is_small
from tenfold_core import errors, script_functions, telemetry
from tenfold_core.cluster_spec import addresses_of
from tenfold_core.device import task_name
from tenfold_core.memory_limits import check_room
from tenfold_core.op_gradients import no_gradients
from tenfold_kernels.fusion.compiler import NO_FUSION, FusionCompiler
from tenfold_kernels.gpus import ALL_GPUS
from tenfold_kernels.threads import limit_blas_threads

from ..cluster import ClusterWorkers
from ..limits import DEFAULT_LIMITS, Limits
from ..session_cluster import renamed
from .arrivals import receive, settle
from .devices import local_devices
from .graph_manager import GraphManager
from .partial_runs import PartialRun
from .pools import beside, pools_of
from .program_loader import ProgramLoader

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Future

    from tenfold_core.op_gradients import OpGradients
    from tenfold_kernels.fusion.compiler import FusionOptions
    from tenfold_kernels.gpus import GpuOptions
    from tenfold_protos.cluster_pb2 import ClusterDef
    from tenfold_protos.config_pb2 import ConfigProto
    from tenfold_protos.device_attributes_pb2 import DeviceAttributes
    from tenfold_protos.graph_pb2 import GraphDef
    from tenfold_protos.tensorflow_server_pb2 import ServerDef

    from ..interfaces import Life, RunGraphResult, RunRequest, Value
    from .loaded_program import LoadedProgram
    from .pools import MakePools
    from .sessions import WorkerSession


class Worker(GraphManager):
    """The worker service of `task` ("/job:ps/replica:0/task:0"). Made once per server, before its loop serves."""

    def __init__(
        self,
        task: str,
        *,
        limits: Limits = DEFAULT_LIMITS,
        fusion: FusionOptions = NO_FUSION,
        cpus: int = 1,
        gpus: GpuOptions = ALL_GPUS,
        gradients: OpGradients = no_gradients,
        pools: MakePools = pools_of,
    ) -> None:
        super().__init__(task, limits, local_devices(task, cpus, gpus), pools)
        #: Whether a session's intra_op_parallelism_threads counts, or only the server's.
        self.sessions_set_threads = False
        #: Fuses programs that are hot.
        self._fusion = FusionCompiler(fusion)
        self._gradients = gradients
        self._know_nobody()

    def _know_nobody(self) -> None:
        """What each name of this worker knows of masters and guests, before any came."""
        #: Those of the guests that other tasks' masters made, with what ends them, by session handle.
        self._guest_of: dict[str, tuple[Worker, ClusterWorkers]] = {}
        #: Master → what its former life still computes; a session of its replacement waits for that.
        self._of_former: dict[str, list[Future[Any]]] = {}
        #: Told the task and the incarnation of each master that opens a session in our own cluster; a guest's is
        #: another one, whatever the tasks are called there.
        self.on_master: Callable[[str, int], None] = lambda task, incarnation: None

    def join(self, cluster: ClusterDef, task: str) -> tuple[Self, ClusterWorkers]:
        """This worker under the name `task` of another cluster, for which it answers until `leave` is called, and the
        tasks of that cluster."""
        guest = copy(self)
        guest._begin_as(task, renamed(self.devices, task))
        guest._know_nobody()
        tasks = guest.workers = ClusterWorkers(task, guest, addresses_of(cluster), self.limits, seen_as=renamed)
        self.guests.append(guest)
        return guest, tasks

    async def leave(self, guest: Worker, tasks: ClusterWorkers) -> None:
        """Undoes `join`. Bounded; raises nothing."""
        if guest in self.guests:
            self.guests.remove(guest)
        await tasks.close()

    async def get_status(self, timeout: float | None = None) -> list[DeviceAttributes]:  # noqa: ASYNC109 - passed on to the RPC as its deadline
        return self.devices

    # -- sessions ------------------------------------------------------------------------------------------------------

    async def create_worker_session(
        self, session_handle: str, server_def: ServerDef | None, isolate: bool, master: Life
    ) -> None:
        self._check_open()
        master_task, master_incarnation = master
        self._sessions.lives.check(master_task, master_incarnation)
        for handle, (stale_guest, _) in list(self._guest_of.items()):
            if stale_guest._sessions.stale(master_task, master_incarnation):
                await self.delete_worker_session(handle)
        if server_def is not None and server_def.cluster.job:
            guest = self._create_guest(session_handle, server_def)
            await guest.create_worker_session(session_handle, None, isolate, master)
            return
        # the message has it signed, devices do not
        self.on_master(master_task, master_incarnation % 2**64)
        stale = self._sessions.create(session_handle, isolate, master_task, master_incarnation)
        for session in stale:
            _cancel_steps(session, f"Session {session.handle} ended: its master {master_task} restarted.")
        computing = [job for session in stale for job in self.pool.running(session.handle)]
        computing += [job for job in self._of_former.pop(master_task, ()) if not job.done()]
        if computing:
            self._of_former[master_task] = computing
            await self._outlive(computing, session_handle, master_task)
            self._of_former.pop(master_task, None)

    async def _outlive(self, computing: list[Future[Any]], session_handle: str, master_task: str) -> None:
        """Waits for kernels of a master's former life: none of its updates comes after its replacement's first step.

        Raises UnavailableError, the new session is gone then, if they compute for longer than a set-up call may take.
        """
        ends = [asyncio.wrap_future(job) for job in computing]
        _, left = await asyncio.wait(ends, timeout=self.limits.cleanup_seconds)
        if left:
            self._sessions.remove(session_handle)
            raise errors.unavailable(
                f"{self.task} still computes {len(left)} kernels of {master_task}'s former process after "
                f"{self.limits.cleanup_seconds:g} s; its replacement has to wait for their end. Try again."
            )

    async def delete_worker_session(self, session_handle: str) -> None:
        found = self._guest_of.pop(session_handle, None)
        if found is not None:
            await found[0].delete_worker_session(session_handle)
            await self.leave(*found)
            return
        session = self._sessions.remove(session_handle)
        if session is not None:
            _cancel_steps(session, "Step was cancelled by an explicit call to `Session::Close()`.")
            if session.resources is not self.resources and (work := session.resources.work()):
                # iterators close their files, and take away what they have not finished; a task that goes does not
                with contextlib.suppress(errors.UnavailableError):
                    await self.file_pool.run(session_handle, partial(_end_all, work))

    def _guest(self, session_handle: str) -> Worker:
        """The worker of a session: this one, or a guest."""
        return self._guest_of.get(session_handle, (self,))[0]

    def _create_guest(self, session_handle: str, server_def: ServerDef) -> Worker:
        if session_handle in self._guest_of:
            raise errors.already_exists(f"Session {session_handle} exists already on {self.task}.")
        if (count := len(self.guests)) >= self.limits.sessions:
            raise self.limits.reached("sessions", f"{self.task} has {count} sessions with their own clusters")
        worker, tasks = self.join(server_def.cluster, task_name(server_def.job_name, server_def.task_index))
        self._guest_of[session_handle] = worker, tasks
        return worker

    # -- graphs --------------------------------------------------------------------------------------------------------

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
        pool = self.pool if is_small(graph_def) else self.graph_pool
        target = Target(
            self.task,
            session.resources,
            self.limits.nodes_per_graph,
            stateful,
            is_own_session=script_functions.is_own_session(session.handle),
            with_files=partial(beside, pool=self.file_pool, owner=session.handle),
            fuses=self._fusion.options.mode != "off",
            most_turns=self.limits.loop_turns,
        )
        loader = ProgramLoader(target, self.limits, self._fusion, self._gradients)
        return session.add_graph(await pool.run(session.handle, lambda: loader.load(graph_def)), self.limits)

    def program(self, session_handle: str, graph_handle: str) -> LoadedProgram:
        """What `register_graph` made, for a master of this process. Raises AbortedError for an unknown handle."""
        return self._guest(session_handle)._sessions.get(session_handle).graph(graph_handle)

    async def deregister_graph(self, session_handle: str, graph_handle: str) -> None:
        session = self._guest(session_handle)._sessions.get(session_handle)
        session.graph(graph_handle)
        del session.graphs[graph_handle]

    # -- steps ---------------------------------------------------------------------------------------------------------

    async def run_graph(self, request: RunRequest) -> RunGraphResult:
        guest, options = self._guest(request.session_handle), request.options
        if guest is not self:
            return await guest.run_graph(request)
        if options.is_partial:
            session, program, rendezvous = self._begin(request)
            if rendezvous.error is not None:
                raise rendezvous.error
            if rendezvous.partial is None:
                rendezvous.partial = PartialRun(self, session, program, rendezvous)
            return await rendezvous.partial.call(request.feeds, request.fetches, options.is_last_partial_run)
        future: asyncio.Future[RunGraphResult] = asyncio.get_running_loop().create_future()
        run = self.start_run(request, partial(settle, future))
        try:
            result = future.result() if future.done() else await future
        except asyncio.CancelledError:
            run.cancel(errors.cancelled(f"Step {request.step_id} was cancelled on {self.task}."))
            raise
        if options.record_partition_graphs:
            program = self.program(request.session_handle, request.graph_handle)
            result.partition_graphs.append(program.compiled.as_graph_def())
        return result

    async def recv_tensor(self, step_id: int, key: str) -> tuple[Value, bool]:
        spans = telemetry.NO_SPAN
        if telemetry.tracer is not None:
            shown = key[: telemetry.CHARACTERS]
            spans = telemetry.span("worker RecvTensor", task=self.task, step=f"{step_id:x}", key=shown)
        with spans:
            self._check_key(key)
            return await receive(self.steps.get(step_id, time.monotonic()), key)

    async def cleanup_graph(self, step_id: int) -> None:
        self.steps.finish(step_id)

    async def cleanup_all(self, containers: Sequence[str]) -> None:
        self.resources.clear(containers)

    def close(self) -> None:
        """Gives the pool's threads back; does not wait for a kernel that still runs."""
        for pool in self.pools:
            pool.close()
        self._fusion.close(timeout=0)
        limit_blas_threads(self, 0)


def _end_all(work: Sequence[Callable[[], None]]) -> None:
    for end in work:
        end()


def _cancel_steps(session: WorkerSession, text: str) -> None:
    for running in list(session.running):
        running.cancel(errors.cancelled(text))
