"""Gradient rows of the gradients of activations: second derivatives. The first are in nn.py.

`g` is the gradient of the first derivative's output. Follows TensorFlow's ops/nn_grad.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.gradients.registry import gradient
from tenfold.graph.op_builder import apply_op

if TYPE_CHECKING:
    from tenfold.graph.operation import Operation
    from tenfold.graph.tensor import Tensor


@gradient("EluGrad", "SeluGrad")
def _elu_grad(op: Operation, g: Tensor) -> Any:
    incoming, y = op.inputs
    zeros = apply_op("ZerosLike", x=y)
    below = apply_op("Less", x=y, y=zeros)
    curved = apply_op("SelectV2", condition=below, t=g * incoming, e=zeros)
    return apply_op(op.type, gradients=g, outputs=y), curved


@gradient("LeakyReluGrad")
def _leaky_relu_grad(op: Operation, g: Tensor) -> Any:
    x = op.inputs[1]
    again = apply_op("LeakyReluGrad", gradients=g, features=x, alpha=op.get_attr("alpha"))
    return again, apply_op("ZerosLike", x=x)


@gradient("SoftplusGrad")
def _softplus_grad(op: Operation, g: Tensor) -> Any:
    incoming, x = op.inputs
    # The derivative of the sigmoid, without overflow on either side.
    curve = apply_op("Exp", x=apply_op("Neg", x=x)) + 2.0 + apply_op("Exp", x=x)
    return apply_op("SoftplusGrad", gradients=g, features=x), g * incoming / curve


@gradient("SoftsignGrad")
def _softsign_grad(op: Operation, g: Tensor) -> Any:
    incoming, x = op.inputs
    width = apply_op("Abs", x=x) + 1.0
    curve = apply_op("Sign", x=x) * -2.0 / (width * width * width)
    return apply_op("SoftsignGrad", gradients=g, features=x), g * incoming * curve
