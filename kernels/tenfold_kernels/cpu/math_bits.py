"""Bits, buckets, histograms, running log-sums, cross products, and the segment reductions that are told their size.

Outputs are fresh. Segments of chosen rows are in math_segments.py. Follows bitwise_ops.cc, bucketize_op.cc,
bincount_op.cc, histogram_op.cc, scan_ops.h and segment_reduction_ops_impl.h.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold_core.memory_limits import allow
from tenfold_kernels.cpu._common import Array, as_array, incompatible, invalid, one_number, output_type, shape_text
from tenfold_kernels.cpu.math_misc import build_batch_matmul
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.typesets import FLOATING, INTEGER, NUMERIC, REAL

kernel("BatchMatMulV3", Ta=NUMERIC, Tb=NUMERIC)(build_batch_matmul)


def _broadcasting(function: Any) -> Compute:
    def compute(x: Array, y: Array) -> Array:
        try:
            return as_array(function(x, y))
        except ValueError:
            raise incompatible(x, y) from None

    return compute


@kernel("BitwiseAnd", "BitwiseOr", "BitwiseXor", T=INTEGER)
def build_bitwise(node: KernelNode) -> Compute:
    return _broadcasting({"And": np.bitwise_and, "Or": np.bitwise_or, "Xor": np.bitwise_xor}[node.op[len("Bitwise") :]])


@kernel("LeftShift", "RightShift", T=INTEGER)
def build_shift(node: KernelNode) -> Compute:
    """Shifts by less than nothing count as none, by all bits or more as by all but one."""
    dtype = np.dtype(output_type(node))
    shift: Any = np.left_shift if node.op == "LeftShift" else np.right_shift
    most = dtype.type(8 * dtype.itemsize - 1)
    return _broadcasting(lambda x, y: shift(x, np.clip(y, dtype.type(0), most)))


@kernel("Invert", T=INTEGER)
def build_invert(node: KernelNode) -> Compute:
    return lambda x: as_array(np.invert(x))


@kernel("PopulationCount", T=INTEGER)
def build_population_count(node: KernelNode) -> Compute:
    """How many bits are set, of a negative number those of its two's complement."""

    def compute(x: Array) -> Array:
        as_bytes = np.ascontiguousarray(x).reshape(-1, 1).view(np.uint8)
        return as_array(np.unpackbits(as_bytes, axis=1).sum(axis=1, dtype=np.uint8)).reshape(x.shape)

    return compute


@kernel("Bucketize")
def build_bucketize(node: KernelNode) -> Compute:
    """How many boundaries are not greater than each element. Boundaries are floats."""
    boundaries = np.array(node.attrs["boundaries"], np.float32)
    if (np.diff(boundaries) < 0).any():
        raise invalid("Expected sorted boundaries")
    return lambda x: as_array(np.searchsorted(boundaries, x, side="right")).astype(np.int32)


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


@kernel("Cross", T=REAL)
def build_cross(node: KernelNode) -> Compute:
    def compute(a: Array, b: Array) -> Array:
        if a.shape != b.shape:
            raise invalid(f"Both inputs must be of same shape: {shape_text(a.shape)} vs. {shape_text(b.shape)}")
        if a.ndim < 1 or a.shape[-1] != 3:
            raise invalid(f"Cross-products are only defined for 3-element vectors, got shape {shape_text(a.shape)}")
        (x, y, z), (u, v, w) = np.moveaxis(a, -1, 0), np.moveaxis(b, -1, 0)
        return np.stack([y * w - z * v, z * u - x * w, x * v - y * u], axis=-1)

    return compute


@kernel("HistogramFixedWidth", T=REAL)
def build_histogram(node: KernelNode) -> Compute:
    """Counts in `nbins` bins of equal width; what lies outside goes to the first or last."""
    dtype = output_type(node)

    def compute(values: Array, value_range: Array, nbins: Array) -> Array:
        count = one_number(nbins, "nbins")
        if value_range.shape != (2,):
            raise invalid(f"value_range should be a vector of 2 elements, got shape {shape_text(value_range.shape)}")
        low, high = value_range.tolist()
        if not low < high:
            raise invalid(f"value_range should satisfy value_range[0] < value_range[1], but got '[{low}, {high}]'")
        if count <= 0:
            raise invalid(f"nbins should be a positive number, but got '{count}'")
        allow((count,), np.int64, 2)
        step = (high - low) / count
        places = np.floor((values.reshape(-1).astype(np.float64) - low) / step)
        bins = np.clip(np.nan_to_num(places, nan=0.0), 0, count - 1).astype(np.int64)
        return np.bincount(bins, minlength=count).astype(dtype)

    return compute


@kernel("DenseBincount", T=REAL)
def build_dense_bincount(node: KernelNode) -> Compute:
    """Counts (or sums of weights) of values below `size`, for a vector or for each row of a matrix."""
    dtype, binary = output_type(node), bool(node.attrs.get("binary_output"))

    def row(values: Array, count: int, weights: Array | None) -> Array:
        keep = values < count
        if binary:
            out = np.zeros(count, dtype)
            out[values[keep]] = 1
            return out
        return np.bincount(values[keep], None if weights is None else weights[keep], minlength=count).astype(dtype)

    def compute(values: Array, size: Array, weights: Array) -> Array:
        if values.ndim > 2:
            raise invalid("Shape must be at most rank 2 but is rank " + str(values.ndim))
        count = one_number(size, "size")
        if count < 0:
            raise invalid(f"size ({count}) must be non-negative")
        allow((*values.shape[:-1], count), np.int64, 2)
        if weights.size and weights.shape != values.shape:
            raise invalid(
                "`weights` must be the same shape as `arr` or a length-0 `Tensor`, in which case it acts as "
                "all weights equal to 1."
            )
        if values.size and values.min() < 0:
            raise invalid("Input must be non-negative")
        weighted = weights if weights.size else None
        if values.ndim < 2:
            return row(values.reshape(-1), count, None if weighted is None else weighted.reshape(-1))
        rows = [row(v, count, None if weighted is None else weighted[i]) for i, v in enumerate(values)]
        return np.stack(rows) if rows else np.empty((0, count), dtype)

    return compute


@kernel("SparseMatMul")
def build_sparse_matmul(node: KernelNode) -> Compute:
    """A product whose operands hold many zeros: here one like any other."""
    turn_a, turn_b = bool(node.attrs.get("transpose_a")), bool(node.attrs.get("transpose_b"))

    def compute(a: Array, b: Array) -> Array:
        if a.ndim != 2 or b.ndim != 2:
            raise invalid(f"a and b must be matrices, got shapes {shape_text(a.shape)} and {shape_text(b.shape)}")
        left, right = a.T if turn_a else a, b.T if turn_b else b
        if left.shape[1] != right.shape[0]:
            raise invalid(f"Matrix size incompatible: a: {shape_text(a.shape)}, b: {shape_text(b.shape)}")
        return as_array(np.matmul(left, right))

    return compute


@kernel("RaggedRange")
def build_ragged_range(node: KernelNode) -> Compute:
    """(splits, values) of the ranges one after the other; scalars repeat."""
    splits_type, dtype = output_type(node), output_type(node, 1)

    def compute(starts: Array, limits: Array, deltas: Array) -> tuple[Array, Array]:
        vectors = [v for v in (starts, limits, deltas) if v.ndim]
        if len({len(v) for v in vectors}) > 1:
            raise invalid("starts, limits, and deltas must have the same shape")
        if (deltas == 0).any():
            raise invalid("Requires delta != 0")
        rows = [tuple(v.item() for v in row) for row in np.broadcast(starts, limits, deltas)]
        total = sum(max(0.0, np.ceil((limit - start) / delta)) for start, limit, delta in rows)
        if not np.isfinite(total):
            raise invalid(f"Requires ((limit - start) / delta) <= {np.iinfo(np.int64).max}")
        allow((int(total),), dtype, 2)
        parts = [np.arange(*row, dtype=dtype) for row in rows]
        splits = np.cumsum([0, *(len(p) for p in parts)]).astype(splits_type)
        return splits, np.concatenate(parts).astype(dtype, copy=False) if parts else np.empty(0, dtype)

    return compute


#: Reduction, and what an id without rows gives, by op.
_SEGMENTS: dict[str, tuple[Any, Any]] = {
    "SegmentSumV2": (np.add, lambda dtype: 0),
    "SegmentProdV2": (np.multiply, lambda dtype: 1),
    "SegmentMaxV2": (np.maximum, lambda dtype: np.finfo(dtype).min if dtype.kind == "f" else np.iinfo(dtype).min),
    "SegmentMinV2": (np.minimum, lambda dtype: np.finfo(dtype).max if dtype.kind == "f" else np.iinfo(dtype).max),
}


@kernel(*_SEGMENTS, T=NUMERIC)
def build_segment_v2(node: KernelNode) -> Compute:
    """Reduction by sorted ids into `num_segments` rows."""
    reduction, empty = _SEGMENTS[node.op]
    dtype = np.dtype(output_type(node))
    start = empty(dtype)

    def compute(data: Array, ids: Array, num_segments: Array) -> Array:
        count = int(num_segments)
        if ids.ndim != 1 or data.ndim < 1 or len(ids) != len(data):
            raise invalid("segment_ids should be the same size as dimension 0 of input.")
        if ids.size and (np.diff(ids) < 0).any():
            raise invalid("segment ids are not increasing")
        if count < 0 or (ids.size and (ids[0] < 0 or ids[-1] >= count)):
            raise invalid(f"segment ids must be in [0, num_segments = {count})")
        allow((count, *data.shape[1:]), dtype)
        out = np.full((count, *data.shape[1:]), start, dtype)
        reduction.at(out, ids, data)
        return out

    return compute
