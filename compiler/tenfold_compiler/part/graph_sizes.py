"""How much work a graph is, before it is compiled and when it runs: what of it belongs on the event loop's thread.

`is_small`: whether it is compiled there; asked by the worker and the master. The length of a message is asked for only
where it is short: protocol buffers write it out to see, a second for 500 MB, and no other thread runs meanwhile.
`sized_by_values`: whether its running time is settled by more than the shapes of what it is fed. The `sized_by` of an
op's definition names the inputs whose values its work comes from. Shapes that were not measured are seen at run time
(services/worker/run_policy.py). Decision 0025 has the whole rule.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from tenfold_core import dtypes, opdefs
from tenfold_core.opdefs import runtime_ops as ops

from .part_graph import Edge, PartGraph, PartNode, is_variable

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from tenfold_protos.graph_pb2 import GraphDef
    from tenfold_protos.node_def_pb2 import NodeDef

#: A graph of fewer nodes, and bytes, is worked on where it came in: on the event loop's thread.
SMALL_NODES, SMALL_BYTES = 1_000, 1 << 20
#: Dimensions of the largest tensor there is.
_MOST_DIMENSIONS = 254


def is_small(graph_def: GraphDef) -> bool:
    """Whether working on the graph takes little time: few nodes, of which no function makes many."""
    return small_size(graph_def) is not None


def small_size(graph_def: GraphDef) -> int | None:
    """Bytes of a small graph's message; None for any other graph."""
    if len(graph_def.node) >= SMALL_NODES or graph_def.library.function:
        return None
    if any(constant_size(node) >= SMALL_BYTES for node in graph_def.node):
        return None
    size = graph_def.ByteSize()
    return size if size < SMALL_BYTES else None


def constant_size(node: NodeDef) -> int:
    """Bytes of the tensor that a Const of numbers says it makes; 0 for another node, and for one that says it badly."""
    if node.op != "Const" or "value" not in node.attr:
        return 0
    tensor = node.attr["value"].tensor
    extents = tensor.tensor_shape.dim
    if len(extents) > _MOST_DIMENSIONS:
        return 0
    try:
        dtype = dtypes.as_dtype(tensor.dtype)
    except TypeError:
        return 0
    return max(0, dtype.size * prod(extent.size for extent in extents))


def sized_by_values(part: PartGraph, constants: Collection[int]) -> bool:
    """Whether the work of some node comes from a value that is not made of constants and shapes alone.

    `constants` are the nodes whose values are known. One pass: nodes come in topological order.
    """
    #: Nodes with an output that can be chosen from outside.
    loose: set[int] = set()

    def is_loose(edge: Edge) -> bool:
        # of Unique only its first output is so
        return edge[0] in loose and (edge[1] == 0 or part.nodes[edge[0]].op not in ops.UNIQUE_OPS)

    for node in part.nodes:
        if node.index in constants:
            continue
        if any(is_loose(edge) for edge in _size_inputs(node)) or _is_always(node):
            return True
        # a loop's variable is as large as the loop is long
        if is_variable(part.nodes, node) or _loosens(node, is_loose):
            loose.add(node.index)
    return False


def _is_always(node: PartNode) -> bool:
    return _sized_by(node) == ("*",) or (node.op.startswith("TensorArray") and bool(node.attrs.get("dynamic_size")))


def _sized_by(node: PartNode) -> tuple[str, ...]:
    return opdefs.get(node.op).sized_by or () if opdefs.has(node.op) else ()


def _size_inputs(node: PartNode) -> Iterable[Edge]:
    """The edges that bring sizes."""
    names = _sized_by(node)
    if not names:
        return ()
    edges: list[Edge] = []
    at = 0
    for arg in opdefs.get(node.op).inputs:
        count = int(node.attrs[arg.number_attr]) if arg.number_attr else 1
        if arg.type_list_attr:
            count = len(node.attrs[arg.type_list_attr])
        if arg.name in names:
            edges += node.inputs[at : at + count]
        at += count
    return edges


def _loosens(node: PartNode, is_loose: Callable[[Edge], bool]) -> bool:
    """Whether the node's outputs can be chosen from outside."""
    op = node.op
    if op in ops.COUNTING_OPS or all(dtype.base_dtype is dtypes.bool_ for dtype in node.output_types):
        return False
    if op in ops.RECV_OPS or op in ops.NEXT_ITERATION_OPS or node.blocking:
        return True
    if op in ops.ALIAS_OPS or op in ops.COPY_OPS or op in ops.BRANCH_OPS or op in ops.PICKING_OPS:
        return is_loose(node.inputs[0]) if node.inputs else True
    if not opdefs.has(op) or opdefs.get(op).is_stateful or any(dtype.is_ref_dtype for dtype in node.input_types):
        return True
    return any(is_loose(edge) for edge in node.inputs)
