"""The cluster as this task sees it now, and a worker for every task in it. Implements interfaces.WorkerCache.

The spec may be incomplete when a server starts (a task without an address has not registered yet) and may change while
it runs. In TensorFlow: grpc_worker_cache.cc and grpc_channel.cc; there the spec is fixed.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeAlias

from tenfold_core import address as addresses
from tenfold_core import errors
from tenfold_core.cluster_spec import ClusterSpec, task_pairs
from tenfold_protos.cluster_pb2 import ClusterDef

from .interfaces import DEFAULT_EXEC_OPTIONS, ExecOptions, RunGraphResult, TaskName, Value, WorkerInterface
from .limits import DEFAULT_LIMITS, Limits

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tenfold_protos.config_pb2 import ConfigProto
    from tenfold_protos.device_attributes_pb2 import DeviceAttributes
    from tenfold_protos.graph_pb2 import GraphDef
    from tenfold_protos.tensorflow_server_pb2 import ServerDef

    from .rpc.grpc_worker import GrpcWorker

#: Job → index → "host:port"; "" where the task has not registered.
Addresses: TypeAlias = dict[str, dict[int, str]]
#: Makes the worker of another task: (task, address).
Connect: TypeAlias = "Callable[[TaskName, str], GrpcWorker]"
ClusterLike: TypeAlias = "Mapping[str, Any] | ClusterDef | ClusterSpec | None"


def addresses_of(cluster: ClusterLike) -> Addresses:
    """The addresses in a cluster of any form that ClusterSpec takes; unlike there, an address may be "".

    Raises InvalidArgumentError naming job and index of what is malformed.
    """
    if cluster is None:
        return {}
    if isinstance(cluster, ClusterSpec):
        cluster = cluster.as_cluster_def()
    jobs = [(job.name, dict(job.tasks)) for job in cluster.job] if isinstance(cluster, ClusterDef) else cluster.items()
    result: Addresses = {}
    for job, tasks in jobs:
        result[job] = {}
        for index, address in task_pairs(tasks) or ():
            if not isinstance(index, int) or index < 0 or not isinstance(address, str):
                raise errors.invalid_argument(
                    f'/job:{job} has the task {index!r}: {address!r}; an index and "host:port" are expected.'
                )
            if address:
                split_address(address, f"/job:{job}/task:{index}")
            result[job][index] = address
    return result


def split_address(address: str, what: str) -> tuple[str, int]:
    """("host", port) of "host:port". Raises InvalidArgumentError naming `what` and the address."""
    try:
        return addresses.split_address(address, least_port=0)
    except ValueError:
        raise errors.invalid_argument(
            f'The address {address!r} of {what} is not "host:port" with a port from 0 to 65535.'
        ) from None


def task_name(job: str, index: int) -> TaskName:
    """ "/job:ps/replica:0/task:0" """
    return f"/job:{job}/replica:0/task:{index}"


class ClusterWorkers:
    """Addresses, and a GrpcWorker per task, made when it is first asked for. Belongs to one event loop."""

    def __init__(
        self,
        task: TaskName,
        local: WorkerInterface,
        addresses: Addresses,
        limits: Limits = DEFAULT_LIMITS,
        *,
        connect: Connect | None = None,
    ) -> None:
        """`connect(task, address)` makes the worker of another task; by default one over gRPC alone."""
        self._task, self._local, self._limits = task, local, limits
        self._connect = connect
        self._addresses = addresses
        self._workers: dict[TaskName, GrpcWorker] = {}
        self._devices: dict[TaskName, list[DeviceAttributes]] = {}
        #: Connections of tasks that moved or left, being closed.
        self._closing: set[asyncio.Task[None]] = set()

    @property
    def addresses(self) -> Addresses:
        """The cluster as it stands. Not to be changed."""
        return self._addresses

    def update(self, addresses: Addresses) -> None:
        """Takes over a new cluster. Calls under way to a task that moved or left end with UnavailableError."""
        self._addresses = addresses
        known = set(self.tasks())
        for task, worker in list(self._workers.items()):
            if task not in known or self.address(task) != worker.address:
                self._drop(task)

    def tasks(self) -> list[TaskName]:
        return [task_name(job, index) for job in sorted(self._addresses) for index in sorted(self._addresses[job])]

    def address(self, task: TaskName) -> str:
        job, index = _parse_task(task)
        tasks = self._addresses.get(job)
        if tasks is None:
            raise errors.not_found(
                f"There is no {task}: the cluster has the jobs {', '.join(sorted(self._addresses))}."
            )
        if index not in tasks:
            have = ", ".join(map(str, sorted(tasks))) or "none"
            raise errors.not_found(f"There is no {task}: /job:{job} has the tasks {have}.")
        return tasks[index]

    def worker(self, task: TaskName) -> WorkerInterface:
        if task == self._task:
            return self._local
        address = self.address(task)
        if not address:
            return MissingWorker(task)
        found = self._workers.get(task)
        if found is None:
            from .rpc.grpc_worker import GrpcWorker  # grpc is loaded where it is needed

            connect = self._connect
            found = GrpcWorker(task, address, self._limits) if connect is None else connect(task, address)
            self._workers[task] = found
        return found

    async def devices(
        self,
        task: TaskName,
        *,
        refresh: bool = False,
        timeout: float | None = None,  # noqa: ASYNC109 - passed on to the RPC as its deadline
    ) -> list[DeviceAttributes]:
        found = self._devices.get(task)
        if found is None or refresh:
            self._devices.pop(task, None)
            found = await self.worker(task).get_status(timeout)
            self._devices[task] = found
        return found

    async def close(self) -> None:
        """Closes all connections. Idempotent."""
        for task in list(self._workers):
            self._drop(task)
        if self._closing:
            await asyncio.wait(self._closing, timeout=self._limits.stop_seconds)

    def _drop(self, task: TaskName) -> None:
        self._devices.pop(task, None)
        closing = asyncio.get_running_loop().create_task(self._workers.pop(task).close(), name=f"close:{task}")
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)


class MissingWorker:
    """The worker of a task that has no address: every call says so."""

    def __init__(self, task: TaskName) -> None:
        self._error = errors.unavailable(f"{task} cannot be reached: it has not registered yet.")

    async def get_status(self, timeout: float | None = None) -> list[DeviceAttributes]:  # noqa: ASYNC109 - passed on to the RPC as its deadline
        raise self._error

    async def create_worker_session(
        self,
        session_handle: str,
        server_def: ServerDef | None,
        isolate: bool,
        master_task: str,
        master_incarnation: int,
    ) -> None:
        raise self._error

    async def delete_worker_session(self, session_handle: str) -> None:
        raise self._error

    async def register_graph(self, session_handle: str, graph_def: GraphDef, config: ConfigProto) -> str:
        raise self._error

    async def deregister_graph(self, session_handle: str, graph_handle: str) -> None:
        raise self._error

    async def run_graph(
        self,
        session_handle: str,
        graph_handle: str,
        step_id: int,
        feeds: Mapping[str, Value],
        fetches: Sequence[str],
        options: ExecOptions = DEFAULT_EXEC_OPTIONS,
    ) -> RunGraphResult:
        raise self._error

    async def recv_tensor(self, step_id: int, key: str) -> tuple[Value, bool]:
        raise self._error

    async def cleanup_graph(self, step_id: int) -> None:
        raise self._error

    async def cleanup_all(self, containers: Sequence[str]) -> None:
        raise self._error


def _parse_task(task: TaskName) -> tuple[str, int]:
    """("ps", 0) of "/job:ps/replica:0/task:0". Raises InvalidArgumentError for anything else."""
    parts = dict(part.partition(":")[::2] for part in task.split("/") if part)
    job, index = parts.get("job"), parts.get("task", "")
    if not job or not index.isdecimal():
        raise errors.invalid_argument(f"{task!r} is no task name such as '/job:ps/replica:0/task:0'.")
    return job, int(index)
