"""Tensors with some elements updated: ScatterNd, TensorScatter*, SparseToDense, Inplace*. Outputs are fresh.

An index out of bounds is an error that names it. Scatters into variables are in state_scatter.py. Follows
scatter_nd_op.cc and inplace_ops.cc.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold_kernels.arrays import Array, as_shape, contiguous, input_type, invalid, shape_text
from tenfold_kernels.cpu._nd_places import check_nd_updates, nd_updater, scattered_shape
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.typesets import ANY, BOOL, NUMERIC, REAL

#: Op → how an update meets what is there; None: it takes its place.
_SCATTERS: dict[str, Any] = {
    "TensorScatterAdd": np.add,
    "TensorScatterUpdate": None,
    "TensorScatterSub": np.subtract,
    "TensorScatterMax": np.maximum,
    "TensorScatterMin": np.minimum,
    "ScatterNdNonAliasingAdd": np.add,
}


@kernel("ScatterNd", T=ANY)
def build_scatter_nd(node: KernelNode) -> Compute:
    """Zeros (or empty strings) of `shape` with the updates added; updates to one place accumulate."""
    update = nd_updater(node, np.add)

    def compute(indices: Array, updates: Array, shape: Array) -> Array:
        dims = scattered_shape(indices, updates, shape)
        out = np.zeros(dims, updates.dtype) if not updates.dtype.hasobject else np.full(dims, b"", object)
        return update(out, indices, updates)

    return compute


@kernel("TensorScatterAdd", "TensorScatterUpdate", T=ANY)
@kernel("TensorScatterSub", T=NUMERIC)
@kernel("ScatterNdNonAliasingAdd", T=NUMERIC | BOOL)
@kernel("TensorScatterMax", "TensorScatterMin", T=REAL)
def build_tensor_scatter(node: KernelNode) -> Compute:
    """A copy of the tensor with the updates worked in; updates to one place accumulate."""
    update = nd_updater(node, _SCATTERS[node.op])

    def compute(tensor: Array, indices: Array, updates: Array) -> Array:
        check_nd_updates(indices, updates, tensor.shape)
        return update(tensor.copy(), indices, updates)

    return compute


@kernel("InplaceUpdate")
@kernel("InplaceAdd", "InplaceSub", T=NUMERIC)
def build_inplace(node: KernelNode) -> Compute:
    """(x, rows, values) → a copy of x with those rows changed: no kernel writes to an input."""

    def compute(x: Array, rows: Array, values: Array) -> Array:
        if rows.ndim != 1:
            raise invalid(f"i must be a vector, got shape {shape_text(rows.shape)}")
        if x.ndim < 1 or values.shape != (*rows.shape, *x.shape[1:]):
            raise invalid(f"v must have the shape of the rows of x that i names: {shape_text(values.shape)}")
        out = x.copy()
        if len(x) == 0:
            return out
        # TensorFlow wraps the row numbers round.
        at = rows % len(x)
        if node.op == "InplaceUpdate":
            out[at] = values
        else:
            (np.add if node.op == "InplaceAdd" else np.subtract).at(out, at, values)
        return out

    return compute


@kernel("SparseToDense", T=ANY)
def build_sparse_to_dense(node: KernelNode) -> Compute:
    from tenfold_kernels.cpu._compiled import sparse_places

    validate = bool(node.attrs.get("validate_indices", True))
    number_places = sparse_places.number_places(input_type(node))

    def compute(indices: Array, shape: Array, values: Array, default: Array) -> Array:
        if indices.ndim > 2:
            raise invalid(
                f"sparse_indices should be a scalar, vector, or matrix, got shape {shape_text(indices.shape)}"
            )
        if shape.ndim != 1:
            raise invalid(f"output_shape must be rank 1, got shape {shape_text(shape.shape)}")
        rows = (
            indices.reshape(indices.shape[0] if indices.ndim else 1, -1)
            if indices.size
            else indices.reshape(0, shape.size)
        )
        if rows.shape[1] != shape.size:
            raise invalid(f"output_shape has incorrect number of elements: {shape.size} should be: {rows.shape[1]}")
        if values.ndim and values.shape != (rows.shape[0],):
            raise invalid(
                f"sparse_values has incorrect shape {shape_text(values.shape)}, should be [] or [{rows.shape[0]}]"
            )
        if default.ndim:
            raise invalid(f"default_value should be a scalar, got shape {shape_text(default.shape)}")
        dims = as_shape(shape, "output_shape", values.dtype)
        numbers = np.empty(len(rows), np.int64)
        if number_places(contiguous(rows), np.array(dims, np.int64), numbers, validate) >= 0:
            _check_places(rows, dims, validate)
        out = np.full(dims, default[()], dtype=values.dtype)
        out.reshape(-1)[numbers] = values
        return out

    return compute


def _check_places(rows: Array, dims: tuple[int, ...], validate: bool) -> None:
    """Raises InvalidArgumentError for the first place that is wrong."""
    if validate:
        _check_order(rows, dims)
    outside = (rows < 0) | (rows >= np.array(dims, np.int64))
    if outside.any():
        at = int(outside.any(axis=1).argmax())
        limits = shape_text(dims)
        raise invalid(f"indices[{at}] = {shape_text(rows[at])} is out of bounds: need 0 <= index < {limits}")


def _check_order(rows: Array, dims: tuple[int, ...]) -> None:
    """Index tuples must be inside, strictly increasing, and so without repeats."""
    previous: list[int] | None = None
    for i, row in enumerate(rows.tolist()):
        text = f"indices[{i}] = [{','.join(map(str, row))}]"
        if any(not 0 <= v < d for v, d in zip(row, dims, strict=True)):
            raise invalid(f"{text} is out of bounds: need 0 <= index < {shape_text(dims)}")
        if previous is not None and row == previous:
            raise invalid(f"{text} is repeated")
        if previous is not None and row < previous:
            raise invalid(
                f"{text} is out of order. Many sparse ops require sorted indices.\n"
                "    Use `tf.sparse.reorder` to create a correctly ordered copy.\n\n"
            )
        previous = row
