"""Sparse tensors: indices [N, rank] int64, values [N] and a dense shape [rank], as three inputs each.

Indices are in row-major order except where an op's definition says otherwise; most kernels here work on the row-major
number of each place. Outputs are fresh. Arithmetic is in sparse_math.py. Follows sparse_*_op.cc.
"""

from __future__ import annotations

import math

import numpy as np

from tenfold_core import dtypes, errors
from tenfold_core.memory_limits import allow
from tenfold_kernels.arrays import Array, as_array, contiguous, input_type, invalid, one_number, shape_text
from tenfold_kernels.cpu._sparse_products import multiplier, wide_type
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.typesets import COMPLEX, NUMERIC

#: The largest number of places that a dense shape may have: places are numbered in int64.
_MOST_PLACES = 1 << 62


def check_sparse(indices: Array, values: Array, shape: Array) -> tuple[int, ...]:
    """The dense shape. Raises InvalidArgumentError unless the three go together and every index lies inside."""
    dims = check_sizes(indices, values, shape)
    _check_inside(indices, dims)
    return dims


def _check_inside(indices: Array, dims: tuple[int, ...]) -> None:
    if indices.dtype == np.int64 and not (indices.view(np.uint64) >= np.array(dims, np.uint64)).any():
        return  # a negative one is a large one here
    bad = _outside(indices, dims)
    if bad.any():
        at = int(bad.argmax())
        raise invalid(
            f"indices[{at}] = {shape_text(indices[at].tolist())} is out of bounds: need 0 <= index < {shape_text(dims)}"
        )


def _outside(indices: Array, dims: tuple[int, ...]) -> Array:
    return np.asarray(np.any((indices < 0) | (indices >= np.array(dims, np.int64)), axis=1))


def check_sizes(indices: Array, values: Array, shape: Array) -> tuple[int, ...]:
    """The dense shape. Raises InvalidArgumentError unless the three go together."""
    if indices.ndim != 2:
        raise invalid(f"Input indices should be a matrix but received shape {shape_text(indices.shape)}")
    if values.ndim != 1:
        raise invalid(f"Input values should be a vector but received shape {shape_text(values.shape)}")
    if shape.ndim != 1:
        raise invalid(f"Input shape should be a vector but received shape {shape_text(shape.shape)}")
    if len(indices) != len(values):
        raise invalid(f"Number of elements in indices ({len(indices)}) and values ({len(values)}) do not match")
    if indices.shape[1] != len(shape):
        raise invalid(f"Index rank ({indices.shape[1]}) and shape rank ({len(shape)}) do not match")
    dims = tuple(shape.tolist())
    total = 1
    for d in dims:
        if d < 0:
            raise invalid(f"Dense shape must not be negative: {shape_text(dims)}")
        total *= max(d, 1)
    if total > _MOST_PLACES:
        raise invalid(f"Dense shape {shape_text(dims)} has too many elements")
    return dims


def place_numbers(indices: Array, dims: tuple[int, ...]) -> Array:
    """The row-major number of each place."""
    numbers = np.zeros(len(indices), np.int64)
    for i, d in enumerate(dims):
        numbers = numbers * d + indices[:, i]
    return numbers


def places_of(numbers: Array, dims: tuple[int, ...]) -> Array:
    """The reverse of `place_numbers`."""
    out = np.empty((len(numbers), len(dims)), np.int64)
    rest = numbers
    for i in range(len(dims) - 1, -1, -1):
        rest, out[:, i] = np.divmod(rest, max(dims[i], 1))
    return out


def _check_dense(indices: Array, dims: list[int], dense: Array) -> None:
    """The dense operand has the shape of the sparse one, whose indices lie inside. Raises InvalidArgumentError."""
    if len(dims) != dense.ndim:
        raise invalid(f"Two operands have different ranks; received: {len(dims)} and {dense.ndim}")
    for axis, (size, other) in enumerate(zip(dims, dense.shape, strict=True)):
        if size != other:
            sides = f"sparse side {size} vs dense side {other}"
            raise invalid(f"Dimension {axis} does not equal (no broadcasting is supported): {sides}")
    outside = (indices < 0) | (indices >= np.array(dims, np.int64))
    if outside.any():
        at, axis = (int(place) for place in np.unravel_index(int(outside.argmax()), outside.shape))
        text = f"a_indices({at},{axis}) = {indices[at, axis]}, dense tensor shape: {shape_text(dims)}"
        raise invalid(f"Sparse tensor has an invalid index on dimension {axis}: {text}")


@kernel("SparseTensorDenseAdd", T=NUMERIC)
def build_sparse_tensor_dense_add(node: KernelNode) -> Compute:
    def compute(indices: Array, values: Array, shape: Array, dense: Array) -> Array:
        if indices.ndim == 2 and values.ndim == shape.ndim == 1:
            for count, other in zip(indices.shape, (values.size, shape.size), strict=True):
                if count != other:
                    raise invalid(f"Dimensions {count} and {other} are not compatible")
            _check_dense(indices, shape.tolist(), dense)
        check_sparse(indices, values, shape)
        out = dense.copy()
        np.add.at(out, tuple(indices.T), values)
        return out

    return compute


@kernel("SparseTensorDenseMatMul", T=NUMERIC)
def build_sparse_tensor_dense_matmul(node: KernelNode) -> Compute:
    """a (sparse, [m, k]) · b (dense, [k, n]), either turned into its adjoint first."""
    turn_a, turn_b = bool(node.attrs.get("adjoint_a")), bool(node.attrs.get("adjoint_b"))
    element, wide = node.input_types[1].base_dtype, wide_type(input_type(node, 1))
    is_complex = element in COMPLEX
    multiply = multiplier(element if element.as_numpy_dtype is wide else dtypes.float32, node.input_types[0].base_dtype)

    def compute(indices: Array, values: Array, shape: Array, b: Array) -> Array:
        if shape.shape != (2,):
            raise invalid(f"Tensor 'a_shape' must have 2 elements, got shape {shape_text(shape.shape)}")
        if b.ndim != 2:
            raise invalid(f"Tensor 'b' is not a matrix: {shape_text(b.shape)}")
        dims = check_sizes(indices, values, shape)
        rows = 1 if turn_a else 0
        right_rows, columns = b.shape[::-1] if turn_b else b.shape
        if dims[1 - rows] != right_rows:
            _check_inside(indices, dims)  # is said first
            raise invalid(
                f"Cannot multiply A and B because inner dimension does not match: {dims[1 - rows]} vs. "
                f"{right_rows}.  Did you forget a transpose?  Dimensions of A: {shape_text(dims)}.  "
                f"Dimensions of B: {shape_text(b.shape)}"
            )
        allow((dims[rows], columns), wide)
        if not (values.size and columns and dims[0] and dims[1]):
            _check_inside(indices, dims)  # without columns there is nothing to multiply, and all places are checked
            return np.zeros((dims[rows], columns), b.dtype)
        out = np.empty((dims[rows], columns), wide)
        right = b.T if turn_b else b
        if is_complex:
            values, right = (np.conj(values) if turn_a else values), (np.conj(right) if turn_b else right)
        operands = contiguous(indices), contiguous(values.astype(wide, copy=False))
        bad = multiply(*operands, contiguous(right.astype(wide, copy=False)), rows, out)
        if bad >= 0:
            _check_inside(indices, dims)
            raise invalid(f"indices[{bad}] of the sparse matrix changed while it was multiplied")
        return out.astype(b.dtype, copy=False)

    return compute


@kernel("SparseReorder")
def build_sparse_reorder(node: KernelNode) -> Compute:
    """Indices in row-major order, also those that lie outside; equal ones keep theirs."""

    def compute(indices: Array, values: Array, shape: Array) -> tuple[Array, Array]:
        dims = check_sizes(indices, values, shape)
        if _outside(indices, dims).any():
            # A number would name two places.
            order = np.lexsort(indices.T[::-1])
        else:
            order = np.argsort(place_numbers(indices, dims), kind="stable")
        return indices[order], values[order]

    return compute


@kernel("SparseReshape")
def build_sparse_reshape(node: KernelNode) -> Compute:
    """(indices, shape, new shape, with one -1) → (indices, shape)"""
    from tenfold_kernels.cpu._compiled import sparse_places

    move = sparse_places.reshape_places()

    def compute(indices: Array, shape: Array, new_shape: Array) -> tuple[Array, Array]:
        if indices.ndim != 2:
            raise invalid(f"Input indices should be a matrix but received shape {shape_text(indices.shape)}")
        dims = check_sizes(indices, np.empty(len(indices), np.bool_), shape)
        try:
            wanted = np.array(_new_dims(dims, new_shape.reshape(-1).tolist()), np.int64)
        except errors.InvalidArgumentError:
            _check_inside(indices, dims)  # is said first
            raise
        out = np.empty((len(indices), wanted.size), np.int64)
        if move(contiguous(indices), contiguous(shape), wanted, out) >= 0:
            _check_inside(indices, dims)
        return out, wanted

    return compute


def _new_dims(dims: tuple[int, ...], wanted: list[int]) -> list[int]:
    """`wanted` with the size that -1 stands for. Raises InvalidArgumentError."""
    if wanted.count(-1) > 1:
        raise invalid(
            f"only one output dimension may be -1, not both {wanted.index(-1)} and "
            f"{len(wanted) - 1 - wanted[::-1].index(-1)}"
        )
    if wanted and min(wanted) < -1:
        raise invalid(f"size must not be negative: {shape_text(wanted)}")
    total, known = math.prod(dims), math.prod(d for d in wanted if d != -1)
    if -1 in wanted:
        if known == 0:
            raise invalid(
                "reshape cannot infer the missing input size for an empty tensor unless all specified "
                "input sizes are non-zero"
            )
        if total % known:
            raise invalid(
                f"Input to reshape is a SparseTensor with {total} dense values, but the requested shape "
                f"requires a multiple of {known}. input_shape={shape_text(dims)} "
                f"output_shape={shape_text(wanted)}"
            )
        wanted[wanted.index(-1)] = total // known
    elif known != total:
        raise invalid(
            f"Input to reshape is a tensor with {total} dense values, but the requested shape has {known}. "
            f"input_shape={shape_text(dims)} output_shape={shape_text(wanted)}"
        )
    return wanted


@kernel("SparseConcat")
def build_sparse_concat(node: KernelNode) -> Compute:
    count, along = int(node.attrs["N"]), int(node.attrs["concat_dim"])

    def compute(*inputs: Array) -> tuple[Array, Array, Array]:
        parts = [inputs[i::count] for i in range(count)]
        all_dims = [check_sparse(*part) for part in parts]
        rank = len(all_dims[0])
        axis = along + rank if along < 0 else along
        if not 0 <= axis < rank:
            raise invalid(f"Concat dimension must be in range [{-rank}, {rank}), got {along}")
        offset, moved = 0, []
        for i, (part, dims) in enumerate(zip(parts, all_dims, strict=True)):
            if len(dims) != rank or any(
                d != e for j, (d, e) in enumerate(zip(dims, all_dims[0], strict=True)) if j != axis
            ):
                raise invalid(
                    f"Input shapes must match: expected {shape_text(all_dims[0])} but got {shape_text(dims)} at "
                    f"position {i}"
                )
            places = part[0].copy()
            places[:, axis] += offset
            offset += dims[axis]
            moved.append(places)
        shape = list(all_dims[0])
        shape[axis] = offset
        indices, values = np.concatenate(moved), np.concatenate([part[1] for part in parts])
        order = np.argsort(place_numbers(indices, tuple(shape)), kind="stable")
        return indices[order], values[order], np.array(shape, np.int64)

    return compute


def _window(indices: Array, start: Array, size: Array) -> Array:
    # start + size may be more than int64 holds
    return as_array(((indices >= start) & (indices - start < size)).all(axis=1))


@kernel("SparseSlice")
def build_sparse_slice(node: KernelNode) -> Compute:
    """The part of `size` from `start`; what reaches beyond the shape is cut off, and an index outside left out."""

    def compute(indices: Array, values: Array, shape: Array, start: Array, size: Array) -> tuple[Array, Array, Array]:
        check_sizes(indices, values, shape)
        if start.shape != shape.shape or size.shape != shape.shape:
            raise invalid(
                f"Expected start and size to be vectors of length {len(shape)}, got {shape_text(start.shape)} "
                f"and {shape_text(size.shape)}"
            )
        if (size < 0).any():
            raise invalid(f"size must not be negative, got {shape_text(size.tolist())}")
        keep = _window(indices, start, size)
        out = np.clip(np.minimum(size, shape - start), 0, None)
        return indices[keep] - start, values[keep], out.astype(np.int64)

    return compute


@kernel("SparseSliceGrad", T=NUMERIC)
def build_sparse_slice_grad(node: KernelNode) -> Compute:
    """The gradient of the values: the slice's where a value was in it, else zero."""

    def compute(gradient: Array, indices: Array, start: Array, out_indices: Array) -> Array:
        for name, value, rank in (
            ("backprop_val_grad", gradient, 1),
            ("input_indices", indices, 2),
            ("input_start", start, 1),
            ("output_indices", out_indices, 2),
        ):
            if value.ndim != rank:
                raise invalid(f"{name} must be of rank {rank}, got shape {shape_text(value.shape)}")
        if len(gradient) != len(out_indices) or not len(start) == indices.shape[1] == out_indices.shape[1]:
            raise invalid(
                f"# of gradients ({len(gradient)}), output_indices {shape_text(out_indices.shape)}, input_indices "
                f"{shape_text(indices.shape)} and input_start {shape_text(start.shape)} do not go together"
            )
        seen = {tuple(row): value for row, value in zip((out_indices + start).tolist(), gradient, strict=True)}
        zero = gradient.dtype.type(0)
        return np.array([seen.get(tuple(row), zero) for row in indices.tolist()], gradient.dtype)

    return compute


@kernel("SparseSplit")
def build_sparse_split(node: KernelNode) -> Compute:
    """Parts along a dimension; the first ones are one longer when it does not divide."""
    count = int(node.attrs["num_split"])

    def compute(split_dim: Array, indices: Array, values: Array, shape: Array) -> tuple[Array, ...]:
        dims = check_sparse(indices, values, shape)
        axis = one_number(split_dim, "Input split_dim")
        axis = axis + len(dims) if axis < 0 else axis
        if not 0 <= axis < len(dims):
            raise invalid(f"Input split_dim should be between [{-len(dims)}, {len(dims)}), got {int(split_dim)}")
        if not 1 <= count <= dims[axis]:
            raise invalid(
                f"Input num_split should be between 1 and the splitting dimension size ({dims[axis]}), got {count}"
            )
        all_indices, all_values, shapes, first = [], [], [], 0
        for i in range(count):
            size = dims[axis] // count + (i < dims[axis] % count)
            keep = (indices[:, axis] >= first) & (indices[:, axis] < first + size)
            places = indices[keep]
            places[:, axis] -= first
            all_indices.append(places)
            all_values.append(values[keep])
            shapes.append(np.array([size if j == axis else d for j, d in enumerate(dims)], np.int64))
            first += size
        return (*all_indices, *all_values, *shapes)

    return compute


@kernel("SparseFillEmptyRows")
def build_sparse_fill_empty_rows(node: KernelNode) -> Compute:
    """Gives rows without values the default at column 0: (indices, values, which were empty, where values went)."""
    from tenfold_kernels.cpu._compiled import sparse_places

    begin, fill = sparse_places.begin_rows(), sparse_places.fill_rows()

    def compute(indices: Array, values: Array, shape: Array, default: Array) -> tuple[Array, Array, Array, Array]:
        if default.ndim:
            raise invalid(f"default_value must be a scalar, saw: {shape_text(default.shape)}")
        try:
            dims = check_sizes(indices, values, shape)
        except errors.InvalidArgumentError:
            _check_rows(indices, shape)  # is said first
            raise
        if not dims:
            raise invalid("Dense shape cannot be empty.")
        allow((dims[0], len(dims)), np.int64, 3)
        count, places = len(values), contiguous(indices)
        ends = np.zeros(dims[0], np.int64)
        total = begin(places, contiguous(shape), ends)
        if total < 0:
            _check_rows(indices, shape)
            _check_inside(indices, dims)
        empty = np.ones(dims[0], np.bool_)
        empty[indices[:, 0]] = False
        out, source, back = np.empty((total, len(dims)), np.int64), np.empty(total, np.int64), np.empty(count, np.int64)
        # values come before nothing else in their row, so they keep their order in it
        bad = fill(places, ends, out, source, back)
        if bad >= 0:
            raise invalid(f"indices({min(bad, count - 1)}, 0) was written to while the rows were filled")
        if total > count:
            padded = np.empty(count + 1, values.dtype)
            padded[:count] = values
            padded[count] = default.item() if values.dtype == object else default
            values = padded
        return out, values[source], empty, back

    return compute


def _check_rows(indices: Array, shape: Array) -> None:
    """Every index names one of the shape's rows. Raises InvalidArgumentError."""
    if indices.ndim == 2 and indices.shape[1] and shape.ndim == 1 and shape.size:
        outside = (indices[:, 0] < 0) | (indices[:, 0] >= shape[0])
        if outside.any():
            at = int(outside.argmax())
            raise invalid(f"indices({at}, 0) is invalid: {indices[at, 0]} >= {shape[0]}")


@kernel("RaggedFillEmptyRows")
def build_ragged_fill_empty_rows(node: KernelNode) -> Compute:
    """The same for rows of any length: (row of each value, values, which were empty, where values went)."""
    fill = build_sparse_fill_empty_rows(node)

    def compute(rows: Array, values: Array, count: Array, default: Array) -> tuple[Array, ...]:
        if rows.ndim != 1:
            raise invalid(f"Input value_rowids should be a vector but received shape {shape_text(rows.shape)}")
        if count.ndim:
            raise invalid(f"nrows must be a scalar, saw: {shape_text(count.shape)}")
        places, *others = fill(rows[:, None], values, count.reshape(1), default)
        return (np.ascontiguousarray(places[:, 0]), *others)

    return compute


@kernel("SparseFillEmptyRowsGrad", "RaggedFillEmptyRowsGrad", T=NUMERIC)
def build_sparse_fill_empty_rows_grad(node: KernelNode) -> Compute:
    def compute(back: Array, gradient: Array) -> tuple[Array, Array]:
        if back.ndim != 1 or gradient.ndim != 1:
            shapes = f"{shape_text(back.shape)} and {shape_text(gradient.shape)}"
            raise invalid(f"reverse_index_map and grad_values must be vectors, got shapes {shapes}")
        if back.size and (back.min() < 0 or back.max() >= len(gradient)):
            raise invalid(f"Elements in reverse index must be in [0, {len(gradient)})")
        default = np.ones(len(gradient), np.bool_)
        default[back] = False
        return gradient[back], as_array(gradient[default].sum(dtype=gradient.dtype))

    return compute
