"""A cluster comes up in whatever order its parts are started; a part that is started wrongly says so, and harms nobody.

    control service ◄── ps:0, worker:0, chief:0, each a process, each waited for until it can do no more alone

What one part that is missing does is tried in tests/process/test_accept_missing_task.py, ports that are taken in
tests/process/test_ports_in_use.py.
"""

from __future__ import annotations

import itertools
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import tenfold as tf
from support.ports import free_addresses, free_port
from support.task_processes import CLI, PATIENCE
from tenfold.cli.children import Children
from tenfold.control import ControlClient

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

TRAINER = Path(__file__).resolve().parents[1] / "process" / "kill_trainer.py"
LISTENING = r"listening on \w+://(\S+)"
#: What a task logs while there is nobody to register with.
ALONE = "the cluster is not known yet"
JOBS = ("ps", "worker", "chief")


@pytest.fixture
def children(monkeypatch: pytest.MonkeyPatch) -> Iterator[Children]:
    for name in [name for name in os.environ if name.startswith("TENFOLD_") and name != "TENFOLD_CACHE_DIR"]:
        monkeypatch.delenv(name)
    with Children() as started:
        yield started


class Place:
    """A control service and the tasks of a cluster, which are started one after the other."""

    def __init__(self, children: Children, folder: Path) -> None:
        self._children, self._folder = children, folder
        self._port = free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        self._there = False

    def start(self, role: str) -> None:
        """Returns once the part is as far as it comes by itself."""
        if role == "control":
            program = ["--port", str(self._port), "--database", str(self._folder / "c.db")]
            jobs = ["--jobs", ",".join(f"{job}=1" for job in JOBS)]
            self._children.start("control", [*CLI, "control", *program, *jobs])
            self._children.wait_for_line("control", LISTENING, PATIENCE)
            self._there = True
            return
        self.task(role, role)
        self._children.wait_for_line(role, LISTENING if self._there else ALONE, PATIENCE)

    def task(self, name: str, job: str, *more: str, index: int = 0) -> None:
        program = ["task", "--job", job, "--index", str(index), "--control", self.url, "--log-level", "info", *more]
        self._children.start(name, [*CLI, *program], stage=1)

    def target(self, job: str) -> str:
        return "grpc://" + self._children.wait_for_line(job, LISTENING, PATIENCE)[1]

    def sum_over_all(self, job: str) -> float:
        """A step from the master of `job` that needs every task."""
        with tf.Graph().as_default():
            parts = []
            for number, other in enumerate(JOBS):
                with tf.device(f"/job:{other}/task:0"):
                    parts.append(tf.Variable(float(number + 1), name=other) + 0.0)
            total = tf.add_n(parts)
            with tf.Session(self.target(job)) as session:
                session.run(tf.global_variables_initializer())
                return float(session.run(total))

    def states(self) -> set[str]:
        with ControlClient(self.url) as control:
            return {task["state"] for job in control.job_status("default")["jobs"] for task in job["tasks"]}


def started(children: Children, folder: Path, order: Sequence[str]) -> None:
    place = Place(children, folder)
    for role in order:
        place.start(role)

    assert [place.sum_over_all(job) for job in JOBS] == [6.0] * 3
    assert place.states() == {"ready"}


ORDERS = list(itertools.permutations(("control", *JOBS)))
LAST = ("chief", "worker", "ps", "control")


@pytest.mark.thorough
def test_the_control_service_comes_last(children: Children, tmp_path: Path) -> None:
    started(children, tmp_path, LAST)


@pytest.mark.long
@pytest.mark.parametrize("order", ORDERS, ids=",".join)
def test_every_order(order: tuple[str, ...], children: Children, tmp_path: Path) -> None:
    started(children, tmp_path, order)


def trained(children: Children, folder: Path, order: Sequence[tuple[str, int]]) -> None:
    """A written cluster, whose tasks are training programs: worker 0 is the chief."""
    addresses = {"ps": free_addresses(1), "worker": free_addresses(2)}
    for job, index in order:
        config = {"cluster": addresses, "task": {"type": job, "index": index}}
        env = {"TF_CONFIG": json.dumps(config), "TENFOLD_STOP_WITH_WORKERS": "1"}
        program = [str(TRAINER), "--sync", "--last-step=5", "--save-steps=100", f"--folder={folder}"]
        children.start(f"{job}/{index}", program, env=env)
        children.wait_for_line(f"{job}/{index}", "^serving", PATIENCE)

    for job, index in order:
        name = f"{job}/{index}"
        assert children.wait_for_exit([name], PATIENCE) == (name, 0), children.last_lines(name, 20)
    done = [children.last_lines(f"worker/{index}", 1)[0].split() for index in range(2)]
    assert [(words[0], words[1]) for words in done] == [("done", "5")] * 2


TASKS = [("ps", 0), ("worker", 0), ("worker", 1)]


@pytest.mark.long
@pytest.mark.parametrize("order", list(itertools.permutations(TASKS)), ids=str)
def test_every_order_of_a_written_cluster(
    order: tuple[tuple[str, int], ...], children: Children, tmp_path: Path
) -> None:
    trained(children, tmp_path, order)


def test_a_part_that_is_started_wrongly(children: Children, tmp_path: Path) -> None:
    place = Place(children, tmp_path)
    place.start("control")
    for job in JOBS:
        place.start(job)
    wrong = {
        "a job that is not there": ("wrker", 0, "has no job 'wrker'; its jobs are:"),
        "an index that is not there": ("worker", 7, "has size 1: index 7 is not one of 0 to 0"),
        "a task that is there": ("worker", 0, "is taken by"),
    }

    for name, (job, index, _) in wrong.items():
        place.task(name, job, index=index)
    ends = {name: children.wait_for_exit([name], PATIENCE) for name in wrong}

    for name, (_, _, words) in wrong.items():
        said = "\n".join(children.last_lines(name, 20))
        assert ends[name] == (name, 1), said
        (line,) = [line for line in said.splitlines() if line.startswith("Error: ")]
        assert words in line, line
        assert "Traceback" not in said
    assert place.sum_over_all("chief") == 6.0
    assert place.states() == {"ready"}
