"""Takes out nodes that hand on their input (Identity and its kin, Cast to the same type, x·1, x/1, x¹, x − 0), and pure
nodes whose values are not read.

Not x + 0, which turns −0 into 0. Reading a reference is no identity: it takes the value at that time; and v·1 of a
variable is a copy, which an assignment to v must not change. Dead nodes come from gradients: of a fed input, that a
NoOp groups with its siblings. Follows grappler's dependency and arithmetic optimizers in part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold_compiler.part.node_facts import Constants, data_readers, is_pure, views_of_references
from tenfold_core.opdefs.runtime_ops import ALIAS_OPS

from .edits import hangs_on_branch, read_past, retire

if TYPE_CHECKING:
    from tenfold_compiler.part.part_graph import Edge, PartGraph, PartNode

_HAND_ON = ALIAS_OPS | frozenset(("Snapshot", "DebugGradientIdentity"))
#: op → (its neutral scalar, the places of inputs where that may stand)
_NEUTRAL = {"Mul": (1, (1, 0)), "RealDiv": (1, (1,)), "Div": (1, (1,)), "Sub": (0, (1,)), "Pow": (1, (1,))}


def drop_identities(part: PartGraph, constants: Constants) -> int:
    """Leads edges past nodes that hand on their input; returns how many it dropped."""
    edges: dict[Edge, Edge] = {}
    volatile = views_of_references(part, constants)
    for node in part.nodes:
        position = None if node.index in constants else _handed_on(node, constants)
        if position is None or node.deref[position] or hangs_on_branch(part, node):
            continue
        source, port = node.inputs[position]
        if part.nodes[source].output_types[port].is_ref_dtype or (node.op in _NEUTRAL and source in volatile):
            continue
        edges[node.index, 0] = source, port
    read_past(part, edges)
    for index, _ in edges:
        retire(part.nodes[index])
    return len(edges)


def _handed_on(node: PartNode, constants: Constants) -> int | None:
    """The input that is the node's output, or None."""
    if node.op in _HAND_ON:
        return 0
    if node.op == "Cast":
        return 0 if node.input_types[0].base_dtype is node.output_types[0] else None
    neutral, places = _NEUTRAL.get(node.op, (0, ()))
    for position in places:
        source, port = node.inputs[position]
        value = constants[source][port] if source in constants else None
        # only a scalar: a neutral array could broadcast the other input to its shape
        if value is not None and value.ndim == 0 and value.dtype.kind in "iufc" and value == neutral:
            return 1 - position
    return None


def drop_dead_code(part: PartGraph, constants: Constants) -> int:
    """Drops pure nodes whose values are not read; returns how many. A node without any reader, not even a control edge,
    is what the client asked for: it stays, and so does its error.
    """
    readers = data_readers(part)
    waited_for = {control for node in part.nodes for control in node.controls}
    dropped = 0
    for node in reversed(part.nodes):
        if readers[node.index] or node.index not in waited_for or node.index in constants or not is_pure(node):
            continue
        if hangs_on_branch(part, node):
            continue
        for source, _ in node.inputs:
            readers[source] -= 1
            waited_for.add(source)
        retire(node)
        dropped += 1
    return dropped
