"""Bodies of batch and local response normalisation: numbers a channel, and windows of channels. See cuda/nn_norm.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np  # noqa: F401 # the simulator looks for it here
from numba import cuda

from tenfold_kernels.cuda._code.device import device, sqrt

if TYPE_CHECKING:
    from collections.abc import Callable


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


@device
def _norm(x, start, begin, end, bias, alpha, zero):  # type: ignore[no-untyped-def]
    # bias + alpha · Σ x² of the channels from begin to end of a pixel.
    total = zero
    for c in range(begin, end):
        value = x[start + c]
        total += value * value
    return bias + alpha * total


def response(zero: Any) -> Callable[..., None]:
    """(count, channels, radius, bias, alpha, −beta, x, out): x · norm^−beta, a thread an element."""

    def run(count, channels, radius, bias, alpha, power, x, out):  # type: ignore[no-untyped-def]
        for i in range(cuda.grid(1), count, cuda.gridsize(1)):
            c = i % channels
            norm = _norm(x, i - c, max(c - radius, 0), min(c + radius + 1, channels), bias, alpha, zero)
            out[i] = x[i] * norm**power

    return run


def response_shares(zero: Any) -> Callable[..., None]:
    """(count, channels, radius, bias, alpha, −beta, given, x, y, scaled, shares)

    scaled is given · norm^−beta, shares are given · y / norm.
    """

    def run(count, channels, radius, bias, alpha, power, given, x, y, scaled, shares):  # type: ignore[no-untyped-def]
        for i in range(cuda.grid(1), count, cuda.gridsize(1)):
            c = i % channels
            norm = _norm(x, i - c, max(c - radius, 0), min(c + radius + 1, channels), bias, alpha, zero)
            scaled[i] = given[i] * norm**power
            shares[i] = given[i] * y[i] / norm

    return run


def response_back(zero: Any) -> Callable[..., None]:
    """(count, channels, radius, factor, x, scaled, shares, out): scaled + factor · x · Σ shares of the window"""

    def run(count, channels, radius, factor, x, scaled, shares, out):  # type: ignore[no-untyped-def]
        for i in range(cuda.grid(1), count, cuda.gridsize(1)):
            c = i % channels
            total = zero
            for near in range(max(c - radius, 0), min(c + radius + 1, channels)):
                total += shares[i - c + near]
            out[i] = scaled[i] + factor * x[i] * total

    return run
