"""Gradient rows of the math functions of one input; op definitions are in tenfold_core/opdefs/math.py.

The rest of the family is in math.py and math_reduction.py. Follows TensorFlow's ops/math_grad.py; `g` is the
gradient of the output.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tenfold.gradients.registry import gradient, not_differentiable
from tenfold.graph.op_builder import apply_op
from tenfold.ops import array as array_ops

if TYPE_CHECKING:
    from tenfold.graph.operation import Operation
    from tenfold.graph.tensor import Tensor


def _unary(op_type: str, x: Any) -> Any:
    return apply_op(op_type, x=x)


def _conjugate(x: Tensor) -> Any:
    return apply_op("Conj", input=x) if x.dtype.is_complex else x


@gradient("Neg")
def _neg(op: Operation, g: Tensor) -> Any:
    return _unary("Neg", g)


@gradient("Abs")
def _abs(op: Operation, g: Tensor) -> Any:
    return g * _unary("Sign", op.inputs[0])


@gradient("Sign")
def _sign(op: Operation, g: Tensor) -> Any:
    return apply_op("ZerosLike", x=op.inputs[0])


@gradient("Square", holomorphic=True)
def _square(op: Operation, g: Tensor) -> Any:
    x = op.inputs[0]
    return apply_op("Mul", x=g, y=apply_op("Mul", x=x, y=array_ops.constant(2, dtype=x.dtype.base_dtype)))


# These kernels conjugate y themselves, and give 0 where g is 0 even at a pole: programs rely on it when they
# choose another value there (tf.where).
@gradient("Sqrt")
def _sqrt(op: Operation, g: Tensor) -> Any:
    return apply_op("SqrtGrad", y=op.outputs[0], dy=g)


@gradient("Rsqrt")
def _rsqrt(op: Operation, g: Tensor) -> Any:
    return apply_op("RsqrtGrad", y=op.outputs[0], dy=g)


@gradient("Reciprocal", "Inv")
def _reciprocal(op: Operation, g: Tensor) -> Any:
    return apply_op("ReciprocalGrad", y=op.outputs[0], dy=g)


@gradient("Exp", holomorphic=True)
def _exp(op: Operation, g: Tensor) -> Any:
    return g * op.outputs[0]


@gradient("Expm1", holomorphic=True)
def _expm1(op: Operation, g: Tensor) -> Any:
    return g * _unary("Exp", op.inputs[0])


@gradient("Log", holomorphic=True)
def _log(op: Operation, g: Tensor) -> Any:
    return g * _unary("Reciprocal", op.inputs[0])


@gradient("Log1p", holomorphic=True)
def _log1p(op: Operation, g: Tensor) -> Any:
    return g * _unary("Reciprocal", 1 + op.inputs[0])


@gradient("Sigmoid", holomorphic=True)
def _sigmoid(op: Operation, g: Tensor) -> Any:
    return apply_op("SigmoidGrad", y=op.outputs[0], dy=g)


@gradient("SigmoidGrad", holomorphic=True)
def _sigmoid_grad(op: Operation, g: Tensor) -> Any:
    y, dy = op.inputs
    g_dy = g * dy
    return g_dy - 2.0 * g_dy * y, apply_op("SigmoidGrad", y=y, dy=g)


@gradient("Tanh", holomorphic=True)
def _tanh(op: Operation, g: Tensor) -> Any:
    return apply_op("TanhGrad", y=op.outputs[0], dy=g)


@gradient("TanhGrad", holomorphic=True)
def _tanh_grad(op: Operation, g: Tensor) -> Any:
    y, dy = op.inputs
    return g * -2.0 * dy * y, apply_op("TanhGrad", y=y, dy=g)


@gradient("Sin", holomorphic=True)
def _sin(op: Operation, g: Tensor) -> Any:
    return g * _unary("Cos", op.inputs[0])


@gradient("Cos", holomorphic=True)
def _cos(op: Operation, g: Tensor) -> Any:
    return _unary("Neg", g) * _unary("Sin", op.inputs[0])


@gradient("Tan", holomorphic=True)
def _tan(op: Operation, g: Tensor) -> Any:
    return g * _unary("Square", _unary("Reciprocal", _unary("Cos", op.inputs[0])))


@gradient("Atan", holomorphic=True)
def _atan(op: Operation, g: Tensor) -> Any:
    return g * _unary("Reciprocal", 1 + _unary("Square", op.inputs[0]))


@gradient("Asin", holomorphic=True)
def _asin(op: Operation, g: Tensor) -> Any:
    return g * _unary("Rsqrt", 1 - _unary("Square", op.inputs[0]))


@gradient("Acos", holomorphic=True)
def _acos(op: Operation, g: Tensor) -> Any:
    return _unary("Neg", g) * _unary("Rsqrt", 1 - _unary("Square", op.inputs[0]))


@gradient("Sinh", holomorphic=True)
def _sinh(op: Operation, g: Tensor) -> Any:
    return g * _unary("Cosh", op.inputs[0])


@gradient("Cosh", holomorphic=True)
def _cosh(op: Operation, g: Tensor) -> Any:
    return g * _unary("Sinh", op.inputs[0])


@gradient("Asinh", holomorphic=True)
def _asinh(op: Operation, g: Tensor) -> Any:
    return g / _unary("Cosh", op.outputs[0])


@gradient("Acosh", holomorphic=True)
def _acosh(op: Operation, g: Tensor) -> Any:
    return g / _unary("Sinh", op.outputs[0])


@gradient("Atanh", holomorphic=True)
def _atanh(op: Operation, g: Tensor) -> Any:
    return g * _unary("Reciprocal", 1 - _unary("Square", op.inputs[0]))


@gradient("Lgamma")
def _lgamma(op: Operation, g: Tensor) -> Any:
    return g * _unary("Digamma", op.inputs[0])


@gradient("Erfc")
def _erfc(op: Operation, g: Tensor) -> Any:
    return g * (-2.0 / math.sqrt(math.pi)) * _unary("Exp", _unary("Neg", _unary("Square", op.inputs[0])))


@gradient("Erf")
def _erf(op: Operation, g: Tensor) -> Any:
    return g * (2.0 / math.sqrt(math.pi)) * _unary("Exp", _unary("Neg", _unary("Square", op.inputs[0])))


@gradient("Floor", "Ceil", "Rint", "Round")
def _step(op: Operation, g: Tensor) -> Any:
    return None


not_differentiable(
    "IsFinite",
    "IsInf",
    "IsNan",
    why="a decision",
)


# Their kernels conjugate y, so that a part of the derivative runs against the conjugate of what comes in.
@gradient("SqrtGrad")
def _sqrt_grad(op: Operation, g: Tensor) -> Any:
    share = g / op.inputs[0]
    return apply_op("Neg", x=_conjugate(share)) * op.outputs[0], share * 0.5


@gradient("RsqrtGrad")
def _rsqrt_grad(op: Operation, g: Tensor) -> Any:
    y, dy = _conjugate(op.inputs[0]), op.inputs[1]
    return dy * _conjugate(g) * y * y * -1.5, apply_op("RsqrtGrad", y=y, dy=g)


@gradient("ReciprocalGrad", "InvGrad")
def _reciprocal_grad(op: Operation, g: Tensor) -> Any:
    y, dy = _conjugate(op.inputs[0]), op.inputs[1]
    return dy * _conjugate(g) * y * -2.0, apply_op(op.type, y=y, dy=g)
