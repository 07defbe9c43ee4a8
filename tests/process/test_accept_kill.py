"""Accepted when: `kill -9` of a worker during a step gives the client UnavailableError or AbortedError naming the task
within 5 s, and the other worker's session goes on.

test_tasks_die.py holds the killed task still first; here nothing is held that dies. Two cases more than there: clients
of three masters lose one worker in the middle of their loops, and a client's own master dies while its step runs.

    on ps:0     ──► ps:0, worker:1   hears of it from its master
    on worker:0 ──► ps:0, worker:0   goes on
    on worker:1 ──► ps:0, worker:1   hears of it from the connection
"""

from __future__ import annotations

import signal
import threading
import time
from typing import TYPE_CHECKING

import pytest

import tenfold as tf
from support.task_processes import NEWS_SECONDS, PATIENCE, Tasks, static_cluster, task_name

if TYPE_CHECKING:
    from collections.abc import Iterator

VICTIM = ("worker", 1)
LOST = (tf.errors.UnavailableError, tf.errors.AbortedError)


@pytest.fixture
def tasks() -> Iterator[Tasks]:
    with static_cluster(ps=1, worker=2) as tasks:
        yield tasks


class Loop:
    """A client that runs steps of worker `index` and the ps, through one task's master, until one fails or `stop`."""

    def __init__(self, target: str, index: int) -> None:
        with tf.Graph().as_default() as graph:
            with tf.device("/job:ps/task:0"):
                counter = tf.Variable(0, name=f"counter_{target[-5:].replace(':', '')}_{index}")
                self._add = tf.assign_add(counter, 1)
            with tf.device(f"/job:worker/task:{index}"):
                self._double = tf.multiply(self._add, 2)
        self._session = tf.Session(target, graph=graph)
        self._init = counter.initializer
        self._thread = threading.Thread(target=self._run)
        self._stopping = threading.Event()
        self._changed = threading.Condition()
        self.steps = 0
        self.error: BaseException | None = None
        self.ended = 0.0

    def start(self) -> None:
        self._session.run(self._init)
        self._thread.start()

    def wait_for_steps(self, more: int) -> None:
        """Returns once it has made so many steps more, or ended."""
        with self._changed:
            wanted = self.steps + more
            assert self._changed.wait_for(lambda: self.steps >= wanted or self.error is not None, PATIENCE)

    def end(self) -> None:
        """Waits for its end, without asking for it."""
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()

    def stop(self) -> None:
        self._stopping.set()
        self.end()
        self._session.close()

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                value = self._session.run(self._double)
                with self._changed:
                    self.steps += 1
                    assert value == 2 * self.steps
                    self._changed.notify_all()
        except BaseException as error:
            with self._changed:
                self.ended = time.monotonic()
                self.error = error
                self._changed.notify_all()


@pytest.mark.thorough
def test_clients_of_three_masters_lose_one_worker(tasks: Tasks) -> None:
    through_ps = Loop(tasks.target("ps", 0), index=1)
    goes_on = Loop(tasks.target("worker", 0), index=0)
    through_victim = Loop(tasks.target(*VICTIM), index=1)
    loops = (through_ps, goes_on, through_victim)
    try:
        for loop in loops:
            loop.start()
        for loop in loops:
            loop.wait_for_steps(20)

        killed = time.monotonic()
        tasks.kill(*VICTIM)

        for loop in (through_ps, through_victim):
            loop.end()
            assert isinstance(loop.error, LOST), loop.error
            assert task_name(*VICTIM) in str(loop.error)
            assert loop.ended - killed < NEWS_SECONDS
        goes_on.wait_for_steps(200)
        assert goes_on.error is None
    finally:
        for loop in loops:
            loop.stop()


def test_the_clients_own_master_dies_while_its_step_runs(tasks: Tasks) -> None:
    """The step is held by worker 0, which stands still; that it has begun shows on the ps."""
    with tf.Graph().as_default() as graph:
        with tf.device("/job:ps/task:0"):
            begun = tf.Variable(0, name="begun")
            begin = tf.assign_add(begun, 1)
        with tf.device("/job:worker/task:0"):
            held = tf.add(tf.placeholder_with_default([1.0], [1]), 1.0)
    caught: list[tuple[BaseException, float]] = []

    def step() -> None:
        try:
            doomed.run([begin, held])
        except tf.errors.OpError as error:
            caught.append((error, time.monotonic()))

    with (
        tf.Session(tasks.target(*VICTIM), graph=graph) as doomed,
        tf.Session(tasks.target("ps", 0), graph=graph) as watch,
    ):
        watch.run(begun.initializer)
        doomed.run([begin, held])
        tasks.stop("worker", 0)
        try:
            running = threading.Thread(target=step)
            running.start()
            while watch.run(begun) == 1:
                pass
            killed = time.monotonic()
            tasks.kill(*VICTIM)
            running.join(PATIENCE)
        finally:
            tasks.signal("worker", 0, signal.SIGCONT)

        ((error, told),) = caught
        assert isinstance(error, LOST), error
        assert task_name(*VICTIM) in str(error)
        assert told - killed < NEWS_SECONDS
        assert watch.run(begun) == 2

    config = tf.ConfigProto(device_filters=["/job:ps", "/job:worker/task:0"])
    with tf.Session(tasks.target("worker", 0), graph=graph, config=config) as after:
        assert after.run([begin, held])[0] == 3


def test_after_the_death_a_session_that_needs_the_worker_says_so_at_once(tasks: Tasks) -> None:
    with tf.Graph().as_default() as graph:
        with tf.device("/job:worker/task:1"):
            needs = tf.square(tf.placeholder_with_default(3.0, []))
        with tf.device("/job:ps/task:0"):
            other = tf.square(tf.placeholder_with_default(2.0, []))

    with tf.Session(tasks.target("ps", 0), graph=graph) as sess:
        assert sess.run([needs, other]) == [9.0, 4.0]
        tasks.kill(*VICTIM)
        killed = time.monotonic()

        for _ in range(3):
            with pytest.raises(LOST, match=task_name(*VICTIM)):
                sess.run(needs)
            assert sess.run(other) == 4.0

    assert time.monotonic() - killed < NEWS_SECONDS
