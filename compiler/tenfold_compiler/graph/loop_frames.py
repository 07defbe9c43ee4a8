"""What the graph passes need to know of branches and loops: which frame a node runs in, and where its pieces should be.

A frame is one activation of a while loop: Enter opens it, Exit leaves it. Used by partition.py and control_loops.py.
Follows TensorFlow's graph/control_flow.cc and the colocation step at the start of graph_partition.cc.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tenfold_core import errors
from tenfold_core.opdefs.runtime_ops import BRANCH_OPS, ENTER_OPS, EXIT_OPS, NEXT_ITERATION_OPS

from .cycles import in_order, is_back_edge
from .runtime_graph import assigned

if TYPE_CHECKING:
    from .node import Node
    from .runtime_graph import RuntimeGraph


@dataclass(frozen=True, slots=True)
class LoopFrame:
    """A loop's body. The root frame, outside of all loops, is None."""

    name: str
    parent: LoopFrame | None

    @property
    def path(self) -> str:
        return self.name if self.parent is None else f"{self.parent.path} > {self.name}"


def topological_order(graph: RuntimeGraph) -> list[Node]:
    """Every node after its sources, loops' back edges left aside; otherwise in graph order."""
    return in_order(list(graph.nodes.values()), graph.nodes)[0]


def frames(graph: RuntimeGraph, order: list[Node]) -> dict[str, LoopFrame | None]:
    """Node → the frame that it runs in (an Enter in the frame that it opens, an Exit in the one that it leaves).

    Raises InvalidArgumentError naming a node whose inputs come from different frames: it could never run.
    """
    found: dict[str, LoopFrame | None] = {}
    for node in order:
        inside: LoopFrame | None = None
        from_node: str | None = None
        for source in node.sources:
            if is_back_edge(graph.nodes[source], node):
                continue
            frame = output_frame(graph.nodes[source], found)
            if from_node is not None and frame != inside:
                raise errors.InvalidArgumentError(
                    node.node_def,
                    None,
                    f"{{{{node {node.name}}}}} has inputs from different frames. The input {{{{node {source}}}}} is in "
                    f"{_show(frame)}. The input {{{{node {from_node}}}}} is in {_show(inside)}.",
                )
            inside, from_node = frame, source
        if node.op in ENTER_OPS:
            inside = LoopFrame(node.attrs["frame_name"].decode(errors="replace"), inside)
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
    return f"frame '{'' if frame is None else frame.path}'"


def colocate_control_flow(graph: RuntimeGraph, order: list[Node]) -> RuntimeGraph:
    """Moves Switch to its data, Exit to what it leaves, Enter and NextIteration to what they feed.

    Saves transfers, reads a variable of another task in the branch that is taken only, and keeps loops on one task
    where it can. These nodes compute nothing, so that their requested device is given up for it, as TensorFlow does.
    """
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
