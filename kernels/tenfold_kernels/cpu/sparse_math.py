"""Arithmetic of sparse tensors: sums, extremes, products with dense tensors, reductions and softmax.

Their form and its checks are in sparse.py. Outputs are fresh. Follows sparse_add_op.cc, sparse_reduce_op.cc,
sparse_sparse_binary_op_shared.cc, sparse_dense_binary_op_shared.cc and sparse_softmax_op.cc.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tenfold_core.memory_limits import allow
from tenfold_kernels.arrays import Array, as_array, invalid, shape_text, truncated_quotient
from tenfold_kernels.cpu.sparse import check_sparse, place_numbers, places_of
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.typesets import FLOATING, NUMERIC, REAL


@kernel("SparseAdd", T=NUMERIC)
def build_sparse_add(node: KernelNode) -> Compute:
    """The sum over both sets of places; where both have a value, a sum smaller than `thresh` is left out."""

    def compute(ai: Array, av: Array, shape: Array, bi: Array, bv: Array, b_shape: Array, threshold: Array) -> Any:
        if threshold.ndim:
            raise invalid(f"The magnitude threshold must be a scalar: got shape {shape_text(threshold.shape)}")
        dims = check_sparse(ai, av, shape)
        if check_sparse(bi, bv, b_shape) != dims:
            raise invalid(f"Input shapes must match: {shape_text(dims)} vs. {shape_text(b_shape.tolist())}")
        of_a, of_b = place_numbers(ai, dims), place_numbers(bi, dims)
        numbers, total = _merged(of_a, av, of_b, bv, np.add)
        keep = (np.abs(total) >= threshold) | ~(np.isin(numbers, of_a) & np.isin(numbers, of_b))
        return places_of(numbers[keep], dims), total[keep], shape.copy()

    return compute


def _merged(a: Array, a_values: Array, b: Array, b_values: Array, meet: Any) -> tuple[Array, Array]:
    """All places of both, in order, and meet(a's value or 0, b's value or 0) at each."""
    numbers = np.union1d(a, b)
    left, right = np.zeros(len(numbers), a_values.dtype), np.zeros(len(numbers), a_values.dtype)
    np.add.at(left, np.searchsorted(numbers, a), a_values)
    np.add.at(right, np.searchsorted(numbers, b), b_values)
    return numbers, meet(left, right)


@kernel("SparseAddGrad", T=NUMERIC)
def build_sparse_add_grad(node: KernelNode) -> Compute:
    def compute(gradient: Array, ai: Array, bi: Array, sum_indices: Array) -> tuple[Array, Array]:
        for name, value, rank in (
            ("backprop_val_grad", gradient, 1),
            ("a_indices", ai, 2),
            ("b_indices", bi, 2),
            ("sum_indices", sum_indices, 2),
        ):
            if value.ndim != rank:
                raise invalid(f"{name} must be of rank {rank}, got shape {shape_text(value.shape)}")
        if len(gradient) != len(sum_indices) or not ai.shape[1] == bi.shape[1] == sum_indices.shape[1]:
            raise invalid(
                f"# of gradients ({len(gradient)}), sum_indices {shape_text(sum_indices.shape)}, a_indices "
                f"{shape_text(ai.shape)} and b_indices {shape_text(bi.shape)} do not go together"
            )
        seen = {tuple(row): i for i, row in enumerate(sum_indices.tolist())}
        zero = np.append(gradient, gradient.dtype.type(0))
        at_a, at_b = ([seen.get(tuple(row), -1) for row in rows.tolist()] for rows in (ai, bi))
        return zero[np.array(at_a, np.int64)], zero[np.array(at_b, np.int64)]

    return compute


@kernel("SparseSparseMaximum", T=REAL)
@kernel("SparseSparseMinimum", T=NUMERIC)
def build_sparse_sparse(node: KernelNode) -> Compute:
    """The larger or smaller at every place of either; a missing value is 0."""
    meet: Any = np.maximum if node.op.endswith("Maximum") else np.minimum

    def compute(ai: Array, av: Array, shape: Array, bi: Array, bv: Array, b_shape: Array) -> tuple[Array, Array]:
        dims = check_sparse(ai, av, shape)
        others = check_sparse(bi, bv, b_shape)
        if len(others) != len(dims):
            raise invalid(
                f"Operands do not have the same ranks; got shapes: {shape_text(dims)} and {shape_text(others)}"
            )
        for axis, (size, other) in enumerate(zip(dims, others, strict=True)):
            if size != other:
                raise invalid(f"Operands' shapes do not match: got {size} and {other} for dimension {axis}")
        numbers, values = _merged(place_numbers(ai, dims), av, place_numbers(bi, dims), bv, meet)
        return places_of(numbers, dims), values

    return compute


@kernel("SparseDenseCwiseAdd", "SparseDenseCwiseMul", "SparseDenseCwiseDiv", T=NUMERIC)
def build_sparse_dense_cwise(node: KernelNode) -> Compute:
    """Values met with the dense element at their place; the dense operand broadcasts."""
    meet: Any = {"Add": np.add, "Mul": np.multiply, "Div": np.divide}[node.op[-3:]]

    def compute(indices: Array, values: Array, shape: Array, dense: Array) -> Array:
        dims = check_sparse(indices, values, shape)
        try:
            wide = np.broadcast_to(dense, dims)
        except ValueError:
            raise invalid(
                "SparseDenseBinaryOpShared broadcasts dense to sparse only; got incompatible shapes: "
                f"{shape_text(dims)} vs. {shape_text(dense.shape)}"
            ) from None
        if node.op.endswith("Div") and values.dtype.kind in "iu":
            if not wide[tuple(indices.T)].all():
                raise invalid("Integer division by zero")
            return as_array(truncated_quotient(values, wide[tuple(indices.T)]))
        return as_array(meet(values, wide[tuple(indices.T)])).astype(values.dtype, copy=False)

    return compute


def _reduce(
    node: KernelNode, indices: Array, values: Array, shape: Array, axes: Array
) -> tuple[tuple[int, ...], Array, Array]:
    """The kept dimensions, the numbers of the groups that have values, and what each group gives."""
    dims = check_sparse(indices, values, shape)
    reduced = set()
    for axis in axes.reshape(-1).tolist():
        if not -len(dims) <= axis < len(dims):
            raise invalid(f"Invalid reduction dimension {axis}, for input with {len(dims)} dimensions.")
        reduced.add(axis % len(dims))
    kept = [i for i in range(len(dims)) if i not in reduced]
    kept_dims = tuple(dims[i] for i in kept)
    numbers = place_numbers(indices[:, kept], kept_dims)
    groups, places = np.unique(numbers, return_inverse=True)
    if "Sum" in node.op:
        out = np.zeros(len(groups), values.dtype)
        np.add.at(out, places, values)
    else:
        lowest = -np.inf if values.dtype.kind == "f" else np.iinfo(values.dtype).min
        out = np.full(len(groups), lowest, values.dtype)
        np.maximum.at(out, places, values)
    full = tuple(1 if i in reduced else d for i, d in enumerate(dims)) if node.attrs.get("keep_dims") else kept_dims
    return full, groups, out


@kernel("SparseReduceSum", "SparseReduceMax", T=NUMERIC)
def build_sparse_reduce(node: KernelNode) -> Compute:
    """A dense result; a group without values gives 0."""

    def compute(indices: Array, values: Array, shape: Array, axes: Array) -> Array:
        dims, groups, reduced = _reduce(node, indices, values, shape, axes)
        allow(dims, values.dtype)
        out = np.zeros(math.prod(int(d) for d in dims), values.dtype)
        out[groups] = reduced
        return out.reshape(dims)

    return compute


@kernel("SparseReduceSumSparse", "SparseReduceMaxSparse", T=NUMERIC)
def build_sparse_reduce_sparse(node: KernelNode) -> Compute:
    """A sparse result of the groups that have values."""

    def compute(indices: Array, values: Array, shape: Array, axes: Array) -> tuple[Array, Array, Array]:
        dims, groups, reduced = _reduce(node, indices, values, shape, axes)
        return places_of(groups, dims), reduced, np.array(dims, np.int64)

    return compute


@kernel("SparseSoftmax", T=FLOATING)
def build_sparse_softmax(node: KernelNode) -> Compute:
    """Softmax over the values of each row of the last dimension."""

    def compute(indices: Array, values: Array, shape: Array) -> Array:
        dims = check_sparse(indices, values, shape)
        if len(dims) < 2:
            raise invalid(f"Input should have rank >= 2, but received shape {shape_text(dims)}")
        groups, rows = np.unique(place_numbers(indices[:, :-1], dims[:-1]), return_inverse=True)
        top = np.full(len(groups), -np.inf, values.dtype)
        np.maximum.at(top, rows, values)
        exponentials = np.exp(values - top[rows])
        total = np.zeros(len(groups), values.dtype)
        np.add.at(total, rows, exponentials)
        return as_array(exponentials / total[rows])

    return compute
