"""The gradient of an operation that calls a function of the graph's library: SymbolicGradient, which the servers make.

Found by registry.py for operations whose type is a function's name and that have no Python function for it. As the
symbolic gradients of TensorFlow 1.15's ops/gradients_util.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.op_builder import apply_op
from tenfold_protos import attr_value_pb2

if TYPE_CHECKING:
    from tenfold.graph.operation import Operation


def gradient_of_call(op: Operation, *grads: Any) -> list[Any]:
    """The gradients of the function's arguments, of the server's making."""
    function = attr_value_pb2.NameAttrList(name=op.type)
    for key, value in op._node_def.attr.items():
        function.attr[key].CopyFrom(value)
    types = [tensor.dtype.base_dtype for tensor in op.inputs]
    return list(apply_op("SymbolicGradient", input=[*op.inputs, *grads], Tout=types, f=function))
