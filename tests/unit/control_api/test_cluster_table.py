"""How a cluster changes: only what the database has is visible, and replicas that were faster are taken in first."""

from __future__ import annotations

import asyncio
import uuid
from types import SimpleNamespace
from typing import Any, cast

import pytest

from support.cluster_store import MemoryStore
from support.hand_clock import HandClock
from tenfold_control_api.attempts import ATTEMPTS
from tenfold_control_api.cluster import Cluster, Newcomer, TaskState
from tenfold_control_api.cluster_table import ClusterTable
from tenfold_control_api.problems import ApiError
from tenfold_control_api.service_settings import Settings


def fresh(name: str = "default") -> Cluster:
    return Cluster.new(name, uuid.uuid4().hex, {"worker": 2}, now=0.0)


def table_of(store: MemoryStore, **settings: Any) -> ClusterTable:
    return ClusterTable(cast("Any", store), Settings(**settings), HandClock())


def register(cluster: Cluster, index: int = 0) -> tuple[Cluster, str]:
    found = cluster.register("worker", index, Newcomer("h:1", f"life {index}", f"lease {index}"), 1.0)
    return found.cluster, found.task.name


async def test_a_cluster_that_is_not_declared_says_how_to() -> None:
    with pytest.raises(ApiError, match="Declare it first: PUT /v1/clusters/default"):
        await table_of(MemoryStore()).get("default")


async def test_a_cluster_is_declared_once_and_their_number_is_bounded() -> None:
    table = table_of(MemoryStore(), max_clusters=1)
    assert await table.add(fresh())
    assert not await table.add(fresh())
    with pytest.raises(ApiError, match="1 clusters are declared; that is"):
        await table.add(fresh("other"))


async def test_a_change_is_published_after_the_database_has_it() -> None:
    store = MemoryStore()
    table = table_of(store)
    await table.add(fresh())
    told: list[int] = []
    table.listeners.append(lambda cluster: told.append(cluster.version))
    store.gate = asyncio.Event()

    change = asyncio.create_task(table.change("default", register))
    await asyncio.sleep(0)
    assert (await table.get("default")).version == 1
    assert told == []
    store.gate.set()

    assert await change == "/job:worker/replica:0/task:0"
    assert told == [2]
    assert table.holders == {"lease 0": ("default", "worker", 0)}
    assert "lease 0" in table.leases


async def test_a_decision_that_changes_nothing_saves_nothing() -> None:
    store = MemoryStore()
    table = table_of(store)
    await table.add(fresh())
    assert await table.change("default", lambda cluster: (cluster, "as it was")) == "as it was"
    assert store.attempts == 1


async def test_a_change_that_lost_is_decided_again_on_the_newer_value() -> None:
    store = MemoryStore()
    table = table_of(store)
    await table.add(fresh())
    store.clusters["default"], _ = register(store.clusters["default"], 1)
    store.refused = 1
    seen: list[int] = []

    def decide(cluster: Cluster) -> tuple[Cluster, str]:
        seen.append(cluster.version)
        return register(cluster)

    await table.change("default", decide)

    assert seen == [1, 2]
    assert set(table.holders) == {"lease 0", "lease 1"}


@pytest.mark.usefixtures("impatient")
async def test_endless_contention_is_given_up() -> None:
    store = MemoryStore()
    table = table_of(store)
    await table.add(fresh())
    store.refused, store.attempts = 10**6, 0
    with pytest.raises(ApiError, match="being changed by many"):
        await table.change("default", register)
    assert store.attempts == ATTEMPTS


async def test_a_client_that_goes_away_leaves_what_the_database_has() -> None:
    store = MemoryStore()
    table = table_of(store)
    await table.add(fresh())
    store.gate = asyncio.Event()
    change = asyncio.create_task(table.change("default", register))
    await asyncio.sleep(0)
    change.cancel()
    await asyncio.sleep(0)
    store.gate.set()
    with pytest.raises(asyncio.CancelledError):
        await change
    assert table.clusters["default"].version == store.clusters["default"].version == 2


async def test_a_lost_task_gives_its_lease_back() -> None:
    table = table_of(MemoryStore())
    await table.add(fresh())
    await table.change("default", register)
    await table.change("default", lambda cluster: (cluster.end("worker", 0, TaskState.LOST, "silent", 2.0), None))
    assert table.holders == {}
    assert "lease 0" not in table.leases


@pytest.mark.parametrize("shared", [False, True])
async def test_changes_of_other_replicas_are_looked_for_in_a_shared_database(shared: bool) -> None:
    store = MemoryStore(shared=shared)
    table = table_of(store)
    await table.add(fresh())
    store.clusters["default"], _ = register(store.clusters["default"])

    assert (await table.get("default")).version == (2 if shared else 1)


async def test_a_watcher_is_woken_by_the_change_and_their_number_is_bounded() -> None:
    table = table_of(MemoryStore(), max_watchers=1)
    await table.add(fresh())
    waiting = asyncio.create_task(table.wait("default", lambda cluster: cluster.version == 2, 30))
    await asyncio.sleep(0)
    assert table.watchers() == 1
    with pytest.raises(ApiError, match="1 requests already wait"):
        await table.wait("default", lambda _: True, 30)
    await table.change("default", register)

    cluster, met = await waiting
    assert (cluster.version, met) == (2, True)
    table.close_watches()
    with pytest.raises(ApiError, match="stopping"):
        await table.wait("default", lambda _: True, 30)


async def test_a_cluster_is_deleted_as_it_is_now() -> None:
    """A change by another replica is looked at anew before it is deleted."""
    store = MemoryStore(shared=True)
    table = table_of(store)
    await table.add(fresh())
    store.clusters["default"], _ = register(store.clusters["default"])
    seen: list[int] = []

    gone = await table.remove("default", lambda cluster: seen.append(cluster.version))

    assert (gone.version, seen, store.clusters) == (2, [2], {})
    assert not table.holders
    with pytest.raises(ApiError, match="is not declared"):
        await table.get("default")


@pytest.mark.usefixtures("impatient")
async def test_a_cluster_that_others_change_all_the_time_is_not_deleted() -> None:
    store = MemoryStore()
    table = table_of(store)
    await table.add(fresh())
    store.refused = ATTEMPTS

    with pytest.raises(ApiError, match="being changed by many"):
        await table.remove("default", lambda cluster: None)

    assert "default" in table.clusters


async def test_what_another_replica_deleted_or_declared_anew_is_seen() -> None:
    store = MemoryStore(shared=True)
    table = table_of(store)
    gone: list[str] = []
    table.removal_listeners.append(lambda cluster: gone.append(cluster.uid))
    first = fresh()
    await table.add(first)
    again = fresh()
    store.clusters["default"] = again

    assert (await table.get("default")).uid == again.uid
    assert gone == [first.uid]
    store.clusters.clear()
    with pytest.raises(ApiError, match="is not declared"):
        await table.get("default")
    assert gone == [first.uid, again.uid]


# -- what is loaded


def lease_of(name: str, ttl: float, renewals: int) -> Any:
    return SimpleNamespace(id=name, ttl=ttl, renewals=renewals)


async def test_a_service_that_starts_gives_each_task_its_whole_time() -> None:
    store = MemoryStore()
    held, _ = register(fresh())
    store.clusters = {"default": held, "other": fresh("other")}
    store.leases = [lease_of("lease 0", 7.0, 3), lease_of("of no task", 7.0, 3)]
    table = table_of(store, lease_ttl=30.0)

    await table.load()

    assert set(table.clusters) == {"default", "other"}
    assert table.holders == {"lease 0": ("default", "worker", 0)}
    assert (table.leases.remaining("lease 0"), table.leases.renewals("lease 0")) == (7.0, 3)
    assert len(table.leases) == 1


def test_leases_are_looked_at_with_each_heartbeat() -> None:
    assert table_of(MemoryStore(), heartbeat=0.5).leases.next_look() == 0.5


async def test_what_other_replicas_declare_is_seen_and_loaded_once() -> None:
    store = MemoryStore(shared=True)
    table = table_of(store)
    told: list[str] = []
    table.listeners.append(lambda cluster: told.append(cluster.name))
    store.clusters["other"] = fresh("other")

    for _ in range(2):
        assert (await table.get("other")).name == "other"
    await table.reload("other")

    assert store.loads == ["other", "other"]
    assert told == ["other"], "the same value is no news"


# -- who is told


async def test_changes_that_are_made_here_are_told_apart_from_others() -> None:
    store = MemoryStore(shared=True)
    table = table_of(store)
    changed: list[tuple[int | None, int]] = []
    gone: list[str] = []
    table.change_listeners.append(lambda old, new: changed.append((old and old.version, new.version)))
    table.removal_listeners.append(lambda cluster: gone.append(f"{cluster.name} is gone"))
    table.deletion_listeners.append(lambda cluster: gone.append(f"{cluster.name} was deleted here"))
    await table.add(fresh())
    await table.change("default", register)
    store.clusters["default"], _ = register(store.clusters["default"], 1)
    await table.get("default")
    await table.remove("default", lambda cluster: None)
    await table.add(fresh("other"))
    del store.clusters["other"]
    await table.refresh()

    assert changed == [(None, 1), (1, 2), (None, 1)]
    assert gone == ["default is gone", "default was deleted here", "other is gone"]


async def test_a_value_that_counts_keeps_none_before_it() -> None:
    table = table_of(MemoryStore())
    await table.add(fresh())

    await table.change("default", register)

    assert table.clusters["default"]._made_of is None


# -- replicas that are faster


async def test_a_change_is_decided_on_the_newest_value_at_once() -> None:
    store = MemoryStore(shared=True)
    table = table_of(store)
    await table.add(fresh())
    store.clusters["default"], _ = register(store.clusters["default"], 1)
    store.attempts = 0

    await table.change("default", register)

    assert (store.attempts, store.clusters["default"].version) == (1, 3)


async def test_who_declares_second_finds_the_first_ones_cluster() -> None:
    store = MemoryStore()
    table = table_of(store)
    first = store.clusters["default"] = fresh()
    store.refused = 1

    assert not await table.add(fresh())
    assert table.clusters["default"] is first


@pytest.mark.usefixtures("impatient")
async def test_a_declaration_is_tried_again_and_given_up() -> None:
    store = MemoryStore()
    table = table_of(store)
    store.refused = 1
    assert await table.add(fresh())

    store.refused, store.attempts = 10**6, 0
    with pytest.raises(ApiError, match="cluster 'other' is being changed by many"):
        await table.add(fresh("other"))
    assert store.attempts == ATTEMPTS


async def test_a_deletion_that_lost_looks_at_the_newer_value() -> None:
    store = MemoryStore()
    table = table_of(store)
    await table.add(fresh())
    store.clusters["default"], _ = register(store.clusters["default"])
    seen: list[int] = []

    def check(cluster: Cluster) -> None:
        seen.append(cluster.version)
        cluster.require_idle()

    with pytest.raises(ApiError, match="hold live leases"):
        await table.remove("default", check)

    assert (seen, list(store.clusters)) == ([1, 2], ["default"])


@pytest.mark.parametrize("refused", [0, 1])
async def test_a_client_that_goes_away_leaves_a_deletion_as_the_database_has_it(refused: int) -> None:
    store = MemoryStore()
    table = table_of(store)
    await table.add(fresh())
    store.gate, store.refused = asyncio.Event(), refused
    removal = asyncio.create_task(table.remove("default", lambda cluster: None))
    await asyncio.sleep(0)
    removal.cancel()
    await asyncio.sleep(0)
    store.gate.set()

    with pytest.raises(asyncio.CancelledError):
        await removal

    assert list(table.clusters) == list(store.clusters) == ["default"] * refused


# -- what goes with a cluster


async def test_a_deleted_cluster_leaves_nothing_behind() -> None:
    table = table_of(MemoryStore())
    await table.add(fresh())
    await table.change("default", register)

    await table.remove("default", lambda cluster: None)

    assert (table.clusters, table.holders, table._watches, len(table._locks)) == ({}, {}, {}, 0)
    assert len(table.leases) == 0


async def test_who_waits_for_a_deleted_cluster_is_told_and_leaves_nothing_behind() -> None:
    table = table_of(MemoryStore())
    await table.add(fresh())
    waiting = [asyncio.create_task(table.wait("default", lambda _: False, 30)) for _ in range(2)]
    await asyncio.sleep(0)
    assert table.watchers() == 2

    await table.remove("default", lambda cluster: None)

    for each in waiting:
        with pytest.raises(ApiError, match="is not declared"):
            await asyncio.wait_for(each, 20)
    assert table._watches == {}


async def test_who_waits_sees_a_cluster_that_was_declared_anew_meanwhile() -> None:
    table = table_of(MemoryStore())
    await table.add(fresh())
    waiting = asyncio.create_task(table.wait("default", lambda cluster: bool(table.holders), 30))
    await asyncio.sleep(0)
    again = fresh()

    await table.remove("default", lambda cluster: None)
    await table.add(again)  # before the one that waits has woken
    await table.change("default", register)

    cluster, met = await asyncio.wait_for(waiting, 20)
    assert (cluster.uid, cluster.version, met) == (again.uid, 2, True)


async def test_a_wait_that_is_given_up_keeps_the_watch_of_a_cluster_that_is_there() -> None:
    table = table_of(MemoryStore())
    await table.add(fresh())

    cluster, met = await table.wait("default", lambda _: False, 0.001)

    assert (cluster.version, met, list(table._watches)) == (1, False, ["default"])


@pytest.mark.parametrize("shared", [False, True])
async def test_a_wait_looks_at_the_newest_value_first(shared: bool) -> None:
    store = MemoryStore(shared=shared)
    table = table_of(store)
    with pytest.raises(ApiError, match="is not declared"):
        await table.wait("default", lambda _: True, 30)
    await table.add(fresh())
    store.clusters["default"], _ = register(store.clusters["default"])

    _, met = await table.wait("default", lambda cluster: cluster.version == 2, 0.001)

    assert met is shared


async def test_all_that_ask_while_a_refresh_is_under_way_share_the_next_one() -> None:
    store = MemoryStore(shared=True)
    table = table_of(store)
    store.clusters["default"] = fresh()
    asked, begun, go_on = 0, asyncio.Event(), asyncio.Event()
    versions = store.versions

    async def slow() -> dict[str, tuple[str, int]]:
        nonlocal asked
        asked += 1
        begun.set()
        found = await versions()
        await go_on.wait()
        return found

    store.versions = slow  # type: ignore[method-assign]
    first = asyncio.create_task(table.refresh())
    await begun.wait()
    store.clusters["other"] = fresh("other")
    others = [asyncio.create_task(table.refresh()) for _ in range(9)]
    go_on.set()
    async with asyncio.timeout(20):
        await asyncio.gather(first, *others)
    assert asked == 2
    assert set(table.clusters) == {"default", "other"}, "what was there when they asked is known"


async def test_a_refresh_that_fails_fails_for_all_and_the_next_one_is_tried() -> None:
    store = MemoryStore(shared=True)
    table, broken = table_of(store), True
    versions = store.versions

    async def failing() -> dict[str, tuple[str, int]]:
        if broken:
            raise OSError("away")
        return await versions()

    store.versions = failing  # type: ignore[method-assign]
    answers = await asyncio.gather(table.refresh(), table.refresh(), return_exceptions=True)
    assert [str(answer) for answer in answers] == ["away", "away"]
    broken = False
    store.clusters["default"] = fresh()
    await table.refresh()
    assert set(table.clusters) == {"default"}


async def test_a_change_that_was_outrun_is_made_in_turn() -> None:
    store = MemoryStore()
    table = table_of(store)
    await table.add(fresh())
    store.refused = 1
    await table.change("default", register)
    assert (store.turns, store.refused) == (1, 0)
    await table.change("default", lambda cluster: register(cluster, 1))
    assert store.turns == 1
