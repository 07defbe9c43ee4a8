"""Shape functions of reductions, products, ranges and segments. See shape_fns.py."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tenfold_core.opdefs.shape_fns import (
    _SCALAR,
    _UNKNOWN,
    _axis,
    _dims,
    _merge,
    _same_prefix,
    _scalar_constant,
    _size_constant,
    broadcast_shapes,
)
from tenfold_core.tensor_shape import TensorShape, from_dims, unknown_shape

if TYPE_CHECKING:
    from tenfold_core.shape_inference import ShapeContext

    Shapes = list[TensorShape]


def reduction(c: ShapeContext) -> Shapes:
    keep = bool(c.attrs.get("keep_dims", False))
    dims, axes = _dims(c.input(0)), c.constant(1)
    if dims is None:
        return [_UNKNOWN]
    if axes is None:
        return [unknown_shape(len(dims)) if keep else _UNKNOWN]
    gone = {_axis(int(axis), len(dims)) for axis in axes.reshape(-1)}
    if keep:
        return [from_dims(1 if i in gone else d for i, d in enumerate(dims))]
    return [from_dims(d for i, d in enumerate(dims) if i not in gone)]


def arg_reduction(c: ShapeContext) -> Shapes:
    dims, axis = _dims(c.input(0)), _scalar_constant(c, 1)
    if dims is None:
        return [_UNKNOWN]
    if len(dims) <= 1:
        return [_SCALAR]
    if axis is None:
        return [unknown_shape(len(dims) - 1)]
    gone = _axis(axis, len(dims))
    return [from_dims(d for i, d in enumerate(dims) if i != gone)]


def matmul(c: ShapeContext) -> Shapes:
    a = c.input(0).with_rank(2).as_list()
    b = c.input(1).with_rank(2).as_list()
    a = a[::-1] if c.attrs.get("transpose_a") else a
    b = b[::-1] if c.attrs.get("transpose_b") else b
    _merge(a[1], b[0], f" for a product of shapes {c.input(0)} and {c.input(1)}")
    return [TensorShape([a[0], b[1]])]


def batch_matmul_v1(c: ShapeContext) -> Shapes:
    """As `batch_matmul` of two batches of the same shape."""
    a, b = c.input(0).with_rank_at_least(2), c.input(1).with_rank_at_least(2)
    if a.ndims is None and b.ndims is None:
        return [_UNKNOWN]
    rank = a.ndims if a.ndims is not None else b.ndims
    a, b = a.merge_with(unknown_shape(rank)), b.merge_with(unknown_shape(rank))
    left, right = a.as_list()[-2:], b.as_list()[-2:]
    left = left[::-1] if c.attrs.get("adj_x") else left
    right = right[::-1] if c.attrs.get("adj_y") else right
    _merge(left[1], right[0], f" for a product of shapes {a} and {b}")
    return [a[:-2].merge_with(b[:-2]).concatenate([left[0], right[1]])]


def batch_matmul(c: ShapeContext) -> Shapes:
    a, b = c.input(0).with_rank_at_least(2), c.input(1).with_rank_at_least(2)
    if a.ndims is None or b.ndims is None:
        return [_UNKNOWN]
    left, right = a.as_list()[-2:], b.as_list()[-2:]
    left = left[::-1] if c.attrs.get("adj_x") else left
    right = right[::-1] if c.attrs.get("adj_y") else right
    _merge(left[1], right[0], f" for a product of shapes {a} and {b}")
    return [broadcast_shapes(a[:-2], b[:-2]).concatenate([left[0], right[1]])]


def range_(c: ShapeContext) -> Shapes:
    start, limit, delta = (c.constant(i) for i in range(3))
    if start is None or limit is None or delta is None:
        return [unknown_shape(1)]
    a, b, d = (value.reshape(()).item() for value in (start, limit, delta))
    if d == 0:
        raise ValueError("Range: delta must not be 0")
    if (b < a and d > 0) or (b > a and d < 0):
        raise ValueError(f"Range: start {a}, limit {b} and delta {d} describe no range")
    if isinstance(d, int):
        return [TensorShape([-(-(b - a) // d)])]
    size = math.ceil((b - a) / d) if math.isfinite((b - a) / d) else -1
    if size < 0:
        raise ValueError(f"Range: (limit - start) / delta is not a size: start {a}, limit {b} and delta {d}")
    return [TensorShape([size])]


def lin_space(c: ShapeContext) -> Shapes:
    return [TensorShape([_scalar_constant(c, 2)])]


def segment(c: ShapeContext) -> Shapes:
    return [c.input(0) if c.input(0).ndims is None else TensorShape([None]).concatenate(c.input(0)[1:])]


def sparse_segment(c: ShapeContext) -> Shapes:
    """As `segment`, for as many indices as segment numbers."""
    c.input(1).assert_is_compatible_with(c.input(2))
    return segment(c)


def unsorted_segment(c: ShapeContext) -> Shapes:
    ids = c.input(1)
    if ids.ndims is None or c.input(0).ndims is None:
        return [_UNKNOWN]
    return [TensorShape([_size_constant(c, 2)]).concatenate(_same_prefix(c.input(0), ids))]
