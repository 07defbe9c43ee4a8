"""`tf.data.experimental`: datasets of parsed `tf.train.Example`s.

Follows TensorFlow 1.15's data/experimental/ops/parsing_ops.py and readers.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.data import mapping, structure
from tenfold.data.dataset import AUTOTUNE, Dataset
from tenfold.data.experimental.interleaving import parallel_interleave
from tenfold.data.node import DatasetNode, int64, node_of
from tenfold.data.options import Options
from tenfold.data.readers import TFRecordDataset
from tenfold.data.transforms import shuffled_and_repeated
from tenfold.ops import parsing
from tenfold.ops.readers import ReaderBase
from tenfold.ops.type_specs import SparseTensorSpec, TensorSpec
from tenfold_core import dtypes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def parse_example_dataset(features: Mapping[str, Any] | None, num_parallel_calls: Any = 1) -> Callable[[Any], Dataset]:
    """Batches of serialized Examples, vectors of strings, as dicts of tensors: `tf.parse_example` of each.

    Raises ValueError without `features`, TypeError for other elements.
    """
    if features is None:
        raise ValueError(f"Missing: features was {features}.")
    wanted = dict(features)

    def apply(dataset: DatasetNode) -> Dataset:
        if not structure.are_compatible(dataset.element_spec, TensorSpec([None], dtypes.string)):
            raise TypeError("Input dataset should be a dataset of vectors of strings")
        plan = parsing.plan_of(wanted)
        parsed = Dataset(_parsed(dataset, plan, num_parallel_calls))
        if plan.joined:
            return parsed.map(lambda found: parsing.joined(plan, found), num_parallel_calls)
        return parsed

    return apply


def _parsed(dataset: DatasetNode, plan: Any, num_parallel_calls: Any) -> DatasetNode:
    rows = structure.legacy_shapes(dataset.element_spec)
    spec: dict[str, Any] = {
        key: TensorSpec(rows.concatenate(plan.shapes[key]), dtype) for key, dtype in plan.dense.items()
    }
    spec.update((key, SparseTensorSpec(rows.concatenate([None]), dtype)) for key, dtype in plan.sparse.items())
    return node_of(
        "ParseExampleDataset",
        spec,
        (dataset,),
        input_dataset=dataset._variant_tensor,
        num_parallel_calls=int64(num_parallel_calls, "num_parallel_calls"),
        dense_defaults=[parsing.default_of(plan, key) for key in plan.dense],
        sparse_keys=list(plan.sparse),
        dense_keys=list(plan.dense),
        sparse_types=list(plan.sparse.values()),
        Tdense=list(plan.dense.values()),
        dense_shapes=list(plan.shapes.values()),
    )


def shuffled_rounds(dataset: Dataset, num_epochs: int | None, shuffle: bool, buffer_size: Any, seed: Any) -> Dataset:
    """`num_epochs` rounds (None: without end), in random order if `shuffle`."""
    if num_epochs != 1 and shuffle:
        return Dataset(shuffled_and_repeated(dataset, buffer_size, num_epochs, seed))
    if shuffle:
        return dataset.shuffle(buffer_size, seed)
    return dataset.repeat(num_epochs) if num_epochs != 1 else dataset


def read_by_turns(dataset: Dataset, read: Callable[[Any], Any], num_threads: Any, sloppy: bool) -> Dataset:
    """The records of several files at once; if `sloppy`, in whatever order they come."""
    if num_threads != AUTOTUNE:
        return dataset.apply(parallel_interleave(read, cycle_length=num_threads, sloppy=sloppy))
    options = Options()
    options.experimental_deterministic = not sloppy
    return dataset.interleave(read, num_parallel_calls=num_threads).with_options(options)


def make_batched_features_dataset(
    file_pattern: Any,
    batch_size: Any,
    features: Mapping[str, Any],
    reader: Any = TFRecordDataset,
    label_key: str | None = None,
    reader_args: Any = None,
    num_epochs: int | None = None,
    shuffle: bool = True,
    shuffle_buffer_size: Any = 10000,
    shuffle_seed: Any = None,
    prefetch_buffer_size: Any = None,
    reader_num_threads: Any = None,
    parser_num_threads: Any = None,
    sloppy_ordering: bool = False,
    drop_final_batch: bool = False,
) -> Dataset:
    """Batches of the Examples of files as dicts of tensors; with `label_key`, pairs of a dict and the label.

    Raises TypeError for a `reader` of queues, ValueError for a label that is no feature.
    """
    if isinstance(reader, type) and issubclass(reader, ReaderBase):
        raise TypeError(
            "The `reader` argument must return a `Dataset` object. `tf.ReaderBase` subclasses are not supported. For "
            "example, pass `tf.data.TFRecordDataset` instead of `tf.TFRecordReader`."
        )
    files = Dataset.list_files(file_pattern, shuffle=shuffle, seed=shuffle_seed)
    threads = 1 if reader_num_threads is None else reader_num_threads
    dataset = read_by_turns(files, lambda name: reader(name, *(reader_args or ())), threads, sloppy_ordering)
    if structure.legacy_types(dataset.element_spec) == (dtypes.string, dtypes.string):
        # keys and values, of which only the values are parsed
        dataset = Dataset(mapping.mapped(dataset, lambda _, value: value, use_inter_op_parallelism=False))
    dataset = shuffled_rounds(dataset, num_epochs, shuffle, shuffle_buffer_size, shuffle_seed)
    dataset = dataset.batch(batch_size, drop_remainder=drop_final_batch or num_epochs is None)
    dataset = dataset.apply(parse_example_dataset(features, 2 if parser_num_threads is None else parser_num_threads))
    if label_key:
        if label_key not in features:
            raise ValueError(f"The `label_key` provided ({label_key!r}) must be one of the `features` keys.")
        dataset = dataset.map(lambda found: (found, found.pop(label_key)))
    return dataset.prefetch(AUTOTUNE if prefetch_buffer_size is None else prefetch_buffer_size)
