"""Positions by value and values by position: Where, OneHot, LowerBound, UpperBound.

Outputs are fresh arrays. Follows where_op.cc, one_hot_op.cc and searchsorted_op.cc.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold_core.memory_limits import allow
from tenfold_kernels.arrays import Array, invalid, output_type, shape_text
from tenfold_kernels.registry import Compute, KernelNode, kernel


@kernel("Where")
def build_where(node: KernelNode) -> Compute:
    """Coordinates of the true (non-zero) elements, in row-major order: int64 [count, rank]."""

    def compute(x: Array) -> Array:
        if x.ndim == 0:
            return np.zeros((int(bool(x)), 0), dtype=np.int64)
        found = x.nonzero()
        out = np.empty((len(found[0]), x.ndim), np.int64)
        for axis, places in enumerate(found):
            out[:, axis] = places
        return out

    return compute


@kernel("OneHot")
def build_one_hot(node: KernelNode) -> Compute:
    """on_value at the index along the new axis, off_value elsewhere; an index out of range marks nothing."""
    axis = int(node.attrs.get("axis", -1))
    dtype = output_type(node)

    def compute(indices: Array, depth: Array, on: Array, off: Array) -> Array:
        n = one_hot_depth(indices, depth, on, off, axis, dtype)
        hot = indices[..., np.newaxis] == np.arange(n)
        out = np.where(hot, on, off)
        return out if axis in (-1, indices.ndim) else np.ascontiguousarray(np.moveaxis(out, -1, axis))

    return compute


def one_hot_depth(indices: Array, depth: Array, on: Array, off: Array, axis: int, dtype: Any) -> int:
    """The size of the new axis. Raises InvalidArgumentError; reads no element but that of `depth`."""
    if depth.ndim:
        raise invalid(f"depth must be a scalar, but got: {shape_text(depth.shape)}")
    for name, value in (("on_value", on), ("off_value", off)):
        if value.ndim:
            raise invalid(f"{name} must be a scalar, but got: {shape_text(value.shape)}")
    n = int(depth)
    if n < 0:
        raise invalid(f"depth must be non-negative, got: {n}")
    if not -1 <= axis <= indices.ndim:
        raise invalid(f"Expected axis to be -1 or between [0, {indices.ndim}).  But received: {axis}")
    allow((*indices.shape, n), dtype, 2)
    return n


@kernel("LowerBound", "UpperBound")
def build_bound(node: KernelNode) -> Compute:
    side = "left" if node.op == "LowerBound" else "right"
    dtype = output_type(node)

    def compute(rows: Array, values: Array) -> Array:
        if rows.ndim != 2 or values.ndim != 2 or len(rows) != len(values):
            raise invalid(
                "Leading dim_size of both tensors must match: sorted_inputs "
                f"{shape_text(rows.shape)}, values {shape_text(values.shape)}"
            )
        found = [np.searchsorted(r, v, side=side) for r, v in zip(rows, values, strict=True)]  # type: ignore[call-overload]
        bounds = np.array(found, dtype=dtype).reshape(values.shape)
        if side == "left" and values.dtype.kind not in "biuSO":
            bounds[np.isnan(values)] = 0  # nothing is less than nan
        return bounds

    return compute
