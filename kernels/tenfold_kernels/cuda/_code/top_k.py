"""Bodies of TopK and InTopK, see cuda/nn_top_k.py. A block takes a row at a time, its threads hand on places."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numba import cuda, types

from tenfold_kernels.cuda._code.device import device, number_of

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np


@device
def _before(x, i, y, j):  # type: ignore[no-untyped-def]
    # Whether element x at place i comes before y at j: the larger one, the lower place among equals. A nan is as small
    # as −inf, which is all that is below 0 and gives no number less itself.
    if x != x:
        return (y != y or (y < 0 and y - y != y - y)) and i < j
    if y != y:
        return not (x < 0 and x - x != x - x) or i < j
    return x > y or (x == y and i < j)


def top_k(dtype: np.dtype[Any]) -> Callable[..., None]:
    """(rows, columns, k, x, values, indices)"""
    number = number_of(dtype)

    def run(rows, columns, k, x, values, indices):  # type: ignore[no-untyped-def]
        # Each round finds the best of what comes after the last one found: k times a pass over the row.
        places = cuda.shared.array(0, types.int64)
        t = cuda.threadIdx.x
        for b in range(cuda.blockIdx.x, rows, cuda.gridDim.x):
            base = b * columns
            last = -1
            for found in range(k):
                best = -1
                for c in range(t, columns, cuda.blockDim.x):
                    value = number(x[base + c])
                    is_left = last < 0 or _before(number(x[base + max(last, 0)]), last, value, c)
                    if is_left and (best < 0 or _before(value, c, number(x[base + max(best, 0)]), best)):
                        best = c
                places[t] = best
                cuda.syncthreads()
                half = cuda.blockDim.x // 2
                while half > 0:
                    if t < half:
                        mine = places[t]
                        other = places[t + half]
                        if other >= 0:
                            ours, theirs = number(x[base + max(mine, 0)]), number(x[base + other])
                            if mine < 0 or _before(theirs, other, ours, mine):
                                places[t] = other
                    cuda.syncthreads()
                    half = half // 2
                last = places[0]
                if t == 0:
                    values[b * k + found] = x[base + last]
                    indices[b * k + found] = last
                cuda.syncthreads()

    return run


def in_top_k(rows, classes, k, predictions, targets, out):  # type: ignore[no-untyped-def]
    # Counts what is greater than the target's; anything not finite counts as more than k.
    counts = cuda.shared.array(0, types.int64)
    t = cuda.threadIdx.x
    for b in range(cuda.blockIdx.x, rows, cuda.gridDim.x):
        base = b * classes
        target = targets[b]
        is_class = target >= 0 and target < classes
        wanted = predictions[base + (target if is_class else 0)]
        greater = 0
        for c in range(t, classes, cuda.blockDim.x):
            x = predictions[base + c]
            if x - x != x - x:
                greater += k + 1
            elif x > wanted:
                greater += 1
        counts[t] = greater
        cuda.syncthreads()
        half = cuda.blockDim.x // 2
        while half > 0:
            if t < half:
                counts[t] += counts[t + half]
            cuda.syncthreads()
            half = half // 2
        if t == 0:
            out[b] = is_class and counts[0] < k
        cuda.syncthreads()
