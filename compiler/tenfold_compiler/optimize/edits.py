"""What the passes do to nodes: take one out, let one do the work of others, lead its readers past it.

A node that is taken out becomes a NoOp that waits for what the node waited for. Used by the passes of this package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold_compiler.part.node_facts import data_readers
from tenfold_core.opdefs.runtime_ops import BRANCH_OPS, ENTER_OPS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from tenfold_compiler.part.part_graph import PartGraph, PartNode


def hangs_on_branch(part: PartGraph, node: PartNode) -> bool:
    """Whether the node reads a branch or what enters a loop: a NoOp in its place, which only waits for the Switch or
    Enter, would be alive in other branches and other turns.
    """
    if not part.is_dynamic:
        return False
    return any(part.nodes[source].op in BRANCH_OPS or part.nodes[source].op in ENTER_OPS for source, _ in node.inputs)


def retire(node: PartNode, *after: int) -> None:
    """Turns the node into a NoOp that waits for its sources and for `after`: no node reads its values any more."""
    node.controls = sorted({*node.controls, *(source for source, _ in node.inputs), *after} - {node.index})
    node.op = "NoOp"
    node.inputs, node.deref = [], []
    node.attrs, node.input_types, node.output_types = {}, (), ()
    node.memory = None


def joinable(
    part: PartGraph, constants: Collection[int], volatile: Collection[int]
) -> Callable[[PartNode, PartNode], bool]:
    """Says of a node and the sum that reads it whether the sum may do the node's work: it alone reads the node, in the
    host's memory and on the same device, and reads nothing `volatile` (views_of_references).
    """
    readers = data_readers(part)

    def may_join(node: PartNode, total: PartNode) -> bool:
        return (
            readers[node.index] == 1
            and node.index not in constants
            and node.node_def.device == total.node_def.device
            and node.memory is None
            and total.memory is None
            and not any(source in volatile for source, _ in node.inputs)
            and not hangs_on_branch(part, node)
        )

    return may_join


def absorb(node: PartNode, others: Sequence[PartNode]) -> None:
    """`node` does the work of `others` from now on, and waits for what they waited for."""
    node.controls = sorted({*node.controls, *(other.index for other in others)})
    for other in others:
        retire(other)


def read_past(part: PartGraph, edges: dict[tuple[int, int], tuple[int, int]]) -> None:
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
            for edge in (source, *passed):
                ends[edge] = target
            node.inputs[position] = target
            if waits is None:
                waits = set(node.controls)
            if source[0] not in waits:
                waits.add(source[0])
                node.controls.append(source[0])
