"""Products of a sparse and a dense matrix, and the products of rows that its gradient is made of.

    N entries of the sparse matrix, M rows of the result, K rows of the dense matrix, W its columns

Each loop reads an entry's two numbers once, checks what it read and indexes with that: somebody may write to the
indices meanwhile. A loop answers with the first entry that lies outside, −1 where there is none. Called by
cpu/_sparse_products.py. Follows sparse_tensor_dense_matmul_op.cc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_kernels.cpu._compiled.compiling import compile_loop
from tenfold_kernels.cpu._compiled.intrinsics import once, once_2

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_kernels.arrays import Array

#: Of indices that LLVM knows not to be negative.
_index = np.uint64


def _multiply(indices_N2, values_N, dense_KW, row_at, base, first, last, out_MW):  # type: ignore[no-untyped-def]
    # Columns [first, last) of the result's rows from `base` on. Other threads do the others.
    rows, limit, width = out_MW.shape[0], dense_KW.shape[0], _index(out_MW.shape[1])
    dense, out = dense_KW.reshape(dense_KW.size), out_MW.reshape(out_MW.size)
    begin, columns = _index(first), _index(last - first)
    for i in range(values_N.size):
        row, inner = once_2(indices_N2, i, row_at) - base, once_2(indices_N2, i, 1 - row_at)
        if row < 0 or row >= rows or inner < 0 or inner >= limit:
            return i
        value = values_N[i]
        to, of = _index(row) * width + begin, _index(inner) * width + begin
        for j in range(columns):
            out[to + j] += value * dense[of + j]
    return -1


def _multiply_vector(indices_N2, values_N, dense_K, row_at, base, out_M):  # type: ignore[no-untyped-def]
    # One column. The entries of a row follow each other mostly: their sum stays in a register.
    rows, limit = out_M.size, dense_K.size
    last = -1
    total = out_M[0]
    for i in range(values_N.size):
        row, inner = once_2(indices_N2, i, row_at) - base, once_2(indices_N2, i, 1 - row_at)
        if row < 0 or row >= rows or inner < 0 or inner >= limit:
            return i
        if row != last:
            if last >= 0:
                out_M[_index(last)] = total
            total = out_M[_index(row)]
            last = row
        total += values_N[i] * dense_K[_index(inner)]
    if last >= 0:
        out_M[_index(last)] = total
    return -1


def _multiply_rows(left_LW, left_N, right_RW, right_N, zero, first, last, out_N):  # type: ignore[no-untyped-def]
    # L and R rows; for each of the entries [first, last) the sum of the products of two rows.
    lefts, rights, width = left_LW.shape[0], right_RW.shape[0], _index(left_LW.shape[1])
    left, right = left_LW.reshape(left_LW.size), right_RW.reshape(right_RW.size)
    for i in range(first, last):
        one, other = once(left_N, i), once(right_N, i)
        if one < 0 or one >= lefts or other < 0 or other >= rights:
            return i
        a, b = _index(one) * width, _index(other) * width
        total = zero
        for j in range(width):
            total += left[a + j] * right[b + j]
        out_N[i] = total
    return -1


def _first_outside(first_N: Array, first_limit: int, second_N: Array, second_limit: int) -> int:
    bad_N = (first_N < 0) | (first_N >= first_limit) | (second_N < 0) | (second_N >= second_limit)
    return int(bad_N.argmax()) if bad_N.any() else -1


def multiply_in_numpy(
    indices_N2: Array, values_N: Array, dense_KW: Array, row_at: int, base: int, first: int, last: int, out_MW: Array
) -> int:
    """`multiply` for any type of elements."""
    rows_N, inner_N = indices_N2[:, row_at] - base, indices_N2[:, 1 - row_at].copy()
    bad = _first_outside(rows_N, len(out_MW), inner_N, len(dense_KW))
    if bad < 0:
        np.add.at(out_MW[:, first:last], rows_N, values_N[:, None] * dense_KW[:, first:last][inner_N])
    return bad


def _multiply_vector_in_numpy(
    indices_N2: Array, values_N: Array, dense_K: Array, row_at: int, base: int, out_M: Array
) -> int:
    return multiply_in_numpy(indices_N2, values_N, dense_K[:, None], row_at, base, 0, 1, out_M[:, None])


def _multiply_rows_in_numpy(
    left_LW: Array, left_N: Array, right_RW: Array, right_N: Array, zero: Any, first: int, last: int, out_N: Array
) -> int:
    one_N, other_N = left_N[first:last].copy(), right_N[first:last].copy()
    bad = _first_outside(one_N, len(left_LW), other_N, len(right_RW))
    if bad < 0:
        np.add.reduce(left_LW[one_N] * right_RW[other_N], 1, out=out_N[first:last])
        return -1
    return first + bad


def multiply(element: Any, index: Any) -> Callable[..., int]:
    """(indices_N2, values_N, dense_KW, row_at, base, first, last, out_MW) → the first entry outside. Adds the columns
    [first, last) of sparse · dense to out, whose first row is number `base` of the product; column `row_at` of the
    indices, 0 or 1, has numbers of these rows, the other one of dense's.
    """
    contract = frozenset(("contract",))
    return compile_loop(
        _multiply, "i2 r1 r2 n n n n w2", element, index, result="n", fastmath=contract,
        stand_in=multiply_in_numpy, heavy=True,
    )  # fmt: skip


def multiply_vector(element: Any, index: Any) -> Callable[..., int]:
    """(indices_N2, values_N, dense_K, row_at, base, out_M with M ≥ 1) → as `multiply`, of one column."""
    return compile_loop(
        _multiply_vector, "i2 r1 r1 n n w1", element, index, result="n", stand_in=_multiply_vector_in_numpy, heavy=True
    )


def multiply_rows(element: Any, index: Any) -> Callable[..., int]:
    """(left_LW, left_N, right_RW, right_N, zero, first, last, out_N) → the first entry outside. out[i] becomes the sum
    of left[left_N[i]] · right[right_N[i]] for i in [first, last); added up in any order.
    """
    return compile_loop(
        _multiply_rows, "r2 i1 r2 i1 s n n w1", element, index, result="n", fastmath=frozenset(("contract", "reassoc")),
        stand_in=_multiply_rows_in_numpy,
    )  # fmt: skip
