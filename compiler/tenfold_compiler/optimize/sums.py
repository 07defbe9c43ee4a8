"""A sum does the work of what it adds up: products of matrices, or gradients of slices, that nobody else reads.

The gradient of weights that a layer used several times, as an unrolled RNN, is Aᵀ₁B₁ + Aᵀ₂B₂ + …, the product of the As
and the Bs, each stacked: one MatMul of all operands, in pairs, whose kernel stacks them (kernels/cpu/math_matmul.py).
Other transposes stay: their stacks would copy weights. A loop adds it up turn by turn: total + AᵀB becomes a MatMul of
the total, A and B, whose kernel adds the product to the total where that lies, if it is held by nobody else.

The gradient of x[:, i] is an array of x's size, zeros but for one slice, and that of tf.slice is a Pad. Many become one
StridedSliceGrad or Pad, whose kernel adds each slice to its place in one array of zeros (kernels/cpu/array_slice.py).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from tenfold_core import dtypes
from tenfold_core.opdefs.runtime_ops import ENTER_OPS, EXIT_OPS, NEXT_ITERATION_OPS, SWITCH_OPS

from .edits import Joinable, absorb, operands, read

if TYPE_CHECKING:
    from collections.abc import Collection

    from tenfold_compiler.part.node_facts import Constants
    from tenfold_compiler.part.part_graph import Edge, PartGraph, PartNode

_TYPES = (dtypes.float32, dtypes.float64)
#: Switch, Exit and NextIteration hand on the value that they read, under the same name in a compiled region.
_HAND_ON = SWITCH_OPS | EXIT_OPS | NEXT_ITERATION_OPS
#: How many inputs the slices of one tensor have in common: the shape.
_SHARED = {"StridedSliceGrad": 1, "Pad": 0}


def join_sums_of_products(part: PartGraph, constants: Constants) -> int:
    """Returns how many products it made part of another one."""
    sums = _sums(part, constants, ("Add", "AddV2", "AddN"))
    if not sums:
        return 0
    joinable = Joinable(part, constants)

    def may_join(product: PartNode, total: PartNode) -> bool:
        return (
            product.op == "MatMul"
            and product.output_types[0] in _TYPES
            and bool(product.attrs.get("transpose_a"))
            and not product.attrs.get("transpose_b")
            and joinable.into(total, product)
        )

    joined = 0
    for total in sums:
        products = [part.nodes[source] for source, _ in total.inputs]
        if total.op == "AddN" and all(may_join(each, total) and len(each.inputs) == 2 for each in products):
            _join_products(total, products)
            joined += len(products)
    edges = Counter(edge for node in part.nodes for edge in node.inputs)
    for total in sums:
        if total.op == "MatMul" or len(total.inputs) != 2 or any(total.deref):
            continue
        for place in (1, 0):
            product, edge = part.nodes[total.inputs[place][0]], total.inputs[1 - place]
            fits = may_join(product, total) and not len(product.inputs) % 2
            if fits and edge[0] not in joinable.volatile and _is_let_go(part, constants, edges, edge):
                _join_products(total, [product], edge)
                joined += 1
                break
    return joined


def _join_products(total: PartNode, products: list[PartNode], added_to: Edge | None = None) -> None:
    factors = [operand for product in products for operand in operands(product)]
    first = [] if added_to is None else [(added_to, factors[0][1], False)]
    total.op, total.attrs = "MatMul", products[0].attrs
    read(total, [*first, *factors])
    absorb(total, products)


def _is_let_go(part: PartGraph, constants: Constants, readers: Counter[Edge], edge: Edge) -> bool:
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


def join_sums_of_slices(part: PartGraph, constants: Constants) -> int:
    """Returns how many gradients of slices it made part of another one."""
    sums = _sums(part, constants, ("AddN", "AccumulateNV2"))
    joinable = Joinable(part, constants)

    def is_alike(one: PartNode, other: PartNode) -> bool:
        """Whether both are slices of arrays of one shape, as far as can be known, by one set of masks."""
        shared = range(_SHARED[one.op])
        same = all(_are_same(constants, one.inputs[at], other.inputs[at]) for at in shared)
        return one.op == other.op and one.attrs == other.attrs and same

    joined = 0
    for total in sums:
        added = [part.nodes[source] for source, _ in total.inputs]
        found = [node for node in added if node.op in _SHARED and joinable.into(total, node)]
        slices = [node for node in found if is_alike(node, found[0])]
        if len(slices) > 1:
            _join_slices(total, slices)
            joined += len(slices)
    return joined


def _join_slices(total: PartNode, slices: list[PartNode]) -> None:
    first, shared = slices[0], _SHARED[slices[0].op]
    given = [*operands(first)[:shared], *(operand for node in slices for operand in operands(node)[shared:])]
    gone = {node.index for node in slices}
    rest = [operand for operand in operands(total) if operand[0][0] not in gone]
    if rest:
        # the last of them has all inputs before it
        joint = max(slices, key=lambda node: node.index)
        read(total, [*rest, ((joint.index, 0), joint.output_types[0], False)])
        slices = [node for node in slices if node is not joint]
    else:
        joint = total
        joint.op, joint.attrs = first.op, first.attrs
    read(joint, given)
    absorb(joint, slices)


def _sums(part: PartGraph, constants: Constants, ops: Collection[str]) -> list[PartNode]:
    return [node for node in part.nodes if node.op in ops and len(node.inputs) > 1 and node.index not in constants]


def _are_same(constants: Constants, one: Edge, other: Edge) -> bool:
    if one == other:
        return True
    if one[0] not in constants or other[0] not in constants:
        return False
    return bool(np.array_equal(constants[one[0]][one[1]], constants[other[0]][other[1]]))
