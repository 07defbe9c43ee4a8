"""Undoes broadcasting: sums a gradient in the shape of an op's output down to the shape of its inputs.

Rules of broadcasting ops return gradients in the shape of the output, and registry.py calls `undo_broadcast` on them.
Static shapes are used where known; otherwise the same ops as in TensorFlow's _MulGrad are added (Shape,
BroadcastGradientArgs, Sum, Reshape).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.op_builder import apply_op
from tenfold.ops import array as array_ops

if TYPE_CHECKING:
    from tenfold.graph.operation import Operation
    from tenfold.graph.tensor import Tensor
    from tenfold_core.tensor_shape import TensorShape


def broadcast_axes(x: TensorShape, y: TensorShape) -> tuple[list[int], list[int]] | None:
    """The axes of the broadcast result along which x and y, respectively, were repeated.

    None if the static shapes do not decide it: an unknown rank, or an unknown dimension beside a different one.
    """
    if x.ndims is None or y.ndims is None:
        return None
    rank = max(x.ndims, y.ndims)
    dims_x = [1] * (rank - x.ndims) + x.as_list()
    dims_y = [1] * (rank - y.ndims) + y.as_list()
    axes_x: list[int] = []
    axes_y: list[int] = []
    for axis, (dim_x, dim_y) in enumerate(zip(dims_x, dims_y, strict=True)):
        if axis < rank - x.ndims:
            axes_x.append(axis)
        if axis < rank - y.ndims:
            axes_y.append(axis)
        if dim_x is None or dim_y is None:
            # An unknown dimension beside an added one is never repeated, whatever its size.
            if axis < rank - x.ndims or axis < rank - y.ndims:
                continue
            return None
        if dim_x == 1 and dim_y != 1 and axis not in axes_x:
            axes_x.append(axis)
        if dim_y == 1 and dim_x != 1 and axis not in axes_y:
            axes_y.append(axis)
    return axes_x, axes_y


def undo_broadcast(x: Tensor, y: Tensor, grad_x: Any, grad_y: Any) -> list[Any]:
    """Gradients of two broadcast inputs, each in the shape of its input; None stays None."""
    if grad_x is None and grad_y is None:
        return [None, None]
    # a sum hands on what it gets, which may be the slices of a gather: TensorFlow makes them dense here
    is_same = grad_x is grad_y
    grad_x = None if grad_x is None else convert_to_tensor(grad_x)
    grad_y = grad_x if is_same else None if grad_y is None else convert_to_tensor(grad_y)
    axes = broadcast_axes(x.get_shape(), y.get_shape())
    if axes is not None:
        return [_sum_static(x, grad_x, axes[0]), _sum_static(y, grad_y, axes[1])]
    shape_x, shape_y = array_ops.shape(x), array_ops.shape(y)
    axes_x, axes_y = apply_op("BroadcastGradientArgs", s0=shape_x, s1=shape_y)
    return [_sum_dynamic(grad_x, axes_x, shape_x), _sum_dynamic(grad_y, axes_y, shape_y)]


def undo_batch_broadcast(op: Operation, grad_x: Any, grad_y: Any) -> list[Any]:
    """For products of matrices whose leading (batch) dimensions broadcast: the last two are unchanged."""
    x, y = op.inputs
    shape_x, shape_y = x.get_shape(), y.get_shape()
    if shape_x.ndims is not None and shape_y.ndims is not None:
        axes = broadcast_axes(shape_x[:-2], shape_y[:-2])
        if axes is not None:
            return [_sum_static(x, grad_x, axes[0]), _sum_static(y, grad_y, axes[1])]
    full_x, full_y = array_ops.shape(x), array_ops.shape(y)
    axes_x, axes_y = apply_op("BroadcastGradientArgs", s0=full_x[:-2], s1=full_y[:-2])
    return [_sum_dynamic(grad_x, axes_x, full_x), _sum_dynamic(grad_y, axes_y, full_y)]


def _sum_static(x: Tensor, grad: Any, axes: list[int]) -> Any:
    if grad is None:
        return None
    if not axes:
        known, wanted = grad.get_shape(), x.get_shape()
        if known.is_fully_defined() and wanted.is_fully_defined() and known != wanted:
            # What the caller gave for the output's gradient has another shape, such as [1] for a scalar.
            return apply_op("Reshape", tensor=grad, shape=array_ops.shape(x))
        return grad
    summed = apply_op("Sum", input=grad, reduction_indices=axes)
    if summed.get_shape().is_fully_defined() and summed.get_shape() == x.get_shape():
        return summed
    return apply_op("Reshape", tensor=summed, shape=array_ops.shape(x))


def _sum_dynamic(grad: Any, axes: Tensor, shape: Tensor) -> Any:
    if grad is None:
        return None
    return apply_op("Reshape", tensor=apply_op("Sum", input=grad, reduction_indices=axes), shape=shape)
