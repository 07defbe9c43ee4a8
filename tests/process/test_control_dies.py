"""kill -9 of the control service while a cluster works: steps and sessions go on, and it finds its sessions again.

control service ◄── ps:0, worker:0, registered ◄── a client with a session of its own, and one over REST
"""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest

import tenfold as tf
from support.ports import free_port
from support.task_processes import CLI, PATIENCE
from tenfold.cli.children import Children
from tenfold.control import ControlClient

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LISTENING = r"listening on \w+://(\S+)"


@pytest.fixture
def children(monkeypatch: pytest.MonkeyPatch) -> Iterator[Children]:
    for name in [name for name in os.environ if name.startswith("TENFOLD_") or name == "TF_CONFIG"]:
        monkeypatch.delenv(name)
    with Children() as started:
        yield started


def counting() -> tuple[tf.Graph, tf.Operation, tf.Tensor]:
    """A counter on the ps; each step adds what the worker computes."""
    with tf.Graph().as_default() as graph:
        with tf.device("/job:ps/task:0"):
            count = tf.Variable(0.0, name="count")
        with tf.device("/job:worker/task:0"):
            one = tf.exp(tf.zeros([]))
        return graph, count.initializer, tf.assign_add(count, one, name="counted")


@pytest.mark.timeout(300)
def test_steps_and_sessions_outlive_the_control_service(children: Children, tmp_path: Path) -> None:
    program = [*CLI, "control", "--port", str(free_port()), "--database", str(tmp_path / "c.db")]
    program += ["--jobs", "ps=1,worker=1"]
    children.start("control", program)
    url = "http://" + children.wait_for_line("control", LISTENING, PATIENCE)[1]
    addresses = {}
    for job in ("ps", "worker"):
        children.start(job, [*CLI, "task", "--job", job, "--index", "0", "--control", url], stage=1)
        addresses[job] = children.wait_for_line(job, LISTENING, PATIENCE)[1]
    graph, initializer, counted = counting()
    target = f"grpc://{addresses['worker']}"

    with tf.Session(target, graph=graph) as session, ControlClient(url) as control:
        session.run(initializer)
        rest = control.create_session("default", graph.as_graph_def(), job="worker", index=0)
        assert [session.run(counted), rest.run("counted:0").item()] == [1.0, 2.0]

        os.kill(children.pid("control"), signal.SIGKILL)
        assert children.wait_for_exit(["control"], PATIENCE) == ("control", -signal.SIGKILL)
        for job in ("ps", "worker"):
            children.wait_for_line(job, "the control service is not there", PATIENCE)

        assert session.run(counted) == 3.0
        with tf.Session(target, graph=graph) as another:
            assert another.run(counted) == 4.0
        children.forget("control")
        children.start("control", program)
        children.wait_for_line("control", LISTENING, PATIENCE)
        assert control.session(rest.id).run("counted:0").item() == 5.0
        assert session.run(counted) == 6.0
        jobs = control.job_status("default")["jobs"]

    assert [task["state"] for job in jobs for task in job["tasks"]] == ["ready", "ready"]
    assert children.wait_for_exit(["ps", "worker"], 0.0) is None, "a task has ended"
