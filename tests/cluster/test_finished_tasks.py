"""Ends: a task that finished is not waited for, not even by one that was not there to be told; ps end with workers.

ps:0 ◄── worker:0 (finishes) ── tells ──► ps:0 ◄── asks ── worker:1 (comes later)
"""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

import pytest

import tenfold as tf
from support.ports import free_addresses
from tenfold_services.finished import FinishedTasks
from tenfold_services.master.worker_sessions import WorkerSessions

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

#: Seconds for anything to happen that should, and for a session to be refused that should be.
PATIENCE, SHORT_MS = 30.0, 600


@pytest.fixture
def cluster() -> dict[str, list[str]]:
    return {"ps": free_addresses(1), "worker": free_addresses(2)}


@pytest.fixture
def servers() -> Iterator[list[tf.train.Server]]:
    started: list[tf.train.Server] = []
    yield started
    for server in started:
        server.stop(0.0)


def answer(target: str, place: str = "", seconds: float = 20.0) -> float:
    """2.0, computed in a new session at `target`, on the device `place`."""
    with tf.Graph().as_default(), tf.device(place):
        total = tf.constant(1.0) + tf.constant(1.0)
        with tf.Session(target, config=tf.ConfigProto(operation_timeout_in_ms=int(seconds * 1000))) as session:
            return float(session.run(total))


def test_nobody_waits_for_a_task_that_has_finished(
    cluster: dict[str, list[str]], servers: list[tf.train.Server]
) -> None:
    ps, first = tf.train.Server(cluster, "ps", 0), tf.train.Server(cluster, "worker", 0)
    servers += [ps, first]
    first.stop(0.0)

    # no task told it when it was there: it asks the parameter server
    second = tf.train.Server(cluster, "worker", 1)
    servers.append(second)

    assert answer(second.target) == 2.0
    assert answer(ps.target) == 2.0


def test_a_task_that_finishes_while_a_session_is_created_and_could_not_say_so(
    cluster: dict[str, list[str]], servers: list[tf.train.Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has answered the question for its devices, and is gone when the session is opened there; the parameter server
    alone was told."""
    ps, first, second = (tf.train.Server(cluster, job, i) for job, i in (("ps", 0), ("worker", 0), ("worker", 1)))
    servers += [ps, first, second]
    create, note = WorkerSessions.create, FinishedTasks.note
    deaf, created = threading.Event(), []

    async def finish_then_create(sessions: WorkerSessions, seconds: float) -> None:
        created.append(seconds)
        if len(created) == 1:
            deaf.set()
            await asyncio.to_thread(first.stop, 0.0)
            deaf.clear()
        await create(sessions, seconds)

    def heard(finished: FinishedTasks, news: Mapping[str, int]) -> Collection[str]:
        return () if deaf.is_set() and finished.task.endswith("worker/replica:0/task:1") else note(finished, news)

    monkeypatch.setattr(WorkerSessions, "create", finish_then_create)
    monkeypatch.setattr(FinishedTasks, "note", heard)

    assert answer(second.target) == 2.0
    assert len(created) == 2


def test_a_graph_that_names_the_finished_task_waits_for_it(
    cluster: dict[str, list[str]], servers: list[tf.train.Server]
) -> None:
    ps, first, second = (tf.train.Server(cluster, job, i) for job, i in (("ps", 0), ("worker", 0), ("worker", 1)))
    servers += [ps, first, second]
    first.stop(0.0)

    with pytest.raises(tf.errors.DeadlineExceededError, match="/job:worker/replica:0/task:0"):
        answer(second.target, "/job:worker/task:0", SHORT_MS / 1000)

    again = tf.train.Server(cluster, "worker", 0)
    servers.append(again)
    assert answer(second.target, "/job:worker/task:0") == 2.0
    assert answer(again.target) == 2.0


def test_a_placement_on_a_finished_task_says_so(cluster: dict[str, list[str]], servers: list[tf.train.Server]) -> None:
    ps, first, second = (tf.train.Server(cluster, job, i) for job, i in (("ps", 0), ("worker", 0), ("worker", 1)))
    servers += [ps, first, second]
    first.stop(0.0)

    with tf.Graph().as_default(), tf.Session(second.target) as session:
        session.run(tf.constant(1.0))
        with tf.device("/job:worker/task:0"):
            there = tf.constant(2.0)
        with pytest.raises(tf.errors.InvalidArgumentError, match="/job:worker/replica:0/task:0 has finished"):
            session.run(there)


def test_a_parameter_server_ends_with_the_last_worker(
    cluster: dict[str, list[str]], servers: list[tf.train.Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TENFOLD_STOP_WITH_WORKERS", "1")
    ps, first, second = (tf.train.Server(cluster, job, i) for job, i in (("ps", 0), ("worker", 0), ("worker", 1)))
    servers += [ps, first, second]
    joined = threading.Thread(target=ps.join, name="joins", daemon=True)
    joined.start()
    assert answer(first.target, "/job:ps/task:0") == 2.0

    first.stop(0.0)
    assert answer(second.target, "/job:ps/task:0") == 2.0, "one worker is left"
    second.stop(0.0)
    joined.join(PATIENCE)

    assert not joined.is_alive()


def test_a_worker_that_failed_has_not_finished(cluster: dict[str, list[str]], servers: list[tf.train.Server]) -> None:
    ps = tf.train.Server(cluster, "ps", 0)
    servers.append(ps)
    second = tf.train.Server(cluster, "worker", 1)
    servers.append(second)

    with pytest.raises(KeyError), tf.train.Server(cluster, "worker", 0):
        raise KeyError("the program failed")

    with pytest.raises(tf.errors.DeadlineExceededError, match="/job:worker/replica:0/task:0"):
        answer(second.target, seconds=SHORT_MS / 1000)


def test_the_same_cluster_can_be_used_for_a_second_job(
    cluster: dict[str, list[str]], servers: list[tf.train.Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that is started again at the address of one that has finished has not finished."""
    monkeypatch.setenv("TENFOLD_STOP_WITH_WORKERS", "1")
    ps, first, second = (tf.train.Server(cluster, job, i) for job, i in (("ps", 0), ("worker", 0), ("worker", 1)))
    servers += [ps, first, second]
    joined = threading.Thread(target=ps.join, name="joins", daemon=True)
    joined.start()
    assert answer(first.target, "/job:ps/task:0") == 2.0
    first.stop(0.0)

    again = tf.train.Server(cluster, "worker", 0)
    servers.append(again)
    assert answer(again.target, "/job:ps/task:0") == 2.0
    second.stop(0.0)

    assert answer(again.target, "/job:ps/task:0") == 2.0, "the parameter server serves the new worker 0"
    assert joined.is_alive()
    again.stop(0.0)
    joined.join(PATIENCE)
    assert not joined.is_alive()


def test_a_worker_that_is_back_can_be_used_by_others(
    cluster: dict[str, list[str]], servers: list[tf.train.Server]
) -> None:
    ps, first, second = (tf.train.Server(cluster, job, i) for job, i in (("ps", 0), ("worker", 0), ("worker", 1)))
    servers += [ps, first, second]
    first.stop(0.0)
    assert answer(second.target) == 2.0

    servers.append(tf.train.Server(cluster, "worker", 0))

    assert answer(second.target, "/job:worker/task:0") == 2.0
    assert answer(ps.target, "/job:worker/task:0") == 2.0
