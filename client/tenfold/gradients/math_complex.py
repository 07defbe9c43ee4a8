"""Gradient rows of complex numbers: their parts, conjugates and magnitudes; definitions in tenfold_core/opdefs/math.py.

The gradient of a real loss with respect to a complex number is d/dRe + i d/dIm. Follows TensorFlow's ops/math_grad.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.gradients.registry import gradient
from tenfold.graph.op_builder import apply_op

if TYPE_CHECKING:
    from tenfold.graph.operation import Operation
    from tenfold.graph.tensor import Tensor


def _complex(real: Tensor, imag: Tensor, like: Tensor) -> Tensor:
    result: Tensor = apply_op("Complex", real=real, imag=imag, Tout=like.dtype.base_dtype)
    return result


@gradient("Complex", broadcasts=True)
def _of_complex(op: Operation, g: Tensor) -> Any:
    kind = op.inputs[0].dtype.base_dtype
    return apply_op("Real", input=g, Tout=kind), apply_op("Imag", input=g, Tout=kind)


@gradient("Real")
def _real(op: Operation, g: Tensor) -> Any:
    return _complex(g, apply_op("ZerosLike", x=g), op.inputs[0])


@gradient("Imag")
def _imag(op: Operation, g: Tensor) -> Any:
    return _complex(apply_op("ZerosLike", x=g), g, op.inputs[0])


@gradient("Conj")
def _conj(op: Operation, g: Tensor) -> Any:
    return apply_op("Conj", input=g)


@gradient("ComplexAbs")
def _complex_abs(op: Operation, g: Tensor) -> Any:
    # g · z / |z|; Sign would say that it has no derivative itself
    z, nothing = op.inputs[0], apply_op("ZerosLike", x=g)
    return apply_op("DivNoNan", x=_complex(g, nothing, z) * z, y=_complex(op.outputs[0], nothing, z))


@gradient("Angle")
def _angle(op: Operation, g: Tensor) -> Any:
    # d angle / dRe = -Im / |z|², d angle / dIm = Re / |z|².
    z, kind = op.inputs[0], g.dtype.base_dtype
    re, im = apply_op("Real", input=z, Tout=kind), apply_op("Imag", input=z, Tout=kind)
    factor = g / (re * re + im * im)
    return _complex(apply_op("Neg", x=im) * factor, re * factor, z)
