"""Accumulators and barriers as machines: reduction, stale gradients, waiting takers; keys that become complete."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold_core import chief_generation, dtypes, errors
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.resources.accumulators import DenseAccumulator, SparseAccumulator, merge, moment
from tenfold_kernels.resources.barriers import Barrier
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


def barrier() -> Barrier:
    return Barrier("b", [dtypes.int32, dtypes.string], [TensorShape([]), TensorShape([1])])


def keys(*names: bytes) -> Any:
    return np.array(names, dtype=object)


def test_a_key_is_ready_with_all_its_components() -> None:
    made = barrier()
    waiting = told(made.take_many(2, allow_small_batch=False))
    made.insert_many(0, keys(b"x", b"y"), np.array([1, 2], np.int32))
    assert (made.incomplete_size, made.ready_size) == (2, 0)
    made.insert_many(1, keys(b"y", b"x"), np.array([[b"Y"], [b"X"]], dtype=object))
    ((outputs, error),) = waiting
    assert error is None
    indices, names, numbers, strings = (output.tolist() for output in outputs)
    assert (names, numbers, strings) == ([b"y", b"x"], [2, 1], [[b"Y"], [b"X"]])
    assert indices == [-(1 << 63)] * 2


def test_a_component_is_set_once() -> None:
    made = barrier()
    made.insert_many(0, keys(b"x"), np.array([1], np.int32))
    with pytest.raises(errors.InvalidArgumentError, match="Key x already has a value for component 0 in barrier b"):
        made.insert_many(0, keys(b"x"), np.array([1], np.int32))


def test_a_closed_barrier_takes_no_new_keys_and_ends_with_the_last_old_one() -> None:
    made = barrier()
    made.insert_many(0, keys(b"x"), np.array([1], np.int32))
    made.close(cancel_pending_enqueues=False)
    with pytest.raises(errors.CancelledError, match="brand new key: z"):
        made.insert_many(0, keys(b"z"), np.array([1], np.int32))
    made.insert_many(1, keys(b"x"), np.array([[b"X"]], dtype=object))
    assert made.take_many(1, allow_small_batch=False)[1].tolist() == [b"x"]
    with pytest.raises(errors.OutOfRangeError, match="Barrier 'b' is closed"):
        made.take_many(1, allow_small_batch=False)
    made.close(cancel_pending_enqueues=True)
    with pytest.raises(errors.CancelledError, match="already closed"):
        made.close(cancel_pending_enqueues=False)


def test_who_waits_for_a_barrier_hears_of_its_end() -> None:
    made = barrier()
    waiting = told(made.take_many(1, allow_small_batch=False))
    made.insert_many(0, keys(b"x"), np.array([1], np.int32))
    made.close(cancel_pending_enqueues=True)
    ((_, error),) = waiting
    assert isinstance(error, errors.OutOfRangeError)
