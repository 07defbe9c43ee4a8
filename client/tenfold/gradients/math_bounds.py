"""The gradient row of ClipByValue. Follows TensorFlow's ops/clip_ops.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.gradients.registry import gradient
from tenfold.graph.op_builder import apply_op
from tenfold.ops import array as array_ops

if TYPE_CHECKING:
    from tenfold.graph.operation import Operation
    from tenfold.graph.tensor import Tensor


@gradient("ClipByValue")
def _clip_by_value(op: Operation, g: Tensor) -> Any:
    x, low, high = op.inputs
    zeros = apply_op("ZerosLike", x=g)
    below, above = apply_op("Less", x=x, y=low), apply_op("Greater", x=x, y=high)
    inside = apply_op("SelectV2", condition=apply_op("LogicalOr", x=below, y=above), t=zeros, e=g)

    def fold(part: Tensor, like: Tensor) -> Any:
        shape = array_ops.shape(like)
        axes = apply_op("BroadcastGradientArgs", s0=array_ops.shape(x), s1=shape)[1]
        return apply_op("Reshape", tensor=apply_op("Sum", input=part, reduction_indices=axes), shape=shape)

    return (
        inside,
        fold(apply_op("SelectV2", condition=below, t=g, e=zeros), low),
        fold(apply_op("SelectV2", condition=above, t=g, e=zeros), high),
    )
