"""Set operations over the last dimension of dense and sparse tensors. Follows set_kernels.cc."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tenfold_core.memory_limits import allow
from tenfold_kernels.arrays import Array, invalid, shape_text, text_attr
from tenfold_kernels.cpu.sparse import check_sparse
from tenfold_kernels.registry import Compute, KernelNode, kernel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


@kernel("SetSize")
def build_set_size(node: KernelNode) -> Compute:
    """How many different values each row of the last dimension has."""

    def compute(indices: Array, values: Array, shape: Array) -> Array:
        dims = check_sparse(indices, values, shape)
        rows: dict[tuple[int, ...], set[Any]] = {}
        for index, value in zip(indices.tolist(), values.tolist(), strict=True):
            rows.setdefault(tuple(index[:-1]), set()).add(value)
        allow(dims[:-1], np.int32)
        out = np.zeros(dims[:-1], np.int32)
        for place, found in rows.items():
            out[place] = len(found)
        return out

    return compute


_Rows: TypeAlias = "dict[tuple[int, ...], set[Any]]"


def _operation(node: KernelNode) -> Callable[[set[Any], set[Any]], set[Any]]:
    operation = text_attr(node, "set_operation").lower()
    known: dict[str, Any] = {
        "a-b": set.difference,
        "b-a": lambda a, b: b - a,
        "intersection": set.intersection,
        "union": set.union,
    }
    if operation not in known:
        raise invalid(f"Invalid set_operation {operation}.")
    found: Callable[[set[Any], set[Any]], set[Any]] = known[operation]
    return found


def _result(
    places: Iterable[tuple[int, ...]], first: _Rows, second: _Rows, meet: Any, groups: tuple[int, ...], dtype: Any
) -> tuple[Array, Array, Array]:
    """Place by place, in order, as a sparse tensor of sorted values."""
    indices: list[tuple[int, ...]] = []
    values: list[Any] = []
    widest = 0
    for place in places:
        found = sorted(meet(first.get(place, set()), second.get(place, set())))
        indices += [(*place, i) for i in range(len(found))]
        values += found
        widest = max(widest, len(found))
    out = np.empty(len(values), dtype)
    out[...] = values
    shape = np.array((*groups, widest), np.int64)
    return np.array(indices, np.int64).reshape(-1, len(groups) + 1), out, shape


def _check_groups(first: tuple[int, ...], second: tuple[int, ...]) -> None:
    if len(first) < 1 or first != second:
        raise invalid(f"Mismatched group shapes {shape_text(first)} vs {shape_text(second)}.")


def _dense_rows(tensor: Array) -> _Rows:
    return {place: set(tensor[place].tolist()) for place in np.ndindex(tensor.shape[:-1])}


def _sparse_rows(indices: Array, values: Array, shape: Array, checks: bool) -> tuple[tuple[int, ...], _Rows]:
    """The sizes of the groups, and the values of each. Raises InvalidArgumentError for indices that are wrong."""
    dims = check_sparse(indices, values, shape)
    if len(dims) < 2:
        raise invalid(f"Invalid input: sparse sets need at least 2 dimensions, got {len(dims)}.")
    rows: _Rows = {}
    before: tuple[int, ...] = ()
    for listed, value in zip(indices.tolist(), values.tolist(), strict=True):
        index = tuple(listed)
        if checks and before and index <= before:
            what = "repeated" if index == before else "out of order. Many sparse ops require sorted indices"
            raise invalid(f"indices {list(index)} is {what}.")
        before = index
        rows.setdefault(index[:-1], set()).add(value)
    return tuple(dims[:-1]), rows


@kernel("DenseToDenseSetOperation")
def build_dense_set_operation(node: KernelNode) -> Compute:
    """Row by row a-b, b-a, intersection or union, as a sparse tensor of sorted values."""
    meet = _operation(node)

    def compute(first: Array, second: Array) -> tuple[Array, Array, Array]:
        if first.ndim < 2:
            raise invalid(f"Mismatched group shapes {shape_text(first.shape[:-1])} vs {shape_text(second.shape[:-1])}.")
        groups = first.shape[:-1]
        _check_groups(groups, second.shape[:-1])
        return _result(np.ndindex(groups), _dense_rows(first), _dense_rows(second), meet, groups, first.dtype)

    return compute


@kernel("DenseToSparseSetOperation")
def build_dense_sparse_set_operation(node: KernelNode) -> Compute:
    """As DenseToDenseSetOperation, the second of them sparse."""
    meet, checks = _operation(node), bool(node.attrs["validate_indices"])

    def compute(first: Array, indices: Array, values: Array, shape: Array) -> tuple[Array, Array, Array]:
        groups, rows = _sparse_rows(indices, values, shape, checks)
        _check_groups(first.shape[:-1], groups)
        return _result(np.ndindex(groups), _dense_rows(first), rows, meet, groups, first.dtype)

    return compute


@kernel("SparseToSparseSetOperation")
def build_sparse_set_operation(node: KernelNode) -> Compute:
    """As DenseToDenseSetOperation, both of them sparse."""
    meet, checks = _operation(node), bool(node.attrs["validate_indices"])

    def compute(
        indices: Array, values: Array, shape: Array, other_indices: Array, other_values: Array, other_shape: Array
    ) -> tuple[Array, Array, Array]:
        groups, first = _sparse_rows(indices, values, shape, checks)
        others, second = _sparse_rows(other_indices, other_values, other_shape, checks)
        _check_groups(groups, others)
        return _result(sorted(first.keys() | second.keys()), first, second, meet, groups, values.dtype)

    return compute
