"""Gathers, scatters and stacks of a batch: `tf.batch_gather`, `tf.batch_scatter_update`, `tf.parallel_stack`.

Node names follow TensorFlow 1.15.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold.graph.op_builder import tensor_op
from tenfold.ops import array, math, state_ops

if TYPE_CHECKING:
    from tenfold.graph.tensor import Tensor


def batch_gather(params: Any, indices: Any, name: str | None = None) -> Tensor:
    """Gathers along the last dimension of `indices`, for each batch: the dimensions before it are shared."""
    with name_scope(name, "BatchGather", [params, indices]):
        indices = convert_to_tensor(indices, name="indices")
        params = convert_to_tensor(params, name="params")
        if indices.shape.ndims is None:
            raise ValueError("batch_gather does not allow indices with unknown shape.")
        shared = indices.shape.ndims - 1
        return tensor_op("GatherV2", None, params=params, indices=indices, axis=shared, batch_dims=shared)


def parallel_stack(values: Any, name: str = "parallel_stack") -> Tensor:
    """`stack` along a first dimension, copying each value once it is computed. Raises ValueError for unknown shapes."""
    with name_scope(name):
        tensors = [convert_to_tensor(value) for value in values]
        shape = tensors[0].shape
        if not shape.is_fully_defined():
            raise ValueError(f"parallel_stack needs values of known shape, got {shape}")
        full = [len(tensors), *shape.as_list()]
        parts = [array.expand_dims(tensor, 0) for tensor in tensors]
        return tensor_op("ParallelConcat", None, values=parts, shape=full)


def batch_scatter_update(
    ref: Any, indices: Any, updates: Any, use_locking: bool = True, name: str | None = None
) -> Any:
    """`scatter_update` along the last dimension of `indices`, for each batch."""
    with name_scope(name):
        indices = convert_to_tensor(indices, name="indices")
        shape = array.shape(indices)
        shared = (indices.shape.ndims or 1) - 1
        places = []
        for dim in range(shared):
            view = [1] * dim + [-1] + [1] * (shared - dim)
            places.append(math.cast(array.reshape(math.range(shape[dim]), view), indices.dtype))
        full = [math.add(place, array.zeros_like(indices)) for place in places]
        nd = array.stack([*full, indices], axis=-1)
        return state_ops.scatter_nd_update(ref, nd, updates, use_locking, name)
