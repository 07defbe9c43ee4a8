"""The distinct values of a vector of integers, in the order of their first place, by a table of hashes.

Used by array_unique.py. The table has open addressing and is at most half full; the caller makes it, so that a caching
allocator can.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_kernels.cpu._compiled.compiling import compile_loop

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_kernels.arrays import Array


def _distinct(values_N, found_N, idx_N, table_T):  # type: ignore[no-untyped-def]
    # T is a power of two; a free slot of the table is negative, another one the number of a found value.
    count = 0
    mask = table_T.size - 1
    for i in range(values_N.size):
        value = values_N[i]
        slot = np.int64((np.uint64(value) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)) & mask
        while True:
            at = table_T[slot]
            if at < 0:
                table_T[slot] = count
                found_N[count] = value
                idx_N[i] = count
                count += 1
                break
            if found_N[at] == value:
                idx_N[i] = at
                break
            slot = (slot + 1) & mask
    return count


def _distinct_in_numpy(values_N: Array, found_N: Array, idx_N: Array, table_T: Array) -> int:
    sorted_C, first_C, place_N = np.unique(values_N, return_index=True, return_inverse=True)
    order_C = np.argsort(first_C)
    rank_C = np.empty_like(order_C)
    rank_C[order_C] = np.arange(order_C.size)
    found_N[: order_C.size] = sorted_C[order_C]
    idx_N[:] = rank_C[place_N.reshape(-1)]
    return int(order_C.size)


def distinct(element: Any, index: Any) -> Callable[..., int]:
    """(values_N, found_N, idx_N, table_T of −1) → how many are found; `idx` says which of them each value is."""
    return compile_loop(_distinct, "r1 w1 x1 x1", element, index, result="n", stand_in=_distinct_in_numpy)
