"""The loops of batch normalisation, with the activation that follows it. R pixels, C channels; channels innermost.

The caller may count several pixels of few channels as one of many. An activation is one of ACTIVATIONS, by its place
there; what its gradient asks of its input is computed anew, to the same bit, instead of read. Sums are taken in the
element's own type over a few pixels, which stay in the first cache, and go on in double, so that a large batch does not
lose digits. Follows fused_batch_norm_op.cc in what is computed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_kernels import scalar
from tenfold_kernels.cpu._compiled.compiling import compile_loop, inline

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_kernels.arrays import Array

#: Pixels whose sum is taken in the element's own type before it is added to the double.
_RUN = 32
ACTIVATIONS = ("Identity", "Relu", "Relu6")

_relu, _relu6 = inline(scalar.relu), inline(scalar.relu6)
_relu_grad, _relu6_grad = inline(scalar.relu_grad), inline(scalar.relu6_grad)


@inline
def _activated(y, activation, zero, six):  # type: ignore[no-untyped-def]
    if activation == 0:
        return y
    return _relu(y, zero) if activation == 1 else _relu6(y, zero, six)


@inline
def _passed(gradient, y, activation, zero, six):  # type: ignore[no-untyped-def]
    # What of the gradient gets through the activation of y.
    if activation == 0:
        return gradient
    return _relu_grad(gradient, y, zero) if activation == 1 else _relu6_grad(gradient, y, zero, six)


def _moments(x_RC, first, last, mean_C, apart_C):  # type: ignore[no-untyped-def]
    # The mean, and Σ (x − mean)², in one pass over memory: of each run by itself, and put together as Chan, Golub and
    # LeVeque (1983) do.
    channels = x_RC.shape[1]
    middle, away = np.empty(channels, x_RC.dtype), np.empty(channels, x_RC.dtype)
    square = np.empty(channels, x_RC.dtype)
    mean_C[:] = 0
    apart_C[:] = 0
    for start in range(first, last, _RUN):
        end = min(start + _RUN, last)
        count = end - start
        middle[:] = 0
        away[:] = 0
        square[:] = 0
        for r in range(start, end):
            for c in range(channels):
                middle[c] += x_RC[r, c]
        for c in range(channels):
            middle[c] = middle[c] / count
        for r in range(start, end):
            for c in range(channels):
                apart = x_RC[r, c] - middle[c]
                # `middle` is rounded: what that leaves is the mean of the differences.
                away[c] += apart
                square[c] += apart * apart
        share = count / (end - first)
        before = start - first
        for c in range(channels):
            missed = away[c] / np.float64(count)
            step = np.float64(middle[c]) + missed - mean_C[c]
            mean_C[c] += step * share
            apart_C[c] += square[c] - missed * away[c] + step * step * (before * share)


# fmt: off
def _sums(  # type: ignore[no-untyped-def]
    given_RC, x_RC, mean_C, scale_C, offset_C, activation, zero, six, first, last, total_C, product_C
):
    # Adds Σ given to total, and Σ given · (x − mean) to product (double); of what gets through the activation.
    # fmt: on
    channels = x_RC.shape[1]
    part, product = np.empty(channels, x_RC.dtype), np.empty(channels, x_RC.dtype)
    for start in range(first, last, _RUN):
        part[:] = 0
        product[:] = 0
        for r in range(start, min(start + _RUN, last)):
            for c in range(channels):
                away = x_RC[r, c] - mean_C[c]
                given = _passed(given_RC[r, c], away * scale_C[c] + offset_C[c], activation, zero, six)
                part[c] += given
                product[c] += given * away
        for c in range(channels):
            total_C[c] += part[c]
            product_C[c] += product[c]


# fmt: off
def _scale(  # type: ignore[no-untyped-def]
    x_RC, mean_C, factor_C, offset_C, activation, zero, six, first, last, out_RC
):
    # fmt: on
    for r in range(first, last):
        for c in range(x_RC.shape[1]):
            y = (x_RC[r, c] - mean_C[c]) * factor_C[c] + offset_C[c]
            out_RC[r, c] = _activated(y, activation, zero, six)


# fmt: off
def _back(  # type: ignore[no-untyped-def]
    given_RC, x_RC, mean_C, scale_C, offset_C, activation, zero, six, factor_C, average_C, slope_C, first, last, out_RC
):
    # factor · (given − average − (x − mean) · slope), of what gets through the activation
    # fmt: on
    for r in range(first, last):
        for c in range(x_RC.shape[1]):
            away = x_RC[r, c] - mean_C[c]
            given = _passed(given_RC[r, c], away * scale_C[c] + offset_C[c], activation, zero, six)
            out_RC[r, c] = factor_C[c] * (given - average_C[c] - away * slope_C[c])


def _moments_in_numpy(x_RC: Array, first: int, last: int, mean_C: Array, apart_C: Array) -> None:
    wide_RC = x_RC[first:last].astype(np.float64)
    np.mean(wide_RC, axis=0, out=mean_C)
    np.sum(np.square(wide_RC - mean_C), axis=0, out=apart_C)


def _activated_in_numpy(y: Array, activation: int, zero: Any, six: Any, out: Array) -> None:
    if activation == 0:
        np.copyto(out, y)
        return
    np.maximum(y, zero, out=out)
    if ACTIVATIONS[activation] == "Relu6":
        np.minimum(out, six, out=out)


def _passed_in_numpy(given: Array, away: Array, scale: Array, offset: Array, activation: int, bounds: Any) -> Array:
    if activation == 0:
        return given
    y, (zero, six) = away * scale + offset, bounds
    through = y > zero if activation == 1 else (y > zero) & (y < six)
    passed: Array = np.multiply(given, through, dtype=given.dtype)
    return passed


# fmt: off
def _sums_in_numpy(
    given_RC: Array, x_RC: Array, mean_C: Array, scale_C: Array, offset_C: Array, activation: int, zero: Any, six: Any,
    first: int, last: int, total_C: Array, product_C: Array,
) -> None:
    # fmt: on
    away_RC = x_RC[first:last] - mean_C
    passed_RC = _passed_in_numpy(given_RC[first:last], away_RC, scale_C, offset_C, activation, (zero, six))
    total_C += passed_RC.sum(axis=0, dtype=np.float64)
    product_C += (passed_RC * away_RC).sum(axis=0, dtype=np.float64)


# fmt: off
def _scale_in_numpy(
    x_RC: Array, mean_C: Array, factor_C: Array, offset_C: Array, activation: int, zero: Any, six: Any,
    first: int, last: int, out_RC: Array,
) -> None:
    # fmt: on
    y = (x_RC[first:last] - mean_C) * factor_C + offset_C
    _activated_in_numpy(y, activation, zero, six, out_RC[first:last])


# fmt: off
def _back_in_numpy(
    given_RC: Array, x_RC: Array, mean_C: Array, scale_C: Array, offset_C: Array, activation: int, zero: Any, six: Any,
    factor_C: Array, average_C: Array, slope_C: Array, first: int, last: int, out_RC: Array,
) -> None:
    # fmt: on
    away_RC = x_RC[first:last] - mean_C
    passed_RC = _passed_in_numpy(given_RC[first:last], away_RC, scale_C, offset_C, activation, (zero, six))
    np.multiply(factor_C, passed_RC - average_C - away_RC * slope_C, out=out_RC[first:last])


def moments(element: Any) -> Callable[..., None]:
    """(x_RC, first, last, mean_C double, Σ (x − mean)² double)"""
    return compile_loop(_moments, "r2 n n x1 x1", element, np.float64, stand_in=_moments_in_numpy, heavy=True)


def sums(element: Any) -> Callable[..., None]:
    """(given_RC, x_RC, mean_C, scale_C, offset_C, activation, zero, six, first, last, total_C double, product_C double,
    both added to)
    """
    codes = "r2 r2 r1 r1 r1 n s s n n x1 x1"
    return compile_loop(_sums, codes, element, np.float64, stand_in=_sums_in_numpy, heavy=True)


def scale(element: Any) -> Callable[..., None]:
    """(x_RC, mean_C, factor_C, offset_C, activation, zero, six, first, last, out_RC)"""
    return compile_loop(_scale, "r2 r1 r1 r1 n s s n n w2", element, stand_in=_scale_in_numpy, heavy=True)


def back(element: Any) -> Callable[..., None]:
    """(given_RC, x_RC, mean_C, scale_C, offset_C, activation, zero, six, factor_C, average_C, slope_C, first, last,
    out_RC)
    """
    return compile_loop(_back, "r2 r2 r1 r1 r1 n s s r1 r1 r1 n n w2", element, stand_in=_back_in_numpy, heavy=True)
