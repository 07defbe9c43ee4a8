"""A session with a cluster of its own: ConfigProto.cluster_def, TensorFlow's ClusterSpec propagation.

The client says there which address is which task, so each server gets a second worker for it (`Worker.join`), with
renamed devices (of the same incarnations) and its own way to the other tasks, over the same steps; its variables are
its own, unless the client asks to share those of the tasks. Used by worker/worker.py, server.py and master/master.py.
In TensorFlow: WorkerSession with a cluster in session_mgr.cc, and NewRemoteDevices.
"""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING

from tenfold_core import errors
from tenfold_core.device import DeviceSpec, task_name
from tenfold_protos.tensorflow_server_pb2 import ServerDef

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tenfold_protos.cluster_pb2 import ClusterDef
    from tenfold_protos.device_attributes_pb2 import DeviceAttributes

    from .interfaces import TaskName

#: Tasks of a cluster that a client may bring.
_MAX_TASKS = 10_000


def own_task(cluster: ClusterDef, target: str) -> TaskName:
    """The task that a client means by having reached this server at `target` ("grpc://host:port").

    Raises InvalidArgumentError when the cluster has no such address.
    """
    address = target.partition("://")[2] or target
    if sum(len(job.tasks) for job in cluster.job) > _MAX_TASKS:
        raise errors.invalid_argument(f"ConfigProto.cluster_def has more than {_MAX_TASKS} tasks.")
    for job in cluster.job:
        for index, known in job.tasks.items():
            if known == address:
                return task_name(job.name, index)
    raise errors.invalid_argument(
        f"ConfigProto.cluster_def must have the address of the session's target, {address!r}, as one of its tasks."
    )


def server_def(cluster: ClusterDef, task: TaskName) -> ServerDef:
    """What another server is told in CreateWorkerSession: its name in the cluster."""
    spec = DeviceSpec.from_string(task)
    return ServerDef(cluster=cluster, job_name=spec.job, task_index=spec.task, protocol="grpc")


def renamed(devices: Iterable[DeviceAttributes], task: TaskName) -> list[DeviceAttributes]:
    """The devices as those of `task`."""
    copied = [deepcopy(device) for device in devices]
    for each in copied:
        each.name = f"{task}/device:{each.name.rpartition('/device:')[2]}"
    return copied
