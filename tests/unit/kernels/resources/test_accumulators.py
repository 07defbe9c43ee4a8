"""Accumulators as machines: reduction, stale gradients, waiting takers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold_core import chief_generation, dtypes, errors
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.resources.accumulators import DenseAccumulator, SparseAccumulator, merge, moment
from tenfold_kernels.resources.quota import StateQuota
from tenfold_kernels.resources.waiting import Waiting

F32 = dtypes.float32


def dense(reduction: str = "MEAN", shape: Any = (None,), dtype: dtypes.DType = F32) -> DenseAccumulator:
    return DenseAccumulator("a", dtype, TensorShape(shape), reduction)


def told(waiting: Any) -> list[tuple[Any, Any]]:
    assert isinstance(waiting, Waiting)
    results: list[tuple[Any, Any]] = []
    waiting.listen(lambda outputs, error: results.append((outputs, error)))
    return results


@pytest.mark.parametrize(("reduction", "expected"), [("MEAN", [2.0, 3.0]), ("SUM", [4.0, 6.0])])
def test_gradients_are_reduced(reduction: str, expected: list[float]) -> None:
    accumulator = dense(reduction)
    for gradient in ([1, 2], [3, 4]):
        accumulator.apply(0, np.array(gradient, np.float32))
    assert accumulator.take(2).tolist() == expected
    assert accumulator.count == 0


def test_integers_are_cut_off_towards_zero() -> None:
    accumulator = dense(dtype=dtypes.int32)
    for gradient in ([-3], [0]):
        accumulator.apply(0, np.array(gradient, np.int32))
    assert accumulator.take(1).tolist() == [-1]


def test_stale_gradients_are_dropped_and_a_take_moves_the_step_on() -> None:
    accumulator = dense()
    accumulator.apply(0, np.ones(1, np.float32))
    accumulator.take(1)
    accumulator.apply(0, np.ones(1, np.float32))
    assert accumulator.count == 0
    accumulator.apply(1, np.ones(1, np.float32))
    assert accumulator.count == 1
    accumulator.set_global_step(9)
    accumulator.apply(8, np.ones(1, np.float32))
    assert accumulator.count == 1


def begin_life(accumulator: DenseAccumulator, number: int, step: int) -> None:
    """As chief_generation.py does it: nothing is accepted, then what is not older than the step."""
    accumulator.set_global_step((number + 1) * chief_generation.STRIDE + chief_generation.CLOSED)
    accumulator.set_global_step(number * chief_generation.STRIDE + step)


def test_a_bare_step_counts_in_a_later_life_of_the_chief_if_its_op_is_younger() -> None:
    accumulator, gradient, first = dense("SUM"), np.ones(1, np.float32), moment()
    begin_life(accumulator, 0, 5)
    accumulator.apply(5, gradient, first)
    assert accumulator.count == 1, "in the first generation all numbers are bare"
    begin_life(accumulator, 1, 4)
    second = moment()

    accumulator.apply(9, gradient, first)
    assert accumulator.count == 1, "it is of the former generation, however late its step"
    accumulator.apply(3, gradient, second)
    assert accumulator.count == 1, "it is of this one, but stale"
    accumulator.apply(4, gradient, second)
    accumulator.apply(chief_generation.STRIDE + 4, gradient, first)
    assert accumulator.count == 3

    begin_life(accumulator, 2, 4)
    accumulator.apply(9, gradient, second)
    accumulator.apply(chief_generation.STRIDE + 9, gradient, second)
    assert accumulator.count == 3, "and so on with each generation"


def test_nothing_is_accepted_until_the_life_has_begun() -> None:
    accumulator, gradient = dense("SUM"), np.ones(1, np.float32)
    accumulator.apply(0, gradient)
    accumulator.set_global_step(chief_generation.STRIDE + chief_generation.CLOSED)

    accumulator.apply(0, gradient, moment())
    accumulator.apply(3 * chief_generation.STRIDE, gradient, moment())
    assert accumulator.count == 1
    accumulator.take(1)
    accumulator.apply(2 * chief_generation.STRIDE, gradient, moment())
    assert accumulator.count == 0, "also once what was there has been taken away"


def test_large_steps_that_mean_something_else_are_plain_numbers() -> None:
    """Such as times in microseconds."""
    accumulator, gradient = dense("SUM"), np.ones(1, np.float32)
    accumulator.set_global_step(7 * chief_generation.STRIDE + 1)
    accumulator.set_global_step(7 * chief_generation.STRIDE + 2)

    accumulator.apply(3, gradient, moment())
    accumulator.apply(7 * chief_generation.STRIDE + 1, gradient, moment())
    assert accumulator.count == 0


def test_takers_wait_in_line_and_may_leave_it() -> None:
    accumulator = dense("SUM")
    waits = [accumulator.take(2), accumulator.take(1), accumulator.take(1)]
    results = [told(waiting) for waiting in waits]
    accumulator.apply(0, np.ones(1, np.float32))
    assert results == [[], [], []]
    waits[0].cancel()
    assert [len(result) for result in results] == [0, 1, 0]
    accumulator.apply(1, np.full(1, 5, np.float32))
    assert results[2][0][0].tolist() == [5]


def test_shapes_and_counts_are_checked() -> None:
    accumulator = dense(shape=(2,))
    with pytest.raises(errors.InvalidArgumentError, match=r"Shape mismatch: expected \[2\], got \[3\]"):
        accumulator.apply(0, np.ones(3, np.float32))
    with pytest.raises(errors.InvalidArgumentError, match="num_required must be positive, but was 0"):
        accumulator.take(0)


def test_sparse_gradients_are_added_by_index() -> None:
    accumulator = SparseAccumulator("s", F32, TensorShape([4, 1]), "MEAN")
    accumulator.apply(0, np.array([0, 2]), np.array([[1], [2]], np.float32), None)
    accumulator.apply(0, np.array([2, 3]), np.array([[4], [8]], np.float32), np.array([4, 1]))
    indices, values, shape = accumulator.take(2)
    assert indices.tolist() == [0, 2, 3]
    assert values.ravel().tolist() == [1, 3, 8]
    assert shape.tolist() == [4, 1]


@pytest.mark.parametrize(
    ("indices", "values", "shape", "message"),
    [
        ([[0]], [[1.0]], None, "should be vector"),
        ([0], 1.0, None, "0-dimensional"),
        ([0, 1], [[1.0]], None, "Expected 2 non-empty input values, got 1"),
        ([4], [[1.0]], None, "index is 4 exceeded 4"),
        ([0], [[1.0, 2.0]], None, "expected values dim 1 to be 1, got 2"),
        ([0], [[1.0]], [4, 2], "expected shape dim 1 to be 1, got 2"),
    ],
)
def test_sparse_gradients_are_checked(indices: Any, values: Any, shape: Any, message: str) -> None:
    accumulator = SparseAccumulator("s", F32, TensorShape([4, 1]), "MEAN")
    with pytest.raises(errors.InvalidArgumentError, match=message):
        accumulator.apply(
            0, np.array(indices), np.array(values, np.float32), None if shape is None else np.array(shape)
        )


def test_sorted_and_unsorted_indices_merge() -> None:
    assert [x.tolist() for x in merge(np.array([1, 3]), np.array([0, 3]))] == [[-1, 0, 1], [0, -1, 1], [0, 1, 3]]
    assert [x.tolist() for x in merge(np.array([3, 1]), np.array([2]))] == [[-1, 0, 1], [0, -1, -1], [2, 3, 1]]


@pytest.mark.parametrize(
    ("a", "b", "rows_of_a", "rows_of_b", "indices"),
    [
        ([1, 0], [2, 5], [0, 1, -1, -1], [-1, -1, 0, 1], [1, 0, 2, 5]),
        ([1], [3, 2], [0, -1, -1], [-1, 0, 1], [1, 3, 2]),
        ([2, 1], [2, 3], [0, 1, -1], [0, -1, 1], [2, 1, 3]),
        ([5, 4], [], [0, 1], [-1, -1], [5, 4]),
        ([], [5, 4], [-1, -1], [0, 1], [5, 4]),
        ([1, 1], [1], [0, 1], [0, -1], [1, 1]),
        ([0, 1], [2, 2], [0, 1, -1, -1], [-1, -1, 0, 1], [0, 1, 2, 2]),
    ],
)
def test_unsorted_indices_are_walked_in_step(
    a: list[int], b: list[int], rows_of_a: list[int], rows_of_b: list[int], indices: list[int]
) -> None:
    found = merge(np.array(a, np.int64), np.array(b, np.int64))
    assert [x.tolist() for x in found] == [rows_of_a, rows_of_b, indices]


def test_a_taker_that_leaves_the_middle_of_the_line_is_forgotten() -> None:
    accumulator = dense("SUM")
    first, gone = accumulator.take(2), accumulator.take(1)
    gone.cancel()
    assert list(accumulator._takers) == [first]


def test_who_waits_is_said_to_wait_for_gradients() -> None:
    accumulator = dense("SUM")
    waiting = accumulator.take(3)
    accumulator.apply(0, np.ones(1, np.float32))
    lack = waiting.lack()
    assert (lack.kind, lack.have, lack.need, lack.text) == ("gradients", 1, 3, "1 of 3 gradients have come")


def test_a_take_stands_in_line_behind_others() -> None:
    accumulator = dense("SUM")
    accumulator.apply(0, np.ones(1, np.float32))
    first = told(accumulator.take(2))
    assert isinstance(accumulator.take(1), Waiting), "though one has come"
    assert first == []


def test_the_next_sum_may_have_another_shape() -> None:
    accumulator = dense("SUM")
    accumulator.apply(0, np.ones(1, np.float32))
    with pytest.raises(errors.InvalidArgumentError, match=r"Shape mismatch: expected \[1\], got \[2\]"):
        accumulator.apply(0, np.ones(2, np.float32))
    assert accumulator.take(1).tolist() == [1]
    accumulator.apply(1, np.ones(2, np.float32))
    assert accumulator.take(1).tolist() == [1, 1]


def test_what_was_taken_and_what_was_given_are_others() -> None:
    accumulator, gradient = dense("SUM"), np.ones(2, np.float32)
    accumulator.apply(0, gradient)
    gradient[:] = 9
    accumulator.apply(0, np.ones(2, np.float32))
    taken = accumulator.take(1)
    accumulator.apply(1, np.ones(2, np.float32))
    accumulator.apply(1, np.ones(2, np.float32))
    assert taken.tolist() == [2, 2]
    assert accumulator.take(2).tolist() == [2, 2]


@pytest.mark.parametrize(
    ("shape", "first", "values", "dense_shape", "message"),
    [
        (None, [[1.0]], [[[1.0]]], None, "expected values rank 2, got 3"),
        (None, [[1.0]], [[1.0, 2.0]], None, "expected values dim 1 to be 1, got 2"),
        ([4, 1, 2], None, [[1.0]], None, "expected values rank at least 3, got 2"),
        ([4, None, 2], None, [[[1.0]]], None, "expected values dim 2 to be 2, got 1"),
        ([4, 1], None, [[1.0]], [4], "expected shape rank at least 2, got 1"),
        ([4, 1], None, [[1.0]], [5, 1], "expected shape dim 0 to be 4, got 5"),
    ],
)
def test_slices_fit_what_is_declared_and_what_is_there(
    shape: Any, first: Any, values: Any, dense_shape: Any, message: str
) -> None:
    accumulator = SparseAccumulator("s", F32, TensorShape(shape), "SUM")
    if first is not None:
        accumulator.apply(0, np.array([0]), np.array(first, np.float32), None)
    with pytest.raises(errors.InvalidArgumentError, match=message):
        accumulator.apply(
            0,
            np.array([0]),
            np.array(values, np.float32),
            None if dense_shape is None else np.array(dense_shape),
        )
    assert accumulator.count == (first is not None)


@pytest.mark.parametrize(
    ("shape", "values", "dense_shape", "taken"),
    [
        (None, [[1.0], [2.0]], None, [-1, 1]),
        ([None, 1], [[1.0], [2.0]], [9, 1], [-1, 1]),
        ([4], [[1.0], [2.0]], [4, 1], [4, 1]),
        ([4, None], [[1.0], [2.0]], [4, 7], [4, 1]),
    ],
)
def test_slices_that_fit(shape: Any, values: Any, dense_shape: Any, taken: list[int]) -> None:
    accumulator = SparseAccumulator("s", F32, TensorShape(shape), "SUM")
    accumulator.apply(
        0, np.array([2, 3]), np.array(values, np.float32), None if dense_shape is None else np.array(dense_shape)
    )
    indices, sums, shape_taken = accumulator.take(1)
    assert (indices.tolist(), sums.tolist(), shape_taken.tolist()) == ([2, 3], values, taken)


@pytest.mark.parametrize("room", [80, 79])
def test_a_sparse_sum_is_charged_for_indices_counts_and_values(room: int) -> None:
    """Two slices of 24 bytes, with 8 for an index and 8 for how often it came."""
    quota = StateQuota(room)
    accumulator = SparseAccumulator("s", F32, TensorShape(None), "SUM", None, quota.account("s"))
    gradient = np.array([0, 1]), np.ones((2, 6), np.float32), None
    if room < 80:
        with pytest.raises(errors.ResourceExhaustedError, match="with 's'"):
            accumulator.apply(0, *gradient)
        assert (accumulator.count, quota.bytes) == (0, 0)
    else:
        accumulator.apply(0, *gradient)
        assert quota.bytes == 80


def test_a_dense_sum_grows_with_its_first_gradient_only() -> None:
    quota = StateQuota(8)
    accumulator = DenseAccumulator("d", F32, TensorShape(None), "SUM", quota.account("d"))
    for _ in range(3):
        accumulator.apply(0, np.ones(2, np.float32))
    assert (accumulator.count, quota.bytes) == (3, 8)
    accumulator.take(1)
    with pytest.raises(errors.ResourceExhaustedError, match="12 bytes"):
        accumulator.apply(1, np.ones(3, np.float32))
