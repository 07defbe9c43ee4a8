"""Coordinator, LooperThread and QueueRunner: stopping together, the first error, and threads that do not end."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

import tenfold as tf
from tenfold_protos import queue_runner_pb2

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: Seconds for anything to happen that should.
PATIENCE = 20.0


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as graph:
        yield graph


def started(target: Callable[..., Any], *args: Any) -> threading.Thread:
    thread = threading.Thread(target=target, args=args, daemon=True)
    thread.start()
    return thread


def fails_in(coord: tf.train.Coordinator, error: BaseException) -> None:
    with coord.stop_on_exception():
        raise error


def test_a_stop_is_seen_by_all_and_can_be_cleared() -> None:
    coord = tf.train.Coordinator()
    assert not coord.should_stop()
    assert not coord.wait_for_stop(0.0)
    waits = started(coord.wait_for_stop)

    coord.request_stop()
    waits.join(PATIENCE)

    assert coord.should_stop()
    assert not waits.is_alive()
    coord.join()
    assert coord.joined
    coord.clear_stop()
    assert not coord.should_stop()
    assert not coord.joined


def test_join_waits_for_registered_and_for_given_threads() -> None:
    coord, gate = tf.train.Coordinator(), threading.Event()
    first, second = started(gate.wait, PATIENCE), started(gate.wait, PATIENCE)
    coord.register_thread(first)
    joined = started(coord.join, [second])
    assert joined.is_alive()

    gate.set()
    joined.join(PATIENCE)

    assert not joined.is_alive()
    assert not first.is_alive()
    assert not coord.should_stop(), "the threads ended by themselves"


def test_a_thread_that_does_not_end_is_named() -> None:
    coord, gate = tf.train.Coordinator(), threading.Event()
    stuck = threading.Thread(target=gate.wait, args=(PATIENCE,), name="stuck-one", daemon=True)
    stuck.start()
    coord.request_stop()
    with pytest.raises(RuntimeError, match="Coordinator stopped with threads still running: stuck-one"):
        coord.join([stuck], stop_grace_period_secs=0.05)
    coord.clear_stop()
    coord.request_stop()
    coord.join([stuck], stop_grace_period_secs=0.05, ignore_live_threads=True)
    gate.set()
    stuck.join(PATIENCE)


def test_the_first_error_is_raised_by_join() -> None:
    coord = tf.train.Coordinator()
    started(fails_in, coord, RuntimeError("first")).join(PATIENCE)
    started(fails_in, coord, RuntimeError("second")).join(PATIENCE)
    with pytest.raises(RuntimeError, match="first"):
        coord.raise_requested_exception()
    with pytest.raises(RuntimeError, match="first"):
        coord.join()


def test_the_triple_of_exc_info_is_a_reason_too() -> None:
    coord = tf.train.Coordinator()
    try:
        raise KeyError("where")
    except KeyError:
        coord.request_stop(sys.exc_info())
    with pytest.raises(KeyError, match="where"):
        coord.join()


def test_the_end_of_the_input_is_no_error_unless_said_otherwise() -> None:
    coord = tf.train.Coordinator()
    fails_in(coord, tf.errors.OutOfRangeError(None, None, "end"))
    coord.join()
    strict = tf.train.Coordinator(clean_stop_exception_types=[])
    fails_in(strict, tf.errors.OutOfRangeError(None, None, "end"))
    with pytest.raises(tf.errors.OutOfRangeError):
        strict.join()
    lenient = tf.train.Coordinator(clean_stop_exception_types=(ValueError,))
    fails_in(lenient, ValueError("fine"))
    lenient.join()


def test_a_reason_after_join_is_raised_at_once() -> None:
    coord = tf.train.Coordinator()
    coord.request_stop()
    coord.join()
    coord.request_stop()
    with pytest.raises(RuntimeError, match="late"):
        coord.request_stop(RuntimeError("late"))


class Loops(tf.train.LooperThread):
    """Notes what is called; asks for a stop in its third round."""

    def __init__(self, coord: tf.train.Coordinator, seconds: float | None) -> None:
        super().__init__(coord, seconds)
        self.calls: list[str] = []
        self.stops = coord

    def start_loop(self) -> None:
        self.calls.append("start")

    def run_loop(self) -> None:
        self.calls.append("run")
        if self.calls.count("run") == 3:
            self.stops.request_stop()

    def stop_loop(self) -> None:
        self.calls.append("stop")


@pytest.mark.parametrize("seconds", [None, 0.001])
def test_a_looper_runs_until_the_stop(seconds: float | None) -> None:
    coord = tf.train.Coordinator()
    looper = Loops(coord, seconds)
    looper.start()
    coord.join()
    assert looper.calls == ["start", "run", "run", "run", "stop"]


def test_a_loopers_target_and_its_error() -> None:
    coord, seen = tf.train.Coordinator(), []

    def target(word: str, *, count: int) -> None:
        seen.append((word, count))
        raise ValueError(word)

    tf.train.LooperThread.loop(coord, None, target, args=("x",), kwargs={"count": 2})
    with pytest.raises(ValueError, match="x"):
        coord.join()
    assert seen == [("x", 2)]
    with pytest.raises(ValueError, match="'coord' argument must be a Coordinator"):
        tf.train.LooperThread(None, 1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="require that you also pass 'target'"):
        tf.train.LooperThread(coord, 1, args=(1,))


class TestQueueRunner:
    def test_it_fills_until_the_queue_is_closed_and_closes_with_the_last_thread(self) -> None:
        source = tf.FIFOQueue(10, tf.int32, shapes=())
        out = tf.FIFOQueue(10, tf.int32, shapes=())
        enqueue = out.enqueue(source.dequeue())
        runner = tf.train.QueueRunner(out, [enqueue, enqueue])
        with tf.Session() as session:
            threads = runner.create_threads(session, start=True)
            assert runner.create_threads(session) == [], "they run already"
            session.run([source.enqueue_many([[1, 2, 3]])])
            session.run(source.close())
            got = sorted(session.run(out.dequeue()) for _ in range(3))
            with pytest.raises(tf.errors.OutOfRangeError):
                session.run(out.dequeue())
            for thread in threads:
                thread.join(PATIENCE)
        assert got == [1, 2, 3]
        assert runner.exceptions_raised == []

    def test_a_stop_frees_those_that_wait(self) -> None:
        full = tf.FIFOQueue(1, tf.int32, shapes=())
        tf.train.add_queue_runner(tf.train.QueueRunner(full, [full.enqueue(1)]))
        coord = tf.train.Coordinator()
        with tf.Session() as session:
            threads = tf.train.start_queue_runners(session, coord)
            assert session.run(full.dequeue()) == 1
            coord.request_stop()
            coord.join(threads, stop_grace_period_secs=PATIENCE)
        assert len(threads) == 2

    def test_an_error_reaches_the_coordinator(self) -> None:
        queue = tf.FIFOQueue(1, tf.float32, shapes=())
        never = tf.get_variable("never", shape=())
        runner = tf.train.QueueRunner(queue, [queue.enqueue(never)])
        coord = tf.train.Coordinator()
        with tf.Session() as session:
            threads = runner.create_threads(session, coord, daemon=True, start=True)
            with pytest.raises(tf.errors.FailedPreconditionError, match="never"):
                coord.join(threads, stop_grace_period_secs=PATIENCE)

    def test_as_a_message(self) -> None:
        queue = tf.FIFOQueue(1, tf.int32, shapes=(), name="queue")
        closed = (tf.errors.OutOfRangeError, tf.errors.CancelledError)
        runner = tf.train.QueueRunner(queue, [queue.enqueue(1)], queue_closed_exception_types=closed)

        message = runner.to_proto()
        assert isinstance(message, queue_runner_pb2.QueueRunnerDef)
        again = tf.train.QueueRunner.from_proto(message)

        assert again.to_proto() == message
        assert (again.name, again.queue_closed_exception_types) == ("queue", closed)
        assert runner.to_proto(export_scope="elsewhere") is None

    def test_what_it_refuses(self) -> None:
        queue = tf.FIFOQueue(1, tf.int32, shapes=())
        with pytest.raises(ValueError, match="Must provide queue and enqueue_ops"):
            tf.train.QueueRunner(queue, [])
        with pytest.raises(TypeError, match=r"must be a tuple of tf\.error types"):
            tf.train.QueueRunner(queue, [queue.enqueue(1)], queue_closed_exception_types=[1])  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="No default session"):
            tf.train.start_queue_runners()
        with pytest.raises(TypeError, match=r"must be a `tf\.Session` object"):
            tf.train.start_queue_runners("nothing")


def test_a_loop_that_fails_says_so_at_once(caplog: pytest.LogCaptureFixture) -> None:
    coord = tf.train.Coordinator()

    def fail() -> None:
        raise ValueError("the disk is full")

    tf.train.LooperThread.loop(coord, 0.01, fail).join(20)

    assert coord.should_stop()
    assert "LooperThread has failed, and asks all others to stop: ValueError('the disk is full')" in caplog.text
    with pytest.raises(ValueError, match="the disk is full"):
        coord.join()


def test_a_loop_that_ends_in_order_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    coord = tf.train.Coordinator()

    def end() -> None:
        raise tf.errors.OutOfRangeError(None, None, "all is read")

    tf.train.LooperThread.loop(coord, 0.01, end).join(20)

    assert coord.should_stop()
    assert "has failed" not in caplog.text
