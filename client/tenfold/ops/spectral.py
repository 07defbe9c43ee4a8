"""Fourier transforms of real signals (`tf.spectral`, `tf.signal`); the complex ones are single operations.

Follows TensorFlow 1.15's ops/signal/fft_ops.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold.graph.constant_value import known_value
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold.graph.op_builder import tensor_op
from tenfold.named import named
from tenfold.ops import array, math
from tenfold_core import dtypes

if TYPE_CHECKING:
    from tenfold.graph.tensor import Tensor


def _lengths(x: Tensor, rank: int, inverse: bool) -> Tensor:
    sizes = array.shape(x)[-rank:]
    if not inverse:
        return sizes
    # The transform of n real numbers has n // 2 + 1 complex ones.
    last = sizes[-1:]
    full = (last - 1) * 2
    return full if rank == 1 else array.concat([sizes[:-1], full], 0)


def _padded(x: Tensor, rank: int, length: Tensor, inverse: bool) -> Tensor:
    """`x` padded with zeros at the end of the dimensions that are shorter than the operation requires."""
    known = known_value(length)
    needed: Any
    if known is not None:
        needed = np.array(known)
        if inverse:
            needed[-1] = needed[-1] // 2 + 1
        sizes = None if x.shape.ndims is None else x.shape.as_list()[-rank:]
        if sizes is not None and None not in sizes and all(a >= b for a, b in zip(sizes, needed, strict=True)):
            return x
    else:
        needed = array.concat([length[:-1], length[-1:] // 2 + 1], 0) if inverse else length
    missing = math.maximum(needed - array.shape(x)[-rank:], 0)
    inner = array.stack([array.zeros_like(missing), missing], axis=1)
    lead = array.fill([array.rank(x) - rank, 2], 0)
    return array.pad(x, array.concat([lead, inner], 0))


def _function(op_type: str, rank: int, inverse: bool) -> Any:
    def function(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Tensor:
        with name_scope(name, op_type.lower(), [input_tensor, fft_length]):
            x = convert_to_tensor(input_tensor, dtypes.complex64 if inverse else dtypes.float32)
            x.shape.with_rank_at_least(rank)
            if fft_length is None:
                length = _lengths(x, rank, inverse)
            else:
                length = convert_to_tensor(fft_length, dtypes.int32)
                x = _padded(x, rank, length, inverse)
            return tensor_op(op_type, None, input=x, fft_length=length)

    doc = f"The operation {op_type} over the last {rank} dimension(s), `fft_length` of them each."
    return named(function, op_type.lower(), doc)


rfft = _function("RFFT", 1, False)
rfft2d = _function("RFFT2D", 2, False)
rfft3d = _function("RFFT3D", 3, False)
irfft = _function("IRFFT", 1, True)
irfft2d = _function("IRFFT2D", 2, True)
irfft3d = _function("IRFFT3D", 3, True)
