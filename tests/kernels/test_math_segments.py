"""Segment sums and distinct values by compiled loops, against their definitions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold_core import dtypes, errors

RNG = np.random.default_rng(5)


def summed(data: Any, places: Any, ids: Any, count: int) -> Any:
    """The definition, one row after the other."""
    out = np.zeros((count, *data.shape[1:]), data.dtype)
    for place, row in zip(places.tolist(), ids.tolist(), strict=True):
        if row >= 0:
            out[row] += data[place]
    return out


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int32])
@pytest.mark.parametrize("row", [(), (1,), (16,), (3, 5)])
def test_unsorted_sums(ops: Any, dtype: Any, index: Any, row: tuple[int, ...]) -> None:
    data = RNG.integers(-9, 9, (200, *row)).astype(dtype)
    ids = RNG.integers(-1, 37, 200).astype(index)

    result = ops.run("UnsortedSegmentSum", [data, ids, 40])

    np.testing.assert_array_equal(result, summed(data, np.arange(200), ids, 40))
    blocks = ops.run("UnsortedSegmentSum", [data.reshape(20, 10, *row), ids.reshape(20, 10), 40])
    np.testing.assert_array_equal(blocks, result)


def test_sums_of_nothing_and_of_rows_that_lie_apart(ops: Any) -> None:
    rows = RNG.standard_normal((6, 8)).astype(np.float32)
    none = np.zeros((0,), np.int32)

    assert ops.run("UnsortedSegmentSum", [rows[:0], none, 2]).tolist() == [[0] * 8] * 2
    assert ops.run("UnsortedSegmentSum", [rows[:, :0], np.int32([0] * 6), 2]).shape == (2, 0)
    assert ops.run("UnsortedSegmentSum", [rows[:0], none, 0]).shape == (0, 8)
    apart = rows[::2, ::3]
    np.testing.assert_array_equal(
        ops.run("UnsortedSegmentSum", [apart, np.int64([1, 1, 0]), 2]),
        summed(apart, np.arange(3), np.int64([1, 1, 0]), 2),
    )


def test_the_first_id_out_of_range_is_named(ops: Any) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=r"^segment_ids\[1,0\] = 7 is out of range \[0, 3\)$"):
        ops.run("UnsortedSegmentSum", [np.ones((2, 2, 4), np.float32), np.int32([[0, -1], [7, 9]]), 3])


@pytest.mark.parametrize("types", [(np.int32, np.int32), (np.int64, np.int32), (np.int32, np.int64)])
@pytest.mark.parametrize("op", ["Sum", "Mean", "SqrtN"])
def test_sums_of_chosen_rows_and_their_gradients(ops: Any, op: str, types: tuple[Any, Any]) -> None:
    data = RNG.standard_normal((50, 16)).astype(np.float32)
    places = RNG.integers(0, 50, 300).astype(types[0])
    ids = np.sort(RNG.integers(0, 20, 300)).astype(types[1])
    count = int(ids[-1]) + 1
    sizes = np.maximum(np.bincount(ids, minlength=count), 1)[:, None]
    divisor = {"Sum": 1, "Mean": sizes, "SqrtN": np.sqrt(sizes)}[op]

    result = ops.run(f"SparseSegment{op}", [data, places, ids])

    np.testing.assert_allclose(result, summed(data, places, ids, count) / divisor, rtol=1e-6)
    each = (result / divisor).astype(np.float32)
    gradient = ops.run(f"SparseSegment{op}Grad", [result, places, ids, 50])
    np.testing.assert_allclose(gradient, summed(each, ids, places, 50), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("op", ["Unique", "UniqueWithCounts", "UniqueV2"])
@pytest.mark.parametrize("span", [3, 1000, 2**31 - 1])
def test_distinct_integers_keep_their_order(ops: Any, op: str, index: Any, span: int) -> None:
    x = RNG.integers(-span, span, 700).astype(index)

    y, idx, *counts = ops.run(op, [x, np.int32([0])] if op == "UniqueV2" else [x])

    first = list(dict.fromkeys(x.tolist()))
    assert y.tolist() == first
    np.testing.assert_array_equal(y[idx], x)
    if counts:
        assert counts[0].tolist() == [x.tolist().count(value) for value in first]


def test_no_integers_and_one_and_hashes_that_meet(ops: Any) -> None:
    assert [v.tolist() for v in ops.run("Unique", [np.int32([])])] == [[], []]
    assert [v.tolist() for v in ops.run("Unique", [np.int64([7])])] == [[7], [0]]
    # multiples of a high power of two have few bits for the table to tell them by
    x = np.arange(300, dtype=np.int64) << 48
    assert ops.run("Unique", [x])[1].tolist() == list(range(300))


@pytest.mark.parametrize("dtype", [dtypes.bfloat16, dtypes.float16, dtypes.float32, dtypes.int8], ids=str)
def test_an_id_without_rows_has_the_least_number_of_its_own_type(ops: Any, dtype: dtypes.DType) -> None:
    data = np.array([1, 2], dtype.as_numpy_dtype)

    for op, extreme in (("SegmentMaxV2", dtype.min), ("SegmentMinV2", dtype.max)):
        found = ops.run(op, [data, np.int32([0, 2]), np.int32(4)])

        assert found.tolist() == [1, extreme, 2, extreme]
