"""Steps that wait for kernels on their caller's thread: they take no other way, and end when their session does."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf
from tenfold_services.master import caller_own_steps

if TYPE_CHECKING:
    from collections.abc import Callable

SECONDS = 20


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> threading.Semaphore:
    """Counts up each time that a step is about to sleep."""
    entered = threading.Semaphore(0)

    class Observed(caller_own_steps.SimpleQueue):  # type: ignore[type-arg]
        def get(self, *args: Any) -> Any:
            entered.release()
            return super().get(*args)

    monkeypatch.setattr(caller_own_steps, "SimpleQueue", Observed)
    return entered


def in_thread(work: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    """Runs `work` on a thread; what it gave, or raised."""
    found: list[Any] = []

    def run() -> None:
        try:
            found.append(work())
        except Exception as error:
            found.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, found


@pytest.fixture
def queue() -> Any:
    with tf.Graph().as_default():
        yield tf.FIFOQueue(4, tf.float32, shapes=[[]])


def test_a_dequeue_sleeps_until_an_element_comes(queue: Any, waits: threading.Semaphore) -> None:
    x = tf.placeholder(tf.float32, [])
    put, doubled = queue.enqueue(x), queue.dequeue() * 2
    with tf.Session() as sess:
        # the first step of a signature goes by the event loop, and offers its graph
        sess.run(put, {x: 1})
        assert sess.run(doubled) == 2
        thread, found = in_thread(lambda: sess.run(doubled))

        assert waits.acquire(timeout=SECONDS)
        sess.run(put, {x: 5})
        thread.join(SECONDS)

        assert found == [10]


def test_closing_the_session_ends_a_step_that_waits(queue: Any, waits: threading.Semaphore) -> None:
    value = queue.dequeue()
    put = queue.enqueue(3.0)
    sess = tf.Session()
    sess.run(put)
    assert sess.run(value) == 3
    thread, found = in_thread(lambda: sess.run(value))
    assert waits.acquire(timeout=SECONDS)

    sess.close()
    thread.join(SECONDS)

    assert isinstance(found[0], tf.errors.CancelledError)


def test_closing_the_queue_ends_it_as_elsewhere(queue: Any, waits: threading.Semaphore) -> None:
    value, close = queue.dequeue(), queue.close()
    put = queue.enqueue(3.0)
    with tf.Session() as sess:
        sess.run(put)
        assert sess.run(value) == 3
        thread, found = in_thread(lambda: sess.run(value))
        assert waits.acquire(timeout=SECONDS)

        sess.run(close)
        thread.join(SECONDS)

        assert isinstance(found[0], tf.errors.OutOfRangeError)
        assert "is closed and has insufficient elements" in str(found[0])
        with pytest.raises(tf.errors.OutOfRangeError):
            sess.run(value)


def test_many_threads_wait_at_once(queue: Any, waits: threading.Semaphore) -> None:
    x = tf.placeholder(tf.float32, [])
    put, value = queue.enqueue(x), queue.dequeue()
    with tf.Session() as sess:
        sess.run(put, {x: 0})
        sess.run(value)
        started = [in_thread(lambda: sess.run(value)) for _ in range(8)]
        for _ in started:
            assert waits.acquire(timeout=SECONDS)

        for number in range(8):
            sess.run(put, {x: number})
        for thread, _ in started:
            thread.join(SECONDS)

        assert sorted(float(found[0]) for _, found in started) == list(range(8))


def test_an_error_of_a_kernel_is_the_step_s(queue: Any) -> None:
    x = tf.placeholder(tf.float32, [None])
    bad = tf.check_numerics(queue.dequeue() + x, "not a number")
    put = queue.enqueue(3.0)
    with tf.Session() as sess:
        for _ in range(3):
            sess.run(put)
        np.testing.assert_array_equal(sess.run(bad, {x: [1]}), [4])
        np.testing.assert_array_equal(sess.run(bad, {x: [1, 2]}), [4, 5])
        with pytest.raises(tf.errors.InvalidArgumentError, match="not a number"):
            sess.run(bad, {x: [np.nan]})


def test_a_session_with_a_time_for_each_step_keeps_to_the_event_loop(queue: Any, waits: threading.Semaphore) -> None:
    value = queue.dequeue()
    with tf.Session(config=tf.ConfigProto(operation_timeout_in_ms=50)) as sess:
        for _ in range(2):
            with pytest.raises(tf.errors.DeadlineExceededError):
                sess.run(value)

    assert not waits.acquire(blocking=False)
