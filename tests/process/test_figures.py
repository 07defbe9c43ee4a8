"""Real tasks tell the control service what they hold and what they do: variables, steps, bytes to each peer, a queue.

client ──► worker/0 ──link──► ps/0 (the variable, the queue)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf
from support.task_processes import task_name
from tenfold.cli.local import LocalCluster
from tenfold.control import ControlClient

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PS, WORKER = task_name("ps", 0), task_name("worker", 0)
VALUES = 100_000


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalCluster]:
    monkeypatch.setenv("TENFOLD_CONTROL_HEARTBEAT", "0.2")
    with LocalCluster(ps=1, workers=1) as running:
        yield running


def figures_when(control: ControlClient, job: str, satisfied: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """The task's figures once they are as wished; looks after each heartbeat's time, which a long-poll waits out."""
    version = control.spec("default").version
    found: dict[str, Any] = {}
    for _ in range(100):
        found = control.task_status("default", job, 0)["figures"] or {}
        if found and satisfied(found):
            return found
        version = control.poll_spec("default", after=version, wait=0.2).version
    raise AssertionError(found)


@pytest.mark.thorough
def test_variables_steps_and_bytes_of_a_cluster_show(cluster: LocalCluster) -> None:
    with tf.Graph().as_default() as graph:
        with tf.device("/job:ps/task:0"):
            weights = tf.Variable(tf.zeros([VALUES]), name="weights")
            queue = tf.FIFOQueue(7, [tf.float32], shapes=[[]], shared_name="tokens")
        with tf.device("/job:worker/task:0"):
            total = tf.reduce_sum(weights + 1.0)
        fill = queue.enqueue_many([np.zeros(3, np.float32)])

    with ControlClient(cluster.control_url) as control:
        with tf.Session(f"grpc://{cluster.addresses['worker', 0]}", graph=graph) as session:
            session.run(weights.initializer)
            session.run(fill)
            for _ in range(20):
                assert session.run(total) == VALUES
            # figures may be of the moment in which the last step is counted, but has not ended
            worker = figures_when(
                control,
                "worker",
                lambda found: found["steps"] >= 20 and not any(each["running"] for each in found["open_sessions"]),
            )
            ps = figures_when(control, "ps", lambda found: found["steps"] >= 22)
        closed = figures_when(control, "worker", lambda found: found["sessions"] == 0)

    assert (ps["variables"], ps["variable_bytes"]) == (1, 4 * VALUES)
    assert (worker["variables"], worker["variable_bytes"]) == (0, 0)
    assert ps["queues"] == [{"name": "tokens", "size": 3, "capacity": 7}]
    assert (worker["sessions"], closed["sessions"]) == (1, 0)
    # its master sees who the session's client is, and what it does
    (session_seen,) = worker["open_sessions"]
    assert (session_seen["client"].startswith("ipv4:127.0.0.1:"), session_seen["steps"] >= 20) == (True, True)
    assert (session_seen["age"] > 0, session_seen["running"], closed["open_sessions"]) == (True, 0, [])
    to_worker = next(peer for peer in ps["peers"] if peer["task"] == WORKER)
    from_ps = next(peer for peer in worker["peers"] if peer["task"] == PS)
    assert to_worker["bytes_sent"] >= 20 * 4 * VALUES
    assert from_ps["bytes_received"] >= 20 * 4 * VALUES
    assert ps["bytes_sent"] >= to_worker["bytes_sent"]
    assert worker["resident_bytes"] > worker["shared_bytes"] > 0
    assert worker["cpu_seconds"] > 0
    assert worker["long_kernels"] == 0
