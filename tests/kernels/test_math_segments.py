"""Segment sums and distinct values by compiled loops, against their definitions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold_core import dtypes, errors, memory_limits
from tenfold_kernels import chunks, parallel
from tenfold_kernels.cpu import math_segments
from tenfold_kernels.registry import KernelNode
from tenfold_kernels.resources.state import ResourceManager

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


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_that_lie_as_columns_are_summed_where_they_lie(ops: Any, dtype: Any, index: Any) -> None:
    wide = RNG.standard_normal((6, 7, 300)).astype(dtype)
    for columns in (wide, wide[..., 20:220], wide[:, 2:5, :200]):
        data = np.moveaxis(columns, -1, 0)
        ids = RNG.integers(-1, 37, len(data)).astype(index)
        result = ops.run("UnsortedSegmentSum", [data, ids, 40])
        assert np.moveaxis(result, 0, -1).flags.c_contiguous
        np.testing.assert_array_equal(result, ops.run("UnsortedSegmentSum", [np.ascontiguousarray(data), ids, 40]))
    ids[[50, 60]] = 37, 99
    with pytest.raises(errors.InvalidArgumentError, match=r"^segment_ids\[50\] = 37 is out of range \[0, 37\)$"):
        ops.run("UnsortedSegmentSum", [data, ids, 37])


def test_columns_are_summed_in_parts_to_the_same_bits(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    data, ids = RNG.standard_normal((64, 5000)).astype(np.float32).T, RNG.integers(0, 700, 5000)
    alone = ops.run("UnsortedSegmentSum", [data, ids, 700])
    monkeypatch.setattr(parallel, "_width", lambda: 2)
    monkeypatch.setattr(chunks, "is_crowded", lambda: False)

    np.testing.assert_array_equal(ops.run("UnsortedSegmentSum", [data, ids, 700]), alone)
    ids[4000] = 700
    with pytest.raises(errors.InvalidArgumentError, match=r"^segment_ids\[4000\] = 700 is out of range"):
        ops.run("UnsortedSegmentSum", [data, ids, 700])


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


F = np.float32
MEANS = ("Sum", "Mean", "SqrtN")


def refused(ops: Any, text: str, op: str, inputs: list[Any]) -> None:
    with pytest.raises(errors.InvalidArgumentError) as error:
        ops.run(op, inputs)
    assert error.value.message == text


@pytest.mark.parametrize(
    "types", [(np.int32, np.int32), (np.int64, np.int64), (np.int64, np.int32), (np.int32, np.int64)]
)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int32])
def test_chosen_rows_of_all_types(ops: Any, dtype: Any, types: tuple[Any, Any]) -> None:
    data = np.array([[2, 4], [6, 8], [1, 3]], dtype)
    places, ids = np.array([1, 0, 0, 2], types[0]), np.array([0, 0, 2, 2], types[1])
    sums = np.array([[8, 12], [0, 0], [3, 7]])

    for how, divisors in (("Sum", [1, 1, 1]), ("Mean", [2, 1, 2]), ("SqrtN", [2**0.5, 1, 2**0.5])):
        if np.dtype(dtype).kind == "i" and how != "Sum":
            continue
        expected = sums / np.array(divisors)[:, None]
        found = ops.run(f"SparseSegment{how}", [data, places, ids])
        np.testing.assert_allclose(found, expected, rtol=1e-3)
        assert found.dtype == dtype
        flat = ops.run(f"SparseSegment{how}", [data[:, 1], places, ids])
        np.testing.assert_allclose(flat, expected[:, 1], rtol=1e-3)
        for count in (3, 5):
            more = ops.run(f"SparseSegment{how}WithNumSegments", [data, places, ids, np.int64(count)])
            np.testing.assert_allclose(more, np.concatenate([expected, np.zeros((count - 3, 2))]), rtol=1e-3)
            assert more.dtype == dtype
        turned = ops.run(f"SparseSegment{how}", [np.asfortranarray(data)[:, ::-1], places, ids])
        np.testing.assert_allclose(turned, expected[:, ::-1], rtol=1e-3)
        assert ops.run(f"SparseSegment{how}", [data[:, :0], places, ids]).shape == (3, 0)
        assert ops.run(f"SparseSegment{how}", [data, places[:0], ids[:0]]).shape == (0, 2)
        none = ops.run(f"SparseSegment{how}WithNumSegments", [data, places[:0], ids[:0], np.int32(2)])
        assert none.tolist() == [[0, 0], [0, 0]]
        none = ops.run(f"SparseSegment{how}WithNumSegments", [data[:0], places[:0], ids[:0], np.int32(2)])
        assert none.tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize("types", [(np.int32, np.int32), (np.int64, np.int64), (np.int64, np.int32)])
@pytest.mark.parametrize(("how", "dtype"), [*((how, np.float32) for how in MEANS), ("Sum", np.int32)])
def test_what_chosen_rows_refuse(ops: Any, how: str, dtype: Any, types: tuple[Any, Any]) -> None:
    op, counted, data = f"SparseSegment{how}", f"SparseSegment{how}WithNumSegments", np.ones((3, 2), dtype)

    def two(places: Any, ids: Any) -> list[Any]:
        return [data, np.array(places, types[0]), np.array(ids, types[1])]

    for wrong, named in (([0, 3, 4], "[1] == 3"), ([0, -1, 9], "[1] == -1"), ([3, 0, 0], "[0] == 3"),
                         ([-1, 0, 0], "[0] == -1"), ([0, 2, 7], "[2] == 7")):  # fmt: skip
        text = f"indices{named} out of range [0, 3)"
        refused(ops, text, op, two(wrong, [0, 0, 1]))
        refused(ops, text, counted, [*two(wrong, [0, 0, 1]), np.int32(2)])
    refused(ops, "segment ids are not increasing", op, two([0, 1, 0], [1, 0, 2]))
    refused(ops, "segment ids must be >= 0", op, two([0], [-1]))
    refused(ops, "segment ids must be < num_segments", counted, [*two([0], [2]), np.int32(2)])
    assert ops.run(counted, [*two([0], [1]), np.int32(2)]).shape == (2, 2)
    refused(ops, "segment ids must be < num_segments", counted, [*two([0], [0]), np.int32(0)])
    refused(ops, "segment ids must be < num_segments", counted, [*two([], []), np.int32(-1)])
    refused(ops, "num_segments should be a scalar.", counted, [*two([0], [0]), np.int32([1])])
    refused(ops, "indices should be a vector.", op, two([[0]], [0]))
    refused(ops, "segment_ids should be a vector.", op, two([0], [[0]]))
    refused(ops, "segment_ids and indices should have same size.", op, two([0, 1], [0]))
    refused(
        ops, "Shape must be at least rank 1", op, [np.array(1, dtype), np.zeros(1, types[0]), np.zeros(1, types[1])]
    )
    with pytest.raises(errors.ResourceExhaustedError):
        ops.run(counted, [*two([0], [0]), np.int64(1 << 50)])
    with pytest.raises(errors.ResourceExhaustedError):
        ops.run(counted, [np.ones((3, 1), dtype), *two([0], [0])[1:], np.int64((1 << 62) + 1)])
    if how != "Sum":  # rows of nothing take no memory, but how many a segment has is counted
        with pytest.raises(errors.ResourceExhaustedError):
            ops.run(counted, [data[:, :0], *two([0], [0])[1:], np.int64(1 << 45)])


def test_rows_that_are_copied_out_take_memory_too(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_limits, "_limit", 1 << 20)
    data, many = np.ones((1, 1 << 10), np.int32), np.zeros(1 << 10, np.int32)

    with pytest.raises(errors.ResourceExhaustedError, match=r"shape\[1024,1024\]"):
        ops.run("SparseSegmentSum", [data, many, many])
    assert ops.run("SparseSegmentSum", [data, many[:100], many[:100]])[0, 0] == 100


@pytest.mark.parametrize("types", [(np.int32, np.int32), (np.int64, np.int64), (np.int64, np.int32)])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_gradients_of_chosen_rows(ops: Any, dtype: Any, types: tuple[Any, Any]) -> None:
    """… whose segments need no order."""
    gradient = np.array([[2, 4], [8, 6], [1, 1]], dtype)
    for ids, sizes in (([0, 0, 1, 1], [2, 2, 1]), ([1, 0, 0, 0], [3, 1, 1]), ([2, 0, 2, 0], [2, 1, 2])):
        places, segments = np.array([3, 0, 0, 1], types[0]), np.array(ids, types[1])
        for how in MEANS:
            by = {"Sum": np.ones(3), "Mean": np.array(sizes), "SqrtN": np.sqrt(sizes)}[how]
            expected = np.zeros((5, 2))
            for place, each in zip([3, 0, 0, 1], ids, strict=True):
                expected[place] += gradient[each] / by[each]
            found = ops.run(f"SparseSegment{how}Grad", [gradient, places, segments, 5])
            np.testing.assert_allclose(found, expected, rtol=2e-3)
            assert found.dtype == dtype
            rows, which = ops.run(f"SparseSegment{how}GradV2", [gradient, places, segments, 5])
            assert (which.tolist(), which.dtype) == ([0, 1, 3], types[0])
            np.testing.assert_allclose(rows, expected[[0, 1, 3]], rtol=2e-3)
            assert rows.dtype == dtype


@pytest.mark.parametrize("types", [(np.int32, np.int32), (np.int64, np.int32)])
@pytest.mark.parametrize("how", MEANS)
def test_gradients_of_nothing(ops: Any, how: str, types: tuple[Any, Any]) -> None:
    gradient, none = F([[1, 2]]), (np.zeros(0, types[0]), np.zeros(0, types[1]))
    some = np.zeros(2, types[0]), np.zeros(2, types[1])

    assert ops.run(f"SparseSegment{how}Grad", [gradient, *none, 2]).tolist() == [[0, 0], [0, 0]]
    assert ops.run(f"SparseSegment{how}Grad", [gradient, *none, 0]).shape == (0, 2)
    assert ops.run(f"SparseSegment{how}Grad", [gradient[:, :0], *some, 3]).shape == (3, 0)
    for given, count in ((none, 5), (none, 0), (some, 0)):
        rows, which = ops.run(f"SparseSegment{how}GradV2", [gradient, *given, count])
        assert (rows.shape, which.shape) == ((0, 2), (0,))


@pytest.mark.parametrize("version", ["", "V2"])
@pytest.mark.parametrize("types", [(np.int32, np.int32), (np.int64, np.int32)])
@pytest.mark.parametrize("how", MEANS)
def test_what_gradients_of_chosen_rows_refuse(ops: Any, how: str, version: str, types: tuple[Any, Any]) -> None:
    op, gradient = f"SparseSegment{how}Grad{version}", np.ones((3, 2), F)
    name = "dense_output_dim0" if version else "output_dim0"

    def given(places: Any, ids: Any, rows: Any = 4) -> list[Any]:
        return [gradient, np.array(places, types[0]), np.array(ids, types[1]), np.array(rows, np.int32)]

    refused(ops, "Invalid number of segments", op, given([0, 1], [0, 3]))
    refused(ops, "Segment id 5 out of range [0, 3).", op, given([0, 1, 1, 1], [1, 5, -1, 2]))
    refused(ops, "Segment id -1 out of range [0, 3).", op, given([0, 1, 1, 1], [0, -1, 5, 2]))
    refused(ops, "Segment id 3 out of range [0, 3).", op, given([0, 1, 1], [0, 3, 2]))
    refused(ops, "Index 4 out of range [0, 4).", op, given([0, 4, 9], [0, 0, 1]))
    refused(ops, "Index -1 out of range [0, 4).", op, given([3, -1, 9], [0, 0, 1]))
    refused(ops, "indices should be a vector.", op, given([[0]], [0]))
    refused(ops, "segment_ids should be a vector.", op, given([0], [[0]]))
    refused(ops, "segment_ids and indices should have same size.", op, given([0, 1], [0]))
    refused(ops, f"{name} should be a scalar.", op, given([0], [0], [4]))
    refused(ops, f"{name} must not be negative, got -1", op, given([0], [0], -1))
    refused(ops, "Shape must be at least rank 1", op, [np.array(1, F), *given([0], [0])[1:]])
    found = ops.run(op, given([0, 3], [0, 2]))
    assert (found[1].tolist() == [0, 3]) if version else (found.shape == (4, 2))


def test_a_gradient_whose_rows_take_too_much_memory(ops: Any) -> None:
    wide = np.zeros((1, 1 << 24), np.float16)
    with pytest.raises(errors.ResourceExhaustedError):
        ops.run("SparseSegmentSumGrad", [wide.astype(F), np.int32([0]), np.int32([0]), np.int32((1 << 31) - 1)])


@pytest.mark.parametrize("bad", [0, 1])
def test_a_loop_that_meets_what_somebody_has_changed(bad: int) -> None:
    """Places and ids have been checked before; who changes them meanwhile gets an error and no memory of others."""
    types = dtypes.float32, dtypes.int32, dtypes.int32
    node = KernelNode("n", "SparseSegmentSum", {}, types, (dtypes.float32,), "/device:CPU:0", ResourceManager())
    sum_chosen = math_segments._chosen_summer(node)
    places, ids = np.int32([0, 1]), np.int32([0, 1])
    assert sum_chosen(F([[1], [2]]), places, ids, 2).tolist() == [[1], [2]]
    places[bad] = 7

    with pytest.raises(errors.InvalidArgumentError) as error:
        sum_chosen(F([[1], [2]]), places, ids, 2)
    assert error.value.message == f"indices[{bad}] and segment_ids[{bad}] name no row: [0, 2), [0, 2)"


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float16, np.float32, np.float64, np.complex64])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_reductions_by_sorted_ids(ops: Any, dtype: Any, index: Any) -> None:
    data, ids = np.array([[1, 5], [3, 2], [4, 6]], dtype), np.array([0, 0, 2], index)
    limits = np.finfo(dtype) if np.dtype(dtype).kind in "fc" else np.iinfo(dtype)
    rows = {
        "Sum": ([4, 7], 0), "Prod": ([3, 10], 1), "Max": ([3, 5], limits.min), "Min": ([1, 2], limits.max)
    }  # fmt: skip
    for how, (first, empty) in rows.items():
        if np.dtype(dtype).kind == "c" and how in ("Max", "Min"):
            continue
        found = ops.run(f"Segment{how}V2", [data, ids, np.int64(4)])
        assert found.tolist() == [first, [empty] * 2, [4, 6], [empty] * 2]
        assert found.dtype == dtype
        assert ops.run(f"Segment{how}V2", [data[:, 0], ids, np.int64(3)]).tolist() == [first[0], empty, 4]
        assert ops.run(f"Segment{how}V2", [data[:0], ids[:0], np.int32(1)]).tolist() == [[empty] * 2]
        assert ops.run(f"Segment{how}V2", [data[:0], ids[:0], np.int32(0)]).shape == (0, 2)


@pytest.mark.parametrize("how", ["Sum", "Prod", "Max", "Min"])
def test_what_reductions_by_sorted_ids_refuse(ops: Any, how: str) -> None:
    op, data = f"Segment{how}V2", np.ones((2, 2), F)
    refused(ops, "num_segments must be a scalar, got shape [1]", op, [data, np.int32([0, 0]), np.int32([1])])
    text = "segment_ids should be the same size as dimension 0 of input."
    for ids in ([[0, 0]], [0], [0, 0, 0], 0):
        refused(ops, text, op, [data, np.array(ids, np.int32), 3])
    refused(ops, text, op, [np.array(1, F), np.int32([0]), 3])
    refused(ops, "segment ids must be in [0, num_segments = -1)", op, [data, np.int32([0, 0]), -1])
    refused(ops, "segment ids are not increasing", op, [data, np.int32([1, 0]), 3])
    refused(ops, "segment ids must be in [0, num_segments = 3)", op, [data, np.int32([-1, 0]), 3])
    refused(ops, "segment ids must be in [0, num_segments = 3)", op, [data, np.int32([0, 3]), 3])
    assert ops.run(op, [data, np.int32([0, 2]), 3]).shape == (3, 2)
    with pytest.raises(errors.ResourceExhaustedError):
        ops.run(op, [data, np.int32([0, 0]), np.int64(1 << 50)])
