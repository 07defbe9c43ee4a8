"""Gradient rows of special functions; definitions in tenfold_core/opdefs/special.py. Follows math_grad.py."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold.gradients.broadcast import undo_broadcast
from tenfold.gradients.registry import gradient, not_implemented
from tenfold.graph.op_builder import apply_op

if TYPE_CHECKING:
    from tenfold.graph.operation import Operation
    from tenfold.graph.tensor import Tensor


@gradient("Erfinv")
def _erfinv(op: Operation, g: Tensor) -> Any:
    # d erfinv(x) = √π / 2 · exp(erfinv(x)²)
    return g * (math.sqrt(math.pi) / 2) * apply_op("Exp", x=apply_op("Square", x=op.outputs[0]))


@gradient("Ndtri")
def _ndtri(op: Operation, g: Tensor) -> Any:
    return g * math.sqrt(2 * math.pi) * apply_op("Exp", x=apply_op("Square", x=op.outputs[0]) * 0.5)


@gradient("Xlog1py", broadcasts=True)
def _xlog1py(op: Operation, g: Tensor) -> Any:
    x, y = op.inputs
    is_zero = apply_op("Cast", x=apply_op("NotEqual", x=x, y=apply_op("ZerosLike", x=x)), DstT=x.dtype.base_dtype)
    return g * apply_op("Xlog1py", x=is_zero, y=y), g * apply_op("Xdivy", x=x, y=y + 1.0)


not_implemented(
    "BesselJ0",
    "BesselJ1",
    "BesselK0",
    "BesselK0e",
    "BesselK1",
    "BesselK1e",
    "BesselY0",
    "BesselY1",
    "Dawsn",
    "Expint",
    "FresnelCos",
    "FresnelSin",
    "IgammaGradA",
    "Spence",
)


@gradient("Digamma")
def _digamma(op: Operation, g: Tensor) -> Any:
    x = op.inputs[0]
    return g * apply_op("Polygamma", a=apply_op("OnesLike", x=x), x=x)


@gradient("Polygamma", broadcasts=True)
def _polygamma(op: Operation, g: Tensor) -> Any:
    order, x = op.inputs
    return None, g * apply_op("Polygamma", a=order + 1.0, x=x)


def _sign(x: Tensor) -> Tensor:
    sign: Tensor = apply_op("Sign", x=x)
    return sign


@gradient("BesselI0")
def _bessel_i0(op: Operation, g: Tensor) -> Any:
    return g * apply_op("BesselI1", x=op.inputs[0])


@gradient("BesselI0e")
def _bessel_i0e(op: Operation, g: Tensor) -> Any:
    x = op.inputs[0]
    return g * (apply_op("BesselI1e", x=x) - _sign(x) * op.outputs[0])


def _of_i1(op: Operation, g: Tensor, zeroth: str, is_scaled: bool) -> Any:
    # I1' = I0 − I1 / x, which is 1/2 where x is nothing
    x, y = op.inputs[0], op.outputs[0]
    epsilon = float(np.finfo(x.dtype.as_numpy_dtype).eps)
    is_far = apply_op("Greater", x=apply_op("Abs", x=x), y=epsilon)
    ones = apply_op("OnesLike", x=x)
    safe = apply_op("SelectV2", condition=is_far, t=x, e=ones * epsilon)
    slope = apply_op(zeroth, x=safe) - y / safe
    if is_scaled:
        slope = slope - y * _sign(safe)
    return g * apply_op("SelectV2", condition=is_far, t=slope, e=ones * 0.5)


@gradient("BesselI1")
def _bessel_i1(op: Operation, g: Tensor) -> Any:
    return _of_i1(op, g, "BesselI0", is_scaled=False)


@gradient("BesselI1e")
def _bessel_i1e(op: Operation, g: Tensor) -> Any:
    return _of_i1(op, g, "BesselI0e", is_scaled=True)


def _of_igamma(op: Operation, g: Tensor) -> tuple[Any, Any]:
    # by logarithms: gamma(a) is large where its quotient is not
    a, x = op.inputs
    density = apply_op("Exp", x=(a - 1.0) * apply_op("Log", x=x) - x - apply_op("Lgamma", x=a))
    return (
        apply_op("MulNoNan", x=apply_op("IgammaGradA", a=a, x=x), y=g),
        apply_op("MulNoNan", x=density, y=g),
    )


@gradient("Igamma", broadcasts=True)
def _igamma(op: Operation, g: Tensor) -> Any:
    return _of_igamma(op, g)


@gradient("Igammac", broadcasts=True)
def _igammac(op: Operation, g: Tensor) -> Any:
    of_a, of_x = _of_igamma(op, g)
    return -of_a, -of_x


@gradient("Betainc")
def _betainc(op: Operation, g: Tensor) -> Any:
    # by x alone, as TensorFlow
    a, b, x = op.inputs
    gammas = (apply_op("Lgamma", x=each) for each in (a, b, a + b))
    of_a, of_b, of_both = gammas
    logarithm = (b - 1.0) * apply_op("Log1p", x=-x) + (a - 1.0) * apply_op("Log", x=x)
    density = apply_op("Exp", x=logarithm - (of_a + of_b - of_both))
    # scalars stand for as many as there are of the others
    _, of_x = undo_broadcast(op.outputs[0], x, None, apply_op("MulNoNan", x=density, y=g))
    return None, None, of_x


@gradient("Zeta", broadcasts=True)
def _zeta(op: Operation, g: Tensor) -> Any:
    # by q alone, as TensorFlow
    x, q = op.inputs
    return None, apply_op("MulNoNan", x=-x * apply_op("Zeta", x=x + 1.0, q=q), y=g)
