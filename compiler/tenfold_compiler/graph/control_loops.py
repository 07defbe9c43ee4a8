"""Gives every device that takes part in a loop a control loop of its own, so that its _Recvs run once an iteration.

    worker:0 (the loop)                     ps:0 (a part of the body)
    Enter ─▶ Merge ─▶ Switch ─▶ … Next      _cloop Enter ─▶ Merge ─▶ Switch ─▶ NextIteration
               └─▶ … LoopCond ─────────────────────────────────────────┘ (by _Send/_Recv)

The control loop carries an empty float and follows the one LoopCond of the loop; an inner one starts from the Merge of
the outer one. Called by partition.py between the colocation of control flow and the cut. Names and attributes are those
of AddControlFlow in TensorFlow's graph_partition.cc, because the parts may go to TensorFlow's workers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tenfold_compiler.graph.loop_frames import LoopFrame, input_frame, output_frame
from tenfold_core import dtypes
from tenfold_core.node_names import at_node
from tenfold_core.opdefs.runtime_ops import ENTER_OPS

from .new_nodes import make_node, new_def, no_floats

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_protos.node_def_pb2 import NodeDef

    from .node import Node
    from .runtime_graph import RuntimeGraph


class ControlLoops(NamedTuple):
    """A graph with control loops, and where to find them."""

    graph: RuntimeGraph
    #: Node → the frame that it runs in, the new nodes among them.
    frames: dict[str, LoopFrame | None]
    #: (frame, device) → the Merge of the control loop there: it runs once in every iteration.
    merges: dict[tuple[LoopFrame, str], str]

    def crossed_frame(self, source: Node, node: Node) -> LoopFrame | None:
        """The loop that the edge from `source` to `node` belongs to; None outside of loops."""
        frame = output_frame(source, self.frames)
        return frame if frame == input_frame(node, self.frames) else None


def add_control_loops(
    graph: RuntimeGraph, frames: dict[str, LoopFrame | None], fresh: Callable[[str], str]
) -> ControlLoops:
    """Adds a control loop for each loop and device that another device sends to. `fresh` makes names.

    Raises InvalidArgumentError for such a loop without a LoopCond.
    """
    builder = _Builder(graph, dict(frames), fresh)
    found = ControlLoops(graph, builder.frames, builder.merges)
    for node in graph.nodes.values():
        for name in dict.fromkeys(node.sources):
            source = graph.nodes[name]
            if source.device != node.device:
                frame = found.crossed_frame(source, node)
                if frame is not None:
                    builder.ensure(frame, node)
    if not builder.merges:
        return found
    added = [make_node(node_def, node_def.device) for node_def in builder.added]
    return found._replace(graph=graph.with_nodes([*graph.nodes.values(), *added]))


class _Builder:
    """The new nodes of one call."""

    def __init__(self, graph: RuntimeGraph, frames: dict[str, LoopFrame | None], fresh: Callable[[str], str]) -> None:
        self.frames = frames
        self.merges: dict[tuple[LoopFrame, str], str] = {}
        self.added: list[NodeDef] = []
        self._fresh = fresh
        self._conditions: dict[LoopFrame, str] = {}
        self._parallel: dict[LoopFrame, int] = {}
        for node in graph.nodes.values():
            frame = frames[node.name]
            if frame is None:
                continue
            if node.op == "LoopCond":
                self._conditions[frame] = node.name
            elif node.op in ENTER_OPS:
                self._parallel.setdefault(frame, int(node.attrs["parallel_iterations"]))

    def ensure(self, frame: LoopFrame, node: Node) -> None:
        """The control loops of `frame` and of all loops around it, on the device of `node`, as far as they lack."""
        inner: NodeDef | None = None
        current: LoopFrame | None = frame
        while current is not None:
            merge = self.merges.get((current, node.device))
            if merge is not None:
                if inner is not None:
                    inner.input.append(merge)
                return
            merge, enter = self._add_loop(current, node)
            if inner is not None:
                inner.input.append(merge)
            current, inner = current.parent, enter
        if inner is not None:
            start = no_floats(self._fresh(node.name), node.device)
            self.frames[start.name] = None
            self.added.append(start)
            inner.input.append(start.name)

    def _add_loop(self, frame: LoopFrame, node: Node) -> tuple[str, NodeDef]:
        """The Merge and the Enter, whose input is still missing."""
        condition = self._conditions.get(frame)
        if condition is None:
            raise at_node(
                node,
                f"A cross-device loop must have a pivot predicate: {frame.name}. Its nodes are on several devices, "
                f"'{node.name}' on {node.device}, and it has no LoopCond.",
            )
        names = [f"_cloop{self._fresh(node.name)}" for _ in range(4)]
        opened: dict[str, str | int] = {
            "frame_name": frame.name,
            "parallel_iterations": self._parallel[frame],
            # Written although it is the default: TensorFlow before 2 refuses a node without it.
            "is_constant": False,
        }
        enter = self._add("Enter", names[0], node.device, frame, **opened)
        self._add("Merge", names[1], node.device, frame, names[0], names[3], N=2)
        self._add("Switch", names[2], node.device, frame, names[1], condition)
        self._add("NextIteration", names[3], node.device, frame, f"{names[2]}:1")
        self.merges[frame, node.device] = names[1]
        return names[1], enter

    def _add(self, op: str, name: str, device: str, frame: LoopFrame, *inputs: str, **attrs: str | int) -> NodeDef:
        node_def = new_def(op, name, inputs, {"T": dtypes.float32, **attrs}, device)
        self.frames[name] = frame
        self.added.append(node_def)
        return node_def
