"""Gradient rows of samples by the parameters of their distributions: a sample moves so that its rank stays.

Follows TensorFlow's ops/random_grad.py; definitions in tenfold_core/opdefs/random.py, other rows in random.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.gradients.broadcast import undo_broadcast
from tenfold.gradients.registry import gradient, not_implemented
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


not_implemented("StatelessParameterizedTruncatedNormal")
