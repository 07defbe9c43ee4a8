"""The ends of `tenfold run` that are not the good one: failures, signals, output of any kind, processes left behind."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import psutil
import pytest

from support.ports import free_ports
from support.process_trees import left_alive
from support.task_processes import CLI, PATIENCE
from tenfold.cli.children import LINE_CHARACTERS, Children

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: Begins every program: who it is.
WHO = """
import json, os, select, signal, subprocess, sys, threading
task = json.loads(os.environ["TF_CONFIG"])["task"]
job, index = task["type"], task["index"]
"""


def command(folder: Path, text: str, *options: str) -> list[str]:
    """`tenfold run OPTIONS PROGRAM` without the interpreter."""
    program = folder / "program.py"
    program.write_text(WHO + text)
    return [*CLI, "run", *options, str(program)]


def run(folder: Path, text: str, *options: str) -> subprocess.CompletedProcess[str]:
    arguments = [sys.executable, *command(folder, text, *options)]
    return subprocess.run(arguments, capture_output=True, text=True, timeout=PATIENCE, check=False)


@pytest.fixture
def children() -> Iterator[Children]:
    with Children() as started:
        yield started


def test_who_never_ends_after_a_failure_is_stopped(tmp_path: Path) -> None:
    text = "sys.exit(9) if (job, index) == ('worker', 0) else threading.Event().wait()\n"

    done = run(tmp_path, text, "--workers", "3", "--grace", "0.2")

    assert done.returncode == 9
    assert "0.2 s after the first failure: stopping worker/1, worker/2." in done.stderr


@pytest.mark.thorough
def test_a_control_service_that_is_away_is_mentioned_once(tmp_path: Path) -> None:
    text = "import tenfold as tf\nwith tf.Session() as sess:\n    print(sess.run(tf.constant('ran')).decode())\n"
    (port,) = free_ports(1)

    done = run(tmp_path, text, "--ps", "0", "--workers", "2", "--control", f"http://127.0.0.1:{port}")

    shown = (done.stdout + done.stderr).splitlines()
    about = [line for line in shown if "control service" in line]
    assert (done.returncode, sum(line.endswith("| ran") for line in shown)) == (0, 2), shown
    assert about[0].startswith(
        f"This run is not reported to the control service: the control service at http://127.0.0.1:{port}"
    )
    assert len(about) == 1, about


@pytest.mark.thorough
def test_the_first_of_several_failures_counts(tmp_path: Path) -> None:
    """Worker 1 fails once worker 0, whose number it reads from a pipe, is gone."""
    fifo = tmp_path / "fifo"
    text = (
        f"path = {str(fifo)!r}\n"
        "if job == 'ps': threading.Event().wait()\n"
        "if index == 0:\n    print(os.getpid(), file=open(path, 'w')); sys.exit(4)\n"
        "other = int(open(path).read())\n"
        "try:\n    select.select([os.pidfd_open(other)], [], [])\n"
        "except ProcessLookupError:\n    pass\n"
        "sys.exit(5)\n"
    )
    subprocess.run(["mkfifo", str(fifo)], check=True)

    done = run(tmp_path, text, "--workers", "2")

    assert done.returncode == 4
    assert "worker/1 ended with exit code 5" in done.stderr


def test_a_task_that_cannot_even_start_is_a_failure(tmp_path: Path) -> None:
    text = "import there_is_no_such_module\n"

    done = run(tmp_path, text, "--workers", "1")

    assert done.returncode == 1
    assert "No module named 'there_is_no_such_module'" in done.stderr


def test_a_program_that_is_not_there_is_a_usage_error() -> None:
    done = subprocess.run(
        [sys.executable, *CLI, "run", "no/such/program.py"], capture_output=True, text=True, timeout=PATIENCE
    )

    assert done.returncode == 2
    assert "there is no program 'no/such/program.py'" in done.stderr


def test_restarts_are_counted_for_all_and_then_the_failure_is_ours(tmp_path: Path) -> None:
    done = run(tmp_path, "print('alive'); sys.exit(6)\n", "--ps", "0", "--workers", "1", "--restarts", "2")

    assert done.returncode == 6
    assert done.stdout.count("worker/0 | alive") == 3
    assert done.stderr.count("Starting worker/0 again") == 2


def test_the_signal_that_ended_a_worker_is_told_as_a_shell_does(tmp_path: Path) -> None:
    done = run(tmp_path, "os.kill(os.getpid(), signal.SIGKILL)\n", "--ps", "0", "--workers", "1")

    assert done.returncode == 128 + signal.SIGKILL


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.thorough)])
def test_a_signal_stops_all_tasks(children: Children, tmp_path: Path, number: signal.Signals) -> None:
    text = "print('ready', flush=True); threading.Event().wait()\n"
    children.start("run", command(tmp_path, text, "--workers", "2"))
    for name in ("ps/0", "worker/0", "worker/1"):
        children.wait_for_line("run", rf"^{name} +\| ready", PATIENCE)
    process = psutil.Process(children.pid("run"))
    family = process.children(recursive=True)

    process.send_signal(number)

    assert children.wait_for_exit(["run"], PATIENCE) == ("run", 128 + number)
    assert len(family) == 3
    assert not psutil.wait_procs(family, timeout=30)[1]


def test_every_line_has_its_tasks_name_however_long_or_binary(tmp_path: Path) -> None:
    text = (
        "out = sys.stdout.buffer\n"
        f"out.write(b'x' * {LINE_CHARACTERS * 2} + b'\\n' + bytes(range(256)) + b'\\nno newline at the end')\n"
    )

    done = run(tmp_path, text, "--ps", "0", "--workers", "1")

    assert done.returncode == 0, done.stderr
    assert done.stdout.count("x") >= LINE_CHARACTERS * 2
    lines = re.split(r"\n", done.stdout.rstrip("\n"))
    assert all(line.startswith("worker/0 | ") for line in lines), lines
    assert max(map(len, lines)) <= LINE_CHARACTERS + len("worker/0 | ")
    assert lines[-1] == "worker/0 | no newline at the end"


def test_tasks_go_on_when_nobody_reads_their_output_any_more(tmp_path: Path) -> None:
    text = "print('first', flush=True)\nfor i in range(20000): print('more', i)\nsys.exit(3)\n"
    arguments = [sys.executable, *command(tmp_path, text, "--ps", "0", "--workers", "1")]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        assert running.stdout.readline() == "worker/0 | first\n"
        running.stdout.close()
        errors = running.stderr.read()

    assert running.returncode == 3
    assert "BrokenPipe" not in errors


def test_a_process_that_a_worker_left_behind_holds_nobody_up(tmp_path: Path) -> None:
    text = (
        "left = subprocess.Popen([sys.executable, '-c', 'import signal; signal.pause()'])\n"
        "print('left', left.pid, flush=True)\nos._exit(0)\n"
    )

    done = run(tmp_path, text, "--ps", "0", "--workers", "1")

    assert done.returncode == 0
    (pid,) = re.findall(r"left (\d+)", done.stdout)
    assert not left_alive([int(pid)])


def test_parameter_servers_stay_until_the_workers_have_ended(tmp_path: Path) -> None:
    """The worker reads what the parameter server holds, and only then lets it end."""
    text = (
        "import time\nimport tenfold as tf\n"
        "cluster = json.loads(os.environ['TF_CONFIG'])['cluster']\n"
        "server = tf.train.Server(cluster, job_name=job, task_index=index)\n"
        "if job == 'ps':\n    try:\n        server.join()\n"
        "    finally:\n        print('ended', time.monotonic(), flush=True)\n"
        "with tf.device('/job:ps/task:0'):\n    v = tf.get_variable('v', initializer=3.0)\n"
        "with tf.Session(server.target) as session:\n"
        "    session.run(v.initializer)\n    print('has', session.run(v), time.monotonic(), flush=True)\n"
    )

    done = run(tmp_path, text, "--workers", "1")

    assert done.returncode == 0, done.stdout + done.stderr
    # lines of two processes come in any order
    ended, has = (line.split() for line in sorted(done.stdout.splitlines()))
    assert (ended[:3], has[:4]) == (["ps/0", "|", "ended"], ["worker/0", "|", "has", "3.0"])
    assert float(has[4]) < float(ended[3])


#: As TensorFlow's mnist_replica.py: what follows `join` is the worker's, and nothing keeps a parameter server from it.
NO_ELSE = """
import threading
import tenfold as tf
cluster = json.loads(os.environ['TF_CONFIG'])['cluster']
server = tf.train.Server(cluster, job_name=job, task_index=index)
if job == 'ps':
    JOIN
with tf.device('/job:ps/task:0'):
    v = tf.Variable(3.0)
with tf.Session(server.target) as session:
    session.run(v.initializer)
    print('has', session.run(v), flush=True)
"""


@pytest.mark.parametrize("servers", [pytest.param(1, marks=pytest.mark.thorough), 2])
def test_a_parameter_server_ends_inside_join(servers: int, tmp_path: Path) -> None:
    done = run(tmp_path, NO_ELSE.replace("JOIN", "server.join()"), "--ps", str(servers), "--workers", "2")

    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(done.stdout.splitlines()) == ["worker/0 | has 3.0", "worker/1 | has 3.0"]


def test_a_parameter_server_that_catches_errors_ends_inside_join(tmp_path: Path) -> None:
    join = "try:\n        server.join()\n    except Exception:\n        print('went on', flush=True)"

    done = run(tmp_path, NO_ELSE.replace("JOIN", join), "--workers", "1")

    assert (done.returncode, done.stdout, done.stderr) == (0, "worker/0 | has 3.0\n", "")


def test_join_on_another_thread_returns(tmp_path: Path) -> None:
    text = (
        "def wait():\n        server.join()\n        print('joined', flush=True)\n"
        "    waiting = threading.Thread(target=wait); waiting.start(); waiting.join(); sys.exit(0)"
    )

    done = run(tmp_path, NO_ELSE.replace("JOIN", text), "--workers", "1")

    assert (done.returncode, done.stderr) == (0, "")
    # in any order: a program says that it has finished before Python writes out what it has printed
    assert sorted(done.stdout.splitlines()) == ["ps/0     | joined", "worker/0 | has 3.0"]
