"""Which fusible nodes may run as one without waiting for themselves: spaces, levels, components.

A *space* is a place and a shape: only nodes of one space can share a loop. A place is a region, and where there are
branches a guard, a frame and a part of its turns too (`ControlFlow.places`). A *level* grows by one along every edge
from a fusible node to anything but a fusible node of the same space, with which it belongs to one group: a path that
leaves a group comes to higher levels and never back, so groups can run as single nodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold_compiler.part.loop_tree import Loop, nodes_of
from tenfold_compiler.part.node_facts import Constants, is_pure, views_of_references
from tenfold_compiler.part.part_graph import Edge, PartGraph, PartNode, is_back_edge
from tenfold_compiler.part.structured_flow import is_name
from tenfold_core.opdefs.runtime_ops import ORDER_OPS
from tenfold_kernels.fusion.runs import REDUCTIONS

from .nodes import Shape, Shapes, is_alias, loop_shape

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from tenfold_compiler.program import Program

    from .fusion import Group

#: Stands for a shape where a group has no loop: its nodes depend on shapes alone, and run once for each.
OF_SHAPES: Shape = (-1,)


class Levels:
    """What the grouping knows of a part: resolved edges, real waits, spaces and levels."""

    def __init__(
        self, program: Program, nodes: Sequence[PartNode], shapes: Shapes, of_shapes: Collection[int] = ()
    ) -> None:
        """`of_shapes` are the nodes of `nodes_of_shapes`; they are no part of a loop."""
        part, constants, flow = program.part, program.constants, program.flow
        self.part, self.constants, self.shapes, self._flow = part, constants, shapes, flow
        self.origin: dict[Edge, Edge] = {} if flow is None else dict(flow.origin)
        #: In an order that keeps all waits, with each loop's nodes together.
        self._order: Sequence[PartNode] = part.nodes if flow is None else list(nodes_of(flow.tree.members))
        #: Node → its place: those of two places are no group.
        self.places = program.region_of if flow is None else flow.places(program.region_of)
        #: Node → its region, the GPU that it runs on or "", and the shape of its loop, for nodes that can be fused;
        #: those that differ in one of them are no group.
        self.space: dict[int, tuple[int, str, Shape]] = {}
        for node in part.nodes if flow is None else ():
            if is_alias(node, constants):
                self.origin[node.index, 0] = self.resolve(node.inputs[0])
        for index in of_shapes:
            self.space[index] = self.places[index], "", OF_SHAPES
        for node in nodes:
            shape = loop_shape(node, shapes.get(node.index), constants)
            if shape is not None and node.index not in of_shapes:
                device = "" if node.memory is None else node.node_def.device
                self.space[node.index] = self.places[node.index], device, shape
        #: Node → the nodes that must have run before it, other than through data of pure nodes.
        self.data: list[list[int]] = [
            list(dict.fromkeys(s for s, _ in map(self.resolve, self._inputs(node)) if s not in constants))
            for node in part.nodes
        ]
        #: Node → what else it waits for where there are branches: what is tested, and all that enters a loop before
        #: anything leaves it.
        self._tested: list[list[int]] = [[] for _ in part.nodes]
        if flow is not None:
            for node in part.nodes:
                found = [*flow.tested(node), *(s for e in flow.entries(node) for s in (e.index, *self.data[e.index]))]
                self._tested[node.index] = [s for s in dict.fromkeys(found) if s not in constants and s != node.index]
        self.waits = _real_waits(part, constants, self.data, self._order)
        #: Node → its readers; a Send counts, an alias does not.
        self.readers: list[list[int]] = [[] for _ in part.nodes]
        for node in part.nodes:
            if not is_alias(node, constants):
                for source in self.data[node.index]:
                    self.readers[source].append(node.index)
        #: Node → (reader, edge) of all that read it, back edges too. Empty until it is asked for.
        self._read: dict[int, list[tuple[int, Edge]]] = {}
        self.level = self._levels()

    def _inputs(self, node: PartNode) -> list[Edge]:
        """The node's inputs but for a loop's back edge."""
        if self._flow is None:
            return node.inputs
        return [edge for edge in node.inputs if not is_back_edge(self.part.nodes, node, edge[0])]

    def resolve(self, edge: Edge) -> Edge:
        return self.origin.get(edge, edge)

    def is_of_shapes(self, index: int) -> bool:
        """Whether the node's values depend on constants and on shapes alone."""
        return index in self.space and self.space[index][2] is OF_SHAPES

    def edges_read_outside(self, inside: Collection[int]) -> list[Edge]:
        """The outputs of the nodes `inside` that others read, aliases looked through."""
        if not self._read:
            for node in self.part.nodes:
                for edge in () if is_alias(node, self.constants) else map(self.resolve, node.inputs):
                    self._read.setdefault(edge[0], []).append((node.index, edge))
        read = sorted(each for index in inside for each in self._read.get(index, ()) if each[0] not in inside)
        return list(dict.fromkeys(edge for _, edge in read))

    def before(self, node: PartNode) -> list[int]:
        """The nodes that must have run before this one."""
        return self.data[node.index] + self.waits[node.index] + self._tested[node.index]

    def always_runs(self, node: PartNode) -> bool:
        """Whether the node is in no branch and no loop."""
        flow = self._flow
        return flow is None or (flow.tree.frame_of[node.index] is None and not flow.guards.of[node.index])

    def between(self, order: Sequence[PartNode | Group | Loop]) -> Callable[[int], set[int]]:
        """Of nodes, groups and loops, by their places in `order`: which of them one waits for."""
        members = [list(nodes_of([item])) if isinstance(item, (PartNode, Loop)) else item.members for item in order]
        place_of = {node.index: place for place, nodes in enumerate(members) for node in nodes}
        return lambda place: {
            place_of[s] for node in members[place] for s in self.before(node) if place_of.get(s, place) != place
        }

    def joins(self, source: int, target: int) -> bool:
        """Whether an edge between two fusible nodes can lie inside a group."""
        return (
            self.space.get(source) == self.space.get(target)
            and source in self.space
            and (self.part.nodes[source].op not in REDUCTIONS or self.is_of_shapes(source))
        )

    def _levels(self) -> list[int]:
        level = [0] * len(self.part.nodes)
        for node in self._order:
            level[node.index] = max(
                (
                    level[source] + (source in self.space and not self.joins(source, node.index))
                    for source in self.before(node)
                ),
                default=0,
            )
        return level

    def components(self) -> list[tuple[list[PartNode], Shape]]:
        """Connected fusible nodes of one level and space; scalars of one level belong together unconnected too."""
        parent = {index: index for index in self.space}

        def find(index: int) -> int:
            while parent[index] != index:
                parent[index] = parent[parent[index]]
                index = parent[index]
            return index

        scalars: dict[tuple[int, str, int], int] = {}
        for index in self.space:
            region, device, shape = self.space[index]
            if not shape:
                parent[find(index)] = find(scalars.setdefault((region, device, self.level[index]), index))
            for source in self.data[index]:
                if self.joins(source, index) and self.level[source] == self.level[index]:
                    parent[find(source)] = find(index)
        found: dict[int, list[PartNode]] = {}
        for index in sorted(self.space):
            found.setdefault(find(index), []).append(self.part.nodes[index])
        return [(members, self.space[members[0].index][2]) for members in found.values()]


def _real_waits(
    part: PartGraph, constants: Constants, data: Sequence[list[int]], order: Sequence[PartNode]
) -> list[list[int]]:
    """Per node: what its control edges really make it wait for.

    A pure node may run at any time, so it waits for nothing itself; a node that reads or waits for it waits for what it
    would have waited for. Only nodes with effects, and nodes that read a variable's memory, keep their place.
    """
    volatile = views_of_references(part, constants)
    #: As bit sets: what a node's readers must wait for besides it, and what those must that wait for the node itself.
    inherited = [0] * len(part.nodes)
    settled = [0] * len(part.nodes)
    waits: list[list[int]] = [[] for _ in part.nodes]
    for node in order:
        after = 0
        for control in node.controls:
            after |= settled[control]
        for source in {s for s, _ in node.inputs if not is_back_edge(part.nodes, node, s)} | set(data[node.index]):
            after |= inherited[source]
        free = node.index in constants or node.op in ORDER_OPS or is_alias(node, constants) or is_name(node)
        if not free and is_pure(node) and not any(node.deref):
            free = not any(source in volatile for source, _ in node.inputs)
        if free:
            inherited[node.index] = after
            behind = after
            for source in data[node.index]:
                behind |= settled[source]
            settled[node.index] = behind
        else:
            waits[node.index] = _bits(after)
            settled[node.index] = 1 << node.index
    return waits


def _bits(mask: int) -> list[int]:
    found = []
    while mask:
        lowest = mask & -mask
        found.append(lowest.bit_length() - 1)
        mask ^= lowest
    return found
