"""Order of execution: grouping, tuples, dependencies, assertions, printing, and the primitive Switch and Merge.

`group` and `tuple` keep their control edges on the devices of what they wait for, so that one edge crosses between two
tasks and not one per tensor. Follows TensorFlow 1.x's control_flow_ops.py.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tenfold.framework import dtypes
from tenfold.graph.conversion import convert_to_tensor, convert_to_tensor_or_indexed_slices
from tenfold.graph.default_scopes import colocate_with, control_dependencies, device, name_scope
from tenfold.graph.indexed_slices import IndexedSlices
from tenfold.graph.operation import Operation
from tenfold.graph.tensor import Tensor
from tenfold.ops.op_builder import apply_op, tensor_op


def no_op(name: str | None = None) -> Operation:
    """An operation that does nothing; something to wait for."""
    op: Operation = apply_op("NoOp", name)
    return op


def group(*inputs: Any, name: str | None = None, **kwargs: Any) -> Operation:
    """An operation that is done when all `inputs` (operations, tensors, nested lists of them) are.

    Raises TypeError for anything else.
    """
    if kwargs:
        raise ValueError(f"Unknown keyword arguments: {', '.join(kwargs)}")
    elements = _flatten(inputs)
    with name_scope(name, "group_deps", elements) as scope:
        if not elements:
            return no_op(name=scope)
        by_device: dict[str, list[Operation]] = {}
        for element in elements:
            if not hasattr(element, "device"):
                raise TypeError(f"Expected tf.Tensor or tf.Operation or IndexedSlices or Variable, got {element!r}")
            by_device.setdefault(element.device or "", []).append(
                element if isinstance(element, Operation) else element.op
            )
        if len(by_device) == 1:
            ((where, ops),) = by_device.items()
            return _no_op_after(ops, where, scope)
        gates = [_no_op_after(by_device[where], where, None) for where in sorted(by_device)]
        return _no_op_after(gates, "", scope)


def _no_op_after(ops: list[Operation], where: str, name: str | None) -> Operation:
    with control_dependencies(ops):
        if where:
            with device(where):
                return no_op(name=name)
        return no_op(name=name)


def _flatten(values: Any) -> list[Any]:
    if values is None:
        return []
    if isinstance(values, dict):
        return [item for key in sorted(values) for item in _flatten(values[key])]
    if isinstance(values, (list, _TUPLE)):
        return [item for value in values for item in _flatten(value)]
    return [values]


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
            return IndexedSlices(_identity(value.values, scope), value.indices, value.dense_shape)
        return _identity(value, scope)


def _identity(tensor: Tensor, name: str | None) -> Tensor:
    """Identity that keeps a reference a reference."""
    return tensor_op("RefIdentity" if tensor.dtype.is_ref_dtype else "Identity", name, input=tensor)


# This family has a function `tuple`; the class keeps another name here.
_TUPLE = type(())


def tuple(tensors: Any, name: str | None = None, control_inputs: Any = None) -> list[Any]:
    """The same tensors (or IndexedSlices, or None), each available only when all of them and `control_inputs` are."""
    with name_scope(name, "tuple", tensors):
        waits = [item if isinstance(item, Operation) else item.op for item in tensors if item is not None]
        for item in control_inputs or ():
            if isinstance(item, Tensor):
                waits.append(item.op)
            elif isinstance(item, Operation):
                waits.append(item)
            else:
                raise TypeError(f"Control input must be Operation or Tensor: {item}")
        # The order of the gate's inputs must not depend on hashing.
        waits = sorted(dict.fromkeys(waits), key=lambda op: op._id)
        if not waits:
            raise ValueError(f"Must have at least one Tensor: {tensors}")
        gate = group(*waits)
        gated: list[Any] = []
        for item in tensors:
            if isinstance(item, Operation):
                with control_dependencies([gate]):
                    gated.append(no_op())
            else:
                gated.append(None if item is None else with_dependencies([gate], item))
        return gated


# --- primitives of conditionals ---


class SwitchOutput(NamedTuple):
    """One output is alive, the other dead."""

    output_false: Tensor
    output_true: Tensor


class MergeOutput(NamedTuple):
    """The live input, and its position."""

    output: Tensor
    value_index: Tensor


def switch(data: Any, pred: Any, dtype: Any = None, name: str | None = None) -> SwitchOutput:
    """Sends `data` to one of two outputs by the scalar `pred`; the other is dead."""
    with name_scope(name, "Switch", [data, pred]) as scope:
        data = convert_to_tensor(data, dtype=dtype, name="data", as_ref=True)
        pred = convert_to_tensor(pred, dtype=dtypes.bool_, name="pred")
        if data.dtype.is_ref_dtype:
            with colocate_with(data, ignore_existing=True):
                return SwitchOutput(*apply_op("RefSwitch", scope, data=data, pred=pred))
        return SwitchOutput(*apply_op("Switch", scope, data=data, pred=pred))


def merge(inputs: Any, name: str | None = None) -> MergeOutput:
    """The first of `inputs` that is alive. Raises ValueError if one is None."""
    if any(item is None for item in inputs):
        raise ValueError(f"At least one of the merge inputs is None: {inputs}")
    with name_scope(name, "Merge", inputs) as scope:
        tensors = [convert_to_tensor(item, as_ref=True) for item in inputs]
        if all(tensor.dtype.is_ref_dtype for tensor in tensors):
            return MergeOutput(*apply_op("RefMerge", scope, inputs=tensors))
        return MergeOutput(*apply_op("Merge", scope, inputs=tensors))


# --- looking at values while the graph runs ---


def Assert(condition: Any, data: Any, summarize: int | None = None, name: str | None = None) -> Operation:
    """An operation that fails with the values of `data` unless `condition` is true."""
    with name_scope(name, "Assert", [condition, data]) as scope:
        op: Operation = apply_op(
            "Assert", scope, condition=condition, data=list(data), summarize=3 if summarize is None else summarize
        )
        return op


def Print(
    input_: Any,
    data: Any,
    message: str | None = None,
    first_n: int | None = None,
    summarize: int | None = None,
    name: str | None = None,
) -> Tensor:
    """`input_`; prints `data` on the standard error of the task where it runs."""
    return tensor_op(
        "Print", name, input=input_, data=list(data), message=message, first_n=first_n, summarize=summarize
    )
