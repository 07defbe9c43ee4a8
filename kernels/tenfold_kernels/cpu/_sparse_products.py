"""The product of a sparse and a dense matrix, and sums of products of rows that are picked by number.

Large ones are shared with helpers: by columns of the result, by entries of the sums, so that no element is written by
two threads and each is added up in the order of the entries. Halves are added up in float. Used by sparse.py and, for
the gradient of the values, which the optimizer of a part makes one node, by math_reduction.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core import dtypes
from tenfold_kernels import chunks
from tenfold_kernels.arrays import Array, as_array, broadcast_shape, contiguous, input_type, invalid, output_type
from tenfold_kernels.cpu.array_gather import check_indices
from tenfold_kernels.parallel import in_parts
from tenfold_kernels.typesets import COMPILED, INDEX

if TYPE_CHECKING:
    from tenfold_core.dtypes import DType
    from tenfold_kernels.registry import Compute, KernelNode

#: Multiplications that are worth waking a helper for.
_SHARED = 1 << 19
#: Columns that a thread does at least: a cache line of float32.
_COLUMNS = 16
#: Types that a compiled loop adds up in their own arithmetic.
_OWN = COMPILED | frozenset((dtypes.int32, dtypes.int64, dtypes.complex64, dtypes.complex128))

#: (indices_N2, values_N, dense_KW, which column of the indices has the result's rows, out_MW of zeros) → the first
#: entry that lies outside, −1 where there is none.
Multiply = Callable[[Array, Array, Array, int, Array], int]


def multiplier(element: DType, index: DType) -> Multiply:
    """Adds a product to `out`; for a builder, it compiles. Arrays are contiguous and all of the wide type."""
    from tenfold_kernels.cpu._compiled import sparse_products

    if element not in _OWN or index not in INDEX:
        return lambda indices, values, dense, row_at, out: sparse_products.multiply_in_numpy(
            indices, values, dense, row_at, 0, out.shape[1], out
        )
    types = element.as_numpy_dtype, index.as_numpy_dtype
    matrix, vector = sparse_products.multiply(*types), sparse_products.multiply_vector(*types)

    def multiply(indices: Array, values: Array, dense: Array, row_at: int, out: Array) -> int:
        width = out.shape[1]
        if width == 1:
            return vector(indices, values, dense.reshape(-1), row_at, out.reshape(-1))
        if width < 2 * _COLUMNS or values.size * width < _SHARED:
            return matrix(indices, values, dense, row_at, 0, width, out)
        threads = 1 if chunks.is_crowded() else chunks.width()
        if threads == 1:
            return matrix(indices, values, dense, row_at, 0, width, out)
        blocks = -(-width // _COLUMNS)
        found: list[int] = []

        def columns(first: int, last: int) -> None:
            found.append(matrix(indices, values, dense, row_at, first * _COLUMNS, min(last * _COLUMNS, width), out))

        # each part reads all entries: no more parts than threads
        in_parts(columns, blocks, -(-blocks // threads))
        return max(found)

    return multiply


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
