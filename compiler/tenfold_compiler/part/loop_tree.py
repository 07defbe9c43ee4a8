"""The frames of a part as a tree of loops, each one item of the frame that it stands in.

    x ─► Enter ─► Merge ─► Switch ─► Exit ─► y          x, Loop, y: three members of the root frame
                    ▲         └─► body ─► NextIteration ─┘

The order of a frame's members keeps all waits, with a loop as one thing. Used by guards.py, which says when a member
runs; write/frame_writer.py writes a loop. In TensorFlow: control_flow.cc's BuildControlFlowInfo.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from tenfold_compiler.pending import in_order
from tenfold_core.opdefs.runtime_ops import ENTER_OPS, EXIT_OPS, NEXT_ITERATION_OPS

from .edges import frame_name
from .part_graph import PartGraph, PartNode, is_back_edge, sources_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

#: Python nests no more than twenty `while`s.
MAX_DEPTH = 15


class Unstructured(Exception):
    """The part cannot be written as structured code; says why, and because of which nodes, or some of their loops."""

    def __init__(self, text: str, nodes: Sequence[PartNode] = ()) -> None:
        super().__init__(text)
        self.nodes = nodes


@dataclass(slots=True, eq=False)
class Loop:
    """One frame: what leads into it and what is in it."""

    name: str
    #: The loops that it stands in, from the inside out.
    around: tuple[Loop, ...]
    #: They belong to the loop, their inputs to the frame around it.
    enters: list[PartNode] = field(default_factory=list)
    #: Merges of Enter and NextIteration, in order.
    variables: list[PartNode] = field(default_factory=list)
    exits: list[PartNode] = field(default_factory=list)
    #: All that is in it but the Enters, in an order that keeps all waits.
    members: list[Member] = field(default_factory=list)

    @property
    def parent(self) -> Loop | None:
        """The loop whose frame is around it; None for the root frame."""
        return next(iter(self.around), None)

    @property
    def index(self) -> int:
        """Its place among the members of the frame around it, which are ordered by node."""
        return self.enters[0].index

    def nodes(self) -> Iterator[PartNode]:
        """All nodes of the loop, those of inner loops too."""
        yield from self.enters
        yield from nodes_of(self.members)


#: What stands in a frame.
Member: TypeAlias = "PartNode | Loop"


def nodes_of(members: Iterable[Member]) -> Iterator[PartNode]:
    """The members, and all nodes of those that are loops."""
    for member in members:
        if isinstance(member, Loop):
            yield from member.nodes()
        else:
            yield member


@dataclass(slots=True)
class LoopTree:
    """The frames of a part."""

    #: By node: the loop whose frame it runs in; None for the root. An Enter runs in the frame that it leads out of.
    frame_of: list[Loop | None]
    #: By node: for an Enter the loop that it leads into.
    entered: dict[int, Loop]
    #: In the order in which they were met: outer ones first.
    loops: list[Loop]
    #: Those of the root frame, in an order that keeps all waits.
    members: list[Member]

    def standing_in(self, frame: Loop | None, node: PartNode) -> Member | None:
        """The member of a frame that the node is, or is in; None for one from outside of it."""
        inner = self.entered.get(node.index)
        if inner is None and self.frame_of[node.index] is frame:
            return node
        inner = inner or self.frame_of[node.index]
        return next((each for each in (inner, *inner.around) if each.parent is frame), None) if inner else None


def loop_tree(part: PartGraph, constants: Collection[int]) -> LoopTree:
    """Finds the loops of a part. Raises Unstructured for frames that do not nest."""
    tree = LoopTree([], {}, [], [])
    by_name: dict[tuple[Loop | None, str], Loop] = {}
    for node in part.nodes:
        frames: dict[Loop | None, None] = {}
        for source in sources_of(part.nodes, node):
            frame = _frame_behind(part, tree, source)
            # A constant stands everywhere.
            if not (frame is None and source in constants):
                frames[frame] = None
        if len(frames) > 1:
            raise Unstructured(f"'{node.name}' has inputs from several frames")
        frame = next(iter(frames), None)
        tree.frame_of.append(frame)
        if node.op in ENTER_OPS:
            key = frame, frame_name(node)
            loop = by_name.get(key)
            if loop is None:
                loop = by_name[key] = Loop(key[1], () if frame is None else (frame, *frame.around))
                tree.loops.append(loop)
                if len(loop.around) >= MAX_DEPTH:
                    raise Unstructured(f"loop '{loop.name}' stands in {MAX_DEPTH} others")
            loop.enters.append(node)
            tree.entered[node.index] = loop
        elif frame is None and (node.op in NEXT_ITERATION_OPS or node.op in EXIT_OPS):
            raise Unstructured(f"'{node.name}' stands outside of a loop")
    for loop in tree.loops:
        _read_loop(part, tree, loop)
    _order_members(part, tree)
    return tree


def _frame_behind(part: PartGraph, tree: LoopTree, index: int) -> Loop | None:
    """The frame in which the node's outputs are."""
    if index in tree.entered:
        return tree.entered[index]
    frame = tree.frame_of[index]
    if part.nodes[index].op in EXIT_OPS:
        return None if frame is None else frame.parent
    return frame


def _read_loop(part: PartGraph, tree: LoopTree, loop: Loop) -> None:
    """Finds the loop's variables and exits; checks that values come in where turns begin."""
    for node in part.nodes:
        if tree.frame_of[node.index] is not loop:
            continue
        if node.op in EXIT_OPS:
            loop.exits.append(node)
        back = [is_back_edge(part.nodes, node, source) for source, _ in node.inputs]
        if any(back):
            if back != [False, True] or node.controls or tree.entered.get(node.inputs[0][0]) is not loop:
                raise Unstructured(f"'{node.name}' is no Merge of an Enter and a NextIteration")
            loop.variables.append(node)
        elif any(
            tree.entered.get(source) is loop and not part.nodes[source].attrs.get("is_constant")
            for source in node.sources
        ):
            raise Unstructured(f"'{node.name}' runs in the first turn of '{loop.name}' only")


def _order_members(part: PartGraph, tree: LoopTree) -> None:
    """Fills in the members of each frame."""
    of_frame: dict[Loop | None, list[Member]] = {loop: [] for loop in (None, *tree.loops)}
    for node in part.nodes:
        if node.index not in tree.entered:
            of_frame[tree.frame_of[node.index]].append(node)
    for loop in tree.loops:
        of_frame[loop.parent].append(loop)
    for frame, members in of_frame.items():
        at = {member.index: member for member in members}

        def before(index: int, frame: Loop | None = frame, at: dict[int, Member] = at) -> Iterator[int]:
            return (other.index for other in waits(part, tree, frame, at[index]) if other.index != index)

        ordered = [at[index] for index in in_order(at, before)]
        if len(ordered) < len(members):
            raise Unstructured("a loop waits for itself")
        (tree if frame is None else frame).members = ordered


def waits(part: PartGraph, tree: LoopTree, frame: Loop | None, member: Member) -> dict[Member, None]:
    """The members of the same frame that must have run before this one, by its edges."""
    nodes = member.enters if isinstance(member, Loop) else [member]
    sources = (part.nodes[source] for node in nodes for source in sources_of(part.nodes, node))
    found = (tree.standing_in(frame, source) for source in sources)
    return {before: None for before in found if before is not None}
