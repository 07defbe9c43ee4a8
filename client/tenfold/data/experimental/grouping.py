"""`tf.data.experimental`: groups by key, and buckets of elements of like length. Made in tenfold/data/grouping.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.data.dataset import Dataset
from tenfold.data.grouping import Buckets, Reducer, grouped_by_reducer, grouped_by_window, shapes_of
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold_core import dtypes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Transformation = Callable[[Any], Dataset]


def group_by_window(
    key_func: Callable[..., Any],
    reduce_func: Callable[..., Any],
    window_size: Any = None,
    window_size_func: Callable[..., Any] | None = None,
) -> Transformation:
    """What `reduce_func(key, window)`, a dataset, makes of each window of elements with one key.

    Windows have `window_size` elements, or `window_size_func(key)`; the last of a key may be smaller. Raises ValueError
    unless exactly one of the two is given.
    """
    if (window_size is None) == (not window_size_func):
        raise ValueError("Must pass either window_size or window_size_func.")
    size = window_size_func if window_size is None else lambda _: convert_to_tensor(window_size, dtypes.int64)
    assert size is not None
    return lambda dataset: Dataset(grouped_by_window(dataset, key_func, reduce_func, size))


def group_by_reducer(key_func: Callable[..., Any], reducer: Reducer) -> Transformation:
    """One element for each key: what `reducer` makes of all elements with it."""
    return lambda dataset: Dataset(grouped_by_reducer(dataset, key_func, reducer))


def bucket_by_sequence_length(
    element_length_func: Callable[..., Any],
    bucket_boundaries: Sequence[Any],
    bucket_batch_sizes: Sequence[Any],
    padded_shapes: Any = None,
    padding_values: Any = None,
    pad_to_bucket_boundary: bool = False,
    no_padding: bool = False,
    drop_remainder: Any = False,
) -> Transformation:
    """Batches of elements of like length, padded to the longest, or to the bucket's bound.

    `element_length_func` gives an int32 length; there is one more of `bucket_batch_sizes` than of `bucket_boundaries`.
    """
    with name_scope("bucket_by_seq_length"):
        buckets = Buckets(bucket_boundaries, bucket_batch_sizes)

    def number_of(*element: Any) -> Any:
        return buckets.number_of(element_length_func(*element))

    def batch(bucket: Any, group: Dataset) -> Dataset:
        size = buckets.batch_size(bucket)
        if no_padding:
            return group.batch(size, drop_remainder=drop_remainder)
        shapes = buckets.shapes(bucket, padded_shapes or shapes_of(group), pad_to_bucket_boundary)
        return group.padded_batch(size, shapes, padding_values, drop_remainder=drop_remainder)

    return lambda dataset: dataset.apply(group_by_window(number_of, batch, window_size_func=buckets.batch_size))
