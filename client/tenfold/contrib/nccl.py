"""`tf.contrib.nccl`: reductions over tensors of several devices, which on CPUs are ordinary ops.

Programs use them to share gradients between towers. Every function gives a tensor for each that it is given, on the
device of that one. Follows TensorFlow 1.15's python/ops/nccl_ops.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tenfold as tf

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["all_max", "all_min", "all_prod", "all_sum", "broadcast", "reduce_sum"]


def _reduced(tensors: Sequence[Any], join: Callable[[list[Any]], Any]) -> Any:
    if not tensors:
        raise ValueError("Must pass >0 tensors to all reduce operations")
    return join([tf.convert_to_tensor(each) for each in tensors])


def _to_all(tensors: Sequence[Any], join: Callable[[list[Any]], Any]) -> list[Any]:
    total = _reduced(tensors, join)
    copies = []
    for each in tensors:
        with tf.device(each.device):
            copies.append(tf.identity(total))
    return copies


def all_sum(tensors: Sequence[Any]) -> list[Any]:
    """The sum, on each device. Raises ValueError for no tensors."""
    return _to_all(tensors, tf.add_n)


def all_prod(tensors: Sequence[Any]) -> list[Any]:
    """The product, on each device. Raises ValueError for no tensors."""
    return _to_all(tensors, lambda values: tf.reduce_prod(tf.stack(values), 0))


def all_min(tensors: Sequence[Any]) -> list[Any]:
    """The least of each element, on each device. Raises ValueError for no tensors."""
    return _to_all(tensors, lambda values: tf.reduce_min(tf.stack(values), 0))


def all_max(tensors: Sequence[Any]) -> list[Any]:
    """The largest of each element, on each device. Raises ValueError for no tensors."""
    return _to_all(tensors, lambda values: tf.reduce_max(tf.stack(values), 0))


def reduce_sum(tensors: Sequence[Any]) -> Any:
    """The sum, on the current device. Raises ValueError for no tensors."""
    return _reduced(tensors, tf.add_n)


def broadcast(tensor: Any) -> Any:
    """The tensor: a reader on another device gets it there."""
    return tf.identity(tensor)
