"""CheckNumerics and ClipByValue: what lies within bounds stays, all else is named, or put there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold_core import errors

F = np.float32


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_numbers_that_are_finite_are_passed_on(ops: Any, dtype: Any) -> None:
    for x in (np.array([[1, -2]], dtype), np.array(np.finfo(dtype).max, dtype), np.zeros((0, 2), dtype)):
        compute, _ = ops.build("CheckNumerics", [x], {"message": b"m"})
        assert compute(x) is x


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ([1, np.inf], "Inf"),
        ([-np.inf, 1], "Inf"),
        ([1, np.nan], "NaN"),
        ([np.nan, np.inf], "Inf and NaN"),
        (np.nan, "NaN"),
    ],
)
def test_what_is_no_number_is_named(ops: Any, values: Any, found: str) -> None:
    with pytest.raises(errors.InvalidArgumentError) as refused:
        ops.run("CheckNumerics", [np.array(values, F)], message=b"the loss")
    assert refused.value.message == f"the loss : Tensor had {found} values"


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.float16, np.float32, np.float64])
def test_numbers_are_put_between_two(ops: Any, dtype: Any) -> None:
    x = np.array([[0, 1, 2], [3, 4, 5]], dtype)

    def clip(*bounds: Any) -> Any:
        found = ops.run("ClipByValue", [x, *(np.array(bound, dtype) for bound in bounds)])
        assert found.dtype == dtype
        return found.tolist()

    assert clip(1, 3) == [[1, 1, 2], [3, 3, 3]]
    assert clip([[2, 0, 0], [0, 0, 7]], 4) == [[2, 1, 2], [3, 4, 7]]
    assert clip(1, [[9, 0, 1], [2, 9, 9]]) == [[1, 1, 1], [2, 4, 5]]
    assert clip([[1] * 3] * 2, [[2] * 3] * 2) == [[1, 1, 2], [2, 2, 2]]
    assert clip(3, 1) == [[3] * 3] * 2
    assert ops.run("ClipByValue", [x[1, 2], x[0, 0], x[0, 2]]).tolist() == 2


def test_parts_of_complex_numbers_are_clipped_each_on_its_own(ops: Any) -> None:
    x = np.array([[-5 + 5j, 0.5 - 0.5j]])

    assert ops.run("ClipByValue", [x, np.complex128(-1 - 2j), np.complex128(3 + 4j)]).tolist() == [
        [-1 + 4j, 0.5 - 0.5j]
    ]
    assert ops.run("ClipByValue", [x, x + 1 + 1j, x + 9]).tolist() == [[-4 + 6j, 1.5 + 0.5j]]
    assert ops.run("ClipByValue", [x[0, 0], x[0, 1], x[0, 1]]).tolist() == 0.5 - 0.5j


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
@pytest.mark.parametrize(
    ("low", "high"), [((3,), ()), ((), (3,)), ((1,), ()), ((), (1, 1)), ((2, 3), (3,)), ((2, 1), (2, 3))]
)
def test_bounds_are_scalars_or_of_the_same_shape(ops: Any, dtype: Any, low: Any, high: Any) -> None:
    def text(shape: tuple[int, ...]) -> str:
        return "[" + ",".join(map(str, shape)) + "]"

    with pytest.raises(errors.InvalidArgumentError) as refused:
        ops.run("ClipByValue", [np.zeros((2, 3), dtype), np.zeros(low, dtype), np.zeros(high, dtype)])
    assert refused.value.message == (
        "clip_value_min and clip_value_max must be either of the same shape as input, or a scalar. "
        f"input shape: [2,3]clip_value_min shape: {text(low)}clip_value_max shape: {text(high)}"
    )
