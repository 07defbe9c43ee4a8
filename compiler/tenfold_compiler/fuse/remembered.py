"""Which nodes depend on shapes alone: the sizes in a mean's gradient, the axes of a broadcast's.

    Shape(x) ─► Prod ─► Cast ─► RealDiv ─► Tile        one look-up by x.shape, as long as the shapes come again

The nodes of such a run are a group like those of elementwise ops, but nothing is compiled: what it computes is kept by
shapes (tenfold_kernels/fusion/remembered.py). Called by groups.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold_compiler.part.node_facts import is_pure
from tenfold_core.opdefs.runtime_ops import METADATA_OPS

from .nodes import is_alias

if TYPE_CHECKING:
    from tenfold_compiler.part.node_facts import Constants
    from tenfold_compiler.part.part_graph import PartGraph, PartNode


def nodes_of_shapes(part: PartGraph, constants: Constants) -> frozenset[int]:
    """The nodes whose values depend on constants and on shapes alone."""
    found: set[int] = set()
    for node in part.nodes:
        if node.index in constants or not node.inputs or any(node.deref):
            continue
        if (node.memory is not None and node.op not in METADATA_OPS) or node.copy_of is not None:
            continue
        known = all(source in constants or source in found for source, _ in node.inputs)
        if is_alias(node, constants):
            if known:
                found.add(node.index)
        elif is_pure(node) and node.output_types and (known or node.op in METADATA_OPS):
            found.add(node.index)
    return frozenset(index for index in found if not is_alias(part.nodes[index], constants))


def looks_at_shapes(node: PartNode) -> bool:
    """Whether the node may take any input, because it looks at its shape alone."""
    return node.op in METADATA_OPS
