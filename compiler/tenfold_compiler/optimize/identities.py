"""Leads edges past nodes that hand on their input: Identity and its kin, Cast to the same type, x·1, x/1, x¹, x − 0.

Not x + 0, which turns −0 into 0. Reading a reference is no identity: it takes the value at that time; and v·1 of a
variable is a copy, which an assignment to v must not change. Reshape and Transpose stay, because shapes are not known
here. Follows grappler's dependency and arithmetic optimizers in part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold_compiler.part.node_facts import Constants, views_of_references
from tenfold_core.opdefs.runtime_ops import ALIAS_OPS

from .edits import hangs_on_branch, read_past, retire

if TYPE_CHECKING:
    from tenfold_compiler.part.part_graph import PartGraph, PartNode

_HAND_ON = ALIAS_OPS | frozenset(("Snapshot", "DebugGradientIdentity"))
#: op → (its neutral scalar, whether that may stand on either side or on the right only)
_NEUTRAL = {"Mul": (1, True), "RealDiv": (1, False), "Div": (1, False), "Sub": (0, False), "Pow": (1, False)}


def drop_identities(part: PartGraph, constants: Constants) -> int:
    """Returns how many nodes it dropped."""
    edges: dict[tuple[int, int], tuple[int, int]] = {}
    gone: list[PartNode] = []
    volatile = views_of_references(part, constants)
    for node in part.nodes:
        position = None if node.index in constants else _handed_on(node, constants)
        if position is None or node.deref[position]:
            continue
        source, port = node.inputs[position]
        if hangs_on_branch(part, node):
            continue
        if part.nodes[source].output_types[port].is_ref_dtype or (node.op in _NEUTRAL and source in volatile):
            continue
        edges[node.index, 0] = source, port
        gone.append(node)
    read_past(part, edges)
    for node in gone:
        retire(node)
    return len(gone)


def _handed_on(node: PartNode, constants: Constants) -> int | None:
    """The input that is the node's output, or None."""
    if node.op in _HAND_ON:
        return 0
    if node.op == "Cast":
        return 0 if node.input_types[0].base_dtype is node.output_types[0] else None
    if node.op not in _NEUTRAL:
        return None
    neutral, either = _NEUTRAL[node.op]
    for position in (1, 0) if either else (1,):
        source, port = node.inputs[position]
        value = constants[source][port] if source in constants else None
        # only a scalar: a neutral array could broadcast the other input to its shape
        if value is not None and value.ndim == 0 and value.dtype.kind in "iufc" and value == neutral:
            return 1 - position
    return None
