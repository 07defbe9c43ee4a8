"""Sums the gradient of a broadcast operand to that operand's shape in one node.

    Shape(x), Shape(y) ─► BroadcastGradientArgs ─► Sum(g) ─► Reshape(…, Shape(x))       Reshape(g, Shape(x), Shape(y))

Where shapes are not known, the gradient of every x + y looks for axes to sum over, and almost always there are none:
then the one node gives its input (kernels/cpu/array_shape.py). Only a Sum that nobody else reads is taken. In a loop's
gradient the shapes come from stacks, so what worked out the axes before would do so in every turn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold_compiler.part.node_facts import Constants, views_of_references

from .edits import absorb, joinable

if TYPE_CHECKING:
    from tenfold_compiler.part.part_graph import PartGraph, PartNode


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
    if not found:
        return 0
    alone = joinable(part, constants, views_of_references(part, constants))
    joined = 0
    for node, total, args, port in found:
        if alone(total, node) and not any((*node.deref, *total.deref, *args.deref)):
            _join(node, total, args, args.inputs[1 - port])
            joined += 1
    return joined


def _join(node: PartNode, total: PartNode, args: PartNode, other: tuple[int, int]) -> None:
    node.inputs = [total.inputs[0], node.inputs[1], other]
    node.input_types = (total.input_types[0], node.input_types[1], args.input_types[0])
    node.deref = [False] * 3
    node.controls = sorted({*node.controls, *args.controls})
    absorb(node, [total])
