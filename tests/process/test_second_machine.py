"""A task on a second machine registers the address by which others reach it; one of loopback is refused from there.

host "control": tenfold control, 10.77.0.1      host "near": ps:0       host "far": worker:0
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.faults.far_client import FarClient
from support.faults.hosts import ask_control, hosts, start_control
from support.task_processes import CLI, PATIENCE
from tenfold.cli.children import ChildFailedError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.faults.hosts import TasksOnHosts
    from tenfold.control import ControlClient

LISTENING = r"listening on grpc://(\S+)"


@pytest.fixture
def place() -> Iterator[TasksOnHosts]:
    with hosts("control", "near", "far", ps=0) as tasks:
        yield tasks


def started_control(tasks: TasksOnHosts, folder: Path) -> str:
    """The URL of a control service that has the cluster."""
    url = start_control(tasks, folder, lease=30, heartbeat=2)
    ask_control(tasks, url, lambda control: control.declare_cluster("default", {"ps": 1, "worker": 1}))
    return url


def start(tasks: TasksOnHosts, host: str, job: str, url: str, *more: str, **environment: str) -> str:
    """The address that the task says that it has."""
    program = [*CLI, "task", "--job", job, "--control", url, *more]
    tasks.network.inside(host, lambda: tasks.children.start(job, program, stage=1, env=environment or None))
    return tasks.children.wait_for_line(job, LISTENING, PATIENCE)[1]


def test_tasks_on_two_hosts_are_a_cluster(place: TasksOnHosts, tmp_path: Path) -> None:
    url = started_control(place, tmp_path)
    near, far = place.network.hosts["near"].address, place.network.hosts["far"].address

    addresses = {"ps": start(place, "near", "ps", url, "--index", "0"), "worker": start(place, "far", "worker", url)}

    def look(control: ControlClient) -> dict[str, str]:
        spec = control.wait_for_spec("default", until_complete=True, timeout=PATIENCE)
        return {job: tasks[0] for job, tasks in spec.addresses.items()}

    assert ask_control(place, url, look) == addresses
    assert (addresses["ps"].partition(":")[0], addresses["worker"].partition(":")[0]) == (near, far)
    # a process of its own: threads of gRPC that an earlier test started are on this process's host
    with FarClient(place.network, "control") as client:
        opened = client.call("open", f"grpc://{addresses['worker']}", [("ps", 0), ("worker", 0)])
        assert opened.code == "", opened.message
        assert client.call("total").value == 3.0


@pytest.mark.thorough
def test_without_a_token_it_does_not_open_itself(place: TasksOnHosts, tmp_path: Path) -> None:
    url = started_control(place, tmp_path)

    with pytest.raises(ChildFailedError, match=r"(?s)refuses to listen on 10\.77\.0\.\d:\d+ without protection"):
        start(place, "near", "ps", url, "--index", "0", TENFOLD_TOKEN="")


@pytest.mark.parametrize("index", [(), ("--index", "0")])
@pytest.mark.thorough
def test_the_service_refuses_an_address_that_is_of_another_hosts_loopback(
    place: TasksOnHosts, tmp_path: Path, index: tuple[str, ...]
) -> None:
    url = started_control(place, tmp_path)
    far = place.network.hosts["far"].address.replace(".", r"\.")

    with pytest.raises(ChildFailedError, match=rf"(?s)127\.0\.0\.1:\d+ was sent by {far}, .*--address {far}:PORT"):
        start(place, "far", "worker", url, "--bind", "127.0.0.1:0", *index)
