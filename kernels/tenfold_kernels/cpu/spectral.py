"""Fourier transforms over the last one, two or three dimensions, on numpy.fft.

Single precision is computed in single precision where NumPy does so (from 2.0 on), and rounded to it otherwise. Outputs
are fresh. Follows fft_ops.cc: the real transforms crop or pad to fft_length first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core.memory_limits import allow
from tenfold_kernels.arrays import Array, as_array, invalid, output_type, shape_text
from tenfold_kernels.registry import Compute, KernelNode, kernel

if TYPE_CHECKING:
    from collections.abc import Callable


def _dimensions(op: str) -> int:
    return int(op[-2]) if op.endswith("D") else 1


def _check(x: Array, count: int) -> None:
    if x.ndim < count:
        raise invalid(f"Input must have rank of at least {count} but got: {shape_text(x.shape)}")


@kernel("FFT", "FFT2D", "FFT3D", "IFFT", "IFFT2D", "IFFT3D",
        "BatchFFT", "BatchFFT2D", "BatchFFT3D", "BatchIFFT", "BatchIFFT2D", "BatchIFFT3D")  # fmt: skip
def build_fft(node: KernelNode) -> Compute:
    """Complex to complex; the inverse divides by the number of elements."""
    count, dtype = _dimensions(node.op), output_type(node)
    transform: Any = np.fft.ifftn if "IFFT" in node.op else np.fft.fftn
    axes = tuple(range(-count, 0))

    def compute(x: Array) -> Array:
        _check(x, count)
        if x.size == 0:
            return np.empty(x.shape, dtype)
        return as_array(transform(x, axes=axes)).astype(dtype, copy=False)

    return compute


def _lengths(node: KernelNode, value: Array, count: int) -> list[int]:
    if value.shape != (count,):
        raise invalid(f"fft_length must have shape [{count}], got {shape_text(value.shape)}")
    lengths = [int(n) for n in value.tolist()]
    if min(lengths) < 0:
        raise invalid(f"fft_length must be >= 0, got {shape_text(lengths)}")
    return lengths


@kernel("RFFT", "RFFT2D", "RFFT3D")
def build_rfft(node: KernelNode) -> Compute:
    """Real to complex: n // 2 + 1 frequencies along the last dimension. The input must be as large as fft_length."""

    def last(length: int) -> tuple[int, int]:
        return length, length // 2 + 1 if length else 0

    return _real_transform(node, np.fft.rfftn, last)


@kernel("IRFFT", "IRFFT2D", "IRFFT3D")
def build_irfft(node: KernelNode) -> Compute:
    """Complex to real: fft_length // 2 + 1 frequencies of the last dimension are read."""

    def last(length: int) -> tuple[int, int]:
        return length // 2 + 1, length

    return _real_transform(node, np.fft.irfftn, last)


def _real_transform(node: KernelNode, transform: Any, last: Callable[[int], tuple[int, int]]) -> Compute:
    """`last` says how much of the last dimension is read, and how much is given, for a length."""
    count, dtype = _dimensions(node.op), output_type(node)
    axes = tuple(range(-count, 0))

    def compute(x: Array, fft_length: Array) -> Array:
        _check(x, count)
        lengths = _lengths(node, fft_length, count)
        read, given = last(lengths[-1])
        for i, least in enumerate((*lengths[:-1], read)):
            # A dimension of size 0 gives nothing, whatever is asked for.
            if x.shape[i - count] and x.shape[i - count] < least:
                raise invalid(
                    f"Input dimension {x.ndim - count + i} must have length of at least {least} but got: "
                    f"{x.shape[i - count]}"
                )
        shape = (*x.shape[:-count], *lengths[:-1], given)
        allow(shape, dtype, 2)
        if x.size == 0 or 0 in shape:
            return np.zeros(shape, dtype)
        return as_array(transform(x, s=lengths, axes=axes)).astype(dtype, copy=False)

    return compute
