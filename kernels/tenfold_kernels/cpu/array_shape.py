"""Shape, size and rank of tensors, and the ops that change a shape without moving an element.

Reshape, Squeeze and ExpandDims return views where the memory order allows (a view of a read-only array is read-only).
Error texts follow TensorFlow's reshape_op.h and shape_ops.h.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from tenfold_core import dtypes
from tenfold_kernels.arrays import Array, invalid, output_type, remembering, shape_text
from tenfold_kernels.registry import Compute, KernelNode, kernel


def shape_array(shape: tuple[int, ...], dtype: Any) -> Array:
    """The sizes as an array of an integer type. Raises InvalidArgumentError for one that it does not hold."""
    try:
        return np.array(shape, dtype=dtype)
    except OverflowError:
        at = next(i for i, size in enumerate(shape) if size > np.iinfo(dtype).max)
        raise invalid(f"Shape output type is 32-bit but dim {at} is {shape[at]}") from None


@kernel("Shape")
def build_shape(node: KernelNode) -> Compute:
    dtype = output_type(node)
    return lambda x: shape_array(x.shape, dtype)


@kernel("ShapeN")
def build_shape_n(node: KernelNode) -> Compute:
    dtype = output_type(node)
    if len(node.output_types) == 1:
        return lambda x: shape_array(x.shape, dtype)
    return lambda *inputs: tuple(shape_array(x.shape, dtype) for x in inputs)


@kernel("Size")
def build_size(node: KernelNode) -> Compute:
    dtype = output_type(node)

    def compute(x: Array) -> Array:
        try:
            return np.array(x.size, dtype=dtype)
        except OverflowError:
            raise invalid(f"Number of elements was larger than representable by 32-bit output type: {x.size}") from None

    return compute


@kernel("Rank")
def build_rank(node: KernelNode) -> Compute:
    return lambda x: np.array(x.ndim, dtype=np.int32)


def reshape_dims(x: Array, shape: Array) -> tuple[int, ...]:
    """The full shape that `shape`, with at most one -1, asks for. Raises InvalidArgumentError if it does not fit."""
    if shape.ndim != 1 and shape.shape != ():
        raise invalid(f"sizes input must be 1-D, not {shape_text(shape.shape)}")
    dims: list[int] = shape.reshape(-1).tolist()
    unknown = -1
    known = 1
    for i, d in enumerate(dims):
        if d == -1:
            if unknown >= 0:
                raise invalid(f"Only one input size may be -1, not both {unknown} and {i}")
            unknown = i
        elif d < 0:
            raise invalid(f"Size {i} must be non-negative, not {d}")
        else:
            known *= d
    if unknown >= 0:
        if known == 0:
            if x.size:
                raise invalid(
                    "reshape cannot infer the missing input size for an empty tensor unless all specified input "
                    "sizes are non-zero"
                )
            # As TensorFlow: the missing size of an empty tensor is found from its own non-zero dimensions.
            wanted = math.prod(d for d in x.shape if d)
            dims[unknown] = wanted // math.prod(d for d in dims if d > 0)
        else:
            if x.size % known:
                raise invalid(
                    f"Input to reshape is a tensor with {x.size} values, but the requested shape requires a "
                    f"multiple of {known}"
                )
            dims[unknown] = x.size // known
    elif known != x.size:
        raise invalid(f"Input to reshape is a tensor with {x.size} values, but the requested shape has {known}")
    return tuple(dims)


@kernel("Reshape", views=True)
def build_reshape(node: KernelNode) -> Compute:
    """With a third input, another operand's shape: x summed to the shape of an operand that was broadcast (a node that
    optimize/reductions.py made).
    """
    if len(node.input_types) == 3:
        return _summed_to_shape(node)
    dims_of = remembering(_plain_dims)

    def compute(x: Array, shape: Array) -> Array:
        try:
            return x.reshape(dims_of(shape))
        except ValueError:
            return x.reshape(reshape_dims(x, shape))

    return compute


def _summed_to_shape(node: KernelNode) -> Compute:
    """What Reshape(Sum(x, BroadcastGradientArgs(shape, other)), shape) gives: x where it has the shape."""
    # the family of sums is not loaded for a Reshape alone
    from tenfold_kernels.cpu.math_broadcast import build_broadcast_gradient_args
    from tenfold_kernels.cpu.math_reduction import build_sum

    dtype = node.input_types[0]
    total = build_sum(
        dataclasses.replace(
            node, op="Sum", attrs={"T": dtype}, input_types=(dtype, dtypes.int32), output_types=(dtype,)
        )
    )
    axes = build_broadcast_gradient_args(
        dataclasses.replace(node, op="BroadcastGradientArgs", output_types=(dtypes.int32, dtypes.int32))
    )

    def compute(x: Array, shape: Array, other: Array) -> Array:
        if shape.ndim == 1 and x.shape == tuple(shape.tolist()):
            return x
        summed: Array = total(x, axes(shape, other)[0])
        return summed.reshape(reshape_dims(summed, shape))

    return compute


def _plain_dims(shape: Array) -> tuple[int, ...]:
    """Sizes that NumPy takes as TensorFlow does, or refuses. Raises ValueError for all others."""
    dims: tuple[int, ...] = tuple(shape.reshape(-1).tolist())
    if shape.ndim > 1 or any(d < -1 for d in dims):
        raise ValueError(dims)
    return dims


@kernel("ExpandDims", views=True)
def build_expand_dims(node: KernelNode) -> Compute:
    dim_of = remembering(_one_dim)

    def compute(x: Array, dim: Array) -> Array:
        where = dim_of(dim)
        if not -1 - x.ndim <= where <= x.ndim:
            raise invalid(f"Tried to expand dim index {where} for tensor with {x.ndim} dimensions.")
        if where < 0:
            where += x.ndim + 1
        return x.reshape((*x.shape[:where], 1, *x.shape[where:]))

    return compute


def _one_dim(dim: Array) -> int:
    if dim.size != 1:
        raise invalid("'dim' must be a tensor with a single value")
    return int(dim.item())


@kernel("Squeeze", views=True)
def build_squeeze(node: KernelNode) -> Compute:
    wanted = [int(d) for d in node.attrs.get("squeeze_dims", ())]

    def compute(x: Array) -> Array:
        chosen = set()
        for d in wanted:
            if not -x.ndim <= d < x.ndim:
                raise invalid(f"Tried to squeeze dim index {d} for tensor with {x.ndim} dimensions.")
            where = d % x.ndim
            if x.shape[where] != 1:
                raise invalid(f"Can not squeeze dim[{where}], expected a dimension of 1, got {x.shape[where]}")
            chosen.add(where)
        return x.reshape([d for i, d in enumerate(x.shape) if (i not in chosen if wanted else d != 1)])

    return compute


@kernel("EnsureShape", views=True)
def build_ensure_shape(node: KernelNode) -> Compute:
    shape = node.attrs["shape"]

    def compute(x: Array) -> Array:
        if not shape.is_compatible_with(x.shape):
            raise invalid(
                f"Shape of tensor {node.name} {shape_text(x.shape)} is not compatible with expected shape {shape}."
            )
        return x

    return compute


@kernel("InvertPermutation")
def build_invert_permutation(node: KernelNode) -> Compute:
    def compute(x: Array) -> Array:
        if x.ndim != 1:
            raise invalid(f"invert_permutation expects a 1D vector. Got shape {shape_text(x.shape)}")
        y = np.full(x.shape, -1, dtype=x.dtype)
        for i, d in enumerate(x.tolist()):
            if not 0 <= d < x.size:
                raise invalid(f"{d} is not between 0 and {x.size}")
            if y[d] != -1:
                raise invalid(f"{d} is duplicated in the input.")
            y[d] = i
        return y

    return compute


@kernel("UnravelIndex")
def build_unravel_index(node: KernelNode) -> Compute:
    dtype = output_type(node)
    limit = int(np.iinfo(dtype).max)

    def compute(indices: Array, dims: Array) -> Any:
        if indices.ndim > 1:
            raise invalid(f'The indices can only be scalar or vector, got "{shape_text(indices.shape)}"')
        if not indices.size:
            raise invalid(f"received empty tensor indices: shape {shape_text(indices.shape)}")
        if dims.ndim != 1:
            raise invalid(f'The indices can only be 1-D, got "{shape_text(dims.shape)}"')
        product = 1
        sizes = dims.tolist()
        for i, size in enumerate(sizes):
            if not size:
                raise invalid(f"Input dims cannot contain a dim of zero, but dims contains zero at index {i}")
            if size < 0:
                raise invalid(f"Input dims cannot be negative. Got dim = {size} at index {i}")
            product *= size
            if product > limit:
                raise invalid(f"Input dims product is causing integer overflow: ({sizes})")
        if int(indices.min()) < 0 or int(indices.max()) >= product:
            raise invalid("index is out of bound as with dims")
        return np.array(np.unravel_index(indices, tuple(sizes)), dtype=dtype)

    return compute
