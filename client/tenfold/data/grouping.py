"""Transformations that bring elements with one key together: windows, reducers, buckets of like lengths.

Follows TensorFlow 1.15's data/experimental/ops/grouping.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold.data import nest, structure
from tenfold.data.functions import StructuredFunction, function_of_state
from tenfold.data.node import DatasetNode, DatasetSpec, node_of
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import control_dependencies
from tenfold.ops import array, check_ops, math, reductions, slicing
from tenfold.ops.type_specs import TensorSpec
from tenfold_core import dtypes
from tenfold_core.tensor_shape import TensorShape

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_KEY = TensorSpec([], dtypes.int64)


class Reducer:
    """`tf.data.experimental.Reducer`: how a group becomes one element.

    `init_func(key)` gives the first state, `reduce_func(state, element)` the next, `finalize_func(state)` the element.
    """

    def __init__(
        self, init_func: Callable[..., Any], reduce_func: Callable[..., Any], finalize_func: Callable[..., Any]
    ) -> None:
        self._init_func = init_func
        self._reduce_func = reduce_func
        self._finalize_func = finalize_func

    @property
    def init_func(self) -> Callable[..., Any]:
        """Gives the first state of a key."""
        return self._init_func

    @property
    def reduce_func(self) -> Callable[..., Any]:
        """Gives the next state."""
        return self._reduce_func

    @property
    def finalize_func(self) -> Callable[..., Any]:
        """Gives the element of the last state."""
        return self._finalize_func


def _as_key(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, with a number of another type in place of an int64."""

    def key(*args: Any) -> Any:
        return convert_to_tensor(function(*args), dtypes.int64)

    key.__name__ = getattr(function, "__name__", "key")
    return key


def grouped_by_window(
    source: DatasetNode,
    key_func: Callable[..., Any],
    reduce_func: Callable[..., Any],
    window_size_func: Callable[..., Any],
) -> DatasetNode:
    """The elements of the datasets that `reduce_func(key, window)` gives for each full window of one key.

    Raises ValueError if a key or a size is not a scalar int64, TypeError if `reduce_func` gives no dataset.
    """
    name = "tf.data.experimental.group_by_window()"
    key = StructuredFunction(_as_key(key_func), name, source.element_spec)
    if not _KEY.is_compatible_with(key.output_structure):
        raise ValueError("`key_func` must return a single tf.int64 scalar tensor.")
    reduce = StructuredFunction(reduce_func, name, (_KEY, DatasetSpec(source.element_spec)))
    if not isinstance(reduce.output_structure, DatasetSpec):
        raise TypeError("`reduce_func` must return a `Dataset` object.")
    size = StructuredFunction(_as_key(window_size_func), name, _KEY)
    if not _KEY.is_compatible_with(size.output_structure):
        raise ValueError("`window_size_func` must return a single tf.int64 scalar tensor.")
    return node_of(
        "GroupByWindowDataset",
        reduce.output_structure.element_spec,
        (source,),
        (key, reduce, size),
        input_dataset=source._variant_tensor,
        key_func_other_arguments=key.captured_inputs,
        reduce_func_other_arguments=reduce.captured_inputs,
        window_size_func_other_arguments=size.captured_inputs,
        key_func=key.function.name,
        reduce_func=reduce.function.name,
        window_size_func=size.function.name,
    )


def grouped_by_reducer(source: DatasetNode, key_func: Callable[..., Any], reducer: Reducer) -> DatasetNode:
    """One element for each key, made by `reducer` of all elements with that key, once the input has ended."""
    name = "tf.data.experimental.group_by_reducer()"
    key = StructuredFunction(key_func, name, source.element_spec)
    if not _KEY.is_compatible_with(key.output_structure):
        raise ValueError(
            f"`key_func` must return a single tf.int64 tensor. Got type={key.output_types} and "
            f"shape={key.output_shapes}"
        )
    init = StructuredFunction(reducer.init_func, name, _KEY)
    reduce, state = function_of_state(
        reducer.reduce_func, name, init.output_structure, source.element_spec, lambda made: made.output_structure
    )
    final = StructuredFunction(reducer.finalize_func, name, state)
    return node_of(
        "GroupByReducerDataset",
        final.output_structure,
        (source,),
        (key, init, reduce, final),
        input_dataset=source._variant_tensor,
        key_func_other_arguments=key.captured_inputs,
        init_func_other_arguments=init.captured_inputs,
        reduce_func_other_arguments=reduce.captured_inputs,
        finalize_func_other_arguments=final.captured_inputs,
        key_func=key.function.name,
        init_func=init.function.name,
        reduce_func=reduce.function.name,
        finalize_func=final.function.name,
    )


class Buckets:
    """Elements by length: which bucket an element is in, how many of them make a batch, and the batch.

    `boundaries` are the lengths at which the next bucket begins; there is one more of `batch_sizes`.
    """

    def __init__(self, boundaries: Sequence[Any], batch_sizes: Sequence[Any]) -> None:
        if len(batch_sizes) != len(boundaries) + 1:
            raise ValueError("len(bucket_batch_sizes) must equal len(bucket_boundaries) + 1")
        self._boundaries = list(boundaries)
        self._count = len(batch_sizes)
        self._sizes = array.constant(batch_sizes, dtypes.int64)

    def number_of(self, length: Any) -> Any:
        """The bucket of an element of this length, a scalar int64."""
        least = [np.iinfo(np.int32).min, *self._boundaries]
        most = [*self._boundaries, np.iinfo(np.int32).max]
        inside = math.logical_and(math.less_equal(least, length), math.less(length, most))
        return reductions.reduce_min(slicing.where(inside))

    def batch_size(self, bucket: Any) -> Any:
        """How many elements a batch of this bucket has."""
        return self._sizes[bucket]

    def shapes(self, bucket: Any, wanted: Any, to_boundary: bool) -> Any:
        """What the elements of a batch are padded to; unknown sizes become the longest that the bucket takes."""
        filler = None
        if to_boundary:
            check = check_ops.assert_less(
                bucket,
                array.constant(self._count - 1, dtypes.int64),
                message="When pad_to_bucket_boundary=True, elements must have length < max(bucket_boundaries).",
            )
            with control_dependencies([check]):
                filler = array.constant(self._boundaries, dtypes.int64)[bucket] - 1
        flat = [TensorShape(shape).as_list() for shape in nest.flatten(wanted)]
        filled = [[filler if size is None else size for size in shape] for shape in flat]
        return nest.pack_sequence_as(wanted, filled)


def shapes_of(source: DatasetNode) -> Any:
    """The static shapes of the elements."""
    return structure.legacy_shapes(source.element_spec)
