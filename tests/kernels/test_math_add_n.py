"""Sums of many tensors: however many there are, fresh, and of one shape."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold_core import errors
from tenfold_core.tensor_shape import TensorShape


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.float16, np.float32, np.float64, np.complex64])
@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (2, 2)])
def test_each_input_is_added_once(ops: Any, dtype: Any, shape: tuple[int, ...]) -> None:
    for count in range(1, 6):
        inputs = [np.full(shape, 2**i).astype(dtype) for i in range(count)]
        for op, attrs in (("AddN", {}), ("AccumulateNV2", {"shape": TensorShape(shape)})):
            found = ops.run(op, inputs, **attrs)

            np.testing.assert_array_equal(found, np.full(shape, 2**count - 1))
            assert found.dtype == dtype
            assert count == 1 or not any(np.shares_memory(found, each) for each in inputs)


def test_a_single_input_is_passed_on(ops: Any) -> None:
    x = np.float32([1, 2])
    compute, _ = ops.build("AddN", [x], {})

    assert compute(x) is x


@pytest.mark.parametrize("wrong", [1, 2, 3])
def test_the_first_shape_that_differs_is_named(ops: Any, wrong: int) -> None:
    inputs = [np.ones((2, 3), np.float32) for _ in range(4)]
    inputs[wrong] = np.ones((3, 1), np.float32)

    with pytest.raises(errors.InvalidArgumentError) as refused:
        ops.run("AddN", inputs, name="total")
    assert refused.value.message == (
        "Inputs to operation total of type AddN must have the same size and shape.  "
        f"Input 0: [2,3] != input {wrong}: [3,1]"
    )


def test_nothing_is_broadcast(ops: Any) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=r"Input 0: \[2\] != input 1: \[\]"):
        ops.run("AddN", [np.float32([1, 2]), np.float32(1).reshape(())])
