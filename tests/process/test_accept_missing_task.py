"""Accepted when: a session on a cluster whose `/job:worker/task:1` is not up fails within its time-out, saying that
this task is missing and why it could not be reached."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import pytest

import tenfold as tf
from support.task_processes import CLI, PATIENCE, Tasks, static_cluster, task_name
from tenfold.cli.children import Children
from tenfold.control import ControlClient
from tenfold.control.problem import problem_of
from tenfold.session.master_interface import ANSWER_GRACE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ABSENT = ("worker", 1)
TIMEOUT_MS = 1500
#: How much later than its time-out the client may hear of it.
SLACK = 2.0


@pytest.fixture(scope="module")
def tasks() -> Iterator[Tasks]:
    """A ps and worker 0; worker 1 is in the ClusterSpec, but nothing listens at its address."""
    with static_cluster(ps=1, worker=2, absent=[ABSENT]) as tasks:
        yield tasks


def one() -> tuple[tf.Graph, tf.Tensor]:
    """A graph that needs no other task than its master's."""
    with tf.Graph().as_default() as graph:
        return graph, tf.constant(1.0, name="one")


@pytest.mark.parametrize("asked", [("ps", 0), ("worker", 0)])
def test_nobody_listens_at_its_address(tasks: Tasks, asked: tuple[str, int]) -> None:
    graph, fetch = one()
    config = tf.ConfigProto(operation_timeout_in_ms=TIMEOUT_MS)
    with tf.Session(tasks.target(*asked), graph=graph, config=config) as sess:
        began = time.monotonic()
        with pytest.raises(tf.errors.DeadlineExceededError) as caught:
            sess.run(fetch)
        took = time.monotonic() - began

    message = caught.value.message
    # answered a tenth before the client would give up, so that the answer can say why
    assert 0.9 * TIMEOUT_MS / 1000 - 0.1 <= took < TIMEOUT_MS / 1000 + SLACK
    assert f"{task_name(*ABSENT)} ({tasks.addresses['worker'][1]})" in message
    assert "connection refused" in message
    assert task_name("ps", 0) not in message
    assert task_name("worker", 0) not in message


def test_the_absent_master_itself(tasks: Tasks) -> None:
    graph, fetch = one()
    config = tf.ConfigProto(operation_timeout_in_ms=TIMEOUT_MS)
    with tf.Session(tasks.target(*ABSENT), graph=graph, config=config) as sess:
        began = time.monotonic()
        with pytest.raises((tf.errors.DeadlineExceededError, tf.errors.UnavailableError)) as caught:
            sess.run(fetch)

    assert time.monotonic() - began < TIMEOUT_MS / 1000 + ANSWER_GRACE_SECONDS + SLACK
    assert tasks.target(*ABSENT) in caught.value.message
    assert "refused" in caught.value.message


def test_device_filters_leave_it_out(tasks: Tasks) -> None:
    graph, fetch = one()
    config = tf.ConfigProto(device_filters=["/job:ps", "/job:worker/task:0"], operation_timeout_in_ms=20_000)

    with tf.Session(tasks.target("worker", 0), graph=graph, config=config) as sess:
        assert sess.run(fetch) == 1.0


def test_a_session_that_waits_goes_on_when_the_task_comes() -> None:
    graph, fetch = one()
    found: list[object] = []
    with (
        static_cluster(ps=1, worker=1, absent=[("worker", 0)]) as tasks,
        tf.Session(tasks.target("ps", 0), graph=graph) as sess,
    ):
        waiting = threading.Thread(target=lambda: found.append(sess.run(fetch)))
        waiting.start()

        tasks.start(("worker", 0))

        waiting.join(PATIENCE)
        assert found == [1.0]


@pytest.mark.thorough
def test_a_task_that_has_not_registered(tmp_path: Path) -> None:
    """The same through a control service, where no address is known at all."""
    graph, fetch = one()
    with Children() as children:
        program = ["control", "--port", "0", "--database", str(tmp_path / "c.db"), "--jobs", "ps=1,worker=2"]
        children.start("control", [*CLI, *program])
        url = children.wait_for_line("control", r"listening on (http://\S+)", PATIENCE)[1]
        for job in ("ps", "worker"):
            children.start(job, [*CLI, "task", "--job", job, "--index", "0", "--control", url], stage=1)
        target = children.wait_for_line("worker", r"listening on (grpc://\S+)", PATIENCE)[1]
        children.wait_for_line("ps", r"listening on (grpc://\S+)", PATIENCE)

        config = tf.ConfigProto(operation_timeout_in_ms=TIMEOUT_MS)
        with (
            tf.Session(target, graph=graph, config=config) as sess,
            pytest.raises(tf.errors.DeadlineExceededError) as over_grpc,
        ):
            sess.run(fetch)
        with ControlClient(url) as control, pytest.raises(tf.errors.DeadlineExceededError) as over_rest:
            control.create_session("default", graph.as_graph_def(), config=config)

    for message in (over_grpc.value.message, over_rest.value.message):
        assert task_name(*ABSENT) in message
        assert "has not registered" in message
    problem = problem_of(over_rest.value)
    assert problem is not None
    assert problem.status == 504
    assert problem.members["code"] == "DEADLINE_EXCEEDED"
    assert problem.missing_tasks == (task_name(*ABSENT),)
