"""The gradient of one operation as a graph of its own, for a server that computes the gradient of a function.

Reached through server_gradients.py. The operation is put into an empty graph, its inputs placeholders of
unknown shape, and its row of the table (registry.py) adds the rest. This replaces TensorFlow's C++
gradient functions (core/ops/*_grad.cc).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.gradients.registry import lookup
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.graph import Graph
from tenfold.graph.op_builder import tensor_op
from tenfold.ops import array
from tenfold_core import dtypes, opdefs
from tenfold_core.node_attrs import resolve_attrs
from tenfold_core.node_signature import signature
from tenfold_core.op_gradients import OpGradient

if TYPE_CHECKING:
    from tenfold.graph.tensor import Tensor
    from tenfold_protos.node_def_pb2 import NodeDef


def gradient_of_op(operation: NodeDef) -> OpGradient | None:
    """An OpGradients. Every input has a gradient of its own type, a resource one of its variable's type."""
    rule = lookup(operation.op)
    if rule is None:
        return None
    op_def = opdefs.get(operation.op)
    attrs = {name: value for name, value in resolve_attrs(op_def, operation).items() if name in op_def.attr_by_name}
    types = signature(op_def, attrs)
    with Graph().as_default() as graph:
        xs = [array.placeholder(dtype.base_dtype, name=f"x{i}") for i, dtype in enumerate(types.input_types)]
        op = graph._add_operation(op_def, xs, "op", attrs)
        dys = [
            array.placeholder(y.dtype.base_dtype, shape=y.get_shape(), name=f"dy{i}") for i, y in enumerate(op.outputs)
        ]
        with graph.name_scope("gradient"):
            dxs = [_as_tensor(dx, x) for dx, x in zip(rule(op, *dys), xs, strict=True)]
        return OpGradient(graph.as_graph_def(), tuple(t.op.name for t in (*xs, *dys)), tuple(t.name for t in dxs))


def _as_tensor(dx: Any, x: Tensor) -> Tensor:
    if dx is not None:
        tensor: Tensor = convert_to_tensor(dx)
        return tensor
    dtype = x.dtype.base_dtype
    if dtype == dtypes.resource:
        return array.zeros(tensor_op("VariableShape", input=x), dtypes.float32)
    if dtype == dtypes.string:
        return array.fill(tensor_op("Shape", input=x), b"")
    return tensor_op("ZerosLike", x=x)
