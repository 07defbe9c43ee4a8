"""Gather and scatter of rows by index. Every index is checked; the first bad position is returned, −1 if all are good.

A scatter checks all indices before it writes anything: a step with a bad index leaves the variable as it was. Each
number that indexes memory is read once and checked then, so that one that another step changes meanwhile ends the loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_kernels.cpu._compiled.compiling import compile_loop
from tenfold_kernels.cpu._compiled.intrinsics import fetch_ahead, once

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_kernels.arrays import Array

#: Rows between the one that is worked on and the one that is asked for: a table lies in memory, and its rows anywhere.
_AHEAD = 8
#: Columns that are walked along side by side, so that an id is read once for all of them.
_COLUMNS = 16


def _gather_rows(params_LW, indices_N, out_NW):  # type: ignore[no-untyped-def]
    # L rows of the table, W elements a row, N indices.
    limit = params_LW.shape[0]
    width = params_LW.shape[1]
    for i in range(indices_N.size):
        if i + _AHEAD < indices_N.size:
            fetch_ahead(params_LW, indices_N[i + _AHEAD])
        row = once(indices_N, i)
        if row < 0 or row >= limit:
            return i
        for j in range(width):
            out_NW[i, j] = params_LW[row, j]
    return -1


def _scatter_add(var_LW, indices_N, updates_NW, sign):  # type: ignore[no-untyped-def]
    limit = var_LW.shape[0]
    for i in range(indices_N.size):
        if indices_N[i] < 0 or indices_N[i] >= limit:
            return i
    for i in range(indices_N.size):
        if i + _AHEAD < indices_N.size:
            fetch_ahead(var_LW, indices_N[i + _AHEAD])
        row = once(indices_N, i)
        if row < 0 or row >= limit:
            return i
        for j in range(var_LW.shape[1]):
            var_LW[row, j] += sign * updates_NW[i, j]
    return -1


def _scatter_update(var_LW, indices_N, updates_NW):  # type: ignore[no-untyped-def]
    limit = var_LW.shape[0]
    for i in range(indices_N.size):
        if indices_N[i] < 0 or indices_N[i] >= limit:
            return i
    for i in range(indices_N.size):
        if i + _AHEAD < indices_N.size:
            fetch_ahead(var_LW, indices_N[i + _AHEAD])
        row = once(indices_N, i)
        if row < 0 or row >= limit:
            return i
        for j in range(var_LW.shape[1]):
            var_LW[row, j] = updates_NW[i, j]
    return -1


def _add_rows(data_NW, ids_N, out_CW):  # type: ignore[no-untyped-def]
    # C rows of sums; a row of data with a negative id belongs to none.
    count = out_CW.shape[0]
    for i in range(ids_N.size):
        row = once(ids_N, i)
        if row >= count:
            return i
        if row >= 0:
            for j in range(out_CW.shape[1]):
                out_CW[row, j] += data_NW[i, j]
    return -1


def _add_columns(data_WN, ids_N, out_WC):  # type: ignore[no-untyped-def]
    # `_add_rows` of what lies in memory column by column.
    width, count = out_WC.shape
    for first in range(0, width, _COLUMNS):
        last = min(first + _COLUMNS, width)
        for i in range(ids_N.size):
            row = once(ids_N, i)
            if row >= count:
                return i
            if row >= 0:
                for j in range(first, last):
                    out_WC[j, row] += data_WN[j, i]
    return -1


def _add_chosen_rows(data_LW, places_N, ids_N, out_CW):  # type: ignore[no-untyped-def]
    for i in range(ids_N.size):
        place = once(places_N, i)
        row = once(ids_N, i)
        if place < 0 or place >= data_LW.shape[0] or row < 0 or row >= out_CW.shape[0]:
            return i
        for j in range(out_CW.shape[1]):
            out_CW[row, j] += data_LW[place, j]
    return -1


def _fit_segments(places_N, ids_N, length, count, increasing):  # type: ignore[no-untyped-def]
    last = 0
    for i in range(ids_N.size):
        if places_N[i] < 0 or places_N[i] >= length or ids_N[i] < 0 or ids_N[i] >= count:
            return i
        if increasing and ids_N[i] < last:
            return i
        last = ids_N[i]
    return -1


def _split_rows(data_NW, parts_N, ends_P, out_NW):  # type: ignore[no-untyped-def]
    # P parts, one behind the other in out, each in the order of data; `ends` gets where each of them ends.
    parts = ends_P.size
    for p in range(parts):
        ends_P[p] = 0
    for i in range(parts_N.size):
        part = once(parts_N, i)
        if part < 0 or part >= parts:
            return i
        ends_P[part] += 1
    total = 0
    for p in range(parts):
        size = ends_P[p]
        ends_P[p] = total
        total += size
    for i in range(parts_N.size):
        part = once(parts_N, i)
        if part < 0 or part >= parts:
            return i
        at = ends_P[part]
        if at >= out_NW.shape[0]:
            return i
        for j in range(data_NW.shape[1]):
            out_NW[at, j] = data_NW[i, j]
        ends_P[part] = at + 1
    return -1


def _shuffle(words_N, order_N):  # type: ignore[no-untyped-def]
    for i in range(order_N.size - 1):
        j = i + np.int64(words_N[i]) % (order_N.size - i)
        order_N[i], order_N[j] = order_N[j], order_N[i]


def _first_bad(indices_N: Array, limit: int) -> int:
    bad_N = (indices_N < 0) | (indices_N >= limit)
    return int(bad_N.argmax()) if bad_N.any() else -1


def _gather_rows_in_numpy(params_LW: Array, indices_N: Array, out_NW: Array) -> int:
    bad = _first_bad(indices_N, params_LW.shape[0])
    if bad < 0:
        np.take(params_LW, indices_N, axis=0, out=out_NW, mode="clip")
    return bad


def _scatter_add_in_numpy(var_LW: Array, indices_N: Array, updates_NW: Array, sign: float) -> int:
    bad = _first_bad(indices_N, var_LW.shape[0])
    if bad < 0:
        np.add.at(var_LW, indices_N, sign * updates_NW)
    return bad


def _scatter_update_in_numpy(var_LW: Array, indices_N: Array, updates_NW: Array) -> int:
    bad = _first_bad(indices_N, var_LW.shape[0])
    if bad < 0:
        var_LW[indices_N] = updates_NW
    return bad


def _add_rows_in_numpy(data_NW: Array, ids_N: Array, out_CW: Array) -> int:
    limit = out_CW.shape[0]
    wrong_N = ids_N >= limit
    end = int(wrong_N.argmax()) if wrong_N.any() else ids_N.size
    named_N = ids_N[:end] >= 0
    np.add.at(out_CW, ids_N[:end][named_N], data_NW[:end][named_N])
    return -1 if end == ids_N.size else end


def _add_columns_in_numpy(data_WN: Array, ids_N: Array, out_WC: Array) -> int:
    return _add_rows_in_numpy(data_WN.T, ids_N, out_WC.T)


def _add_chosen_rows_in_numpy(data_LW: Array, places_N: Array, ids_N: Array, out_CW: Array) -> int:
    bad = _first_bad(places_N, data_LW.shape[0]), _first_bad(ids_N, out_CW.shape[0])
    if max(bad) < 0:
        np.add.at(out_CW, ids_N, data_LW[places_N])
    return max(bad)


def _fit_segments_in_numpy(places_N: Array, ids_N: Array, length: int, count: int, increasing: bool) -> int:
    bad_N = (places_N < 0) | (places_N >= length) | (ids_N < 0) | (ids_N >= count)
    if increasing:
        bad_N[1:] |= ids_N[1:] < ids_N[:-1]
    return int(bad_N.argmax()) if bad_N.any() else -1


def _split_rows_in_numpy(data_NW: Array, parts_N: Array, ends_P: Array, out_NW: Array) -> int:
    bad = _first_bad(parts_N, ends_P.size)
    if bad < 0:
        np.cumsum(np.bincount(parts_N, minlength=ends_P.size), out=ends_P)
        np.take(data_NW, np.argsort(parts_N, kind="stable"), axis=0, out=out_NW, mode="clip")
    return bad


def _shuffle_in_numpy(words_N: Array, order_N: Array) -> None:
    words, order = words_N.tolist(), order_N.tolist()
    for i in range(len(order) - 1):
        j = i + words[i] % (len(order) - i)
        order[i], order[j] = order[j], order[i]
    order_N[:] = order


def shuffle() -> Callable[..., None]:
    """(words_M uint32, order_N int64): reorders in place, one word an element but the last. M ≥ N - 1."""
    return compile_loop(_shuffle, "r1 x1", np.uint32, np.int64, stand_in=_shuffle_in_numpy)


def gather_rows(element: Any, index: Any) -> Callable[..., int]:
    """(params_LW, indices_N, out_NW) → first bad position."""
    return compile_loop(_gather_rows, "r2 i1 w2", element, index, result="n", stand_in=_gather_rows_in_numpy)


def add_rows(element: Any, index: Any) -> Callable[..., int]:
    """(data_NW, ids_N, out_CW) → first position whose id is C or more. Adds each row to that of its id, in order."""
    return compile_loop(_add_rows, "r2 i1 w2", element, index, result="n", stand_in=_add_rows_in_numpy)


def add_columns(element: Any, index: Any) -> Callable[..., int]:
    """(data_WN in any strides, ids_N, out_WC), as `add_rows` of the transposed; the same sums. W ≥ 1."""
    return compile_loop(_add_columns, "v2 i1 w2", element, index, result="n", stand_in=_add_columns_in_numpy)


def add_chosen_rows(element: Any, index: Any) -> Callable[..., int]:
    """(data_LW, places_N, ids_N, out_CW) → a bad position; adds row `places[i]` of data to row `ids[i]` of out, in
    order.
    """
    return compile_loop(_add_chosen_rows, "r2 i1 i1 w2", element, index, result="n", stand_in=_add_chosen_rows_in_numpy)


def fit_segments(index: Any) -> Callable[..., int]:
    """(places_N, ids_N, length, count, increasing) → the first position whose place is not in [0, length), or its id
    not in [0, count), or lower than the one before it if they shall be `increasing`.
    """
    return compile_loop(_fit_segments, "i1 i1 n n b", index, index, result="n", stand_in=_fit_segments_in_numpy)


def split_rows(element: Any) -> Callable[..., int]:
    """(data_NW, parts_N int32, ends_P int32, out_NW) → first bad position; data's rows by part, and where each ends."""
    return compile_loop(_split_rows, "r2 i1 x1 w2", element, np.int32, result="n", stand_in=_split_rows_in_numpy)


def scatter_add(element: Any, index: Any) -> Callable[..., int]:
    """(var_LW, indices_N, updates_NW, sign) → first bad position; sign is ±1 of the element type."""
    return compile_loop(_scatter_add, "w2 i1 r2 s", element, index, result="n", stand_in=_scatter_add_in_numpy)


def scatter_update(element: Any, index: Any) -> Callable[..., int]:
    """(var_LW, indices_N, updates_NW) → first bad position."""
    return compile_loop(_scatter_update, "w2 i1 r2", element, index, result="n", stand_in=_scatter_update_in_numpy)
