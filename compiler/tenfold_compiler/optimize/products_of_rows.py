"""Sums products of rows that are picked by number without making the rows.

    GatherV2(a, i), GatherV2(b, k) ─► Mul ─► Sum(…, axes)       Sum(a, i, b, k, axes)

The gradient of the values of `sparse_tensor_dense_matmul` is that, here and in TensorFlow's clients: one number an
entry, of two rows that are read once each. The one node's kernel is in cpu/_sparse_products.py; what it cannot do in
one pass, as other axes, it does in the steps that it was made of. Only nodes that nobody else reads are
taken, on a CPU.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold_compiler.part.cross_memory import device_type_of
from tenfold_compiler.part.node_facts import Constants, views_of_references
from tenfold_core import dtypes

from .edits import absorb, joinable

if TYPE_CHECKING:
    from tenfold_compiler.part.part_graph import PartGraph, PartNode

_GATHERS = frozenset(("Gather", "GatherV2"))
_TYPES = frozenset((dtypes.float32, dtypes.float64))


def join_products_of_rows(part: PartGraph, constants: Constants) -> int:
    """Returns how many sums it made sums of products of rows."""
    found = [
        (node, product, rows)
        for node in part.nodes
        if node.op == "Sum" and len(node.inputs) == 2 and node.index not in constants
        for product in (part.nodes[node.inputs[0][0]],)
        if product.op == "Mul" and product.output_types[0] in _TYPES and not any((*node.deref, *product.deref))
        for rows in ([part.nodes[source] for source, _ in product.inputs],)
        if all(each.op in _GATHERS and _picks_rows(each, constants) for each in rows) and rows[0] is not rows[1]
    ]
    if not found:
        return 0
    may_join = joinable(part, constants, views_of_references(part, constants))
    joined = 0
    for node, product, rows in found:
        if device_type_of(node.node_def.device) != "CPU":
            continue
        if may_join(product, node) and all(may_join(each, node) for each in rows):
            _join(node, product, rows)
            joined += 1
    return joined


def _picks_rows(gather: PartNode, constants: Constants) -> bool:
    """Whether it gathers along the first axis, by values that are no references; a folded one gathers no more."""
    if gather.index in constants or any(gather.deref) or gather.attrs.get("batch_dims"):
        return False
    if len(gather.inputs) == 2:
        return True
    source, port = gather.inputs[2]
    return source in constants and constants[source][port].ndim == 0 and int(constants[source][port]) == 0


def _join(node: PartNode, product: PartNode, rows: list[PartNode]) -> None:
    node.inputs = [*(edge for each in rows for edge in each.inputs[:2]), node.inputs[1]]
    node.input_types = (*(dtype for each in rows for dtype in each.input_types[:2]), node.input_types[1])
    node.deref = [False] * 5
    absorb(node, [product, *rows])
