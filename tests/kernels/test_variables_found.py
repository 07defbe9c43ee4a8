"""How kernels reach their variables: by reference or by handle, of another device or type, after a reset."""

from __future__ import annotations

import dataclasses
import gc
import weakref
from typing import Any

import numpy as np
import pytest

from support.kernel_runs import DEVICE, handle, make_node, run_op, variable
from tenfold_core import dtypes, errors
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.cpu import _variables as variables
from tenfold_kernels.resources.state import ResourceHandle, ResourceManager, Variable

F = np.float32


def node_of(op: str, inputs: list[Any], resources: ResourceManager, **attrs: Any) -> Any:
    return make_node(op, inputs, attrs, resources, "n")


def test_inputs_are_handles_or_references() -> None:
    resources = ResourceManager()
    by_handle = node_of("AssignVariableOp", [handle([1.0], resources), F([1])], resources)
    by_reference = node_of("Assign", [variable([1.0]), F([1])], resources)
    assert variables.is_resource(by_handle)
    assert not variables.is_resource(by_reference)
    assert not variables.is_resource(by_handle, 1)
    turned = dataclasses.replace(by_handle, input_types=by_handle.input_types[::-1])
    assert not variables.is_resource(turned)
    assert variables.is_resource(turned, 1)


def test_a_handle_is_of_this_device() -> None:
    resources = ResourceManager()
    made = handle([1.0], resources)
    node = node_of("ReadVariableOp", [made], resources, dtype=dtypes.float32)
    assert variables.handle_of(node, made) is made[()]
    there = np.empty((), object)
    there[()] = ResourceHandle(**{**_fields(made[()]), "device": "/job:ps/task:1"})
    with pytest.raises(errors.InvalidArgumentError) as raised:
        variables.handle_of(node, there)
    assert raised.value.message == (
        f"Trying to access resource v located in device /job:ps/task:1 from device {DEVICE}"
    )
    there[()] = b"v"
    with pytest.raises(errors.InvalidArgumentError, match=r"^ReadVariableOp needs a resource handle, got bytes$"):
        variables.handle_of(node, there)


def _fields(found: ResourceHandle) -> dict[str, Any]:
    return {field.name: getattr(found, field.name) for field in dataclasses.fields(found)}


def test_a_reference_is_its_variable_whatever_its_type() -> None:
    found = variable([1.0])
    node = node_of("AssignAdd", [found, F([1])], ResourceManager())
    assert variables.variable_of(node, found) is found
    assert variables.variable_reader(node)(found) is found


@pytest.mark.parametrize(("op", "attr"), [("AssignAddVariableOp", "dtype"), ("ResourceApplyGradientDescent", "T")])
def test_a_variable_has_the_type_that_its_op_says(op: str, attr: str) -> None:
    resources = ResourceManager()
    made = handle([1.0], resources)
    inputs = [made, F([1])] if attr == "dtype" else [made, F(1), F([1])]
    right = node_of(op, inputs, resources)
    assert right.attrs[attr] is dtypes.float32
    assert variables.variable_of(right, made).value.tolist() == [1]
    wrong = dataclasses.replace(right, attrs={**right.attrs, attr: dtypes.int32})
    with pytest.raises(errors.InvalidArgumentError) as raised:
        variables.variable_of(wrong, made)
    assert raised.value.message == f"Trying to use variable v with wrong dtype in {op}. Expected float got int32"
    reader = dataclasses.replace(wrong, op="ReadVariableOp")
    assert variables.variable_of(reader, made).value.tolist() == [1]
    reference = dataclasses.replace(right, attrs={**right.attrs, attr: dtypes.float32.as_ref})
    assert variables.variable_of(reference, made).value.tolist() == [1]
    nothing = dataclasses.replace(right, attrs={})
    assert variables.variable_of(nothing, made).value.tolist() == [1]


@pytest.mark.parametrize("container", ["", "mine"])
def test_a_variable_that_is_not_there_is_named(container: str) -> None:
    resources = ResourceManager()
    made = run_op(
        "VarHandleOp", [], resources=resources, dtype=dtypes.float32, shape=TensorShape(None), shared_name="w",
        container=container,
    )  # fmt: skip
    node = node_of("ReadVariableOp", [made], resources, dtype=dtypes.float32)
    name = made[()].name
    with pytest.raises(errors.FailedPreconditionError) as raised:
        variables.variable_of(node, made)
    shown = made[()].container or resources.default_container
    assert raised.value.message.startswith(f"Could not find variable {name}. This could mean that the variable has")
    assert f"Debug info: container={shown}, status error message=" in raised.value.message
    assert raised.value.__cause__ is None


def test_a_reader_finds_the_variable_of_each_handle() -> None:
    resources = ResourceManager()
    one, two = handle([1.0], resources, "one"), handle([2.0], resources, "two")
    for made in (one, two):
        made.setflags(write=False)
    read = variables.variable_reader(node_of("ReadVariableOp", [one], resources, dtype=dtypes.float32))
    for made, value in ((one, 1), (one, 1), (two, 2), (one, 1)):
        assert read(made).value.tolist() == [value]


def counted_lookups(resources: ResourceManager, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    seen: list[Any] = []
    lookup = resources.lookup

    def counting(*args: Any) -> Any:
        seen.append(args)
        return lookup(*args)

    monkeypatch.setattr(resources, "lookup", counting)
    return seen


def test_a_handle_that_stays_is_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    resources = ResourceManager()
    made = handle([1.0], resources)
    node = node_of("ReadVariableOp", [made], resources, dtype=dtypes.float32)
    seen = counted_lookups(resources, monkeypatch)
    read = variables.variable_reader(node)
    made.setflags(write=False)
    first = read(made)
    assert read(made) is read(made) is first
    assert len(seen) == 1

    other = made.copy()
    writable = variables.variable_reader(node)
    assert other.flags.writeable
    writable(other)
    writable(other)
    assert len(seen) == 3, "an array that may be written to is looked at each time"


def test_a_reader_sees_that_a_variable_was_forgotten() -> None:
    resources = ResourceManager()
    made = handle([1.0], resources)
    made.setflags(write=False)
    read = variables.variable_reader(node_of("ReadVariableOp", [made], resources, dtype=dtypes.float32))
    gone = weakref.ref(read(made))

    resources.clear()
    gc.collect()

    assert gone() is None, "what a reader remembers does not keep a variable"
    with pytest.raises(errors.FailedPreconditionError):
        read(made)
    again = handle([5.0], resources)
    assert again[()].name == made[()].name
    assert read(made).value.tolist() == [5]


def test_a_variable_that_another_has_replaced_is_found() -> None:
    """It is not forgotten as long as somebody holds it, but its name says another."""
    resources = ResourceManager()
    made = handle([1.0], resources)
    made.setflags(write=False)
    read = variables.variable_reader(node_of("ReadVariableOp", [made], resources, dtype=dtypes.float32))
    held = read(made)
    resources.clear()
    handle([7.0], resources)
    assert read(made).value.tolist() == [7]
    assert isinstance(held, Variable)
