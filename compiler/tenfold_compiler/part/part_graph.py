"""One partition as nodes and edges: attrs resolved, types known. Made by read_part.py, changed by what follows it.

Names follow TensorFlow's graph.h.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from tenfold_core import errors
from tenfold_core.memory_limits import exhausted
from tenfold_core.node_names import node_reference
from tenfold_core.opdefs.runtime_ops import MERGE_OPS, NEXT_ITERATION_OPS
from tenfold_core.rendezvous_key import make_key

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tenfold_core.dtypes import DType
    from tenfold_protos.node_def_pb2 import NodeDef

#: One output of one node: its index, and the port.
Edge: TypeAlias = tuple[int, int]

#: How numpy says that an array that is not a scalar was asked whether it is true, by the code of a branch or a loop.
_NO_SCALAR = "The truth value of an "
#: How numpy says that an array's size in bytes is not a number that it can hold.
_TOO_LARGE = ("array is too big", "Maximum allowed dimension exceeded", "iterator is too large")


@dataclass(slots=True, eq=False)
class PartNode:
    """One node. Edges are indices into `PartGraph.nodes`."""

    index: int
    name: str
    op: str
    node_def: NodeDef
    attrs: Mapping[str, Any]
    input_types: tuple[DType, ...]
    output_types: tuple[DType, ...]
    #: (node, output port) of each data input, in order.
    inputs: list[tuple[int, int]] = field(default_factory=list)
    #: True where the producer's output is a reference and this input wants its value; parallel to inputs.
    deref: list[bool] = field(default_factory=list)
    controls: list[int] = field(default_factory=list)
    #: Its kernel may return a Waiting. Set by build.py, which has the kernels.
    blocking: bool = False
    #: (which inputs, which outputs) are in the memory of its device, a GPU; None where all are in the host's. Set by
    #: cross_memory.py; the passes that write code for the host leave a node that has it alone.
    memory: tuple[tuple[bool, ...], tuple[bool, ...]] | None = None
    #: Of a copy that cross_memory.py put in: the node of the graph whose output it copies.
    copy_of: NodeDef | None = None

    @property
    def sources(self) -> list[int]:
        """The nodes that it reads or waits for."""
        return [source for source, _ in self.inputs] + self.controls

    @property
    def client_terminated(self) -> bool:
        """True for the _Recv of a feed and the _Send of a fetch."""
        return bool(self.attrs.get("client_terminated", False))

    def rendezvous_key(self, frame_iter: str = "0:0") -> str:
        """The key of a Send or Recv node."""
        a = self.attrs
        return make_key(
            _text(a["send_device"]),
            int(a["send_device_incarnation"]),
            _text(a["recv_device"]),
            _text(a["tensor_name"]),
            frame_iter,
        )


@dataclass(slots=True)
class PartGraph:
    """A partition: nodes in a topological order in which loops' back edges are left out."""

    nodes: list[PartNode]
    is_dynamic: bool
    #: How the frames of its loops are numbered (frame_numbers.py).
    old_frames: bool = False
    #: Bytes that it takes while it is registered, about.
    size: int = 0


def is_back_edge(nodes: Sequence[PartNode], node: PartNode, source: int) -> bool:
    """Whether the edge from `source` leads into the next turn of a loop."""
    return node.op in MERGE_OPS and nodes[source].op in NEXT_ITERATION_OPS


def is_variable(nodes: Sequence[PartNode], node: PartNode) -> bool:
    """Whether the node is a Merge that takes a loop's variable from one turn to the next."""
    return node.op in MERGE_OPS and any(nodes[source].op in NEXT_ITERATION_OPS for source, _ in node.inputs)


def sources_of(nodes: Sequence[PartNode], node: PartNode) -> list[int]:
    """The nodes that `node` reads or waits for, but for a loop's back edge."""
    if node.op not in MERGE_OPS:
        return node.sources
    return [source for source in node.sources if nodes[source].op not in NEXT_ITERATION_OPS]


def renumber(nodes: Sequence[PartNode]) -> dict[int, int]:
    """Makes each node's place its index, which the edges follow. Returns old index → new."""
    new = {node.index: place for place, node in enumerate(nodes)}
    for node in nodes:
        node.index = new[node.index]
        node.inputs = [(new[source], port) for source, port in node.inputs]
        node.controls = [new[source] for source in node.controls]
    return new


def node_error(node: PartNode | NodeDef, error: BaseException) -> errors.OpError:
    """`error` as the OpError of `node`: class kept, "[[{{node NAME}}]]" added once; others become InternalError.

    One that comes from a GPU, not from what it was given, names the device too. A copy's is that of what it copies."""
    device = ""
    if not isinstance(node, PartNode):
        node_def = node
    else:
        node_def = node.copy_of or node.node_def
        if node.memory is not None or node.copy_of is not None:
            device = node.node_def.device
    if isinstance(error, errors.OpError):
        if "{{node " in error.message:
            return error
        text, code = error.message, error.code
    elif isinstance(error, MemoryError):
        text, code = _out_of_memory(error), errors.RESOURCE_EXHAUSTED
    elif isinstance(error, ValueError) and str(error).startswith(_TOO_LARGE):
        text, code = f"{node_def.op} would make an array beyond any memory: {error}", errors.INVALID_ARGUMENT
    elif isinstance(error, ValueError) and str(error).startswith(_NO_SCALAR):
        text, code = f"What a branch or a loop asks of {node_def.op} must be a scalar: {error}", errors.INVALID_ARGUMENT
    else:
        text, code = f"{node_def.op} failed with {type(error).__name__}: {error}", errors.INTERNAL
    if device and code in (errors.RESOURCE_EXHAUSTED, errors.INTERNAL):
        text = f"{text} (on {device})"
    return errors.from_code(code, text + node_reference(node_def.name), node_def, None)


def _out_of_memory(error: MemoryError) -> str:
    """TensorFlow's words; NumPy says in attributes what it could not have."""
    shape, dtype = getattr(error, "shape", None), getattr(error, "dtype", None)
    if shape is None or dtype is None:
        return f"OOM: {str(error) or 'the memory is used up'}"
    return exhausted(shape, dtype, "the memory is used up").message


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value
