"""Optionals, which gradients of control flow v2 keep the values of a branch in: made, asked, added, zeroed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold_core import dtypes, errors
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.registry import KernelNode, lookup
from tenfold_kernels.resources.state import ResourceManager

TYPES = {"output_types": [dtypes.float32, dtypes.int32], "output_shapes": [TensorShape([2]), TensorShape(None)]}


def compute(op: str, *inputs: Any, **attrs: Any) -> Any:
    node = KernelNode("n", op, attrs, (), (dtypes.variant,), "/job:a/replica:0/task:0/device:CPU:0", ResourceManager())
    return lookup(node, "CPU")(node)(*inputs)


def some(x: float, n: int) -> Any:
    return compute("OptionalFromValue", np.array([x, x], np.float32), np.array(n, np.int32))


def test_what_was_put_in_comes_out() -> None:
    value = some(1.5, 7)

    x, n = compute("OptionalGetValue", value, **TYPES)

    assert compute("OptionalHasValue", value)
    assert (x.tolist(), int(n)) == ([1.5, 1.5], 7)


def test_one_component_comes_out_by_itself() -> None:
    value = compute("OptionalFromValue", np.array(3, np.int32))

    assert compute("OptionalGetValue", value, output_types=[dtypes.int32], output_shapes=[TensorShape([])]) == 3


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (compute("OptionalNone"), "does not have a value"),
        (compute("OptionalFromValue", np.zeros(2, np.float32)), "has 1 components, expected number of components: 2"),
        (compute("OptionalFromValue", np.zeros(2), np.zeros(2)), "does not match the expected type for component 0"),
        (
            compute("OptionalFromValue", np.zeros(3, np.float32), np.zeros(2, np.int32)),
            "does not match the expected shape for component 0",
        ),
        (np.array(None, dtype=object), "not an OptionalVariant"),
    ],
)
def test_what_is_not_there_is_an_error(value: Any, text: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=text):
        compute("OptionalGetValue", value, **TYPES)


def test_nothing_has_no_value() -> None:
    assert not compute("OptionalHasValue", compute("OptionalNone"))


def test_they_are_added_and_zeroed_by_component() -> None:
    total = compute("AddN", some(1, 2), some(10, 20), T=dtypes.variant)
    zeros = compute("ZerosLike", some(1, 2), T=dtypes.variant)

    assert [part.tolist() for part in compute("OptionalGetValue", total, **TYPES)] == [[11, 11], 22]
    assert [part.tolist() for part in compute("OptionalGetValue", zeros, **TYPES)] == [[0, 0], 0]
    nothing = compute("OptionalNone")
    assert not compute("OptionalHasValue", compute("AddN", nothing, nothing, T=dtypes.variant))
    with pytest.raises(errors.InvalidArgumentError, match="one has a value and the other doesn't"):
        compute("AddN", nothing, some(1, 2), T=dtypes.variant)


@pytest.mark.parametrize("shapes", [[], [TensorShape([2])], [TensorShape(None)] * 3])
def test_types_and_shapes_are_as_many(shapes: list[TensorShape]) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=f"must be as many, got 2 and {len(shapes)}"):
        compute("OptionalGetValue", some(1, 2), output_types=TYPES["output_types"], output_shapes=shapes)


def test_the_component_that_does_not_fit_is_named() -> None:
    value = compute("OptionalFromValue", np.zeros(2, np.float32), np.zeros(2, np.int64))

    with pytest.raises(errors.InvalidArgumentError) as refused:
        compute("OptionalGetValue", value, **TYPES)

    text = "The given optional does not match the expected type for component 1. Expected: int32. Actual: int64."
    assert refused.value.message == text
