"""`tenfold why`: hangs made on purpose in real processes, and the culprit that is named for each, within two seconds.

why_hangs.py is the program. A hang is there once every task has said that it is about to stand still, and a moment
later: the question is asked until the answer is the expected one. A few run always, the others are `thorough`.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from click.testing import CliRunner

import tenfold as tf
from support.task_processes import CLI, PATIENCE
from tenfold.cli.children import Children
from tenfold.cli.main import cli
from tenfold.control import ControlClient

if TYPE_CHECKING:
    from collections.abc import Iterator

PROGRAM = Path(__file__).with_name("why_hangs.py")
PS, W0, W1 = "/job:ps/replica:0/task:0", "/job:worker/replica:0/task:0", "/job:worker/replica:0/task:1"
#: Seconds of an answer, as promised; and what a busy machine may add.

PROMISED, BUSY = 2.0, 2.0
#: Seconds until all stand still that have said that they are about to.
SETTLED = 20.0


@dataclass(frozen=True)
class Hang:
    """`stopped` gets SIGSTOP once all are ready."""

    name: str
    kind: str
    task: str
    says: str = ""
    ready: int = 2
    stopped: str = ""
    quick: bool = False

    @property
    def marks(self) -> tuple[pytest.MarkDecorator, ...]:
        """One of each kind in CI; `make test-long` tries all."""
        return () if self.quick else (pytest.mark.thorough if self.name in _IN_CI else pytest.mark.long,)


_IN_CI = frozenset(
    (
        *("empty_queue", "idle_producer", "full_queue", "killed_worker", "stopped_ps"),
        *("one_function", "held_lock", "slow_chief", "barrier", "crossed_locks"),
    )
)

#: Each way to stand still, and its culprit.
HANGS = [
    Hang("empty_queue", "resource", PS, "'work', which has 0 of 1 elements, and no operation of an open session puts"),
    Hang("idle_producer", "program", W1, "in in_the_way (why_hangs.py:"),
    Hang("full_queue", "resource", PS, "room in 'work', which is full: 2 of 2, and no operation"),
    Hang("idle_consumer", "program", W1, "in in_the_way"),
    Hang("missing_gradient", "program", W1, "in in_the_way"),
    Hang("stopped_worker", "silent", W1, "does not answer, though it is running", stopped=W1, quick=True),
    Hang("killed_worker", "absent", W1, "is failed: it was ended by SIGABRT"),
    Hang("token_short", "program", W0, "in in_the_way"),
    Hang("stopped_ps", "silent", PS, "does not answer, though it is running", stopped=PS),
    Hang("one_function", "computing", W0, "computes 'slow' (PyFunc), in slow_function"),
    Hang("slow_reader", "computing", W0, "computes 'read_file' (PyFunc), in slow_function", ready=3),
    Hang("two_functions", "deadlock", W0, "'first' in first", quick=True),
    Hang("held_lock", "computing", W0, "critical_section_execute/holder' (PyFunc), in slow_function"),
    Hang("lost_chief", "absent", W0, "is failed: it was ended by SIGABRT"),
    Hang("slow_chief", "program", W0, "in in_the_way"),
    Hang("barrier", "program", W1, "in in_the_way"),
    Hang("staging", "resource", W0, "'stage', which has 0 of 1 elements, and no operation"),
    Hang("no_server", "program", W1, "in in_the_way"),
    Hang("generator", "computing", W0, "in slow_function"),
    Hang("part_elsewhere", "program", W1, "in in_the_way"),
    Hang("loop", "program", W1, "in in_the_way"),
    Hang("own_code", "program", W0, "in in_the_way"),
    Hang("shuffle", "program", W1, "in in_the_way"),
    Hang("large_batch", "program", W1, "in in_the_way"),
    Hang("file_names", "resource", W0, "'files', which has 0 of 1 elements"),
    Hang("stopped_producer", "silent", W1, "does not answer, though it is running", stopped=W1),
    Hang("stopped_chief", "silent", W0, "does not answer, though it is running", stopped=W0),
    Hang("full_staging", "resource", W0, "room in 'stage', which is full: 1 of 1, and no operation"),
    Hang("sparse_gradient", "program", W1, "in in_the_way"),
    Hang("slow_map", "computing", W0, "in slow_function"),
    Hang("crossed_locks", "deadlock", W0, "Steps wait for each other"),
]


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A control service that runs programs."""
    environment = {name: None for name in os.environ if name.startswith("TENFOLD_") and name != "TENFOLD_CACHE_DIR"}
    with pytest.MonkeyPatch.context() as patch, Children() as children:
        for name in environment:
            patch.delenv(name)
        database = tmp_path_factory.mktemp("why") / "c.db"
        children.start("control", [*CLI, "control", "--port", "0", "--database", str(database), "--allow-runs"])
        url = children.wait_for_line("control", r"listening on (http://\S+)", PATIENCE)[1]
        with httpx.Client(base_url=url, trust_env=False, timeout=PATIENCE) as client:
            yield client


@contextlib.contextmanager
def standing_still(api: httpx.Client, hang: Hang) -> Iterator[str]:
    """The name of a run whose tasks are about to stand still."""
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as gate:
        gate.settimeout(PATIENCE)
        body = {
            "entrypoint": ["python", str(PROGRAM), hang.name, str(gate.getsockname()[1])],
            "jobs": {"ps": 1, "worker": 2},
            "grace": 300,
            "stop_grace": 1,
        }
        answer = api.post("/v1/runs", json=body)
        assert answer.is_success, answer.text
        run = str(answer.json()["name"])
        try:
            for _ in range(hang.ready):
                try:
                    connection, _ = gate.accept()
                except TimeoutError:
                    raise AssertionError(api.get(f"/v1/runs/{run}/logs?format=text").text) from None
                connection.close()
            yield run
        finally:
            api.post(f"/v1/runs/{run}:stop")
            api.get(f"/v1/runs/{run}?ended=true&wait=30s")


def process_of(api: httpx.Client, run: str, task: str) -> int:
    """The process of a task, once it has reported, so that its silence is one."""
    job, _, index = task.removeprefix("/job:").replace("/replica:0/task:", "/").partition("/")
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        found = api.get(f"/v1/runs/{run}/progress").json()["tasks"]
        if any((each["job"], each["index"]) == (job, int(index)) for each in found):
            tasks = api.get(f"/v1/runs/{run}").json()["tasks"]
            return next(int(each["pid"]) for each in tasks if each["name"] == task)
    raise AssertionError(f"{task} does not report")


def why(api: httpx.Client, run: str, hang: Hang) -> dict[str, Any]:
    """The answer, asked for again until it is the one for this hang, or the time is up."""
    end = time.monotonic() + SETTLED
    while True:
        began = time.monotonic()
        answer = api.get(f"/v1/runs/{run}:why")
        assert answer.status_code == 200, answer.text
        took = time.monotonic() - began
        found: dict[str, Any] = answer.json()
        right = (found["kind"], found["task"]) == (hang.kind, hang.task) and hang.says in found["suspect"]
        if right or began > end:
            assert took < PROMISED + BUSY
            return found


@pytest.mark.parametrize("hang", [pytest.param(each, marks=each.marks, id=each.name) for each in HANGS])
def test_the_culprit_is_named(api: httpx.Client, hang: Hang) -> None:
    with standing_still(api, hang) as run:
        pid = process_of(api, run, hang.stopped) if hang.stopped else 0
        if pid:
            os.kill(pid, signal.SIGSTOP)
        try:
            found = why(api, run, hang)
        finally:
            if pid:
                os.kill(pid, signal.SIGCONT)

    assert (found["kind"], found["task"]) == (hang.kind, hang.task), found
    assert hang.says in found["suspect"], found
    assert found["silent"] == ([hang.stopped] if hang.stopped else [])


@pytest.mark.thorough
def test_a_cluster_and_a_session_are_asked_over_grpc(api: httpx.Client) -> None:
    """A step of a REST session waits in a queue at the ps, which nobody fills; then the ps is stopped."""
    api.put("/v1/clusters/default", json={"jobs": {"ps": 1, "worker": 1}}).raise_for_status()
    graph = tf.Graph()
    with graph.as_default(), tf.device("/job:ps/task:0"):
        work = tf.FIFOQueue(3, tf.float32, [[]], name="work", shared_name="work")
        work.enqueue(1.0, name="put")
        work.dequeue(name="get")
    url = str(api.base_url)
    with Children() as children, ControlClient(url) as control, ThreadPoolExecutor(1) as pool:
        for job in ("ps", "worker"):
            children.start(job, [*CLI, "task", "--control", url, "--job", job, "--bind", "127.0.0.1:0"])
        with control.create_session("default", graph, wait=PATIENCE) as session:
            step = pool.submit(session.run, "get:0", timeout=PATIENCE)
            end = time.monotonic() + SETTLED
            while not (found := control.why_session(session.id)).tasks[0].waits and time.monotonic() < end:
                pass
            shown = CliRunner().invoke(cli, ["why", "--control", url, "--cluster-name", "default", "--stacks"])
            os.kill(children.pid("ps"), signal.SIGSTOP)
            try:
                began = time.monotonic()
                silent = control.why_cluster("default")
                took = time.monotonic() - began
            finally:
                os.kill(children.pid("ps"), signal.SIGCONT)
            session.run("put", timeout=PATIENCE)
            assert step.result(PATIENCE) == 1.0

    assert (found.kind, found.task, found.node) == ("resource", PS, "get")
    assert "'work', which has 0 of 1 elements" in found.suspect
    assert shown.exit_code == 0, shown.output
    assert shown.output.startswith(found.suspect)
    assert (silent.kind, silent.task, silent.silent) == ("silent", PS, (PS,))
    assert took < PROMISED + BUSY
