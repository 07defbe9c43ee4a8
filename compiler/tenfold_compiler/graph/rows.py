"""A function of one element as one of many at once: each tensor of an element gets a first axis, one row an element.

A pipeline that maps and then batches would call the function for each element and put the results on top of each other;
where every op of the body works row by row, one call gives the batch. That changes no result: such ops have no state,
do not fail, and give the same numbers for a row as for an element. Used by worker/functions.py. In TensorFlow, where it
is asked for: the rewriter's map_vectorization.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core.node_names import TensorName
from tenfold_core.tensor_util import proto_to_tensor

from .node import make_node, new_def

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from .node import Node
    from .runtime_graph import RuntimeGraph

_ELEMENTWISE_NAMES = """
Abs Add AddV2 Atan Atan2 Ceil ClipByValue Cos Elu Equal Erf Exp Expm1 Floor Greater GreaterEqual Identity IsFinite
IsInf IsNan LeakyRelu Less LessEqual Log Log1p LogicalAnd LogicalNot LogicalOr Maximum Minimum Mul Neg NotEqual
OnesLike RealDiv Reciprocal Relu Relu6 Rint Round Rsqrt SelectV2 Selu Sigmoid Sign Sin Softplus Softsign Sqrt Square
SquaredDifference StopGradient Sub Tan Tanh ZerosLike
"""
#: Elementwise ops of any number of inputs that broadcast; none of them ever fails.
ELEMENTWISE = frozenset(_ELEMENTWISE_NAMES.split())
REDUCTIONS = frozenset(("All", "Any", "Max", "Mean", "Min", "Prod", "Sum"))
_NUMBER_NAMES = "float16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool"
_NUMBERS = frozenset(_NUMBER_NAMES.split())


class _NotByRows(Exception):
    """Some node does not work row by row, or it cannot be said whether it does."""


def of_rows(
    graph: RuntimeGraph, ranks: Mapping[str, tuple[int, bool]], outputs: Sequence[TensorName]
) -> tuple[RuntimeGraph, list[bool]] | None:
    """The graph whose parameters have one axis more, first; and which outputs have too.

    `ranks` says by name what rank a parameter has for one element, and whether it has rows: others are as they were,
    and so is an output that depends on no rows. None where the graph cannot be changed so.
    """
    if any(node.op_def.is_stateful for node in graph.nodes.values()):
        return None
    writer = _Rows(graph, ranks)
    try:
        made = [writer.rank(output) for output in outputs]
    except _NotByRows:
        return None
    return graph.with_nodes(writer.nodes.values()), [rank is not None for rank in made]


class _Rows:
    """Writes nodes, those that they need first."""

    def __init__(self, graph: RuntimeGraph, parameters: Mapping[str, tuple[int, bool]]) -> None:
        self._graph, self._parameters = graph, parameters
        self.nodes: dict[str, Node] = {}
        #: Of nodes that have rows: the rank of one. Others are as they were.
        self._ranks: dict[str, int] = {}

    def rank(self, tensor: TensorName) -> int | None:
        """The rank of an element; None for what is the same for all of them."""
        waiting = [tensor.node]
        while waiting:
            name = waiting[-1]
            node = self._graph.nodes[name]
            missing = [] if name in self.nodes else [each.node for each in node.inputs if each.node not in self.nodes]
            if missing:
                waiting += missing
                continue
            waiting.pop()
            if name not in self.nodes:
                self._write(node)
        return self._ranks.get(tensor.node)

    def _write(self, node: Node) -> None:
        if node.control_inputs:
            raise _NotByRows
        if node.name in self._parameters or not any(each.node in self._ranks for each in node.inputs):
            self.nodes[node.name] = node
            rank, has_rows = self._parameters.get(node.name, (0, False))
            if has_rows:
                self._ranks[node.name] = rank
            return
        if any(dtype.name in ("string", "variant", "resource") for dtype in (*node.input_types, *node.output_types)):
            raise _NotByRows
        if node.op in ELEMENTWISE or node.op in ("Cast", "Div", "Pow"):
            self._elementwise(node)
        elif node.op in _CHANGES:
            _CHANGES[node.op](self, node, self.rank_of_rows(node.inputs[:1]))
        else:
            raise _NotByRows

    def _elementwise(self, node: Node) -> None:
        if node.op in ("Div", "Pow") and not node.output_types[0].is_floating:
            raise _NotByRows  # integers may fail
        if node.op == "Cast" and node.output_types[0].name not in _NUMBERS:
            raise _NotByRows
        # of two ranks, a row's axes would have to be moved apart
        rank = self.rank_of_rows([each for each in node.inputs if each.node in self._ranks])
        for each in node.inputs:
            if each.node not in self._ranks and self._plain_rank(each) > rank:
                raise _NotByRows
        self.put(node, rank)

    def put(self, node: Node, rank: int, inputs: Mapping[int, Any] = {}, attrs: Mapping[str, Any] = {}) -> None:
        """The node, with rows, after some inputs are made other constants, and some attributes others."""
        sources = list(node.inputs)
        for number, value in inputs.items():
            name = f"{node.name}/rows_{number}"
            array = np.asarray(value, node.input_types[number].as_numpy_dtype)
            node_def = new_def("Const", name, (), {"dtype": node.input_types[number], "value": array}, node.device)
            self.nodes[name] = make_node(node_def)
            sources[number] = TensorName(name, 0)
        node_def = new_def(node.op, node.name, sources, attrs, node.device)
        for key, attr in node.node_def.attr.items():
            if key not in attrs:
                node_def.attr[key].CopyFrom(attr)
        self.nodes[node.name] = make_node(node_def)
        self._ranks[node.name] = rank

    def _plain_rank(self, tensor: TensorName) -> int:
        found = self._parameters.get(tensor.node)
        return self.constant(tensor).ndim if found is None else found[0]

    def constant(self, tensor: TensorName) -> np.ndarray[Any, np.dtype[Any]]:
        node = self._graph.nodes[tensor.node]
        while node.op == "Identity":
            node = self._graph.nodes[node.inputs[0].node]
        if node.op != "Const":
            raise _NotByRows
        return proto_to_tensor(node.attrs["value"])

    def rank_of_rows(self, inputs: Sequence[TensorName]) -> int:
        """The one rank of these inputs, all of which have rows."""
        found = {self._ranks.get(each.node, -1) for each in inputs}
        if len(found) != 1 or -1 in found:
            raise _NotByRows
        return found.pop()


def _axes(value: Any, rank: int) -> list[int]:
    """Axes of an element as those of its row."""
    axes = [int(axis) for axis in np.asarray(value).reshape(-1)]
    if any(not -rank <= axis < rank for axis in axes):
        raise _NotByRows
    return [axis % rank + 1 for axis in axes]


def _reduction(rows: _Rows, node: Node, rank: int) -> None:
    axes = _axes(rows.constant(node.inputs[1]), rank)
    rows.put(node, rank if node.attrs.get("keep_dims") else rank - len(set(axes)), {1: axes})


def _reverse(rows: _Rows, node: Node, rank: int) -> None:
    rows.put(node, rank, {1: _axes(rows.constant(node.inputs[1]), rank)})


def _expand_dims(rows: _Rows, node: Node, rank: int) -> None:
    (axis,) = _axes(rows.constant(node.inputs[1]), rank + 1)
    rows.put(node, rank + 1, {1: rows.constant(node.inputs[1]) * 0 + axis})


def _squeeze(rows: _Rows, node: Node, rank: int) -> None:
    if not node.attrs.get("squeeze_dims"):
        raise _NotByRows
    axes = _axes(node.attrs["squeeze_dims"], rank)
    rows.put(node, rank - len(set(axes)), attrs={"squeeze_dims": axes})


def _reshape(rows: _Rows, node: Node, rank: int) -> None:
    shape = rows.constant(node.inputs[1]).reshape(-1).tolist()
    if any(size < 0 for size in shape):
        raise _NotByRows
    rows.put(node, len(shape), {1: [-1, *shape]})


def _transpose(rows: _Rows, node: Node, rank: int) -> None:
    order = rows.constant(node.inputs[1]).reshape(-1).tolist()
    rows.put(node, rank, {1: [0, *(axis + 1 for axis in order)]})


def _one_hot(rows: _Rows, node: Node, rank: int) -> None:
    axis = int(node.attrs.get("axis", -1))
    for constant in node.inputs[1:]:
        rows.constant(constant)
    rows.put(node, rank + 1, attrs={"axis": axis if axis < 0 else axis + 1})


def _slice(rows: _Rows, node: Node, rank: int) -> None:
    begin, size = (rows.constant(each).reshape(-1).tolist() for each in node.inputs[1:])
    rows.put(node, rank, {1: [0, *begin], 2: [-1, *size]})


def _pad(rows: _Rows, node: Node, rank: int) -> None:
    paddings, *_ = [rows.constant(each) for each in node.inputs[1:]]
    rows.put(node, rank, {1: np.concatenate([np.zeros((1, 2), paddings.dtype), paddings.reshape(-1, 2)])})


def _pack(rows: _Rows, node: Node, rank: int) -> None:
    rows.rank_of_rows(node.inputs)
    (axis,) = _axes(node.attrs.get("axis", 0), rank + 1)
    rows.put(node, rank + 1, attrs={"axis": axis})


def _concat(rows: _Rows, node: Node, rank: int) -> None:
    rows.rank_of_rows(node.inputs[:-1])
    (axis,) = _axes(rows.constant(node.inputs[-1]), rank)
    rows.put(node, rank, {len(node.inputs) - 1: axis})


#: Op → what writes its node: it gets the rank that an element of the first input has.
_CHANGES: dict[str, Callable[[_Rows, Node, int], None]] = {
    **dict.fromkeys(REDUCTIONS, _reduction),
    "ReverseV2": _reverse,
    "ExpandDims": _expand_dims,
    "Squeeze": _squeeze,
    "Reshape": _reshape,
    "Transpose": _transpose,
    "OneHot": _one_hot,
    "Slice": _slice,
    "Pad": _pad,
    "PadV2": _pad,
    "Pack": _pack,
    "ConcatV2": _concat,
}
