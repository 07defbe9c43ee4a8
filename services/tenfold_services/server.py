"""One task of a cluster: its worker, its master, its listener. Start and stop are bounded, stopping is numbered.

background.py puts it on a thread for blocking callers (tf.train.Server); the command line runs it on its own loop. In
TensorFlow: grpc_server_lib.cc. Without a listener (bind=None) grpc is not even imported.
"""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from tenfold_core import errors, telemetry
from tenfold_core.access.credentials import AccessSettings
from tenfold_core.access.gate import Gate
from tenfold_core.access.task_tokens import TaskTokens, credentials_for
from tenfold_core.blas_env import thread_share
from tenfold_core.cluster_spec import Addresses, ClusterLike, addresses_of
from tenfold_core.device import task_name
from tenfold_core.graph_files import GraphFiles, use
from tenfold_core.hosts import address_to_dial, tasks_on_host, where_to_listen
from tenfold_core.memory_limits import limit_tensor, tensor_bytes_from_environment
from tenfold_core.op_gradients import no_gradients
from tenfold_core.open_files import Shortage, needed_by_task, raise_limit
from tenfold_kernels.fusion.compiler import FusionOptions
from tenfold_kernels.threads import limit_blas_threads
from tenfold_link.link_settings import LARGEST_PORT, LinkSettings
from tenfold_protos.config_pb2 import ConfigProto
from tenfold_services.http2.http2_settings import Http2Settings, transport_from_environment

from . import session_cluster
from .cluster import ClusterWorkers
from .finished import FinishedTasks
from .limits import Limits
from .master.caller_steps import CallerSteps
from .master.env import MasterEnv
from .master.limits import MasterLimits
from .master.master import Master
from .peers import ATTEMPTS, Peers
from .task_port import TaskPort, endpoints
from .why import task_answer
from .worker.devices import cpu_count, gpu_options
from .worker.pools import pools_of
from .worker.waits import wait_texts
from .worker.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from tenfold_core.op_gradients import OpGradients
    from tenfold_protos.cluster_pb2 import ClusterDef
    from tenfold_protos.why_pb2 import TaskAnswer

    from .rpc.grpc_worker import GrpcWorker
    from .worker.pools import MakePools
    from .worker.waits import StepRun

T = TypeVar("T")

_log = logging.getLogger(__name__)
_SWEEP_SECONDS = 30.0


class TaskServer:
    """The server of /job:`job`/task:`index`. Use `async with`, or `start` and `stop`, on one event loop.

    `cluster` may be incomplete, also lack this task, and be replaced later by `update_cluster`. `bind` is "host:port";
    port 0 means this task's port in the cluster, or any free one; None means no listener. Raises InvalidArgumentError
    for a malformed cluster or address and for a protocol that is not served, PermissionDeniedError for a listener
    beyond loopback without a token or `insecure`, because a graph is a program. `access` says which tokens are accepted
    and which is shown to other tasks; without a token only the same user of this machine is accepted, with `insecure`
    every process that reaches the port. `access`, `limits`, and `link`, which says how other Tenfold processes may be
    reached, are by default what the environment says. `gradients` makes the gradients of ops for graphs that ask for
    the gradient of a function; without, such graphs are refused. `files` is the folder below which graphs may use
    files, in the place of what `limits` say; it belongs to the process. `link_port` is where links over TCP come in, in
    the place of what `link` says; 0 is any free port. `pools` makes what its long programs, its large graphs and its
    files are worked on by.
    """

    def __init__(
        self,
        cluster: ClusterLike | None,
        job: str,
        index: int,
        *,
        bind: str | None = "127.0.0.1:0",
        config: ConfigProto | None = None,
        protocol: str = "grpc",
        insecure: bool = False,
        limits: Limits | None = None,
        link: LinkSettings | None = None,
        gradients: OpGradients = no_gradients,
        access: AccessSettings | None = None,
        files: str | None = None,
        link_port: int | None = None,
        pools: MakePools = pools_of,
    ) -> None:
        if protocol != "grpc":
            raise errors.invalid_argument(f"The protocol {protocol!r} is not served; 'grpc' is.")
        self.job, self.index, self.task = job, index, task_name(job, index)
        limits = limits if limits is not None else Limits.from_environment()
        self.limits, self._gradients = limits, gradients
        self._master_limits = MasterLimits.from_environment()
        self._config = config if config is not None else ConfigProto()
        self._addresses = addresses_of(cluster)
        self._master: Master | None = None
        self._worker: Worker | None = None
        self._workers: ClusterWorkers | None = None
        self._caller_steps: CallerSteps | None = None
        self._link_settings = link if link is not None else LinkSettings.from_environment()
        if link_port is not None:
            if not 0 <= link_port <= LARGEST_PORT:
                raise errors.invalid_argument(f"link_port is {link_port}; it may be 1 to {LARGEST_PORT}, or 0 for any.")
            self._link_settings = replace(self._link_settings, port=link_port)
        self._fusion, self._pools = FusionOptions.from_environment(), pools
        self._files = GraphFiles(limits.files if files is None else files, limits.file_bytes)
        self._tensor_bytes = limits.tensor_bytes or tensor_bytes_from_environment()
        access = access if access is not None else AccessSettings.from_environment()
        credentials = self._credentials = access.credentials()
        #: Tokens that this task alone accepts.
        self._own_tokens = TaskTokens(credentials.tokens, self.task)
        protected = insecure or len(credentials.tokens()) > 0 or credentials.certificates is not None
        host, port = where_to_listen(self.task, bind, self._addresses.get(job, {}).get(index, ""), protected)
        transport = transport_from_environment()
        http2 = Http2Settings.from_environment(limits.concurrent_rpcs)
        self._port: TaskPort | None = None
        #: Anyone who reaches the port is accepted.
        self.insecure = insecure and host is not None
        if host is not None:
            gate = Gate(self.task, credentials.tokens, open_to_all=insecure, own=self._own_tokens.current)
            self._port = TaskPort(
                self.task, host, port, limits, transport, http2, self._link_settings, gate, credentials
            )
        self._files_short = Shortage(self.task)
        self._janitor: asyncio.Task[None] | None = None
        #: Set once `stop` has done all its steps.
        self._stopped = asyncio.Event()
        self._stopping, self._why_stopping = False, "is shutting down"
        #: The tasks that ended in order.
        self.finished = FinishedTasks(self.task, lambda: self._addresses)
        #: What tells them to other tasks and asks for them; None without a listener.
        self.peers: Peers | None = None
        #: Stops the server once those that it serves have finished; see `end_with_workers`.
        self._ending: asyncio.Task[None] | None = None

    # -- what there is -----------------------------------------------------------------------------------------------

    @property
    def port(self) -> int:
        """The port that is listened on; 0 without a listener or before `start`."""
        return self._port.port if self._port is not None and self._port.is_open else 0

    @property
    def target(self) -> str:
        """What a session of this machine connects to, "grpc://localhost:PORT"; "" without a listener."""
        return f"grpc://localhost:{self._port.port}" if self._port is not None else ""

    @property
    def master(self) -> Master:
        """Raises FailedPreconditionError before `start`."""
        return self._started(self._master)

    @property
    def worker(self) -> Worker:
        """Raises FailedPreconditionError before `start`."""
        return self._started(self._worker)

    @property
    def workers(self) -> ClusterWorkers:
        """The cluster as this task sees it. Raises FailedPreconditionError before `start`."""
        return self._started(self._workers)

    @property
    def caller_steps(self) -> CallerSteps:
        """Steps that callers of this process may run by themselves. Raises FailedPreconditionError before `start`."""
        return self._started(self._caller_steps)

    def not_ready(self) -> str:
        """Why this task takes no new work, as a health check asks; "" where it does. Never blocks."""
        return f"{self.task} {self._why_stopping}." if self._stopping else ""

    def hold_lease(self, lease: str) -> None:
        """The control service that gave this lease, or is asked for it, is accepted. Never blocks; any thread."""
        self._own_tokens.hold(lease)

    def update_cluster(self, cluster: ClusterLike | None) -> None:
        """Takes over a new cluster; this task keeps its place in it. Calls to tasks that moved or left end."""
        self._addresses = self._with_this_task(addresses_of(cluster))
        if self._workers is not None:
            self._take_over_cluster(self._workers)

    def _take_over_cluster(self, workers: ClusterWorkers) -> None:
        self._limit_threads()
        if self._port is not None:
            # warns where this process may have fewer sockets open than the cluster asks for
            tasks = sum(map(len, self._addresses.values()))
            self._files_short.look(needed_by_task(tasks), f"a cluster of {tasks} task{'s' * (tasks != 1)}")
        workers.update(self._addresses)
        if self.peers is not None:
            self.peers.greet(workers.tasks())

    def _limit_threads(self) -> None:
        """The BLAS gets the threads that the configuration says, else this task's share of the machine's cores."""
        count = self._config.intra_op_parallelism_threads
        if not count:
            tasks = tasks_on_host(self._addresses, self.job, self.index)
            count = int(thread_share(tasks).get("OPENBLAS_NUM_THREADS", 0)) if tasks > 1 else 0
        limit_blas_threads(self, count)

    # -- start and stop ----------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Opens the port and serves. Raises UnknownError saying why the port cannot be had. Once only."""
        if self._worker is not None or self._stopping:
            raise errors.failed_precondition(f"The server of {self.task} was started before.")
        if self._port is not None:
            raise_limit()
        if self._tensor_bytes:
            limit_tensor(self._tensor_bytes)
        use(self._files)
        limits = self.limits
        if self._port is None:
            # every session is the program's own
            limits = replace(limits, state_bytes_per_session=limits.most_state_bytes)
        telemetry.start("tenfold-task", {"tenfold.task": self.task})
        worker = Worker(
            self.task,
            limits=limits,
            fusion=self._fusion,
            cpus=cpu_count(self._config),
            gpus=gpu_options(self._config),
            gradients=self._gradients,
            pools=self._pools,
        )
        # A server without a listener is the process's own: its sessions decide, as TensorFlow's DirectSession does.
        worker.sessions_set_threads = self._port is None
        lines = None
        if self._port is not None and self._link_settings.mode != "off":
            from tenfold_services.master.step_links import StepLinkPool

            lines = StepLinkPool(asyncio.get_running_loop(), self._link_settings, self._credentials)
        steps = CallerSteps(self.task, lines)
        workers = ClusterWorkers(self.task, worker, self._addresses, self.limits, connect=self._connect)
        worker.workers = workers
        worker.on_master = self.finished.answered
        peers = None
        if self._port is not None:
            seconds = self.limits.finished_seconds
            peers = Peers(self.finished, worker.incarnation, workers.address, seconds, self._credentials)
        env = MasterEnv(
            task=self.task,
            workers=workers,
            default_config=self._config,
            caller_steps=steps,
            graph_pool=worker.graph_pool,
            join=partial(self._join, worker),
            finished=self.finished,
            ask_finished=None if peers is None else peers.ask,
            gradients=self._gradients,
        )
        master = Master(env, limits=self._master_limits)
        self._worker, self._workers, self._master, self._caller_steps = worker, workers, master, steps
        try:
            if self._port is not None:
                await self._port.open(master, worker, self.finished, self.not_ready, self._waits_here, self.why)
        except BaseException:
            worker.close()
            self._worker = self._workers = self._master = self._caller_steps = None
            raise
        if self.insecure:
            assert self._port is not None
            text = "%s is insecure: anyone who reaches %s:%d may run code here."
            _log.warning(text, self.task, self._port.host, self._port.port)
        self._addresses, self.peers = self._with_this_task(self._addresses), peers
        self._take_over_cluster(workers)
        self._janitor = asyncio.create_task(self._sweep(), name=f"sweep:{self.task}")

    def _join(self, worker: Worker, cluster: ClusterDef, task: str) -> MasterEnv:
        """What a session's master needs in the cluster that the session brings."""
        guest, tasks = worker.join(cluster, task)
        return MasterEnv(
            task=task,
            workers=tasks,
            default_config=self._config,
            graph_pool=worker.graph_pool,
            server_def=partial(session_cluster.server_def, cluster),
            leave=partial(worker.leave, guest, tasks),
            gradients=self._gradients,
        )

    def end_with_workers(self, wanted: bool = True) -> None:
        """Lets the server stop by itself once the tasks that it serves have finished; see FinishedTasks.may_end.

        `wanted` False takes that back, unless it stops already.
        """

        def look() -> None:
            if self._ending is None and self.finished.may_end():
                _log.info("%s ends: the tasks that it serves have finished", self.task)
                grace = self.limits.last_steps_seconds
                self._ending = asyncio.create_task(self.stop(grace, finished=True), name=f"end:{self.task}")

        self.finished.on_change = look if wanted else lambda: None
        if wanted:
            look()

    async def stop(self, grace: float = 0.0, *, finished: bool = False, why: str = "is shutting down") -> None:
        """Ends the server: running steps get `grace` seconds. Returns within `grace` + twice `limits.stop_seconds`.

        `finished`: the task's work is done, and the others are told so; else they wait for it to come back. A second
        caller waits for the first one. `why` stands in what those are told who want something: "is being drained: …".
        Never raises.
        """
        if self._stopping:
            await self._stopped.wait()
            return
        self._stopping, self._why_stopping = True, why
        try:
            if self._worker is not None:
                await self._stop_in_steps(grace, finished)
        finally:
            limit_blas_threads(self, 0)
            self._stopped.set()

    async def _stop_in_steps(self, grace: float, finished: bool) -> None:
        gone = errors.unavailable(self.not_ready())
        # 1 refuse new work
        self.worker.refuse(gone)
        self.caller_steps.refuse()
        if self._janitor is not None:
            self._janitor.cancel()
        # 2 running steps get their grace
        if grace > 0:
            await self._bounded("running steps", self._drained(), grace)
        # 3 end what still runs: sessions of this master, steps of this worker
        bound = self.limits.stop_seconds / 3
        await self._bounded("the master's sessions", self.master.stop(), bound)
        self.worker.abort_steps(gone)
        # 4 tell the others, as long as they can ask back
        if self.peers is not None:
            if finished:
                told = self.peers.tell(self.workers.tasks())
                seconds = (ATTEMPTS + 1) * self.limits.finished_seconds
                await self._bounded("telling the others", told, seconds)
            await self._bounded("news for the others", self.peers.close(), self.limits.finished_seconds)
        # 5 close the listeners; calls that still run are cancelled
        if self._port is not None:
            await self._bounded("links", self._port.close_links(f"{self.task} is shutting down"), bound)
            await self._bounded("the listener", self._port.close(), bound)
        # 6 close connections and threads
        if self.caller_steps.lines is not None:
            self.caller_steps.lines.close()
        await self._bounded("connections", self.workers.close(), bound)
        self.worker.close()

    async def _drained(self) -> None:
        await self.worker.drained()
        await self.caller_steps.drained()

    async def _bounded(self, what: str, work: Coroutine[Any, Any, Any], seconds: float) -> None:
        """One step of stopping. A step that takes too long or fails is logged; the next one still comes."""
        try:
            async with asyncio.timeout(seconds):
                await work
        except TimeoutError:
            _log.warning("%s stops: %s did not end within %g s", self.task, what, seconds)
        except Exception:
            _log.exception("%s stops: %s failed to end", self.task, what)

    @property
    def ended_with_workers(self) -> bool:
        """Whether it stops, or has stopped, because the tasks that it serves have finished."""
        return self._ending is not None

    async def wait_stopped(self) -> None:
        """Returns once the server has stopped."""
        await self._stopped.wait()

    async def __aenter__(self) -> TaskServer:
        await self.start()
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.stop()

    # -- parts -------------------------------------------------------------------------------------------------------

    def _connect(self, task: str, address: str) -> GrpcWorker:
        from tenfold_services.rpc.link_worker import LinkWorker

        return LinkWorker(
            task,
            address,
            self.limits,
            own=(self.task, self.worker.incarnation),
            on_link=endpoints(self.master, self.worker),
            settings=self._link_settings,
            deliver=self.worker.pushed,
            credentials=credentials_for(self._credentials, task),
        )

    def _waits_here(self, session_handle: str) -> list[str]:
        """What a session's steps wait for on this task. Any thread."""
        # nothing of the worker's session without a handle, which several masters share
        return wait_texts(each for each in self._step_runs() if each.session == session_handle != "")

    def why(self, stacks: bool = True) -> TaskAnswer:
        """What this task knows of why nothing goes on; see why.py. Any thread. Raises FailedPreconditionError before
        `start`."""
        return task_answer(self.task, self.worker, self.master, self._step_runs(), stacks)

    def _step_runs(self) -> list[StepRun]:
        return [*self.caller_steps.step_runs(), *self.worker.step_runs()]

    async def step_waits(self, session_handle: str) -> list[str]:
        """What a session's steps wait for, on any task of the cluster. Bounded; raises nothing."""
        from .rpc.examine_service import waits_everywhere

        others = self.master.other_tasks() if self._port is not None else {}
        return await waits_everywhere(session_handle, self._waits_here(session_handle), others, self._credentials)

    def _with_this_task(self, addresses: Addresses) -> Addresses:
        """The cluster with this task in it, at the port that is really open."""
        mine = addresses.get(self.job, {}).get(self.index, "")
        if self._port is not None and self._port.is_open:
            mine = address_to_dial(mine, self._port.host, self._port.port)
        return {**addresses, self.job: {**addresses.get(self.job, {}), self.index: mine}}

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(_SWEEP_SECONDS)
            forgotten = self.worker.steps.sweep(time.monotonic())
            if forgotten:
                _log.info("%s forgot %d steps that were not cleaned up", self.task, forgotten)

    def _started(self, part: T | None) -> T:
        if part is None:
            raise errors.failed_precondition(f"The server of {self.task} was not started.")
        return part
