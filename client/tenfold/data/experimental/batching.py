"""`tf.data.experimental`: batches by one operation with a map, sparse batches, `unbatch`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.data import batches, mapping
from tenfold.data.dataset import Dataset

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold.data.node import DatasetNode

    Transformation = Callable[[Any], Dataset]


def map_and_batch(
    map_func: Callable[..., Any],
    batch_size: Any,
    num_parallel_batches: Any = None,
    drop_remainder: Any = False,
    num_parallel_calls: Any = None,
) -> Transformation:
    """`map`, then `batch`, by one operation. Deprecated: the two by themselves.

    Raises ValueError if both numbers of parallel work are given.
    """
    if num_parallel_batches is not None and num_parallel_calls is not None:
        raise ValueError("The `num_parallel_batches` and `num_parallel_calls` arguments are mutually exclusive.")
    calls = num_parallel_calls
    if calls is None:
        calls = batch_size if num_parallel_batches is None else batch_size * num_parallel_batches

    def apply(dataset: DatasetNode) -> Dataset:
        return Dataset(mapping.map_and_batched(dataset, map_func, batch_size, calls, drop_remainder))

    return apply


map_and_batch_with_legacy_function = map_and_batch


def dense_to_sparse_batch(batch_size: Any, row_shape: Any) -> Transformation:
    """`batch_size` tensors of any size up to `row_shape`, as one SparseTensor."""
    return lambda dataset: Dataset(batches.dense_to_sparse_batched(dataset, batch_size, row_shape))


def unbatch() -> Transformation:
    """`Dataset.unbatch`. Deprecated."""
    return lambda dataset: dataset.unbatch()
