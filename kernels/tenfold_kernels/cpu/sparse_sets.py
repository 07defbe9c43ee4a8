"""Set operations over the last dimension of dense and sparse tensors. Follows set_kernels.cc."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold_core.memory_limits import allow
from tenfold_kernels.arrays import Array, invalid, shape_text, text_attr
from tenfold_kernels.cpu.sparse import check_sparse
from tenfold_kernels.registry import Compute, KernelNode, kernel


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


@kernel("DenseToDenseSetOperation")
def build_dense_set_operation(node: KernelNode) -> Compute:
    """Row by row a-b, b-a, intersection or union, as a sparse tensor of sorted values."""
    operation = text_attr(node, "set_operation").lower()
    known: dict[str, Any] = {
        "a-b": set.difference,
        "b-a": lambda a, b: b - a,
        "intersection": set.intersection,
        "union": set.union,
    }
    if operation not in known:
        raise invalid(f"Invalid set_operation {operation}.")
    meet = known[operation]

    def compute(first: Array, second: Array) -> tuple[Array, Array, Array]:
        if first.ndim < 2 or first.shape[:-1] != second.shape[:-1]:
            raise invalid(f"Mismatched group shapes {shape_text(first.shape[:-1])} vs {shape_text(second.shape[:-1])}.")
        indices: list[tuple[int, ...]] = []
        values: list[Any] = []
        widest = 0
        for place in np.ndindex(first.shape[:-1]):
            found = sorted(meet(set(first[place].tolist()), set(second[place].tolist())))
            indices += [(*place, i) for i in range(len(found))]
            values += found
            widest = max(widest, len(found))
        out = np.empty(len(values), first.dtype)
        out[...] = values
        return (
            np.array(indices, np.int64).reshape(-1, first.ndim),
            out,
            np.array((*first.shape[:-1], widest), np.int64),
        )

    return compute
