"""The places that values have in a step's list: what comes from outside of a region, or crosses a region's border.

They depend on the part alone, not on what is fused: a step may go on with other code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold_compiler.fuse.nodes import is_alias
from tenfold_core.opdefs.runtime_ops import ORDER_OPS, RECV_OPS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tenfold_compiler.part.part_graph import Edge, PartNode
    from tenfold_compiler.program import Program


class Slots:
    """Of one part."""

    def __init__(self, program: Program, origin: dict[Edge, Edge]) -> None:
        """`origin`: the producer of each edge once names for others are looked through."""
        self._program, self.origin = program, origin
        #: Nodes that may have to wait → the region in which they are run.
        self.starts = {node.index: region.index for region in program.regions for node in region.starts}
        #: Edge → its place.
        self.numbers: dict[Edge, int] = {}
        #: Edges that cross a region's border.
        self.crossing: set[Edge] = set()

    def resolve(self, edge: Edge) -> Edge:
        """The output that an edge really is."""
        return self.origin.get(edge, edge)

    def comes_from_outside(self, node: PartNode) -> bool:
        """True for Recv and feed nodes and for those that may have to wait: the execution fills their slots."""
        return node.op in RECV_OPS or node.index in self.starts

    def awaited(self, node: PartNode) -> tuple[int, tuple[int, ...]]:
        """(the slot of the kernel's result, the slots of the outputs) of a node that may have to wait."""
        outputs = range(len(node.output_types))
        return self._number((node.index, -1)), tuple(self._number((node.index, port)) for port in outputs)

    def is_silent(self, node: PartNode) -> bool:
        """Whether there is nothing to run for the node, in a part without branches."""
        constants = self._program.constants
        return node.op in ORDER_OPS or node.op in RECV_OPS or node.index in constants or is_alias(node, constants)

    def note_reads(self, reader: int, edges: Iterable[Edge]) -> None:
        """A node reads these edges, resolved."""
        nodes, constants, region_of = self._program.part.nodes, self._program.constants, self._program.region_of
        here = self.starts.get(reader, region_of[reader])
        for edge in edges:
            is_set = self.comes_from_outside(nodes[edge[0]])
            if not is_set and edge[0] not in constants and region_of[edge[0]] != here:
                self._number(edge)
                self.crossing.add(edge)

    def note_outside(self) -> None:
        """Gives places to all that comes from outside."""
        for node in self._program.part.nodes:
            if node.index in self.starts:
                self.awaited(node)
            elif self.comes_from_outside(node):
                self._number((node.index, 0))

    def _number(self, edge: Edge) -> int:
        return self.numbers.setdefault(edge, len(self.numbers))


def straight_slots(program: Program) -> Slots:
    """Those of a part without branches and loops."""
    slots = Slots(program, {})
    for node in program.part.nodes:
        if is_alias(node, program.constants):
            slots.origin[node.index, 0] = slots.resolve(node.inputs[0])
        slots.note_reads(node.index, map(slots.resolve, node.inputs))
    slots.note_outside()
    return slots
