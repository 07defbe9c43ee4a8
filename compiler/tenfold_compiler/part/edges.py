"""The edges of a part, from each output to its consumers, as services/worker/propagator.py walks them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tenfold_core.opdefs import runtime_ops
from tenfold_core.opdefs.runtime_ops import ALIAS_OPS, ENTER_OPS, MERGE_OPS

if TYPE_CHECKING:
    from .part_graph import PartGraph, PartNode


#: How the executor treats a node: kernels, those that may have to wait, and ops of its own in the order of `_OWN`.
#: Plain numbers: an Enum's attribute costs ten times as much to look up, several times a node.
KERNEL, BLOCKING, SWITCH, SWITCH_N, MERGE, ENTER, EXIT, NEXT_ITERATION, RECV, SEND, ALIAS, ORDER, TRIGGER = range(13)
_OWN = ["SWITCH", "SWITCH_N", "MERGE", "ENTER", "EXIT", "NEXT_ITERATION", "RECV", "SEND", "ALIAS", "ORDER", "TRIGGER"]
_KINDS = {op: kind for kind, name in enumerate(_OWN, SWITCH) for op in getattr(runtime_ops, f"{name}_OPS")}


@dataclass(slots=True)
class Edges:
    """What the executor needs of a part's edges, made once per program."""

    #: Per node: (output port or -1, consumer, its input or -1); -1 is a control edge.
    outputs: list[list[tuple[int, int, int]]]
    kinds: list[int]
    #: Per node: whether one of its inputs is a reference that has to be read.
    derefs: list[bool]
    #: Per node: the count that NodeState.pending starts with.
    pending: list[int]
    #: Nodes without inputs: what a step starts with.
    roots: list[int]
    #: Frame name → how many Enter nodes lead into it.
    enters: dict[str, int] = field(default_factory=dict)


def edges_of(part: PartGraph) -> Edges:
    """The edges of a part as the executor walks them."""
    links = Edges(
        outputs=[[] for _ in part.nodes],
        kinds=[_kind(node) for node in part.nodes],
        derefs=[True in node.deref for node in part.nodes],
        pending=[0] * len(part.nodes),
        roots=[],
    )
    for node in part.nodes:
        for position, (source, port) in enumerate(node.inputs):
            links.outputs[source].append((port, node.index, position))
        for source in node.controls:
            links.outputs[source].append((-1, node.index, -1))
        is_merge = node.op in MERGE_OPS
        links.pending[node.index] = (1 + 2 * len(node.controls)) if is_merge else len(node.inputs) + len(node.controls)
        if not node.inputs and not node.controls:
            links.roots.append(node.index)
        if node.op in ENTER_OPS:
            name = frame_name(node)
            links.enters[name] = links.enters.get(name, 0) + 1
    return links


def _kind(node: PartNode) -> int:
    if node.op in ALIAS_OPS and not node.inputs:
        return KERNEL  # folded: its value is a constant
    return BLOCKING if node.blocking else _KINDS.get(node.op, KERNEL)


def frame_name(node: PartNode) -> str:
    """The frame that an Enter node leads into."""
    name = node.attrs.get("frame_name", b"")
    return name.decode(errors="replace") if isinstance(name, bytes) else str(name)
