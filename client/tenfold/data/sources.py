"""Datasets of tensors, ranges, generators and files' names: what pipelines begin with. Files are read by readers.py.

Functions that make DatasetNodes; `tf.data.Dataset` offers them as static methods. Follows TensorFlow 1.15's
dataset_ops.py.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold.data import nest, structure
from tenfold.data.functions import StructuredFunction
from tenfold.data.node import DatasetNode, int64, node_of
from tenfold.graph.conversion import convert_n_to_tensor
from tenfold.graph.op_builder import tensor_op
from tenfold.graph.sparse_tensor import SparseTensor
from tenfold.ops.script_ops import numpy_function
from tenfold.ops.type_specs import TensorSpec
from tenfold_core import dtypes
from tenfold_core.tensor_shape import Dimension, TensorShape, as_shape, dimension_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tenfold_core.dtypes import DType


def from_tensors(element: Any) -> DatasetNode:
    """A dataset of the one element."""
    element = structure.normalize_element(element)
    spec = structure.type_spec_from_value(element)
    variant = tensor_op(
        "TensorDataset",
        components=structure.to_tensor_list(spec, element),
        output_shapes=structure.get_flat_tensor_shapes(spec),
    )
    return DatasetNode(variant, spec)


def from_tensor_slices(element: Any) -> DatasetNode:
    """A dataset of the rows of the element, all parts of which have as many."""
    element = structure.normalize_element(element)
    batched = structure.type_spec_from_value(element)
    tensors = structure.to_batched_tensor_list(batched, element)
    spec = nest.map_structure(lambda part: part._unbatch(), batched)
    rows = Dimension(dimension_value(tensors[0].shape[0]))
    for tensor in tensors[1:]:
        rows.assert_is_compatible_with(Dimension(dimension_value(tensor.shape[0])))
    variant = tensor_op("TensorSliceDataset", components=tensors, output_shapes=structure.get_flat_tensor_shapes(spec))
    return DatasetNode(variant, spec)


def from_sparse_tensor_slices(sparse_tensor: Any) -> DatasetNode:
    """A dataset of the rows of a SparseTensor, each as (indices, values, dense_shape)."""
    if not isinstance(sparse_tensor, SparseTensor):
        raise TypeError(f"`sparse_tensor` must be a `tf.SparseTensor` object. Was {sparse_tensor}.")
    indices, shape = sparse_tensor.indices.shape, sparse_tensor.dense_shape.shape
    rank = (indices.with_rank(2)[1] - 1).merge_with(shape.with_rank(1)[0] - 1)
    spec = (
        TensorSpec([None, rank], dtypes.int64),
        TensorSpec([None], sparse_tensor.dtype.base_dtype),
        TensorSpec([rank], dtypes.int64),
    )
    variant = tensor_op(
        "SparseTensorSliceDataset",
        indices=sparse_tensor.indices,
        values=sparse_tensor.values,
        dense_shape=sparse_tensor.dense_shape,
    )
    return DatasetNode(variant, spec)


def range_dataset(*args: Any) -> DatasetNode:
    """The numbers of Python's `range`. Raises ValueError for another number of arguments than one to three."""
    if not 1 <= len(args) <= 3:
        raise ValueError(f"Invalid arguments to RangeDataset: {args}")
    start, stop, step = (0, args[0], 1) if len(args) == 1 else (*args, 1)[:3]
    return node_of(
        "RangeDataset",
        TensorSpec([], dtypes.int64),
        (),
        start=int64(start, "start"),
        stop=int64(stop, "stop"),
        step=int64(step, "step"),
    )


def generator_dataset(
    args: Any, init: Callable[..., Any], following: Callable[..., Any], finalize: Callable[..., Any]
) -> DatasetNode:
    """What `following` gives of the state that `init` makes of `args`, until it raises OutOfRangeError."""
    name = "Dataset.from_generator()"
    spec = structure.type_spec_from_value(args)
    first = StructuredFunction(init, name, spec)
    state = first.output_structure
    rest = [StructuredFunction(each, name, state) for each in (following, finalize)]
    element_spec = rest[0].output_structure
    return node_of(
        "GeneratorDataset",
        element_spec,
        (),
        (first, *rest),
        init_func_other_args=[*structure.to_tensor_list(spec, args), *first.captured_inputs],
        next_func_other_args=rest[0].captured_inputs,
        finalize_func_other_args=rest[1].captured_inputs,
        init_func=first.function.name,
        next_func=rest[0].function.name,
        finalize_func=rest[1].function.name,
    )


class _Generators:
    """The generators of one `from_generator` that are being read, by the number that their iterator has."""

    def __init__(self, make: Callable[..., Any]) -> None:
        self._make = make
        #: Guards the three below; functions of several iterators run at once.
        self._lock = threading.Lock()
        self._next_id = 0
        self._args: dict[int, tuple[Any, ...]] = {}
        self._running: dict[int, Iterator[Any]] = {}

    def new_id(self, *args: Any) -> Any:
        with self._lock:
            number = self._next_id
            self._next_id += 1
            self._args[number] = args
        return np.array(number, np.int64)

    def following(self, number: int) -> Any:
        """The next value. Raises StopIteration at the end."""
        with self._lock:
            running = self._running.get(int(number))
            args = self._args.pop(int(number), ()) if running is None else ()
        if running is None:
            running = iter(self._make(*args))
            with self._lock:
                self._running[int(number)] = running
        return next(running)

    def end(self, number: int) -> Any:
        with self._lock:
            self._running.pop(int(number), None)
            self._args.pop(int(number), None)
        return np.array(0, np.int64)


def generator_function(
    generator: Callable[..., Any], output_types: Any, output_shapes: Any = None, args: Any = None
) -> Callable[[Any], DatasetNode]:
    """The function that makes the dataset of `generator`'s values, for a `flat_map` over one element of no meaning.

    Raises TypeError if `generator` cannot be called.
    """
    if not callable(generator):
        raise TypeError("`generator` must be callable.")
    if output_shapes is None:
        output_shapes = nest.map_structure(lambda _: TensorShape(None), output_types)
    else:
        output_shapes = nest.map_structure_up_to(output_types, as_shape, output_shapes)
    tensors = [] if args is None else convert_n_to_tensor(args, name="args")
    types = [dtypes.as_dtype(each) for each in nest.flatten(output_types)]
    shapes = nest.flatten(output_shapes)
    generators = _Generators(generator)

    def values_of(number: Any) -> list[Any]:
        return _as_arrays(generators.following(number), output_types, types, shapes)

    def following(number: Any) -> Any:
        values = numpy_function(values_of, [number], types)
        for tensor, shape in zip(values, shapes, strict=True):
            tensor.set_shape(shape)
        return nest.pack_sequence_as(output_types, values)

    def dataset(element: Any) -> DatasetNode:
        return generator_dataset(
            element,
            lambda _: numpy_function(generators.new_id, tensors, dtypes.int64),
            following,
            lambda number: numpy_function(generators.end, [number], dtypes.int64),
        )

    return dataset


def _as_arrays(values: Any, output_types: Any, types: list[DType], shapes: list[TensorShape]) -> list[Any]:
    """One value of a generator as arrays. Raises TypeError or ValueError if it is not what was announced."""
    try:
        flat = nest.flatten_up_to(output_types, values)
    except (TypeError, ValueError):
        raise TypeError(
            "`generator` yielded an element that did not match the expected structure. "
            f"The expected structure was {output_types}, but the yielded element was {values}."
        ) from None
    arrays = []
    for value, dtype, shape in zip(flat, types, shapes, strict=True):
        try:
            array = _as_array(value, dtype)
        except (TypeError, ValueError):
            raise TypeError(
                "`generator` yielded an element that could not be converted to the expected type. "
                f"The expected type was {dtype.name}, but the yielded element was {value}."
            ) from None
        if array.dtype != dtype.as_numpy_dtype:
            raise TypeError(
                f"`generator` yielded an element of type {array.dtype} where an element of type "
                f"{np.dtype(dtype.as_numpy_dtype)} was expected."
            )
        if not shape.is_compatible_with(array.shape):
            raise ValueError(
                f"`generator` yielded an element of shape {array.shape} where an element of shape {shape} was expected."
            )
        arrays.append(array)
    return arrays


def _as_array(value: Any, dtype: DType) -> Any:
    """As `tf.py_func` would read it, but numbers without a type of their own take `dtype`."""
    if dtype == dtypes.string:
        array = np.asarray(value, order="C")
        if array.dtype.kind in "SU":
            flat = [each.encode() if isinstance(each, str) else bytes(each) for each in array.reshape(-1).tolist()]
            array = np.array([*flat, None], object)[:-1].reshape(array.shape)
        return array
    return np.asarray(value, dtype.as_numpy_dtype, order="C")
