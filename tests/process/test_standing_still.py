"""SIGSTOP of each role on each transport: an error that names the task within 15 seconds, and work again after SIGCONT.

A process that stands still closes no connection and answers nothing: to the others it looks like a host that lost its
power or its network. The step has no deadline of its own. One combination runs always, the others are `long`.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

import tenfold as tf
from support.certs import access
from support.task_processes import CLI, PATIENCE, Tasks, stand_still, static_cluster, task_name
from tenfold.control import ControlClient

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: Seconds until the error, as promised; and what a busy machine may add.
PROMISED, BUSY = 15.0, 3.0
TRANSPORTS = {"link": "auto", "tcp": "tcp", "grpc": "off", "tls": "tcp"}
#: Role → the task that is stopped. The client's session is at worker 0.
ROLES = {"server": ("worker", 0), "ps": ("ps", 0), "worker": ("worker", 1), "chief": ("chief", 0)}
QUICK, THOROUGH = {("ps", "link")}, {("server", "grpc")}


@pytest.fixture
def transport(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """What clients and tasks of this test speak."""
    monkeypatch.setenv("TENFOLD_LINK", TRANSPORTS[request.param])
    if request.param == "tls":
        mine = access(tmp_path)
        for name in ("cert", "key", "ca"):
            monkeypatch.setenv(f"TENFOLD_TLS_{name.upper()}", str(getattr(mine, f"tls_{name}")))
        monkeypatch.setenv("TENFOLD_TLS", "always")
    return str(request.param)


def combinations() -> list[Any]:
    def mark(combination: tuple[str, str]) -> Any:
        return () if combination in QUICK else pytest.mark.thorough if combination in THOROUGH else pytest.mark.long

    return [pytest.param(role, transport, marks=mark((role, transport))) for role in ROLES for transport in TRANSPORTS]


@pytest.mark.parametrize(("role", "transport"), combinations(), indirect=["transport"])
def test_a_step_ends_with_the_name_of_the_task_that_stands_still(role: str, transport: str) -> None:
    stopped = ROLES[role]
    with static_cluster(ps=1, worker=2, chief=1) as tasks, summing(tasks) as (session, total):
        assert [session.run(total) for _ in range(3)] == [4.0] * 3
        tasks.stop(*stopped)
        began = time.monotonic()
        try:
            with pytest.raises((tf.errors.UnavailableError, tf.errors.AbortedError), match=task_name(*stopped)):
                session.run(total)
            assert time.monotonic() - began < PROMISED + BUSY
        finally:
            tasks.signal(*stopped, signal.SIGCONT)
        assert healed(tasks, session, total) == 4.0


class summing:
    """A session at worker 0 whose step adds a variable of each task."""

    def __init__(self, tasks: Tasks) -> None:
        self._graph = tf.Graph()
        with self._graph.as_default():
            parts = []
            for job, index in tasks.names:
                with tf.device(f"/job:{job}/task:{index}"):
                    parts.append(tf.get_variable(f"{job}{index}", initializer=1.0) + 0.0)
            self._total = tf.add_n(parts)
            self._initialized = tf.global_variables_initializer()
        self._session = tf.Session(tasks.target("worker", 0), graph=self._graph)

    def __enter__(self) -> tuple[tf.Session, Any]:
        self._session.run(self._initialized)
        return self._session, self._total

    def __exit__(self, *_: object) -> None:
        with suppress(tf.errors.OpError):
            self._session.close()


def healed(tasks: Tasks, session: tf.Session, total: Any) -> float:
    """What the step gives once it runs again, in the same session or in a new one; variables outlive both."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            return float(session.run(total))
        except (tf.errors.UnavailableError, tf.errors.AbortedError):
            if time.monotonic() > end:
                raise
        with (
            suppress(tf.errors.UnavailableError, tf.errors.AbortedError),
            tf.Session(tasks.target("worker", 0), graph=session.graph) as other,
        ):
            return float(other.run(total))


@pytest.fixture
def control(tmp_path: Path) -> Iterator[tuple[Tasks, str]]:
    """A control service as a process; its URL."""
    with static_cluster() as tasks:
        tasks.children.start("control", [*CLI, "control", "--port", "0", "--database", f"{tmp_path}/c.db"], stage=1)
        yield tasks, tasks.children.wait_for_line("control", r"listening on (http://\S+)", 2 * PATIENCE)[1]


@pytest.mark.long
def test_a_control_service_that_stands_still(control: tuple[Tasks, str]) -> None:
    tasks, url = control
    with ControlClient(url) as client:
        client.declare_cluster("default", {"worker": 1})
        pid = tasks.children.pid("control")
        stand_still(pid)
        began = time.monotonic()
        try:
            with pytest.raises(tf.errors.DeadlineExceededError, match=f"{url} did not answer GET"):
                client.spec("default")
            assert time.monotonic() - began < PROMISED
        finally:
            os.kill(pid, signal.SIGCONT)
        assert client.spec("default").jobs == {"worker": 1}
