"""A session does not wait for a task that its control service calls lost, unless its graph names the task.

ps:0   worker:0 ◄── control service: "worker:1 is lost"   worker:1 (killed)
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

import tenfold as tf
from support.background_cluster import background_cluster
from support.task_processes import task_name
from tenfold_services.background import BackgroundServer
from tenfold_services.server import TaskServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    Servers = dict[tuple[str, int], BackgroundServer]

LOST = task_name("worker", 1)


@pytest.fixture
def servers() -> Iterator[Servers]:
    """A ps and two workers, of which the second is killed, as far as others can tell."""
    with background_cluster({"ps": 1, "worker": 2}) as started:
        started["worker", 1].stop(0.0)
        yield started


def answer(servers: Servers, *places: str, seconds: float = 60.0) -> float:
    """A new session at worker 0, with a node on each of the places: the sum of so many ones."""
    with tf.Graph().as_default():
        ones = []
        for place in places:
            with tf.device(place):
                ones.append(tf.ones([2])[0])
        config = tf.ConfigProto(operation_timeout_in_ms=int(seconds * 1000))
        with tf.Session(f"grpc://localhost:{servers['worker', 0].port}", config=config) as session:
            return float(session.run(tf.add_n(ones)))


def test_a_graph_that_does_not_name_it_goes_on(servers: Servers, caplog: pytest.LogCaptureFixture) -> None:
    servers["worker", 0].declare_ended([], [LOST])

    begin = time.monotonic()
    assert answer(servers, "/job:ps/task:0", "/job:worker/task:0", "") == 3.0
    assert time.monotonic() - begin < 20, "it did not wait until the time was up"
    assert f"This session goes without {LOST}" in caplog.text


def test_a_graph_that_names_it_waits_for_it(servers: Servers) -> None:
    servers["worker", 0].declare_ended([], [LOST])

    with pytest.raises(tf.errors.DeadlineExceededError, match=LOST):
        answer(servers, "/job:worker/task:1", seconds=1.0)


def test_a_later_node_on_it_is_refused_with_the_reason(servers: Servers) -> None:
    servers["worker", 0].declare_ended([], [LOST])
    with tf.Graph().as_default(), tf.Session(f"grpc://localhost:{servers['worker', 0].port}") as session:
        session.run(tf.constant(1.0))
        with tf.device("/job:worker/task:1"):
            there = tf.constant(2.0)
        with pytest.raises(tf.errors.InvalidArgumentError, match=f"{LOST} was lost when this session was created"):
            session.run(there)


def test_one_that_nobody_calls_lost_is_waited_for(servers: Servers) -> None:
    with pytest.raises(tf.errors.DeadlineExceededError, match=LOST):
        answer(servers, "/job:ps/task:0", seconds=1.0)


def test_one_that_is_back_takes_part(servers: Servers) -> None:
    servers["worker", 0].declare_ended([], [LOST])
    addresses = {job: {i: "" for j, i in servers if j == job} for job, _ in servers}
    with BackgroundServer(TaskServer(addresses, "worker", 1)) as again:
        for (job, index), server in {**servers, ("worker", 1): again}.items():
            addresses[job][index] = f"localhost:{server.port}"
        for server in (servers["ps", 0], servers["worker", 0], again):
            server.update_cluster(addresses)

        # the word of the service may be old: the task answers
        assert answer(servers, "/job:worker/task:1", "/job:ps/task:0") == 2.0
        servers["worker", 0].declare_ended([], [])
        assert answer(servers, "/job:worker/task:1") == 1.0
