"""Gradient rows of fake quantisation: passed through inside the range. Follows TensorFlow's ops/array_grad.py.

Definitions in tenfold_core/opdefs/array.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.gradients.registry import gradient
from tenfold.graph.op_builder import apply_op

if TYPE_CHECKING:
    from tenfold.graph.operation import Operation
    from tenfold.graph.tensor import Tensor


@gradient("FakeQuantWithMinMaxArgs")
def _fake_quant_args(op: Operation, g: Tensor) -> Any:
    attrs = {name: op.get_attr(name) for name in ("min", "max", "num_bits", "narrow_range")}
    return apply_op("FakeQuantWithMinMaxArgsGradient", gradients=g, inputs=op.inputs[0], **attrs)


@gradient("FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsPerChannel")
def _fake_quant_vars(op: Operation, g: Tensor) -> Any:
    x, low, high = op.inputs
    attrs = {name: op.get_attr(name) for name in ("num_bits", "narrow_range")}
    return tuple(apply_op(op.type + "Gradient", gradients=g, inputs=x, min=low, max=high, **attrs))


@gradient("QuantizeAndDequantize", "QuantizeAndDequantizeV2", "QuantizeAndDequantizeV3")
def _quantize_and_dequantize(op: Operation, g: Tensor) -> Any:
    # Straight-through estimator: the rounding is ignored.
    return (g, *(None for _ in op.inputs[1:]))


@gradient("QuantizeAndDequantizeV4")
def _quantize_and_dequantize_v4(op: Operation, g: Tensor) -> Any:
    x, low, high = op.inputs
    back = apply_op(
        "QuantizeAndDequantizeV4Grad", gradients=g, input=x, input_min=low, input_max=high, axis=op.get_attr("axis")
    )
    return tuple(back)
