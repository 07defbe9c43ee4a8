"""What the passes do to nodes: take one out, let one do the work of others, lead its readers past it.

A node that is taken out becomes a NoOp that waits for what the node waited for. Used by the passes of this package.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from tenfold_compiler.part.node_facts import Constants, data_readers, views_of_references
from tenfold_core.opdefs.runtime_ops import BRANCH_OPS, ENTER_OPS

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Collection, Sequence

    from tenfold_compiler.part.part_graph import Edge, PartGraph, PartNode
    from tenfold_core.dtypes import DType

    #: An edge, its type there, and whether it is a reference whose value is read.
    Operand: TypeAlias = tuple[Edge, DType, bool]


def hangs_on_branch(part: PartGraph, node: PartNode) -> bool:
    """Whether the node reads a branch or what enters a loop: a NoOp in its place, which only waits for the Switch or
    Enter, would be alive in other branches and other turns.
    """
    ops = (part.nodes[source].op for source, _ in node.inputs)
    return part.is_dynamic and any(op in BRANCH_OPS or op in ENTER_OPS for op in ops)


def retire(node: PartNode, *after: int) -> None:
    """Turns the node into a NoOp that waits for its sources and for `after`: no node reads its values any more."""
    node.controls = sorted({*node.sources, *after} - {node.index})
    node.op, node.attrs, node.output_types, node.memory = "NoOp", {}, (), None
    read(node, ())


def operands(node: PartNode) -> list[Operand]:
    """What the node reads."""
    return list(zip(node.inputs, node.input_types, node.deref, strict=True))


def read(node: PartNode, given: Sequence[Operand]) -> None:
    """The node reads these instead of its inputs."""
    node.inputs, node.deref = [edge for edge, _, _ in given], [deref for _, _, deref in given]
    node.input_types = tuple(dtype for _, dtype, _ in given)


def absorb(node: PartNode, others: Sequence[PartNode]) -> None:
    """`node` does the work of `others` from now on, and waits for what they waited for."""
    node.controls = sorted({*node.controls, *(other.index for other in others)})
    for other in others:
        retire(other)


class Joinable:
    """Which nodes the sum that reads them may do the work of."""

    def __init__(self, part: PartGraph, constants: Constants) -> None:
        self._part, self._constants = part, constants

    # for the first that is asked about: in most parts there is nothing to join
    @cached_property
    def _readers(self) -> Counter[int]:
        return data_readers(self._part)

    @cached_property
    def volatile(self) -> Collection[int]:
        """What an assignment may change."""
        return views_of_references(self._part, self._constants)

    def into(self, total: PartNode, *nodes: PartNode) -> bool:
        """Whether `total` alone reads each of these, in the host's memory and on the same device, and they read nothing
        that an assignment may change, no reference either.
        """
        return total.memory is None and all(
            self._readers[node.index] == 1
            and node.index not in self._constants
            and node.node_def.device == total.node_def.device
            and node.memory is None
            and not any(source in self.volatile for source, _ in node.inputs)
            and not hangs_on_branch(self._part, node)
            for node in nodes
        )


def read_past(part: PartGraph, edges: dict[Edge, Edge]) -> None:
    """Leads every reader of an edge in `edges` to another edge; it still waits for the node it read before."""
    if not edges:
        return
    #: Where each edge ends: found once, or a long chain of edges would take the square of its length.
    ends = dict(edges)
    for node in part.nodes:
        waits: set[int] | None = None
        for position, source in enumerate(node.inputs):
            target = ends.get(source)
            if target is None:
                continue
            passed = []
            while target in ends:
                passed.append(target)
                target = ends[target]
            ends.update(dict.fromkeys((source, *passed), target))
            node.inputs[position] = target
            if waits is None:
                waits = set(node.controls)
            if source[0] not in waits:
                waits.add(source[0])
                node.controls.append(source[0])
