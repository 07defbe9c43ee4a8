"""The second derivative of a fused batch normalisation: its gradient once more, composed of small ops and derived.

The first derivative is a kernel (nn_conv.py). Follows TensorFlow 1.15's ops/nn_grad.py in what has a gradient: the
statistics of an inference have none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.gradients.registry import gradient
from tenfold.gradients.walker import gradients
from tenfold.ops import array as array_ops
from tenfold.ops import math as math_ops

if TYPE_CHECKING:
    from tenfold.graph.operation import Operation
    from tenfold.graph.tensor import Tensor


@gradient("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3")
def _fused_batch_norm_grad(op: Operation, *grads: Any) -> Any:
    given = list(op.inputs[:3])
    made = _composed(op, *given)
    flowing = [(first, second) for first, second in zip(made, grads[:3], strict=True) if second is not None]
    # they may be made of each other: the rest of the way is theirs
    weights = [second for _, second in flowing]
    found = gradients([first for first, _ in flowing], given, weights, stop_gradients=given)
    return (*found, *[None] * (len(op.inputs) - 3))


def _composed(op: Operation, g: Tensor, x: Tensor, scale: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """What the op gives: the gradients of its image, its scale and its offset."""
    dtype = x.dtype
    layout, rank = op.get_attr("data_format").decode(), x.shape.ndims or 4
    channels = 1 if layout.startswith("NC") else rank - 1
    axes = [axis for axis in range(rank) if axis != channels]
    row = [-1 if axis == channels else 1 for axis in range(rank)]
    x, g = math_ops.cast(x, scale.dtype), math_ops.cast(g, scale.dtype)
    if op.get_attr("is_training"):
        mean = math_ops.reduce_mean(x, axes, keepdims=True)
        variance = math_ops.reduce_mean(math_ops.square(x - mean), axes, keepdims=True)
    else:
        mean, variance = (array_ops.reshape(statistic, row) for statistic in op.inputs[3:5])
    inverse = math_ops.rsqrt(variance + op.get_attr("epsilon"))
    normal = (x - mean) * inverse
    weight = array_ops.reshape(scale, row) * inverse
    if op.get_attr("is_training"):
        # what moves the batch's own mean and variance moves nothing
        along = math_ops.reduce_mean(g * normal, axes, keepdims=True)
        back = weight * (g - math_ops.reduce_mean(g, axes, keepdims=True) - normal * along)
    else:
        back = weight * g
    return math_ops.cast(back, dtype), math_ops.reduce_sum(g * normal, axes), math_ops.reduce_sum(g, axes)
