"""The largest of a row, the n-th, and whether a class is among the best: against sorting in Python."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from tenfold_core import dtypes, errors

INF, NAN = math.inf, math.nan


def refused(text: str, run: Any, *inputs: Any, **attrs: Any) -> None:
    with pytest.raises(errors.InvalidArgumentError) as error:
        run(*inputs, **attrs)
    assert error.value.message == text


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int32, np.int64, np.uint8])
def test_the_nth_element(ops: Any, dtype: Any) -> None:
    x = np.array([[5, 1, 4], [9, 8, 9]], dtype)
    for rows, n, reverse in itertools.product((x, x[:, None], x[0], x[:0], x[::-1, ::-1]), range(3), (False, True)):
        found = ops.run("NthElement", [rows, n], reverse=reverse)
        expected = np.sort(rows, -1)[..., 2 - n if reverse else n]
        assert (found.tolist(), found.dtype) == (expected.tolist(), dtype)
    assert ops.run("NthElement", [x[:, :1], 0]).tolist() == [5, 9]


def test_elements_that_are_not_there(ops: Any) -> None:
    x = np.zeros((2, 3), np.float32)
    for reverse in (False, True):
        refused("N must be scalar but has rank 1", ops.run, "NthElement", [x, [0]], reverse=reverse)
        refused("Need n >= 0, got -1", ops.run, "NthElement", [x, -1], reverse=reverse)
        refused("Input must be >= 1-D, got shape []", ops.run, "NthElement", [x[0, 0], 0], reverse=reverse)
        text = "Input must have at least n+1 columns, got 3 for n = 3"
        refused(text, ops.run, "NthElement", [x, 3], reverse=reverse)


#: Rows with equal ones, and with what is not finite; a nan counts as -inf.
ROWS = [
    [3, 1, 3, 2, 1, 3],
    [0, 0, 0, 0, 0, 0],
    [5, 4, 3, 2, 1, 0],
    [1, NAN, 2, -INF, NAN, 0],
    [-INF, NAN, -INF, NAN, 1, 1],
    [INF, 1, INF, -INF, 2, 0],
    [NAN, NAN, NAN, NAN, NAN, NAN],
]


def best(row: list[float], count: int) -> list[int]:
    keys = [-INF if value != value else value for value in row]
    return sorted(range(len(row)), key=lambda place: (-keys[place], place))[:count]


def check_best(ops: Any, x: np.ndarray, count: int, **attrs: Any) -> None:
    places = np.apply_along_axis(lambda row: best(row.tolist(), count), -1, x.astype(np.float64))
    places = places.reshape(*x.shape[:-1], count).astype(int)
    for inputs in ([x, count], [x]):
        op, more = ("TopKV2", attrs) if len(inputs) == 2 else ("TopK", {"k": count})
        values, indices = ops.run(op, inputs, **more)
        kind = more["index_type"].as_numpy_dtype if "index_type" in more else np.int32
        assert (indices.tolist(), indices.dtype, indices.shape) == (places.tolist(), kind, places.shape)
        np.testing.assert_array_equal(values, np.take_along_axis(x, places, -1))
        assert values.dtype == x.dtype


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_the_largest_of_a_row_come_first_and_the_first_of_equals(ops: Any, dtype: Any) -> None:
    for count in range(7):
        check_best(ops, np.array(ROWS, dtype), count)
        for row in ROWS:
            check_best(ops, np.array(row, dtype), count)
            check_best(ops, np.array([row], dtype), count)
    check_best(ops, np.array(ROWS[:6], dtype).reshape(3, 2, 6), 2)
    check_best(ops, np.array(ROWS[:3], dtype)[:, ::-1], 3)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64])
def test_the_largest_of_whole_numbers(ops: Any, dtype: Any) -> None:
    limits = np.iinfo(dtype)
    for x in (np.array([[3, 1, 3], [0, 2, 2]], dtype), np.array([limits.min, 1, limits.max, 1], dtype)):
        for count in (0, 1, 2, 3):
            check_best(ops, x, count)
    check_best(ops, np.array([[3, 1, 3]], dtype), 2, index_type=dtypes.int64)
    check_best(ops, np.array([[3, 1, 3], [1, 2, 3]], dtype), 2, index_type=dtypes.int16)


def test_the_largest_of_nothing(ops: Any) -> None:
    for shape in ((0,), (2, 0), (2, 3, 0), (0, 2), (0, 2, 3)):
        values, indices = ops.run("TopKV2", [np.zeros(shape, np.float32), 0])
        assert values.shape == indices.shape == (*shape[:-1], 0)
    assert ops.run("TopKV2", [np.zeros((0, 4), np.float32), 2])[0].shape == (0, 2)


def test_how_many_of_a_row_there_can_be(ops: Any) -> None:
    x = np.zeros((2, 3), np.float32)
    refused("Need k >= 0, got -1", ops.run, "TopKV2", [x, -1])
    refused("k must be a scalar, got shape [1]", ops.run, "TopKV2", [x, [1]])
    for op, more, attrs in (("TopKV2", [4], {}), ("TopK", [], {"k": 4})):
        refused("input must have at least k columns. Had 3, needed 4", ops.run, op, [x, *more], **attrs)
        refused("input must be >= 1-D, got shape []", ops.run, op, [x[0, 0], *more], **attrs)


def test_a_class_is_among_the_best_if_fewer_are_better(ops: Any) -> None:
    rows = np.float32(
        [[1, 2, 3], [3, 3, 1], [2, 2, 2], [1, NAN, 2], [INF, 0, 1], [-INF, 0, 1], [1, 2, 3], [1, 2, 3], [1, 2, 3]]
    )
    targets = [1, 1, 0, 0, 1, 2, -1, 3, 0]
    for k in range(-1, 5):
        expected = [
            bool(np.isfinite(row).all() and 0 <= target < 3 and (row > row[target]).sum() < k)
            for row, target in zip(rows, targets, strict=True)
        ]
        for dtype in (np.int32, np.int64):
            given = np.array(targets, dtype)
            assert ops.run("InTopKV2", [rows, given, np.array(k, dtype)]).tolist() == expected
            assert ops.run("InTopK", [rows, given], k=k).tolist() == expected
    for shape in ((2, 0), (0, 0), (0, 3)):
        found = ops.run("InTopK", [np.zeros(shape, np.float32), np.zeros(shape[0], np.int32)], k=9)
        assert found.tolist() == [False] * shape[0]


def test_predictions_and_targets_that_do_not_fit(ops: Any) -> None:
    x, targets = np.zeros((2, 3), np.float32), np.zeros(2, np.int32)
    for op, more, attrs in (("InTopKV2", [1], {}), ("InTopK", [], {"k": 1})):
        text = "predictions must be 2-dimensional, got shape [3]"
        refused(text, ops.run, op, [x[0], targets, *more], **attrs)
        refused("targets must be 1-dimensional, got shape []", ops.run, op, [x, targets[0], *more], **attrs)
        text = "First dimension of predictions 2 must match length of targets 1"
        refused(text, ops.run, op, [x, targets[:1], *more], **attrs)
    refused("k must be a scalar, got shape [1]", ops.run, "InTopKV2", [x, targets, [1]])


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_a_nan_is_among_the_smallest_of_any_floats(ops: Any, dtype: str) -> None:
    # TensorFlow's own place for one depends on what stands before it; a nan is the last of few
    x = np.array([0.5, 2, np.nan, -1, -2]).astype(dtypes.as_dtype(dtype).as_numpy_dtype)

    values, indices = ops.run("TopKV2", [x, 3])

    assert indices.tolist() == [1, 0, 3]
    assert values.dtype == x.dtype
    assert values.tolist() == [2, 0.5, -1]
