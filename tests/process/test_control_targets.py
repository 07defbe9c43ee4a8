"""Sessions on tenfold:// targets, with a real control service and real tasks: found, waited for, found again."""

from __future__ import annotations

import os
import queue
import signal
import threading
from typing import TYPE_CHECKING

import pytest

import tenfold as tf
from tenfold.cli.children import Children
from tenfold.cli.local import LocalCluster

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TIMEOUT = 60.0
CLI = ["-m", "tenfold.cli"]


@pytest.fixture
def children() -> Iterator[Children]:
    with Children() as children:
        yield children


def start_control(children: Children, tmp_path: Path, jobs: str) -> str:
    """The beginning of a tenfold:// target."""
    program = [*CLI, "control", "--port", "0", "--database", str(tmp_path / "control.db"), "--jobs", jobs]
    children.start("control", program)
    return "tenfold://" + children.wait_for_line("control", r"listening on http://(\S+)", TIMEOUT)[1]


def start_worker(children: Children, service: str) -> None:
    url = service.replace("tenfold://", "http://")
    children.start("worker", [*CLI, "task", "--job", "worker", "--control", url], stage=1)
    children.wait_for_line("worker", r"listening on grpc://", TIMEOUT)


@pytest.mark.thorough
def test_a_session_spans_the_cluster_that_its_target_names(monkeypatch: pytest.MonkeyPatch) -> None:
    with LocalCluster(ps=1, workers=2) as cluster, tf.Graph().as_default():
        service = cluster.control_url.replace("http://", "tenfold://")
        with tf.device("/job:ps/task:0"):
            shared = tf.get_variable("shared", initializer=1.0)
        more = tf.assign_add(shared, 2.0)

        with tf.Session(f"{service}/default") as first:
            first.run(shared.initializer)
        with tf.Session(f"{service}/default/worker/1") as second:
            assert second.run(more) == 3.0
        monkeypatch.setenv("TENFOLD_CONTROL", cluster.control_url)
        with tf.Session("tenfold:///default") as third:
            assert third.run(shared) == 3.0
        tf.Session.reset("tenfold:///default")
        with tf.Session("tenfold:///default") as fourth, pytest.raises(tf.errors.FailedPreconditionError):
            fourth.run(shared)


@pytest.mark.thorough
def test_errors_of_a_target(children: Children, tmp_path: Path) -> None:
    service = start_control(children, tmp_path, "worker=1")
    with tf.Graph().as_default():
        constant = tf.constant(1.0)
        patience = tf.ConfigProto(operation_timeout_in_ms=200)

        with (
            tf.Session(f"{service}/default", config=patience) as session,
            pytest.raises(tf.errors.DeadlineExceededError, match=r"within 0\.2 s: /job:worker/task:0 is missing"),
        ):
            session.run(constant)
        with (
            tf.Session(f"{service}/defualt") as session,
            pytest.raises(tf.errors.NotFoundError, match="declared are: default"),
        ):
            session.run(constant)
        start_worker(children, service)
        address = str(tf.control.find_master(f"{service}/default")).removeprefix("grpc://")
        with (
            tf.Session(f"tenfold://{address}/default") as session,
            pytest.raises(tf.errors.UnavailableError, match="is no control service of Tenfold"),
        ):
            session.run(constant)


@pytest.mark.thorough
def test_a_monitored_session_waits_for_its_master_and_finds_it_again(children: Children, tmp_path: Path) -> None:
    """The worker comes after the program, is killed, and comes back at another address."""
    service = start_control(children, tmp_path, "worker=1")
    steps: queue.Queue[int] = queue.Queue()
    go_on = threading.Event()

    def train() -> None:
        with tf.Graph().as_default():
            step = tf.train.get_or_create_global_step()
            more = tf.assign_add(step, 1)
            with tf.train.MonitoredTrainingSession(master=f"{service}/default") as session:
                steps.put(int(session.run(more)))
                go_on.wait(TIMEOUT)
                steps.put(int(session.run(more)))

    trainer = threading.Thread(target=train, daemon=True)
    trainer.start()
    start_worker(children, service)
    assert steps.get(timeout=TIMEOUT) == 1
    os.kill(children.pid("worker"), signal.SIGKILL)
    assert children.wait_for_exit(["worker"], TIMEOUT) == ("worker", -signal.SIGKILL)
    children.forget("worker")
    with tf.control.ControlClient(service.replace("tenfold://", "http://")) as control:
        control.end_task("default", "worker", 0, state="lost", reason="killed")
    start_worker(children, service)
    go_on.set()

    # its variables went with the worker, and there is no checkpoint
    assert steps.get(timeout=TIMEOUT) == 1
    trainer.join(TIMEOUT)
    assert not trainer.is_alive()
