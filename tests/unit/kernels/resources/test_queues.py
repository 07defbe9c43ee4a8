"""Queues as machines: order, waiting in line, closing, and nothing lost or taken twice when a step gives up."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenfold_core import dtypes, errors
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.resources.queue_stores import FifoStore, PriorityStore, ShuffleStore
from tenfold_kernels.resources.queues import UNBOUNDED, Queue, shape_text, shapes_text, types_text
from tenfold_kernels.resources.quota import StateQuota
from tenfold_kernels.resources.waiting import Waiting

SCALAR = TensorShape([])


def fifo(capacity: int = -1, shapes: tuple[TensorShape, ...] | None = (SCALAR,)) -> Queue:
    return Queue("FIFOQueue", "q", [dtypes.int32], shapes, capacity, FifoStore())


def put(queue: Queue, value: int) -> Waiting | None:
    return queue.enqueue((np.array(value, np.int32),))


def put_many(queue: Queue, values: list[int]) -> Waiting | None:
    return queue.enqueue_many((np.array(values, np.int32),))


class Result:
    """What a Waiting has told so far."""

    def __init__(self, waiting: Any) -> None:
        assert isinstance(waiting, Waiting)
        self.waiting = waiting
        self.told: list[tuple[Any, errors.OpError | None]] = []
        waiting.listen(lambda outputs, error: self.told.append((outputs, error)))

    @property
    def value(self) -> Any:
        ((outputs, error),) = self.told
        assert error is None
        return outputs.tolist()

    @property
    def error(self) -> errors.OpError:
        ((_, error),) = self.told
        assert error is not None
        return error


def test_elements_leave_in_the_order_they_came() -> None:
    queue = fifo()
    put_many(queue, [1, 2, 3])
    assert [int(queue.dequeue()) for _ in range(3)] == [1, 2, 3]
    assert queue.size() == 0


def test_who_waits_is_served_in_line() -> None:
    queue = fifo()
    first, second = Result(queue.dequeue()), Result(queue.dequeue())
    put(queue, 1)
    assert (first.value, second.told) == (1, [])
    put(queue, 2)
    assert second.value == 2


def test_an_enqueue_waits_for_room() -> None:
    queue = fifo(capacity=1)
    put(queue, 1)
    waiting = Result(put(queue, 2))
    assert int(queue.dequeue()) == 1
    assert waiting.told == [(None, None)]
    assert int(queue.dequeue()) == 2


def test_batches_larger_than_the_queue_pass_through_it() -> None:
    queue = fifo(capacity=2)
    taker = Result(queue.dequeue_many(5))
    assert put_many(queue, [1, 2, 3, 4, 5, 6, 7]) is None
    assert taker.value == [1, 2, 3, 4, 5]
    assert queue.size() == 2


def test_a_batch_that_is_taken_makes_room_for_one_that_waits() -> None:
    queue = fifo(capacity=2)
    putter = put_many(queue, [1, 2, 3, 4, 5, 6, 7])
    assert putter is not None
    assert queue.dequeue_many(4).tolist() == [1, 2, 3, 4]
    taker = Result(queue.dequeue_many(4))
    assert not putter.is_open
    assert taker.told == []
    put(queue, 8)
    assert taker.value == [5, 6, 7, 8]


def test_a_cancelled_batch_gives_back_what_it_had() -> None:
    queue = fifo()
    put_many(queue, [1, 2])
    batch, single = Result(queue.dequeue_many(3)), Result(queue.dequeue())
    batch.waiting.cancel()
    assert single.value == 1
    assert int(queue.dequeue()) == 2
    assert batch.told == []


def test_a_cancelled_enqueue_leaves_the_line_to_the_next() -> None:
    queue = fifo(capacity=1)
    put(queue, 1)
    gone, stays = Result(put(queue, 2)), Result(put(queue, 3))
    gone.waiting.cancel()
    assert int(queue.dequeue()) == 1
    assert stays.told == [(None, None)]
    assert int(queue.dequeue()) == 3


def test_a_closed_queue_is_emptied_and_then_out_of_range() -> None:
    queue = fifo()
    put(queue, 1)
    queue.close()
    with pytest.raises(errors.CancelledError, match="FIFOQueue 'q' is closed"):
        put(queue, 2)
    assert int(queue.dequeue()) == 1
    wanted = r"FIFOQueue 'q' is closed and has insufficient elements \(requested 1, current size 0\)"
    with pytest.raises(errors.OutOfRangeError, match=wanted):
        queue.dequeue()


def test_closing_ends_those_who_wait_for_elements() -> None:
    queue = fifo()
    put(queue, 1)
    batch = Result(queue.dequeue_many(3))
    queue.close()
    assert "(requested 2, current size 0)" in batch.error.message
    assert int(queue.dequeue()) == 1


def test_a_close_waits_for_enqueues_that_came_before() -> None:
    queue = fifo(capacity=1)
    put(queue, 1)
    enqueue, close = Result(put(queue, 2)), Result(queue.close())
    late = Result(put(queue, 3))
    assert not queue.is_closed
    assert int(queue.dequeue()) == 1
    assert enqueue.told == close.told == [(None, None)]
    assert isinstance(late.error, errors.CancelledError)
    with pytest.raises(errors.CancelledError, match="Queue 'q' is already closed"):
        queue.close()


def test_a_close_can_cancel_enqueues() -> None:
    queue = fifo(capacity=1)
    put(queue, 1)
    enqueue = Result(put(queue, 2))
    queue.close(cancel_pending_enqueues=True)
    assert enqueue.error.message == "Enqueue operation was cancelled"
    assert int(queue.dequeue()) == 1


def test_up_to_takes_what_is_left_once_closed() -> None:
    queue = fifo()
    put_many(queue, [1, 2])
    taker = Result(queue.dequeue_many(5, allow_small=True))
    queue.close()
    assert taker.value == [1, 2]
    with pytest.raises(errors.OutOfRangeError):
        queue.dequeue_many(1, allow_small=True)


def test_what_is_taken_at_once_is_what_is_there() -> None:
    queue = fifo(capacity=3)
    put_many(queue, [1, 2, 3])
    fourth = Result(put(queue, 4))

    assert queue.dequeue_at_once(2).tolist() == [1, 2]
    assert fourth.told, "who waited for room goes on"
    assert queue.dequeue_at_once(9).tolist() == [3, 4]
    assert queue.dequeue_at_once(9).tolist() == []
    assert queue.dequeue_at_once(0).shape == (0,)
    put(queue, 5)
    assert queue.size() == 1
    with pytest.raises(errors.InvalidArgumentError, match="specified shapes"):
        fifo(shapes=None).dequeue_at_once(1)


def test_batches_need_shapes() -> None:
    with pytest.raises(errors.InvalidArgumentError, match="require the components to have specified shapes"):
        fifo(shapes=None).dequeue_many(1)


def test_shapes_are_held() -> None:
    with pytest.raises(errors.InvalidArgumentError, match=r"tuple component 0. Expected \[\], got \[2\]"):
        fifo().enqueue((np.zeros(2, np.int32),))


def test_padding_fills_with_zeros_and_empty_strings() -> None:
    types, shapes = [dtypes.int32, dtypes.string], (TensorShape([None]), TensorShape([None]))
    queue = Queue("PaddingFIFOQueue", "q", types, shapes, -1, FifoStore())
    queue.enqueue((np.array([1], np.int32), np.array([b"a", b"b"], object)))
    queue.enqueue((np.array([2, 3], np.int32), np.array([b"c"], object)))
    numbers, strings = queue.dequeue_many(2)
    assert numbers.tolist() == [[1, 0], [2, 3]]
    assert strings.tolist() == [[b"a", b"b"], [b"c", b""]]


def test_priorities_come_first_and_equals_in_order() -> None:
    queue = Queue("PriorityQueue", "q", [dtypes.int64, dtypes.int32], (SCALAR, SCALAR), -1, PriorityStore())
    priorities, values = np.array([2, 1, 2, 1], np.int64), np.array([0, 1, 2, 3], np.int32)
    queue.enqueue_many((priorities, values))
    assert [int(queue.dequeue()[1]) for _ in range(4)] == [1, 3, 0, 2]


def test_a_shuffle_keeps_some_until_it_is_closed() -> None:
    queue = Queue("RandomShuffleQueue", "q", [dtypes.int32], (SCALAR,), -1, ShuffleStore(2, 1, 2))
    put_many(queue, [1, 2, 3])
    taken = {int(queue.dequeue())}
    waiting = Result(queue.dequeue())
    assert waiting.told == []
    queue.close()
    taken |= {waiting.value, int(queue.dequeue())}
    assert taken == {1, 2, 3}


@given(
    st.integers(1, 4),
    st.lists(
        st.one_of(
            st.tuples(st.just("put"), st.integers(1, 3)),
            st.tuples(st.just("take"), st.integers(1, 3)),
            st.tuples(st.just("cancel"), st.integers(0, 30)),
        ),
        max_size=40,
    ),
)
def test_nothing_is_lost_doubled_or_reordered(capacity: int, actions: list[tuple[str, int]]) -> None:
    """Whatever is put, taken and given up: takers get what went in, each once, in order, and all of what is in."""
    queue = fifo(capacity)
    number = 0
    waiting: list[Waiting] = []
    taken: list[int] = []
    inside: set[int] = set()

    def put_now() -> None:
        nonlocal number
        values = list(range(number, number + count))
        number += count

        def went_in(_: Any, error: errors.OpError | None) -> None:
            inside.update(() if error else values)

        listen(put_many(queue, values), went_in)

    def took(outputs: Any, error: errors.OpError | None) -> None:
        taken.extend(() if error else outputs.tolist())

    def listen(result: Any, done: Any) -> None:
        if isinstance(result, Waiting):
            result.listen(done)
            waiting.append(result)
        else:
            done(result, None)

    for verb, count in actions:
        if verb == "put":
            put_now()
        elif verb == "take":
            listen(queue.dequeue_many(count), took)
        elif waiting:
            waiting[count % len(waiting)].cancel()
    queue.close(cancel_pending_enqueues=True)
    while queue.size():
        taken.append(int(queue.dequeue()))

    assert taken == sorted(set(taken))
    assert inside <= set(taken)


def test_threads_that_give_up_lose_nothing() -> None:
    """Takers are cancelled while elements come from another thread: each element ends up in one place."""
    queue, count = fifo(), 2000
    got: list[int] = []
    takers = [Result(queue.dequeue()) for _ in range(count)]
    feeder = threading.Thread(target=lambda: [put(queue, value) for value in range(count)])
    feeder.start()
    for taker in takers[::2]:
        taker.waiting.cancel()
    feeder.join()
    for taker in takers:
        got.extend(outputs.tolist() for outputs, _ in taker.told)
    lost_to_cancelled = count - len(got) - queue.size()
    while queue.size():
        got.append(int(queue.dequeue()))

    assert len(got) == len(set(got))
    # an element may have been claimed for a step that ended right then; it is never handed to two
    assert 0 <= lost_to_cancelled <= len(takers[::2])


# -- edges: counts, room, closing, accounts ----------------------------------------------------------------------------


def test_a_queue_of_no_room_takes_nothing_and_one_of_negative_room_anything() -> None:
    assert Result(put(fifo(capacity=0), 1)).told == []
    assert fifo(capacity=-1).capacity == UNBOUNDED == 2**31 - 1


def test_batches_of_none_never_wait() -> None:
    queue = fifo(capacity=1)
    put(queue, 1)
    assert put_many(queue, []) is None
    waiting = Result(queue.dequeue_many(2))
    assert queue.dequeue_many(0).shape == (0,)
    assert waiting.told == []
    queue.close()
    assert put_many(queue, []) is None
    assert queue.dequeue_many(0).shape == (0,)


def test_several_components_are_a_tuple_and_one_is_itself() -> None:
    queue = Queue("FIFOQueue", "q", [dtypes.int32, dtypes.int32], (SCALAR, SCALAR), -1, FifoStore())
    queue.enqueue_many((np.array([1, 2], np.int32), np.array([3, 4], np.int32)))
    assert [int(each) for each in queue.dequeue()] == [1, 3]
    assert [each.tolist() for each in queue.dequeue_many(1)] == [[2], [4]]
    assert [each.tolist() for each in queue.dequeue_many(0)] == [[], []]


def test_components_of_a_batch_are_of_one_length() -> None:
    types = [dtypes.int32, dtypes.int32]
    one, two = np.zeros(1, np.int32), np.zeros(2, np.int32)
    bare = Queue("FIFOQueue", "q", types, None, -1, FifoStore())
    text = r"same size in the 0th dimension. Component 1 has 1, and should have 2"
    with pytest.raises(errors.InvalidArgumentError, match=text):
        bare.enqueue_many((two, one))
    bare.enqueue((two, one))
    with pytest.raises(errors.InvalidArgumentError, match="EnqueueMany needs components with a 0th dimension"):
        bare.enqueue_many((two, np.zeros((), np.int32)))
    shaped = Queue("FIFOQueue", "q", types, (SCALAR, TensorShape([3])), -1, FifoStore())
    with pytest.raises(errors.InvalidArgumentError, match=r"component 1. Expected \[2,3\], got \[2,2\]"):
        shaped.enqueue_many((two, np.zeros((2, 2), np.int32)))
    with pytest.raises(errors.InvalidArgumentError, match=r"component 1. Expected \[2,3\], got \[1,3\]"):
        shaped.enqueue_many((two, np.zeros((1, 3), np.int32)))
    with pytest.raises(errors.InvalidArgumentError, match=r"component 0. Expected \[\], got \[2\]"):
        shaped.enqueue((two, np.zeros(3, np.int32)))
    shaped.enqueue_many((two, np.zeros((2, 3), np.int32)))
    assert (bare.size(), shaped.size()) == (1, 2)


def test_an_empty_queue_says_what_is_missing() -> None:
    queue = fifo()
    put(queue, 1)
    lack = queue.dequeue_many(3).lack()
    assert lack == ("elements", queue.name, 1, 3, "there are 0 elements, too few for it", 0)


def test_a_full_queue_says_how_much_fits() -> None:
    full = fifo(capacity=1)
    put(full, 1)
    assert Result(put(full, 2)).waiting.lack() == ("room", full.name, 1, 1, "it holds 1 of 1 elements", 0)


def test_an_enqueue_to_a_closed_queue_is_refused_at_once() -> None:
    queue = fifo(capacity=1)
    put(queue, 1)
    queue.close()
    for enqueue in (lambda: put(queue, 2), lambda: put_many(queue, [2, 3])):
        with pytest.raises(errors.CancelledError, match=r"^FIFOQueue 'q' is closed\.$"):
            enqueue()
    assert queue.size() == 1


def test_a_close_that_cancels_ends_both_lines() -> None:
    full = fifo(capacity=1)
    put(full, 1)
    gone, stays, close = Result(put(full, 2)), Result(put_many(full, [3, 4])), Result(full.close())
    gone.waiting.cancel()
    assert full.close(cancel_pending_enqueues=True) is None
    assert full.is_closed
    assert gone.told == []
    assert [type(each.error) for each in (stays, close)] == [errors.CancelledError] * 2
    empty = fifo()
    taker = Result(empty.dequeue())
    empty.close(cancel_pending_enqueues=True)
    assert taker.error.message.endswith("(requested 1, current size 0)")
    empty.close(cancel_pending_enqueues=True)


def test_a_batch_that_fails_says_what_it_still_wanted_and_gives_back() -> None:
    queue = fifo()
    put_many(queue, [1, 2])
    first, second = Result(queue.dequeue_many(4)), Result(queue.dequeue_many(2, allow_small=True))
    queue.close()
    assert first.error.message.endswith("(requested 2, current size 0)")
    assert second.value == [1, 2]


def test_up_to_takes_all_that_it_wants_before_the_queue_is_closed() -> None:
    queue = fifo()
    put_many(queue, [1, 2, 3])
    assert queue.dequeue_many(2, allow_small=True).tolist() == [1, 2]
    waiting = Result(queue.dequeue_many(2, allow_small=True))
    put(queue, 4)
    assert waiting.value == [3, 4]


def test_a_priority_batch_is_taken_as_a_whole() -> None:
    queue = Queue("PriorityQueue", "q", [dtypes.int64], (SCALAR,), -1, PriorityStore())
    queue.enqueue((np.array(5),))
    waiting = Result(queue.dequeue_many(2))
    assert queue.size() == 1, "else the batch would not be in order"
    queue.enqueue((np.array(3),))
    assert waiting.value == [3, 5]


def test_a_shuffled_batch_leaves_so_many_behind() -> None:
    queue = Queue("RandomShuffleQueue", "q", [dtypes.int32], (SCALAR,), -1, ShuffleStore(2, 1, 2))
    put_many(queue, [1, 2, 3, 4])
    waiting = Result(queue.dequeue_many(3))
    assert queue.size() == 2
    queue.close()
    assert len(waiting.value) == 3
    assert queue.size() == 1
    with pytest.raises(errors.OutOfRangeError, match=r"requested 2, current size 1"):
        queue.dequeue_many(2)
    assert queue.dequeue_many(2, allow_small=True).shape == (1,)


class GivesUpLate:
    """A step that still waits when it is looked at, and has ended when it is to be served."""

    is_open = True
    why = None

    def claim(self) -> bool:
        return False


@pytest.mark.parametrize(
    "ask",
    [
        pytest.param(lambda queue: queue.dequeue(), id="dequeue"),
        pytest.param(lambda queue: queue.dequeue_many(2), id="dequeue many"),
    ],
)
@pytest.mark.parametrize("is_closed", [False, True])
def test_a_taker_that_ends_at_the_last_moment_leaves_all_to_the_next(ask: Any, is_closed: bool) -> None:
    queue = fifo()
    gone = Result(ask(queue))
    (attempt,) = queue._dequeues
    attempt.waiting = GivesUpLate()  # type: ignore[assignment]
    following = Result(queue.dequeue_many(2))
    if is_closed:
        put(queue, 1)
        queue.close()
        assert isinstance(following.error, errors.OutOfRangeError)
        assert int(queue.dequeue()) == 1
    else:
        put_many(queue, [1, 2])
        assert following.value == [1, 2]
    assert gone.told == []
    assert not queue._dequeues


@pytest.mark.parametrize(
    "ask",
    [
        pytest.param(lambda queue: put(queue, 2), id="enqueue"),
        pytest.param(lambda queue: put_many(queue, [2]), id="enqueue many"),
        pytest.param(lambda queue: queue.close(), id="close"),
    ],
)
def test_one_that_ends_at_the_last_moment_puts_nothing_in(ask: Any) -> None:
    queue = fifo(capacity=1)
    put(queue, 1)
    stands_before = Result(put(queue, 7))
    gone = Result(ask(queue))
    attempt = list(queue._enqueues)[1]
    attempt.waiting = GivesUpLate()  # type: ignore[assignment]
    following = Result(put(queue, 3))
    assert [int(queue.dequeue()) for _ in range(3)] == [1, 7, 3]
    assert stands_before.told == following.told == [(None, None)]
    assert (gone.told, queue.is_closed) == ([], False)


def test_one_that_ends_before_a_close_is_passed_over() -> None:
    queue = fifo(capacity=1)
    put(queue, 1)
    waits = Result(put_many(queue, [2, 3]))
    waits.waiting.cancel()
    close = queue.close()
    assert close is None
    assert queue.is_closed


def large(count: int) -> tuple[np.ndarray[Any, Any]]:
    return (np.zeros(count, np.int8),)


def bytes_queue(quota: StateQuota) -> Queue:
    return Queue("FIFOQueue", "q", [dtypes.int8], None, -1, FifoStore(), quota.queue_account("q"))


@pytest.mark.parametrize(("size", "charged"), [((64 << 10) - 1, 0), (64 << 10, 64 << 10)])
def test_an_account_is_charged_by_large_steps(size: int, charged: int) -> None:
    quota = StateQuota()
    queue = bytes_queue(quota)
    queue.enqueue(large(size))
    assert quota.bytes == charged
    queue.dequeue()
    assert quota.bytes == 0


def test_what_goes_back_is_charged_again() -> None:
    quota = StateQuota()
    queue = Queue("FIFOQueue", "q", [dtypes.int8], (TensorShape([1 << 16]),), -1, FifoStore(), quota.queue_account("q"))
    queue.enqueue(large(1 << 16))
    batch = Result(queue.dequeue_many(2))
    assert quota.bytes == 0
    batch.waiting.cancel()
    assert quota.bytes == 1 << 16


def test_what_is_not_charged_yet_counts_for_what_comes() -> None:
    queue = bytes_queue(StateQuota(100))
    queue.enqueue(large(60))
    with pytest.raises(errors.ResourceExhaustedError, match="with 'q' what is kept would take 101 bytes"):
        queue.enqueue(large(41))
    with pytest.raises(errors.ResourceExhaustedError, match="with 'q' what is kept would take 101 bytes"):
        queue.enqueue_many(large(41))
    queue.enqueue_many(large(40))
    assert queue.size() == 41


@pytest.mark.parametrize(
    ("shape", "text"),
    [(None, "<unknown>"), ([], "[]"), ([2, None], "[2,?]"), ([3], "[3]")],
)
def test_shapes_and_types_in_errors(shape: Any, text: str) -> None:
    assert shape_text(TensorShape(shape)) == text
    assert shapes_text([TensorShape(shape), TensorShape([1])]) == f"[{text}, [1]]"
    assert shapes_text(None) == "[]"
    assert types_text([dtypes.float32, dtypes.int32]) == "[float, int32]"
