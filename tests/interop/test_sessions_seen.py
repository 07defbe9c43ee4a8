"""A TensorFlow client's sessions, as the control service shows them: by what the master of a registered task sees."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from tenfold.cli.local import LocalCluster
from tenfold.control import ControlClient

from .tensorflow_processes import CLIENT_S, QUIET, interpreter

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Runs steps until it is told to end, by the end of its input.
CLIENT = """
import sys
import threading
import tensorflow.compat.v1 as tf
tf.disable_v2_behavior()
v = tf.get_variable("v", initializer=0.0)
more = tf.assign_add(v, 1.0)
told = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), told.set()), daemon=True).start()
with tf.Session(sys.argv[1]) as session:
    session.run(v.initializer)
    while not told.is_set():
        session.run(more)
    print(session.run(v))
"""


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalCluster]:
    monkeypatch.setenv("TENFOLD_CONTROL_HEARTBEAT", "0.5")
    with LocalCluster(ps=0, workers=1) as running:
        yield running


def seen_when(control: ControlClient, satisfied: Any) -> list[dict[str, Any]]:
    """The sessions of the worker once they are as wished; looks after each heartbeat's time."""
    version = control.spec("default").version
    found: list[dict[str, Any]] = []
    for _ in range(200):
        figures = control.task_status("default", "worker", 0)["figures"] or {}
        found = figures.get("open_sessions", [])
        if figures and satisfied(found):
            return found
        version = control.poll_spec("default", after=version, wait=0.5).version
    raise AssertionError(found)


@pytest.mark.thorough
def test_the_steps_of_a_tensorflow_client_show(cluster: LocalCluster) -> None:
    target = f"grpc://{cluster.addresses['worker', 0]}"
    with (
        ControlClient(cluster.control_url) as control,
        subprocess.Popen(
            [interpreter("2.21"), "-c", CLIENT, target],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | QUIET,
            text=True,
        ) as client,
    ):
        try:
            (session,) = seen_when(control, lambda found: any(each["steps_per_second"] for each in found))
            out, _ = client.communicate(timeout=CLIENT_S)
        finally:
            client.kill()
        closed = seen_when(control, lambda found: not found)

    assert session["client"].startswith(("ipv4:127.0.0.1:", "ipv6:"))
    assert 1 < session["steps"] <= float(out) + 2
    assert session["steps_per_second"] > 0
    assert session["age"] > session["idle"]
    assert closed == []
