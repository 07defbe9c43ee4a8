"""Numbers of rows sorted on a GPU, stably and without atomics: launches of the kernels of _code/sorting.py."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_kernels.cuda import _picks
from tenfold_kernels.cuda._launch import Kernel, pointer

if TYPE_CHECKING:
    from tenfold_kernels.cuda._arrays import DeviceArray

#: Keys that a thread has, but for the most threads. Not measured.
CHUNK, _MOST_PARTS = 64, 1 << 14
_INT32: np.dtype[Any] = np.dtype(np.int32)


def sort(ids: DeviceArray, limit: int) -> tuple[DeviceArray, DeviceArray]:
    """(the numbers in their order, where each was), int32. One outside [0, limit) is `limit`, and so at the end.

    Three launches for every four bits of `limit`, which is less than 2³¹.
    """
    # Numba, whose import takes half a second
    from tenfold_kernels.cuda._code import sorting

    n, runtime = ids.size, ids.runtime
    keys, order, other_keys, other_order = (runtime.empty((n,), _INT32) for _ in range(4))
    _picks.launch("sorting.begin", n, (limit,), (ids, keys, order))
    parts = min(_MOST_PARTS, -(-n // CHUNK))
    chunk = -(-n // parts)
    counts = runtime.empty((sorting.RADIX * parts,), _INT32)
    for shift in range(0, limit.bit_length(), 4):
        _picks.launch("sorting.count", parts, (n, chunk, shift), (keys, counts))
        sums = _prefix_sums(runtime.reduce_threads)
        runtime.launch(sums, 1, runtime.reduce_threads, (counts.size, counts))
        _picks.launch("sorting.place", parts, (n, chunk, shift), (keys, order, counts, other_keys, other_order))
        keys, other_keys, order, other_order = other_keys, keys, other_order, order
    return keys, order


@functools.cache
def _prefix_sums(threads: int) -> Kernel:
    from tenfold_kernels.cuda._code import sorting

    return Kernel(sorting.prefix_sums(threads), ("int64", pointer(_INT32)))
