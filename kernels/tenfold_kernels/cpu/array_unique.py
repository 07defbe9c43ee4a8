"""The distinct elements of a vector or along an axis, and those of one list that another lacks: Unique*, ListDiff.

Elements keep the order of their first appearance. Outputs are fresh. Follows unique_op.cc and listdiff_op.cc.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core.memory_limits import allow
from tenfold_kernels.arrays import Array, contiguous, invalid, output_type, shape_text
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.typesets import INDEX

if TYPE_CHECKING:
    from collections.abc import Callable


@kernel("UniqueV2", "UniqueWithCountsV2")
def build_unique_v2(node: KernelNode) -> Compute:
    """(y, idx[, count]): different slices along `axis` (an empty one: of a vector) in the order of their "
    "first place."""
    index_type = output_type(node, 1)
    with_counts = node.op == "UniqueWithCountsV2"
    of_integers = _of_integers(node, with_counts) if node.input_types[0] in INDEX else None

    def compute(x: Array, axis: Array) -> tuple[Array, ...]:
        if axis.ndim != 1:
            raise invalid(f"axis expects a 1D vector, got shape {shape_text(axis.shape)}")
        if axis.size > 1:
            raise invalid("axis does not support input tensors larger than 1 elements")
        if axis.size == 0:
            if x.ndim != 1:
                raise invalid(f"unique expects a 1D vector, got shape {shape_text(x.shape)}")
            along = 0
        else:
            along = int(axis.item())
            if not -x.ndim <= along < x.ndim:
                raise invalid(f"axis has to be between [0, {x.ndim})")
        if of_integers is not None and x.ndim == 1:
            return of_integers(x)
        moved = np.moveaxis(x, along, 0)
        seen: dict[Any, int] = {}
        allow((len(moved),), np.int64, 2)
        places = np.zeros(len(moved), index_type)
        firsts: list[int] = []
        flat = moved.reshape(len(moved), math.prod(moved.shape[1:]))
        if not flat.size:  # empty slices are alike, however many a shape says there are
            firsts, flat = [0][: len(moved)], flat[:0]
        for i, row in enumerate(flat):
            key = tuple(row.tolist())
            if key not in seen:
                seen[key] = len(firsts)
                firsts.append(i)
            places[i] = seen[key]
        y = np.ascontiguousarray(np.moveaxis(moved[firsts], 0, along))
        counts = np.bincount(places, minlength=len(firsts)).astype(index_type)
        return (y, places, counts) if with_counts else (y, places)

    return compute


@kernel("Unique", "UniqueWithCounts")
def build_unique(node: KernelNode) -> Compute:
    """Values in the order of their first occurrence, and where each element went."""
    index_type = output_type(node, 1)
    with_counts = node.op == "UniqueWithCounts"
    if node.input_types[0] in INDEX:
        return _of_integers(node, with_counts)

    def compute(x: Array) -> tuple[Array, ...]:
        if x.ndim != 1:
            raise invalid(f"unique expects a 1D vector, got shape {shape_text(x.shape)}")
        # Every nan is different from the others.
        values, first, inverse, counts = np.unique(
            x, return_index=True, return_inverse=True, return_counts=True, equal_nan=False
        )
        order = np.argsort(first, kind="stable")
        place = np.empty_like(order)
        place[order] = np.arange(order.size)
        result = values[order], place[inverse.reshape(-1)].astype(index_type)
        return (*result, counts[order].astype(index_type)) if with_counts else result

    return compute


def _of_integers(node: KernelNode, with_counts: bool) -> Callable[[Array], tuple[Array, ...]]:
    """A vector → its distinct values, which of them each element is, and how often each is there."""
    from tenfold_kernels.cpu._compiled import distinct

    element, index = node.input_types[0].as_numpy_dtype, output_type(node, 1)
    find = distinct.distinct(element, index)

    def compute(x: Array) -> tuple[Array, ...]:
        if x.ndim != 1:
            raise invalid(f"unique expects a 1D vector, got shape {shape_text(x.shape)}")
        found, idx = np.empty(x.size, element), np.empty(x.size, index)
        table = np.full(1 << (2 * x.size).bit_length(), -1, index)
        count = find(contiguous(x), found, idx, table)
        y = found[:count].copy()
        return (y, idx, np.bincount(idx, minlength=count).astype(index)) if with_counts else (y, idx)

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
