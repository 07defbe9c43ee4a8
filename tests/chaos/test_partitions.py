"""Partitions between hosts, both ways and one way only: P1, P4 and P5 of docs/promises.md where packets do not arrive.

Each task is a process on a host of its own (tests/support/faults/network.py), and speaks TCP. A cut closes no
connection and refuses none: packets vanish, in one direction or in both. Nothing is started again: what was cut off
must heal.
"""

from __future__ import annotations

import random
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from chaos.training_on_hosts import TrainingOnHosts
from process import kill_training
from support.faults.far_client import FarClient
from support.faults.hosts import TasksOnHosts, ask_control, hosts, start_control, start_registered, wait_for_state
from support.task_processes import PATIENCE, task_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from support.faults.network import Network

#: Seconds until the error, as promised; and what a busy machine may add.
PROMISED, BUSY = 15.0, 3.0
#: Who is cut off from whom → the two hosts, and the task that the error names. The client's session is at worker 0.
PAIRS = {
    "worker-ps": ("worker0", "ps0", ("ps", 0)),
    "worker-chief": ("worker0", "chief0", ("chief", 0)),
    "client-master": ("client", "worker0", ("worker", 0)),
}
WAYS = ("both", "there", "back")
#: Any two tasks are like any others; without links, and with TLS, not everything is tried again.
TRIED = {
    "link": [(pair, way) for pair in PAIRS for way in WAYS if pair != "worker-chief" or way == "both"],
    "grpc": [*(("worker-ps", way) for way in WAYS), ("client-master", "both")],
    "tls": [("worker-ps", "both"), ("client-master", "back")],
}
QUICK = ("link", "worker-ps", "both")


def cut(network: Network, one: str, other: str, way: str) -> None:
    """Cuts one host off from the other: both ways, or that way alone."""
    if way in ("both", "there"):
        network.cut_one_way(one, other)
    if way in ("both", "back"):
        network.cut_one_way(other, one)


@contextmanager
def cluster_over(transport: str, folder: Path) -> Iterator[tuple[TasksOnHosts, FarClient]]:
    """A ps, a worker and a chief, and a client whose session is at the worker."""
    with hosts("client", transport=transport, folder=folder, ps=1, worker=1, chief=1) as tasks:
        tasks.start(*tasks.names)
        with FarClient(tasks.network, "client") as client:
            opened = client.call("open", tasks.target("worker", 0), tasks.names)
            assert not opened.code, opened.message
            yield tasks, client


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], tuple[TasksOnHosts, FarClient]]]:
    """The cluster over a transport, which heals from each cut: one at a time, as long as tests ask for the same."""
    with ExitStack() as stack:
        there: dict[str, tuple[TasksOnHosts, FarClient]] = {}

        def cluster(transport: str) -> tuple[TasksOnHosts, FarClient]:
            if transport not in there:
                there.clear()
                stack.close()
                folder = tmp_path_factory.mktemp("certificates")
                there[transport] = stack.enter_context(cluster_over(transport, folder))
            return there[transport]

        yield cluster


def combinations() -> list[Any]:
    return [
        pytest.param(transport, *each, marks=() if (transport, *each) == QUICK else pytest.mark.long)
        for transport, tried in TRIED.items()
        for each in tried
    ]


@pytest.mark.parametrize(("transport", "pair", "way"), combinations())
def test_a_step_ends_with_the_name_of_the_task_that_is_cut_off(
    clusters: Callable[[str], tuple[TasksOnHosts, FarClient]], transport: str, pair: str, way: str
) -> None:
    tasks, client = clusters(transport)
    one, other, task = PAIRS[pair]
    right = [client.call("total").value for _ in range(3)]
    cut(tasks.network, one, other, way)
    try:
        outcome = client.call("total")
    finally:
        tasks.network.heal()
    healed = client.call("total_again")

    assert right == [7.0] * 3
    assert outcome.code in ("UnavailableError", "AbortedError"), outcome
    assert task_name(*task) in outcome.message
    assert outcome.seconds < PROMISED + BUSY
    assert healed.value == 7.0, healed


#: Seconds of a lease, and between heartbeats.
LEASE, HEARTBEAT = 3.0, 1.0


@pytest.mark.long
@pytest.mark.parametrize("way", WAYS)
def test_a_task_that_is_cut_off_from_its_control_service_is_lost_by_name_and_comes_back(
    tmp_path: Path, way: str
) -> None:
    with hosts("control", "client", ps=1, worker=1) as tasks:
        url, ps = start_control(tasks, tmp_path, lease=LEASE, heartbeat=HEARTBEAT), task_name("ps", 0)
        control_says = partial(ask_control, tasks, url)
        control_says(lambda control: control.declare_cluster("default", {"ps": 1, "worker": 1}))
        start_registered(tasks, url, *tasks.names)
        control_says(lambda control: control.wait_for_spec("default", until_complete=True))
        with FarClient(tasks.network, "client") as client:
            opened = client.call("open", tasks.target("worker", 0), tasks.names)
            pid = tasks.children.pid("ps/0")
            cut(tasks.network, "ps0", "control", way)
            lost_after = control_says(lambda control: wait_for_state(control, ps, {"lost"}, PATIENCE))
            status = control_says(lambda control: control.jobs("default"))
            meanwhile = client.call("total")
            tasks.network.heal()
            control_says(lambda control: wait_for_state(control, ps, {"ready"}, PATIENCE))
            afterwards = client.call("total")

        assert not opened.code, opened
        assert lost_after < LEASE + HEARTBEAT + BUSY
        assert ps in str(status)
        # who can reach the task goes on working with it, and it is the same process still
        assert meanwhile.value == afterwards.value == 3.0
        assert tasks.children.pid("ps/0") == pid
        assert tasks.children.wait_for_exit(["ps/0"], 0) is None


@pytest.mark.parametrize(
    ("cuts", "steps"), [(1, 80), pytest.param(6, 100, marks=[pytest.mark.long, pytest.mark.timeout(600)])]
)
@pytest.mark.thorough
def test_synchronous_training_is_exact_over_partitions(tmp_path: Path, cuts: int, steps: int) -> None:
    """A worker, the chief among them, is cut off from the ps until some packets are lost: a moment, or until it is
    given up."""
    chance, heard, report = random.Random(cuts), kill_training.Heard(), kill_training.Report(last_step=cuts * steps)
    with hosts(hear=heard.hear, ps=1, worker=kill_training.STORIES["any"].workers) as tasks:
        training = TrainingOnHosts(tasks, heard, str(tmp_path), report.last_step)
        training.start_all()
        for number in range(cuts):
            heard.wait_for_steps(chance.randint(5, 20))
            worker, way = f"worker{number % 3}", WAYS[number % len(WAYS)]
            cut(tasks.network, worker, "ps0", way)
            tasks.network.wait_for_lost(chance.choice((1, 4, 10)), (worker, "ps0"), ("ps0", worker))
            tasks.network.heal()
            report.kills += 1
        training.end()
    kill_training.check(kill_training.STORIES["any"], report, heard)
