"""Bodies that sort numbers of rows, stably and without atomics: four bits a pass, the lowest first.

Of `parts` threads each has a stretch of `chunk` keys. It counts them by digit, counts[digit, part]; a prefix sum makes
of the counts where each thread's first key of each digit goes; each thread puts its keys there, in their order. (No min
and max here: Numba asks for a GPU to compile them.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba import cuda

if TYPE_CHECKING:
    from collections.abc import Callable

#: Values of a digit.
RADIX = 16


def begin(n: int, limit: int, ids: Any, keys: Any, order: Any) -> None:
    """keys = ids, `limit` for one outside [0, limit); order = 0, 1, 2, …"""
    for i in range(cuda.grid(1), n, cuda.gridsize(1)):
        row = ids[i]
        keys[i] = row if 0 <= row < limit else limit
        order[i] = i


def count(parts: int, n: int, chunk: int, shift: int, keys: Any, counts: Any) -> None:
    """counts[digit, part], of one digit of the keys."""
    for part in range(cuda.grid(1), parts, cuda.gridsize(1)):
        for digit in range(RADIX):
            counts[digit * parts + part] = 0
        for i in range(part * chunk, n if n < (part + 1) * chunk else (part + 1) * chunk):
            at = ((keys[i] >> shift) % RADIX) * parts + part
            counts[at] += 1


def place(
    parts: int,
    n: int,
    chunk: int,
    shift: int,
    keys: Any,
    order: Any,
    counts: Any,
    sorted_keys: Any,
    sorted_order: Any,
) -> None:
    """Puts every key where its thread's next one of that digit goes. The counts are used up."""
    for part in range(cuda.grid(1), parts, cuda.gridsize(1)):
        for i in range(part * chunk, n if n < (part + 1) * chunk else (part + 1) * chunk):
            key = keys[i]
            at = ((key >> shift) % RADIX) * parts + part
            to = counts[at]
            counts[at] = to + 1
            sorted_keys[to] = key
            sorted_order[to] = order[i]


def prefix_sums(threads: int) -> Callable[..., None]:
    """The body for one block of so many threads: counts become the sums of all that come before them."""

    def run(n: int, counts: Any) -> None:
        sums = cuda.shared.array(threads, np.int32)
        me = cuda.threadIdx.x
        chunk = (n + threads - 1) // threads
        first = me * chunk
        last = n if n < first + chunk else first + chunk
        total = np.int32(0)
        for i in range(first, last):
            total += counts[i]
        sums[me] = total
        cuda.syncthreads()
        if me == 0:
            before = np.int32(0)
            for each in range(threads):
                here = sums[each]
                sums[each] = before
                before += here
        cuda.syncthreads()
        before = sums[me]
        for i in range(first, last):
            here = counts[i]
            counts[i] = before
            before += here

    return run
