"""The dataflow primitives of conditionals and loops: Switch, Merge, Enter, Exit, NextIteration.

Each takes a tensor (a reference stays one) or a composite such as IndexedSlices, whose components are separate edges.
Used by control_flow_cond.py, control_flow_while.py and the gradients. Follows TensorFlow 1.15's control_flow_ops.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tenfold import nest
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import colocate_with, control_dependencies, name_scope
from tenfold.graph.indexed_slices import IndexedSlices, convert_to_tensor_or_indexed_slices
from tenfold.graph.op_builder import apply_op, tensor_op
from tenfold.graph.tensor import Tensor
from tenfold_core import dtypes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class SwitchOutput(NamedTuple):
    """One output is alive, the other dead."""

    output_false: Any
    output_true: Any


class MergeOutput(NamedTuple):
    """The live input, and its position."""

    output: Any
    value_index: Tensor


def as_tensor_or_composite(value: Any, dtype: Any = None, name: str | None = None, as_ref: bool = False) -> Any:
    """`value` as a tensor, unless it is a composite."""
    return value if nest.is_composite(value) else convert_to_tensor(value, dtype=dtype, name=name, as_ref=as_ref)


def _each_part(function: Callable[[Tensor], Any], value: Any) -> Any:
    return nest.map_structure(function, value, expand_composites=True)


def identity(data: Any, name: str | None = None) -> Any:
    """The same value; a reference stays a reference."""
    data = as_tensor_or_composite(data, as_ref=True)
    if not isinstance(data, Tensor):
        return _each_part(identity, data)
    return tensor_op("RefIdentity" if data.dtype.is_ref_dtype else "Identity", name, input=data)


def enter(
    data: Any,
    frame_name: str,
    is_constant: bool = False,
    parallel_iterations: int = 10,
    use_ref: bool = True,
    use_input_shape: bool = True,
    name: str | None = None,
) -> Any:
    """`data` as the first value of a loop variable in the frame `frame_name`, or as a constant of the loop.

    Without `use_input_shape` the static shape is unknown: later iterations may have another.
    """
    data = as_tensor_or_composite(data, as_ref=True)
    if not isinstance(data, Tensor):
        return _each_part(
            lambda part: enter(part, frame_name, is_constant, parallel_iterations, use_ref, use_input_shape), data
        )
    entered = tensor_op(
        "RefEnter" if data.dtype.is_ref_dtype and use_ref else "Enter",
        name,
        data=data,
        frame_name=frame_name,
        is_constant=is_constant,
        parallel_iterations=parallel_iterations,
    )
    if use_input_shape:
        entered.set_shape(data.shape)
    return entered


def exit(data: Any, name: str | None = None) -> Any:
    """The value of a loop variable once its loop has ended, in the frame around."""
    data = as_tensor_or_composite(data, as_ref=True)
    if not isinstance(data, Tensor):
        return _each_part(exit, data)
    return tensor_op("RefExit" if data.dtype.is_ref_dtype else "Exit", name, data=data)


def next_iteration(data: Any, name: str | None = None) -> Any:
    """`data` in the next iteration of its loop."""
    data = as_tensor_or_composite(data, as_ref=True)
    if not isinstance(data, Tensor):
        return _each_part(next_iteration, data)
    return tensor_op("RefNextIteration" if data.dtype.is_ref_dtype else "NextIteration", name, data=data)


def loop_cond(input: Any, name: str | None = None) -> Tensor:
    """Marks the condition of a loop."""
    return tensor_op("LoopCond", name, input=input)


def switch(data: Any, pred: Any, dtype: Any = None, name: str | None = None) -> SwitchOutput:
    """Sends `data` to one of two outputs by the scalar `pred`; the other is dead."""
    with name_scope(name, "Switch", [data, pred]) as scope:
        data = as_tensor_or_composite(data, dtype=dtype, name="data", as_ref=True)
        pred = convert_to_tensor(pred, dtype=dtypes.bool_, name="pred")
        if isinstance(data, Tensor):
            return SwitchOutput(*apply_op("Switch", scope, data=data, pred=pred))
        outputs = [apply_op("Switch", data=part, pred=pred) for part in nest.flatten(data, expand_composites=True)]
        return SwitchOutput(
            *(
                nest.pack_sequence_as(data, [output[side] for output in outputs], expand_composites=True)
                for side in (0, 1)
            )
        )


def switch_ref_or_tensor(data: Any, pred: Tensor, name: str = "Switch") -> SwitchOutput:
    """`switch` on the device of `data`; a reference stays a reference."""
    data = as_tensor_or_composite(data, name="data")
    # A device function must not move the Switch away from a reference, nor cause the copy of a large tensor to a task.
    with colocate_with(data, ignore_existing=True):
        if isinstance(data, Tensor) and data.dtype.is_ref_dtype:
            return SwitchOutput(*apply_op("RefSwitch", name, data=data, pred=pred))
        return switch(data, pred, name=name)


def merge(inputs: Any, name: str | None = None) -> MergeOutput:
    """The first of `inputs` that is alive.

    Raises ValueError if one is None or the composites differ in structure.
    """
    if any(item is None for item in inputs):
        raise ValueError(f"At least one of the merge inputs is None: {inputs}")
    with name_scope(name, "Merge", inputs) as scope:
        values = [as_tensor_or_composite(item, as_ref=True) for item in inputs]
        if all(isinstance(value, Tensor) for value in values):
            references = all(value.dtype.is_ref_dtype for value in values)
            return MergeOutput(*apply_op("RefMerge" if references else "Merge", scope, inputs=values))
        if all(isinstance(value, (Tensor, IndexedSlices)) for value in values):
            values = as_indexed_slices_list(values)
        for value in values:
            if not nest.is_composite(value):
                raise TypeError(f"Type {type(value)} not supported")
            nest.assert_same_structure(values[0], value, expand_composites=True)
        columns = zip(*(nest.flatten(value, expand_composites=True) for value in values), strict=True)
        merged = [apply_op("Merge", inputs=list(column)) for column in columns]
        value = nest.pack_sequence_as(values[0], [each[0] for each in merged], expand_composites=True)
        return MergeOutput(value, merged[0][1])


def with_dependencies(dependencies: Any, output_tensor: Any, name: str | None = None) -> Any:
    """`output_tensor`, available only after all `dependencies`."""
    dependencies = list(dependencies)
    with (
        name_scope(name, "control_dependency", [*dependencies, output_tensor]) as scope,
        colocate_with(output_tensor),
        control_dependencies(dependencies),
    ):
        value = convert_to_tensor_or_indexed_slices(output_tensor)
        if isinstance(value, IndexedSlices):
            return IndexedSlices(identity(value.values, scope), value.indices, value.dense_shape)
        return identity(value, scope)


# --- IndexedSlices of a common form ---


def as_indexed_slices(value: Any) -> IndexedSlices:
    """`value`, a dense tensor as all its rows. Raises TypeError for anything but these two."""
    if isinstance(value, IndexedSlices):
        return value
    if not isinstance(value, Tensor):
        raise TypeError(f"Not a Tensor or IndexedSlices: {type(value)}")
    # The op, even for a static shape: it must be dead if `value` is dead.
    shape = tensor_op("Shape", input=value)
    return IndexedSlices(value, tensor_op("Range", start=0, limit=shape[0], delta=1), shape)


def as_indexed_slices_list(values: Sequence[Any]) -> list[IndexedSlices]:
    """`values` as IndexedSlices whose indices have one type, int64 if they differ."""
    slices = [as_indexed_slices(value) for value in values]
    if len({each.indices.dtype.base_dtype for each in slices}) == 1:
        return slices
    return [
        IndexedSlices(each.values, tensor_op("Cast", x=each.indices, DstT=dtypes.int64), each.dense_shape)
        if each.indices.dtype.base_dtype != dtypes.int64
        else each
        for each in slices
    ]
