"""The loops of batch normalisation. R pixels, C channels; channels innermost, vectorised.

The caller may count several pixels of few channels as one of many. Sums are taken in the element's own type over a few
pixels, which stay in the first cache, and go on in double, so that a large batch does not lose digits. Follows
fused_batch_norm_op.cc in what is computed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_kernels.cpu._compiled.compiling import compile_loop

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_kernels.arrays import Array

#: Pixels whose sum is taken in the element's own type before it is added to the double.
_RUN = 32


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


def _sums(given_RC, x_RC, mean_C, first, last, total_C, product_C):  # type: ignore[no-untyped-def]
    # Adds Σ given to total, and Σ given · (x − mean) to product (double).
    channels = x_RC.shape[1]
    part, product = np.empty(channels, x_RC.dtype), np.empty(channels, x_RC.dtype)
    for start in range(first, last, _RUN):
        part[:] = 0
        product[:] = 0
        for r in range(start, min(start + _RUN, last)):
            for c in range(channels):
                part[c] += given_RC[r, c]
                product[c] += given_RC[r, c] * (x_RC[r, c] - mean_C[c])
        for c in range(channels):
            total_C[c] += part[c]
            product_C[c] += product[c]


def _scale(x_RC, mean_C, factor_C, offset_C, first, last, out_RC):  # type: ignore[no-untyped-def]
    for r in range(first, last):
        for c in range(x_RC.shape[1]):
            out_RC[r, c] = (x_RC[r, c] - mean_C[c]) * factor_C[c] + offset_C[c]


def _back(gradient_RC, x_RC, mean_C, factor_C, average_C, slope_C, first, last, out_RC):  # type: ignore[no-untyped-def]
    # factor · (gradient − average − (x − mean) · slope)
    for r in range(first, last):
        for c in range(x_RC.shape[1]):
            away = (x_RC[r, c] - mean_C[c]) * slope_C[c]
            out_RC[r, c] = factor_C[c] * (gradient_RC[r, c] - average_C[c] - away)


def _moments_in_numpy(x_RC: Array, first: int, last: int, mean_C: Array, apart_C: Array) -> None:
    wide_RC = x_RC[first:last].astype(np.float64)
    np.mean(wide_RC, axis=0, out=mean_C)
    np.sum(np.square(wide_RC - mean_C), axis=0, out=apart_C)


def _sums_in_numpy(
    given_RC: Array, x_RC: Array, mean_C: Array, first: int, last: int, total_C: Array, product_C: Array
) -> None:
    part = slice(first, last)
    total_C += given_RC[part].sum(axis=0, dtype=np.float64)
    product_C += (given_RC[part] * (x_RC[part] - mean_C)).sum(axis=0, dtype=np.float64)


def _scale_in_numpy(
    x_RC: Array, mean_C: Array, factor_C: Array, offset_C: Array, first: int, last: int, out_RC: Array
) -> None:
    part = slice(first, last)
    np.add((x_RC[part] - mean_C) * factor_C, offset_C, out=out_RC[part])


def _back_in_numpy(
    gradient_RC: Array,
    x_RC: Array,
    mean_C: Array,
    factor_C: Array,
    average_C: Array,
    slope_C: Array,
    first: int,
    last: int,
    out_RC: Array,
) -> None:
    part = slice(first, last)
    away_RC = (x_RC[part] - mean_C) * slope_C
    np.multiply(factor_C, gradient_RC[part] - average_C - away_RC, out=out_RC[part])


def moments(element: Any) -> Callable[..., None]:
    """(x_RC, first, last, mean_C double, Σ (x − mean)² double)"""
    return compile_loop(_moments, "r2 n n x1 x1", element, np.float64, stand_in=_moments_in_numpy, heavy=True)


def sums(element: Any) -> Callable[..., None]:
    """(given_RC, x_RC, mean_C, first, last, total_C double, product_C double, both added to)"""
    return compile_loop(_sums, "r2 r2 r1 n n x1 x1", element, np.float64, stand_in=_sums_in_numpy, heavy=True)


def scale(element: Any) -> Callable[..., None]:
    """(x_RC, mean_C, factor_C, offset_C, first, last, out_RC)"""
    return compile_loop(_scale, "r2 r1 r1 r1 n n w2", element, stand_in=_scale_in_numpy, heavy=True)


def back(element: Any) -> Callable[..., None]:
    """(gradient_RC, x_RC, mean_C, factor_C, average_C, slope_C, first, last, out_RC)"""
    return compile_loop(_back, "r2 r2 r1 r1 r1 r1 n n w2", element, stand_in=_back_in_numpy, heavy=True)
