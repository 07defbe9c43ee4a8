"""Reductions by segment told their number, Segment*V2, and of chosen rows, SparseSegment*, with their gradients.

Halves are summed in float. Outputs are fresh. Reductions of all rows are in math_reduction.py. Follows
segment_reduction_ops_impl.h.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tenfold_core import dtypes
from tenfold_core.memory_limits import allow
from tenfold_kernels.arrays import Array, Shaped, as_array, contiguous, input_type, invalid, one_number, output_type
from tenfold_kernels.cpu.math_reduction import check_segments, highest_finite, lowest_finite, segment_summer
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.typesets import COMPILED, FLOATING, NUMERIC, REAL


def _wide(dtype: Any) -> Any:
    """What sums are computed in: float for half."""
    return np.float32 if dtype == np.float16 else dtype


#: (data, places, ids, count) → row `places[i]` of data added to row `ids[i]` of `count` rows of zeros.
_ChosenSum = Callable[[Array, Array, Array, int], Array]


def _chosen_summer(node: KernelNode) -> _ChosenSum:
    """For a builder: it compiles where there is a loop for the types. Places and ids have been checked."""
    element, places_type, ids_type = node.input_types[:3]
    if element not in COMPILED:
        sum_rows = segment_summer(element, ids_type)

        def sum_gathered(data: Array, places: Array, ids: Array, count: int) -> Array:
            wide = _wide(data.dtype)
            allow((places.size, *data.shape[1:]), wide)
            return sum_rows(data[places].astype(wide, copy=False), ids, count)

        return sum_gathered

    from tenfold_kernels.cpu._compiled import rows

    index = np.result_type(places_type.as_numpy_dtype, ids_type.as_numpy_dtype)
    add = rows.add_chosen_rows(element.as_numpy_dtype, index)

    def sum_chosen(data: Array, places: Array, ids: Array, count: int) -> Array:
        allow((count, *data.shape[1:]), data.dtype)
        out = np.zeros((count, *data.shape[1:]), data.dtype)
        if out.size:
            width = out.size // count
            bad = add(
                contiguous(data).reshape(len(data), width),
                contiguous(places).astype(index, copy=False),
                contiguous(ids).astype(index, copy=False),
                out.reshape(count, width),
            )
            if bad >= 0:
                raise invalid(f"indices[{bad}] and segment_ids[{bad}] name no row: [0, {len(data)}), [0, {count})")
        return out

    return sum_chosen


#: More than a tensor may have, and fewer than an int64 counts.
_MANY_ROWS = 1 << 62
#: (places, ids, length, count, increasing) → whether the places are in [0, length) and the ids in [0, count), in order.
_Fit = Callable[[Array, Array, int, int, bool], bool]


def _fitting(node: KernelNode) -> _Fit:
    """Says in one call that nothing is wrong, for those who find out by several what is."""
    places_type, ids_type = node.input_types[1:3]
    if places_type is not ids_type:
        return lambda places, ids, length, count, increasing: False

    from tenfold_kernels.cpu._compiled import rows

    first_bad = rows.fit_segments(places_type.as_numpy_dtype)

    def fit(places: Array, ids: Array, length: int, count: int, increasing: bool) -> bool:
        return first_bad(contiguous(places), contiguous(ids), length, count, increasing) < 0

    return fit


def check_vectors(indices: Array, ids: Array) -> None:
    """One segment for each index. Raises InvalidArgumentError."""
    if indices.ndim != 1:
        raise invalid("indices should be a vector.")
    if ids.ndim != 1:
        raise invalid("segment_ids should be a vector.")
    if indices.size != ids.size:
        raise invalid("segment_ids and indices should have same size.")


def _check_indices(data: Array, indices: Array) -> None:
    """Indices are those of rows of data. Raises InvalidArgumentError."""
    if indices.size and (indices.min() < 0 or indices.max() >= len(data)):
        at = int(((indices < 0) | (indices >= len(data))).argmax())
        raise invalid(f"indices[{at}] == {indices[at]} out of range [0, {len(data)})")


def _divisor(op: str, ids: Array, count: int, rank: int) -> Any:
    """What each segment's sum [count, …] is divided by, by an op that is no Sum."""
    allow((count,), np.int64, 2)  # of empty rows, too
    sizes = np.maximum(np.bincount(ids, minlength=count), 1)
    return (np.sqrt(sizes) if "SqrtN" in op else sizes).reshape(-1, *(1,) * (rank - 1))


@kernel("SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN", T=NUMERIC)
@kernel("SparseSegmentSumWithNumSegments", "SparseSegmentMeanWithNumSegments", "SparseSegmentSqrtNWithNumSegments",
        T=REAL)  # fmt: skip
def build_sparse_segment(node: KernelNode) -> Compute:
    """Reduction of data[indices] into so many rows as the last id or `num_segments` says; no rows give zeros."""
    dtype = output_type(node)
    sum_chosen, fit = _chosen_summer(node), _fitting(node)

    def compute(data: Array, indices: Array, ids: Array, num_segments: Array | None = None) -> Array:
        check_vectors(indices, ids)
        if num_segments is not None and num_segments.ndim:
            raise invalid("num_segments should be a scalar.")
        count = (int(ids[-1]) + 1 if ids.size else 0) if num_segments is None else int(num_segments)
        if not (data.ndim and ids.size and 0 < count < _MANY_ROWS and fit(indices, ids, len(data), count, True)):
            count = check_segments(data, ids, None if num_segments is None else count)
            _check_indices(data, indices)
        out = sum_chosen(data, indices, ids, count)
        if "Sum" not in node.op:
            out = out / _divisor(node.op, ids, count, data.ndim)
        return out.astype(dtype, copy=False)

    return compute


def _check_gradient(gradient: Array, indices: Array, ids: Array, count: int) -> None:
    """Raises InvalidArgumentError as TensorFlow."""
    if gradient.ndim < 1:
        raise invalid("Shape must be at least rank 1")
    if ids.size and ids[-1] >= len(gradient):
        raise invalid("Invalid number of segments")
    if ids.size and (ids.min() < 0 or ids.max() >= len(gradient)):
        wrong = ids[(ids < 0) | (ids >= len(gradient))][0]
        raise invalid(f"Segment id {wrong} out of range [0, {len(gradient)}).")
    if indices.size and (indices.min() < 0 or indices.max() >= count):
        wrong = indices[(indices < 0) | (indices >= count)][0]
        raise invalid(f"Index {wrong} out of range [0, {count}).")


def _shared(op: str, gradient: Array, ids: Array) -> Array:
    """What each row of a segment gets of its gradient; in the type that sums are computed in."""
    wide = gradient.astype(_wide(gradient.dtype), copy=False)
    if "Sum" in op:
        return as_array(wide)
    return as_array((wide / _divisor(op, ids, len(wide), wide.ndim)).astype(wide.dtype, copy=False))


def dense_rows(name: str, indices: Array, ids: Array, rows: Array) -> int:
    """How many rows the gradient has. Raises InvalidArgumentError."""
    check_vectors(indices, ids)
    if rows.ndim:
        raise invalid(f"{name} should be a scalar.")
    if rows < 0:
        raise invalid(f"{name} must not be negative, got {int(rows)}")
    return int(rows)


@kernel("SparseSegmentSumGrad", "SparseSegmentMeanGrad", "SparseSegmentSqrtNGrad", T=FLOATING)
def build_sparse_segment_gradient(node: KernelNode) -> Compute:
    """(grad, indices, segment_ids, rows) → the gradient of data: each segment's, added at its indices."""
    dtype = input_type(node)
    sum_chosen, fit = _chosen_summer(node), _fitting(node)

    def compute(gradient: Array, indices: Array, ids: Array, rows: Array) -> Array:
        count = dense_rows("output_dim0", indices, ids, rows)
        if not (gradient.ndim and fit(indices, ids, count, len(gradient), False)):
            _check_gradient(gradient, indices, ids, count)
        shared = _shared(node.op, gradient, ids)
        return sum_chosen(shared, ids, indices, count).astype(dtype, copy=False)

    return compute


@kernel("SparseSegmentSumGradV2", "SparseSegmentMeanGradV2", "SparseSegmentSqrtNGradV2", T=FLOATING)
def build_sparse_segment_sparse_gradient(node: KernelNode) -> Compute:
    """As above, but of those rows of data that an index names: (gradient, their sorted indices)."""
    dtype = input_type(node)
    sum_chosen = _chosen_summer(node)

    def compute(gradient: Array, indices: Array, ids: Array, rows: Array) -> tuple[Array, Array]:
        count = dense_rows("dense_output_dim0", indices, ids, rows)
        if not count:
            indices, ids = indices[:0], ids[:0]
        _check_gradient(gradient, indices, ids, count)
        shared = _shared(node.op, gradient, ids)
        found, places = np.unique(indices, return_inverse=True)
        places = places.reshape(-1).astype(indices.dtype, copy=False)
        return sum_chosen(shared, ids, places, len(found)).astype(dtype, copy=False), found

    return compute


#: Reduction, and what an id without rows gives, by op.
_SEGMENTS: dict[str, tuple[Any, Any]] = {
    "SegmentSumV2": (np.add, lambda dtype: 0),
    "SegmentProdV2": (np.multiply, lambda dtype: 1),
    "SegmentMaxV2": (np.maximum, lowest_finite),
    "SegmentMinV2": (np.minimum, highest_finite),
}


def numbered_segments(data: Shaped, ids: Shaped, num_segments: Array) -> int:
    """How many segments there are. Raises InvalidArgumentError for a negative number, and unless each row has an id."""
    count = one_number(num_segments, "num_segments")
    if ids.ndim != 1 or data.ndim < 1 or ids.shape[0] != data.shape[0]:
        raise invalid("segment_ids should be the same size as dimension 0 of input.")
    if count < 0:
        raise invalid(f"segment ids must be in [0, num_segments = {count})")
    return count


@kernel("SegmentMaxV2", "SegmentMinV2", T=NUMERIC | {dtypes.bfloat16})
@kernel("SegmentSumV2", "SegmentProdV2", T=NUMERIC)
def build_segment_v2(node: KernelNode) -> Compute:
    """Reduction by sorted ids into `num_segments` rows; an id without rows gets a number of the node's own type."""
    reduction, empty = _SEGMENTS[node.op]
    dtype = np.dtype(output_type(node))
    start = empty(dtype)

    def compute(data: Array, ids: Array, num_segments: Array) -> Array:
        count = numbered_segments(data, ids, num_segments)
        if ids.size and (np.diff(ids) < 0).any():
            raise invalid("segment ids are not increasing")
        if ids.size and (ids[0] < 0 or ids[-1] >= count):
            raise invalid(f"segment ids must be in [0, num_segments = {count})")
        allow((count, *data.shape[1:]), dtype)
        out = np.full((count, *data.shape[1:]), start, dtype)
        reduction.at(out, ids, data)
        return out

    return compute
