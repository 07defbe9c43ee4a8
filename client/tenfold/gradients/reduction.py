"""Shape arithmetic for the gradients of reductions (Sum, Mean, Max, Min, Prod); called by math_reduction.py.

Uses static shapes where they suffice, so that the common case (a batch of unknown size, reduced over known
axes) needs constants only. Otherwise it computes shapes in the graph, as TensorFlow's _SumGrad does.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold.graph.constant_value import known_value
from tenfold.graph.op_builder import apply_op
from tenfold.ops import array as array_ops

if TYPE_CHECKING:
    from tenfold.graph.operation import Operation
    from tenfold.graph.tensor import Tensor
    from tenfold_core.dtypes import DType


def _static_axes(op: Operation) -> list[int] | None:
    """The reduced axes of a reduction op, non-negative and sorted; None when rank or axes are unknown."""
    rank = op.inputs[0].get_shape().ndims
    axes = known_value(op.inputs[1])
    if rank is None or axes is None:
        return None
    return sorted({int(axis) % rank for axis in np.ravel(axes)}) if rank else []


def kept_shape(op: Operation) -> Any:
    """The shape of the result with the reduced dimensions kept as 1; a list or a Tensor, int32 [rank]."""
    axes = _static_axes(op)
    if axes is not None:
        dims = op.inputs[0].get_shape().as_list()
        kept = [1 if axis in axes else dim for axis, dim in enumerate(dims)]
        if kept.count(None) <= 1:
            return np.array([-1 if dim is None else dim for dim in kept], np.int32)
    # Rank, axes or several dimensions are unknown: reduce once more, with keep_dims, and take the shape.
    kept_dims = apply_op(op.type, input=op.inputs[0], reduction_indices=op.inputs[1], keep_dims=True)
    return apply_op("Shape", input=kept_dims)


def spread(op: Operation, grad: Any) -> Any:
    """Repeats `grad`, in the shape of the reduction's output, along the reduced dimensions of its input."""
    shape = kept_shape(op)
    grad = apply_op("Reshape", tensor=grad, shape=shape)
    return apply_op("Tile", input=grad, multiples=_multiples(op, shape))


def _multiples(op: Operation, shape: Any) -> Any:
    x = op.inputs[0]
    axes = _static_axes(op)
    if axes is None:
        kept = apply_op("Maximum", x=shape, y=1)
        return apply_op("FloorDiv", x=array_ops.shape(x), y=kept, name="floordiv")
    dims = x.get_shape().as_list()
    if all(dims[axis] is not None for axis in axes):
        return np.array([dims[axis] if axis in axes else 1 for axis in range(len(dims))], np.int32)
    if len(axes) == len(dims):
        return array_ops.shape(x)
    x_shape = array_ops.shape(x)
    return array_ops.stack([x_shape[axis] if axis in axes else 1 for axis in range(len(dims))])


def reduced_count(op: Operation, dtype: DType) -> Tensor:
    """How many elements of the input make one of the output, as a scalar of `dtype`; at least 1 for empty outputs."""
    x, y = op.inputs[0], op.outputs[0]
    axes = _static_axes(op)
    if axes is not None:
        sizes = x.get_shape().as_list()
        known = [size for axis in axes if (size := sizes[axis]) is not None]
        if len(known) == len(axes):
            return array_ops.constant(math.prod(known), dtype=dtype)
    in_size = apply_op("Prod", input=array_ops.shape(x), reduction_indices=[0])
    out_size = apply_op("Prod", input=array_ops.shape(y), reduction_indices=[0])
    factor = apply_op("FloorDiv", x=in_size, y=apply_op("Maximum", x=out_size, y=1), name="floordiv")
    cast: Tensor = apply_op("Cast", x=factor, DstT=dtype)
    return cast


def product_of_others(op: Operation) -> Any:
    """For every entry of a Prod's input: the product of the other entries that were reduced with it."""
    x = op.inputs[0]
    axes: Any = _static_axes(op)
    if axes is not None:
        rank = x.get_shape().ndims or 0
        order: Any = np.array(axes + [axis for axis in range(rank) if axis not in axes], np.int32)
        back: Any = np.argsort(order).astype(np.int32)
        axes = np.array(axes, np.int32)
    else:
        size = array_ops.rank(x)
        given = apply_op("Reshape", tensor=apply_op("Cast", x=op.inputs[1], DstT=size.dtype), shape=[-1])
        axes = apply_op("FloorMod", x=apply_op("AddV2", x=given, y=size), y=apply_op("Maximum", x=size, y=1))
        rest, _ = apply_op("ListDiff", x=apply_op("Range", start=0, limit=size, delta=1), y=axes)
        order = apply_op("ConcatV2", values=[axes, rest], axis=0)
        back = apply_op("InvertPermutation", x=order)
    x_shape = array_ops.shape(x)
    moved = apply_op("Transpose", x=x, perm=order)
    moved_shape = array_ops.shape(moved)
    reduced_dims = apply_op("GatherV2", params=x_shape, indices=axes, axis=0)
    reduced = apply_op("Prod", input=reduced_dims, reduction_indices=[0])
    flat = apply_op("Reshape", tensor=moved, shape=array_ops.stack([reduced, -1]))
    left = apply_op("Cumprod", x=flat, axis=0, exclusive=True)
    right = apply_op("Cumprod", x=flat, axis=0, exclusive=True, reverse=True)
    others = apply_op("Reshape", tensor=left * right, shape=moved_shape)
    return apply_op("Transpose", x=others, perm=back)
