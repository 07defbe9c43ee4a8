"""Makes one product of a sum of products: the gradient of weights that a layer used several times, as an unrolled RNN.

Aᵀ₁B₁ + Aᵀ₂B₂ + … is the product of the As and the Bs, each stacked. An AddN of MatMuls that nobody else reads becomes
one MatMul of all their operands, in pairs, whose kernel stacks them (math_matmul.py): no matrix of the size of the
weights is written and read for each use. Other transposes stay: their stacks would copy weights.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold_core import dtypes

from .nodes import Constants, data_readers, hangs_on_branch, retire, views_of_references

if TYPE_CHECKING:
    from ..part import PartGraph, PartNode

_TYPES = (dtypes.float32, dtypes.float64)


def join_sums_of_products(part: PartGraph, constants: Constants) -> int:
    """Returns how many products it made part of another one."""
    sums = [node for node in part.nodes if node.op == "AddN" and len(node.inputs) > 1 and node.index not in constants]
    if not sums:
        return 0
    readers, volatile = data_readers(part), views_of_references(part, constants)

    def may_join(product: PartNode, total: PartNode) -> bool:
        return (
            product.op == "MatMul"
            and product.output_types[0] in _TYPES
            and len(product.inputs) == 2
            and readers[product.index] == 1
            and product.index not in constants
            and bool(product.attrs.get("transpose_a"))
            and not product.attrs.get("transpose_b")
            and product.node_def.device == total.node_def.device
            and not any(source in volatile for source, _ in product.inputs)
            and not hangs_on_branch(part, product)
        )

    joined = 0
    for total in sums:
        products = [part.nodes[source] for source, _ in total.inputs]
        if not all(may_join(product, total) for product in products):
            continue
        total.op, total.attrs = "MatMul", products[0].attrs
        total.inputs = [edge for product in products for edge in product.inputs]
        total.deref = [deref for product in products for deref in product.deref]
        total.input_types = tuple(dtype for product in products for dtype in product.input_types)
        total.controls = sorted({*total.controls, *(product.index for product in products)})
        for product in products:
            retire(product)
        joined += len(products)
    return joined
