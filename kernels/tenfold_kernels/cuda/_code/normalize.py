"""Bodies of batch and local response normalisation: numbers a channel, and windows of channels. See cuda/nn_norm.py.

Images may be half, which is computed as float32; what is made of them for a moment, and vectors of channels, are of the
type that is computed with.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numba import cuda

from tenfold_kernels.cuda._code.device import device, element_of, number_of, sqrt
from tenfold_kernels.cuda.narrow_text import wide

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np


def forward(channels, epsilon, scale_C, variance_C, factor_C):  # type: ignore[no-untyped-def]
    # factor = scale / √(variance + ε)
    for c in range(cuda.grid(1), channels, cuda.gridsize(1)):
        factor_C[c] = scale_C[c] / sqrt(variance_C[c] + epsilon)


def estimates(channels, keep, take, unbias, mean_C, variance_C, old_mean_C, old_variance_C, new_mean_C, new_variance_C):  # type: ignore[no-untyped-def]
    # keep · old + take · batch's, of which the variance is corrected; `old` is not read where nothing of it is kept.
    for c in range(cuda.grid(1), channels, cuda.gridsize(1)):
        mean = take * mean_C[c]
        variance = take * (unbias * variance_C[c])
        if keep != 0:
            mean += keep * old_mean_C[c]
            variance += keep * old_variance_C[c]
        new_mean_C[c] = mean
        new_variance_C[c] = variance


def backward(channels, epsilon, count, scale_C, variance_C, total_C, product_C, factor_C, average_C, slope_C, slant_C):  # type: ignore[no-untyped-def]
    # Of Σ gradient and Σ gradient · (x − mean): what the gradients of x and of scale (slant) are made of.
    for c in range(cuda.grid(1), channels, cuda.gridsize(1)):
        deviation = sqrt(variance_C[c] + epsilon)
        factor_C[c] = scale_C[c] / deviation
        average_C[c] = total_C[c] / count
        slope_C[c] = product_C[c] / count / deviation / deviation
        slant_C[c] = product_C[c] / deviation


def _norm(dtype: np.dtype[Any]) -> Any:
    """Of images of that type."""
    number, zero = number_of(dtype), wide(dtype).type(0)

    @device
    def norm(x, i, channels, radius, bias, alpha):  # type: ignore[no-untyped-def]
        # bias + alpha · Σ x² of the channels around that of element i.
        c = i % channels
        total = zero
        for near in range(max(c - radius, 0), min(c + radius + 1, channels)):
            value = number(x[i - c + near])
            total += value * value
        return bias + alpha * total

    return norm


def response(dtype: np.dtype[Any]) -> Callable[..., None]:
    """(count, channels, radius, bias, alpha, −beta, x, out): x · norm^−beta, a thread an element."""
    norm, number, element = _norm(dtype), number_of(dtype), element_of(dtype)

    def run(count, channels, radius, bias, alpha, power, x, out):  # type: ignore[no-untyped-def]
        for i in range(cuda.grid(1), count, cuda.gridsize(1)):
            out[i] = element(number(x[i]) * norm(x, i, channels, radius, bias, alpha) ** power)

    return run


def response_shares(dtype: np.dtype[Any]) -> Callable[..., None]:
    """(count, channels, radius, bias, alpha, −beta, given, x, y, scaled, shares)

    scaled is given · norm^−beta, shares are given · y / norm.
    """
    norm_of, number = _norm(dtype), number_of(dtype)

    def run(count, channels, radius, bias, alpha, power, given, x, y, scaled, shares):  # type: ignore[no-untyped-def]
        for i in range(cuda.grid(1), count, cuda.gridsize(1)):
            norm = norm_of(x, i, channels, radius, bias, alpha)
            scaled[i] = number(given[i]) * norm**power
            shares[i] = number(given[i]) * number(y[i]) / norm

    return run


def response_back(dtype: np.dtype[Any]) -> Callable[..., None]:
    """(count, channels, radius, factor, x, scaled, shares, out): scaled + factor · x · Σ shares of the window"""
    number, element, zero = number_of(dtype), element_of(dtype), wide(dtype).type(0)

    def run(count, channels, radius, factor, x, scaled, shares, out):  # type: ignore[no-untyped-def]
        for i in range(cuda.grid(1), count, cuda.gridsize(1)):
            c = i % channels
            total = zero
            for near in range(max(c - radius, 0), min(c + radius + 1, channels)):
                total += shares[i - c + near]
            out[i] = element(scaled[i] + factor * number(x[i]) * total)

    return run
