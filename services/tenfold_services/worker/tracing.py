"""What a traced step did, node by node: FULL_TRACE's StepStats, and the log of tensors that were fetched.

A traced step runs on `TracedExecution`, whatever its program, so that an untraced one pays nothing. It waits for a GPU
after each of its nodes, or the time of one would be that of its launch. `TransferLog` serves the Logging RPC. Fields as
TensorFlow fills them, since its timeline reads them; see step_stats_collector.cc and worker_cache_logger.cc.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core import dtypes
from tenfold_core.opdefs.runtime_ops import RECV_OPS, SEND_OPS
from tenfold_core.rendezvous_key import parse_key, task_of_device
from tenfold_kernels.cuda._arrays import DeviceArray
from tenfold_kernels.cuda._runtime import runtime_of
from tenfold_protos import step_stats_pb2

from .dynamic_executor import DynamicExecution

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold_compiler.part.edges import Edges
    from tenfold_compiler.part.part_graph import PartNode
    from tenfold_compiler.program import Program
    from tenfold_protos.step_stats_pb2 import DeviceStepStats, NodeExecStats, StepStats

    from ..interfaces import Value
    from .execution import StepIO
    from .propagator import Token

#: Steps, and transfers of one step, that a log keeps.
_LOGGED_STEPS, _LOGGED_TRANSFERS = 64, 10_000
#: Node runs of one traced step that are recorded; a loop may go on for ever.
_RECORDED = 200_000


class TracedExecution(DynamicExecution):
    """Any program, node by node, with the times of each. Dead nodes are not recorded."""

    def __init__(self, program: Program, edges: Edges, io: StepIO) -> None:
        #: What was recorded. Filled as nodes run, on their thread: at the end it would keep the event loop busy.
        self.step_stats = step_stats_pb2.StepStats()
        self._recorded = 0
        #: When nodes that wait now were started, by their token.
        self._begun: dict[int, int] = {}
        super().__init__(program, edges, io)

    def _run(self, token: Token) -> Sequence[Any] | None:
        begin = time.time_ns()
        outputs = super()._run(token)
        node = token.node
        if (node.memory is not None or node.copy_of is not None) and outputs is not None and not token.is_dead:
            runtime_of(node.node_def.device).synchronize()
        if outputs is None:
            self._begun[id(token)] = begin
        elif not token.is_dead and self._recorded < _RECORDED:
            self._record(node, self._begun.pop(id(token), begin), time.time_ns(), outputs)
        return outputs

    def _record(self, node: PartNode, begin: int, end: int, outputs: Sequence[Any]) -> None:
        self._recorded += 1
        name = node.node_def.device
        stats = _of_device(self.step_stats, name).node_stats.add(node_name=node.name, timeline_label=self._label(node))
        stats.thread_id = threading.get_native_id() & 0xFFFFFFFF
        _time(stats, begin, end)
        _describe(stats, outputs)
        if node.copy_of is not None or any(type(each) is DeviceArray for each in outputs):
            # what TensorFlow's tools take for the GPU's own time
            ran = _of_device(self.step_stats, f"{name}/stream:all").node_stats.add()
            ran.node_name = f"{node.name}:{node.op}@@{node.op}"
            _time(ran, begin, end)

    def _label(self, node: PartNode) -> str:
        if node.op in SEND_OPS or node.op in RECV_OPS:
            key = parse_key(node.rendezvous_key())
            other = key.recv_device if node.op in SEND_OPS else key.send_device
            return f"{node.name} = {node.op}({key.tensor_name} @{other})"
        nodes = self._program.part.nodes
        return f"{node.name} = {node.op}({', '.join(nodes[source].name for source, _ in node.inputs)})"


def _describe(stats: NodeExecStats, outputs: Sequence[Any]) -> None:
    """Notes the outputs that are tensors, and their memory. They themselves are not kept."""
    totals: dict[str, int] = {}
    for slot, value in enumerate(outputs):
        if not isinstance(value, np.ndarray | DeviceArray):
            continue
        # TensorFlow's tools know a GPU's allocator by its name
        allocator = f"GPU_{value.runtime.index}_bfc" if isinstance(value, DeviceArray) else "cpu"
        tensor = stats.output.add(slot=slot).tensor_description
        dtype = dtypes.string if value.dtype == object else dtypes.as_dtype(value.dtype)
        tensor.dtype = dtype.as_datatype_enum  # type: ignore[assignment]
        for size in value.shape:
            tensor.shape.dim.add(size=size)
        allocation = tensor.allocation_description
        allocation.requested_bytes = allocation.allocated_bytes = value.nbytes
        allocation.allocator_name = allocator
        totals[allocator] = totals.get(allocator, 0) + value.nbytes
    for allocator, total in totals.items():
        if total:
            stats.memory.add(allocator_name=allocator, total_bytes=total, peak_bytes=total)


def _of_device(stats: StepStats, name: str) -> DeviceStepStats:
    """What is recorded of one device; there are few."""
    found = next((each for each in stats.dev_stats if each.device == name), None)
    return stats.dev_stats.add(device=name) if found is None else found


def _time(stats: NodeExecStats, begin: int, end: int) -> None:
    """A run has at least one microsecond, or a timeline would not show it."""
    took = max(1, (end - begin) // 1000)
    stats.all_start_micros = stats.scheduled_micros = begin // 1000
    stats.op_end_rel_micros = stats.all_end_rel_micros = took
    stats.all_start_nanos = stats.scheduled_nanos = begin
    stats.op_end_rel_nanos = stats.all_end_rel_nanos = max(1, end - begin)


class TransferLog:
    """The tensors that this task fetched from others, by step, while a master wants to know. Bounded."""

    def __init__(self) -> None:
        self.enabled = False
        #: Oldest step first.
        self._steps: OrderedDict[int, StepStats] = OrderedDict()

    def clear(self) -> None:
        self._steps.clear()

    def take(self, step_id: int) -> StepStats:
        """What was recorded of the step, which is forgotten; empty for an unknown one."""
        return self._steps.pop(step_id, None) or step_stats_pb2.StepStats()

    def note(self, step_id: int, key: str, begin: int, value: Value) -> None:
        """One tensor has come, asked for at `begin` (nanoseconds since the epoch)."""
        stats = self._steps.get(step_id)
        if stats is None:
            stats = self._steps[step_id] = step_stats_pb2.StepStats()
            while len(self._steps) > _LOGGED_STEPS:
                self._steps.popitem(last=False)
        parsed = parse_key(key)
        device = _of_device(stats, parsed.recv_device)
        if len(device.node_stats) >= _LOGGED_TRANSFERS:
            return
        size = value.nbytes if isinstance(value, np.ndarray) else 0
        entry = device.node_stats.add(node_name="RecvTensor")
        _time(entry, begin, time.time_ns())
        amount = f"{size / 1048576:.1f}MB" if size >= 104858 else f"{size}B"
        entry.timeline_label = (
            f"[{amount}] {parsed.tensor_name} from {task_of_device(parsed.send_device)} "
            f"to {task_of_device(parsed.recv_device)}"
        )
