"""The registry's rows: a cluster with its tasks and leases, changed by compare-and-set, and sessions."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import insert, select, update
from sqlalchemy.exc import OperationalError

from support.small_database import empty_database
from tenfold_control_api import schema
from tenfold_control_api.cluster import Cluster, Drain, Newcomer, TaskState
from tenfold_control_api.database import DatabaseError
from tenfold_control_api.session_record import SessionRecord
from tenfold_control_api.store import ControlStore, LeaseRow

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


@pytest.fixture
async def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ControlStore]:
    async def known(_: Any) -> None:
        pass

    monkeypatch.setattr("tenfold_control_api.store.open_schema", known)
    opened = ControlStore(empty_database(tmp_path), wall_clock=lambda: 77.0)
    await opened.open()
    yield opened
    await opened.close()


def a_cluster(name: str = "c", **jobs: int) -> Cluster:
    return Cluster.new(name, f"uid of {name}", jobs or {"worker": 2, "ps": 1}, 1.0, stop_with_workers=True)


def registered(cluster: Cluster, lease: str = "lease", index: int = 0) -> Cluster:
    newcomer = Newcomer(
        *("h:1", f"life of {lease}", lease, ({"name": "GPU:0"},)), insecure=True, registrar="ann", lease=lease
    )
    return cluster.register("worker", index, newcomer, 2.0).cluster


async def save(store: ControlStore, old: Cluster | None, new: Cluster, **given: Any) -> bool:
    saved = await store.save_cluster(old, new, lease_ttl=10.0, **given)
    if saved:
        new.settle()
    return saved


async def added(store: ControlStore, cluster: Cluster | None = None) -> Cluster:
    first = cluster or a_cluster()
    assert await save(store, None, first)
    ready = registered(first, f"lease of {first.name}")
    assert await save(store, first, ready)
    return ready


async def test_a_cluster_comes_back_as_it_was(store: ControlStore) -> None:
    ready = await added(store)
    drained = ready.drain("worker", 0, Drain(30.0, "maintenance"))
    assert await save(store, ready, drained)
    other = await added(store, a_cluster("d", worker=1))

    for cluster in (drained, other):
        (found,) = await store.load_clusters(cluster.name)
        assert (found.name, found.uid, found.created, found.version) == (
            *(cluster.name, cluster.uid),
            *(1.0, cluster.version),
        )
        assert dict(found.jobs) == dict(cluster.jobs)
        assert dict(found.tasks) == dict(cluster.tasks)
        assert found.stop_with_workers is True
    assert {cluster.name for cluster in await store.load_clusters()} == {"c", "d"}
    assert await store.load_clusters("e") == []
    assert await store.versions() == {
        "c": ("uid of c", drained.version),
        "d": ("uid of d", other.version),
    }


def changed(found: Cluster, known: Cluster) -> list[str]:
    return [f"{task.job}/{task.index}" for place, task in found.tasks.items() if known.tasks.get(place) is not task]


async def test_of_a_value_that_is_known_what_has_changed_is_read(store: ControlStore) -> None:
    first = a_cluster(worker=3)
    assert await save(store, None, first)
    (known,) = await store.load_clusters("c")
    assert changed(*await store.load_clusters("c", known), known) == []
    second = registered(first, "one", 1)
    third = registered(second, "two", 2)
    assert await save(store, first, second)
    assert await save(store, second, third)

    (found,) = await store.load_clusters("c", known)
    assert changed(found, known) == ["worker/1", "worker/2"]
    assert (found.version, dict(found.tasks)) == (third.version, dict(third.tasks))
    (later,) = await store.load_clusters("c", found)
    assert changed(later, found) == []


async def test_tasks_of_a_change_between_the_two_readings_are_left_for_the_next_one(store: ControlStore) -> None:
    first = a_cluster(worker=1)
    assert await save(store, None, first)
    larger = first.declare({"worker": 2}, 2.0)
    assert await save(store, first, larger)
    async with store.engine.begin() as db:
        # the head was read before that change, the tasks after it
        head = {"version": first.version, "marked": first.version, "jobs": '[["worker", 1]]'}
        await db.execute(update(schema.clusters).values(head))
    (found,) = await store.load_clusters("c", first)
    assert list(found.tasks) == [("worker", 0)]


async def test_another_size_and_another_life_of_a_cluster_are_read_anew(store: ControlStore) -> None:
    first = a_cluster(worker=3)
    assert await save(store, None, first)
    (known,) = await store.load_clusters("c")
    smaller = first.declare({"worker": 1}, 2.0)
    assert await save(store, first, smaller)
    (found,) = await store.load_clusters("c", known)
    assert dict(found.tasks) == dict(smaller.tasks)

    assert await store.remove_cluster(smaller)
    again = replace(a_cluster(worker=3), uid="a later one")
    assert await save(store, None, again)
    (found,) = await store.load_clusters("c", known)
    assert (found.uid, len(changed(found, known))) == ("a later one", 3)


async def test_what_a_service_of_before_wrote_is_not_missed(store: ControlStore) -> None:
    """It runs on beside a newer one, and marks no rows."""
    first = a_cluster(worker=3)
    assert await save(store, None, first)
    (known,) = await store.load_clusters("c")
    second = registered(first, "one", 0)
    assert await save(store, first, second)
    async with store.engine.begin() as db:
        # as it wrote: the row has no version, the cluster's mark stays behind
        await db.execute(update(schema.tasks).where(schema.tasks.c.task_index == 0).values(version=0))
        await db.execute(update(schema.clusters).values(marked=first.version))

    assert "worker/0" in changed(*await store.load_clusters("c", known), known)
    third = registered(second, "two", 1)
    assert await save(store, second, third)
    assert {"worker/0", "worker/1"} <= set(changed(*await store.load_clusters("c", known), known))
    (newer,) = await store.load_clusters("c", second)
    assert changed(newer, second) == ["worker/1"]


async def test_a_change_is_made_on_the_value_that_was_read(store: ControlStore) -> None:
    ready = await added(store)
    ended = ready.end("worker", 0, TaskState.LOST, "killed", 3.0, 9)
    for old in (replace(ready, uid="another"), replace(ready, version=ready.version + 1)):
        assert not await save(store, old, ended)
    assert not await save(store, None, a_cluster())
    (found,) = await store.load_clusters("c")
    assert found.task("worker", 0).state is TaskState.READY
    assert await save(store, ready, ended)
    assert not await save(store, ready, ended)


async def test_a_lease_lives_until_its_task_ends(store: ControlStore) -> None:
    ready = await added(store)
    live = LeaseRow("lease of c", "c", "worker", 0, "life of lease of c", 10.0, True, None, None, None, None, 0)
    assert await store.lease("lease of c") == live
    assert await store.live_leases() == [live]

    ended = ready.end("worker", 0, TaskState.LOST, "killed", 3.0, 9)
    assert await save(store, ready, ended)

    assert await store.lease("lease of c") == replace(
        live, live=False, outcome="lost", reason="killed", exit_code=9, ended=77.0
    )
    assert await store.live_leases() == []
    assert await store.lease("none") is None


async def test_a_task_that_is_replaced_ends_one_lease_and_begins_another(store: ControlStore) -> None:
    ready = await added(store)
    newer = registered(ready.deregister("worker", 0, "x", 2.0), "newer")
    newer = replace(newer, version=ready.version + 1)
    assert await store.save_cluster(ready, newer, lease_ttl=20.0)
    assert [(row.id, row.ttl) for row in await store.live_leases()] == [("newer", 20.0)]
    former = await store.lease("lease of c")
    assert former is not None
    assert (former.live, former.outcome) == (False, "ready")


async def test_a_renewal_elsewhere_keeps_a_lease_alive(store: ControlStore) -> None:
    ready = await added(store)
    assert await store.count_renewal("lease of c")
    ended = ready.end("worker", 0, TaskState.LOST, "silent", 3.0)

    assert not await save(store, ready, ended, expired=("lease of c", 0))
    assert [row.renewals for row in await store.live_leases()] == [1]
    assert await save(store, ready, ended, expired=("lease of c", 1))
    assert not await store.count_renewal("lease of c")
    assert not await store.count_renewal("none")


async def test_the_renewals_of_another_lease_do_not_count(store: ControlStore) -> None:
    ready = await added(store)
    await store.count_renewal("lease of c")
    assert await save(store, ready, ready.end("worker", 0, TaskState.LOST, "x", 3.0), expired=("other", 0))


async def test_tasks_that_are_dropped_go_with_their_rows(store: ControlStore) -> None:
    first = a_cluster()
    await save(store, None, first)
    smaller = first.declare({"worker": 1, "ps": 1}, 2.0)
    assert await save(store, first, smaller)
    async with store.engine.connect() as db:
        found = {(row.job, row.task_index) for row in await db.execute(select(schema.tasks))}
    assert found == {("worker", 0), ("ps", 0)}


async def test_a_cluster_is_removed_with_its_tasks_and_leases_alone(store: ControlStore) -> None:
    ready, other = await added(store), await added(store, a_cluster("d", worker=1))
    for old in (replace(ready, uid="x"), replace(ready, version=1), replace(ready, name="e")):
        assert not await store.remove_cluster(old)
    assert (await store.versions())["c"][1] == ready.version

    assert await store.remove_cluster(ready)

    assert await store.versions() == {"d": ("uid of d", other.version)}
    assert [row.id for row in await store.live_leases()] == ["lease of d"]
    assert await store.lease("lease of c") is None
    async with store.engine.connect() as db:
        assert {row.cluster for row in await db.execute(select(schema.tasks))} == {"d"}


async def test_leases_that_ended_long_ago_are_forgotten(store: ControlStore) -> None:
    ready, _ = await added(store), await added(store, a_cluster("d", worker=1))
    await save(store, ready, ready.end("worker", 0, TaskState.LOST, "x", 3.0))
    await store.forget_ended_leases(77.0)
    assert await store.lease("lease of c") is not None
    await store.forget_ended_leases(77.5)
    assert await store.lease("lease of c") is None
    assert await store.lease("lease of d") is not None


async def test_sessions_are_kept(store: ControlStore) -> None:
    await added(store)
    one = SessionRecord("s", "c", "worker", 1, "life", "grpc://h:1", "handle", 3, 4.0, "ann")
    two = replace(one, id="t", owner=None)
    for record in (one, two):
        await store.add_session(record)
    assert await store.load_session("s") == one
    assert await store.load_session("none") is None
    await store.set_graph_version("s", 9)
    assert sorted(await store.load_sessions(), key=lambda each: each.id) == [replace(one, graph_version=9), two]
    await store.remove_sessions(["s", "none"])
    assert await store.load_sessions() == [two]


async def test_a_file_is_this_services_alone_until_it_closes(store: ControlStore, tmp_path: Path) -> None:
    assert not store.shared
    other = ControlStore(str(tmp_path / "control.db"))
    with pytest.raises(DatabaseError, match="another control service"):
        await other.open()
    await store.close()
    await other.open()
    await other.close()


async def test_one_that_cannot_be_opened_leaves_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(_: Any) -> None:
        raise DatabaseError("no schema")

    monkeypatch.setattr("tenfold_control_api.store.open_schema", broken)
    for _ in range(2):
        store = ControlStore(str(tmp_path / "control.db"))
        with pytest.raises(DatabaseError, match="no schema"):
            await store.open()


async def test_a_database_that_failed_is_well_once_it_takes_a_write(store: ControlStore) -> None:
    await store.ping()
    async with store.engine.connect() as db:
        assert (await db.execute(select(schema.meta))).all() == []
    with pytest.raises(OperationalError):
        async with store.engine.connect() as db:
            await db.exec_driver_sql("SELECT * FROM nowhere")
    assert "nowhere" in store._failure

    await store.ping()

    assert store._failure == ""
    async with store.engine.connect() as db:
        assert (await db.execute(select(schema.meta))).all() == []


async def test_what_breaks_no_connection_is_no_failure(store: ControlStore) -> None:
    await added(store)
    assert not await save(store, None, a_cluster())
    assert store._failure == ""


async def test_a_large_write_is_tried(store: ControlStore) -> None:
    written: list[int] = []
    store._failure = "disk full"
    begin = store.engine.begin

    class Watching:
        def __init__(self, db: Any) -> None:
            self.db = db

        async def execute(self, statement: Any) -> Any:
            if statement.is_insert:
                written.append(len(statement.compile().params["value"]))
            return await self.db.execute(statement)

    class Begun:
        async def __aenter__(self) -> Watching:
            self.opened = begin()
            return Watching(await self.opened.__aenter__())

        async def __aexit__(self, *error: Any) -> Any:
            return await self.opened.__aexit__(*error)

    store.engine.begin = Begun  # type: ignore[method-assign,assignment]
    await store.ping()
    assert written == [1 << 20]


def test_postgres_is_shared() -> None:
    pytest.importorskip("asyncpg")
    shared = ControlStore("postgresql://host/name")
    assert shared.shared
    asyncio.run(shared.close())


async def test_rows_of_a_task_may_say_less(store: ControlStore) -> None:
    await save(store, None, a_cluster("c", worker=1))
    async with store.engine.begin() as db:
        await db.execute(update(schema.tasks).values(insecure=0, drain=None))
        await db.execute(insert(schema.meta).values(key="other", value="x"))
    (found,) = await store.load_clusters("c")
    assert (found.task("worker", 0).insecure, found.task("worker", 0).drain) == (False, None)
