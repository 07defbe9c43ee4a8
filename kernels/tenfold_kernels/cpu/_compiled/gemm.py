"""One chunk of a product of matrices: some rows or some columns of the output, by the BLAS's own gemm, without the GIL.

Used by cpu/_products.py through tenfold_kernels/chunks.py. The BLAS is one whose integers have 64 bits, as NumPy's
wheels carry it; its entry's address is among the arguments. C_MN = op(A)_MK · op(B)_KN, row by row in memory.
After an edit of chunk_intrinsics.py touch this file too, for the disk cache watches nothing else.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold_kernels.cpu._compiled.intrinsics import dgemm, load, sgemm
from tenfold_kernels.cpu._compiled.objects import compile_callback

#: What the arguments are, one int64 each. A, B and C are addresses; *_row are elements from one line of memory to the
#: next; `by_columns` says which side of C is cut, `step` into pieces of how much; transposes are cblas's 111 or 112.
FIELDS = ("gemm", "trans_a", "trans_b", "m", "n", "k", "a", "a_row", "b", "b_row", "c", "c_row", "by_columns", "step")
_PLAIN = 111


def single(arguments, chunk):  # type: ignore[no-untyped-def]
    """A chunk of a product of float32."""
    m, n = load(arguments + 24), load(arguments + 32)
    a, a_row, b, b_row = (load(arguments + 48), load(arguments + 56), load(arguments + 64), load(arguments + 72))
    c, c_row, step = load(arguments + 80), load(arguments + 88), load(arguments + 104)
    trans_a, trans_b = load(arguments + 8), load(arguments + 16)
    first = chunk * step
    if load(arguments + 96):
        n = min(step, n - first)
        b += 4 * first * (1 if trans_b == _PLAIN else b_row)
        c += 4 * first
    else:
        m = min(step, m - first)
        a += 4 * first * (a_row if trans_a == _PLAIN else 1)
        c += 4 * first * c_row
    sgemm(load(arguments), trans_a, trans_b, m, n, load(arguments + 40), a, a_row, b, b_row, c, c_row)


def double(arguments, chunk):  # type: ignore[no-untyped-def]
    """A chunk of a product of float64."""
    m, n = load(arguments + 24), load(arguments + 32)
    a, a_row, b, b_row = (load(arguments + 48), load(arguments + 56), load(arguments + 64), load(arguments + 72))
    c, c_row, step = load(arguments + 80), load(arguments + 88), load(arguments + 104)
    trans_a, trans_b = load(arguments + 8), load(arguments + 16)
    first = chunk * step
    if load(arguments + 96):
        n = min(step, n - first)
        b += 8 * first * (1 if trans_b == _PLAIN else b_row)
        c += 8 * first
    else:
        m = min(step, m - first)
        a += 8 * first * (a_row if trans_a == _PLAIN else 1)
        c += 8 * first * c_row
    dgemm(load(arguments), trans_a, trans_b, m, n, load(arguments + 40), a, a_row, b, b_row, c, c_row)


def chunk_address(dtype: Any) -> int:
    """The address of the chunk function for float32 or float64; blocks while it compiles, once."""
    return compile_callback(single if np.dtype(dtype) == np.float32 else double)
