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
from tenfold_core.device import DeviceSpec, task_name
from tenfold_protos.cluster_pb2 import ClusterDef

from .limits import DEFAULT_LIMITS, Limits

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tenfold_protos.device_attributes_pb2 import DeviceAttributes

    from .interfaces import TaskName, WorkerInterface
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
        try:
            spec = DeviceSpec.from_string(task)
        except ValueError:
            spec = DeviceSpec()
        job, index = spec.job, spec.task
        if job is None or index is None:
            raise errors.invalid_argument(f"{task!r} is no task name such as '/job:ps/replica:0/task:0'.")
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
        found = self._workers.get(task)
        if found is None:
            from .rpc.grpc_worker import GrpcWorker  # grpc is loaded where it is needed

            connect = self._connect
            if connect is not None and address:
                found = connect(task, address)
            else:
                found = GrpcWorker(task, address, self._limits)
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
