"""Bodies of kernels that pick elements by numbers: gathers, one-hot, bands, reversed sequences.

Elements are units of bytes, or of a type of their size: nothing is computed with them.
"""

from __future__ import annotations

from typing import Any

from numba import cuda


def gather_rows(n: int, width: int, limit: int, indices: Any, table: Any, out: Any) -> None:
    """out[i, w] = table[indices[i], w], or 0 where there is no such row."""
    for i in range(cuda.grid(1), n, cuda.gridsize(1)):
        row = indices[i // width]
        if 0 <= row < limit:
            out[i] = table[row * width + i % width]
        else:
            out[i] = 0


def gather_inner(
    n: int, width: int, count: int, limit: int, middle: int, indices: Any, params: Any, out: Any
) -> None:
    """out[b, m, i, w] = params[b, m, indices[b, i], w], or 0 where there is no such place."""
    for i in range(cuda.grid(1), n, cuda.gridsize(1)):
        rest = i // width
        outer = rest // count
        at = indices[(outer // middle) * count + rest % count]
        if 0 <= at < limit:
            out[i] = params[(outer * limit + at) * width + i % width]
        else:
            out[i] = 0


def one_hot(n: int, depth: int, suffix: int, indices: Any, on: Any, off: Any, out: Any) -> None:
    """out[p, d, s] = on if indices[p, s] is d, else off."""
    for i in range(cuda.grid(1), n, cuda.gridsize(1)):
        rest = i // suffix
        if indices[(rest // depth) * suffix + i % suffix] == rest % depth:
            out[i] = on[0]
        else:
            out[i] = off[0]


def band(n: int, rows: int, columns: int, low: int, high: int, x: Any, out: Any) -> None:
    """out[b, r, c] = x[b, r, c] for -low <= c - r <= high, else 0; a negative bound keeps all on its side."""
    for i in range(cuda.grid(1), n, cuda.gridsize(1)):
        away = i % columns - (i // columns) % rows
        if (low < 0 or -away <= low) and (high < 0 or away <= high):
            out[i] = x[i]
        else:
            out[i] = 0


def reverse_sequences(
    n: int, batch: int, batch_step: int, length: int, step: int, lengths: Any, x: Any, out: Any
) -> None:
    """Of each batch entry the first lengths[b] elements along one dimension are turned round. Steps are in elements."""
    for i in range(cuda.grid(1), n, cuda.gridsize(1)):
        end = lengths[(i // batch_step) % batch]
        if end > length:
            end = length
        at = (i // step) % length
        if at < end:
            out[i] = x[i + (end - 1 - 2 * at) * step]
        else:
            out[i] = x[i]
