"""Sums over one axis of three: of the last, which LLVM may add up in any order, and of one before it, in order.

O outer, R reduced, I inner: NumPy walks over such an array a row at a time and takes 20 to 30 ns for each, which is
more than its adding. Called by cpu/_sums.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_kernels.cpu._compiled.compiling import compile_loop

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_kernels.arrays import Array

#: Elements that are added up before they are added to others, so that rounding errors stay small in a long row.
_BLOCK = 4096
#: Of indices that LLVM knows not to be negative.
_index = np.uint64
#: Columns that stay in the first cache while all rows are added to them.
_COLUMNS = 1024


def _along(x_OR, zero, out_O):  # type: ignore[no-untyped-def]
    outer, count = x_OR.shape
    x = x_OR.reshape(outer * count)
    for o in range(outer):
        out_O[o] = 0
        first = 0
        while first < count:
            size = min(count - first, _BLOCK)
            start = _index(o * count + first)
            part = zero
            for r in range(_index(size)):
                part += x[start + r]
            out_O[o] += part
            first += size


def _down(x_ORI, out_OI):  # type: ignore[no-untyped-def]
    outer, count, inner = x_ORI.shape
    x, out = x_ORI.reshape(outer * count * inner), out_OI.reshape(outer * inner)
    for o in range(outer):
        first = 0
        while first < inner:
            size = _index(min(inner - first, _COLUMNS))
            to, row = _index(o * inner + first), _index(o * count * inner + first)
            for i in range(size):
                out[to + i] = x[row + i]
            r = 1
            while r < count:
                row += _index(inner)
                if r + 4 <= count:
                    second = row + _index(inner)
                    third = second + _index(inner)
                    fourth = third + _index(inner)
                    for i in range(size):
                        out[to + i] = out[to + i] + x[row + i] + x[second + i] + x[third + i] + x[fourth + i]
                    row = fourth
                    r += 4
                else:
                    for i in range(size):
                        out[to + i] += x[row + i]
                    r += 1
            first += _COLUMNS


def _along_in_numpy(x_OR: Array, zero: Any, out_O: Array) -> None:
    np.add.reduce(x_OR, 1, out=out_O)


def _down_in_numpy(x_ORI: Array, out_OI: Array) -> None:
    np.add.reduce(x_ORI, 1, out=out_OI)


def along(element: Any) -> Callable[..., None]:
    """(x_OR, zero, out_O); R ≥ 1. Adds up in any order."""
    return compile_loop(_along, "r2 s w1", element, fastmath=frozenset(("reassoc",)), stand_in=_along_in_numpy)


def down(element: Any) -> Callable[..., None]:
    """(x_ORI, out_OI); R ≥ 1. Adds row after row."""
    return compile_loop(_down, "r3 w2", element, stand_in=_down_in_numpy)
