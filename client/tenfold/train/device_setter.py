"""`tf.train.replica_device_setter`: variables on parameter servers, everything else on the worker.

Returns a device function for `with tf.device(…)`. A strategy chooses the server of a variable: in turn by
default, or the one with the least load. Follows TensorFlow's training/device_setter.py.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core.cluster_spec import ClusterSpec
from tenfold_core.device import DeviceSpec
from tenfold_core.tensor_shape import TensorShape

if TYPE_CHECKING:
    from tenfold.graph.operation import Operation

#: Gets an operation and says which parameter-server task it goes to.
Strategy = Callable[["Operation"], int]

#: Op types that hold state and therefore go to parameter servers.
STANDARD_PS_OPS = (
    "Variable",
    "VariableV2",
    "AutoReloadVariable",
    "MutableHashTable",
    "MutableHashTableV2",
    "MutableHashTableOfTensors",
    "MutableHashTableOfTensorsV2",
    "MutableDenseHashTable",
    "MutableDenseHashTableV2",
    "VarHandleOp",
    "KvVarHandleOp",
    "BoostedTreesEnsembleResourceHandleOp",
    "BoostedTreesQuantileStreamResourceHandleOp",
    "ResourceConditionalAccumulator",
)


class RoundRobinStrategy:
    """Task 0, 1, …, and again from 0."""

    def __init__(self, num_tasks: int) -> None:
        self._num_tasks = num_tasks
        self._next_task = 0

    def __call__(self, op: Operation) -> int:
        """The next task, whatever `op` is."""
        task = self._next_task
        self._next_task = (self._next_task + 1) % self._num_tasks
        return task


class GreedyLoadBalancingStrategy:
    """The task with the least load so far, where `load_fn(op)` says how much an operation adds (e.g. bytes)."""

    def __init__(self, num_tasks: int, load_fn: Callable[[Operation], float]) -> None:
        self._load_fn = load_fn
        self._loads = np.zeros(num_tasks)

    def __call__(self, op: Operation) -> int:
        """The least loaded task, which gets the load of `op`; the first of several."""
        task = int(np.argmin(self._loads))
        self._loads[task] += self._load_fn(op)
        return task


def byte_size_load_fn(op: Operation) -> float:
    """The bytes of a variable, or of one row of an embedding variable. Raises ValueError for other operations and for
    unknown shapes."""
    if op.type not in ("Variable", "VariableV2", "VarHandleOp", "KvVarHandleOp"):
        raise ValueError(f"Load of {op.name} is unknown: op type {op.type} is not a variable")
    shape = TensorShape.from_proto(op.get_attr("shape"))
    elements = shape.num_elements()
    if elements is None:
        raise ValueError(f"Load of {op.name} is unknown: its shape {shape} is not fully defined")
    return float(elements * op.get_attr("dtype").size)


class _ReplicaDeviceChooser:
    """The device function: what an operation asked for is kept, the rest comes from the ps or worker device."""

    def __init__(
        self, ps_device: str, worker_device: str, merge_devices: bool, ps_ops: Sequence[str], ps_strategy: Strategy
    ) -> None:
        self._ps_device = DeviceSpec.from_string(ps_device or "")
        self._worker_device = DeviceSpec.from_string(worker_device or "")
        self._merge_devices = merge_devices
        self._ps_ops = frozenset(ps_ops)
        self._ps_strategy = ps_strategy

    def device_function(self, op: Operation) -> str:
        """The device for `op`, which may have asked for a part of it."""
        if not self._merge_devices and op.device:
            return op.device
        current = DeviceSpec.from_string(op.device or "")
        if op.type not in self._ps_ops:
            return self._worker_device.make_merged_spec(current).to_string()
        target = self._ps_device
        if target.job and (not current.job or current.job == target.job):
            target = target.make_merged_spec(DeviceSpec(task=self._ps_strategy(op)))
        return target.make_merged_spec(current).to_string()


def replica_device_setter(
    ps_tasks: int = 0,
    ps_device: str = "/job:ps",
    worker_device: str = "/job:worker",
    merge_devices: bool = True,
    cluster: Any = None,
    ps_ops: Sequence[str] | None = None,
    ps_strategy: Strategy | None = None,
) -> Callable[[Operation], str] | None:
    """A device function that spreads variables over parameter servers and puts the rest on the worker.

    Args: `cluster` (a ClusterSpec, ClusterDef or dict) gives the number of ps tasks, otherwise `ps_tasks`;
    `ps_ops` the op types that count as variables; `ps_strategy` chooses the task, round robin by default;
    `merge_devices=False` leaves operations alone that have any device.
    Returns None, which leaves devices unchanged, if there are no ps tasks. Raises TypeError if `ps_strategy` cannot
    be called.
    """
    if cluster is not None:
        jobs = (cluster if isinstance(cluster, ClusterSpec) else ClusterSpec(cluster)).as_dict()
        ps_job = DeviceSpec.from_string(ps_device).job
        if ps_job not in jobs or jobs[ps_job] is None:
            return None
        ps_tasks = len(jobs[ps_job])
    if ps_tasks == 0:
        return None
    if not merge_devices:
        warnings.warn(
            "DEPRECATION: It is recommended to set merge_devices=true in replica_device_setter",
            DeprecationWarning,
            stacklevel=2,
        )
    strategy = RoundRobinStrategy(ps_tasks) if ps_strategy is None else ps_strategy
    if not callable(strategy):
        raise TypeError("ps_strategy must be callable")
    chooser = _ReplicaDeviceChooser(
        ps_device, worker_device, merge_devices, STANDARD_PS_OPS if ps_ops is None else ps_ops, strategy
    )
    return chooser.device_function
