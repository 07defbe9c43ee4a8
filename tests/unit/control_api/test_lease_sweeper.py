"""The sweeper: which leases it ends, what it says of it, and that it goes on after an error."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from support.cluster_store import MemoryStore
from support.hand_clock import HandClock
from tenfold_control_api.cluster import Cluster, Newcomer, TaskState
from tenfold_control_api.cluster_table import ClusterTable
from tenfold_control_api.lease_sweeper import LeaseSweeper
from tenfold_control_api.service_settings import Settings
from tenfold_core.access import audit

NAME = "/job:worker/replica:0/task:0"


class Service:
    def __init__(self, *, shared: bool = False, **settings: Any) -> None:
        self.store, self.clock = MemoryStore(shared=shared), HandClock()
        known = Settings(**settings)
        self.table = ClusterTable(cast("Any", self.store), known, self.clock)
        self.sweeper = LeaseSweeper(self.table, cast("Any", self.store), known, lambda: 500.0)
        self.lost: list[str] = []
        self.sweeper.lost_listeners.append(self.lost.append)

    async def register(self, lease: str = "lease", index: int = 0) -> None:
        if "c" not in self.table.clusters:
            await self.table.add(Cluster.new("c", "u", {"worker": 2}, now=0.0))
        newcomer = Newcomer("h:1", f"life of {lease}", lease)

        def decide(cluster: Cluster) -> tuple[Cluster, None]:
            return cluster.register("worker", index, newcomer, 1.0).cluster, None

        await self.table.change("c", decide)

    def wait(self) -> None:
        """A lease's time goes by, while the service is awake."""
        for _ in range(10):
            self.clock.now += 1.0
            self.table.leases.expired()

    def task(self, index: int = 0) -> Any:
        return self.table.clusters["c"].task("worker", index)

    async def look(self) -> None:
        """The sweeper looks once."""
        looked = asyncio.Event()
        expired = self.table.leases.expired

        def noted() -> list[str]:
            looked.set()
            return expired()

        self.table.leases.expired = noted  # type: ignore[method-assign]
        await looked.wait()
        for _ in range(10):
            await asyncio.sleep(0)
        self.table.leases.expired = expired  # type: ignore[method-assign]


@pytest.fixture
def audited(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    lines: list[Any] = []
    monkeypatch.setattr(audit, "done", lambda *given, **more: lines.append((*given, more)))
    return lines


async def test_a_lease_that_was_not_renewed_ends_with_its_task(
    audited: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    service = Service()
    await service.register()
    service.wait()
    service.sweeper.start()

    await service.look()

    task = service.task()
    assert (task.state, task.reason, task.since) == (TaskState.LOST, "lease expired: no heartbeat for 10.0 s", 500.0)
    assert service.lost == ["c"]
    assert audited == [
        (
            *(audit.ITSELF, "lose task"),
            {"cluster": "c", "task": NAME, "reason": "its lease ran out: no heartbeat for 10.0 s"},
        )
    ]
    assert [each.getMessage() for each in caplog.records] == [f"{NAME} of cluster c is lost: its lease expired"]
    assert service.sweeper.expiring == set()
    await service.sweeper.stop()


async def test_one_that_was_renewed_stays_and_so_does_one_of_a_newer_task(audited: list[Any]) -> None:
    service = Service()
    await service.register()
    service.table.leases.renew("lease")
    await service.sweeper._expire("lease")
    assert service.task().state is TaskState.READY

    service.wait()
    held = service.table.holders["lease"]
    await service.table.change("c", lambda cluster: (cluster.deregister("worker", 0, "x", 2.0), None))
    await service.register("newer")
    service.table.holders["lease"] = held
    await service.sweeper._expire("lease")
    assert service.task().lease_id == "newer"
    assert (service.lost, audited) == ([], [])


async def test_a_lease_without_a_holder_is_forgotten() -> None:
    service = Service()
    service.table.leases.grant("stray", 1.0)
    await service.sweeper._expire("stray")
    assert "stray" not in service.table.leases


async def test_while_an_end_is_written_its_lease_is_expiring_even_if_it_fails() -> None:
    service = Service()
    await service.register()
    service.wait()
    service.store.gate = asyncio.Event()
    ending = asyncio.create_task(service.sweeper._expire("lease"))
    for _ in range(5):
        await asyncio.sleep(0)
    assert service.sweeper.expiring == {"lease"}
    ending.cancel()
    service.store.gate.set()
    with pytest.raises(asyncio.CancelledError):
        await ending
    assert service.sweeper.expiring == set()


async def test_the_end_names_the_renewals_that_were_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service()
    await service.register()
    service.table.leases.observe("lease", 10.0, 4)
    service.wait()
    given: list[Any] = []

    async def change(name: str, _: Any, expired: Any = None) -> bool:
        given.append((name, expired))
        return False

    monkeypatch.setattr(service.table, "change", change)
    await service.sweeper._expire("lease")
    assert given == [("c", ("lease", 4))]
    assert service.lost == []


async def test_it_runs_from_its_start_to_its_stop() -> None:
    service = Service()
    assert service.sweeper.trouble() == "the lease sweeper does not run"
    service.sweeper.start()
    assert service.sweeper.trouble() == ""
    await service.sweeper.stop()
    assert service.sweeper.trouble() == "the lease sweeper does not run"
    await service.sweeper.stop()


async def test_an_error_is_its_trouble_until_a_round_ends_well(caplog: pytest.LogCaptureFixture) -> None:
    service = Service(heartbeat=0.001, lease_ttl=10.0)
    broken = [True]
    refreshed = asyncio.Event()

    async def refresh() -> None:
        refreshed.set()
        if broken[0]:
            raise OSError("the database is away")

    service.table.refresh = refresh  # type: ignore[method-assign]
    service.sweeper.start()
    await refreshed.wait()
    await asyncio.sleep(0)
    assert service.sweeper.trouble() == "the lease sweeper failed (OSError)"
    assert "the lease sweeper could not do its work; it tries again in 0.001 s" in caplog.text

    broken[0] = False
    refreshed.clear()
    await refreshed.wait()
    for _ in range(5):
        await asyncio.sleep(0)
    assert service.sweeper.trouble() == ""
    await service.sweeper.stop()


async def test_renewals_at_other_services_count_where_the_database_is_shared() -> None:
    service = Service(shared=True, refresh_interval=60.0)
    await service.register()
    await service.register("second", 1)
    service.wait()
    service.store.leases = [
        SimpleNamespace(id="lease", ttl=10.0, renewals=1),
        SimpleNamespace(id="unknown", ttl=10.0, renewals=1),
    ]
    service.sweeper.start()
    await service.look()
    assert service.task().state is TaskState.READY
    assert service.task(1).state is TaskState.LOST
    assert "unknown" not in service.table.leases
    await service.sweeper.stop()


async def test_a_shared_database_is_looked_at_in_time() -> None:
    service = Service(shared=True, refresh_interval=0.001)
    looks = asyncio.Event()
    count = [0]

    async def refresh() -> None:
        count[0] += 1
        if count[0] == 3:
            looks.set()

    service.table.refresh = refresh  # type: ignore[method-assign]
    service.sweeper.start()
    await asyncio.wait_for(looks.wait(), 30)
    await service.sweeper.stop()
