"""Counts of values: which are counted, where the bounds are, by what they are weighted, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold_core import dtypes, errors, memory_limits

NONE = np.zeros(0, np.float32)
HUGE = np.int64(1 << 50)


def refused(ops: Any, op: str, inputs: list[Any], text: str, **attrs: Any) -> None:
    with pytest.raises(errors.InvalidArgumentError) as error:
        ops.run(op, inputs, **attrs)
    assert error.value.message == text


# -- Bincount


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32, np.float64])
def test_values_below_the_size_are_counted(ops: Any, dtype: Any) -> None:
    for values, size, expected in (
        ([0, 1, 1, 3], 4, [1, 2, 0, 1]),
        ([0, 1, 1, 3], 3, [1, 2, 0]),
        ([0, 1, 1, 3], 6, [1, 2, 0, 1, 0, 0]),
        ([[0, 2], [2, 5]], 3, [1, 0, 2]),
        ([0, 1], 0, []),
        (np.zeros(0, np.int32), 2, [0, 0]),
    ):
        found = ops.run("Bincount", [values, size, np.zeros(0, dtype)])
        assert (found.tolist(), found.dtype) == (expected, dtype)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32, np.float64])
def test_weights_are_added_up(ops: Any, dtype: Any) -> None:
    assert ops.run("Bincount", [[0, 2, 2, 7], 3, np.array([5, 6, 7, 8], dtype)]).tolist() == [5, 0, 13]
    assert ops.run("Bincount", [[[0, 2], [2, 7]], 3, np.array([[5, 6], [7, 8]], dtype)]).tolist() == [5, 0, 13]
    assert ops.run("Bincount", [[0, 2, 2], 3, np.array([[5], [6], [7]], dtype)]).tolist() == [5, 0, 13]


def test_what_bincount_refuses(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    refused(ops, "Bincount", [[0], [1], NONE], "size must be a scalar, got shape [1]")
    refused(ops, "Bincount", [[0], -1, NONE], "size (-1) must be non-negative")
    refused(ops, "Bincount", [[3, -1], 2, NONE], "Input arr must be non-negative!")
    text = "Input indices and weights must have the same shape: [2] vs. [3]"
    refused(ops, "Bincount", [[0, 1], 2, np.ones(3, np.float32)], text)
    monkeypatch.setattr(memory_limits, "_limit", 1 << 20)
    with pytest.raises(errors.ResourceExhaustedError):
        ops.run("Bincount", [[0], 1 << 20, NONE])


# -- Bucketize


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32, np.float64])
def test_buckets(ops: Any, dtype: Any) -> None:
    values = np.array([[-1, 0, 1], [2, 3, 9]], dtype)

    assert ops.run("Bucketize", [values], boundaries=[0.0, 2.0, 2.0, 3.0]).tolist() == [[0, 1, 1], [3, 4, 4]]
    assert ops.run("Bucketize", [values[0, 1]], boundaries=[0.0, 0.5]).tolist() == 1
    assert ops.run("Bucketize", [values], boundaries=[]).tolist() == [[0] * 3] * 2
    refused(ops, "Bucketize", [values], "Expected sorted boundaries", boundaries=[0.0, 2.0, 1.0])


# -- HistogramFixedWidth


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32, np.float64])
@pytest.mark.parametrize("out", [dtypes.int32, dtypes.int64])
def test_bins_of_one_width(ops: Any, dtype: Any, out: Any) -> None:
    values, ends = np.array([[-7, 2, 3], [5, 7, 8], [11, 12, 99]], dtype), np.array([2, 12], dtype)

    for bins, expected in ((5, [3, 1, 1, 1, 3]), (2, [4, 5]), (1, [9]), (10, [2, 1, 0, 1, 0, 1, 1, 0, 0, 3])):
        found = ops.run("HistogramFixedWidth", [values, ends, bins], dtype=out)
        assert (found.tolist(), found.dtype) == (expected, out.as_numpy_dtype)
    assert ops.run("HistogramFixedWidth", [values[:0], ends, 2], dtype=out).tolist() == [0, 0]
    assert ops.run("HistogramFixedWidth", [values[0, 1], ends, 2], dtype=out).tolist() == [1, 0]


def test_infinities_are_in_the_outer_bins(ops: Any) -> None:
    values = np.float64([np.inf, -np.inf, np.inf, 0.5])

    assert ops.run("HistogramFixedWidth", [values, np.float64([0, 1]), 3]).tolist() == [1, 1, 2]
    widest = np.float64([-1.7e308, 1.7e308])
    assert ops.run("HistogramFixedWidth", [values, widest, 3]).tolist() == [4, 0, 0], "a width that is infinite"


def test_what_a_histogram_refuses(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    values, ends = np.float32([1, 2]), np.float32([0, 1])

    refused(ops, "HistogramFixedWidth", [values, ends, [1]], "nbins must be a scalar, got shape [1]")
    text = "value_range should be a vector of 2 elements, got shape"
    refused(ops, "HistogramFixedWidth", [values, np.float32([0, 1, 2]), 1], f"{text} [3]")
    refused(ops, "HistogramFixedWidth", [values, np.float32([[0, 1]]), 1], f"{text} [1,2]")
    for low, high in ((1.0, 1.0), (2.0, 1.0)):
        text = f"value_range should satisfy value_range[0] < value_range[1], but got '[{low}, {high}]'"
        refused(ops, "HistogramFixedWidth", [values, np.float32([low, high]), 1], text)
    for bins in (0, -1):
        text = f"nbins should be a positive number, but got '{bins}'"
        refused(ops, "HistogramFixedWidth", [values, ends, bins], text)
    refused(ops, "HistogramFixedWidth", [np.float32([1, np.nan]), ends, 1], "values must not contain NaN")
    monkeypatch.setattr(memory_limits, "_limit", 1 << 20)
    with pytest.raises(errors.ResourceExhaustedError):
        ops.run("HistogramFixedWidth", [values, ends, 1 << 20])


# -- DenseBincount

ROWS = np.int64([[0, 1, 1], [2, 5, 0]])


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32, np.float64])
def test_rows_are_counted_each_on_its_own(ops: Any, index: Any, dtype: Any) -> None:
    rows, size, weights = ROWS.astype(index), index(4), np.array([[1, 2, 3], [4, 5, 6]], dtype)

    none = np.zeros(0, dtype)

    def run(values: Any, weight: Any = none, **attrs: Any) -> list[Any]:
        found = ops.run("DenseBincount", [values, size, np.asarray(weight)], **attrs)
        assert found.dtype == dtype
        return found.tolist()  # type: ignore[no-any-return]

    assert run(rows) == [[1, 2, 0, 0], [1, 0, 1, 0]]
    assert run(rows, binary_output=True) == [[1, 1, 0, 0], [1, 0, 1, 0]]
    assert run(rows, weights) == [[1, 5, 0, 0], [6, 0, 4, 0]]
    assert run(rows[1]) == [1, 0, 1, 0]
    assert run(rows[0], weights[0]) == [1, 5, 0, 0]
    assert run(rows[0], binary_output=True) == [1, 1, 0, 0]
    assert run(rows[0, 1]) == [0, 1, 0, 0]
    assert run(rows[0, 1], weights[1, 2]) == [0, 6, 0, 0]
    assert run(rows[:0]) == []
    assert run(rows[:, :0]) == [[0] * 4] * 2
    assert run(rows[0, :0]) == [0] * 4
    assert ops.run("DenseBincount", [rows[:0], size, weights[:0]]).shape == (0, 4)
    assert ops.run("DenseBincount", [rows, index(0), weights]).shape == (2, 0)
    assert ops.run("DenseBincount", [rows, index(5), weights]).shape == (2, 5), "5 itself is not below it"


def test_what_counts_of_rows_refuse(ops: Any) -> None:
    op = "DenseBincount"

    refused(ops, op, [ROWS[None], np.int64(4), NONE], "Shape must be at most rank 2 but is rank 3")
    refused(ops, op, [ROWS, np.int64([4]), NONE], "size must be a scalar, got shape [1]")
    refused(ops, op, [ROWS, np.int64(-1), NONE], "size (-1) must be non-negative")
    refused(ops, op, [ROWS - 1, np.int64(4), NONE], "Input must be non-negative")
    text = (
        "`weights` must be the same shape as `arr` or a length-0 `Tensor`, in which case it acts as all weights equal "
        "to 1."
    )
    refused(ops, op, [ROWS, np.int64(4), np.ones((3, 2), np.float32)], text)
    for rows, size in ((ROWS, HUGE), (np.zeros((1 << 12, 0), np.int64), np.int64(1 << 24))):
        with pytest.raises(errors.ResourceExhaustedError):
            ops.run(op, [rows, size, NONE])


def test_a_long_vector_has_one_row_of_counts(ops: Any) -> None:
    count = 1 << 19

    assert ops.run("DenseBincount", [np.zeros(count, np.int64), np.int64(count), NONE])[0] == count


# -- SparseBincount

PLACES, VALUES, SHAPE = np.int64([[0, 0], [0, 2], [2, 1], [2, 3]]), np.int64([1, 1, 0, 6]), np.int64([3, 4])


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32, np.float64])
def test_values_of_sparse_rows(ops: Any, index: Any, dtype: Any) -> None:
    values, none, weights = VALUES.astype(index), np.zeros(0, dtype), np.array([2, 3, 4, 5], dtype)

    def run(places: Any, shape: Any, size: int, weight: Any, **attrs: Any) -> Any:
        found = ops.run("SparseBincount", [places, values[: len(places)], shape, index(size), weight], **attrs)
        assert found.dtype == dtype
        return found.tolist()

    assert run(PLACES, SHAPE, 2, none) == [[0, 2], [0, 0], [1, 0]]
    assert run(PLACES, SHAPE, 2, none, binary_output=True) == [[0, 1], [0, 0], [1, 0]]
    assert run(PLACES, SHAPE, 7, weights) == [[0, 5] + [0] * 5, [0] * 7, [4, 0, 0, 0, 0, 0, 5]]
    assert run(PLACES, SHAPE, 6, weights) == [[0, 5] + [0] * 4, [0] * 6, [4, 0, 0, 0, 0, 0]]
    assert run(PLACES[:, 1:], SHAPE[1:], 3, none) == [1, 2, 0]
    assert run(PLACES[:, 1:], SHAPE[1:], 3, weights) == [4, 5, 0]
    assert run(PLACES[:, 1:], SHAPE[1:], 3, none, binary_output=True) == [1, 1, 0]
    assert run(PLACES[:0], SHAPE, 1, none) == [[0], [0], [0]]
    assert run(PLACES, SHAPE, 0, weights) == [[], [], []]


def test_what_counts_of_sparse_rows_refuse(ops: Any) -> None:
    op, size = "SparseBincount", np.int64(3)

    text = "`dense_shape` must be 1D or 2D, but has 3 dimensions"
    refused(ops, op, [np.int64([[0, 0, 0]]), VALUES[:1], np.int64([1, 1, 1]), size, NONE], text)
    text = "`dense_shape` must be 1D or 2D, but has 0 dimensions"
    refused(ops, op, [np.zeros((1, 0), np.int64), VALUES[:1], np.zeros(0, np.int64), size, NONE], text)
    text = "Shape must be rank 0 but is rank 1: size must be a scalar"
    refused(ops, op, [PLACES, VALUES, SHAPE, np.int64([3]), NONE], text)
    refused(ops, op, [PLACES, VALUES, SHAPE, np.int64(-1), NONE], "size (-1) must be non-negative")
    refused(ops, op, [PLACES, VALUES - 1, SHAPE, size, NONE], "Input must be non-negative")
    text = (
        "`weights` must be the same shape as `values` or a length-0 `Tensor`, in which case it acts as all weights "
        "equal to 1."
    )
    refused(ops, op, [PLACES, VALUES, SHAPE, size, np.ones(3, np.float32)], text)
    text = "indices[2] = [2,1] is out of bounds: need 0 <= index < [2,4]"
    refused(ops, op, [PLACES, VALUES, np.int64([2, 4]), size, NONE], text)
    with pytest.raises(errors.ResourceExhaustedError):
        ops.run(op, [PLACES, VALUES, np.int64([1 << 30, 4]), np.int64(1 << 20), NONE])


# -- RaggedBincount


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32, np.float64])
def test_values_of_ragged_rows(ops: Any, index: Any, dtype: Any) -> None:
    values, none, weights = np.array([1, 1, 0, 3], index), np.zeros(0, dtype), np.array([2, 3, 4, 5], dtype)

    def run(splits: Any, size: int, weight: Any, **attrs: Any) -> Any:
        found = ops.run("RaggedBincount", [np.int64(splits), values, index(size), weight], **attrs)
        assert found.dtype == dtype
        return found.tolist()

    assert run([0, 2, 2, 4], 3, none) == [[0, 2, 0], [0, 0, 0], [1, 0, 0]]
    assert run([0, 2, 2, 4], 3, none, binary_output=True) == [[0, 1, 0], [0, 0, 0], [1, 0, 0]]
    assert run([0, 1, 4], 4, weights) == [[0, 2, 0, 0], [4, 3, 0, 5]]
    assert run([0, 1, 4], 4, weights.reshape(2, 2)) == [[0, 2, 0, 0], [4, 3, 0, 5]]
    assert ops.run("RaggedBincount", [np.int64([0]), values[:0], index(2), none]).shape == (0, 2)
    assert ops.run("RaggedBincount", [np.int64([0, 0]), values[:0], index(2), none]).tolist() == [[0, 0]]


def test_what_counts_of_ragged_rows_refuse(ops: Any) -> None:
    op, splits, values, size = "RaggedBincount", np.int64([0, 1, 3]), np.int64([0, 1, 2]), np.int64(3)

    refused(ops, op, [splits[None], values, size, NONE], "Splits must be a vector, got shape [1,3]")
    text = "Splits must be non-empty: the first is 0, the last the number of values"
    refused(ops, op, [splits[:0], values, size, NONE], text)
    refused(ops, op, [splits, values[None], size, NONE], "values must be a vector, got shape [1,3]")
    refused(ops, op, [np.int64([1, 1, 3]), values, size, NONE], "Splits must start with 0, not with 1")
    for wrong, last in (([0, 1, 2], 2), ([0, 1, 4], 4), ([0, 2, 1, 3], 3)):
        text = f"Splits must be in order and end with the number of values, got {last} instead of 3"
        refused(ops, op, [np.int64(wrong), values, size, NONE], text)
    text = (
        "`weights` must be the same shape as `values` or a length-0 `Tensor`, in which case it acts as all weights "
        "equal to 1."
    )
    refused(ops, op, [splits, values, size, np.ones(2, np.float32)], text)
    refused(ops, op, [splits, values - 1, size, NONE], "Input must be non-negative")
    refused(ops, op, [splits, values, np.int64(-1), NONE], "size (-1) must be non-negative")
    with pytest.raises(errors.ResourceExhaustedError):
        ops.run(op, [splits, values, HUGE, NONE])
