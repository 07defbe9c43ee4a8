"""How commands end, and how fast they tell of an end: 143 for SIGTERM for all that wait, a killed task within 1 s."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING

import psutil
import pytest

from support.task_processes import CLI, PATIENCE
from tenfold.cli.children import Children
from tenfold.control import ControlClient

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: Says who it is, and waits for a signal.
WAITS = "import os, signal\nprint('here', os.getpid(), flush=True)\nsignal.pause()\n"
#: Seconds that the news of a killed task may take.
NEWS_S = 1.0


@pytest.fixture
def children(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Children]:
    for name in [name for name in os.environ if name.startswith("TENFOLD_")]:
        monkeypatch.delenv(name)
    (tmp_path / "program.py").write_text(WAITS)
    monkeypatch.chdir(tmp_path)
    with Children() as started:
        yield started


def _up(children: Children, workers: int) -> str:
    children.start("up", [*CLI, "up", "--ps", "1", "--workers", str(workers), "--control-port", "0", "--restarts", "0"])
    children.wait_for_line("up", "Ctrl-C stops all of it", PATIENCE)
    return children.wait_for_line("up", r"^control service +(\S+)$", 1)[1]


@pytest.fixture
def up(children: Children) -> str:
    """The URL of the control service of a `tenfold up` with a worker."""
    return _up(children, workers=1)


@pytest.mark.thorough
def test_commands_that_wait_for_answers_end_with_143(children: Children, up: str) -> None:
    job = ("--ps", "0", "--workers", "1", "--control", up)
    children.start("submit", [*CLI, "submit", *job, "--wait", "--", "python", "program.py"])
    name = children.wait_for_line("submit", r"^(run-\w+)$", PATIENCE)[1]
    children.wait_for_line("submit", "worker/0 here", PATIENCE)
    children.start("logs", [*CLI, "logs", "-f", name, "--control", up])
    children.wait_for_line("logs", "worker/0 here", PATIENCE)
    children.start("watch", [*CLI, "status", "--watch", "--control", up])
    children.wait_for_line("watch", "worker/0", PATIENCE)

    for each in ("submit", "logs", "watch"):
        children.terminate(each)

    for each in ("submit", "logs", "watch"):
        assert children.wait_for_exit([each], PATIENCE) == (each, 143), children.failure(each)
    with ControlClient(up) as client:
        assert str(client.run(name).state) == "RUNNING"


def test_up_tells_of_a_killed_task_within_a_second_and_status_knows_it(children: Children) -> None:
    url = _up(children, workers=3)
    family = [(each, " ".join(each.cmdline())) for each in psutil.Process(children.pid("up")).children()]
    news = []

    # the quickest of three: a neighbour may hold a core that long, a timer would delay each
    for index in range(3):
        next(each for each, words in family if f"--job worker --index {index} " in words).kill()
        killed = time.monotonic()
        children.wait_for_line("up", f"worker/{index} was ended by SIGKILL", PATIENCE)
        news.append(time.monotonic() - killed)
        # the control service has the news before this line is written
        children.wait_for_line("up", f"The others go on without worker/{index}", PATIENCE)
    with ControlClient(url) as client:
        task = client.task_status("default", "worker", 0)
        ps = client.task_status("default", "ps", 0)

    assert min(news) < NEWS_S
    assert (task["state"], task["reason"]) == ("lost", "ended by SIGKILL")
    assert ps["state"] == "ready"


def test_run_tells_of_a_killed_task_within_a_second(children: Children) -> None:
    children.start("run", [*CLI, "run", "--ps", "0", "--workers", "2", "program.py"])
    pids = [int(children.wait_for_line("run", rf"^worker/{each} \| here (\d+)", PATIENCE)[1]) for each in (0, 1)]

    os.kill(pids[1], signal.SIGKILL)
    killed = time.monotonic()
    children.wait_for_line("run", "Error: worker/1 was ended by SIGKILL", PATIENCE)

    assert time.monotonic() - killed < NEWS_S
    children.terminate("run")
    assert children.wait_for_exit(["run"], PATIENCE) == ("run", 143)


@pytest.mark.thorough
def test_evicting_the_only_worker_leaves_the_ps_and_its_variables(children: Children, up: str) -> None:
    import tenfold as tf

    with tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            kept = tf.Variable(7.0, name="kept")
        with ControlClient(up) as client:
            address = client.task_status("default", "ps", 0)["address"]
            # nodes on the ps alone: the session outlives the worker
            config = tf.ConfigProto(device_filters=["/job:ps"])
            with tf.Session(f"grpc://{address}", config=config) as session:
                session.run(kept.initializer)
                client.remove_task("default", "worker", 0, reason="moved away")
                children.wait_for_line("up", "worker/0 ended with exit code 1", PATIENCE)
                value = session.run(kept)
            ps = client.task_status("default", "ps", 0)
    children.start("status", [*CLI, "status", "--control", up])

    assert (value, ps["state"]) == (7.0, "ready")
    assert children.wait_for_exit(["status"], PATIENCE) == ("status", 1)
