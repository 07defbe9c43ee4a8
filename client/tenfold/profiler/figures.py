"""The figures of a graph's nodes: parameters, float operations, and times and bytes of traced steps.

`GraphFigures` collects them from a graph, from what a program says about its nodes (an OpLogProto) and from
RunMetadata; scope_view.py and op_view.py show them. Follows TensorFlow 1.15's core/profiler/internal/tfprof_node.h and
tfprof_stats.cc: a step's figures, or the mean of all steps.
"""

from __future__ import annotations

import math
import re
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tenfold.graph.collections import GraphKeys
from tenfold.profiler.float_ops import UnknownShapeError, float_ops
from tenfold.profiler.option_builder import TRAINABLE_VARIABLES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold.graph import Graph
    from tenfold_protos.config_pb2 import RunMetadata
    from tenfold_protos.node_def_pb2 import NodeDef
    from tenfold_protos.step_stats_pb2 import NodeExecStats
    from tenfold_protos.tfprof_log_pb2 import OpLogProto

#: The figures of a node, each a field of the protos; `total_…` is the sum with what is below it.
FIGURES = (
    *("exec_micros", "accelerator_exec_micros", "cpu_exec_micros"),
    *("requested_bytes", "peak_bytes", "residual_bytes", "output_bytes", "parameters", "float_ops"),
)
_MEASURED = ("run_count", *FIGURES[:7])
_PROCESSOR = re.compile(r".*/(device:gpu|gpu|device:cpu|cpu|device:sycl):\d+")


@dataclass(slots=True)
class NodeFigures:
    """One node."""

    name: str
    op: str
    #: Its op, the device it ran on, and what the program says.
    types: set[str]
    #: Of a variable or a placeholder; [1] for a scalar, empty where it is not known.
    shape: Sequence[int]
    float_ops: int = 0
    device: str = ""
    #: Step → what was measured, by the names of _MEASURED.
    steps: dict[int, dict[str, int]] = field(default_factory=dict)

    def measured(self, step: int) -> dict[str, int]:
        """Every figure in a step, or the mean of all for -1; zero for what was not measured."""
        if not self.steps:
            found = dict.fromkeys(_MEASURED, 0)
        elif step >= 0:
            found = self.steps.get(step) or dict.fromkeys(_MEASURED, 0)
        else:
            found = {key: sum(each[key] for each in self.steps.values()) // len(self.steps) for key in _MEASURED}
        times = found["run_count"] if self.steps else 1
        return {**found, "parameters": self._parameters(), "float_ops": self.float_ops * times}

    def _parameters(self) -> int:
        if not self.shape:
            return 0
        if min(self.shape) < 0:
            sys.stderr.write("Incomplete shape.\n")
            return 0
        return math.prod(self.shape)

    def add(self, step: int, device: str, stats: NodeExecStats) -> None:
        """Adds an execution; one on another device than the first is left out, as it may be half of the same."""
        place = device.lower()
        if _PROCESSOR.fullmatch(place):
            if self.device not in ("", place):
                return
            self.device = place
            self.types.add(place)
        of_step = self.steps.setdefault(step, dict.fromkeys(_MEASURED, 0))
        if stats.all_start_micros > 0:
            micros = max(1, stats.op_end_rel_micros)
            if "stream:all" in place:
                of_step["accelerator_exec_micros"] += micros
                of_step["exec_micros"] += micros
            elif _PROCESSOR.fullmatch(place):
                of_step["cpu_exec_micros"] += micros
                of_step["exec_micros"] += micros
                of_step["run_count"] += 1
            if place == self.device:
                for key, value in _memory(stats).items():
                    of_step[key] += value


def _memory(stats: NodeExecStats) -> dict[str, int]:
    kept, passing = stats.memory_stats.persistent_memory_size, stats.memory_stats.temp_memory_size
    outputs = (each.tensor_description.allocation_description for each in stats.output)
    return {
        "requested_bytes": sum(each.total_bytes for each in stats.memory) + kept + passing,
        "peak_bytes": sum(each.peak_bytes for each in stats.memory) + kept + passing,
        "residual_bytes": sum(each.live_bytes for each in stats.memory) + kept,
        "output_bytes": sum(max(each.allocated_bytes, each.requested_bytes) for each in outputs),
    }


class GraphFigures:
    """The figures of every node of a graph, by its name."""

    def __init__(self, graph: Graph, run_meta: RunMetadata | None = None, op_log: OpLogProto | None = None) -> None:
        self.nodes: dict[str, NodeFigures] = {}
        self.steps: set[int] = set()
        self._graph = graph
        self._add_graph(run_meta)
        if op_log is not None:
            self._add_log(op_log)

    def _add_graph(self, run_meta: RunMetadata | None) -> None:
        known = traced_shapes(run_meta) if run_meta is not None else {}
        unknown = 0
        for op in self._graph.get_operations():
            node = self.nodes.get(op.name)
            if node is None:
                definition = op._node_def
                node = self.nodes[op.name] = NodeFigures(op.name, op.type, {op.type}, _shape(definition))
            if not node.float_ops:
                try:
                    node.float_ops = float_ops(op, known)
                except UnknownShapeError:
                    unknown += 1
        for variable in self._graph.get_collection(GraphKeys.TRAINABLE_VARIABLES):
            self.nodes[variable.op.name].types.add(TRAINABLE_VARIABLES)
        if unknown and run_meta is None:
            sys.stderr.write(f"{unknown} ops no flops stats due to incomplete shapes.\n")

    def _add_log(self, op_log: OpLogProto) -> None:
        for entry in op_log.log_entries:
            if entry.name in self.nodes:
                self.nodes[entry.name].types.update(entry.types)
                self.nodes[entry.name].float_ops = entry.float_ops or self.nodes[entry.name].float_ops

    def add_step(self, step: int, run_meta: RunMetadata) -> None:
        """Adds a traced step; nodes of a graph that has grown since are taken in, too."""
        self._add_graph(run_meta)
        self.steps.add(step)
        for device in run_meta.step_stats.dev_stats:
            for stats in device.node_stats:
                name = stats.node_name.partition(":")[0]
                node = self.nodes.get(name)
                if node is None:
                    if name in ("RecvTensor", "_SOURCE") or "MEMCPY" in name:
                        continue
                    node = self.nodes[name] = NodeFigures(name, "RunTimeOp", {"RunTimeOp"}, ())
                node.add(step, device.device, stats)


def traced_shapes(run_meta: RunMetadata) -> dict[str, list[int]]:
    """Tensor's name → the shape that it had in a traced step."""
    return {
        f"{stats.node_name}:{position}": [size.size for size in output.tensor_description.shape.dim]
        for device in run_meta.step_stats.dev_stats
        for stats in device.node_stats
        for position, output in enumerate(stats.output)
    }


def _shape(definition: NodeDef) -> Sequence[int]:
    if "shape" not in definition.attr or not definition.attr["shape"].HasField("shape"):
        return ()
    shape = definition.attr["shape"].shape
    return () if shape.unknown_rank else [size.size for size in shape.dim] or [1]
