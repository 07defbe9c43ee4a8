"""Makes one product of a sum of products: the gradient of weights that a layer used several times, as an unrolled RNN.

Aᵀ₁B₁ + Aᵀ₂B₂ + … is the product of the As and the Bs, each stacked. An AddN of MatMuls that nobody else reads becomes
one MatMul of all their operands, in pairs, whose kernel stacks them (kernels/cpu/math_matmul.py): no matrix of the size
of the weights is written and read for each use. Other transposes stay: their stacks would copy weights.

A loop adds up the same gradient turn by turn: total + AᵀB. Where nobody else reads that total, it becomes a MatMul of
the total, A and B, whose kernel adds the product to the total where that lies, if it is held by nobody else.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tenfold_compiler.part.node_facts import Constants, views_of_references
from tenfold_core import dtypes
from tenfold_core.opdefs.runtime_ops import ENTER_OPS, EXIT_OPS, NEXT_ITERATION_OPS, SWITCH_OPS

from .edits import absorb, joinable

if TYPE_CHECKING:
    from tenfold_compiler.part.part_graph import PartGraph, PartNode

_TYPES = (dtypes.float32, dtypes.float64)
_ADDS = frozenset(("Add", "AddV2", "AddN"))
#: They hand on the value that they read, under the same name in a compiled region.
_HAND_ON = SWITCH_OPS | EXIT_OPS | NEXT_ITERATION_OPS


def join_sums_of_products(part: PartGraph, constants: Constants) -> int:
    """Returns how many products it made part of another one."""
    sums = [node for node in part.nodes if node.op in _ADDS and len(node.inputs) > 1 and node.index not in constants]
    if not sums:
        return 0
    volatile = views_of_references(part, constants)
    alone = joinable(part, constants, volatile)

    def may_join(product: PartNode, total: PartNode) -> bool:
        return (
            product.op == "MatMul"
            and product.output_types[0] in _TYPES
            and bool(product.attrs.get("transpose_a"))
            and not product.attrs.get("transpose_b")
            and alone(product, total)
        )

    joined = 0
    for total in sums:
        products = [part.nodes[source] for source, _ in total.inputs]
        if total.op == "AddN" and all(may_join(each, total) and len(each.inputs) == 2 for each in products):
            _join(total, products)
            joined += len(products)
    edges = Counter(edge for node in part.nodes for edge in node.inputs)
    for total in sums:
        if total.op in _ADDS and len(total.inputs) == 2 and not any(total.deref):
            for place in (1, 0):
                product, edge = part.nodes[total.inputs[place][0]], total.inputs[1 - place]
                fits = may_join(product, total) and not len(product.inputs) % 2
                if fits and edge[0] not in volatile and _is_let_go(part, constants, edges, edge):
                    _join(total, [product], edge)
                    joined += 1
                    break
    return joined


def _join(total: PartNode, products: list[PartNode], added_to: tuple[int, int] | None = None) -> None:
    total.op, total.attrs = "MatMul", products[0].attrs
    first = [] if added_to is None else [added_to]
    total.inputs = [*first, *(edge for product in products for edge in product.inputs)]
    total.deref = [*(False for _ in first), *(deref for product in products for deref in product.deref)]
    types = [dtype for product in products for dtype in product.input_types]
    total.input_types = (*types[: len(first)], *types)
    absorb(total, products)


def _is_let_go(part: PartGraph, constants: Constants, readers: Counter[tuple[int, int]], edge: tuple[int, int]) -> bool:
    """Whether the edge's one reader is the last that ever reads the value by a name of its own: a kernel may write
    where the value is, if it finds no other reference to it. What enters a loop is read again in its next turn.
    """
    while True:
        node = part.nodes[edge[0]]
        if edge[0] in constants or readers[edge] != 1 or not node.inputs:
            return False
        if node.op not in _HAND_ON:
            return node.op not in ENTER_OPS and not any(node.deref)
        edge = node.inputs[0]
