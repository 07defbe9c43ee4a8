"""Order of execution: grouping, tuples, dependencies, assertions, printing.

`group` and `tuple` keep their control edges on the devices of what they wait for, so that one edge goes between two
tasks and not one per tensor. Follows TensorFlow 1.x's control_flow_ops.py.
"""

from __future__ import annotations

from typing import Any

from tenfold import nest
from tenfold.graph.conversion import convert_n_to_tensor, convert_to_tensor
from tenfold.graph.default_scopes import control_dependencies, device, name_scope
from tenfold.graph.op_builder import apply_op, tensor_op
from tenfold.graph.operation import Operation
from tenfold.graph.tensor import Tensor
from tenfold.ops.control_flow_cond import cond
from tenfold.ops.control_flow_primitives import merge, switch, with_dependencies
from tenfold_core import dtypes

__all__ = ["Assert", "Print", "group", "merge", "no_op", "switch", "tuple", "with_dependencies"]


def no_op(name: str | None = None) -> Operation:
    """An operation that does nothing; used for control dependencies."""
    op: Operation = apply_op("NoOp", name)
    return op


def group(*inputs: Any, name: str | None = None, **kwargs: Any) -> Operation:
    """An operation that is done when all `inputs` (operations, tensors, nested lists of them) are.

    Raises TypeError for anything else.
    """
    if kwargs:
        raise ValueError(f"Unknown keyword arguments: {', '.join(kwargs)}")
    elements = [element for element in nest.flatten(inputs) if element is not None]
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
        # Sorted, so that the order of the inputs does not depend on hashing.
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


# --- looking at values while the graph runs ---


def Assert(condition: Any, data: Any, summarize: int | None = None, name: str | None = None) -> Operation:
    """An operation that fails with the values of `data` unless `condition` is true."""
    with name_scope(name, "Assert", [condition, data]):
        tensors = convert_n_to_tensor(data)
        if all(tensor.dtype in (dtypes.string, dtypes.int32) for tensor in tensors):
            # Strings and int32 are in host memory anyway: a branch saves no copy.
            return _assert(condition, data, summarize)
        condition = convert_to_tensor(condition, name="Condition")
        guarded = cond(condition, no_op, lambda: _assert(condition, data, summarize), name="AssertGuard")
        op: Operation = guarded.op
        return op


def _assert(condition: Any, data: Any, summarize: int | None) -> Operation:
    op: Operation = apply_op("Assert", condition=condition, data=list(data), summarize=summarize)
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
