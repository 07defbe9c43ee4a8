"""Clusters of real `tenfold` processes, each on a host of network.py: what task_processes.py has on loopback.

Task ps/0 is on the host "ps0", and so on, at port 2222. Beyond loopback a task wants to know whom to let in: all of
them have one token, which is in the environment of this process while a cluster is there, for clients too.
"""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

import pytest

from support.certs import access
from support.faults.network import Network, why_not
from support.task_processes import CLI, PATIENCE, Tasks
from tenfold.cli.children import Children, Echo
from tenfold.control import ControlClient

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

T = TypeVar("T")

PORT, CONTROL_PORT = 2222, 8080
TOKEN = "tenfold-of-the-hosts"
#: Transport → settings of tasks and clients. Hosts of their own share no Unix sockets: a link is TCP.
TRANSPORTS = {"link": {}, "grpc": {"TENFOLD_LINK": "off"}, "tls": {}}


def host_of(name: str) -> str:
    """ "ps/0" is on the host "ps0"."""
    return name.replace("/", "")


class TasksOnHosts(Tasks):
    """Tasks of one ClusterSpec, each on its host of `network`."""

    def __init__(
        self, network: Network, children: Children, addresses: dict[str, list[str]], heard: list[tuple[str, str]]
    ) -> None:
        super().__init__(children, addresses, heard)
        self.network = network

    def launch(self, name: str, program: Sequence[str], env: Mapping[str, str] | None = None) -> None:
        self.network.inside(host_of(name), lambda: super(TasksOnHosts, self).launch(name, program, env))


@contextmanager
def hosts(
    *others: str,
    transport: str = "link",
    folder: Path | None = None,
    seed: int = 0,
    hear: Echo | None = None,
    **jobs: int,
) -> Iterator[TasksOnHosts]:
    """`hosts("client", ps=1, worker=2)`: a host for each task and each other name, and no process yet.

    `folder` takes the certificates of transport "tls"; `hear` is told each line that a process writes. Skips the test
    where there can be no such network.
    """
    if why := why_not():
        pytest.skip(why)
    names = [f"{job}{index}" for job, size in jobs.items() for index in range(size)]
    heard: list[tuple[str, str]] = []
    with pytest.MonkeyPatch.context() as patch, Network(*names, *others, seed=seed) as network:
        for name in [name for name in os.environ if name.startswith("TENFOLD_") and name != "TENFOLD_CACHE_DIR"]:
            patch.delenv(name)
        for name, value in {"TENFOLD_REPORT": "0", "TENFOLD_TOKEN": TOKEN, **TRANSPORTS[transport]}.items():
            patch.setenv(name, value)
        if transport == "tls":
            assert folder is not None
            mine = access(folder, hosts=[host.address for host in network.hosts.values()])
            for name in ("cert", "key", "ca"):
                patch.setenv(f"TENFOLD_TLS_{name.upper()}", str(getattr(mine, f"tls_{name}")))
        addresses = {
            job: [network.address(f"{job}{index}", PORT) for index in range(size)] for job, size in jobs.items()
        }
        with Children(hear or (lambda name, line: heard.append((name, line)))) as children:
            yield TasksOnHosts(network, children, addresses, heard)


def start_control(tasks: TasksOnHosts, folder: Path, *, lease: float, heartbeat: float) -> str:
    """A control service on the host "control"; its URL."""
    host = tasks.network.hosts["control"].address
    program = [*CLI, "control", "--host", host, "--port", str(CONTROL_PORT), "--database", str(folder / "control.db")]
    times = {"TENFOLD_CONTROL_LEASE_TTL": str(lease), "TENFOLD_CONTROL_HEARTBEAT": str(heartbeat)}
    tasks.launch("control", program, times)
    tasks.children.wait_for_line("control", "listening on http://", PATIENCE)
    return f"http://{host}:{CONTROL_PORT}"


def ask_control(tasks: TasksOnHosts, url: str, question: Callable[[ControlClient], T]) -> T:
    """What `question` gives, asked on the control service's own host, from which nothing cuts it off."""

    def ask() -> T:
        with ControlClient(url, token=TOKEN) as control:
            return question(control)

    return tasks.network.inside("control", ask)


def start_registered(tasks: TasksOnHosts, url: str, *names: tuple[str, int]) -> None:
    """Tasks that register with the control service; returns once they listen."""
    for job, index in names:
        address = tasks.addresses[job][index]
        program = [*CLI, "task", "--job", job, "--index", str(index), "--control", url, "--address", address]
        tasks.launch(f"{job}/{index}", [*program, "--bind", address])
    for job, index in names:
        tasks.children.wait_for_line(f"{job}/{index}", "listening on grpc://", PATIENCE)


def wait_for_state(control: ControlClient, task: str, wanted: set[str], seconds: float) -> float:
    """Waits, by long-poll, until the control service says that of the task; how long that took.

    Raises AssertionError after so many seconds.
    """
    began = time.monotonic()
    spec = control.spec("default")
    while spec.states.get(task) not in wanted:
        left = began + seconds - time.monotonic()
        assert left > 0, f"{task} is {spec.states.get(task)} after {seconds:g} s, not {wanted}"
        spec = control.poll_spec("default", after=spec.version, wait=left)
    return time.monotonic() - began
