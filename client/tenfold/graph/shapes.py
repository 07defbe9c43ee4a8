"""Static shapes: runs the shape function of an operation and sets the shapes of its outputs.

The functions are in tenfold_core/opdefs; they see input shapes and, where an input's value is known before
the graph runs, that value (graph/constant_value.py). Called once for every new operation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold.graph.constant_value import constant_value_as_shape, known_value
from tenfold_core import errors
from tenfold_core.shape_inference import infer_shapes

if TYPE_CHECKING:
    from tenfold.graph.operation import Operation


def set_output_shapes(op: Operation) -> None:
    """Infers the static shapes of the outputs of `op`. Raises ValueError, naming `op`, if its inputs do not fit."""
    if op._op_def.shape_fn is None:
        return
    inputs = op.inputs
    try:
        shapes = infer_shapes(
            op._op_def,
            op._attrs,
            [tensor.shape for tensor in inputs],
            lambda index: known_value(inputs[index]),
            len(op.outputs),
            lambda index: constant_value_as_shape(inputs[index]),
            op.graph.graph_def_versions.producer,
        )
    except (ValueError, errors.InvalidArgumentError) as error:
        text = error.message if isinstance(error, errors.OpError) else str(error)
        raise ValueError(f"{text} for '{op.name}' (op: '{op.type}') with {_describe_inputs(op)}.") from None
    for tensor, shape in zip(op.outputs, shapes, strict=True):
        tensor._shape = shape


def _describe_inputs(op: Operation) -> str:
    shapes = ", ".join(_brackets(tensor.shape) for tensor in op.inputs)
    text = f"input shapes: {shapes}"
    values = [
        f"input[{index}] = <{np.array2string(value, separator=' ', threshold=10)}>"
        for index, tensor in enumerate(op.inputs)
        if (value := known_value(tensor)) is not None and value.dtype.kind in "iu"
    ]
    return f"{text} and with computed input tensors: {', '.join(values)}" if values else text


def _brackets(shape: Any) -> str:
    if shape.ndims is None:
        return "<unknown>"
    return f"[{','.join('?' if d is None else str(d) for d in shape.as_list())}]"
