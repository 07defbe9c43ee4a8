"""One task of a cluster: its worker, its master, its listener. Start and stop are bounded, stopping is numbered.

background.py puts it on a thread for blocking callers (tf.train.Server); the command line runs it on its own loop. In
TensorFlow: grpc_server_lib.cc. Without a listener (bind=None) grpc is not even imported.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
from typing import TYPE_CHECKING, Any

from tenfold.framework import errors
from tenfold_protos.config_pb2 import ConfigProto

from .cluster import ClusterLike, ClusterWorkers, addresses_of, split_address, task_name
from .interfaces import MasterEnv, MasterInterface
from .limits import DEFAULT_LIMITS, Limits
from .worker.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from types import TracebackType

_log = logging.getLogger(__name__)

#: The spelling of a loopback host that is not an address.
_LOOPBACK_NAMES = frozenset({"localhost", "localhost.localdomain", "ip6-localhost"})
_SWEEP_SECONDS = 30.0


class TaskServer:
    """The server of /job:`job`/task:`index`. Use `async with`, or `start` and `stop`, on one event loop.

    `cluster` may be incomplete, also lack this task, and be replaced later by `update_cluster`. `bind` is "host:port";
    port 0 means this task's port in the cluster, or any free one; None means no listener. Raises
    InvalidArgumentError for a malformed cluster or address and for a protocol that is not served, PermissionDeniedError
    for a listener beyond loopback without `insecure`, because a graph is a program and whoever reaches the port may
    run it.
    """

    def __init__(
        self,
        cluster: ClusterLike,
        job: str,
        index: int,
        *,
        bind: str | None = "127.0.0.1:0",
        config: ConfigProto | None = None,
        protocol: str = "grpc",
        insecure: bool = False,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        if protocol != "grpc":
            raise errors.InvalidArgumentError(None, None, f"The protocol {protocol!r} is not served; 'grpc' is.")
        self.job, self.index, self.task = job, index, task_name(job, index)
        self._limits = limits
        self._config = config if config is not None else ConfigProto()
        self._addresses = addresses_of(cluster)
        self._host, self._port = self._where_to_listen(bind, insecure)
        self._master: MasterInterface | None = None
        self._worker: Worker | None = None
        self._workers: ClusterWorkers | None = None
        self._listener: Any | None = None
        self._janitor: asyncio.Task[None] | None = None
        #: Set once `stop` has done all its steps.
        self._stopped = asyncio.Event()
        self._stopping = False

    def _where_to_listen(self, bind: str | None, insecure: bool) -> tuple[str | None, int]:
        if bind is None:
            return None, 0
        host, port = split_address(bind, "the listener")
        mine = self._addresses.get(self.job, {}).get(self.index, "")
        if not port and mine:
            port = split_address(mine, self.task)[1]
        if not insecure and not is_loopback(host):
            raise errors.PermissionDeniedError(
                None,
                None,
                f"{self.task} refuses to listen on {host}:{port} without protection: whoever reaches that port may "
                "run programs here. Listen on 127.0.0.1, or pass insecure=True (TENFOLD_INSECURE=1) on a network you "
                "trust.",
            )
        return host, port

    # -- what there is -----------------------------------------------------------------------------------------------

    @property
    def port(self) -> int:
        """The port that is listened on; 0 without a listener or before `start`."""
        return self._port if self._listener is not None else 0

    @property
    def target(self) -> str:
        """What a session of this machine connects to, "grpc://localhost:PORT"; "" without a listener."""
        return f"grpc://localhost:{self._port}" if self._host is not None else ""

    @property
    def master(self) -> MasterInterface:
        """Raises FailedPreconditionError before `start`."""
        if self._master is None:
            raise self._not_started()
        return self._master

    @property
    def worker(self) -> Worker:
        """Raises FailedPreconditionError before `start`."""
        if self._worker is None:
            raise self._not_started()
        return self._worker

    @property
    def workers(self) -> ClusterWorkers:
        """The cluster as this task sees it. Raises FailedPreconditionError before `start`."""
        if self._workers is None:
            raise self._not_started()
        return self._workers

    def update_cluster(self, cluster: ClusterLike) -> None:
        """Takes over a new cluster; this task keeps its place in it. Calls to tasks that moved or left end."""
        self._addresses = self._with_this_task(addresses_of(cluster))
        if self._workers is not None:
            self._workers.update(self._addresses)

    # -- start and stop ----------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Opens the port and serves. Raises UnknownError saying why the port cannot be had. Once only."""
        if self._worker is not None or self._stopping:
            raise errors.FailedPreconditionError(None, None, f"The server of {self.task} was started before.")
        from .master.master import Master

        worker = Worker(self.task, limits=self._limits)
        workers = ClusterWorkers(self.task, worker, self._addresses, self._limits)
        worker.workers = workers
        env = MasterEnv(
            task=self.task,
            workers=workers,
            local_worker=worker,
            default_config=self._config,
            cluster=lambda: workers.addresses,
        )
        master: MasterInterface = Master(env)
        try:
            if self._host is not None:
                await self._listen(master, worker)
        except BaseException:
            worker.close()
            raise
        self._worker, self._workers, self._master = worker, workers, master
        self._addresses = self._with_this_task(self._addresses)
        workers.update(self._addresses)
        self._janitor = asyncio.create_task(self._sweep(), name=f"sweep:{self.task}")

    async def stop(self, grace: float = 0.0) -> None:
        """Ends the server: running steps get `grace` seconds. Returns within `grace` + `limits.stop_seconds`.

        A second caller waits for the first one. Never raises.
        """
        if self._stopping:
            await self._stopped.wait()
            return
        self._stopping = True
        try:
            if self._worker is not None:
                await self._stop_in_steps(grace)
        finally:
            self._stopped.set()

    async def _stop_in_steps(self, grace: float) -> None:
        gone = errors.UnavailableError(None, None, f"{self.task} is shutting down.")
        # 1 refuse new work
        self.worker.refuse(gone)
        if self._janitor is not None:
            self._janitor.cancel()
        # 2 running steps get their grace
        if grace > 0:
            await self._bounded("running steps", self.worker.drained(), grace)
        # 3 end what still runs: sessions of this master, steps of this worker
        bound = self._limits.stop_seconds / 3
        await self._bounded("the master's sessions", self.master.stop(), bound)
        self.worker.abort_steps(gone)
        # 4 close the listener; calls that still run are cancelled
        if self._listener is not None:
            await self._bounded("the listener", self._listener.stop(0.1), bound)
        # 5 close connections and threads
        await self._bounded("connections", self.workers.close(), bound)
        self.worker.close()

    async def _bounded(self, what: str, work: Coroutine[Any, Any, Any], seconds: float) -> None:
        """One step of stopping. A step that takes too long or fails is logged; the next one comes all the same."""
        try:
            async with asyncio.timeout(seconds):
                await work
        except TimeoutError:
            _log.warning("%s stops: %s did not end within %g s", self.task, what, seconds)
        except Exception:
            _log.exception("%s stops: %s failed to end", self.task, what)

    async def wait_stopped(self) -> None:
        """Returns once the server has stopped."""
        await self._stopped.wait()

    async def __aenter__(self) -> TaskServer:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    # -- parts -------------------------------------------------------------------------------------------------------

    async def _listen(self, master: MasterInterface, worker: Worker) -> None:
        from .rpc.channels import make_server
        from .rpc.master_service import master_service
        from .rpc.worker_service import worker_service

        listener = make_server(self._limits)

        def where() -> str:
            return f"{self.task} at {self._host}:{self._port}"

        listener.add_generic_rpc_handlers(
            (master_service(master, self.task, where), worker_service(worker, where)),
        )
        try:
            port = listener.add_insecure_port(f"{self._host}:{self._port}")
        except RuntimeError as error:
            port, why = 0, str(error)
        else:
            why = "gRPC does not say why"
        if not port:
            raise errors.UnknownError(
                None,
                None,
                f"Could not start gRPC server: {self.task} cannot listen on {self._host}:{self._port}: "
                f"{_why_not(self._host or '', self._port) or why}.",
            )
        self._port = port
        await listener.start()
        self._listener = listener

    def _with_this_task(self, addresses: dict[str, dict[int, str]]) -> dict[str, dict[int, str]]:
        """The cluster with this task in it, at the port that is really open."""
        mine = addresses.get(self.job, {}).get(self.index, "")
        if not mine or mine.endswith(":0"):
            host = mine.rpartition(":")[0] or ("localhost" if is_loopback(self._host or "") else socket.gethostname())
            mine = f"{host}:{self._port}" if self._listener is not None else mine
        return {**addresses, self.job: {**addresses.get(self.job, {}), self.index: mine}}

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(_SWEEP_SECONDS)
            forgotten = self.worker.sweep()
            if forgotten:
                _log.info("%s forgot %d steps that nobody cleaned up", self.task, forgotten)

    def _not_started(self) -> errors.OpError:
        return errors.FailedPreconditionError(None, None, f"The server of {self.task} was not started.")


def is_loopback(host: str) -> bool:
    """True for names and addresses that only this machine can reach. Never asks DNS."""
    if host.lower() in _LOOPBACK_NAMES:
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _why_not(host: str, port: int) -> str:
    """Why a port cannot be listened on, in the system's words; "" if it can."""
    family: Any = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.bind((host.strip("[]"), port))
            probe.listen(1)
    except OSError as error:
        return (error.strerror or str(error)).lower()
    return ""
