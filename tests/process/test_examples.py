"""The programs of examples/ run as their head says, each part in a process of its own. digits.py is run by the demo."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tenfold.cli.children import Children
from tenfold.cli.local import CLIENT_STAGE, LocalCluster

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
TIMEOUT = 60.0


def test_hello() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", EXAMPLES / "hello.py"], capture_output=True, text=True, timeout=TIMEOUT
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "b'Hello, distributed TensorFlow!'\n"


def test_two_servers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as first, socket.create_server(("127.0.0.1", 0)) as second:
        env = {"PS": f"localhost:{first.getsockname()[1]}", "WORKER": f"localhost:{second.getsockname()[1]}"}
    program = str(EXAMPLES / "two_servers.py")

    with Children() as children:
        for job in ("ps", "worker"):
            children.start(job, [program, job], env=env)
            children.wait_for_line(job, f"{job} is at grpc://", TIMEOUT)
        children.start("client", [program, "client"], env=env)
        ended = children.wait_for_exit(["client"], TIMEOUT)
        children.wait_for_line("client", r"asked through worker: \[21\.0, 43\.0\]", 1)
        children.wait_for_line("client", r"asked through ps: \[21\.0, 43\.0\]", 1)

    assert ended == ("client", 0)


def test_split_reduce_and_where_its_nodes_ran() -> None:
    lines: list[tuple[str, str]] = []
    with LocalCluster(ps=1, workers=2, echo=lambda name, line: lines.append((name, line))) as cluster:
        env = {"TENFOLD_CONTROL": cluster.control_url}
        cluster.children.start("client", [str(EXAMPLES / "split_reduce.py")], stage=CLIENT_STAGE, env=env)
        ended = cluster.children.wait_for_exit(["client"], TIMEOUT)

    assert ended == ("client", 0), lines
    assert ("client", "total 4950") in lines
    # The session was opened on worker 0: its server logs where each node went.
    logged = "\n".join(line for name, line in lines if name == "worker/0")
    for node, job, index in [
        ("numbers", "ps", 0),
        ("shards", "ps", 0),
        ("shard_0_sum", "worker", 0),
        ("shard_1_sum", "worker", 1),
        ("total", "worker", 0),
    ]:
        assert re.search(rf"{node}: .*/job:{job}/replica:0/task:{index}/device:CPU:0", logged), logged


@pytest.mark.parametrize("steps", [40])
def test_digits_with_two_clients(steps: int) -> None:
    lines: list[tuple[str, str]] = []
    with LocalCluster(ps=2, workers=2, echo=lambda name, line: lines.append((name, line))) as cluster:
        env = {"TENFOLD_CONTROL": cluster.control_url}
        for index in range(2):
            program = [str(EXAMPLES / "digits.py"), "--task-index", str(index), "--steps", str(steps)]
            cluster.children.start(f"client/{index}", program, stage=CLIENT_STAGE, env=env)
        ended = [cluster.children.wait_for_exit([f"client/{index}"], TIMEOUT) for index in range(2)]

    assert ended == [("client/0", 0), ("client/1", 0)], lines
    accuracies = [float(line.split()[1]) for name, line in lines if line.startswith("accuracy")]
    # Far from trained after so few steps, and far from guessing.
    assert len(accuracies) == 2
    assert min(accuracies) > 0.5


def test_an_interrupted_demo_leaves_nobody() -> None:
    with Children() as children:
        children.start("demo", [str(EXAMPLES / "demo.py")])
        children.wait_for_line("demo", r"step +\d+/\d+ +loss", TIMEOUT)
        process = psutil.Process(children.pid("demo"))
        family = process.children(recursive=True)

        process.send_signal(signal.SIGINT)
        ended = children.wait_for_exit(["demo"], TIMEOUT)

        assert len(family) == 6
        assert ended == ("demo", 1)
        assert not psutil.wait_procs(family, timeout=30)[1]
