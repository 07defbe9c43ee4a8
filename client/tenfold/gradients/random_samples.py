"""Gradient rows of samples by the parameters of their distributions: a sample moves so that its rank stays.

Follows TensorFlow's ops/random_grad.py; definitions in tenfold_core/opdefs/random.py, other rows in random.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold.gradients.broadcast import undo_broadcast
from tenfold.gradients.registry import gradient
from tenfold.graph.op_builder import apply_op

if TYPE_CHECKING:
    from tenfold.graph.operation import Operation
    from tenfold.graph.tensor import Tensor


def _of_parameter(op: Operation, parameter: Tensor, g: Tensor) -> Any:
    """`g`, one number a sample, summed to the parameter's shape."""
    return undo_broadcast(op.outputs[0], parameter, None, g)[1]


@gradient("StatelessRandomGammaV2", "StatelessRandomGammaV3")
def _stateless_random_gamma(op: Operation, g: Tensor) -> Any:
    alpha = op.inputs[-1]
    spread = alpha + apply_op("ZerosLike", x=op.outputs[0])
    slope = apply_op("RandomGammaGrad", alpha=spread, sample=op.outputs[0])
    return (*[None] * (len(op.inputs) - 1), _of_parameter(op, alpha, g * slope))


def _below(x: Tensor) -> Any:
    """The part of a normal distribution below x, exact far out on the left, too."""
    return apply_op("Erfc", x=x * float(-np.sqrt(0.5))) * 0.5


@gradient("StatelessParameterizedTruncatedNormal")
def _stateless_truncated_normal(op: Operation, g: Tensor) -> Any:
    mean, deviation, lowest, highest = op.inputs[2:]
    sample, low, high = ((x - mean) / deviation for x in (op.outputs[0], lowest, highest))
    info = np.finfo(mean.dtype.as_numpy_dtype)
    part = (_below(sample) - _below(low)) / (_below(high) - _below(low))
    part = apply_op("Maximum", x=apply_op("Minimum", x=part, y=float(1 - info.eps)), y=float(info.tiny))
    by_high = apply_op("Exp", x=0.5 * (sample * sample - high * high) + apply_op("Log", x=part))
    by_low = apply_op("Exp", x=0.5 * (sample * sample - low * low) + apply_op("Log1p", x=-part))
    slopes = zip(op.inputs[2:], (apply_op("OnesLike", x=sample), sample, by_low, by_high), strict=True)
    return (None, None, *(_of_parameter(op, parameter, g * slope) for parameter, slope in slopes))
