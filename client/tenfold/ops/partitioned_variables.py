"""Partitioners: functions that decide into how many parts `tf.get_variable(partitioner=…)` splits a variable.

Each gives a function of (shape, dtype) that returns the number of parts per dimension, at most one of them above 1.
Follows TF 1.15's ops/partitioned_variables.py; PartitionedVariable itself is in partitioned_variable.py.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tenfold.graph.default_scopes import name_scope
from tenfold.ops import variable_scope
from tenfold_core import dtypes
from tenfold_core.dtypes import DType
from tenfold_core.tensor_shape import TensorShape

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Partitioner = Callable[..., list[int]]


def _element_bytes(dtype: DType, bytes_per_string_element: int) -> int:
    return bytes_per_string_element if dtype.base_dtype == dtypes.string else int(dtype.size)


def variable_axis_size_partitioner(
    max_shard_bytes: int, axis: int = 0, bytes_per_string_element: int = 16, max_shards: int | None = None
) -> Partitioner:
    """As many parts along `axis` as it takes for each to have at most `max_shard_bytes`, or `max_shards` of them."""
    if max_shard_bytes < 1 or bytes_per_string_element < 1:
        raise ValueError("Both max_shard_bytes and bytes_per_string_element must be positive.")
    if max_shards and max_shards < 1:
        raise ValueError("max_shards must be positive.")

    def partitioner(shape: Any, dtype: Any) -> list[int]:
        if not isinstance(shape, TensorShape):
            raise ValueError(f"shape is not a TensorShape: {shape}")
        if not shape.is_fully_defined():
            raise ValueError(f"shape is not fully defined: {shape}")
        if not isinstance(dtype, DType):
            raise ValueError(f"dtype is not a DType: {dtype}")
        dims: Any = shape.as_list()
        row_bytes = math.prod(dims) / dims[axis] * _element_bytes(dtype, bytes_per_string_element)
        shards: int = math.ceil(dims[axis] / max(1, math.floor(max_shard_bytes / row_bytes)))
        partitions = [1] * len(dims)
        partitions[axis] = min(max_shards, shards) if max_shards else shards
        return partitions

    return partitioner


def min_max_variable_partitioner(
    max_partitions: int = 1, axis: int = 0, min_slice_size: int = 256 << 10, bytes_per_string_element: int = 16
) -> Partitioner:
    """Up to `max_partitions` parts along `axis`, none smaller than `min_slice_size` bytes."""

    def partitioner(shape: TensorShape, dtype: DType) -> list[int]:
        dims: Any = shape.as_list()
        if axis >= len(dims):
            raise ValueError(f"Can not partition variable along axis {axis} when shape is only {shape}")
        slices = math.prod(dims) * _element_bytes(dtype, bytes_per_string_element) / min_slice_size
        partitions = [1] * len(dims)
        partitions[axis] = max(1, min(dims[axis], max_partitions, math.ceil(slices)))
        return partitions

    return partitioner


def fixed_size_partitioner(num_shards: int, axis: int = 0) -> Partitioner:
    """`num_shards` parts along `axis`, fewer if it is shorter than that."""

    def partitioner(shape: TensorShape, **_: Any) -> list[int]:
        dims: Any = shape.as_list()
        partitions = [1] * len(dims)
        partitions[axis] = min(num_shards, dims[axis])
        return partitions

    return partitioner


def create_partitioned_variables(
    shape: Sequence[int],
    slicing: Sequence[int],
    initializer: Any,
    dtype: Any = dtypes.float32,
    trainable: bool = True,
    collections: Any = None,
    name: str | None = None,
    reuse: Any = None,
) -> list[Any]:
    """The parts of a new variable, split as `slicing` says. `tf.get_variable` with a partitioner is the newer API.

    Raises ValueError for a scalar, or if `slicing` does not give one number per dimension.
    """
    if len(shape) != len(slicing):
        raise ValueError(
            "The 'shape' and 'slicing' of a partitioned Variable must have the length: "
            f"shape: {shape}, slicing: {slicing}"
        )
    if len(shape) < 1:
        raise ValueError(f"A partitioned Variable must have rank at least 1: shape: {shape}")
    with variable_scope.variable_scope(name, "PartitionedVariable", reuse=reuse) as scope:
        if scope.custom_getter is not None:
            raise ValueError(
                "Private access to _get_partitioned_variable is not allowed when a custom getter is set.  Current "
                f"custom getter: {scope.custom_getter}.  It is likely that you're using create_partitioned_variables.  "
                "If so, consider instead using get_variable with a non-empty partitioner parameter instead."
            )
        with name_scope(None):
            whole = variable_scope._get_default_variable_store().get_partitioned_variable(
                scope.name,
                partitioner=lambda **_: slicing,
                shape=shape,
                dtype=dtype,
                initializer=scope.initializer if initializer is None else initializer,
                regularizer=scope.regularizer,
                reuse=scope.reuse,
                trainable=trainable,
                collections=collections,
                caching_device=scope.caching_device,
                use_resource=scope.use_resource,
                constraint=scope.constraint,
            )
        return list(whole)
