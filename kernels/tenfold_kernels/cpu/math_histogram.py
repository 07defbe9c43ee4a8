"""Counts: Bincount and those of dense, sparse and ragged rows, HistogramFixedWidth, Bucketize. Outputs are fresh.

Follows bincount_op.cc, histogram_op.cc and bucketize_op.cc.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold_core.memory_limits import allow
from tenfold_kernels.arrays import Array, as_array, invalid, one_number, output_type, shape_text
from tenfold_kernels.cpu.sparse import check_sparse
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.typesets import REAL


@kernel("Bincount", T=REAL)
def build_bincount(node: KernelNode) -> Compute:
    """How often each value below `size` occurs, or the sum of its weights; larger values are left out."""
    dtype = output_type(node)

    def compute(values: Array, size: Array, weights: Array) -> Array:
        count = one_number(size, "size")
        if count < 0:
            raise invalid(f"size ({count}) must be non-negative")
        allow((count,), np.int64, 2)
        flat = values.reshape(-1)
        if flat.size and flat.min() < 0:
            raise invalid("Input arr must be non-negative!")
        if weights.size and weights.size != flat.size:
            raise invalid(
                "Input indices and weights must have the same shape: "
                f"{shape_text(values.shape)} vs. {shape_text(weights.shape)}"
            )
        keep = flat < count
        weight = weights.reshape(-1)[keep] if weights.size else None
        return np.bincount(flat[keep], weight, minlength=count).astype(dtype)

    return compute


@kernel("Bucketize")
def build_bucketize(node: KernelNode) -> Compute:
    """How many boundaries are not greater than each element. Boundaries are floats."""
    boundaries = np.array(node.attrs["boundaries"], np.float32)
    if (np.diff(boundaries) < 0).any():
        raise invalid("Expected sorted boundaries")
    return lambda x: as_array(np.searchsorted(boundaries, x, side="right")).astype(np.int32)


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
        if values.dtype.kind not in "iu" and np.isnan(values).any():
            raise invalid("values must not contain NaN")
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


def _check_counted(values: Array, size: Array, weights: Array, what: str) -> int:
    """How many counts a row has. Raises InvalidArgumentError where inputs do not fit."""
    if size.ndim:
        raise invalid(f"Shape must be rank 0 but is rank {size.ndim}: size must be a scalar")
    count = one_number(size, "size")
    if count < 0:
        raise invalid(f"size ({count}) must be non-negative")
    if weights.size and weights.shape != values.shape:
        raise invalid(
            f"`weights` must be the same shape as {what} or a length-0 `Tensor`, in which case it acts as all weights "
            "equal to 1."
        )
    if values.size and values.min() < 0:
        raise invalid("Input must be non-negative")
    return count


def _counts_of_rows(
    rows: Array, values: Array, weights: Array, shape: tuple[int, int], dtype: Any, binary: bool
) -> Array:
    """Counts [rows, size] of values, each in its row; those that are too large are left out."""
    allow(shape, np.int64, 2)
    keep = values < shape[1]
    places = rows[keep].astype(np.int64) * shape[1] + values[keep]
    if binary:
        out = np.zeros(shape[0] * shape[1], dtype)
        out[places] = 1
    else:
        weight = weights[keep] if weights.size else None
        out = np.bincount(places, weight, minlength=shape[0] * shape[1]).astype(dtype)
    return out.reshape(shape)


@kernel("SparseBincount", T=REAL)
def build_sparse_bincount(node: KernelNode) -> Compute:
    """Counts of a sparse vector's values, or of each row of a sparse matrix."""
    dtype, binary = output_type(node), bool(node.attrs.get("binary_output"))

    def compute(indices: Array, values: Array, dense_shape: Array, size: Array, weights: Array) -> Array:
        dims = check_sparse(indices, values, dense_shape)
        if len(dims) not in (1, 2):
            raise invalid(f"`dense_shape` must be 1D or 2D, but has {len(dims)} dimensions")
        count = _check_counted(values, size, weights, "`values`")
        if len(dims) == 1:
            rows = np.zeros(len(values), np.int64)
            return _counts_of_rows(rows, values, weights, (1, count), dtype, binary).reshape(-1)
        return _counts_of_rows(indices[:, 0], values, weights, (dims[0], count), dtype, binary)

    return compute


@kernel("RaggedBincount", T=REAL)
def build_ragged_bincount(node: KernelNode) -> Compute:
    """Counts of each row's values."""
    dtype, binary = output_type(node), bool(node.attrs.get("binary_output"))

    def compute(splits: Array, values: Array, size: Array, weights: Array) -> Array:
        if splits.ndim != 1:
            raise invalid(f"Splits must be a vector, got shape {shape_text(splits.shape)}")
        if not splits.size:
            raise invalid("Splits must be non-empty: the first is 0, the last the number of values")
        if values.ndim != 1:
            raise invalid(f"values must be a vector, got shape {shape_text(values.shape)}")
        if splits[0]:
            raise invalid(f"Splits must start with 0, not with {splits[0]}")
        lengths = np.diff(splits)
        if splits[-1] != len(values) or (lengths < 0).any():
            raise invalid(
                f"Splits must be in order and end with the number of values, got {splits[-1]} instead of {len(values)}"
            )
        if weights.size == values.size:
            weights = weights.reshape(-1)  # of any shape here, unlike those of the others
        count = _check_counted(values, size, weights, "`values`")
        rows = np.repeat(np.arange(len(lengths)), lengths)
        return _counts_of_rows(rows, values, weights, (len(lengths), count), dtype, binary)

    return compute
