"""Places of sparse tensors: checked, numbered, given other shapes, put in order by rows; and rows that are crossed.

    N places, R dimensions, B rows of a batch, M places that are given

A loop that checks answers with the first bad place, −1 where all are good, and then what it wrote means nothing: the
caller says what is wrong with it. Used by sparse.py, sparse_cross.py, array_scatter.py and array_gather.py.
"""

from __future__ import annotations

import functools
import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_kernels.cpu._compiled.compiling import compile_loop, inline
from tenfold_kernels.cpu._compiled.intrinsics import once_2
from tenfold_kernels.hashes import concatenated

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_kernels.arrays import Array


@inline
def _number(indices_NR, dims_R, i):  # type: ignore[no-untyped-def]
    # The row-major number of a place; −1 for one that lies outside.
    number = 0
    for j in range(dims_R.size):
        at = once_2(indices_NR, i, j)
        if at < 0 or at >= dims_R[j]:
            return -1
        number = number * dims_R[j] + at
    return number


def _number_places(indices_NR, dims_R, numbers_N, increasing):  # type: ignore[no-untyped-def]
    last = -1
    for i in range(indices_NR.shape[0]):
        number = _number(indices_NR, dims_R, i)
        if number < 0 or (increasing and number <= last):
            return i
        last = number
        numbers_N[i] = number
    return -1


def _reshape_places(indices_NR, dims_R, wanted_S, out_NS):  # type: ignore[no-untyped-def]
    for i in range(indices_NR.shape[0]):
        number = _number(indices_NR, dims_R, i)
        if number < 0:
            return i
        for j in range(wanted_S.size - 1, -1, -1):
            size = max(wanted_S[j], 1)
            out_NS[i, j] = number % size
            number //= size
    return -1


def _begin_rows(indices_NR, dims_R, begins_B):  # type: ignore[no-untyped-def]
    for i in range(indices_NR.shape[0]):
        row = once_2(indices_NR, i, 0)
        if row < 0 or row >= begins_B.size:
            return -1 - i
        for j in range(dims_R.size):
            if indices_NR[i, j] < 0 or indices_NR[i, j] >= dims_R[j]:
                return -1 - i
        begins_B[row] += 1
    total = 0
    for b in range(begins_B.size):
        size = max(begins_B[b], 1)
        begins_B[b] = total
        total += size
    return total


def _fill_rows(indices_NR, ends_B, out_MR, source_M, back_N):  # type: ignore[no-untyped-def]
    count = indices_NR.shape[0]
    for i in range(count):
        row = once_2(indices_NR, i, 0)
        if row < 0 or row >= ends_B.size:
            return i
        at = ends_B[row]
        if at >= source_M.size:
            return i
        ends_B[row] = at + 1
        for j in range(indices_NR.shape[1]):
            out_MR[at, j] = indices_NR[i, j]
        source_M[at] = i
        back_N[i] = at
    begin = 0
    for b in range(ends_B.size):
        if ends_B[b] == begin:
            if begin >= source_M.size:
                return count
            out_MR[begin, 0] = b
            for j in range(1, indices_NR.shape[1]):
                out_MR[begin, j] = 0
            source_M[begin] = count
            ends_B[b] = begin + 1
        begin = ends_B[b]
    return -1


def _end_rows(indices_NR, ends_B):  # type: ignore[no-untyped-def]
    row = 0
    for i in range(indices_NR.shape[0]):
        own = once_2(indices_NR, i, 0)
        if own < row or own >= ends_B.size:
            return i
        while row < own:
            ends_B[row] = i
            row += 1
    while row < ends_B.size:
        ends_B[row] = indices_NR.shape[0]
        row += 1
    return -1


def _cross(features_F, key, buckets, begins_CB, ends_CB, out_M2, crossed_M):  # type: ignore[no-untyped-def]
    # C columns, F features of all of them. The last column's features change first.
    multiplier = np.uint64(0xC6A4A7935BD1E995)
    shift = np.uint64(47)
    at = 0
    for b in range(begins_CB.shape[1]):
        count = 1
        for c in range(begins_CB.shape[0]):
            count *= ends_CB[c, b] - begins_CB[c, b]
        for number in range(count):
            crossed = key
            rest = number
            left = count
            for c in range(begins_CB.shape[0]):
                left //= ends_CB[c, b] - begins_CB[c, b]
                mixed = features_F[begins_CB[c, b] + rest // left] * multiplier
                rest %= left
                crossed = crossed ^ multiplier ^ ((mixed ^ (mixed >> shift)) * multiplier)
                crossed = crossed * multiplier
                crossed = (crossed ^ (crossed >> shift)) * multiplier
                crossed = crossed ^ (crossed >> shift)
            out_M2[at, 0] = b
            out_M2[at, 1] = number
            crossed_M[at] = np.int64(crossed % buckets)
            at += 1


def _first_outside(indices_NR: Array, dims_R: Array) -> int:
    bad_N = ((indices_NR < 0) | (indices_NR >= dims_R)).any(axis=1)
    return int(bad_N.argmax()) if bad_N.any() else -1


def _numbers(indices_NR: Array, dims_R: Array) -> Array:
    numbers_N = np.zeros(len(indices_NR), np.int64)
    for i, d in enumerate(dims_R.tolist()):
        numbers_N = numbers_N * d + indices_NR[:, i]
    return numbers_N


def _number_places_in_numpy(indices_NR: Array, dims_R: Array, numbers_N: Array, increasing: bool) -> int:
    indices_NR = indices_NR.copy()  # another step may write to them between the check and the numbers
    bad = _first_outside(indices_NR, dims_R)
    end = len(indices_NR) if bad < 0 else bad
    numbers_N[:end] = _numbers(indices_NR[:end], dims_R)
    if increasing:
        falls = np.flatnonzero(np.diff(numbers_N[:end]) <= 0)
        return int(falls[0]) + 1 if falls.size else bad
    return bad


def _reshape_places_in_numpy(indices_NR: Array, dims_R: Array, wanted_S: Array, out_NS: Array) -> int:
    bad = _first_outside(indices_NR, dims_R)
    if bad < 0:
        rest_N = _numbers(indices_NR, dims_R)
        for i in range(len(wanted_S) - 1, -1, -1):
            rest_N, out_NS[:, i] = np.divmod(rest_N, max(int(wanted_S[i]), 1))
    return bad


def _begin_rows_in_numpy(indices_NR: Array, dims_R: Array, begins_B: Array) -> int:
    bad = _first_outside(indices_NR, dims_R)
    if bad >= 0:
        return -1 - bad
    sizes_B = np.maximum(np.bincount(indices_NR[:, 0], minlength=begins_B.size), 1)
    np.cumsum(sizes_B, out=begins_B)
    total = int(sizes_B.sum())
    begins_B -= sizes_B
    return total


def _fill_rows_in_numpy(indices_NR: Array, ends_B: Array, out_MR: Array, source_M: Array, back_N: Array) -> int:
    count = len(indices_NR)
    rows_N = indices_NR[:, 0]
    sizes_B = np.bincount(rows_N, minlength=ends_B.size) if not (rows_N < 0).any() else np.empty(0)
    if sizes_B.size != ends_B.size or (np.maximum(sizes_B, 1) != np.diff(ends_B, append=len(source_M))).any():
        return count
    order_N = np.argsort(indices_NR[:, 0], kind="stable")
    rows_N = indices_NR[order_N, 0]
    places_N = ends_B[rows_N] + np.arange(count) - np.searchsorted(rows_N, rows_N)
    source_M[:] = count
    source_M[places_N] = order_N
    back_N[order_N] = places_N
    out_MR[ends_B, 0] = np.arange(ends_B.size)
    out_MR[ends_B, 1:] = 0
    out_MR[places_N] = indices_NR[order_N]
    ends_B[:] = np.append(ends_B[1:], len(source_M))[: ends_B.size]
    return -1


def _end_rows_in_numpy(indices_NR: Array, ends_B: Array) -> int:
    rows_N = indices_NR[:, 0]
    falls = np.flatnonzero(np.diff(rows_N) < 0)
    ends_B[:] = np.searchsorted(rows_N, np.arange(ends_B.size), side="right")
    return int(falls[0]) + 1 if falls.size else -1


def _cross_in_python(
    features_F: Array,
    key: Any,
    buckets: Any,
    begins_CB: Array,
    ends_CB: Array,
    out_M2: Array,
    crossed_M: Array,
) -> None:
    features, at = features_F.tolist(), 0
    for b, (begins, ends) in enumerate(zip(begins_CB.T.tolist(), ends_CB.T.tolist(), strict=True)):
        columns = [features[begin:end] for begin, end in zip(begins, ends, strict=True)]
        for number, picked in enumerate(itertools.product(*columns)):
            out_M2[at] = b, number
            crossed_M[at] = functools.reduce(concatenated, picked, int(key)) % int(buckets)
            at += 1


def number_places(index: Any) -> Callable[..., int]:
    """(indices_NR, dims_R int64, numbers_N int64, increasing) → the first place that lies outside, or that is not
    behind the one before it if they shall be `increasing`; writes their row-major numbers.
    """
    return compile_loop(_number_places, "r2 i1 x1 b", index, np.int64, result="n", stand_in=_number_places_in_numpy)


def reshape_places() -> Callable[..., int]:
    """(indices_NR, dims_R, wanted_S, out_NS) → the first place that lies outside; the places in the wanted shape."""
    return compile_loop(_reshape_places, "i2 i1 i1 x2", np.int64, result="n", stand_in=_reshape_places_in_numpy)


def begin_rows() -> Callable[..., int]:
    """(indices_NR, dims_R, begins_B of zeros) → how many places there are if each row has one at least, M; or −1 − the
    first place that lies outside. Writes where each row begins.
    """
    return compile_loop(_begin_rows, "i2 i1 x1", np.int64, result="n", stand_in=_begin_rows_in_numpy)


def fill_rows() -> Callable[..., int]:
    """(indices_NR, begins_B, out_MR, source_M, back_N) → −1; or a place that is another one than `begin_rows` saw.

    Gives the places by row, and a row without any gets one in column 0.
    `source` is the place that each came from, N for one that was made; `back` where each went; begins become ends.
    """
    return compile_loop(_fill_rows, "i2 x1 x2 x1 x1", np.int64, result="n", stand_in=_fill_rows_in_numpy)


def end_rows() -> Callable[..., int]:
    """(indices_NR, ends_B) → the first place in an earlier row than the one before, or in none; where each row ends."""
    return compile_loop(_end_rows, "i2 x1", np.int64, result="n", stand_in=_end_rows_in_numpy)


def cross() -> Callable[..., None]:
    """(features_F uint64, key, buckets, begins_CB, ends_CB, out_M2, crossed_M): every combination of a row's features,
    one of each column, its place and the bucket of its hash. M is how many there are in all rows.
    """
    return compile_loop(_cross, "r1 s s i2 i2 x2 x1", np.uint64, np.int64, stand_in=_cross_in_python)
