"""Reductions, arg-reductions, cumulative and segment sums.

Axes may be negative, a scalar or a vector; an empty vector reduces nothing. A reduction over no elements gives the
operation's neutral element (Mean: nan). Sums keep the input's type; half accumulates in float. Outputs are fresh.
Follows reduction_ops_common.h and scan_ops.h and segment_reduction_ops.cc.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from tenfold_core import dtypes
from tenfold_core.memory_limits import allow
from tenfold_kernels.arrays import (
    Array,
    Shaped,
    as_array,
    canonical_axis,
    contiguous,
    input_type,
    invalid,
    one_number,
    output_type,
    shape_text,
    truncated_quotient,
)
from tenfold_kernels.cpu._sparse_products import build_sum_of_row_products
from tenfold_kernels.cpu._sums import OWN_LEAST, add_up
from tenfold_kernels.parallel import first_in_parts
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.typesets import BOOL, COMPILED, FLOATING, INDEX, NUMERIC, REAL

if TYPE_CHECKING:
    from tenfold_core.dtypes import DType

#: Elements that are added up in less time than a few of them are taken out.
_FEW = 1 << 13
#: Elements that are worth a part of their own, 50 to 100 µs.
_PART = 1 << 16
# NumPy's own types do not know reduce's keepdims as a variable.
_add: Any = np.add
_maximum: Any = np.maximum
_minimum: Any = np.minimum
#: Of bfloat16, too.
_finfo: Any = ml_dtypes.finfo

Reduce = Callable[[Array, tuple[int, ...], bool], Any]


def reduction_axes(x: Shaped, indices: Array) -> tuple[int, ...]:
    """The axes, counted from the front. Raises InvalidArgumentError for one out of range or given twice."""
    axes: list[int] = []
    for d in indices.reshape(-1).tolist():
        where = canonical_axis(d, x.ndim, f"Invalid reduction dimension ({d} for input with {x.ndim} dimension(s)")
        if where in axes:
            raise invalid(f"Invalid reduction arguments: Axes contains duplicate dimension: {where}")
        axes.append(where)
    return tuple(axes)


def _reduction(node: KernelNode, reduce: Reduce) -> Compute:
    keep = bool(node.attrs.get("keep_dims", False))
    #: (the axes' bytes, rank) → axes: they are the same in almost every step.
    seen: dict[tuple[bytes, int], tuple[int, ...]] = {}

    def compute(x: Array, indices: Array) -> Array:
        key = indices.tobytes(), x.ndim
        axes = seen.get(key)
        if axes is None:
            axes = reduction_axes(x, indices)
            if len(seen) < 16:
                seen[key] = axes
        return as_array(reduce(x, axes, keep))

    return compute


def _lowest(dtype: Any) -> Any:
    kind = np.dtype(dtype)
    return dtype(-np.inf) if kind.kind == "f" else np.iinfo(kind).min


def _highest(dtype: Any) -> Any:
    kind = np.dtype(dtype)
    return dtype(np.inf) if kind.kind == "f" else np.iinfo(kind).max


def _accumulator(dtype: Any) -> Any:
    return np.float32 if dtype == np.float16 else dtype


@kernel("Sum", "Prod", T=NUMERIC)
def build_sum(node: KernelNode) -> Compute:
    """With five inputs, rows and places of them twice before the axes: the sum of the products of those rows (a node
    that optimize/reductions.py made).
    """
    if len(node.input_types) == 5:
        dtype = node.input_types[0]
        plain = dataclasses.replace(node, input_types=(dtype, node.input_types[4]))
        return build_sum_of_row_products(node, build_sum(plain))
    dtype = output_type(node)
    wide = _accumulator(dtype)
    ufunc: Any = np.add if node.op == "Sum" else np.multiply
    if wide is dtype:

        def reduce(x: Array, axes: tuple[int, ...], keep: bool) -> Any:
            if x.size >= OWN_LEAST and ufunc is _add:
                return add_up(x, axes, keep)
            return ufunc.reduce(x, axes, dtype, None, keep)

        return _reduction(node, reduce)
    return _reduction(
        node, lambda x, axes, keep: as_array(ufunc.reduce(x, axis=axes, dtype=wide, keepdims=keep)).astype(dtype)
    )


@kernel("Mean", T=NUMERIC)
def build_mean(node: KernelNode) -> Compute:
    """The mean of integers is added up in 64 bits and truncated, as C++ divides them."""
    dtype = output_type(node)
    integer = np.dtype(dtype).kind in "iu"
    wide = _accumulator(dtype) if not integer else np.uint64 if np.dtype(dtype).kind == "u" else np.int64
    #: How many elements → the divisor: making a NumPy scalar takes as long as adding up a row.
    divisors: dict[int, Any] = {}

    def reduce(x: Array, axes: tuple[int, ...], keep: bool) -> Any:
        if x.size >= OWN_LEAST and wide is dtype:
            total = add_up(x, axes, keep)
        else:
            total = _add.reduce(x, axes, wide, None, keep)
        count = 1
        for d in axes:
            count *= x.shape[d]
        if not integer:
            divisor = divisors.get(count)
            if divisor is None:
                divisor = wide(count)
                if len(divisors) < 16:
                    divisors[count] = divisor
            mean = as_array(total / divisor)
            return mean if wide is dtype else mean.astype(dtype)
        if count == 0:
            return np.zeros_like(total, dtype=dtype)
        return as_array(truncated_quotient(total, wide(count))).astype(dtype)

    return _reduction(node, reduce)


@kernel("Max", T=REAL)
def build_max(node: KernelNode) -> Compute:
    low = _lowest(output_type(node))
    return _reduction(node, lambda x, axes, keep: _maximum.reduce(x, axis=axes, keepdims=keep, initial=low))


@kernel("Min", T=REAL)
def build_min(node: KernelNode) -> Compute:
    high = _highest(output_type(node))
    return _reduction(node, lambda x, axes, keep: _minimum.reduce(x, axis=axes, keepdims=keep, initial=high))


@kernel("EuclideanNorm", T=NUMERIC)
def build_euclidean_norm(node: KernelNode) -> Compute:
    dtype = output_type(node)

    def reduce(x: Array, axes: tuple[int, ...], keep: bool) -> Any:
        return as_array(np.sqrt(_add.reduce(x * np.conj(x), axes, x.dtype, None, keep))).astype(dtype, copy=False)

    return _reduction(node, reduce)


@kernel("All", "Any")
def build_all_any(node: KernelNode) -> Compute:
    ufunc: Any = np.logical_and if node.op == "All" else np.logical_or
    return _reduction(node, lambda x, axes, keep: ufunc.reduce(x, axis=axes, keepdims=keep))


def arg_axis(x: Shaped, dimension: Array) -> int:
    """The axis, counted from the front. Raises InvalidArgumentError for an axis that does not exist or is empty."""
    if dimension.ndim:
        raise invalid(f"dim must be a scalar, but received tensor of shape: {shape_text(dimension.shape)}")
    d = int(dimension)
    where = canonical_axis(d, x.ndim, f"Expected dimension in the range [{-x.ndim}, {x.ndim}), but got {d}")
    if x.shape[where] == 0:
        raise invalid(f"Reduction axis {d} is empty in shape {shape_text(x.shape)}")
    return where


@kernel("ArgMax", "ArgMin", T=NUMERIC | BOOL)
def build_arg_max(node: KernelNode) -> Compute:
    """Of equal elements the first wins. A nan never does; of nothing but nan the first is named."""
    function = np.argmax if node.op == "ArgMax" else np.argmin
    dtype = output_type(node)
    worst = -np.inf if node.op == "ArgMax" else np.inf

    def compute(x: Array, dimension: Array) -> Array:
        where = arg_axis(x, dimension)
        found = as_array(function(x, axis=where))
        # Where there is a nan the sum is one, and for few it costs less than to look at what was found.
        if x.dtype.kind not in "biu" and (x.size > _FEW or x.dtype.kind != "f" or np.isnan(_add.reduce(x, None))):
            named = np.take_along_axis(x, np.expand_dims(found, where), where)
            if np.isnan(named).any():  # NumPy names a nan if there is one
                found = as_array(function(np.where(np.isnan(x), x.dtype.type(worst), x), axis=where))
        return found.astype(dtype, copy=False)

    return compute


def scan_axis(x: Shaped, axis: Array) -> int:
    """The axis, counted from the front. Raises InvalidArgumentError for an axis that does not exist."""
    if axis.ndim:
        raise invalid(f"ScanOp: axis must be a scalar, not {shape_text(axis.shape)}")
    d = int(axis)
    where = canonical_axis(d, x.ndim, f"Expected scan axis in the range [{-x.ndim}, {x.ndim}), but got {d}")
    return where


@kernel("Cumsum", "Cumprod", T=NUMERIC)
def build_cumulative(node: KernelNode) -> Compute:
    """`exclusive` leaves the element itself out; `reverse` accumulates from the end."""
    ufunc: Any = np.add if node.op == "Cumsum" else np.multiply
    neutral = 0 if node.op == "Cumsum" else 1
    exclusive, reverse = bool(node.attrs.get("exclusive")), bool(node.attrs.get("reverse"))

    def compute(x: Array, axis: Array) -> Array:
        where = scan_axis(x, axis)
        y = np.flip(x, where) if reverse else x
        out = ufunc.accumulate(y, axis=where, dtype=x.dtype)
        if exclusive and x.shape[where]:
            lead = (slice(None),) * where
            shifted = np.empty_like(out)
            shifted[(*lead, slice(1, None))] = out[(*lead, slice(None, -1))]
            shifted[(*lead, slice(0, 1))] = neutral
            out = shifted
        return np.flip(out, where) if reverse else out

    return compute


def segment_summer(element: DType, index: DType) -> Callable[[Array, Array, int], Array]:
    """(data, ids, count) → rows of data added up by id, in order, into `count` rows; for a builder, it compiles.

    Rows of negative ids are dropped. Raises InvalidArgumentError naming the first id that is `count` or more.
    """
    add = None
    if element in COMPILED and index in INDEX:
        from tenfold_kernels.cpu._compiled import rows

        add = rows.add_rows(element.as_numpy_dtype, index.as_numpy_dtype)
        add_columns = rows.add_columns(element.as_numpy_dtype, index.as_numpy_dtype)

    def sum_columns(columns: Array, ids: Array, count: int) -> Array:
        """Of data whose first axis was moved to the end, as they lie in memory; the sums lie there likewise."""
        out = np.zeros((*columns.shape[:-1], count), columns.dtype)
        data_WN, out_WC = columns.reshape(-1, ids.size), out.reshape(-1, count)
        bad = first_in_parts(
            lambda first, last: add_columns(data_WN[first:last], ids, out_WC[first:last]),
            len(data_WN),
            -(-_PART // ids.size),
        )
        if bad >= 0:
            raise _beyond_segments(ids, int((ids >= count).argmax()), count)
        return np.moveaxis(out, -1, 0)

    def sum_rows(data: Array, ids: Array, count: int) -> Array:
        row = data.shape[ids.ndim :]
        allow((count, *row), data.dtype)
        flags = data.flags
        if (
            add is not None
            and not flags.c_contiguous
            and data.ndim > ids.ndim == 1
            and data.strides[0] == data.itemsize
            and flags.aligned
            and data.size
            and count
        ):
            return sum_columns(np.moveaxis(data, 0, -1), contiguous(ids), count)
        out = np.zeros((count, *row), dtype=data.dtype)
        if add is not None and data.size and count:
            width = data.size // ids.size
            bad = add(contiguous(data).reshape(ids.size, width), contiguous(ids).reshape(-1), out.reshape(count, width))
            if bad >= 0:
                raise _beyond_segments(ids, bad, count)
            return out
        _check_below(ids, count)
        _add_at(np.add, out, data, ids)
        return out

    return sum_rows


def _beyond_segments(ids: Array, at: int, count: int) -> Exception:
    where = ",".join(str(int(i)) for i in np.unravel_index(at, ids.shape))
    return invalid(f"segment_ids[{where}] = {ids.reshape(-1)[at]} is out of range [0, {count})")


def _check_below(ids: Array, count: int) -> None:
    if ids.size and ids.max() >= count:
        raise _beyond_segments(ids, int((ids.reshape(-1) >= count).argmax()), count)


def _add_at(ufunc: Any, out: Array, data: Array, ids: Array) -> None:
    """Combines the rows of data with those of their ids; negative ids are dropped."""
    flat, rows = ids.reshape(-1), data.reshape(ids.size, *out.shape[1:])
    keep = flat >= 0
    if not keep.all():
        flat, rows = flat[keep], rows[keep]
    ufunc.at(out, flat, rows)


def check_segments(data: Array, ids: Array, rows: int | None = None) -> int:
    """How many rows a reduction by sorted ids gives: `rows`, or one for every id up to the last.

    Raises InvalidArgumentError for what TensorFlow finds first, segment by segment.
    """
    last = int(ids[-1]) + 1 if ids.size else 0
    if rows is None:
        rows = last
    elif rows < last:
        raise invalid("segment ids must be < num_segments")
    if rows < 0 or (ids.size and not rows):
        raise invalid("segment ids must be >= 0")
    if data.ndim < 1:
        raise invalid("Shape must be at least rank 1")
    allow((rows, *data.shape[1:]), data.dtype)
    if not ids.size:
        return rows
    steps = np.diff(ids)
    falls, outside = np.flatnonzero(steps < 0), np.flatnonzero((ids < 0) | (ids >= rows))
    if outside.size:
        # An id is compared with the next one once its segment is over, and then with the limit.
        ends = np.flatnonzero(steps)
        ends = ends[ends >= outside[0]]
        falls = falls[falls <= ends[0]] if ends.size else falls
    if falls.size:
        raise invalid("segment ids are not increasing")
    if outside.size:
        raise invalid(
            f"Segment id {ids[outside[0]]} out of range [0, {rows}), possibly because "
            "'segment_ids' input is not sorted."
        )
    return rows


@kernel("SegmentSum", "SegmentMean", "SegmentMax", "SegmentMin", "SegmentProd", T=NUMERIC)
def build_segment(node: KernelNode) -> Compute:
    """Sorted ids; the output has a row for every id up to the last, of zeros (SegmentProd: ones) if no row has it."""
    dtype = input_type(node)
    sum_rows = segment_summer(*node.input_types) if node.op in ("SegmentSum", "SegmentMean") else None

    def compute(data: Array, ids: Array) -> Array:
        check_segment_shapes(data, ids)
        count = check_segments(data, ids)
        allow((count,), np.int64, 2)  # of empty rows, too
        if sum_rows is not None:
            out = sum_rows(data, ids, count)
            if node.op == "SegmentMean":
                sizes = np.maximum(np.bincount(ids, minlength=count), 1).astype(dtype)
                sizes = sizes.reshape(-1, *(1,) * (data.ndim - 1))
                out = truncated_quotient(out, sizes) if sizes.dtype.kind in "iu" else out / sizes
            return out
        ufunc: Any = {"SegmentMax": np.maximum, "SegmentMin": np.minimum, "SegmentProd": np.multiply}[node.op]
        out = np.full((count, *data.shape[1:]), node.op == "SegmentProd", dtype=dtype)
        for i in np.unique(ids).tolist():
            out[i] = ufunc.reduce(data[ids == i], axis=0)
        return out

    return compute


def check_segment_shapes(data: Array, ids: Array) -> None:
    """Raises InvalidArgumentError unless there is an id for each row of data."""
    if ids.ndim != 1:
        raise invalid("segment_ids should be a vector.")
    if data.ndim < 1:
        raise invalid("Shape must be at least rank 1")
    if data.shape[0] != ids.size:
        raise invalid("segment_ids should be the same size as dimension 0 of input.")


@kernel("UnsortedSegmentMax", "UnsortedSegmentMin", T=NUMERIC | {dtypes.bfloat16})
@kernel("UnsortedSegmentSum", "UnsortedSegmentProd", T=NUMERIC)
def build_unsorted_segment(node: KernelNode) -> Compute:
    """Rows of `data` (all leading dimensions that the ids have) reduced by id; negative ids are dropped."""
    dtype = output_type(node)
    ufunc: Any
    start: Any
    match node.op:
        case "UnsortedSegmentSum":
            return _unsorted_segment_sum(node)
        case "UnsortedSegmentProd":
            ufunc, start = np.multiply, 1
        case "UnsortedSegmentMax":
            ufunc, start = np.maximum, lowest_finite(dtype)
        case _:
            ufunc, start = np.minimum, highest_finite(dtype)

    def compute(data: Array, ids: Array, num_segments: Array) -> Array:
        count = segment_count(data, ids, num_segments)
        _check_below(ids, count)
        row = data.shape[ids.ndim :]
        allow((count, *row), dtype)
        out = np.full((count, *row), start, dtype=dtype)
        _add_at(ufunc, out, data, ids)
        return out

    return compute


def _unsorted_segment_sum(node: KernelNode) -> Compute:
    sum_rows = segment_summer(node.input_types[0], node.input_types[1])

    def compute(data: Array, ids: Array, num_segments: Array) -> Array:
        return sum_rows(data, ids, segment_count(data, ids, num_segments))

    return compute


def segment_count(data: Array, ids: Array, num_segments: Array) -> int:
    """How many segments there are. Raises InvalidArgumentError for shapes that do not go together."""
    count = one_number(num_segments, "num_segments")
    if count < 0:
        raise invalid(f"num_segments must be >= 0, got {count}")
    if data.shape[: ids.ndim] != ids.shape:
        raise invalid(
            f"data.shape = {shape_text(data.shape)} does not start with segment_ids.shape = {shape_text(ids.shape)}"
        )
    return count


def lowest_finite(dtype: Any) -> Any:
    """The least number of a real NumPy type that is not infinite."""
    return _finfo(dtype).min if np.dtype(dtype).kind in "fV" else np.iinfo(dtype).min


def highest_finite(dtype: Any) -> Any:
    """The greatest number of a real NumPy type that is not infinite."""
    return _finfo(dtype).max if np.dtype(dtype).kind in "fV" else np.iinfo(dtype).max


@kernel("CumulativeLogsumexp", T=FLOATING)
def build_cumulative_logsumexp(node: KernelNode) -> Compute:
    exclusive, reverse = bool(node.attrs.get("exclusive")), bool(node.attrs.get("reverse"))
    dtype = output_type(node)

    def compute(x: Array, axis: Array) -> Array:
        at = one_number(axis, "ScanOp: axis")
        if not -x.ndim <= at < x.ndim:
            raise invalid(f"ScanOp: Expected scan axis in the range [{-x.ndim}, {x.ndim}), but got {at}")
        moved = np.moveaxis(x, at, 0)
        moved = moved[::-1] if reverse else moved
        out = np.logaddexp.accumulate(moved, axis=0) if moved.size else moved
        if exclusive and len(out):
            first = np.full((1, *out.shape[1:]), -np.inf, dtype)
            out = np.concatenate([first, out[:-1]])
        out = out[::-1] if reverse else out
        return np.ascontiguousarray(np.moveaxis(out, 0, at)).astype(dtype, copy=False)

    return compute
