"""How large a graph is: whether working on it belongs on the event loop's thread, and what its constants take.

Pure. Used by services/worker/worker.py and the master, which choose a pool by it (decision 0025), and by read_part.py.
The length of a message is asked for only where it is short: protocol buffers write it out to see, a second for 500 MB,
and no other thread runs meanwhile.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from tenfold_core.dtypes import as_dtype

if TYPE_CHECKING:
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
        dtype = as_dtype(tensor.dtype)
    except TypeError:
        return 0
    return max(0, dtype.size * prod(extent.size for extent in extents))
