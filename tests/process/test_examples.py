"""The programs of examples/ run as their head says, each part in a process of its own. digits.py is run by the demo."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from support.ports import free_addresses
from tenfold.cli.children import Children
from tenfold.cli.local import CLIENT_STAGE, LocalCluster

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
#: Seconds for anything to happen that should, on a machine that runs other tests at the same time.
TIMEOUT = 100.0


def test_hello() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", EXAMPLES / "hello.py"], capture_output=True, text=True, timeout=TIMEOUT
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "b'Hello, distributed TensorFlow!'\n"


def example(name: str, *arguments: str, run: tuple[str, ...] = ()) -> list[str]:
    """What an example prints, on its own or as the tasks of `tenfold run …`, task by task. It must end well."""
    program = [str(EXAMPLES / f"{name}.py"), *arguments]
    command = ["-m", "tenfold.cli", "run", *run, *program] if run else ["-W", "error", *program]
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    if not run:
        return done.stdout.splitlines()
    return sorted((" ".join(line.split()) for line in done.stdout.splitlines()), key=task_of)


def task_of(line: str) -> str:
    """Which task printed a line of `tenfold run`."""
    return line.partition(" | ")[0]


def test_cluster() -> None:
    lines = example("cluster")

    assert lines[:3] == ["/job:ps/task:0", "/job:worker/task:0", "/job:worker/task:1"]
    assert lines[3].count("/device:CPU:0") == 3


def test_devices() -> None:
    assert example("devices") == [
        "weights asks for /job:local",
        "product asks for /job:local/device:CPU:0",
        "product 11.0",
        "refused: Cannot place 'on_gpu/y' on /device:GPU:0: the tasks of this cluster have CPU:0 only.",
        "softly 12.0",
    ]


def test_in_graph_replication() -> None:
    (line,) = example("in_graph", run=("--ps", "1", "--workers", "2"))

    assert line.startswith("worker/0 | loss ")
    assert float(line.split()[-1]) < 0.01


@pytest.mark.parametrize(
    "sync", [pytest.param(False, marks=pytest.mark.thorough), True], ids=["asynchronous", "synchronous"]
)
def test_between_graph_replication(sync: bool) -> None:
    lines = example("between_graph", *(["--sync"] if sync else []), run=("--ps", "2", "--workers", "2"))

    assert [line.partition(":")[0] for line in lines] == ["worker/0 | worker 0", "worker/1 | worker 1"]
    for line in lines:
        step, loss = re.search(r"global step (\d+), loss ([\d.]+)", line).groups()  # type: ignore[union-attr]
        # asynchronous workers may each be one step further than they knew
        assert 200 <= int(step) <= (200 if sync else 202)
        assert float(loss) < 0.05


@pytest.mark.thorough
def test_a_model_over_two_tasks() -> None:
    lines = example("model_parallel", run=("--ps", "0", "--workers", "2"))

    assert len(lines) == 3
    for index in range(2):
        assert re.match(rf"worker/0 \| /job:worker/replica:0/task:{index}/device:CPU:0 [1-9]", lines[index])
    assert float(lines[2].split()[-1]) < 0.4


@pytest.mark.thorough
def test_training_goes_on_after_a_lost_parameter_server(tmp_path: Path) -> None:
    run = ("--ps", "1", "--workers", "2", "--restarts", "1")
    lines = example("lost_ps", "--folder", str(tmp_path), run=run)

    chief = [line for line in lines if task_of(line) == "worker/0"]
    events = [line.rpartition(" at step ")[0] or line for line in chief]
    session = "worker/0 | a session,"
    # Where its first session began says nothing: the other worker may have come far while the chief's hooks began.
    assert events[:3] == [session, "worker/0 | killing the parameter server", session]
    assert events.count(session) == 2
    assert int(chief[2].split()[-1]) >= 500, "a checkpoint was restored"
    for index in range(2):
        assert f"worker/{index} | worker {index}: all 4000 steps: True, trained: True" in lines


@pytest.mark.long
def test_word2vec_on_sharded_embeddings() -> None:
    lines = example("word2vec", "--steps", "800", run=("--ps", "2", "--workers", "2"))

    assert "worker/0 | shards on ['/job:ps/task:0', '/job:ps/task:1']" in lines
    shares = [int(line.split()[-4].rstrip("%")) for line in lines if "nearest word" in line]
    assert len(shares) == 2
    assert min(shares) > 80


def test_two_servers() -> None:
    env = dict(zip(("PS", "WORKER"), free_addresses(2), strict=True))
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


@pytest.mark.thorough
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
@pytest.mark.thorough
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


@pytest.mark.thorough
def test_an_interrupted_demo_leaves_nobody() -> None:
    with Children() as children:
        children.start("demo", ["-m", "tenfold.cli", "demo"])
        children.wait_for_line("demo", r"step +\d+/\d+ +loss", TIMEOUT)
        process = psutil.Process(children.pid("demo"))
        family = process.children(recursive=True)

        process.send_signal(signal.SIGINT)
        ended = children.wait_for_exit(["demo"], TIMEOUT)

        # a control service, three tasks and two clients; who compiles may be there for a moment
        assert len(family) >= 6
        assert ended == ("demo", 1)
        assert not psutil.wait_procs(family, timeout=30)[1]


def test_every_example_is_listed_and_run() -> None:
    here, index = Path(__file__).read_text(), (EXAMPLES.parent / "docs" / "index.md").read_text()
    names = sorted(path.stem for path in EXAMPLES.glob("*.py"))

    assert names
    for name in names:
        assert f"../examples/{name}.py" in index, f"docs/index.md does not list {name}.py"
        assert f'"{name}' in here, f"no test here runs {name}.py"
