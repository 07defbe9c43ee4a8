"""Within 15 s of the last fault a step ends: with its result, or with an error. P10 of docs/promises.md.

Two steps of one session are under way, without deadlines, on real processes: one computes on all tasks, again and
again; the other waits in a queue of the ps, for the worker. Faults come one after the other, the next one while the
tasks are still busy with the last; then the clock starts. `make test` tries one pair, `make test-long` all.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

import tenfold as tf
from support.task_processes import PATIENCE, Tasks, static_cluster

if TYPE_CHECKING:
    from collections.abc import Callable

#: Seconds until the end, as promised, and what a busy machine may add.
PROMISED, BUSY = 15.0, 3.0
#: Seconds between two faults: less than it takes to give a silent peer up.
BETWEEN = 3.0
#: Seconds for threads to end once the tasks are gone or awake again.
LEFT = 10.0


class Steps:
    """The session's steps, each on a thread of its own. Ends are counted from when they were asked for."""

    def __init__(self, tasks: Tasks) -> None:
        self._graph = tf.Graph()
        with self._graph.as_default():
            parts = []
            for job, index in tasks.names:
                with tf.device(f"/job:{job}/task:{index}"):
                    parts.append(tf.get_variable(f"{job}{index}", initializer=1.0) + 0.0)
            self._total = tf.add_n(parts)
            with tf.device("/job:ps/task:0"):
                queue = tf.FIFOQueue(10, tf.float32, shared_name="waits")
                self._fill = queue.enqueue(1.0)
                waiting = queue.dequeue()
            with tf.device("/job:worker/task:1"):
                self._waiting = waiting + parts[-1]
            initialized = tf.global_variables_initializer()
        self._target = tasks.target("worker", 0)
        self._session = tf.Session(self._target, graph=self._graph)
        self._session.run(initialized)
        self._session.run(self._total)  # the first one takes longer
        self._changed = threading.Condition()
        #: When steps that compute have ended well, and what ended each kind.
        self._results: list[float] = []
        self._ended: dict[str, float] = {}
        self._stop = False
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._compute, self._wait)]
        for thread in self._threads:
            thread.start()
        self._until(lambda: len(self._results) > 2, PATIENCE)

    def _until(self, condition: Callable[[], Any], seconds: float) -> bool:
        with self._changed:
            return bool(self._changed.wait_for(condition, seconds))

    def _note(self, kind: str, *, good: bool) -> None:
        with self._changed:
            if good and kind == "computes":
                self._results.append(time.monotonic())
            else:
                self._ended[kind] = time.monotonic()
            self._changed.notify_all()

    def _compute(self) -> None:
        while not self._stop:
            try:
                self._session.run(self._total)
            except tf.errors.OpError:
                self._note("computes", good=False)
                return
            self._note("computes", good=True)

    def _wait(self) -> None:
        with suppress(tf.errors.OpError):
            self._session.run(self._waiting)
        self._note("waits", good=False)

    def fill_queue(self) -> None:
        """What the waiting step waits for comes, if the ps can be reached."""
        with suppress(tf.errors.OpError):
            self._session.run(self._fill, options=tf.RunOptions(timeout_in_ms=int(PROMISED * 1000)))

    def all_end(self, since: float) -> bool:
        """Whether the waiting step ends in time, and one that computes after `since`, or for good."""

        def done() -> bool:
            return "waits" in self._ended and ("computes" in self._ended or self._results[-1] > since)

        return self._until(done, since + PROMISED + BUSY - time.monotonic())

    def close(self) -> None:
        """Bounded, also where steps hang, whose threads are daemons then."""
        self._stop = True
        for thread in self._threads:
            thread.join(LEFT)
        if not any(thread.is_alive() for thread in self._threads):
            with suppress(tf.errors.OpError):
                self._session.close()


def kill(tasks: Tasks, job: str, index: int) -> None:
    tasks.signal(job, index, signal.SIGKILL)


def end(tasks: Tasks, job: str, index: int) -> None:
    tasks.signal(job, index, signal.SIGTERM)


def stop(tasks: Tasks, job: str, index: int) -> None:
    tasks.stop(job, index)


def wake(tasks: Tasks, job: str, index: int) -> None:
    os.kill(tasks.children.pid(f"{job}/{index}"), signal.SIGCONT)


#: Faults in their order: what, whom.
STORIES: dict[str, list[tuple[Callable[[Tasks, str, int], None], tuple[str, int]]]] = {
    "a worker stands still, then the ps is killed": [(stop, ("worker", 1)), (kill, ("ps", 0))],
    "the ps is killed": [(kill, ("ps", 0))],
    "the ps ends in order": [(end, ("ps", 0))],
    "the ps stands still": [(stop, ("ps", 0))],
    "the ps stands still and wakes": [(stop, ("ps", 0)), (wake, ("ps", 0))],
    "a worker stands still": [(stop, ("worker", 1))],
    "a worker is killed, then the ps stands still": [(kill, ("worker", 1)), (stop, ("ps", 0))],
    "the master is killed": [(kill, ("worker", 0))],
    "the master stands still": [(stop, ("worker", 0))],
}
QUICK = {("a worker stands still, then the ps is killed", "auto")}
THOROUGH = {("the ps stands still and wakes", "auto"), ("the master is killed", "off")}


def combinations() -> list[Any]:
    def mark(combination: tuple[str, str]) -> Any:
        return () if combination in QUICK else pytest.mark.thorough if combination in THOROUGH else pytest.mark.long

    return [pytest.param(story, link, marks=mark((story, link))) for story in STORIES for link in ("auto", "off")]


@pytest.mark.parametrize(("story", "link"), combinations())
def test_steps_end_within_15_seconds_of_the_last_fault(story: str, link: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENFOLD_LINK", link)
    with static_cluster(ps=1, worker=2) as tasks:
        steps = Steps(tasks)
        try:
            for number, (fault, whom) in enumerate(STORIES[story]):
                if number:
                    threading.Event().wait(BETWEEN)  # what is tried is time, and no event tells of it
                fault(tasks, *whom)
            since = time.monotonic()
            if STORIES[story][-1][0] is wake:
                steps.fill_queue()

            assert steps.all_end(since), f"ended: {list(steps._ended)}, {PROMISED} s after: {story}"
        finally:
            for job, index in tasks.names:
                with suppress(ProcessLookupError):
                    wake(tasks, job, index)
            steps.close()
