"""Which programs' running time is settled by the shapes of what they are fed: the rest never runs on the event loop.

The `sized_by` of an op's definition names the inputs whose values its work comes from: a step that took a microsecond
may take a minute for another number in the same place. `sized_by_values` says whether some such value of a part may
come from outside: from a feed, another task, a variable, a file. Values made of constants and shapes do not: shapes
that were not measured are seen at run time (services/worker/run_policy.py). Called once per program; decision 0025 has
the whole rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold_core import dtypes, opdefs
from tenfold_core.opdefs import runtime_ops as ops

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from .part_graph import PartGraph, PartNode


def sized_by_values(part: PartGraph, constants: Collection[int]) -> bool:
    """Whether the work of some node comes from a value that is not made of constants and shapes alone.

    `constants` are the nodes whose values are known. One pass: nodes come in topological order.
    """
    #: Nodes with an output that can be chosen from outside, and of Unique that only its first output is so.
    loose: set[int] = set()
    elements_only: set[int] = set()

    def is_loose(edge: tuple[int, int]) -> bool:
        return edge[0] in loose and not (edge[0] in elements_only and edge[1] > 0)

    for node in part.nodes:
        if node.index in constants:
            continue
        if any(is_loose(edge) for edge in _size_inputs(node)) or _is_always(node):
            return True
        if _loosens(node, is_loose):
            loose.add(node.index)
            if node.op in ops.UNIQUE_OPS:
                elements_only.add(node.index)
    return False


def _is_always(node: PartNode) -> bool:
    if _sized_by(node) == ("*",):
        return True
    return node.op.startswith("TensorArray") and bool(node.attrs.get("dynamic_size"))


def _sized_by(node: PartNode) -> tuple[str, ...]:
    return opdefs.get(node.op).sized_by or () if opdefs.has(node.op) else ()


def _size_inputs(node: PartNode) -> Iterable[tuple[int, int]]:
    """The edges that bring sizes."""
    names = _sized_by(node)
    if not names:
        return ()
    edges: list[tuple[int, int]] = []
    at = 0
    for arg in opdefs.get(node.op).inputs:
        count = int(node.attrs[arg.number_attr]) if arg.number_attr else 1
        if arg.type_list_attr:
            count = len(node.attrs[arg.type_list_attr])
        if arg.name in names:
            edges += node.inputs[at : at + count]
        at += count
    return edges


def _loosens(node: PartNode, is_loose: Callable[[tuple[int, int]], bool]) -> bool:
    """Whether the node's outputs can be chosen from outside."""
    op = node.op
    if op in ops.COUNTING_OPS or all(dtype.base_dtype is dtypes.bool_ for dtype in node.output_types):
        return False
    if op in ops.RECV_OPS or op in ops.NEXT_ITERATION_OPS or node.blocking:
        return True
    if op in ops.MERGE_OPS and _closes_a_loop(node):
        return True  # a loop's variable is as large as the loop is long
    if op in ops.ALIAS_OPS or op in ops.COPY_OPS or op in ops.BRANCH_OPS or op in ops.PICKING_OPS:
        return is_loose(node.inputs[0]) if node.inputs else True
    if not opdefs.has(op) or opdefs.get(op).is_stateful:
        return True
    if any(dtype.is_ref_dtype for dtype in node.input_types):
        return True
    return any(is_loose(edge) for edge in node.inputs)


def _closes_a_loop(node: PartNode) -> bool:
    """Whether some input comes from a node that stands behind the Merge: the order leaves back edges out."""
    return any(source >= node.index for source, _ in node.inputs)
