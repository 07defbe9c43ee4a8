"""What the passes need to know of a node: whether it is pure, who reads it, what it may be a view of.

*Pure* means: the same inputs give the same outputs, nothing else is read or changed, and the op is not run for its
error.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, TypeAlias

from tenfold_core import dtypes, opdefs
from tenfold_core.opdefs import runtime_ops
from tenfold_core.opdefs.runtime_ops import ALIAS_OPS, DYNAMIC_OPS, ORDER_OPS, RECV_OPS, SEND_OPS
from tenfold_kernels import registry

from .cross_memory import device_type_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from .part_graph import PartGraph, PartNode

#: node index → its outputs, for nodes whose outputs are known before the first step.
Constants: TypeAlias = dict[int, tuple[Any, ...]]

#: Families of ops that compute; what the others do (files, queues, variables, control flow) is not a pass's business.
_COMPUTING = frozenset(("array", "image", "linalg", "math", "nn", "random", "special", "string"))
#: Stateless in their definition, but there for the error they raise.
_GUARDS = frozenset(("EnsureShape", "Placeholder", "PlaceholderWithDefault", "PlaceholderV2"))


def is_pure(node: PartNode) -> bool:
    """Whether the node may be computed at another time, once for several, or not at all."""
    return _computes(node.op) and _are_values(node.input_types) and _are_values(node.output_types)


@functools.lru_cache(4096)
def _computes(op: str) -> bool:
    """Whether an op of this name does nothing but compute."""
    if op in ORDER_OPS or op in RECV_OPS or op in SEND_OPS or op in DYNAMIC_OPS or op in _GUARDS:
        return False
    if op in runtime_ops.COPY_OPS:
        return True
    return opdefs.family_of(op) in _COMPUTING and not opdefs.get(op).is_stateful


def _are_values(types: tuple[dtypes.DType, ...]) -> bool:
    # No look-up in a set and no generator: this is asked several times of each node, and they take thrice as long.
    for dtype in types:  # noqa: SIM110
        if dtype is dtypes.resource or dtype is dtypes.variant or dtype.is_ref_dtype:
            return False
    return True


def _may_view_input(node: PartNode) -> bool:
    return registry.may_view_input(node.op, device_type_of(node.node_def.device))


def data_readers(part: PartGraph) -> list[int]:
    """Per node: how many inputs of others read one of its outputs."""
    counts = [0] * len(part.nodes)
    for node in part.nodes:
        for source, _ in node.inputs:
            counts[source] += 1
    return counts


def views_of_references(part: PartGraph, constants: Collection[int]) -> set[int]:
    """Nodes whose output may be a view of a reference variable, so that an assignment changes it later."""
    found: set[int] = set()
    if not any(dtype.is_ref_dtype for node in part.nodes for dtype in node.output_types):
        return found
    known = -1
    while known < len(found):
        # again only for what a loop hands to its next turn
        known = len(found) if part.is_dynamic else len(part.nodes)
        for node in part.nodes:
            if node.index in constants or node.op in SEND_OPS:
                continue
            if (
                (any(node.deref) or any(source in found for source, _ in node.inputs))
                and (node.op in ALIAS_OPS or node.op in DYNAMIC_OPS or _may_view_input(node))
            ) or any(dtype.is_ref_dtype for dtype in node.output_types):
                found.add(node.index)
    return found
