"""Clusters of real `tenfold` processes for the acceptance tests, test_accept_*.py: a file for each thing promised.

A cluster here is started as a user would start it by hand: `tenfold task --cluster JSON`, one process for each task, on
free ports of loopback. What the processes say is kept by line, and every wait is a wait for a line, an exit or an
answer, with a deadline. Leaving a cluster's block ends all of its processes. See also tenfold/cli/local.py for a
cluster with a control service.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import tenfold as tf
from support.ports import free_addresses
from tenfold.cli.children import Children

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

CLI = ["-m", "tenfold.cli"]
#: Seconds for anything to happen that should. Generous: on a busy machine several interpreters start at once.
PATIENCE = 60.0
#: Seconds that a client may wait for the news of a killed task.
NEWS_SECONDS = 5.0


def task_name(job: str, index: int) -> str:
    """As the runtime spells it in its messages."""
    return f"/job:{job}/replica:0/task:{index}"


class Tasks:
    """Tasks of one ClusterSpec, each a process named "job/index" among `children`."""

    def __init__(self, children: Children, addresses: dict[str, list[str]], heard: list[tuple[str, str]]) -> None:
        self.children = children
        self.addresses = addresses
        #: (name, line) of all that any child wrote. Reader threads append.
        self._heard = heard

    @property
    def spec(self) -> tf.train.ClusterSpec:
        return tf.train.ClusterSpec(self.addresses)

    @property
    def names(self) -> list[tuple[str, int]]:
        return [(job, index) for job, tasks in self.addresses.items() for index in range(len(tasks))]

    def target(self, job: str, index: int) -> str:
        return f"grpc://{self.addresses[job][index]}"

    def lines(self, name: str) -> list[str]:
        """All that a child has written so far."""
        return [line for speaker, line in self._heard if speaker == name]

    def start(self, *tasks: tuple[str, int], env: Mapping[str, str] | None = None) -> None:
        """Starts these side by side, with `env` besides this process's; returns once they listen."""
        cluster = json.dumps(self.addresses)
        for job, index in tasks:
            program = [*CLI, "task", "--job", job, "--index", str(index), "--cluster", cluster]
            self.launch(f"{job}/{index}", program, env)
        for job, index in tasks:
            self.children.wait_for_line(f"{job}/{index}", "listening on grpc://", PATIENCE)

    def launch(self, name: str, program: Sequence[str], env: Mapping[str, str] | None = None) -> None:
        """Starts `python PROGRAM…` as the child of that name. tests/support/faults/hosts.py has hosts for them."""
        self.children.start(name, program, stage=1, env=env)

    def signal(self, job: str, index: int, number: int) -> None:
        os.kill(self.children.pid(f"{job}/{index}"), number)

    def stop(self, job: str, index: int) -> None:
        """The task stands still from now on, until SIGCONT."""
        stand_still(self.children.pid(f"{job}/{index}"))

    def kill(self, job: str, index: int) -> None:
        """kill -9; returns once the process is gone."""
        self.signal(job, index, signal.SIGKILL)
        assert self.children.wait_for_exit([f"{job}/{index}"], PATIENCE) == (f"{job}/{index}", -signal.SIGKILL)


def stand_still(pid: int) -> None:
    """SIGSTOP to a child process; returns once all its threads have stopped, which a busy machine takes a while for."""
    os.kill(pid, signal.SIGSTOP)
    os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOWAIT)


@contextmanager
def static_cluster(*, absent: Sequence[tuple[str, int]] = (), **jobs: int) -> Iterator[Tasks]:
    """`static_cluster(ps=1, worker=2)`: so many tasks of each job, running, but for the `absent` ones."""
    free = iter(free_addresses(sum(jobs.values())))
    heard: list[tuple[str, str]] = []
    with Children(echo=lambda name, line: heard.append((name, line))) as children:
        tasks = Tasks(children, {job: [next(free) for _ in range(size)] for job, size in jobs.items()}, heard)
        tasks.start(*(task for task in tasks.names if task not in absent))
        yield tasks


def python(*arguments: str) -> list[str]:
    """A command line of the interpreter that runs the tests, in which a warning is an error."""
    return [sys.executable, "-W", "error", *arguments]
