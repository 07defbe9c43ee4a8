"""Complex numbers: made of two parts, and split into them. Node names follow TensorFlow 1.15."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold.graph.op_builder import tensor_op
from tenfold.ops import array
from tenfold_core import dtypes

if TYPE_CHECKING:
    from tenfold.graph.tensor import Tensor


#: The real type of a complex one, and the reverse.
_REAL = {dtypes.complex64: dtypes.float32, dtypes.complex128: dtypes.float64}


_COMPLEX = {real: kind for kind, real in _REAL.items()}


def complex(real: Any, imag: Any, name: str | None = None) -> Tensor:
    """real + imag j. Raises TypeError unless both are float32 or both float64."""
    real = convert_to_tensor(real, name="real")
    imag = convert_to_tensor(imag, name="imag")
    with name_scope(name, "Complex", [real, imag]) as scope:
        kinds = (real.dtype.base_dtype, imag.dtype.base_dtype)
        if kinds[0] != kinds[1] or kinds[0] not in _COMPLEX:
            raise TypeError(f"real and imag have incorrect types: {kinds[0].name} {kinds[1].name}")
        return tensor_op("Complex", scope, real=real, imag=imag, Tout=_COMPLEX[kinds[0]])


def _part(op_type: str, input: Any, name: str | None) -> Tensor:
    with name_scope(name, op_type, [input]) as scope:
        input = convert_to_tensor(input, name="input")
        if not input.dtype.is_complex:
            real: Tensor = input
            return real
        return tensor_op(op_type, scope, input=input, Tout=_REAL[input.dtype.base_dtype])


def real(input: Any, name: str | None = None) -> Tensor:
    """The real part; a real tensor unchanged."""
    return _part("Real", input, name)


def imag(input: Any, name: str | None = None) -> Tensor:
    """The imaginary part; zeros of a real tensor."""
    with name_scope(name, "Imag", [input]) as scope:
        input = convert_to_tensor(input, name="input")
        if not input.dtype.is_complex:
            return array.zeros_like(input)
        return tensor_op("Imag", scope, input=input, Tout=_REAL[input.dtype.base_dtype])


def angle(input: Any, name: str | None = None) -> Tensor:
    """The argument of complex numbers, in radians; zeros of a real tensor."""
    with name_scope(name, "Angle", [input]) as scope:
        input = convert_to_tensor(input, name="input")
        if not input.dtype.is_complex:
            return array.zeros_like(input)
        return tensor_op("Angle", scope, input=input, Tout=_REAL[input.dtype.base_dtype])


def conj(x: Any, name: str | None = None) -> Tensor:
    """The complex conjugate; a real tensor unchanged. Raises TypeError for a type that is not numeric."""
    x = convert_to_tensor(x, name="x")
    if x.dtype.is_complex or x.dtype.base_dtype == dtypes.variant:
        return tensor_op("Conj", name, input=x)
    if x.dtype.is_floating or x.dtype.is_integer:
        same: Tensor = x
        return same
    raise TypeError(f"Expected numeric or variant tensor, got dtype {x.dtype!r}")
