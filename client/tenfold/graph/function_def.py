"""Writes the FunctionDef of a body that was built as a graph (function_graph.py).

Edges are named by output argument ("node:output:0") and parameters by name, as TensorFlow's graph_to_function_def.cc
does; what runs for its effect alone is a control output.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold_core.node_signature import signature
from tenfold_protos import function_pb2, op_def_pb2

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold.graph.graph import Graph
    from tenfold.graph.operation import Operation
    from tenfold.graph.tensor import Tensor


def function_def(
    name: str, graph: Graph, parameters: Sequence[Tensor], outputs: Sequence[Tensor], must_run: Sequence[Operation]
) -> function_pb2.FunctionDef:
    """The definition `name`: `parameters` are the Placeholders of `graph` that stand for the arguments."""
    is_parameter = {tensor.op for tensor in parameters}
    result = function_pb2.FunctionDef()
    sign = result.signature
    sign.name = name
    for tensor in parameters:
        sign.input_arg.append(_argument(tensor.op.name, tensor))
    for number, tensor in enumerate(outputs):
        sign.output_arg.append(_argument(f"output_{number}", tensor))
        result.ret[f"output_{number}"] = _edge(tensor, is_parameter)
    for op in graph.get_operations():
        if op in is_parameter:
            continue
        node = result.node_def.add()
        node.CopyFrom(op._node_def)
        del node.input[:]
        node.input.extend(_edge(tensor, is_parameter) for tensor in op.inputs)
        node.input.extend(f"^{before.name}" for before in op.control_inputs if before not in is_parameter)
        sign.is_stateful = sign.is_stateful or op._op_def.is_stateful
    for op in must_run:
        sign.control_output.append(op.name)
        result.control_ret[op.name] = op.name
    return result


def _argument(name: str, tensor: Tensor) -> op_def_pb2.OpDef.ArgDef:
    return op_def_pb2.OpDef.ArgDef(name=name, type=tensor.dtype.base_dtype.as_datatype_enum)  # type: ignore[arg-type]


def _edge(tensor: Tensor, parameters: set[Operation]) -> str:
    op = tensor.op
    if op in parameters:
        return op.name
    position = tensor.value_index
    for output, count in zip(op._op_def.outputs, signature(op._op_def, op._attrs).output_counts, strict=True):
        if position < count:
            return f"{op.name}:{output.name}:{position}"
        position -= count
    raise AssertionError(f"{tensor.name} is no output of its operation")
