"""The loops of local response normalisation. R pixels, C channels; in one pass for the exponents ½ and ¾.

A few pixels' channels lie one after the other in a buffer, with zeros as far as a window reaches between them, so that
window sums are additions of long rows that are moved against each other, 2, 4, 8 … channels at a time: no channel is
special and none waits for another. Follows lrn_op.cc in what is computed.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_kernels.cpu._compiled.compiling import compile_loop, inline
from tenfold_kernels.cpu._compiled.windows import _index

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_kernels.arrays import Array

#: Elements of the buffers: they stay in the first cache.
_BLOCK = 2048


@inline
def _window_sums(near, spare, reach, count, total):  # type: ignore[no-untyped-def]
    # total[i] = Σ of near[i : i + reach]; near and spare are used up, and have count + 2 · reach elements.
    span, offset, rest, places = 1, 0, reach, _index(count)
    for i in range(places):
        total[i] = 0
    while True:
        if rest & 1:
            moved = _index(offset)
            for i in range(places):
                total[i] += near[i + moved]
            offset += span
        rest >>= 1
        if rest == 0:
            return
        # Sums of span elements become sums of twice as many; in another place, for a sum in its own is not vectorised.
        moved = _index(span)
        for i in range(_index(count + reach - span)):
            spare[i] = near[i] + near[i + moved]
        near, spare = spare, near
        span *= 2


@inline
def _squares(x_RC, start, end, radius, near):  # type: ignore[no-untyped-def]
    channels = x_RC.shape[1]
    width = channels + 2 * radius
    near[:] = 0
    for r in range(start, end):
        at = _index((r - start) * width + radius)
        for c in range(_index(channels)):
            near[at + c] = x_RC[r, c] * x_RC[r, c]


@inline
def _rows_of(channels, radius):  # type: ignore[no-untyped-def]
    # How many pixels a buffer holds.
    return max(1, _BLOCK // (channels + 2 * radius))


def _norms(x_RC, radius, bias, alpha, first, last, norms_RC):  # type: ignore[no-untyped-def]
    # bias + alpha · Σ x² over the channels within `radius`, which is smaller than C.
    channels = x_RC.shape[1]
    width, rows, places = channels + 2 * radius, _rows_of(channels, radius), _index(channels)
    near, spare = np.empty((rows + 2) * width, x_RC.dtype), np.empty((rows + 2) * width, x_RC.dtype)
    total = np.empty(rows * width, x_RC.dtype)
    for start in range(first, last, rows):
        end = min(start + rows, last)
        _squares(x_RC, start, end, radius, near)
        _window_sums(near, spare, 2 * radius + 1, (end - start) * width, total)
        for r in range(start, end):
            at = _index((r - start) * width)
            for c in range(places):
                norms_RC[r, c] = bias + alpha * total[at + c]


def _forward(x_RC, radius, bias, alpha, is_half, first, last, out_RC):  # type: ignore[no-untyped-def]
    # x · norm^-½ or -¾; gives how many norms are not finite.
    channels = x_RC.shape[1]
    width, rows, places = channels + 2 * radius, _rows_of(channels, radius), _index(channels)
    near, spare = np.empty((rows + 2) * width, x_RC.dtype), np.empty((rows + 2) * width, x_RC.dtype)
    total = np.empty(rows * width, x_RC.dtype)
    odd = 0
    for start in range(first, last, rows):
        end = min(start + rows, last)
        _squares(x_RC, start, end, radius, near)
        _window_sums(near, spare, 2 * radius + 1, (end - start) * width, total)
        for i in range((end - start) * width):
            odd += 0 if total[i] - total[i] == 0 else 1
        for r in range(start, end):
            at = _index((r - start) * width)
            if is_half:
                for c in range(places):
                    out_RC[r, c] = x_RC[r, c] / math.sqrt(bias + alpha * total[at + c])
            else:
                for c in range(places):
                    root = math.sqrt(bias + alpha * total[at + c])
                    out_RC[r, c] = x_RC[r, c] / (root * math.sqrt(root))
    return odd


def _backward(given_RC, x_RC, y_RC, radius, bias, alpha, factor, is_half, first, last, out_RC):  # type: ignore[no-untyped-def]
    # given · norm^-beta + factor · x · Σ given · y / norm over the channels within `radius`.
    channels = x_RC.shape[1]
    width, rows, places = channels + 2 * radius, _rows_of(channels, radius), _index(channels)
    near, spare = np.empty((rows + 2) * width, x_RC.dtype), np.empty((rows + 2) * width, x_RC.dtype)
    total = np.empty(rows * width, x_RC.dtype)
    for start in range(first, last, rows):
        end = min(start + rows, last)
        _squares(x_RC, start, end, radius, near)
        _window_sums(near, spare, 2 * radius + 1, (end - start) * width, total)
        near[:] = 0
        for r in range(start, end):
            at = _index((r - start) * width)
            for c in range(places):
                norm = bias + alpha * total[at + c]
                near[at + _index(radius) + c] = given_RC[r, c] * y_RC[r, c] / norm
            if is_half:
                for c in range(places):
                    out_RC[r, c] = given_RC[r, c] / math.sqrt(bias + alpha * total[at + c])
            else:
                for c in range(places):
                    root = math.sqrt(bias + alpha * total[at + c])
                    out_RC[r, c] = given_RC[r, c] / (root * math.sqrt(root))
        _window_sums(near, spare, 2 * radius + 1, (end - start) * width, total)
        for r in range(start, end):
            at = _index((r - start) * width)
            for c in range(places):
                out_RC[r, c] += factor * x_RC[r, c] * total[at + c]


def _spread(scaled_RC, x_RC, radius, factor, shares_RC, first, last, out_RC):  # type: ignore[no-untyped-def]
    # out = scaled + factor · x · Σ shares over the channels within `radius`.
    channels = x_RC.shape[1]
    width, rows, places = channels + 2 * radius, _rows_of(channels, radius), _index(channels)
    near, spare = np.empty((rows + 2) * width, x_RC.dtype), np.empty((rows + 2) * width, x_RC.dtype)
    total = np.empty(rows * width, x_RC.dtype)
    for start in range(first, last, rows):
        end = min(start + rows, last)
        near[:] = 0
        for r in range(start, end):
            at = _index((r - start) * width)
            for c in range(places):
                near[at + _index(radius) + c] = shares_RC[r, c]
        _window_sums(near, spare, 2 * radius + 1, (end - start) * width, total)
        for r in range(start, end):
            at = _index((r - start) * width)
            for c in range(places):
                out_RC[r, c] = scaled_RC[r, c] + factor * x_RC[r, c] * total[at + c]


def _sums_in_numpy(x_RC: Array, radius: int) -> Array:
    total = x_RC.copy()
    for d in range(1, radius + 1):
        total[:, :-d] += x_RC[:, d:]
        total[:, d:] += x_RC[:, :-d]
    return total


def _powered_in_numpy(x_RC: Array, norms_RC: Array, is_half: bool, out_RC: Array) -> None:
    roots = np.sqrt(norms_RC)
    np.divide(x_RC, roots if is_half else roots * np.sqrt(roots), out=out_RC)


def _forward_in_numpy(
    x_RC: Array, radius: int, bias: Any, alpha: Any, is_half: bool, first: int, last: int, out_RC: Array
) -> int:
    part = slice(first, last)
    total = _sums_in_numpy(np.square(x_RC[part]), radius)
    _powered_in_numpy(x_RC[part], bias + alpha * total, is_half, out_RC[part])
    return int(np.count_nonzero(~np.isfinite(total)))


def _backward_in_numpy(
    given_RC: Array,
    x_RC: Array,
    y_RC: Array,
    radius: int,
    bias: Any,
    alpha: Any,
    factor: Any,
    is_half: bool,
    first: int,
    last: int,
    out_RC: Array,
) -> None:
    part = slice(first, last)
    norms_RC = bias + alpha * _sums_in_numpy(np.square(x_RC[part]), radius)
    _powered_in_numpy(given_RC[part], norms_RC, is_half, out_RC[part])
    out_RC[part] += factor * x_RC[part] * _sums_in_numpy(given_RC[part] * y_RC[part] / norms_RC, radius)


def norms(element: Any) -> Callable[..., None]:
    """(x_RC, radius, bias, alpha, first, last, norms_RC); radius < C here and below."""
    return compile_loop(_norms, "r2 n s s n n w2", element)


def forward(element: Any) -> Callable[..., int]:
    """(x_RC, radius, bias, alpha, whether the exponent is ½ and not ¾, first, last, out_RC) → norms not finite"""
    return compile_loop(_forward, "r2 n s s b n n w2", element, result="n", stand_in=_forward_in_numpy, heavy=True)


def backward(element: Any) -> Callable[..., None]:
    """(given_RC, x_RC, y_RC, radius, bias, alpha, factor, whether ½, first, last, out_RC)"""
    return compile_loop(_backward, "r2 r2 r2 n s s s b n n w2", element, stand_in=_backward_in_numpy, heavy=True)


def spread(element: Any) -> Callable[..., None]:
    """(scaled_RC, x_RC, radius, factor, shares_RC, first, last, out_RC)"""
    return compile_loop(_spread, "r2 r2 n s r2 n n w2", element)
