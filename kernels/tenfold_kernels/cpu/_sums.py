"""np.add.reduce for floats, with loops of our own where neighbouring axes of a large array are added up.

NumPy takes over where an array is small, strided or of another type, where rows are short, and until the loops are
loaded (_compiled/sums.py). Used by math_reduction.py.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_kernels.arrays import Array, as_array

if TYPE_CHECKING:
    from collections.abc import Callable

#: Elements below which NumPy is as fast, and a program of nothing else need not load Numba.
OWN_LEAST = 1 << 12
#: Elements of a row, summed or added, below which there is nothing for vectors.
_SHORT = 16
_TYPES = frozenset((np.dtype(np.float32), np.dtype(np.float64)))
_add: Any = np.add


@functools.cache
def _loops(dtype: Any) -> tuple[Callable[..., None], Callable[..., None], Any]:
    from tenfold_kernels.cpu._compiled import sums

    return sums.along(dtype), sums.down(dtype), dtype.type(0)


@functools.lru_cache(256)
def _plan(shape: tuple[int, ...], axes: tuple[int, ...], keep: bool) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """(the array as outer, reduced and perhaps inner elements, the shape of the sums); None for what NumPy is to do."""
    outer = count = inner = 1
    for d, size in enumerate(shape):
        if d in axes:
            if inner > 1 and size > 1:
                return None
            count *= size
        elif count > 1:
            inner *= size
        else:
            outer *= size
    if count < 2 or (count if inner == 1 else inner) < _SHORT:
        return None
    sums = tuple(1 if d in axes else size for d, size in enumerate(shape) if keep or d not in axes)
    return ((outer, count) if inner == 1 else (outer, count, inner)), sums


def add_up(x: Array, axes: tuple[int, ...], keep: bool = False) -> Array:
    """The sums of `x` over `axes`, counted from the front, in its own type; fresh. An axis that is kept has size 1."""
    if x.size >= OWN_LEAST and x.dtype in _TYPES:
        flags = x.flags
        plan = _plan(x.shape, axes, keep) if flags.c_contiguous and flags.aligned else None
        if plan is not None:
            view, sums = plan
            along, down, zero = _loops(x.dtype)
            out = np.empty(sums, x.dtype)
            if len(view) == 2:
                along(x.reshape(view), zero, out.reshape(-1))
            else:
                down(x.reshape(view), out.reshape(view[0], view[2]))
            return out
    return as_array(_add.reduce(x, axes, x.dtype, None, keep))
