"""What the writer of generated code knows of a part with branches and loops: which node stands in which loop
(loop_tree.py), when it runs (guards.py), the producers of edges that are only handed on, and each loop cut in three.

        while 1:
            head                  what runs in the last turn too
            if not p: break
            body, then the next values of the variables
        tail                      what runs when the loop ends, its Exits among it

Refused is what cannot be written so, as a wait within a loop: split_part.py makes two of such a part. Used by build.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tenfold_core.opdefs import runtime_ops as ops

from .guards import Guards, Literal
from .loop_tree import Loop, LoopTree, Member, Unstructured, loop_tree, nodes_of, waits
from .node_facts import is_pure

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterator, Sequence

    from .part_graph import Edge, PartGraph, PartNode

#: Ops whose outputs are their first input, whatever else they do.
_HAND_ON = ops.ALIAS_OPS | ops.BRANCH_OPS | ops.ENTER_OPS | ops.EXIT_OPS | ops.NEXT_ITERATION_OPS
#: Ops without effects.
_SINKING = _HAND_ON | ops.MERGE_OPS | ops.TRIGGER_OPS | ops.ORDER_OPS


@dataclass(frozen=True, slots=True)
class LoopSections:
    """One loop's members by when they run."""

    goes_on: Literal
    head: list[Member]
    body: list[Member]
    tail: list[Member]


@dataclass(frozen=True, slots=True)
class ControlFlow:
    """Of one part."""

    tree: LoopTree
    guards: Guards
    #: Edge → the output that it really is.
    origin: dict[Edge, Edge]
    sections: dict[Loop, LoopSections]

    def places(self, region_of: Sequence[int]) -> list[int]:
        """By node: a number for its region, its loop, its guard, and the part of the loop's turn that it runs in."""
        numbers: dict[Hashable, int] = {}
        part_of = {
            id(member): number
            for sections in self.sections.values()
            for number, members in enumerate((sections.head, sections.body, sections.tail))
            for member in members
        }
        places = [0] * len(region_of)
        for node in nodes_of(self.tree.members):
            at = node.index
            key = region_of[at], self.tree.frame_of[at], self.guards.of[at], part_of.get(id(node))
            places[at] = numbers.setdefault(key, len(numbers))
        return places

    def tested(self, node: PartNode) -> list[int]:
        """The nodes whose outputs are tested to know whether the node, or an input of a Merge, is alive."""
        guards = [self.guards.of[node.index]]
        frame = self.tree.frame_of[node.index]
        if node.op in ops.MERGE_OPS and (frame is None or node not in frame.variables):
            guards += [self.guards.of_edge(source, port) for source, port in node.inputs]
        return [literal.edge[0] for guard in guards for literal in guard if literal.edge[0] < node.index]

    def entries(self, node: PartNode) -> Iterator[PartNode]:
        """The Enters of the loops that the node reads an Exit of: it waits for all of them."""
        frame = self.tree.frame_of[node.index]
        for source in node.sources:
            loop = self.tree.frame_of[source]
            if loop is not None and loop is not frame and loop.parent is frame and source not in self.tree.entered:
                yield from loop.enters


def is_name(node: PartNode) -> bool:
    """Whether the node is nothing but a name for its input, told by branches and loops."""
    return node.op in ops.DYNAMIC_OPS and node.op not in ops.MERGE_OPS and not any(node.deref)


def read_control_flow(part: PartGraph, constants: Collection[int]) -> ControlFlow:
    """The control flow of a part. Raises Unstructured for one that cannot be written as structured code."""
    tree = loop_tree(part, constants)
    waiting = [
        node
        for loop in tree.loops
        for node in loop.nodes()
        if node.op in ops.RECV_OPS or node.op in ops.SEND_OPS or node.blocking
    ]
    if waiting:
        raise Unstructured(f"'{waiting[0].name}' may have to wait in a loop", waiting)
    origin = _origins(part)
    guards = Guards(part, tree, origin)
    sections = {loop: _cut(part, tree, guards, loop) for loop in tree.loops}
    return ControlFlow(tree, guards, origin, sections)


def _origins(part: PartGraph) -> dict[Edge, Edge]:
    origin: dict[Edge, Edge] = {}
    for node in part.nodes:
        # a folded one has no inputs any more
        if node.op not in _HAND_ON or not node.inputs:
            continue
        if node.deref[0]:
            if node.op in ops.EXIT_OPS or node.op in ops.NEXT_ITERATION_OPS:
                raise Unstructured(f"'{node.name}' reads a reference", [node])
            target = node.index, 0
        else:
            target = origin.get(node.inputs[0], node.inputs[0])
        for port in range(len(node.output_types)):
            if (node.index, port) != target:
                origin[node.index, port] = target
    return origin


def _cut(part: PartGraph, tree: LoopTree, guards: Guards, loop: Loop) -> LoopSections:
    """Raises Unstructured when what belongs into every turn waits for what does not."""
    literal = guards.goes_on[loop]
    over = literal.other
    sections = LoopSections(literal, [], [], [])
    in_body: set[Member] = set()
    in_tail: set[Member] = set()

    def waits_for_one_of(turn: str) -> Unstructured:
        return Unstructured(f"some node of '{loop.name}' waits for one of {turn} turn", loop.enters)

    for member in loop.members:
        guard = guards.of_member(member)
        before = waits(part, tree, loop, member)
        if literal in guard or not in_body.isdisjoint(before):
            if literal not in guard and (over in guard or isinstance(member, Loop) or not _may_sink(member)):
                # it would run in the last turn too, sometimes
                raise waits_for_one_of("another")
            in_body.add(member)
            sections.body.append(member)
        elif over in guard:
            in_tail.add(member)
            sections.tail.append(member)
        elif not in_tail.isdisjoint(before):
            raise waits_for_one_of("the last")
        else:
            sections.head.append(member)
    if not in_tail.isdisjoint(before for member in in_body for before in waits(part, tree, loop, member)):
        raise waits_for_one_of("the last")
    return sections


def _may_sink(node: PartNode) -> bool:
    """Whether the node need not run in a loop's last turn, where what it waits for does not."""
    return is_pure(node) or node.op in _SINKING
