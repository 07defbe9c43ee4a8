"""Transformations by functions of elements: map, flat_map, interleave, filter, scan, reduce and their kin.

Functions that make DatasetNodes of DatasetNodes; each builds the function by functions.py. Grouping is in grouping.py.
Follows TensorFlow 1.15's dataset_ops.py, readers.py and data/experimental/ops.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.data import nest, structure
from tenfold.data.functions import StructuredFunction, function_of_state
from tenfold.data.node import DatasetNode, DatasetSpec, int64, is_true, known_size, node_of
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold.graph.op_builder import create
from tenfold.ops.type_specs import TensorSpec
from tenfold_core import dtypes

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold.graph.tensor import Tensor

_SCALAR_BOOL = TensorSpec([], dtypes.bool_)


def mapped(
    source: DatasetNode,
    map_func: Callable[..., Any],
    num_parallel_calls: Any = None,
    use_inter_op_parallelism: bool = True,
    preserve_cardinality: bool = False,
) -> DatasetNode:
    """`map_func` of each element, in order; `num_parallel_calls` at once."""
    function = StructuredFunction(map_func, "Dataset.map()", source.element_spec)
    arguments: dict[str, Any] = {
        "input_dataset": source._variant_tensor,
        "other_arguments": function.captured_inputs,
        "f": function.function.name,
        "use_inter_op_parallelism": use_inter_op_parallelism,
        "preserve_cardinality": preserve_cardinality,
    }
    op_type = "MapDataset"
    if num_parallel_calls is not None:
        op_type = "ParallelMapDataset"
        arguments["num_parallel_calls"] = convert_to_tensor(num_parallel_calls, dtypes.int32, name="num_parallel_calls")
    return node_of(op_type, function.output_structure, (source,), (function,), **arguments)


def map_and_batched(
    source: DatasetNode, map_func: Callable[..., Any], batch_size: Any, num_parallel_calls: Any, drop_remainder: Any
) -> DatasetNode:
    """`map`, then `batch`, by one operation."""
    function = StructuredFunction(map_func, "tf.data.experimental.map_and_batch()", source.element_spec)
    size = int64(batch_size, "batch_size")
    calls = int64(num_parallel_calls, "num_parallel_calls")
    drop = convert_to_tensor(drop_remainder, dtypes.bool_, name="drop_remainder")
    known = known_size(size) if is_true(drop) else None
    return node_of(
        "MapAndBatchDataset",
        nest.map_structure(lambda part: part._batch(known), function.output_structure),
        (source,),
        (function,),
        input_dataset=source._variant_tensor,
        other_arguments=function.captured_inputs,
        batch_size=size,
        num_parallel_calls=calls,
        drop_remainder=drop,
        f=function.function.name,
        preserve_cardinality=True,
    )


def _gives_datasets(source: DatasetNode, map_func: Callable[..., Any], name: str) -> tuple[StructuredFunction, Any]:
    """The function, and what the elements of its datasets are. Raises TypeError if it returns anything else."""
    function = StructuredFunction(map_func, name, source.element_spec)
    if not isinstance(function.output_structure, DatasetSpec):
        raise TypeError(f"`map_func` must return a `Dataset` object. Got {type(function.output_structure)}")
    return function, function.output_structure.element_spec


def flat_mapped(source: DatasetNode, map_func: Callable[..., Any]) -> DatasetNode:
    """The elements of the dataset that `map_func` gives for each element, one dataset after the other."""
    function, spec = _gives_datasets(source, map_func, "Dataset.flat_map()")
    return node_of(
        "FlatMapDataset",
        spec,
        (source,),
        (function,),
        input_dataset=source._variant_tensor,
        other_arguments=function.captured_inputs,
        f=function.function.name,
    )


def interleaved(
    source: DatasetNode, map_func: Callable[..., Any], cycle_length: Any, block_length: Any, num_parallel_calls: Any
) -> DatasetNode:
    """`block_length` elements in turn from `cycle_length` of the datasets that `map_func` gives."""
    function, spec = _gives_datasets(source, map_func, "Dataset.interleave()")
    arguments: dict[str, Any] = {
        "input_dataset": source._variant_tensor,
        "other_arguments": function.captured_inputs,
        "cycle_length": int64(cycle_length, "cycle_length"),
        "block_length": int64(block_length, "block_length"),
        "f": function.function.name,
    }
    op_type = "InterleaveDataset"
    if num_parallel_calls is not None:
        op_type = "ParallelInterleaveDatasetV2"
        arguments["num_parallel_calls"] = int64(num_parallel_calls, "num_parallel_calls")
    return node_of(op_type, spec, (source,), (function,), **arguments)


def parallel_interleaved(
    source: DatasetNode,
    map_func: Callable[..., Any],
    cycle_length: Any,
    block_length: Any = 1,
    sloppy: Any = False,
    buffer_output_elements: Any = None,
    prefetch_input_elements: Any = None,
) -> DatasetNode:
    """`interleaved` with threads that read ahead; if `sloppy`, whatever is ready comes next."""
    function, spec = _gives_datasets(source, map_func, "tf.data.experimental.parallel_interleave()")
    ahead = 2 * block_length if buffer_output_elements is None else buffer_output_elements
    inputs = 2 * cycle_length if prefetch_input_elements is None else prefetch_input_elements
    return node_of(
        "ParallelInterleaveDataset",
        spec,
        (source,),
        (function,),
        input_dataset=source._variant_tensor,
        other_arguments=function.captured_inputs,
        cycle_length=int64(cycle_length, "cycle_length"),
        block_length=int64(block_length, "block_length"),
        sloppy=convert_to_tensor(sloppy, dtypes.bool_, name="sloppy"),
        buffer_output_elements=int64(ahead, "buffer_output_elements"),
        prefetch_input_elements=int64(inputs, "prefetch_input_elements"),
        f=function.function.name,
    )


def filtered(source: DatasetNode, predicate: Callable[..., Any]) -> DatasetNode:
    """The elements for which `predicate` is true. Raises ValueError if it returns anything but a scalar bool."""
    function = StructuredFunction(predicate, "Dataset.filter()", source.element_spec)
    if not _SCALAR_BOOL.is_compatible_with(function.output_structure):
        raise ValueError(
            f"`predicate` return type must be convertible to a scalar boolean tensor. Was {function.output_structure}."
        )
    return _by_predicate("FilterDataset", source, function)


def taken_while(source: DatasetNode, predicate: Callable[..., Any]) -> DatasetNode:
    """The elements before the first for which `predicate` is false."""
    function = StructuredFunction(predicate, "tf.data.experimental.take_while()", source.element_spec)
    if not _SCALAR_BOOL.is_compatible_with(function.output_structure):
        raise ValueError("`predicate` must return a scalar boolean tensor.")
    return _by_predicate("TakeWhileDataset", source, function)


def _by_predicate(op_type: str, source: DatasetNode, function: StructuredFunction) -> DatasetNode:
    return node_of(
        op_type,
        source.element_spec,
        (source,),
        (function,),
        input_dataset=source._variant_tensor,
        other_arguments=function.captured_inputs,
        predicate=function.function.name,
    )


def scanned(source: DatasetNode, initial_state: Any, scan_func: Callable[..., Any]) -> DatasetNode:
    """What `scan_func` makes of each state and element: a pair, the next state and what is given.

    Raises TypeError if it returns no pair, or a state of another type.
    """
    start = structure.normalize_element(initial_state)
    function, state = function_of_state(
        scan_func,
        "tf.data.experimental.scan()",
        structure.type_spec_from_value(start),
        source.element_spec,
        lambda made: _pair(made.output_structure)[0],
    )
    return node_of(
        "ScanDataset",
        _pair(function.output_structure)[1],
        (source,),
        (function,),
        input_dataset=source._variant_tensor,
        initial_state=structure.to_tensor_list(state, start),
        other_arguments=function.captured_inputs,
        f=function.function.name,
        preserve_cardinality=True,
    )


def _pair(returned: Any) -> Any:
    if not isinstance(returned, tuple) or len(returned) != 2:
        raise TypeError("The scan function must return a pair comprising the new state and the output value.")
    return returned


def reduced(source: DatasetNode, initial_state: Any, reduce_func: Callable[..., Any]) -> Any:
    """The last state: `reduce_func` makes one of each state and element. A value, not a dataset.

    Raises TypeError if `reduce_func` returns a state of another type.
    """
    with name_scope("initial_state"):
        start = structure.normalize_element(initial_state)
    function, state = function_of_state(
        reduce_func,
        "reduce()",
        structure.type_spec_from_value(start),
        source.element_spec,
        lambda made: made.output_structure,
    )
    outputs: list[Tensor] = create(
        "ReduceDataset",
        None,
        {
            "input_dataset": source._variant_tensor,
            "initial_state": structure.to_tensor_list(state, start),
            "other_arguments": function.captured_inputs,
            "f": function.function.name,
            **structure.flat_attrs(state),
        },
    ).outputs
    return structure.from_compatible_tensor_list(state, list(outputs))
