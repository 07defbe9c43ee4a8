"""The cluster as this task sees it now, and a worker for every task in it. Called by master/, worker/ and server.py.

The spec may be incomplete when a server starts (a task without an address has not registered yet) and may change while
it runs. In TensorFlow: grpc_worker_cache.cc and grpc_channel.cc; there the spec is fixed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold_core import errors
from tenfold_core.device import DeviceSpec, task_name

from .limits import DEFAULT_LIMITS, Limits
from .owned_tasks import OwnedTasks

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_core.cluster_spec import Addresses
    from tenfold_protos.device_attributes_pb2 import DeviceAttributes

    from .interfaces import TaskName, WorkerInterface
    from .rpc.grpc_worker import GrpcWorker


class ClusterWorkers:
    """Addresses, and a GrpcWorker per task, made when it is first asked for. Belongs to one event loop."""

    def __init__(
        self,
        task: TaskName,
        local: WorkerInterface,
        addresses: Addresses,
        limits: Limits = DEFAULT_LIMITS,
        *,
        connect: Callable[[TaskName, str], GrpcWorker] | None = None,
        seen_as: Callable[[list[DeviceAttributes], TaskName], list[DeviceAttributes]] = lambda devices, task: devices,
    ) -> None:
        """`connect(task, address)` makes the worker of another task; by default one over gRPC alone. `seen_as` says
        what the devices that a task reports are called here."""
        self._task, self._local, self._limits = task, local, limits
        self._connect, self._seen_as = connect, seen_as
        #: The cluster as it stands. Changed by `update` alone.
        self.addresses = addresses
        self._workers: dict[TaskName, GrpcWorker] = {}
        self._devices: dict[TaskName, list[DeviceAttributes]] = {}
        #: Connections of tasks that moved or left, being closed.
        self._closing = OwnedTasks(task)

    def update(self, addresses: Addresses) -> None:
        """Takes over a new cluster. Calls under way to a task that moved or left end with UnavailableError."""
        self.addresses = addresses
        known = set(self.tasks())
        for task, worker in list(self._workers.items()):
            if task not in known or self.address(task) != worker.address:
                self._drop(task)

    def tasks(self) -> list[TaskName]:
        """Every task of the cluster spec, this one included, in order of job name and index."""
        return [task_name(job, index) for job in sorted(self.addresses) for index in sorted(self.addresses[job])]

    def address(self, task: TaskName) -> str:
        """ "host:port", or "" while the task has not registered. Raises NotFoundError: no such job or task."""
        try:
            spec = DeviceSpec.from_string(task)
        except ValueError:
            spec = DeviceSpec()
        job, index = spec.job, spec.task
        if job is None or index is None:
            raise errors.invalid_argument(f"{task!r} is no task name such as '/job:ps/replica:0/task:0'.")
        tasks = self.addresses.get(job)
        if tasks is None:
            raise errors.not_found(f"There is no {task}: the cluster has the jobs {', '.join(sorted(self.addresses))}.")
        if index not in tasks:
            have = ", ".join(map(str, sorted(tasks))) or "none"
            raise errors.not_found(f"There is no {task}: /job:{job} has the tasks {have}.")
        return tasks[index]

    def worker(self, task: TaskName) -> WorkerInterface:
        """Never blocks, never connects. The local worker for this task itself.

        Raises NotFoundError as `address` does (saying which jobs and tasks there are). A task without an address gets
        a worker too: each of its calls raises UnavailableError "… has not registered yet".
        """
        if task == self._task:
            return self._local
        address = self.address(task)
        found = self._workers.get(task)
        if found is None:
            from .rpc.grpc_worker import GrpcWorker  # grpc is loaded where it is needed

            if self._connect is not None and address:
                found = self._connect(task, address)
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
        """The task's devices, from GetStatus, remembered until `refresh`, a new address or a failed call."""
        found = self._devices.get(task)
        if found is None or refresh:
            self._devices.pop(task, None)
            found = self._seen_as(await self.worker(task).get_status(timeout), task)
            self._devices[task] = found
        return found

    async def close(self) -> None:
        """Closes all connections. Idempotent."""
        for task in list(self._workers):
            self._drop(task)
        await self._closing.settled(self._limits.stop_seconds)

    def _drop(self, task: TaskName) -> None:
        self._devices.pop(task, None)
        self._closing.spawn(self._workers.pop(task).close(), f"close:{task}")
