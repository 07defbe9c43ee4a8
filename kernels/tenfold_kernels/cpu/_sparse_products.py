"""The product of a sparse and a dense matrix, and sums of products of rows that are picked by number.

Large ones are shared with helpers: by rows of the result where the entries are in row-major order, else by entries,
each part with a result of its own, where the result is small, else by columns; and by entries of the sums. So no
element is written by two threads, and how each is added up depends on the sizes alone. Halves are added up in float.
Used by sparse.py and, for the gradient of the values, which the optimizer of a part makes one node, by
math_reduction.py.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core import dtypes
from tenfold_kernels import chunks
from tenfold_kernels.arrays import Array, as_array, broadcast_shape, contiguous, input_type, invalid, output_type
from tenfold_kernels.cpu.array_gather import check_indices
from tenfold_kernels.parallel import in_parts
from tenfold_kernels.typesets import COMPILED

if TYPE_CHECKING:
    from tenfold_core.dtypes import DType
    from tenfold_kernels.registry import Compute, KernelNode

#: Multiplications that are worth waking a helper for.
_SHARED = 1 << 19
#: Columns that a thread does at least: a cache line of float32.
_COLUMNS = 16
#: Parts of a large product by entries, where an element of the result has more than _PRIVATE of them.
_PARTS, _PRIVATE = 8, 16
#: Types that a compiled loop adds up in their own arithmetic.
_OWN = COMPILED | frozenset((dtypes.int32, dtypes.int64, dtypes.complex64, dtypes.complex128))

#: (indices_N2, values_N, dense_KW, which column of the indices has the result's rows, out_MW) → the first entry that
#: lies outside, −1 where there is none. Sizes are at least 1.
Multiply = Callable[[Array, Array, Array, int, Array], int]


def multiplier(element: DType, index: DType) -> Multiply:
    """Gives `out` the product; for a builder, it compiles. Arrays are contiguous and all of the wide type."""
    from tenfold_kernels.cpu._compiled import sparse_products

    def in_numpy(indices: Array, values: Array, dense: Array, row_at: int, out: Array) -> int:
        out.fill(0)
        return sparse_products.multiply_in_numpy(indices, values, dense, row_at, 0, 0, out.shape[1], out)

    if element not in _OWN:
        return in_numpy
    types = element.as_numpy_dtype, index.as_numpy_dtype
    matrix, vector = sparse_products.multiply(*types), sparse_products.multiply_vector(*types)

    def alone(indices: Array, values: Array, dense: Array, row_at: int, base: int, out: Array) -> int:
        out.fill(0)
        if out.shape[1] == 1:
            return vector(indices, values, dense.reshape(-1), row_at, base, out.reshape(-1))
        return matrix(indices, values, dense, row_at, base, 0, out.shape[1], out)

    def multiply(indices: Array, values: Array, dense: Array, row_at: int, out: Array) -> int:
        # an entry costs more than its multiplications where there are few
        if values.size * max(out.shape[1], 4) < _SHARED or chunks.width() == 1:
            return alone(indices, values, dense, row_at, 0, out)
        operands = indices, values, dense, row_at
        crowded = chunks.is_crowded()
        if row_at == 0 and not crowded and (runs := _runs(indices[:, 0], len(out), 2 * chunks.width())):
            if _by_rows(alone, runs, *operands, out) < 0:
                return -1
            # rows in no order, or an entry outside: which is the first one is told by who takes all
        elif row_at and values.size > _PRIVATE * out.size:
            return _by_entries(alone, *operands, out)
        if out.shape[1] < 2 * _COLUMNS or crowded:
            return alone(*operands, 0, out)
        return _by_columns(matrix, *operands, out)

    return multiply


def _runs(rows: Array, limit: int, parts: int) -> list[tuple[int, int, int, int]]:
    """(first and last entry, first and last row) of parts of an array of row numbers, each with the whole of its rows;
    none where the rows do not seem to be in order."""
    count = rows.size
    marks = [(0, 0)]
    for part in range(1, parts):
        row = int(rows[count * part // parts])
        entry = bisect_left(range(count), row, key=lambda i: int(rows[i]))
        if row < marks[-1][1] or entry < marks[-1][0] or row >= limit:
            return []
        marks.append((entry, row))
    marks.append((count, limit))
    return [(*entries, *ends) for entries, ends in (zip(*pair, strict=True) for pair in itertools.pairwise(marks))]


def _by_rows(
    alone: Callable[..., int], runs: list[tuple[int, int, int, int]], indices: Array, values: Array, dense: Array,
    row_at: int, out: Array,
) -> int:  # fmt: skip
    """Each thread has rows of the result of its own. Not below 0: an entry's row lies outside its part, or it does."""
    found: list[int] = []

    def parts(first: int, last: int) -> None:
        for begin, end, row, last_row in runs[first:last]:
            if row < last_row:
                found.append(alone(indices[begin:end], values[begin:end], dense, row_at, row, out[row:last_row]))
            elif begin < end:  # somebody has changed them meanwhile
                found.append(begin)

    in_parts(parts, len(runs), 1)
    return max(found)


def _by_entries(alone: Callable[..., int], indices: Array, values: Array, dense: Array, row_at: int, out: Array) -> int:
    """Each part adds to a small result of its own; these are added up in the order of the parts."""
    edges = [values.size * part // _PARTS for part in range(_PARTS + 1)]
    sums = np.empty((_PARTS, *out.shape), out.dtype)
    found = [-1] * _PARTS

    def parts(first: int, last: int) -> None:
        for part in range(first, last):
            begin, end = edges[part], edges[part + 1]
            bad = alone(indices[begin:end], values[begin:end], dense, row_at, 0, sums[part])
            found[part] = bad if bad < 0 else begin + bad

    in_parts(parts, _PARTS, 1)
    np.add.reduce(sums, 0, out=out)
    return next((bad for bad in found if bad >= 0), -1)


def _by_columns(
    matrix: Callable[..., int], indices: Array, values: Array, dense: Array, row_at: int, out: Array
) -> int:
    """Each thread reads all entries and has columns of the result: no more parts than threads."""
    width = out.shape[1]
    blocks = -(-width // _COLUMNS)
    found: list[int] = []
    out.fill(0)

    def columns(first: int, last: int) -> None:
        found.append(matrix(indices, values, dense, row_at, 0, first * _COLUMNS, min(last * _COLUMNS, width), out))

    in_parts(columns, blocks, -(-blocks // chunks.width()))
    return max(found)


def wide_type(dtype: Any) -> Any:
    """What products of a type are added up in: float for half."""
    return np.float32 if dtype == np.float16 else dtype


def build_sum_of_row_products(node: KernelNode, reduce: Compute) -> Compute:
    """(left, left_indices, right, right_indices, axes) → what `reduce`, a Sum, gives for their products."""
    from tenfold_kernels.cpu._compiled import sparse_products

    dtype, keep = output_type(node), bool(node.attrs.get("keep_dims"))
    index = np.result_type(input_type(node, 1), input_type(node, 3))
    multiply = sparse_products.multiply_rows(dtype, index)
    zero = dtype(0)

    def gathered(rows: Array, at: Array) -> Array:
        if rows.ndim < 1:
            raise invalid("params must be at least 1 dimensional")
        at = at.copy()  # nobody writes there between the check and the use
        check_indices(at, len(rows))
        return as_array(rows.take(at, axis=0))

    def in_steps(left: Array, left_at: Array, right: Array, right_at: Array, axes: Array) -> Array:
        parts = gathered(left, left_at), gathered(right, right_at)
        broadcast_shape(parts)
        return as_array(reduce(np.multiply(*parts), axes))

    def compute(left: Array, left_at: Array, right: Array, right_at: Array, axes: Array) -> Array:
        count = left_at.size
        if (
            keep
            or not left.ndim == right.ndim == 2
            or not left_at.ndim == right_at.ndim == 1
            or left.shape[1] != right.shape[1]
            or count != right_at.size
            or not (left.size and right.size and count)
            or axes.size != 1
            or axes.item() not in (1, -1)
        ):
            return in_steps(left, left_at, right, right_at, axes)
        out = np.empty(count, dtype)
        rows = contiguous(left), contiguous(right)
        ats = contiguous(left_at).astype(index, copy=False), contiguous(right_at).astype(index, copy=False)
        bad: list[int] = []

        def entries(first: int, last: int) -> None:
            bad.append(multiply(rows[0], ats[0], rows[1], ats[1], zero, first, last, out))

        in_parts(entries, count, max(1, _SHARED // left.shape[1]))
        # what was wrong is said by the steps, unless somebody has mended it meanwhile
        return out if max(bad) < 0 else in_steps(left, left_at, right, right_at, axes)

    return compute
