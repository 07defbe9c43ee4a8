"""Bodies of kernels that look at a list of row numbers, see cuda/_rows.py."""

from __future__ import annotations

from numba import cuda


def link(n, limit, rows, first, following):  # type: ignore[no-untyped-def]
    # first: no position before has this row, which is one of 0 … limit - 1. following: the next that has it, or -1.
    for k in range(cuda.grid(1), n, cuda.gridsize(1)):
        row = rows[k]
        is_first = row >= 0 and row < limit
        if is_first:
            for m in range(k):
                if rows[m] == row:
                    is_first = False
                    break
        first[k] = 1 if is_first else 0
        following[k] = -1
        for m in range(k + 1, n):
            if rows[m] == row:
                following[k] = m
                break


def link_sorted(n, limit, keys, order, first, following):  # type: ignore[no-untyped-def]
    # the same of rows that were sorted: `order` is where each was; those of no row are `limit`
    for s in range(cuda.grid(1), n, cuda.gridsize(1)):
        key = keys[s]
        k = order[s]
        first[k] = 1 if key < limit and (s == 0 or keys[s - 1] != key) else 0
        following[k] = order[s + 1] if s + 1 < n and keys[s + 1] == key else -1
