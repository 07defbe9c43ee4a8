"""A reduction does the work of what leads to it, where nobody else reads that.

    Shape(x), Shape(y) ─► BroadcastGradientArgs ─► Sum(g) ─► Reshape(…, Shape(x))       Reshape(g, Shape(x), Shape(y))
    GatherV2(a, i), GatherV2(b, k) ─► Mul ─► Sum(…, axes)                               Sum(a, i, b, k, axes)

Where shapes are not known, the gradient of every x + y looks for axes to sum over, in a loop in every turn, and almost
always there are none: then the one node gives its input (kernels/cpu/array_shape.py). The sum of products of rows is a
gradient of `sparse_tensor_dense_matmul`: kernels/cpu/_sparse_products.py reads each row where it lies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold_compiler.part.cross_memory import device_type_of
from tenfold_core import dtypes

from .edits import Joinable, absorb, operands, read

if TYPE_CHECKING:
    from tenfold_compiler.part.node_facts import Constants
    from tenfold_compiler.part.part_graph import PartGraph, PartNode

_GATHERS = frozenset(("Gather", "GatherV2"))
_TYPES = frozenset((dtypes.float32, dtypes.float64))


def join_broadcast_gradients(part: PartGraph, constants: Constants) -> int:
    """Returns how many sums it made part of a Reshape; what worked out their axes may be dead then."""
    found = [
        (node, total, args, port)
        for node in part.nodes
        if node.op == "Reshape" and len(node.inputs) == 2 and node.index not in constants
        for total in (part.nodes[node.inputs[0][0]],)
        if total.op == "Sum" and len(total.inputs) == 2 and not total.attrs.get("keep_dims")
        for source, port in (total.inputs[1],)
        for args in (part.nodes[source],)
        if args.op == "BroadcastGradientArgs" and source not in constants and args.inputs[port] == node.inputs[1]
    ]
    joinable = Joinable(part, constants)
    joined = 0
    for node, total, args, port in found:
        if joinable.into(node, total) and not any((*node.deref, *args.deref)):
            read(node, [operands(total)[0], operands(node)[1], operands(args)[1 - port]])
            node.controls = [*node.controls, *args.controls]
            absorb(node, [total])
            joined += 1
    return joined


def join_products_of_rows(part: PartGraph, constants: Constants) -> int:
    """Returns how many sums it made sums of products of rows. What the kernel cannot do in one pass, as other axes, it
    does in the steps that it was made of.
    """
    found = [
        (node, product, rows)
        for node in part.nodes
        if node.op == "Sum" and len(node.inputs) == 2 and node.index not in constants
        for product in (part.nodes[node.inputs[0][0]],)
        if product.op == "Mul" and product.output_types[0] in _TYPES and not any(node.deref)
        for rows in ([part.nodes[source] for source, _ in product.inputs],)
        if all(each.op in _GATHERS and _picks_rows(each, constants) for each in rows) and rows[0] is not rows[1]
    ]
    joinable = Joinable(part, constants)
    joined = 0
    for node, product, rows in found:
        is_host = device_type_of(node.node_def.device) == "CPU"
        if is_host and joinable.into(node, product, *rows):
            read(node, [*(operand for each in rows for operand in operands(each)[:2]), operands(node)[1]])
            absorb(node, [product, *rows])
            joined += 1
    return joined


def _picks_rows(gather: PartNode, constants: Constants) -> bool:
    """Whether it gathers along the first axis; a folded one gathers no more."""
    if gather.index in constants or gather.attrs.get("batch_dims"):
        return False
    if len(gather.inputs) == 2:
        return True
    source, port = gather.inputs[2]
    return source in constants and constants[source][port].ndim == 0 and int(constants[source][port]) == 0
