"""Ops that find, count or lay out by value: Where, Unique, ListDiff, OneHot, diagonals, sequences, blocks.

Outputs are fresh arrays. Follows where_op.cc, unique_op.cc, listdiff_op.cc, one_hot_op.cc, matrix_*_op.cc.
"""

from __future__ import annotations

import numpy as np

from tenfold_core.memory_limits import allow
from tenfold_kernels.cpu._common import Array, canonical_axis, invalid, one_number, output_type, shape_text
from tenfold_kernels.registry import Compute, KernelNode, kernel


@kernel("Where")
def build_where(node: KernelNode) -> Compute:
    """Coordinates of the true (non-zero) elements, in row-major order: int64 [count, rank]."""

    def compute(x: Array) -> Array:
        if x.ndim == 0:
            return np.zeros((int(bool(x)), 0), dtype=np.int64)
        return np.argwhere(x).astype(np.int64, copy=False)

    return compute


@kernel("Unique", "UniqueWithCounts")
def build_unique(node: KernelNode) -> Compute:
    """Values in the order of their first occurrence, and where each element went."""
    index_type = output_type(node, 1)

    def compute(x: Array) -> tuple[Array, ...]:
        if x.ndim != 1:
            raise invalid(f"unique expects a 1D vector, got shape {shape_text(x.shape)}")
        values, first, inverse, counts = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
        order = np.argsort(first, kind="stable")
        place = np.empty_like(order)
        place[order] = np.arange(order.size)
        result = values[order], place[inverse.reshape(-1)].astype(index_type)
        return result if node.op == "Unique" else (*result, counts[order].astype(index_type))

    return compute


@kernel("ListDiff")
def build_list_diff(node: KernelNode) -> Compute:
    """The elements of x that are not in y, in their order, and where they were."""
    index_type = output_type(node, 1)

    def compute(x: Array, y: Array) -> tuple[Array, Array]:
        for name, value in (("x", x), ("y", y)):
            if value.ndim != 1:
                raise invalid(f"{name} should be a 1D vector.")
        keep = ~np.isin(x, y)
        return x[keep], np.flatnonzero(keep).astype(index_type)

    return compute


@kernel("OneHot")
def build_one_hot(node: KernelNode) -> Compute:
    """on_value at the index along the new axis, off_value elsewhere; an index out of range marks nothing."""
    axis = int(node.attrs.get("axis", -1))
    dtype = output_type(node)

    def compute(indices: Array, depth: Array, on: Array, off: Array) -> Array:
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
        hot = np.expand_dims(indices, -1) == np.arange(n)
        out = np.where(hot, on, off).astype(dtype, copy=False)
        return out if axis in (-1, indices.ndim) else np.ascontiguousarray(np.moveaxis(out, -1, axis))

    return compute


@kernel("Diag")
def build_diag(node: KernelNode) -> Compute:
    def compute(x: Array) -> Array:
        if x.ndim < 1:
            raise invalid("Input must be at least rank 1, got 0")
        allow(x.shape + x.shape, x.dtype, 2)
        return np.diag(x.reshape(-1)).reshape(x.shape + x.shape).copy()

    return compute


@kernel("DiagPart")
def build_diag_part(node: KernelNode) -> Compute:
    def compute(x: Array) -> Array:
        half = x.ndim // 2
        if x.ndim % 2 or not half or x.shape[:half] != x.shape[half:]:
            raise invalid(
                f"The rank of the tensor should be even and its halves equal, got shape {shape_text(x.shape)}"
            )
        size = int(np.prod(x.shape[:half]))
        return x.reshape(size, size).diagonal().reshape(x.shape[:half]).copy()

    return compute


@kernel("MatrixDiag")
def build_matrix_diag(node: KernelNode) -> Compute:
    def compute(x: Array) -> Array:
        if x.ndim < 1:
            raise invalid(f"input must be at least 1-dim, received shape: {shape_text(x.shape)}")
        n = x.shape[-1]
        allow((*x.shape, n), x.dtype)
        out = np.zeros((*x.shape, n), dtype=x.dtype)
        out[..., np.arange(n), np.arange(n)] = x
        return out

    return compute


@kernel("MatrixDiagPart")
def build_matrix_diag_part(node: KernelNode) -> Compute:
    def compute(x: Array) -> Array:
        if x.ndim < 2:
            raise invalid(f"input must be at least 2-dim, received shape: {shape_text(x.shape)}")
        return x.diagonal(axis1=-2, axis2=-1).copy()

    return compute


@kernel("MatrixSetDiag")
def build_matrix_set_diag(node: KernelNode) -> Compute:
    def compute(x: Array, diagonal: Array) -> Array:
        out = x.copy()
        n = min(x.shape[-2:])
        if diagonal.shape != (*x.shape[:-2], n):
            raise invalid(
                f"must have diagonal.shape == [{','.join(map(str, (*x.shape[:-2], n)))}], "
                f"received diagonal shape: {shape_text(diagonal.shape)}"
            )
        out[..., np.arange(n), np.arange(n)] = diagonal
        return out

    return compute


@kernel("MatrixBandPart", "BatchMatrixBandPart")
def build_matrix_band_part(node: KernelNode) -> Compute:
    def compute(x: Array, lower: Array, upper: Array) -> Array:
        if x.ndim < 2:
            raise invalid(f"input must be at least 2-dim, received shape: {shape_text(x.shape)}")
        rows, columns = x.shape[-2:]
        low, high = one_number(lower, "num_lower"), one_number(upper, "num_upper")
        if low > rows or high > columns:
            raise invalid(f"num_lower and num_upper must be at most the matrix's size, got {low} and {high}")
        offset = np.arange(columns) - np.arange(rows)[:, None]
        keep = ((low < 0) | (-offset <= low)) & ((high < 0) | (offset <= high))
        return np.where(keep, x, x.dtype.type(0))

    return compute


@kernel("ReverseSequence")
def build_reverse_sequence(node: KernelNode) -> Compute:
    """For each batch entry, turns round the first seq_lengths[i] elements along seq_dim."""
    seq_attr, batch_attr = int(node.attrs["seq_dim"]), int(node.attrs.get("batch_dim", 0))

    def compute(x: Array, lengths: Array) -> Array:
        seq = canonical_axis(seq_attr, x.ndim, f"seq_dim must be < input rank ( {seq_attr} vs. {x.ndim})")
        batch = canonical_axis(batch_attr, x.ndim, f"batch_dim must be < input rank ( {batch_attr} vs. {x.ndim})")
        if batch == seq:
            raise invalid(f"batch_dim == seq_dim == {seq}")
        if lengths.shape != (x.shape[batch],):
            raise invalid(f"Length of seq_lengths != input.dims({batch}), ({lengths.size} vs. {x.shape[batch]})")
        out = x.copy()
        source, target = np.moveaxis(x, (batch, seq), (0, 1)), np.moveaxis(out, (batch, seq), (0, 1))
        for i, n in enumerate(lengths.tolist()):
            if n < 0:
                raise invalid(f"seq_lens({i}) < 0")
            if n > x.shape[seq]:
                raise invalid(f"seq_lens({i}) > input.dims({seq})")
            target[i, :n] = source[i, :n][::-1]
        return out

    return compute


@kernel("SpaceToDepth", "DepthToSpace")
def build_space_to_depth(node: KernelNode) -> Compute:
    """NHWC: blocks of space become channels, and back."""
    block = int(node.attrs["block_size"])
    to_depth = node.op == "SpaceToDepth"
    if node.attrs.get("data_format", b"NHWC") not in (b"NHWC", "NHWC"):
        raise invalid(f"{node.op} on the CPU supports data_format NHWC only")

    def compute(x: Array) -> Array:
        if x.ndim != 4:
            raise invalid(f"Input rank should be: 4 instead of: {x.ndim}")
        n, h, w, c = x.shape
        if to_depth:
            if h % block or w % block:
                raise invalid(f"Image width {w} and height {h} should be divisible by block_size: {block}")
            parts = x.reshape(n, h // block, block, w // block, block, c).transpose(0, 1, 3, 2, 4, 5)
            return np.ascontiguousarray(parts).reshape(n, h // block, w // block, c * block * block)
        if c % (block * block):
            raise invalid(f"Input depth dimension {c} should be divisible by: {block * block}")
        parts = x.reshape(n, h, w, block, block, c // (block * block)).transpose(0, 1, 3, 2, 4, 5)
        return np.ascontiguousarray(parts).reshape(n, h * block, w * block, c // (block * block))

    return compute


@kernel("LowerBound", "UpperBound")
def build_bound(node: KernelNode) -> Compute:
    side = "left" if node.op == "LowerBound" else "right"
    dtype = output_type(node)

    def compute(rows: Array, values: Array) -> Array:
        found = [np.searchsorted(r, v, side=side) for r, v in zip(rows, values, strict=True)]  # type: ignore[call-overload]
        return np.array(found, dtype=dtype).reshape(values.shape)

    return compute
