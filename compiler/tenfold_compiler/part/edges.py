"""The edges of a part, from each output to its consumers, as services/worker/propagator.py walks them."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING

from tenfold_core.opdefs import runtime_ops
from tenfold_core.opdefs.runtime_ops import ALIAS_OPS, ENTER_OPS, MERGE_OPS

if TYPE_CHECKING:
    from .part_graph import PartGraph, PartNode


class Kind(IntEnum):
    """How the executor treats a node."""

    KERNEL = 0
    SWITCH = 1
    MERGE = 2
    ENTER = 3
    EXIT = 4
    NEXT_ITERATION = 5
    RECV = 6
    SEND = 7
    ALIAS = 8
    ORDER = 9
    #: A kernel that may have to wait.
    BLOCKING = 10
    SWITCH_N = 11
    TRIGGER = 12


#: By op, for the kinds that have a set of ops in runtime_ops.py.
_KINDS = {op: kind for kind in Kind for op in getattr(runtime_ops, f"{kind.name}_OPS", ())}


@dataclass(slots=True)
class Edges:
    """What the executor needs of a part's edges, made once per program."""

    #: Per node: (output port or -1, consumer, its input or -1); -1 is a control edge.
    outputs: list[list[tuple[int, int, int]]]
    kinds: list[Kind]
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


def _kind(node: PartNode) -> Kind:
    if node.op in ALIAS_OPS and not node.inputs:
        return Kind.KERNEL  # folded: its value is a constant
    return Kind.BLOCKING if node.blocking else _KINDS.get(node.op, Kind.KERNEL)


def frame_name(node: PartNode) -> str:
    """The frame that an Enter node leads into."""
    name = node.attrs.get("frame_name", b"")
    return name.decode(errors="replace") if isinstance(name, bytes) else str(name)
