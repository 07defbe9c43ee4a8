"""Sequences of numbers: where they end, which there are none of, and those that nobody has memory for."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tenfold_core import dtypes, errors

BFLOAT16 = dtypes.bfloat16.as_numpy_dtype
BIG = 1 << 60
MOST = "9223372036854775807"


def refused(ops: Any, op: str, inputs: list[Any], text: str) -> None:
    with pytest.raises(errors.InvalidArgumentError) as error:
        ops.run(op, inputs)
    assert error.value.message == text


def exhausted(ops: Any, op: str, inputs: list[Any]) -> None:
    with pytest.raises(errors.ResourceExhaustedError):
        ops.run(op, inputs)


# -- Range


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.float16, np.float32, np.float64, BFLOAT16])
@pytest.mark.parametrize(
    ("start", "limit", "delta", "expected"),
    [
        (0, 3, 1, [0, 1, 2]),
        (-1, 6, 3, [-1, 2, 5]),
        (-1, 5, 3, [-1, 2]),
        (3, 3, 1, []),
        (3, 3, -1, []),
        (5, 0, -2, [5, 3, 1]),
        (5, 1, -2, [5, 3]),
        (5, 4, -1, [5]),
        (0, 1, 7, [0]),
    ],
)
def test_ranges(ops: Any, dtype: Any, start: int, limit: int, delta: int, expected: list[int]) -> None:
    found = ops.run("Range", [np.array(each, dtype) for each in (start, limit, delta)])

    assert (found.tolist(), found.dtype) == (expected, dtype)


def test_ranges_of_unsigned_numbers_and_by_less_than_one(ops: Any) -> None:
    assert ops.run("Range", [np.uint16([250]), np.array(254, np.uint16), np.uint16([2])]).tolist() == [250, 252]
    assert ops.run("Range", [1.0, 0.0, -0.25]).tolist() == [1, 0.75, 0.5, 0.25]
    assert ops.run("Range", [0.0, 1.1, 0.5]).tolist() == [0, 0.5, 1]


def test_ranges_of_more_elements_than_are_never_refused(ops: Any) -> None:
    for dtype in (np.int64, np.float64):
        found = ops.run("Range", [np.array(5, dtype), np.array(140_006, dtype), np.array(2, dtype)])
        np.testing.assert_array_equal(found, 5 + 2 * np.arange(70_001))


def test_ranges_of_large_numbers_are_counted_by_their_difference(ops: Any) -> None:
    assert ops.run("Range", [np.int64(BIG), np.int64(BIG + 5), np.int64(2)]).tolist() == [BIG, BIG + 2, BIG + 4]
    found = ops.run("Range", [np.int64(0), np.int64(BIG), np.int64(1 << 57)])
    assert found.tolist() == [i << 57 for i in range(8)]
    inputs = [np.array(each, np.float64) for each in (2.0**60, 2.0**60 + 512, 256)]
    assert ops.run("Range", inputs).tolist() == [2.0**60, 2.0**60 + 256]
    assert len(ops.run("Range", [0.0, 2.0**60, 2.0**57])) == 8


def test_what_a_range_refuses(ops: Any) -> None:
    pair = np.int32([1, 2])
    refused(ops, "Range", [pair, 3, 1], "start must be a scalar, not shape [2]")
    refused(ops, "Range", [0, pair, 1], "limit must be a scalar, not shape [2]")
    refused(ops, "Range", [0, 3, pair], "delta must be a scalar, not shape [2]")
    refused(ops, "Range", [0, 3, 0], "Requires delta != 0: 0")
    refused(ops, "Range", [3, 0, 1], "Requires start <= limit when delta > 0: 3/0")
    refused(ops, "Range", [3, 0, 2], "Requires start <= limit when delta > 0: 3/0")
    refused(ops, "Range", [0, 3, -1], "Requires start >= limit when delta < 0: 0/3")
    refused(ops, "Range", [0.0, 3.0, -0.5], "Requires start >= limit when delta < 0: 0.0/3.0")
    for inputs in ([0.0, math.inf, 1.0], [0.0, math.nan, 1.0], [math.inf, math.inf, 1.0], [0.0, -math.inf, -1.0]):
        refused(ops, "Range", inputs, f"Requires ((limit - start) / delta) <= {MOST}")


def test_a_range_that_takes_too_much_memory(ops: Any) -> None:
    exhausted(ops, "Range", [np.int64(0), np.int64(BIG), np.int64(1)])
    exhausted(ops, "Range", [np.int64(BIG), np.int64(0), np.int64(-1)])
    exhausted(ops, "Range", [np.float64(0), np.float64(BIG), np.float64(1)])
    exhausted(ops, "Range", [np.float64(BIG), np.float64(0), np.float64(-1)])


# -- LinSpace


@pytest.mark.parametrize("dtype", [np.float32, np.float64, BFLOAT16])
def test_places_between_two(ops: Any, dtype: Any) -> None:
    start, stop = np.array(-1, dtype), np.array(2, dtype)

    for count, expected in ((1, [-1]), (2, [-1, 2]), (4, [-1, 0, 1, 2])):
        found = ops.run("LinSpace", [start, stop, count])
        assert (found.tolist(), found.dtype) == (expected, dtype)
    assert ops.run("LinSpace", [stop, start, np.int64(3)]).tolist() == [2, 0.5, -1]


def test_what_places_between_two_refuse(ops: Any) -> None:
    vector, count = np.float32([1]), 3
    refused(ops, "LinSpace", [vector, 2.0, count], "start must be a scalar, not shape [1]")
    refused(ops, "LinSpace", [1.0, vector, count], "stop must be a scalar, not shape [1]")
    refused(ops, "LinSpace", [1.0, 2.0, [3]], "num must be a scalar, got shape [1]")
    refused(ops, "LinSpace", [1.0, 2.0, 0], "Requires num > 0: 0")
    refused(ops, "LinSpace", [1.0, 2.0, -1], "Requires num > 0: -1")
    exhausted(ops, "LinSpace", [1.0, 2.0, np.int64(BIG)])


# -- RaggedRange


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32, np.float64, BFLOAT16])
@pytest.mark.parametrize("splits_type", [dtypes.int32, dtypes.int64])
def test_ranges_one_after_the_other(ops: Any, dtype: Any, splits_type: Any) -> None:
    def run(*inputs: Any) -> tuple[list[int], list[Any]]:
        splits, values = ops.run("RaggedRange", [np.array(each, dtype) for each in inputs], Tsplits=splits_type)
        assert (splits.dtype, values.dtype) == (splits_type.as_numpy_dtype, dtype)
        return splits.tolist(), values.tolist()

    assert run([0, 5, 8], [3, 5, 12], 1) == ([0, 3, 3, 7], [0, 1, 2, 8, 9, 10, 11])
    assert run(0, [3, 0, 1], [1, 1, 1]) == ([0, 3, 3, 4], [0, 1, 2, 0])
    assert run([5, 0], [0, 5], [-2, 2]) == ([0, 3, 6], [5, 3, 1, 0, 2, 4])
    assert run([0, 5], [5, 0], [-2, 2]) == ([0, 0, 0], [])
    assert run(1, 4, 2) == ([0, 2], [1, 3])
    assert run([], [], 1) == ([0], [])
    assert run([4], [4], [1]) == ([0, 0], [])


def test_what_ragged_ranges_refuse(ops: Any) -> None:
    matrix, vector = np.int32([[1, 2]]), np.int32([1, 2])
    text = "must be a scalar or vector, got shape [1,2]"
    refused(ops, "RaggedRange", [matrix, vector, vector], f"starts {text}")
    refused(ops, "RaggedRange", [vector, matrix, vector], f"limits {text}")
    refused(ops, "RaggedRange", [vector, vector, matrix], f"deltas {text}")
    text = "starts, limits, and deltas must have the same shape"
    refused(ops, "RaggedRange", [vector, np.int32([1, 2, 3]), 1], text)
    refused(ops, "RaggedRange", [vector, 5, np.int32([1])], text)
    refused(ops, "RaggedRange", [vector, 5, np.int32([1, 0])], "Requires delta != 0")
    refused(ops, "RaggedRange", [0.0, math.inf, 1.0], f"Requires ((limit - start) / delta) <= {MOST}")
    refused(ops, "RaggedRange", [0.0, math.nan, 1.0], f"Requires ((limit - start) / delta) <= {MOST}")
    exhausted(ops, "RaggedRange", [np.int64([0, 0]), np.int64([1, BIG]), np.int64(1)])


def test_ragged_ranges_of_large_numbers_are_counted_by_their_difference(ops: Any) -> None:
    splits, values = ops.run("RaggedRange", [np.int64([BIG, 0]), np.int64([BIG + 2, BIG]), np.int64([1, BIG // 2])])

    assert splits.tolist() == [0, 2, 4]
    assert values.tolist() == [BIG, BIG + 1, 0, BIG // 2]
