"""Gradient rows of Fourier transforms. Each is the scaled inverse transform, as in TensorFlow's signal/fft_ops.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.gradients.registry import gradient, not_implemented
from tenfold.graph.op_builder import apply_op
from tenfold.ops import array as array_ops
from tenfold_core import dtypes

if TYPE_CHECKING:
    from tenfold.graph.operation import Operation
    from tenfold.graph.tensor import Tensor


def _register(op_type: str, rank: int) -> None:
    inverse = op_type.startswith("I")
    other = op_type[1:] if inverse else "I" + op_type

    @gradient(op_type)
    def _transform(op: Operation, g: Tensor) -> Any:
        sizes = array_ops.shape(op.inputs[0])[-rank:]
        count = apply_op("Prod", input=sizes, reduction_indices=[0], keep_dims=False)
        scale = apply_op("Cast", x=count, DstT=g.dtype.base_dtype)
        back = apply_op(other, input=g)
        return apply_op("RealDiv", x=back, y=scale) if inverse else back * scale


for _rank, _suffix in ((1, ""), (2, "2D"), (3, "3D")):
    _register("FFT" + _suffix, _rank)
    _register("IFFT" + _suffix, _rank)

not_implemented("BatchFFT", "BatchFFT2D", "BatchFFT3D", "BatchIFFT", "BatchIFFT2D", "BatchIFFT3D")


def _fitted(x: Tensor, shape: Tensor, rank: int) -> Tensor:
    """`x` cropped, or padded with zeros at the end, to the last `rank` sizes of `shape`."""
    own = array_ops.shape(x)
    lead = own[:-rank]
    smaller = apply_op("Minimum", x=own[-rank:], y=shape[-rank:])
    size = apply_op("ConcatV2", values=[lead, smaller], axis=0)
    cut = apply_op("Slice", input=x, begin=apply_op("ZerosLike", x=size), size=size)
    full = apply_op("ConcatV2", values=[lead, shape[-rank:]], axis=0)
    after = full - size
    pads = apply_op("Pack", values=[apply_op("ZerosLike", x=after), after], axis=1)
    result: Tensor = apply_op("Pad", input=cut, paddings=pads)
    return result


def _count(length: Tensor, like: Tensor) -> Tensor:
    product = apply_op("Prod", input=length, reduction_indices=[0], keep_dims=False)
    result: Tensor = apply_op("Cast", x=product, DstT=like.dtype.base_dtype)
    return result


def _register_real(rank: int, suffix: str) -> None:
    @gradient("RFFT" + suffix)
    def _forward(op: Operation, g: Tensor) -> Any:
        # Pad the kept half with zeros, apply the full inverse transform, and take the real part.
        x, length = op.inputs
        whole = apply_op("IFFT" + suffix, input=_fitted(g, length, rank))
        back = apply_op("Real", input=whole, Tout=x.dtype.base_dtype)
        return _fitted(back * _count(length, x), array_ops.shape(x), rank), None

    @gradient("IRFFT" + suffix)
    def _backward(op: Operation, g: Tensor) -> Any:
        # Every kept number stands for two, except the first, and the middle one of an even length.
        x, length = op.inputs
        last = length[-1]
        places = apply_op("Range", start=0, limit=last // 2 + 1, delta=1)
        single = apply_op(
            "LogicalOr",
            x=apply_op("Equal", x=places, y=0),
            y=apply_op("Equal", x=places * 2, y=last),
        )
        weights = apply_op("Cast", x=2 - apply_op("Cast", x=single, DstT=dtypes.int32), DstT=x.dtype.base_dtype)
        whole = apply_op("RFFT" + suffix, input=g, fft_length=length, Tcomplex=x.dtype.base_dtype)
        return _fitted(whole * weights / _count(length, x), array_ops.shape(x), rank), None


for _rank, _suffix in ((1, ""), (2, "2D"), (3, "3D")):
    _register_real(_rank, _suffix)
