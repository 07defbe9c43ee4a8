"""Transformations that take elements as they are: zip, concatenate, repeat, shuffle, cache, take, window, prefetch, ….

Functions that make DatasetNodes of DatasetNodes; functions of elements are in mapping.py, batches in batches.py, how
options become operations in applied.py. Follows TensorFlow 1.15's dataset_ops.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.data import nest, structure
from tenfold.data.node import DatasetNode, DatasetSpec, int64, node_of
from tenfold.data.seeds import get_seed
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.op_builder import create, tensor_op
from tenfold_core import dtypes

if TYPE_CHECKING:
    from tenfold.data.options import Options


def zipped(datasets: Any) -> DatasetNode:
    """The elements of a nested structure of datasets, side by side; as many as the shortest has."""
    flat = nest.flatten(datasets)
    for each in flat:
        if not isinstance(each, DatasetNode):
            message = "The argument to `Dataset.zip()` must be a nested structure of `Dataset` objects."
            if isinstance(each, list):
                message += " Nested structures do not support Python lists; please use a tuple instead."
            raise TypeError(message)
    spec = nest.pack_sequence_as(datasets, [each.element_spec for each in flat])
    return node_of("ZipDataset", spec, flat, input_datasets=[each._variant_tensor for each in flat])


def concatenated(first: DatasetNode, second: DatasetNode) -> DatasetNode:
    """The elements of one dataset, then those of another. Raises TypeError if their types or classes differ."""
    merged = common_spec([first, second], "Two datasets to concatenate have different {what} {a} and {b}")
    return node_of(
        "ConcatenateDataset",
        merged,
        (first, second),
        input_dataset=first._variant_tensor,
        another_dataset=second._variant_tensor,
    )


def common_spec(datasets: list[Any], message: str) -> Any:
    """What the elements of all are. Raises TypeError, with `message`, if their types or classes differ."""
    spec = datasets[0].element_spec
    for other in datasets[1:]:
        for what, of in (("types", structure.legacy_types), ("classes", structure.legacy_classes)):
            a, b = of(spec), of(other.element_spec)
            if a != b:
                raise TypeError(message.format(what=what, a=a, b=b))
        shapes = structure.legacy_shapes(spec)
        pairs = zip(nest.flatten(shapes), nest.flatten(structure.legacy_shapes(other.element_spec)), strict=True)
        weaker = nest.pack_sequence_as(shapes, [a.most_specific_compatible_shape(b) for a, b in pairs])
        spec = structure.convert_legacy_structure(structure.legacy_types(spec), weaker, structure.legacy_classes(spec))
    return spec


def _same(op_type: str, source: DatasetNode, **arguments: Any) -> DatasetNode:
    """A dataset whose elements are of the same specification."""
    return node_of(op_type, source.element_spec, (source,), input_dataset=source._variant_tensor, **arguments)


def repeated(source: DatasetNode, count: Any) -> DatasetNode:
    """`count` times the elements; for ever with None or -1."""
    return _same("RepeatDataset", source, count=int64(-1 if count is None else count, "count"))


def shuffled(source: DatasetNode, buffer_size: Any, seed: Any, reshuffle: bool | None) -> DatasetNode:
    """The elements in random order, each drawn from the next `buffer_size`."""
    size = int64(buffer_size, "buffer_size")
    first, second = get_seed(seed)
    again = True if reshuffle is None else reshuffle
    return _same("ShuffleDataset", source, buffer_size=size, seed=first, seed2=second, reshuffle_each_iteration=again)


def shuffled_and_repeated(source: DatasetNode, buffer_size: Any, count: Any, seed: Any) -> DatasetNode:
    """`repeated(shuffled(…))` by one operation, whose buffer may hold elements of two rounds."""
    size = int64(buffer_size, "buffer_size")
    times = int64(-1 if count is None else count, "count")
    first, second = get_seed(seed)
    return _same("ShuffleAndRepeatDataset", source, buffer_size=size, seed=first, seed2=second, count=times)


def cached(source: DatasetNode, filename: Any) -> DatasetNode:
    """The elements, kept in memory, or in a file, for the next round."""
    return _same("CacheDataset", source, filename=convert_to_tensor(filename, dtypes.string, name="filename"))


def taken(source: DatasetNode, count: Any) -> DatasetNode:
    """At most the first `count` elements."""
    return _same("TakeDataset", source, count=int64(count, "count"))


def skipped(source: DatasetNode, count: Any) -> DatasetNode:
    """The elements after the first `count`."""
    return _same("SkipDataset", source, count=int64(count, "count"))


def sharded(source: DatasetNode, num_shards: Any, index: Any) -> DatasetNode:
    """Every `num_shards`-th element, beginning with number `index`."""
    return _same("ShardDataset", source, num_shards=int64(num_shards, "num_shards"), index=int64(index, "index"))


def prefetched(source: DatasetNode, buffer_size: Any, slack_period: int | None = None) -> DatasetNode:
    """The elements, `buffer_size` of them made ahead; every `slack_period`-th a little later."""
    size = int64(-1 if buffer_size is None else buffer_size, "buffer_size")
    return _same("PrefetchDataset", source, buffer_size=size, slack_period=slack_period)


def windowed(source: DatasetNode, size: Any, shift: Any, stride: Any, drop_remainder: Any) -> DatasetNode:
    """Datasets of `size` elements each, one for each component."""
    spec = nest.map_structure(DatasetSpec, source.element_spec)
    return node_of(
        "WindowDataset",
        spec,
        (source,),
        input_dataset=source._variant_tensor,
        size=int64(size, "size"),
        shift=int64(size if shift is None else shift, "shift"),
        stride=int64(stride, "stride"),
        drop_remainder=convert_to_tensor(drop_remainder, dtypes.bool_, name="drop_remainder"),
    )


def with_options(source: DatasetNode, options: Options) -> DatasetNode:
    """The same dataset, run as `options` and its own options say."""
    merged = source.options().merge(options)
    return DatasetNode(source._variant_tensor, source.element_spec, (source,), options=merged)


def restructured(source: DatasetNode, element_spec: Any) -> DatasetNode:
    """The same dataset, its elements known as `element_spec`, which has the same tensors."""
    return DatasetNode(source._variant_tensor, element_spec, (source,))


def single_element(source: DatasetNode) -> Any:
    """The element of a dataset that has exactly one; when run, anything else is InvalidArgumentError."""
    op = create("DatasetToSingleElement", None, {"dataset": source._variant_tensor, **source._flat_structure})
    return structure.from_compatible_tensor_list(source.element_spec, list(op.outputs))


def ignoring_errors(source: DatasetNode) -> DatasetNode:
    """The elements that could be made."""
    return _same("IgnoreErrorsDataset", source)


def unique(source: DatasetNode) -> DatasetNode:
    """Each element once. Raises TypeError for other elements than single int32, int64 or string tensors."""
    if structure.legacy_types(source.element_spec) not in (dtypes.int32, dtypes.int64, dtypes.string):
        raise TypeError(
            "`tf.data.experimental.unique()` only supports inputs with a single `tf.int32`, `tf.int64`, or "
            "`tf.string` component."
        )
    return _same("UniqueDataset", source)


def with_figures(op_type: str, source: DatasetNode, tag: Any) -> DatasetNode:
    """The elements, with figures about them sent to the pipeline's aggregator under `tag`."""
    return _same(op_type, source, tag=convert_to_tensor(tag, dtypes.string))


def sliding(source: DatasetNode, size: Any, shift: Any, stride: Any) -> DatasetNode:
    """Batches of `size` elements, `stride` apart, each batch begun `shift` elements after the one before."""
    spec = nest.map_structure(lambda part: part._batch(None), source.element_spec)
    return node_of(
        "SlidingWindowDataset",
        spec,
        (source,),
        input_dataset=source._variant_tensor,
        window_size=int64(size, "window_size"),
        window_shift=int64(shift, "window_shift"),
        window_stride=int64(stride, "window_stride"),
    )


def directed(selector: DatasetNode, datasets: list[DatasetNode]) -> DatasetNode:
    """From each element of `selector`, the number of the dataset that gives the next element."""
    spec = common_spec(datasets, "All datasets must have the same type and class.")
    return node_of(
        "DirectedInterleaveDataset",
        spec,
        (selector, *datasets),
        selector_input_dataset=selector._variant_tensor,
        data_input_datasets=[each._variant_tensor for each in datasets],
    )


def cardinality(source: DatasetNode) -> Any:
    """How many elements there are, an int64: -1 for ever, -2 for unknown."""
    return tensor_op("DatasetCardinality", input_dataset=source._variant_tensor)
