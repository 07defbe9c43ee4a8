"""Branches and loops over devices: a node's frame, where the pieces of a loop should be, and a control loop
for each device that takes part in one, so that its _Recvs run once an iteration.

    worker:0 (the loop)                     ps:0 (a part of the body)
    Enter ─▶ Merge ─▶ Switch ─▶ … Next      _cloop Enter ─▶ Merge ─▶ Switch ─▶ NextIteration
               └─▶ … LoopCond ─────────────────────────────────────────┘ (by _Send/_Recv)

A frame is one activation of a while loop: Enter opens it, Exit leaves it. The control loop carries an empty float and
follows the one LoopCond of the loop; an inner one starts from the Merge of the outer one. Called by partition.py. Names
and attributes are those of AddControlFlow in TensorFlow's graph_partition.cc: the parts may go to its workers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tenfold_core import dtypes, errors
from tenfold_core.node_names import at_node
from tenfold_core.opdefs.runtime_ops import BRANCH_OPS, ENTER_OPS, EXIT_OPS, NEXT_ITERATION_OPS

from .node import assigned, in_order, is_back_edge, make_node, new_def, no_floats

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_protos.node_def_pb2 import NodeDef

    from .node import Node
    from .runtime_graph import RuntimeGraph


@dataclass(frozen=True, slots=True, eq=False)
class LoopFrame:
    """A loop's body. The root frame, outside of all loops, is None."""

    name: str
    parent: LoopFrame | None


def find_frames(graph: RuntimeGraph) -> dict[str, LoopFrame | None]:
    """Node → the frame that it runs in (an Enter in the frame that it opens, an Exit in the one that it leaves).

    Raises InvalidArgumentError naming a node whose inputs come from different frames: it could never run.
    """
    found: dict[str, LoopFrame | None] = {}
    made: dict[tuple[LoopFrame | None, str], LoopFrame] = {}
    for node in in_order(graph.nodes, graph.nodes):
        inside: LoopFrame | None = None
        from_node: str | None = None
        for source in node.sources:
            if is_back_edge(graph.nodes[source], node):
                continue
            frame = output_frame(graph.nodes[source], found)
            if from_node is not None and frame is not inside:
                raise errors.InvalidArgumentError(
                    node.node_def,
                    None,
                    f"{{{{node {node.name}}}}} has inputs from different frames. The input {{{{node {source}}}}} is in "
                    f"{_show(frame)}. The input {{{{node {from_node}}}}} is in {_show(inside)}.",
                )
            inside, from_node = frame, source
        if node.op in ENTER_OPS:
            name = node.attrs["frame_name"].decode(errors="replace")
            inside = made.setdefault((inside, name), LoopFrame(name, inside))
        found[node.name] = inside
    return found


def output_frame(node: Node, found: dict[str, LoopFrame | None]) -> LoopFrame | None:
    """The frame that the node's outputs belong to."""
    frame = found[node.name]
    return frame.parent if node.op in EXIT_OPS and frame is not None else frame


def input_frame(node: Node, found: dict[str, LoopFrame | None]) -> LoopFrame | None:
    """The frame that the node's inputs come from."""
    frame = found[node.name]
    return frame.parent if node.op in ENTER_OPS and frame is not None else frame


def _show(frame: LoopFrame | None) -> str:
    names: list[str] = []
    while frame is not None:
        names.append(frame.name)
        frame = frame.parent
    return f"frame '{' > '.join(reversed(names))}'"


def colocate_control_flow(graph: RuntimeGraph) -> RuntimeGraph:
    """Moves Switch to its data, Exit to what it leaves, Enter and NextIteration to what they feed.

    Saves transfers, reads a variable of another task in the branch that is taken only, and keeps loops on one task
    where it can. These nodes compute nothing, so that their requested device is given up for it, as TensorFlow does.
    """
    order = in_order(graph.nodes, graph.nodes)
    device = {node.name: node.device for node in order}
    for node in order:
        if node.op in BRANCH_OPS or node.op in EXIT_OPS:
            device[node.name] = device[node.inputs[0].node]
    feeds: dict[str, str] = {}
    for node in graph.nodes.values():
        for tensor in node.inputs:
            feeds.setdefault(tensor.node, node.name)
    for node in reversed(order):
        if (node.op == "Enter" or node.op in NEXT_ITERATION_OPS) and node.name in feeds:
            device[node.name] = device[feeds[node.name]]
    return graph.with_nodes(assigned(node, device[node.name]) for node in graph.nodes.values())


class ControlLoops:
    """A graph with a control loop for each loop and device that another device sends to, and where to find them."""

    def __init__(self, graph: RuntimeGraph, fresh: Callable[[str], str]) -> None:
        """`fresh` makes names. Raises InvalidArgumentError for a loop over devices without a LoopCond."""
        #: Node → the frame that it runs in, the new nodes among them.
        self._frames = find_frames(graph)
        #: (frame, device) → the Merge of the control loop there: it runs once in every iteration.
        self.merges: dict[tuple[LoopFrame, str], str] = {}
        self._fresh = fresh
        self._added: list[NodeDef] = []
        self._conditions: dict[LoopFrame, str] = {}
        self._parallel: dict[LoopFrame, int] = {}
        for node in graph.nodes.values():
            frame = self._frames[node.name]
            if frame is not None and node.op == "LoopCond":
                self._conditions[frame] = node.name
            elif frame is not None and node.op in ENTER_OPS:
                self._parallel.setdefault(frame, int(node.attrs["parallel_iterations"]))
        for node in graph.nodes.values():
            for name in dict.fromkeys(node.sources):
                source = graph.nodes[name]
                if source.device != node.device:
                    self._ensure(self.crossed_frame(source, node), node)
        self.graph = graph.with_nodes([*graph.nodes.values(), *map(make_node, self._added)])

    def crossed_frame(self, source: Node, node: Node) -> LoopFrame | None:
        """The loop that the edge from `source` to `node` belongs to; None outside of loops."""
        frame = output_frame(source, self._frames)
        return frame if frame is input_frame(node, self._frames) else None

    def _ensure(self, frame: LoopFrame | None, node: Node) -> None:
        """The control loops of `frame` and of all loops around it, on the device of `node`, as far as they lack."""
        enters: list[tuple[NodeDef, LoopFrame | None]] = []
        while frame is not None and (frame, node.device) not in self.merges:
            enters.append((self._add_loop(frame, node), frame.parent))
            frame = frame.parent
        for enter, around in enters:
            if around is None:
                start = no_floats(self._fresh(node.name), node.device)
                self._frames[start.name] = None
                self._added.append(start)
            enter.input.append(start.name if around is None else self.merges[around, node.device])

    def _add_loop(self, frame: LoopFrame, node: Node) -> NodeDef:
        """Adds one control loop; its Enter, whose input is still missing."""
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
        return enter

    def _add(self, op: str, name: str, device: str, frame: LoopFrame, *inputs: str, **attrs: str | int) -> NodeDef:
        node_def = new_def(op, name, inputs, {"T": dtypes.float32, **attrs}, device)
        self._frames[name] = frame
        self._added.append(node_def)
        return node_def
