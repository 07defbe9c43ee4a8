"""Steps that wait for kernels on their caller's thread: they take no other way, and end when their session does."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest

import tenfold as tf
from tenfold_core import errors
from tenfold_services.master import caller_own_steps
from tenfold_services.master.arrangement import Part
from tenfold_services.master.caller_graph import CallerGraph
from tenfold_services.master.caller_own_steps import CallerWaitingStep
from tenfold_services.master.caller_steps import CallerSteps
from tenfold_services.master.run_table import RunTable
from tenfold_services.worker.part_run import DONE
from tenfold_services.worker.run_policy import CALLER

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_services.master.caller_graph import CallerStep
    from tenfold_services.master.caller_steps import SessionSteps

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


# -- a step by itself --------------------------------------------------------------------------------------------------

TASK = "/job:worker/replica:0/task:0"


class Run:
    """In place of PartRun: `turns` says how each turn ends, True for the end of the run, or an error."""

    def __init__(self, program: Any, feeds: Any, send: Any) -> None:
        self.feeds, self.send = feeds, send
        self.turns: list[Any] = list(program.turns)
        self.where: list[int] = []
        self.wake: Any = None
        self.stop: list[bool] = []
        self.failed: list[errors.OpError] = []
        self.ended = 0
        #: Called in each turn.
        self.meanwhile = program.meanwhile
        program.runs.append(self)

    def turn(self, where: int) -> int:
        self.where.append(where)
        self.meanwhile(self)
        done = self.turns.pop(0)
        if isinstance(done, Exception):
            raise done
        return DONE if done else DONE + 1

    def fail(self, error: errors.OpError) -> None:
        self.failed.append(error)

    def fetched(self) -> dict[str, Any]:
        return {"a": 1.0, "b": 2.0}

    def end(self) -> None:
        assert self.wake is None
        self.ended += 1


class Program:
    """As the runs above take it."""

    def __init__(self, *turns: Any, meanwhile: Callable[[Run], object] = lambda run: None) -> None:
        self.turns, self.meanwhile = turns, meanwhile
        self.runs: list[Run] = []


def waiting_step(program: Program, monkeypatch: pytest.MonkeyPatch) -> tuple[CallerStep, SessionSteps]:
    """Fetches b and a, in this order, and is fed with what nothing needs and x."""
    monkeypatch.setattr(caller_own_steps, "PartRun", Run)
    session = CallerSteps(TASK).open("h", None, RunTable())
    part = Part(TASK, {"x:0": "key of x"}, {"a:0": "a", "b:0": "b"})
    graph = CallerGraph(session, CallerWaitingStep, part, cast("Any", program))
    step = graph.step(("y:0", "x:0"), ("b:0", "a:0"))
    assert step is not None
    assert (step.may_wait, step.is_short([1, 2]), step.run_timed([1, 2])) == (True, False, None)
    return step, session


async def test_a_step_takes_its_turns_until_it_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    def meanwhile(run: Run) -> None:
        assert [each.part_run for each in session.linked] == [run]
        assert len(session.running) == 1
        run.wake()

    program = Program(False, False, True, meanwhile=meanwhile)
    step, session = waiting_step(program, monkeypatch)

    assert step.run([7, 8]) == [2.0, 1.0]

    (run,) = program.runs
    assert run.feeds == {"key of x": 8}
    assert run.where == [CALLER] * 3
    assert run.ended == 1
    assert session.steps == 1
    assert session.linked == set()
    assert session.running == set()
    assert step._graph.used
    with pytest.raises(AssertionError, match=r"a program that sends \(k\) is not run by its caller"):
        run.send("k", 1.0, False)


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (errors.out_of_range("empty"), errors.OutOfRangeError, f"From {TASK}:\nempty"),
        (ZeroDivisionError("by nought"), errors.InternalError, f"From {TASK}:\n{TASK}: ZeroDivisionError: by nought"),
    ],
)
async def test_a_step_fails_with_its_task(
    monkeypatch: pytest.MonkeyPatch, error: Exception, kind: type[errors.OpError], text: str
) -> None:
    program = Program(error)
    step, session = waiting_step(program, monkeypatch)

    with pytest.raises(kind) as caught:
        step.run([7, 8])

    assert caught.value.message == text
    assert program.runs[0].ended == 1
    assert session.linked == set()
    assert session.running == set()


async def test_a_step_whose_session_ends_wakes_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    program = Program(False, meanwhile=lambda run: session.interrupt(errors.aborted("closed")))
    step, session = waiting_step(program, monkeypatch)

    with pytest.raises(errors.AbortedError) as caught:
        step.run([7, 8])

    assert caught.value.message == "closed"
    (run,) = program.runs
    assert run.where == [CALLER], "no turn after the end"
    assert run.stop == [True]
    assert [(error.code, error.message) for error in run.failed] == [(errors.CANCELLED, "Step was cancelled.")]
    assert run.ended == 1


async def test_a_step_that_has_ended_is_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    program = Program(True)
    step, session = waiting_step(program, monkeypatch)
    step.end()

    assert step.run([7, 8]) is None

    assert program.runs == []
    assert session.steps == 0
    assert session.running == set()
    assert not step._graph.used
