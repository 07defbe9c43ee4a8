"""Reductions, arg-reductions, cumulative and segment reductions at their edges; the usual cases are in test_math.py."""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any

import numpy as np
import pytest

from tenfold_core import dtypes, errors
from tenfold_kernels.cpu.math_reduction import check_segments
from tenfold_kernels.registry import KernelNode, lookup
from tenfold_kernels.resources.state import ResourceManager

RNG = np.random.default_rng(23)
F = np.float32
BFLOAT16 = dtypes.bfloat16.as_numpy_dtype
#: More elements than fit one tensor.
HUGE = 1 << 50


def bare(ops: Any, op: str, types: tuple[Any, ...], output: Any, **attrs: Any) -> Any:
    """The compute of a node that leaves its other attrs to their defaults."""
    node = KernelNode("n", op, {"T": types[0], **attrs}, types, (output,), ops.device, ResourceManager())
    return lookup(node, "CPU")(node)


# -- reductions


@pytest.mark.parametrize(
    ("op", "function"), [("Sum", np.sum), ("Prod", np.prod), ("Mean", np.mean), ("Max", np.max), ("Min", np.min)]
)
def test_one_node_reduces_over_whatever_axes_it_is_given(ops: Any, op: str, function: Any) -> None:
    """Also more of them than it remembers, and the same ones of tensors with fewer dimensions."""
    x = RNG.standard_normal((2, 3, 1, 2, 3))
    compute = bare(ops, op, (dtypes.float64, dtypes.int32), dtypes.float64)
    several = [axes for count in range(4) for axes in itertools.permutations(range(5), count)]

    for axes in [*several, (-1,), (-2, 0)]:
        given = np.array(axes, np.int32)
        np.testing.assert_allclose(compute(x, given), function(x, axis=axes), rtol=1e-12)
    np.testing.assert_allclose(compute(x[0], np.int32([-1])), function(x[0], axis=-1), rtol=1e-12)
    np.testing.assert_allclose(compute(x[0, 0], np.int32([-2, 0])), function(x[0, 0], axis=(-2, 0)), rtol=1e-12)
    with pytest.raises(errors.InvalidArgumentError, match="Invalid reduction dimension"):
        compute(x[0, 0], np.int32([4]))


def test_means_of_ever_other_numbers_of_elements(ops: Any) -> None:
    compute = bare(ops, "Mean", (dtypes.float32, dtypes.int32), dtypes.float32)

    for _ in range(2):
        assert [float(compute(np.full(n, n, F), np.int32([0]))) for n in range(1, 20)] == list(range(1, 20))


def test_large_arrays_are_reduced_by_their_own_operation_and_in_a_wide_type(ops: Any) -> None:
    """Of so many elements sums of float32 and float64 have loops of their own; nothing else has."""
    signs = np.where(np.arange(5000) % 3, 1.0, -1.0)

    assert ops.run("Prod", [signs, [0]]) == signs.prod()
    assert ops.run("Mean", [np.full(5000, 100, np.float16), [0]]) == 100
    assert ops.run("Mean", [np.full(5000, 10**6, np.int32), [0]]) == 10**6
    assert ops.run("Mean", [np.full(5000, 200, np.uint8), [0]]) == 200
    assert ops.run("Mean", [np.full(5000, 2 - 4j, np.complex64), [0]]) == 2 - 4j
    assert ops.run("Sum", [np.ones(5000, np.float16), [0]]) == 5000
    assert ops.run("Sum", [np.full(5000, 10**6, np.int32), [0]]) == (5000 * 10**6 + 2**31) % 2**32 - 2**31


def test_means_of_integers_are_cut_towards_zero(ops: Any) -> None:
    x = np.array([[7, -7, 1], [2, -2, 1], [1, 1, -1]])

    assert ops.run("Mean", [x, [0]]).tolist() == [3, -2, 0]
    assert ops.run("Mean", [x, [1]], keep_dims=True).tolist() == [[0], [0], [0]]
    assert ops.run("Mean", [np.full(3, 2**62), [0]]) == -(2**62 // 3), "the sum wraps"
    assert ops.run("Mean", [np.full(2, 2**63, np.uint64) - np.uint64(1), [0]]) == 2**63 - 1


def test_the_mean_of_one_integer_is_it(ops: Any) -> None:
    assert ops.run("Mean", [[[5], [-7]], [1]]).tolist() == [5, -7]
    assert ops.run("Mean", [[5, -7], np.zeros(0, np.int32)]).tolist() == [5, -7]


def test_halves_are_added_up_in_a_wide_type(ops: Any) -> None:
    """Row by row, too, where NumPy would lose what is added from 2048 on."""
    rows = np.ones((5000, 2), np.float16)

    assert ops.run("Sum", [rows, [0]]).tolist() == [5000, 5000]
    assert ops.run("Mean", [100 * rows, [0]]).tolist() == [100, 100]
    assert ops.run("Prod", [np.float16([[300, 1], [300, 1], [0.01, 1]]), [0]]).tolist() == [pytest.approx(900, 1e-2), 1]


def test_the_mean_of_no_integers_is_nothing(ops: Any) -> None:
    result = ops.run("Mean", [np.zeros((0, 2), np.int32), [0]])

    assert (result.tolist(), result.dtype) == ([0, 0], np.int32)


@pytest.mark.parametrize("keep", [False, True])
def test_norms(ops: Any, keep: bool) -> None:
    x = RNG.standard_normal((3, 4)) + 1j * RNG.standard_normal((3, 4))
    expected = np.sqrt((np.abs(x) ** 2).sum(axis=1, keepdims=keep))

    np.testing.assert_allclose(ops.run("EuclideanNorm", [x, [1]], keep_dims=keep), expected, rtol=1e-12)
    assert ops.run("EuclideanNorm", [np.float32([[3, 4], [5, 12]]), [-1]]).tolist() == [5, 13]
    assert ops.run("EuclideanNorm", [[3, 4, 1], [0]]).tolist() == 5, "of integers it is cut"
    assert ops.run("EuclideanNorm", [[50000, 50000], [0]]).tolist() == math.isqrt(2 * 50000**2 - 2**32), "and wraps"


@pytest.mark.parametrize(("op", "function"), [("All", np.all), ("Any", np.any)])
def test_truths(ops: Any, op: str, function: Any) -> None:
    x = np.array([[True, False], [True, True], [False, False]])

    for axes, keep in itertools.product(([0], [1], [0, 1], []), (False, True)):
        expected = function(x, axis=tuple(axes), keepdims=keep)
        np.testing.assert_array_equal(ops.run(op, [x, np.array(axes, np.int32)], keep_dims=keep), expected)


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int64, np.float16, np.float64, BFLOAT16])
def test_extremes(ops: Any, dtype: Any) -> None:
    x = np.array([[3, 100, 7], [0, 2, 1]]).astype(dtype)
    limits = (-math.inf, math.inf) if np.dtype(dtype).kind in "fV" else (np.iinfo(dtype).min, np.iinfo(dtype).max)

    for keep in (False, True):
        assert ops.run("Max", [x, [1]], keep_dims=keep).reshape(-1).tolist() == [100, 2]
        assert ops.run("Min", [x, [1]], keep_dims=keep).reshape(-1).tolist() == [3, 0]
        assert (
            ops.run("Max", [x, [1]], keep_dims=keep).ndim == ops.run("Min", [x, [1]], keep_dims=keep).ndim == 1 + keep
        )
    assert [float(ops.run(op, [x[:0], [0]])[0]) for op in ("Max", "Min")] == [float(each) for each in limits]


# -- arg-reductions


@pytest.mark.parametrize("dtype", [F, np.float16, np.float64, BFLOAT16])
@pytest.mark.parametrize("size", [4, 9000])
def test_what_is_no_number_is_never_the_extreme(ops: Any, dtype: Any, size: int) -> None:
    x = np.zeros((3, size), dtype)
    x[0, :4] = [np.nan, 1, 3, 3]
    x[1, :4] = [-1, -3, np.nan, -3]
    x[2] = np.nan

    others = size > 4  # all of them 0
    assert ops.run("ArgMax", [x, 1]).tolist() == [2, 4 if others else 0, 0]
    assert ops.run("ArgMin", [x, 1]).tolist() == [4 if others else 1, 1, 0]


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, np.bool_, np.complex64])
def test_the_first_extreme_is_named(ops: Any, dtype: Any) -> None:
    x = np.array([[0, 1, 1, 0]]).astype(dtype)

    assert ops.run("ArgMax", [x, 1]).tolist() == [1]
    assert ops.run("ArgMin", [x, -1]).tolist() == [0]


def test_infinities_are_extremes_beside_what_is_no_number(ops: Any) -> None:
    x = F([np.nan, -np.inf, np.inf, 0])

    assert (int(ops.run("ArgMax", [x, 0])), int(ops.run("ArgMin", [x, 0]))) == (2, 1)
    assert int(ops.run("ArgMax", [F([np.nan, -np.inf, np.nan]), 0])) == 0, "nothing is more than the least number"


@pytest.mark.parametrize(
    ("op", "inputs", "text"),
    [
        ("ArgMax", [np.zeros((2, 3), F), [1]], "dim must be a scalar, but received tensor of shape: [1]"),
        ("ArgMin", [np.zeros((2, 3), F), -3], "Expected dimension in the range [-2, 2), but got -3"),
        ("Cumsum", [np.zeros((2, 3), F), [1]], "ScanOp: axis must be a scalar, not [1]"),
        ("Cumprod", [np.zeros((2, 3), F), 2], "Expected scan axis in the range [-2, 2), but got 2"),
        ("CumulativeLogsumexp", [np.zeros((2, 3), F), 2], "ScanOp: Expected scan axis in the range [-2, 2), but got 2"),
        (
            "CumulativeLogsumexp",
            [np.zeros((2, 3), F), -3],
            "ScanOp: Expected scan axis in the range [-2, 2), but got -3",
        ),
    ],
)
def test_an_axis_is_one_of_the_tensors(ops: Any, op: str, inputs: list[Any], text: str) -> None:
    with pytest.raises(errors.InvalidArgumentError) as refused:
        ops.run(op, inputs)

    assert refused.value.message == text


# -- cumulative


@pytest.mark.parametrize(("exclusive", "reverse"), list(itertools.product([False, True], repeat=2)))
@pytest.mark.parametrize("axis", [-3, -2, -1, 0, 1, 2])
def test_cumulative_along_each_axis(ops: Any, axis: int, exclusive: bool, reverse: bool) -> None:
    x = RNG.standard_normal((2, 3, 4))
    given = {"exclusive": exclusive, "reverse": reverse}

    for op, combine, nothing in (
        ("Cumsum", lambda a, b: a + b, 0.0),
        ("Cumprod", lambda a, b: a * b, 1.0),
        ("CumulativeLogsumexp", lambda a, b: np.log(np.exp(a) + np.exp(b)), -np.inf),
    ):
        rows = list(np.moveaxis(x, axis, 0))
        rows = rows[::-1] if reverse else rows
        kept = [
            functools.reduce(combine, rows[: i + 1 - exclusive], np.full_like(rows[0], nothing))
            for i in range(len(rows))
        ]
        expected = np.moveaxis(np.stack(kept[::-1] if reverse else kept), 0, axis)
        np.testing.assert_allclose(ops.run(op, [x, axis], **given), expected, rtol=1e-12)


@pytest.mark.parametrize("op", ["Cumsum", "Cumprod", "CumulativeLogsumexp"])
def test_nothing_accumulates_to_nothing(ops: Any, op: str) -> None:
    for exclusive, axis in itertools.product((False, True), (0, 1)):
        assert ops.run(op, [np.zeros((0, 3), F), axis], exclusive=exclusive).shape == (0, 3)
    assert ops.run(op, [np.zeros((3, 0), F), 1], exclusive=True).shape == (3, 0)


def test_accumulated_numbers_keep_their_type(ops: Any) -> None:
    assert ops.run("Cumsum", [np.array([100, 100], np.int8), 0]).tolist() == [100, -56]
    assert ops.run("Cumprod", [np.array([3, 5], np.uint8), 0], exclusive=True, reverse=True).tolist() == [5, 1]
    plain = bare(ops, "Cumsum", (dtypes.float32, dtypes.int32), dtypes.float32)
    assert plain(F([1, 2, 3]), np.array(0, np.int32)).tolist() == [1, 3, 6]
    logs = bare(ops, "CumulativeLogsumexp", (dtypes.float32, dtypes.int32), dtypes.float32)
    np.testing.assert_allclose(logs(F([0, 0]), np.array(0, np.int32)), [0, math.log(2)], rtol=1e-6)


# -- segments


def segments(op: str, data: Any, ids: Any, count: int, empty: float) -> Any:
    """The definition: rows of data by id, one after the other; ids below 0 are dropped."""
    meet = {"Sum": np.add, "Mean": np.add, "Max": np.maximum, "Min": np.minimum, "Prod": np.multiply}[op]
    out = np.full((count, *data.shape[ids.ndim :]), empty, dtype=data.dtype)
    for i in range(count):
        rows = data[ids == i]
        if len(rows):
            out[i] = functools.reduce(meet, rows)
            if op == "Mean":
                out[i] = (out[i] / len(rows)).astype(data.dtype)
    return out


@pytest.mark.parametrize("dtype", [F, np.float64, np.int32, np.uint8, np.complex128])
@pytest.mark.parametrize("row", [(), (3,), (2, 2)])
def test_sorted_segments(ops: Any, dtype: Any, row: tuple[int, ...]) -> None:
    data = RNG.integers(1, 5, (7, *row)).astype(dtype)

    for ids in (np.int32([0, 0, 1, 3, 3, 3, 4]), np.int64([2, 2, 2, 2, 2, 2, 2])):
        for op in ("Sum", "Mean", "Prod", *(("Max", "Min") if dtype is not np.complex128 else ())):
            expected = segments(op, data, ids, int(ids[-1]) + 1, op == "Prod")
            np.testing.assert_allclose(ops.run(f"Segment{op}", [data, ids]), expected, rtol=1e-6)


@pytest.mark.parametrize("dtype", [F, np.float64, np.int32, np.uint8, np.complex128])
@pytest.mark.parametrize("row", [(), (3,), (2, 2)])
def test_unsorted_segments(ops: Any, dtype: Any, row: tuple[int, ...]) -> None:
    data = RNG.integers(1, 5, (2, 4, *row)).astype(dtype)
    limits = {F: np.finfo, np.float64: np.finfo}.get(dtype, np.iinfo if dtype is not np.complex128 else None)
    empty = {"Sum": 0, "Prod": 1}
    if limits is not None:
        empty |= {"Max": limits(dtype).min, "Min": limits(dtype).max}

    for ids in (np.int32([[3, 0, -1, 3], [1, 1, 0, -7]]), np.int64([[0, 0, 0, 0], [3, 3, 3, 3]])):
        for op, nothing in empty.items():
            found = ops.run(f"UnsortedSegment{op}", [data, ids, np.int64(4)])
            np.testing.assert_allclose(found, segments(op, data, ids, 4, nothing), rtol=1e-6)
        flat = ops.run("UnsortedSegmentSum", [data.reshape(8, *row), ids.reshape(8), 4])
        np.testing.assert_array_equal(flat, segments("Sum", data, ids, 4, 0))


def test_means_of_whole_numbers_by_segment_are_exact(ops: Any) -> None:
    data = np.array([2**62 + 1, -3, 0, 7, -2])

    assert ops.run("SegmentMean", [data, [0, 1, 1, 2, 2]]).tolist() == [2**62 + 1, -1, 2]


@pytest.mark.parametrize(
    ("op", "others"), [("UnsortedSegmentSum", ()), ("UnsortedSegmentMax", ()), ("UnsortedSegmentProd", ())]
)
@pytest.mark.parametrize("dtype", [F, np.int32])
def test_an_id_that_is_too_large_is_named(ops: Any, op: str, others: tuple[Any, ...], dtype: Any) -> None:
    data = np.ones((2, 2, 3), dtype)

    for ids, text in (
        ([[2, 0], [0, 0]], r"segment_ids\[0,0\] = 2 is"),
        ([[1, -1], [9, 2]], r"segment_ids\[1,0\] = 9 is"),
    ):
        with pytest.raises(errors.InvalidArgumentError, match=rf"^{text} out of range \[0, 2\)$"):
            ops.run(op, [data, ids, 2])
    assert ops.run(op, [data, [[1, -1], [0, 1]], 2]).shape == (2, 3)


def test_segments_of_nothing(ops: Any) -> None:
    none = np.zeros((0,), np.int32)

    for op, value in (("Sum", 0), ("Prod", 1), ("Max", -(2**31)), ("Min", 2**31 - 1)):
        assert ops.run(f"UnsortedSegment{op}", [np.zeros((0, 2), np.int32), none, 1]).tolist() == [[value] * 2]
        assert ops.run(f"UnsortedSegment{op}", [np.zeros((0, 2), np.int32), none, 0]).shape == (0, 2)
        assert ops.run(f"UnsortedSegment{op}", [np.ones((2, 2), np.int32), [-1, -1], 0]).shape == (0, 2)
    for op in ("Sum", "Mean", "Prod", "Max", "Min"):
        assert ops.run(f"Segment{op}", [np.zeros((0, 2), F), none]).shape == (0, 2)
    with pytest.raises(errors.InvalidArgumentError, match=r"^segment_ids\[0\] = 0 is out of range \[0, 0\)$"):
        ops.run("UnsortedSegmentSum", [np.ones((1, 2), F), [0], 0])


@pytest.mark.parametrize(
    ("op", "inputs", "text"),
    [
        ("SegmentSum", [np.ones((2, 2), F), np.int32([[0], [0]])], "segment_ids should be a vector."),
        ("SegmentMax", [np.array(1, F), np.int32([0])], "Shape must be at least rank 1"),
        (
            "SegmentMean",
            [np.ones((2, 2), F), np.int32([0])],
            "segment_ids should be the same size as dimension 0 of input.",
        ),
        ("UnsortedSegmentSum", [np.ones(2, F), [0, 0], -1], "num_segments must be >= 0, got -1"),
        (
            "UnsortedSegmentMax",
            [np.ones((2, 3), F), [0, 0, 0], 1],
            "data.shape = [2,3] does not start with segment_ids.shape = [3]",
        ),
    ],
)
def test_shapes_that_do_not_go_together(ops: Any, op: str, inputs: list[Any], text: str) -> None:
    with pytest.raises(errors.InvalidArgumentError) as refused:
        ops.run(op, inputs)

    assert refused.value.message == text


@pytest.mark.parametrize(
    ("op", "data", "ids", "more"),
    [
        ("UnsortedSegmentSum", np.ones((1, 2), F), [0], [np.int64(HUGE)]),
        ("UnsortedSegmentSum", np.ones((1, 2), np.int32), [0], [np.int64(HUGE)]),
        ("UnsortedSegmentMax", np.ones((1, 2), F), [0], [np.int64(HUGE)]),
        ("SegmentSum", np.ones((1, 2), F), np.int64([HUGE]), []),
        ("SegmentMax", np.ones((1, 2), F), np.int64([HUGE]), []),
    ],
)
def test_more_segments_than_fit_are_refused(ops: Any, op: str, data: Any, ids: Any, more: list[Any]) -> None:
    with pytest.raises(errors.ResourceExhaustedError):
        ops.run(op, [data, ids, *more])


@pytest.mark.parametrize(
    ("ids", "rows", "found"),
    [
        ([], None, 0),
        ([], 3, 3),
        ([], 0, 0),
        ([0], None, 1),
        ([2], None, 3),
        ([0, 0, 2], 3, 3),
        ([0, 0, 2], 5, 5),
        ([0, 0, 2], 2, "segment ids must be < num_segments"),
        ([], -1, "segment ids must be < num_segments"),
        ([-5], None, "segment ids must be >= 0"),
        ([-5], -2, "segment ids must be >= 0"),
        ([-1], None, "segment ids must be >= 0"),
        ([-1], 0, "segment ids must be >= 0"),
        ([0, -1], 3, "segment ids are not increasing"),
        ([-1, -1], 3, "Segment id -1 out of range [0, 3)"),
        ([-1, 0, 0], 3, "Segment id -1 out of range [0, 3)"),
        ([1, 0], None, "segment ids are not increasing"),
        ([0, 3, 3, 1], None, "segment ids are not increasing"),
        ([0, 1, 2, 0], None, "Segment id 1 out of range [0, 1)"),
        ([1, 1, 0, 2], None, "segment ids are not increasing"),
        ([0, 5, 6, 1, 2], None, "Segment id 5 out of range [0, 3)"),
    ],
)
def test_how_many_segments_there_are(ids: list[int], rows: int | None, found: int | str) -> None:
    """Of several faults the first one is named that TensorFlow meets, segment by segment."""
    data = np.ones((len(ids), 2), F)

    if isinstance(found, int):
        assert check_segments(data, np.array(ids, np.int64), rows) == found
        return
    with pytest.raises(errors.InvalidArgumentError) as refused:
        check_segments(data, np.array(ids, np.int64), rows)
    assert refused.value.message.startswith(found)


def test_segments_are_of_rows() -> None:
    with pytest.raises(errors.InvalidArgumentError, match=r"^Shape must be at least rank 1$"):
        check_segments(np.array(1, F), np.zeros(0, np.int64), 1)
    with pytest.raises(errors.ResourceExhaustedError):
        check_segments(np.ones((1, 2), F), np.array([0]), HUGE)
    with pytest.raises(errors.ResourceExhaustedError):
        check_segments(np.zeros((1, 1 << 20), np.int8), np.array([0]), 1 << 26)


@pytest.mark.parametrize("axes", [[1], [0], [0, 1]])
@pytest.mark.parametrize("keep", [False, True])
def test_products_of_rows_are_summed_where_they_lie(ops: Any, axes: list[int], keep: bool) -> None:
    """The node that the optimizer makes of a sum over the product of two gathers: rows and places twice, and axes."""
    types = (dtypes.float64, dtypes.int32, dtypes.float64, dtypes.int32, dtypes.int32)
    compute = bare(ops, "Sum", types, dtypes.float64, keep_dims=keep)
    left, right = RNG.standard_normal((3, 4)), RNG.standard_normal((5, 4))
    at, other = np.int32([2, 0, 2]), np.int32([4, 1, 0])

    found = compute(left, at, right, other, np.int32(axes))

    expected = (left[at] * right[other]).sum(axis=tuple(axes), keepdims=keep)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
