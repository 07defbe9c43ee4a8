"""A training that is looked on at: by the line that moves in a (pseudo-)terminal, and by the SDK."""

from __future__ import annotations

import contextlib
import io
import os
import pty
import re
import socket
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from tenfold.cli.local import LocalCluster
from tenfold.control import ControlClient
from tenfold.control.displays import LineDisplay

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TIMEOUT = 60.0

#: Trains until the gate says something.
TRAINER = """
import socket, sys
import tenfold as tf

step = tf.train.get_or_create_global_step()
w = tf.get_variable("w", initializer=1.0)
loss = tf.square(w, name="loss")
train = tf.train.GradientDescentOptimizer(1e-6).minimize(loss, global_step=step)
gate = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
gate.setblocking(False)
print("here we go", flush=True)
going = True
with tf.train.MonitoredTrainingSession() as session:
    while going:
        session.run([train, loss, step])
        try:
            going = not gate.recv(1)
        except BlockingIOError:
            pass
"""


@pytest.fixture
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(ps=0, workers=1) as cluster:
        yield cluster


@pytest.fixture
def gate() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(TIMEOUT)
        yield listener


@pytest.mark.thorough
def test_a_line_moves_below_the_output(cluster: LocalCluster, gate: socket.socket, tmp_path: Path) -> None:
    (tmp_path / "trainer.py").write_text(TRAINER)
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "tenfold.cli", "submit", "--control", cluster.control_url, "--wait"]
    command += ["--working-dir", str(tmp_path), "--ps", "0", "--workers", "1", "--"]
    command += ["python", "trainer.py", str(gate.getsockname()[1])]
    environment = {**os.environ, "COLUMNS": "140", "LINES": "24", "TERM": "xterm", "NO_COLOR": ""}

    text = ""
    with subprocess.Popen(command, stdout=theirs, stderr=theirs, env=environment) as submitted:
        os.close(theirs)
        killer = threading.Timer(TIMEOUT, submitted.kill)
        killer.start()
        training, _ = gate.accept()
        with contextlib.suppress(OSError):  # what Linux says when the other end has closed
            while piece := os.read(ours, 65536):
                text += piece.decode(errors="replace")
                if training.fileno() >= 0 and re.search(r"steps/s · loss \S+", text):
                    training.sendall(b"!")
                    training.close()
        killer.cancel()
    os.close(ours)

    assert submitted.returncode == 0, text
    assert re.search(r"RUNNING.*0:00:\d\d.*step [\d,]+ · [\d.]+ steps/s · loss [01]", text), text
    assert "INFO    worker/0 here we go" in text
    assert "has SUCCEEDED: every worker has finished" in text


@pytest.mark.thorough
def test_the_sdk_looks_on(cluster: LocalCluster, gate: socket.socket, tmp_path: Path) -> None:
    (tmp_path / "trainer.py").write_text(TRAINER)
    told = io.StringIO()
    with ControlClient(cluster.control_url) as control:
        run = control.submit_run(
            ["python", "trainer.py", str(gate.getsockname()[1])], jobs={"worker": 1}, working_dir=str(tmp_path)
        )
        training, _ = gate.accept()
        with training:
            for update in control.run_updates(run):
                if update.progress is not None and update.progress.steps_per_second:
                    break
            training.sendall(b"!")
            ended = control.watch(run, display=LineDisplay(told), timeout=TIMEOUT)

    assert ended.succeeded
    assert ended.progress is not None
    assert (ended.progress.global_step or 0) > 0
    assert 0.0 < float(ended.progress.values["loss"]) <= 1.0
    last = told.getvalue().splitlines()[-1]
    assert last.startswith(f"{run.name} is SUCCEEDED: every worker has finished · step "), last
