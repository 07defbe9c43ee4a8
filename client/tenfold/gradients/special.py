"""Gradient rows of special functions; definitions in tenfold_core/opdefs/special.py. Follows math_grad.py."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

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
    "BesselI0",
    "BesselI0e",
    "BesselI1",
    "BesselI1e",
    "BesselJ0",
    "BesselJ1",
    "BesselK0",
    "BesselK0e",
    "BesselK1",
    "BesselK1e",
    "BesselY0",
    "BesselY1",
    "Betainc",
    "Dawsn",
    "Expint",
    "FresnelCos",
    "FresnelSin",
    "Igamma",
    "IgammaGradA",
    "Igammac",
    "Spence",
    "Zeta",
)


@gradient("Digamma")
def _digamma(op: Operation, g: Tensor) -> Any:
    x = op.inputs[0]
    return g * apply_op("Polygamma", a=apply_op("OnesLike", x=x), x=x)


@gradient("Polygamma", broadcasts=True)
def _polygamma(op: Operation, g: Tensor) -> Any:
    order, x = op.inputs
    return None, g * apply_op("Polygamma", a=order + 1.0, x=x)
