"""Delay, loss, reordering and throttling on every path between hosts: what docs/promises.md promises holds, only
slower.

Each task, and the control service, is a process on a host of its own (tests/support/faults/network.py). Nothing here is
a loss: a step takes its time, training stays exact, and no lease ends as long as the network is faster than the lease.
"""

from __future__ import annotations

import socket
import time
from typing import TYPE_CHECKING

import httpx
import pytest

from chaos.training_on_hosts import TrainingOnHosts
from process import kill_training
from support.faults.far_client import FarClient
from support.faults.hosts import TOKEN, ask_control, hosts, start_control
from support.faults.network import Network, why_not
from support.faults.switch import STOPPED, Wire
from support.faults.switch import Path as Way

if TYPE_CHECKING:
    from pathlib import Path

#: On each path, in each direction.
CONDITIONS = {
    "delay": Way(delay=0.05, jitter=0.02),
    "loss": Way(loss=0.05),
    "reordering": Way(delay=0.01, reorder=0.25, repeat=0.05),
    "throttled": Way(rate=1e6),
    "far": Way(delay=0.3),
}
#: What training is tried with in `make chaos` alone.
LONG = [pytest.param(name, marks=pytest.mark.long) for name in ("delay", "reordering", "throttled")]
#: Bytes of a tensor. At 1 Mbit these take longer than SILENCE, the seconds after which a peer is given up that is not
#: heard.
SIZES, SILENCE = {"delay": 2 << 20, "throttled": 1500 << 10}, 9.5
#: Seconds of a lease, and between heartbeats.
LEASE, HEARTBEAT = 4.0, 1.0
TASK_EVENTS, BEARER = "/v1/events?after=0&kind=task", {"Authorization": f"Bearer {TOKEN}"}


@pytest.mark.timeout(400)
@pytest.mark.parametrize("condition", ["loss", *LONG])
@pytest.mark.thorough
def test_training_stays_exact_and_no_lease_is_lost(tmp_path: Path, condition: str) -> None:
    heard, report = kill_training.Heard(), kill_training.Report(last_step=30)
    story = kill_training.STORIES["any"]
    with hosts("control", hear=heard.hear, ps=1, worker=story.workers) as tasks, pytest.MonkeyPatch.context() as patch:
        url = start_control(tasks, tmp_path, lease=LEASE, heartbeat=HEARTBEAT)
        patch.setenv("TENFOLD_CONTROL", url)
        patch.setenv("TENFOLD_REPORT", "1")
        ask_control(tasks, url, lambda control: control.declare_cluster("default", {"ps": 1, "worker": story.workers}))
        tasks.network.set_all(CONDITIONS[condition])
        training = TrainingOnHosts(tasks, heard, str(tmp_path / "checkpoints"), report.last_step)
        training.start_all()
        training.end()
        happened = tasks.network.inside("control", lambda: httpx.get(url + TASK_EVENTS, headers=BEARER).json())
    told = [(event["object"], event["action"]) for event in happened["events"]]

    kill_training.check(story, report, heard)
    assert len({name for name, action in told if action == "ready"}) == len(training.tasks), told
    assert not [name for name, action in told if action == "lost"]


@pytest.mark.long
@pytest.mark.timeout(400)
@pytest.mark.parametrize("transport", ["link", "grpc"])
@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_large_tensor_arrives_whole_and_its_sender_is_not_taken_for_dead(condition: str, transport: str) -> None:
    count = SIZES.get(condition, 256 << 10) // 4
    with hosts("client", transport=transport, ps=1, worker=1) as tasks:
        tasks.start(*tasks.names)
        tasks.network.set_all(CONDITIONS[condition])
        with FarClient(tasks.network, "client") as client:
            opened = client.call("open", tasks.target("worker", 0), tasks.names)
            there = client.call("carry", ("ps", 0), ("worker", 0), count)
            back = client.call("carry", ("worker", 0), ("ps", 0), count)
            fed = client.call("feed", ("worker", 0), count)

    assert not opened.code, opened
    assert there.value is True, there
    assert back.value is True, back
    assert fed.value is True, fed
    if condition == "throttled":
        assert min(there.seconds, back.seconds, fed.seconds) > SILENCE


def test_the_wire_loses_delays_repeats_and_throttles_as_told() -> None:
    wire, path = Wire(seed=3), (b"a", b"b")
    assert wire.arrivals(path, 1500, 7.0) == [7.0]
    wire.paths[path] = STOPPED
    assert wire.arrivals(path, 1500, 7.0) == []
    wire.paths[path] = Way(rate=12_000, queue=3000)
    assert [wire.arrivals(path, 1500, 7.0) for _ in range(4)] == [[8.0], [9.0], [10.0], []]
    wire.paths[path] = Way(delay=1.0, jitter=0.5, loss=0.1, repeat=0.1, reorder=0.2)
    told = [wire.arrivals(path, 100, 7.0) for _ in range(1000)]
    late = [arrives for each in told for arrives in each if arrives > 7.0]

    assert 7.5 <= min(late) < max(late) <= 8.5
    assert 60 < wire.lost[path] - 2 == sum(not each for each in told) < 140
    assert 50 < sum(len(each) == 2 for each in told) < 130
    assert 130 < sum(7.0 in each for each in told) < 230


def test_the_network_is_as_bad_as_it_is_told() -> None:
    if why := why_not():
        pytest.skip(why)
    with Network("one", "two", seed=1) as network:
        address = (network.hosts["one"].address, 5000)
        listening = network.inside("one", lambda: socket.create_server(address))

        def connect() -> float:
            began = time.monotonic()
            with socket.create_connection(address, timeout=10):
                return time.monotonic() - began

        with listening:
            network.set_all(Way(delay=0.1))
            assert 0.2 <= network.inside("two", connect) < 2
            network.cut_one_way("one", "two")
            with pytest.raises(OSError, match="timed out"):
                network.inside("two", lambda: socket.create_connection(address, timeout=1))
            assert network.lost(("one", "two")) > 0 == network.lost(("two", "one"))
            network.heal()
            assert network.inside("two", connect) < 10
