"""Barriers as machines: keys that become complete, in the order in which they came, and what a close leaves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold_core import dtypes, errors
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.resources.barriers import Barrier
from tenfold_kernels.resources.quota import StateQuota
from tenfold_kernels.resources.waiting import Waiting

FIRST = -(1 << 63)


def told(waiting: Any) -> list[tuple[Any, Any]]:
    assert isinstance(waiting, Waiting)
    results: list[tuple[Any, Any]] = []
    waiting.listen(lambda outputs, error: results.append((outputs, error)))
    return results


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


def put(made: Barrier, component: int, *names: bytes) -> None:
    values: Any = np.array([[name.upper()] for name in names], object) if component else np.arange(len(names))
    made.insert_many(component, keys(*names), values if component else values.astype(np.int32))


def taken(made: Barrier, count: int, *, allow_small_batch: bool = False) -> list[tuple[int, bytes]]:
    indices, names, *_ = made.take_many(count, allow_small_batch=allow_small_batch)
    return [(index - FIRST, name) for index, name in zip(indices.tolist(), names.tolist(), strict=True)]


def test_an_index_goes_up_with_each_insertion_that_brings_a_new_key() -> None:
    made = barrier()
    put(made, 0, b"b", b"a")
    put(made, 1, b"a")
    put(made, 0, b"c")
    put(made, 1, b"c", b"d")
    put(made, 1, b"b")
    put(made, 0, b"d")
    assert (made.ready_size, made.incomplete_size) == (4, 0)
    assert taken(made, 4) == [(0, b"a"), (0, b"b"), (1, b"c"), (2, b"d")]


def test_what_was_inserted_before_the_key_that_is_refused_stays() -> None:
    made = barrier()
    put(made, 0, b"x", b"z")
    with pytest.raises(errors.InvalidArgumentError, match="Key z already has a value for component 0"):
        put(made, 0, b"y", b"z", b"w")
    assert made.incomplete_size == 3
    put(made, 0, b"w")
    put(made, 1, b"x", b"y", b"w")
    assert taken(made, 3) == [(0, b"x"), (1, b"y"), (2, b"w")]


@pytest.mark.parametrize(
    ("names", "values", "message"),
    [
        ([b"x"], np.zeros(0), r"Tensors with no elements are not supported b: received shape \[0\]"),
        ([b"x"], np.zeros((1, 0)), r"no elements are not supported b: received shape \[1,0\]"),
        ([b"x", b"y"], np.zeros(1), r"Barrier b: 2 keys need as many values, got shape \[1\]"),
        ([b"x"], np.zeros(2), r"Barrier b: 1 keys need as many values, got shape \[2\]"),
        ([b"x"], np.zeros(()), r"Barrier b: 1 keys need as many values, got shape \[\]"),
    ],
)
def test_each_key_has_a_value(names: list[bytes], values: Any, message: str) -> None:
    made = barrier()
    with pytest.raises(errors.InvalidArgumentError, match=message):
        made.insert_many(0, keys(*names), values)
    assert made.incomplete_size == 0


@pytest.mark.parametrize("values", [np.zeros(0, np.int32), np.zeros((), np.int32)], ids=["none", "scalar"])
def test_no_keys_are_no_insertion(values: Any) -> None:
    made = barrier()
    made.insert_many(0, keys(), values)
    put(made, 0, b"x")
    put(made, 1, b"x")
    assert taken(made, 1) == [(0, b"x")]
    made.close(cancel_pending_enqueues=False)
    made.insert_many(0, keys(), values)
    with pytest.raises(errors.CancelledError, match=r"Pending enqueues cancelled: 0.  Number of new insertions: 1"):
        put(made, 0, b"x")


def test_a_closed_barrier_that_cancelled_takes_not_even_nothing() -> None:
    made = barrier()
    made.close(cancel_pending_enqueues=True)
    with pytest.raises(errors.CancelledError, match=r"Pending enqueues cancelled: 1.  Number of new insertions: 0"):
        made.insert_many(0, keys(), np.zeros(0, np.int32))


def test_a_key_is_refused_with_what_is_wrong_with_its_shape() -> None:
    made = Barrier("b", [dtypes.int32, dtypes.int32], [TensorShape([2]), TensorShape([None])])
    made.insert_many(1, keys(b"x"), np.zeros((1, 5), np.int32))
    with pytest.raises(errors.InvalidArgumentError, match=r"tuple component 2. Expected \[2\], got \[3\]"):
        made.insert_many(0, keys(b"x"), np.zeros((1, 3), np.int32))
    assert (made.ready_size, made.incomplete_size) == (0, 0)
    made.insert_many(0, keys(b"y"), np.zeros((1, 2), np.int32))
    with pytest.raises(errors.InvalidArgumentError, match=r"tuple component 3. Expected \[\?\], got \[\]"):
        made.insert_many(1, keys(b"y"), np.zeros(1, np.int32))


def test_values_are_copies() -> None:
    made, numbers = barrier(), np.array([1], np.int32)
    made.insert_many(0, keys(b"x"), numbers)
    numbers[:] = 9
    put(made, 1, b"x")
    assert made.take_many(1, allow_small_batch=False)[2].tolist() == [1]


def test_a_closed_barrier_gives_what_is_there_and_what_may_still_come() -> None:
    made = barrier()
    put(made, 0, b"x", b"y", b"z")
    put(made, 1, b"x")
    made.close(cancel_pending_enqueues=False)
    with pytest.raises(errors.OutOfRangeError, match=r"requested 4, total size 3"):
        made.take_many(4, allow_small_batch=False)
    waiting = told(made.take_many(3, allow_small_batch=False))
    put(made, 1, b"y")
    assert waiting == []
    put(made, 1, b"z")
    ((outputs, error),) = waiting
    assert (error, outputs[1].tolist()) == (None, [b"x", b"y", b"z"])
    for count in (0, 1):
        with pytest.raises(errors.OutOfRangeError, match=rf"requested {count}, total size 0"):
            made.take_many(count, allow_small_batch=False)


def test_a_small_batch_is_what_there_is_once_closed() -> None:
    made = barrier()
    put(made, 0, b"x", b"y", b"z")
    put(made, 1, b"x", b"y")
    made.close(cancel_pending_enqueues=False)
    assert taken(made, 5, allow_small_batch=True) == [(0, b"x"), (0, b"y")]
    with pytest.raises(errors.OutOfRangeError, match=r"requested 0, total size 0"):
        made.take_many(1, allow_small_batch=True)
    put(made, 1, b"z")
    assert taken(made, 1, allow_small_batch=True) == [(0, b"z")]


def test_who_waits_gets_a_small_batch_when_the_last_key_is_complete() -> None:
    made = barrier()
    put(made, 0, b"x")
    waiting = told(made.take_many(5, allow_small_batch=True))
    made.close(cancel_pending_enqueues=False)
    assert waiting == []
    put(made, 1, b"x")
    ((outputs, error),) = waiting
    assert (error, outputs[1].tolist()) == (None, [b"x"])


def test_no_elements_are_there_at_once_while_it_is_open() -> None:
    made = barrier()
    assert taken(made, 0) == []
    assert isinstance(made.take_many(1, allow_small_batch=True), Waiting)


def test_a_close_may_become_one_that_cancels() -> None:
    made = barrier()
    put(made, 0, b"x")
    made.close(cancel_pending_enqueues=False)
    with pytest.raises(errors.CancelledError, match="Barrier 'b' is already closed"):
        made.close(cancel_pending_enqueues=False)
    made.close(cancel_pending_enqueues=True)
    assert made.incomplete_size == 0
    for cancel in (True, False):
        with pytest.raises(errors.CancelledError, match="Barrier 'b' is already closed"):
            made.close(cancel_pending_enqueues=cancel)


def test_what_a_close_drops_is_not_counted_any_more() -> None:
    quota = StateQuota()
    made = Barrier("b", [dtypes.int32, dtypes.int32], [TensorShape([100])] * 2, quota.account("b"))
    made.insert_many(0, keys(b"x", b"y"), np.zeros((2, 100), np.int32))
    made.insert_many(1, keys(b"x"), np.zeros((1, 100), np.int32))
    assert quota.bytes == 400, "of y; what the queue of complete keys has is counted by large steps"
    made.close(cancel_pending_enqueues=False)
    assert quota.bytes == 400
    made.close(cancel_pending_enqueues=True)
    assert quota.bytes == 0


def test_values_that_are_too_large_are_refused_before_any_is_kept() -> None:
    quota = StateQuota(799)
    made = Barrier("b", [dtypes.int32, dtypes.int32], [TensorShape([100])] * 2, quota.account("b"))
    with pytest.raises(errors.ResourceExhaustedError, match="with 'b' what is kept would take 800 bytes"):
        made.insert_many(0, keys(b"x", b"y"), np.zeros((2, 100), np.int32))
    assert (made.incomplete_size, quota.bytes) == (0, 0)
