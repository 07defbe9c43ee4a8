"""The registry's operations: what each one asks of a cluster and its leases, and what it answers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

import pytest

from support.cluster_store import MemoryStore
from support.hand_clock import HandClock
from tenfold_control_api.attempts import ATTEMPTS
from tenfold_control_api.cluster import Cluster, Drain, Newcomer, TaskState
from tenfold_control_api.figures import FiguresReport, NewestFigures
from tenfold_control_api.problems import ApiError
from tenfold_control_api.registry import Registry
from tenfold_control_api.service_settings import Settings
from tenfold_control_api.store import LeaseRow
from tenfold_core import open_files

if TYPE_CHECKING:
    from collections.abc import Sequence


class Store(MemoryStore):
    """With leases: rows as the database has them, and renewals that are counted."""

    def __init__(self, *, shared: bool = False) -> None:
        super().__init__(shared=shared)
        self.rows: dict[str, LeaseRow] = {}
        self.renewed: list[str] = []
        #: Whether a renewal finds its lease live.
        self.counts = True
        self.forgotten: list[float] = []

    async def lease(self, lease_id: str) -> LeaseRow | None:
        return self.rows.get(lease_id)

    async def count_renewals(self, lease_ids: Sequence[str]) -> set[str]:
        return {lease_id for lease_id in lease_ids if await self.count_renewal(lease_id)}

    async def count_renewal(self, lease_id: str) -> bool:
        self.renewed.append(lease_id)
        return self.counts

    async def forget_ended_leases(self, before: float) -> None:
        self.forgotten.append(before)


class Service:
    def __init__(self, *, shared: bool = False, **settings: Any) -> None:
        self.store, self.clock, self.now = Store(shared=shared), HandClock(), 500.0
        self.registry = Registry(
            cast("Any", self.store), Settings(**settings), clock=self.clock, wall_clock=lambda: self.now
        )

    async def declare(self, **jobs: int) -> Cluster:
        return (await self.registry.declare("c", jobs or {"worker": 2, "ps": 1}))[0]

    async def register(self, index: int = 0, lease: str = "lease", **given: Any) -> Any:
        return await self.registry.register("c", "worker", index, newcomer(lease, **given))


def newcomer(lease: str = "lease", life: str | None = None, *, shown: bool = False) -> Newcomer:
    return Newcomer("h:1", life or f"life of {lease}", lease, lease=lease if shown else None)


def row(lease: str = "lease", *, live: bool = False, **given: Any) -> LeaseRow:
    values: dict[str, Any] = {"cluster": "c", "job": "worker", "index": 0, "incarnation": "i", "ttl": 10.0}
    values |= {"outcome": None if live else "lost", "reason": "silent", "exit_code": None, "ended": 1.0, "renewals": 0}
    return LeaseRow(lease, live=live, **{**values, **given})


async def refused(call: Any) -> ApiError:
    with pytest.raises(ApiError) as raised:
        await call
    return raised.value


# --- declaring


async def test_a_cluster_is_new_once_and_changed_after_that() -> None:
    service = Service()
    first, new = await service.registry.declare("c", {"worker": 1}, stop_with_workers=True)
    assert (new, first.created, first.stop_with_workers) == (True, 500.0, True)

    service.now = 600.0
    second, new = await service.registry.declare("c", {"worker": 2}, stop_with_workers=False)

    assert (new, second.uid, dict(second.jobs), second.stop_with_workers) == (False, first.uid, {"worker": 2}, False)
    assert second.task("worker", 1).since == 600.0
    assert await service.registry.cluster("c") is second
    assert service.registry.known("c") is second
    assert service.registry.known("d") is None
    assert service.registry.clusters() == [second]


@pytest.mark.parametrize(("jobs", "fits"), [({"a": 2, "b": 1}, True), ({"a": 4}, False), ({"a": 1, "b": 1, "c": 1}, 0)])
async def test_a_cluster_has_so_many_tasks_and_jobs_at_most(jobs: dict[str, int], fits: bool) -> None:
    service = Service(max_tasks=3, max_jobs=2)
    if fits:
        assert (await service.registry.declare("c", jobs))[1]
        return
    error = await refused(service.registry.declare("c", jobs))
    assert error.kind == "cluster-too-large"
    assert error.detail == (
        f"{sum(jobs.values())} tasks in {len(jobs)} jobs are too many: the limits of this control service are "
        "3 tasks and 2 jobs a cluster."
    )


async def test_a_cluster_of_living_tasks_is_deleted_by_force_alone() -> None:
    service = Service()
    await service.declare()
    await service.register()
    gone: list[str] = []
    service.registry.deletion_listeners.append(lambda cluster: gone.append(cluster.name))

    assert (await refused(service.registry.delete("c", force=False))).kind == "tasks-alive"
    assert gone == []
    deleted = await service.registry.delete("c", force=True)

    assert (deleted.name, gone, service.registry.clusters()) == ("c", ["c"], [])


async def test_clusters_are_listed_by_name_with_what_other_replicas_declared() -> None:
    service = Service(shared=True)
    for name in ("d", "a", "c"):
        service.store.clusters[name] = Cluster.new(name, name, {"worker": 1}, now=0.0)
    assert service.registry.clusters() == []
    assert [cluster.name for cluster in await service.registry.refreshed()] == ["a", "c", "d"]


async def test_a_replicas_cluster_is_known_before_one_is_declared() -> None:
    service = Service(shared=True)
    service.store.clusters["c"] = Cluster.new("c", "theirs", {"worker": 1}, now=0.0)
    found, new = await service.registry.declare("c", {"worker": 1})
    assert (new, found.uid) == (False, "theirs")


# --- registering


async def test_a_task_registers_and_again_with_the_same_life_renews() -> None:
    service = Service()
    await service.declare()

    first = await service.register()
    service.clock.now += 7.0
    again = await service.register()

    assert (first.fresh, again.fresh, first.task.since) == (True, False, 500.0)
    assert service.registry.leases.remaining("lease") == 10.0


async def test_a_free_index_is_claimed() -> None:
    service = Service()
    await service.declare()
    await service.register()
    found = await service.registry.claim("c", "worker", newcomer("second"))
    assert (found.task.index, found.fresh, found.task.since) == (1, True, 500.0)


@pytest.mark.parametrize("call", ["register", "claim"])
async def test_a_lease_that_has_ended_is_never_good_again(call: str) -> None:
    service = Service()
    await service.declare()
    service.store.rows["lease"] = row(job="worker", index=1)
    place = ("c", "worker", 0) if call == "register" else ("c", "worker")

    error = await refused(getattr(service.registry, call)(*place, newcomer(shown=True)))

    assert (error.kind, error.task) == ("lease-ended", "/job:worker/replica:0/task:1")
    assert error.detail == (
        "lease 'lease' has ended (/job:worker/replica:0/task:1 of cluster 'c' became lost: silent). "
        "Register the task again to get a new one."
    )
    assert error.extra == {"outcome": "lost", "reason": "silent"}


@pytest.mark.parametrize(
    ("call", "given", "taken"),
    [
        ("register", {}, False),
        ("register", {"index": 1}, True),
        ("register", {"job": "ps"}, True),
        ("register", {"cluster": "d"}, True),
        ("claim", {"index": 1}, False),
        ("claim", {"job": "ps"}, True),
        ("claim", {"cluster": "d"}, True),
    ],
)
async def test_a_live_lease_is_good_at_its_own_place(call: str, given: dict[str, Any], taken: bool) -> None:
    service = Service()
    await service.declare()
    service.store.rows["lease"] = row(live=True, **given)
    place = ("c", "worker", 0) if call == "register" else ("c", "worker")
    calling = getattr(service.registry, call)(*place, newcomer(shown=True))
    if not taken:
        assert (await calling).fresh
        return
    error = await refused(calling)
    assert (error.kind, error.detail) == (
        "task-taken",
        "the lease is that of another place. Make up a new one for each registration.",
    )


async def test_a_lease_that_was_not_shown_is_not_looked_up() -> None:
    service = Service()
    await service.declare()
    service.store.rows["lease"] = row(job="ps", live=True)
    assert (await service.register()).fresh


# --- leaving


async def test_an_operator_takes_a_task_off_its_index() -> None:
    service = Service()
    await service.declare()
    await service.register()
    service.now = 700.0
    task = await service.registry.deregister("c", "worker", 0, "broken host")
    assert (task.state, task.since, task.reason) == (TaskState.MISSING, 700.0, "broken host")
    assert "lease" not in service.registry.leases


@pytest.mark.parametrize(
    ("state", "why"),
    [
        (TaskState.FINISHED, "finished with exit code 0"),
        (TaskState.STOPPED, "stopped before it had finished"),
        (TaskState.LOST, "released its lease without having finished"),
    ],
)
@pytest.mark.parametrize("call", ["end", "release"])
async def test_a_task_ends_with_a_reason_or_the_usual_one(call: str, state: TaskState, why: str) -> None:
    for reason, exit_code in ((None, None), ("because", 0)):
        service = Service()
        await service.declare()
        await service.register()
        service.now = 800.0
        if call == "end":
            task = await service.registry.end_task("c", "worker", 0, state, reason, exit_code)
        else:
            cluster, task = await service.registry.release("lease", state, reason, exit_code)
            assert cluster.task("worker", 0) == task
        assert (task.state, task.reason, task.exit_code, task.since) == (state, reason or why, exit_code, 800.0)
        assert task.lease_id is None


async def test_what_a_task_said_itself_counts() -> None:
    service = Service()
    await service.declare()
    await service.register()
    await service.registry.release("lease", TaskState.FINISHED, "done", 0)
    saved = service.store.attempts

    task = await service.registry.end_task("c", "worker", 0, TaskState.LOST, "saw it die", 9)

    assert (task.state, task.reason, service.store.attempts) == (TaskState.FINISHED, "done", saved)


async def test_the_same_release_again_is_answered_the_same_way() -> None:
    service = Service()
    await service.declare()
    await service.register()
    await service.registry.release("lease", TaskState.FINISHED, None, 0)
    service.store.rows["lease"] = row(outcome="finished", exit_code=0)

    cluster, task = await service.registry.release("lease", TaskState.FINISHED, None, 0)

    assert (cluster.name, task.state, task.index) == ("c", TaskState.FINISHED, 0)
    for state, code in ((TaskState.STOPPED, 0), (TaskState.FINISHED, None)):
        assert (await refused(service.registry.release("lease", state, None, code))).kind == "lease-ended"


async def test_a_lease_that_nobody_knows_or_another_service_holds_cannot_be_released_here() -> None:
    service = Service()
    assert (await refused(service.registry.release("lease", TaskState.LOST, None, None))).kind == "no-such-lease"
    service.store.rows["lease"] = row(live=True, outcome="lost")
    error = await refused(service.registry.release("lease", TaskState.LOST, None, None))
    assert (error.kind, error.detail) == (
        "no-such-lease",
        "there is no lease 'lease'. Register the task again to get one.",
    )


async def test_a_release_does_not_end_the_task_that_took_the_index_meanwhile() -> None:
    service = Service()
    await service.declare()
    await service.register()
    lock = service.registry._table.lock("c")
    async with lock:
        releasing = asyncio.create_task(service.registry.release("lease", TaskState.LOST, None, None))
        await asyncio.sleep(0)
        current = service.registry.clusters()[0]
        emptied = current.deregister("worker", 0, "x", 1.0)
        taken = emptied.register("worker", 0, newcomer("newer"), 2.0).cluster
        service.registry._table._publish(taken)
        service.store.clusters["c"] = taken
    assert (await refused(releasing)).kind == "no-such-lease"
    assert service.registry.clusters()[0].task("worker", 0).lease_id == "newer"


async def test_a_drain_is_kept_for_the_tasks_next_heartbeat() -> None:
    service = Service()
    await service.declare()
    await service.register()
    wish = Drain(30.0, "maintenance")
    task = await service.registry.drain("c", "worker", 0, wish)
    assert task.drain == wish
    assert (await service.registry.renew("lease"))[1].drain == wish


# --- heartbeats


async def test_a_heartbeat_renews_and_its_figures_are_kept() -> None:
    service = Service()
    await service.declare()
    await service.register()
    service.clock.now += 9.0
    figures = FiguresReport(threads=3)

    cluster, task = await service.registry.renew("lease", figures)

    assert (cluster.name, task.job, task.index) == ("c", "worker", 0)
    assert service.registry.leases.remaining("lease") == 10.0
    kept = service.registry.leases.figures("lease")
    assert kept is not None
    assert kept == NewestFigures(figures, 500.0)
    await service.registry.renew("lease")
    assert service.registry.leases.figures("lease") is kept
    assert service.store.renewed == []


async def test_a_heartbeat_of_no_lease_says_how_it_ended() -> None:
    service = Service()
    assert (await refused(service.registry.renew("lease"))).kind == "no-such-lease"
    service.store.rows["lease"] = row()
    assert (await refused(service.registry.renew("lease"))).kind == "lease-ended"


async def test_a_shared_heartbeat_is_counted_in_the_database_and_tried_again_when_it_was_not() -> None:
    service = Service(shared=True)
    await service.declare()
    await service.register()
    await service.registry.renew("lease")
    assert service.store.renewed == ["lease"]

    service.store.counts, service.store.renewed = False, []
    service.store.rows["lease"] = row()
    service.store.loads.clear()

    assert (await refused(service.registry.renew("lease"))).kind == "lease-ended"
    # each time with those of its batch, and then by itself
    assert service.store.renewed == ["lease"] * 2 * ATTEMPTS
    assert service.store.loads == ["c"] * ATTEMPTS


async def test_a_heartbeat_waits_for_the_end_that_is_being_written() -> None:
    service = Service()
    await service.declare()
    await service.register()
    expiring = service.registry._sweeper.expiring
    expiring.add("lease")
    async with service.registry._table.lock("c"):
        beating = asyncio.create_task(service.registry.renew("lease"))
        for _ in range(5):
            await asyncio.sleep(0)
        assert not beating.done()
        expiring.discard("lease")
    assert (await beating)[1].index == 0


async def test_a_lease_is_looked_up() -> None:
    service = Service()
    assert (await refused(service.registry.lease("lease"))).kind == "no-such-lease"
    service.store.rows["lease"] = found = row()
    assert await service.registry.lease("lease") is found


async def test_leases_are_forgotten_once_they_have_ended_for_long_enough() -> None:
    service = Service(ended_lease_memory=40.0)
    await service.registry.forget_old(100.0)
    assert service.store.forgotten == [60.0]


# --- starting and stopping


async def test_it_starts_by_loading_and_sweeps_until_it_is_stopped() -> None:
    service = Service()
    cluster = Cluster.new("c", "u", {"worker": 1}, now=0.0)
    service.store.clusters["c"] = cluster
    assert service.registry.trouble() == "the lease sweeper does not run"

    await service.registry.start()

    assert service.registry.clusters() == [cluster]
    assert service.registry.trouble() == ""
    waiting = asyncio.create_task(service.registry.wait("c", lambda _: False, 60.0))
    for _ in range(5):
        await asyncio.sleep(0)
    assert service.registry.watchers() == 1
    service.registry.begin_stop()
    assert (await refused(waiting)).code == "UNAVAILABLE"
    await service.registry.stop()
    assert service.registry.trouble() == "the lease sweeper does not run"


async def test_stopping_ends_those_who_wait() -> None:
    service = Service()
    await service.declare()
    waiting = asyncio.create_task(service.registry.wait("c", lambda _: False, 60.0))
    for _ in range(5):
        await asyncio.sleep(0)
    await service.registry.stop()
    assert (await refused(waiting)).code == "UNAVAILABLE"


async def test_a_wait_is_over_when_it_is_satisfied() -> None:
    service = Service()
    cluster = await service.declare()
    assert await service.registry.wait("c", lambda each: each.name == "c", 60.0) == (cluster, True)
    assert await service.registry.wait("c", lambda _: False, 0.0) == (cluster, False)


async def test_it_looks_at_the_files_that_its_tasks_need(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[tuple[int, str]] = []
    monkeypatch.setattr(open_files.Shortage, "look", lambda _, needed, what: looked.append((needed, what)))
    service = Service()
    await service.registry.start()
    assert looked == [(open_files.needed_by_service(0), "a registry of 0 tasks")]
    await service.declare(worker=2, ps=1)
    assert looked[-1] == (open_files.needed_by_service(3), "a registry of 3 tasks")
    await service.registry.declare("d", {"worker": 4})
    assert looked[-1] == (open_files.needed_by_service(7), "a registry of 7 tasks")
    await service.registry.stop()
