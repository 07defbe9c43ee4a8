"""Shapes that broadcast: what two shapes give, which axes a gradient sums over, and a tensor broadcast to a shape.

BroadcastTo gives a view. Follows bcast_ops.cc and broadcast_to_op.cc.
"""

from __future__ import annotations

import numpy as np

from tenfold_kernels.arrays import Array, as_shape, invalid, output_type, shape_text
from tenfold_kernels.registry import Compute, KernelNode, kernel


def broadcast_dims(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """The common shape of two. Raises InvalidArgumentError in TensorFlow's words."""
    try:
        return np.broadcast_shapes(a, b)
    except ValueError:
        raise invalid(f"Incompatible shapes: {shape_text(a)} vs. {shape_text(b)}") from None


def _vector(shape: Array, number: int) -> tuple[int, ...]:
    """The sizes in a shape input. Raises InvalidArgumentError unless it is a vector."""
    if shape.ndim != 1:
        raise invalid(f"In[{number}] must be a vector, got shape {shape_text(shape.shape)}")
    return tuple(shape.tolist())


@kernel("BroadcastArgs")
def build_broadcast_args(node: KernelNode) -> Compute:
    dtype = output_type(node)
    return lambda s0, s1: np.array(broadcast_dims(_vector(s0, 0), _vector(s1, 1)), dtype=dtype)


@kernel("BroadcastGradientArgs")
def build_broadcast_gradient_args(node: KernelNode) -> Compute:
    """Which axes of the common shape each operand was broadcast along, and so must be summed over.

    An axis where both are 1 belongs to both, as TensorFlow has it.
    """
    dtype = output_type(node)

    def compute(s0: Array, s1: Array) -> tuple[Array, Array]:
        a, b = _vector(s0, 0), _vector(s1, 1)
        if a == b:
            return np.empty(0, dtype=dtype), np.empty(0, dtype=dtype)
        rank = len(broadcast_dims(a, b))
        a, b = (1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b
        reduce_a, reduce_b = [], []
        for i, (da, db) in enumerate(zip(a, b, strict=True)):
            if da == 1:
                reduce_a.append(i)
            if db == 1:
                reduce_b.append(i)
        return np.array(reduce_a, dtype=dtype), np.array(reduce_b, dtype=dtype)

    return compute


@kernel("BroadcastTo", views=True)
def build_broadcast_to(node: KernelNode) -> Compute:
    def compute(x: Array, shape: Array) -> Array:
        dims = broadcast_shape(x, shape)
        return x if x.shape == dims else np.broadcast_to(x, dims).copy()

    return compute


def broadcast_shape(x: Array, shape: Array) -> tuple[int, ...]:
    """The shape that x is broadcast to. Raises InvalidArgumentError where it does not fit."""
    dims = as_shape(shape, dtype=x.dtype)
    if x.ndim > len(dims):
        raise invalid(f"Rank of input ({x.ndim}) must be no greater than rank of output shape ({len(dims)}).")
    own = dims[len(dims) - x.ndim :]
    if any(size not in (1, wanted) for size, wanted in zip(x.shape, own, strict=True)):
        raise invalid(f"Incompatible shapes: {shape_text(x.shape)} vs. {shape_text(dims)}")
    return dims
