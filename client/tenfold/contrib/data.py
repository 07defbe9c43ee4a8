"""`tf.contrib.data`: the names that pipelines had before `tf.data.experimental`, all of which lead there.

What only contrib has is here: batches that drop a rest, sliding windows, checked shapes, `read_batch_features`. Follows
TensorFlow 1.15's contrib/data/python/ops.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold.data import nest, structure, transforms
from tenfold.data.applied import aggregated
from tenfold.data.dataset import AUTOTUNE, Dataset
from tenfold.data.experimental.batching import dense_to_sparse_batch, map_and_batch, unbatch
from tenfold.data.experimental.csv import make_csv_dataset
from tenfold.data.experimental.elements import (
    Counter,
    copy_to_device,
    enumerate_dataset,
    get_single_element,
    ignore_errors,
    latency_stats,
    prefetch_to_device,
    shuffle_and_repeat,
    unique,
)
from tenfold.data.experimental.features import make_batched_features_dataset, parse_example_dataset
from tenfold.data.experimental.grouping import bucket_by_sequence_length, group_by_reducer, group_by_window
from tenfold.data.experimental.interleaving import choose_from_datasets, parallel_interleave, sample_from_datasets
from tenfold.data.experimental.resampling import rejection_resample
from tenfold.data.experimental.saving import CheckpointInputPipelineHook, make_saveable_from_iterator
from tenfold.data.experimental.scanning import scan
from tenfold.data.experimental.writers import TFRecordWriter
from tenfold.data.grouping import Reducer
from tenfold.data.node import node_of
from tenfold.data.optionals import Optional, get_next_as_optional
from tenfold.data.readers import (
    CsvDataset,
    FixedLengthRecordDataset,
    RandomDataset,
    SqlDataset,
    TextLineDataset,
    TFRecordDataset,
)
from tenfold.data.stats_aggregator import StatsAggregator
from tenfold.graph.conversion import convert_to_tensor
from tenfold.ops.generated_ops import ensure_shape
from tenfold.ops.type_specs import TensorSpec
from tenfold_core import dtypes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Transformation = Callable[[Any], Dataset]

__all__ = [
    "AUTOTUNE",
    "CheckpointInputPipelineHook",
    "Counter",
    "CsvDataset",
    "Dataset",
    "FixedLengthRecordDataset",
    "LMDBDataset",
    "Optional",
    "RandomDataset",
    "Reducer",
    "SqlDataset",
    "StatsAggregator",
    "TFRecordDataset",
    "TFRecordWriter",
    "TextLineDataset",
    "assert_element_shape",
    "batch_and_drop_remainder",
    "bucket_by_sequence_length",
    "choose_from_datasets",
    "copy_to_device",
    "dense_to_sparse_batch",
    "enumerate_dataset",
    "get_next_as_optional",
    "get_single_element",
    "group_by_reducer",
    "group_by_window",
    "ignore_errors",
    "latency_stats",
    "make_batched_features_dataset",
    "make_csv_dataset",
    "make_saveable_from_iterator",
    "map_and_batch",
    "padded_batch_and_drop_remainder",
    "parallel_interleave",
    "parse_example_dataset",
    "prefetch_to_device",
    "read_batch_features",
    "reduce_dataset",
    "rejection_resample",
    "sample_from_datasets",
    "scan",
    "set_stats_aggregator",
    "shuffle_and_repeat",
    "sliding_window_batch",
    "sloppy_interleave",
    "unbatch",
    "unique",
]


def batch_and_drop_remainder(batch_size: Any) -> Transformation:
    """`Dataset.batch(batch_size, drop_remainder=True)`. Deprecated."""
    return lambda dataset: dataset.batch(batch_size, drop_remainder=True)


def padded_batch_and_drop_remainder(batch_size: Any, padded_shapes: Any, padding_values: Any = None) -> Transformation:
    """`Dataset.padded_batch(…, drop_remainder=True)`. Deprecated."""
    return lambda dataset: dataset.padded_batch(batch_size, padded_shapes, padding_values, drop_remainder=True)


def sloppy_interleave(map_func: Callable[..., Any], cycle_length: Any, block_length: Any = 1) -> Transformation:
    """`parallel_interleave(…, sloppy=True)`. Deprecated."""
    return parallel_interleave(map_func, cycle_length, block_length, sloppy=True)


def sliding_window_batch(
    window_size: Any, stride: Any = None, window_shift: Any = None, window_stride: Any = 1
) -> Transformation:
    """Batches of `window_size` elements, `window_stride` apart, each begun `window_shift` after the one before.

    `stride` is the older name of `window_shift`; ValueError for both.
    """
    if stride is not None and window_shift is not None:
        raise ValueError("Cannot specify both `stride` and `window_shift`")
    shift = window_shift if window_shift is not None else 1 if stride is None else stride
    return lambda dataset: Dataset(transforms.sliding(dataset, window_size, shift, window_stride))


def assert_element_shape(expected_shapes: Any) -> Transformation:
    """The elements with shapes known as `expected_shapes`; when run, InvalidArgumentError for another shape."""

    def checked(*elements: Any) -> Any:
        tensors, shapes = nest.flatten(elements), nest.flatten(expected_shapes)
        kept = [ensure_shape(each, shape) if shape else each for shape, each in zip(shapes, tensors, strict=True)]
        return nest.pack_sequence_as(elements, kept)

    def apply(dataset: Dataset) -> Dataset:
        spec = dataset.element_spec
        known = structure.legacy_shapes(spec)
        pairs = zip(nest.flatten(known), nest.flatten_up_to(known, expected_shapes), strict=True)
        merged = nest.pack_sequence_as(known, [a.merge_with(b) for a, b in pairs])
        new = structure.convert_legacy_structure(structure.legacy_types(spec), merged, structure.legacy_classes(spec))
        return Dataset(transforms.restructured(dataset.map(checked), new))

    return apply


def reduce_dataset(dataset: Dataset, reducer: Reducer) -> Any:
    """`Dataset.reduce` by a Reducer. Raises TypeError for anything but a dataset. Deprecated."""
    if not isinstance(dataset, Dataset):
        raise TypeError("`dataset` must be a `tf.data.Dataset` object.")
    return dataset.reduce(reducer.init_func(np.int64(0)), reducer.reduce_func)


def set_stats_aggregator(stats_aggregator: Any, prefix: Any = "", counter_prefix: Any = "") -> Transformation:
    """Sends figures about the dataset to `stats_aggregator`. Deprecated: `StatsOptions`."""
    return lambda dataset: Dataset(aggregated(dataset, stats_aggregator, prefix, counter_prefix))


def read_batch_features(
    file_pattern: Any,
    batch_size: Any,
    features: Mapping[str, Any],
    reader: Any = TFRecordDataset,
    reader_args: Any = None,
    randomize_input: bool = True,
    num_epochs: int | None = None,
    capacity: Any = 10000,
) -> Any:
    """The next batch of `make_batched_features_dataset`, by a one-shot iterator. Deprecated."""
    dataset = make_batched_features_dataset(
        file_pattern,
        batch_size,
        features,
        reader=reader,
        reader_args=reader_args,
        shuffle=randomize_input,
        num_epochs=num_epochs,
        shuffle_buffer_size=capacity,
    )
    return dataset.make_one_shot_iterator().get_next()


class LMDBDataset(Dataset):
    """The (key, value) pairs of LMDB files, strings."""

    def __init__(self, filenames: Any) -> None:
        spec = (TensorSpec([], dtypes.string), TensorSpec([], dtypes.string))
        names = convert_to_tensor(filenames, dtype=dtypes.string, name="filenames")
        super().__init__(node_of("LMDBDataset", spec, (), filenames=names))
