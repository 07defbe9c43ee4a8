"""`tf.data.Dataset`: a pipeline of elements, built step by step; each method gives a new dataset.

Thin: what each method makes is in sources.py, transforms.py, mapping.py and batches.py. Datasets of files are in
readers.py. Follows DatasetV1 of TensorFlow 1.15's data/ops/dataset_ops.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from tenfold.data import batches, iterators, mapping, nest, sources, structure, transforms
from tenfold.data.node import DatasetNode, DatasetSpec
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import control_dependencies, name_scope
from tenfold.graph.default_stack import get_default_graph
from tenfold.ops import array, control_flow, io, math, string
from tenfold_core import dtypes

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold.data.iterators import Iterator
    from tenfold.data.options import Options
    from tenfold.graph.argument_types import TensorLike

#: Leaves a number (parallel calls, buffer sizes) to the runtime.
AUTOTUNE = -1


class Dataset(DatasetNode):
    """A sequence of elements, each a nested structure of tensors (tuples and dicts; a list is one tensor).

    Programs make one by the static methods, by readers or by `tf.data.experimental`, and read it by an iterator.
    """

    def __init__(self, node: DatasetNode | None = None) -> None:
        """The dataset of a node. A class of a program's own may give none, and define `_as_variant_tensor`,
        `element_spec` (or `output_types`, `output_shapes` and `output_classes`) and `_inputs`."""
        if node is None:
            DatasetNode.__init__(self, self._as_variant_tensor(), None)
            return
        DatasetNode.__init__(
            self, node._variant_tensor, node.element_spec, node._inputs(), node._functions(), node._own_options
        )

    def _as_variant_tensor(self) -> Any:
        raise NotImplementedError("Dataset._as_variant_tensor")

    @property
    def element_spec(self) -> Any:
        """The specification of the elements."""
        if self._element_spec is not None:
            return self._element_spec
        return structure.convert_legacy_structure(self.output_types, self.output_shapes, self.output_classes)

    # --- sources ---

    @staticmethod
    def from_tensors(tensors: Any) -> Dataset:
        """The dataset of the one element `tensors`."""
        return Dataset(sources.from_tensors(tensors))

    @staticmethod
    def from_tensor_slices(tensors: Any) -> Dataset:
        """The dataset of the rows of `tensors`, all of which have as many. Raises ValueError if they do not."""
        return Dataset(sources.from_tensor_slices(tensors))

    @staticmethod
    def from_sparse_tensor_slices(sparse_tensor: Any) -> Dataset:
        """The dataset of the rows of a SparseTensor as (indices, values, dense_shape). Deprecated."""
        return Dataset(sources.from_sparse_tensor_slices(sparse_tensor))

    @staticmethod
    def from_generator(
        generator: Callable[..., Any], output_types: Any, output_shapes: Any = None, args: Any = None
    ) -> Dataset:
        """The dataset of the values that `generator(*args)` yields. It is called in this process for each iteration.

        Raises TypeError if `generator` cannot be called; when run, InvalidArgumentError for a value that is not of
        `output_types` and `output_shapes`.
        """
        function = sources.generator_function(generator, output_types, output_shapes, args)
        return Dataset(mapping.flat_mapped(sources.from_tensors(0), function))

    @staticmethod
    def range(*args: Any) -> Dataset:
        """The numbers of Python's `range`, int64 scalars."""
        return Dataset(sources.range_dataset(*args))

    @staticmethod
    def zip(datasets: Any) -> Dataset:
        """A nested structure of datasets as one of such structures; as long as the shortest."""
        return Dataset(transforms.zipped(datasets))

    @staticmethod
    def list_files(file_pattern: Any, shuffle: bool | None = None, seed: int | None = None) -> Dataset:
        """The names of the files that match one or several patterns; in random order unless `shuffle` is False.

        When run, InvalidArgumentError if there are none.
        """
        with name_scope("list_files"):
            pattern = convert_to_tensor(file_pattern, dtype=dtypes.string, name="file_pattern")
            found = io.matching_files(pattern)
            condition = math.greater(array.shape(found)[0], 0, name="match_not_empty")
            message = math.add(
                "No files matched pattern: ", string.reduce_join(pattern, separator=", "), name="message"
            )
            checked = control_flow.Assert(condition, [message], summarize=1, name="assert_not_empty")
            with control_dependencies([checked]):
                found = array.identity(found)
            dataset = Dataset.from_tensor_slices(found)
            if shuffle is False:
                return dataset
            size = math.maximum(array.shape(found, out_type=dtypes.int64)[0], 1)
            return dataset.shuffle(size, seed=seed)

    # --- transformations ---

    def concatenate(self, dataset: DatasetNode) -> Dataset:
        """These elements, then those of `dataset`. Raises TypeError if their types differ."""
        return Dataset(transforms.concatenated(self, dataset))

    def prefetch(self, buffer_size: TensorLike) -> Dataset:
        """The elements, `buffer_size` of them made ahead."""
        return Dataset(transforms.prefetched(self, buffer_size))

    def repeat(self, count: TensorLike | None = None) -> Dataset:
        """The elements, `count` times; for ever with None or -1."""
        return Dataset(transforms.repeated(self, count))

    def enumerate(self, start: TensorLike = 0) -> Dataset:
        """The elements, each as (number, element)."""
        return Dataset.zip((Dataset.range(start, np.iinfo(np.int64).max), self))

    def shuffle(
        self, buffer_size: TensorLike, seed: TensorLike | None = None, reshuffle_each_iteration: bool | None = None
    ) -> Dataset:
        """The elements in random order, each drawn from the next `buffer_size`; by default in a new order each time."""
        return Dataset(transforms.shuffled(self, buffer_size, seed, reshuffle_each_iteration))

    def cache(self, filename: Any = "") -> Dataset:
        """The elements, kept for the next iteration: in memory, or in files that begin with `filename`."""
        return Dataset(transforms.cached(self, filename))

    def take(self, count: TensorLike) -> Dataset:
        """At most the first `count` elements; all with -1."""
        return Dataset(transforms.taken(self, count))

    def skip(self, count: TensorLike) -> Dataset:
        """The elements after the first `count`; none with -1."""
        return Dataset(transforms.skipped(self, count))

    def shard(self, num_shards: TensorLike, index: TensorLike) -> Dataset:
        """Every `num_shards`-th element, from number `index` on: a worker's share."""
        return Dataset(transforms.sharded(self, num_shards, index))

    def batch(self, batch_size: TensorLike, drop_remainder: TensorLike = False) -> Dataset:
        """`batch_size` elements each, stacked along a new first dimension."""
        return Dataset(batches.batched(self, batch_size, drop_remainder))

    def padded_batch(
        self, batch_size: TensorLike, padded_shapes: Any, padding_values: Any = None, drop_remainder: TensorLike = False
    ) -> Dataset:
        """`batch_size` elements each, padded to `padded_shapes` (None: the largest of the batch) and stacked."""
        return Dataset(batches.padded_batched(self, batch_size, padded_shapes, padding_values, drop_remainder))

    def map(self, map_func: Callable[..., Any], num_parallel_calls: Any = None) -> Dataset:
        """`map_func` of each element; a tuple is passed as several arguments. The order stays.

        `map_func` builds operations once, now; Python code of its own runs for each element by `tf.py_func`.
        """
        return Dataset(mapping.mapped(self, map_func, num_parallel_calls))

    def map_with_legacy_function(self, map_func: Callable[..., Any], num_parallel_calls: Any = None) -> Dataset:
        """`map`. Deprecated."""
        return self.map(map_func, num_parallel_calls)

    def flat_map(self, map_func: Callable[..., Any]) -> Dataset:
        """The elements of the datasets that `map_func` gives, one dataset after the other."""
        return Dataset(mapping.flat_mapped(self, map_func))

    def interleave(
        self,
        map_func: Callable[..., Any],
        cycle_length: Any = AUTOTUNE,
        block_length: Any = 1,
        num_parallel_calls: Any = None,
    ) -> Dataset:
        """The elements of the datasets that `map_func` gives, `block_length` in turn of `cycle_length` at once."""
        return Dataset(mapping.interleaved(self, map_func, cycle_length, block_length, num_parallel_calls))

    def filter(self, predicate: Callable[..., Any]) -> Dataset:
        """The elements for which `predicate` gives true."""
        return Dataset(mapping.filtered(self, predicate))

    def filter_with_legacy_function(self, predicate: Callable[..., Any]) -> Dataset:
        """`filter`. Deprecated."""
        return self.filter(predicate)

    def apply(self, transformation_func: Callable[[Any], Any]) -> Dataset:
        """`transformation_func` of this dataset. Raises TypeError if that is not a dataset."""
        made = transformation_func(self)
        if not isinstance(made, DatasetNode):
            raise TypeError(f"`transformation_func` must return a Dataset. Got {made}.")
        if not made._inputs():
            made._input_nodes = (self,)
        return made if isinstance(made, Dataset) else Dataset(made)

    def window(
        self,
        size: TensorLike,
        shift: TensorLike | None = None,
        stride: TensorLike = 1,
        drop_remainder: TensorLike = False,
    ) -> Dataset:
        """Datasets of `size` elements, `stride` apart, each begun `shift` (default `size`) after the one before."""
        return Dataset(transforms.windowed(self, size, shift, stride, drop_remainder))

    def reduce(self, initial_state: Any, reduce_func: Callable[..., Any]) -> Any:
        """The last state, tensors: `reduce_func(state, element)` gives the next one. Not a dataset."""
        return mapping.reduced(self, initial_state, reduce_func)

    def unbatch(self) -> Dataset:
        """The rows of the elements. Raises ValueError for scalars, and for parts with different numbers of rows."""
        return Dataset(batches.unbatched(self))

    def with_options(self, options: Options) -> Dataset:
        """This dataset, run as `options` say. Raises ValueError where its own options contradict them."""
        return Dataset(transforms.with_options(self, options))

    # --- iterators ---

    def make_one_shot_iterator(self) -> Iterator:
        """An iterator without initializer. Raises ValueError for a dataset that uses variables or placeholders."""
        return self._make_one_shot_iterator()

    def _make_one_shot_iterator(self) -> Iterator:
        return iterators.make_one_shot_iterator(self)

    def make_initializable_iterator(self, shared_name: str | None = None) -> Iterator:
        """An iterator that its `initializer` starts."""
        return self._make_initializable_iterator(shared_name)

    def _make_initializable_iterator(self, shared_name: str | None = None) -> Iterator:
        return iterators.make_initializable_iterator(self, shared_name)

    def __iter__(self) -> Self:
        if not get_default_graph().building_function:
            raise RuntimeError("__iter__() is only supported inside of tf.function or when eager execution is enabled.")
        raise NotImplementedError("a dataset is not iterated inside of a function; use `reduce` or `flat_map`")

    # --- what the elements are ---

    @property
    def output_types(self) -> Any:
        """The types of the elements. Deprecated: `tf.data.get_output_types`."""
        return structure.legacy_types(self.element_spec)

    @property
    def output_shapes(self) -> Any:
        """The static shapes of the elements. Deprecated: `tf.data.get_output_shapes`."""
        return structure.legacy_shapes(self.element_spec)

    @property
    def output_classes(self) -> Any:
        """The classes of the elements. Deprecated: `tf.data.get_output_classes`."""
        return structure.legacy_classes(self.element_spec)

    def __repr__(self) -> str:
        shapes = str(nest.map_structure(str, self.output_shapes)).replace("'", "")
        types = str(nest.map_structure(repr, self.output_types)).replace("'", "")
        return f"<{_shown_name(type(self))} shapes: {shapes}, types: {types}>"


def _shown_name(kind: type) -> str:
    """TensorFlow 1.15 shows the name of the class behind `tf.data.Dataset`."""
    return "DatasetV1Adapter" if kind is Dataset else kind.__name__


DatasetSpec.make = staticmethod(lambda variant, element_spec: Dataset(DatasetNode(variant, element_spec)))


def make_one_shot_iterator(dataset: Dataset) -> Iterator:
    """`dataset.make_one_shot_iterator()`."""
    return dataset._make_one_shot_iterator()


def make_initializable_iterator(dataset: Dataset, shared_name: str | None = None) -> Iterator:
    """`dataset.make_initializable_iterator(shared_name)`."""
    return dataset._make_initializable_iterator(shared_name)


def get_structure(dataset_or_iterator: Any) -> Any:
    """The specification of the elements. Raises TypeError for anything but a dataset or iterator."""
    try:
        return dataset_or_iterator.element_spec
    except AttributeError:
        raise TypeError(
            f"`dataset_or_iterator` must be a Dataset or Iterator object, but got {type(dataset_or_iterator)}."
        ) from None


def get_output_types(dataset_or_iterator: Any) -> Any:
    """The types of the elements, in their structure."""
    return structure.legacy_types(get_structure(dataset_or_iterator))


def get_output_shapes(dataset_or_iterator: Any) -> Any:
    """The static shapes of the elements, in their structure."""
    return structure.legacy_shapes(get_structure(dataset_or_iterator))


def get_output_classes(dataset_or_iterator: Any) -> Any:
    """The classes of the elements, in their structure."""
    return structure.legacy_classes(get_structure(dataset_or_iterator))
