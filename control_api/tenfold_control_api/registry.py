"""The registry's async rim: cluster.py and leases.py decide, store.py makes it durable, watchers are told, in this
order.

Called by routes/clusters.py and routes/leases.py. Owns one asyncio task, `control:lease-sweeper`. A change is visible,
and answered, only after the database has it. With a shared database every change is a compare-and-set on the cluster's
version, and a reader first looks whether another replica moved on.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
import uuid
from typing import TYPE_CHECKING, TypeVar

from tenfold_control_api.cluster import Cluster, Newcomer, Registration, Task, TaskState
from tenfold_control_api.leases import Clock, LeaseTable
from tenfold_control_api.loops import end_loop
from tenfold_control_api.problems import ApiError, not_found
from tenfold_control_api.watch import Watch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tenfold_control_api.settings import Settings
    from tenfold_control_api.store import LeaseRow, Store

log = logging.getLogger(__name__)
T = TypeVar("T")

#: A compare-and-set that lost this often in a row meets more contention than replicas can cause.
_ATTEMPTS = 20


class Registry:
    """All clusters of the service. `async with` starts and stops it."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        *,
        clock: Clock = time.monotonic,
        wall_clock: Clock = time.time,
    ) -> None:
        self._store = store
        self._settings = settings
        self._wall = wall_clock
        self.leases = LeaseTable(clock, stall=2 * settings.heartbeat)
        #: The newest value of each cluster that the database has confirmed.
        self._clusters: dict[str, Cluster] = {}
        #: Live lease → who holds it. Exactly the lease ids of ready tasks in `_clusters`.
        self._holders: dict[str, tuple[str, str, int]] = {}
        self._watches: dict[str, Watch] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        #: Leases whose end is being written; a heartbeat that comes now must wait for the outcome, not be told
        #: "renewed".
        self._expiring: set[str] = set()
        self._wake = asyncio.Event()
        self._sweeper: asyncio.Task[None] | None = None
        #: Called with each new value of a cluster; must not block.
        self.listeners: list[Callable[[Cluster], None]] = []
        #: Called with a cluster's name for each of its tasks that is declared lost here.
        self.lost_listeners: list[Callable[[str], None]] = []

    async def start(self) -> None:
        """Loads everything and grants each live lease a whole time to live: tasks could not renew while nobody
        listened."""
        for cluster in await self._store.load_clusters():
            self._publish(cluster)
        for row in await self._store.live_leases():
            if row.id in self._holders:
                self.leases.grant(row.id, row.ttl, row.renewals)
        self._sweeper = asyncio.create_task(self._sweep(), name="control:lease-sweeper")

    def begin_stop(self) -> None:
        """Sends every long-poller home with UNAVAILABLE. Never blocks."""
        for watch in self._watches.values():
            watch.close()

    async def stop(self) -> None:
        self.begin_stop()
        await end_loop(self._sweeper)
        self._sweeper = None

    # -- looking

    def clusters(self) -> list[Cluster]:
        return list(self._clusters.values())

    async def refreshed(self) -> list[Cluster]:
        """All clusters by name, other replicas' changes included."""
        await self._refresh()
        return sorted(self._clusters.values(), key=lambda cluster: cluster.name)

    def known(self, name: str) -> Cluster | None:
        """The cluster as this process knows it, without asking the database."""
        return self._clusters.get(name)

    async def cluster(self, name: str) -> Cluster:
        """Raises NOT_FOUND that says how to declare it."""
        await self._refresh()
        found = self._clusters.get(name)
        if found is None:
            raise not_found(
                f"cluster {name!r} is not declared. Declare it first: PUT /v1/clusters/{name} with a body like "
                '{"jobs": {"ps": 1, "worker": 2}}.',
                "no-such-cluster",
            )
        return found

    async def wait(self, name: str, satisfied: Callable[[Cluster], bool], limit: float) -> tuple[Cluster, bool]:
        """The cluster as soon as it is `satisfied`, or after `limit` seconds as it is then."""
        await self.cluster(name)
        watch = self._watches[name]
        if sum(w.waiting for w in self._watches.values()) >= self._settings.max_watchers:
            raise ApiError(
                "RESOURCE_EXHAUSTED",
                f"{self._settings.max_watchers} requests already wait for a spec; that is the limit. Ask again later.",
                kind="too-many-watchers",
            )
        met = await watch.until(lambda: satisfied(self._clusters[name]), limit)
        return self._clusters[name], met

    def watchers(self) -> int:
        return sum(watch.waiting for watch in self._watches.values())

    # -- declaring and registering

    async def declare(
        self, name: str, jobs: Mapping[str, int], *, stop_with_workers: bool | None = None
    ) -> tuple[Cluster, bool]:
        """Declares or changes a cluster; tells whether it is new. Raises what `Cluster.declare` raises."""
        if sum(jobs.values()) > self._settings.max_tasks or len(jobs) > self._settings.max_jobs:
            raise ApiError(
                "INVALID_ARGUMENT",
                f"{sum(jobs.values())} tasks in {len(jobs)} jobs are too many: the limits of this control service are "
                f"{self._settings.max_tasks} tasks and {self._settings.max_jobs} jobs a cluster.",
            )
        await self._refresh()
        fresh = Cluster.new(name, uuid.uuid4().hex, jobs, self._wall(), stop_with_workers=stop_with_workers)
        while name not in self._clusters:
            async with self._lock(name):
                if name in self._clusters:
                    break
                if len(self._clusters) >= self._settings.max_clusters:
                    raise ApiError(
                        "RESOURCE_EXHAUSTED",
                        f"{len(self._clusters)} clusters are declared; that is this control service's limit.",
                        kind="too-many-clusters",
                        retryable=False,
                    )
                if await self._store.save_cluster(None, fresh, lease_ttl=self._settings.lease_ttl):
                    self._publish(fresh)
                    return fresh, True
                await self._reload(name)

        def change(cluster: Cluster) -> tuple[Cluster, Cluster]:
            after = cluster.declare(jobs, self._wall(), stop_with_workers=stop_with_workers)
            return after, after

        return await self._change(name, change), False

    async def register(self, name: str, job: str, index: int, who: Newcomer) -> Registration:
        """Raises what `Cluster.register` raises, and NOT_FOUND for a cluster that is not declared."""
        return await self._admit(name, lambda c: c.register(job, index, who, self._wall()))

    async def claim(self, name: str, job: str, who: Newcomer) -> Registration:
        """Raises what `Cluster.claim` raises, and NOT_FOUND for a cluster that is not declared."""
        return await self._admit(name, lambda c: c.claim(job, who, self._wall()))

    async def _admit(self, name: str, decide: Callable[[Cluster], Registration]) -> Registration:
        def admit(cluster: Cluster) -> tuple[Cluster, Registration]:
            outcome = decide(cluster)
            return outcome.cluster, outcome

        outcome = await self._change(name, admit)
        if not outcome.fresh and outcome.task.lease_id is not None:
            await self.renew(outcome.task.lease_id)
        return outcome

    async def deregister(self, name: str, job: str, index: int, reason: str) -> Task:
        """Takes a task off its index; its lease ends. Returns the task as it is now (missing)."""

        def decide(cluster: Cluster) -> tuple[Cluster, Task]:
            after = cluster.deregister(job, index, reason, self._wall())
            return after, after.task(job, index)

        return await self._change(name, decide)

    # -- leases

    async def renew(self, lease_id: str) -> tuple[Cluster, Task]:
        """One heartbeat. Raises NOT_FOUND for an unknown lease, and 410 saying how it ended for one that is over."""
        for _ in range(_ATTEMPTS):
            await self._refresh()
            holder = self._holders.get(lease_id)
            if holder is None:
                raise self._gone(lease_id, await self._store.lease(lease_id))
            if lease_id in self._expiring:
                async with self._lock(holder[0]):
                    continue
            if self._store.shared and not await self._store.count_renewal(lease_id):
                await self._reload(holder[0])
                continue
            if self.leases.renew(lease_id):
                cluster = self._clusters[holder[0]]
                return cluster, cluster.tasks[holder[1], holder[2]]
        raise self._gone(lease_id, await self._store.lease(lease_id))

    async def release(
        self, lease_id: str, state: TaskState, reason: str | None, exit_code: int | None
    ) -> tuple[Cluster, Task]:
        """The task leaves, FINISHED or LOST. The same release again is answered the same way."""
        await self._refresh()
        holder = self._holders.get(lease_id)
        if holder is None:
            row = await self._store.lease(lease_id)
            if row is None or row.live or (row.outcome, row.exit_code) != (str(state), exit_code):
                raise self._gone(lease_id, row)
            cluster = await self.cluster(row.cluster)
            return cluster, cluster.task(row.job, row.index)
        name, job, index = holder

        def decide(cluster: Cluster) -> tuple[Cluster, tuple[Cluster, Task]]:
            if cluster.task(job, index).lease_id != lease_id:
                raise self._gone(lease_id, None)
            if state is TaskState.FINISHED:
                why = reason or f"finished with exit code {exit_code or 0}"
                after = cluster.finish(job, index, exit_code or 0, why, self._wall())
            else:
                why = reason or "released its lease without having finished"
                after = cluster.lose(job, index, why, self._wall(), exit_code)
            return after, (after, after.task(job, index))

        return await self._change(name, decide)

    async def lease(self, lease_id: str) -> LeaseRow:
        """A lease, live or ended. Raises NOT_FOUND."""
        row = await self._store.lease(lease_id)
        if row is None:
            raise self._gone(lease_id, None)
        return row

    def _gone(self, lease_id: str, row: LeaseRow | None) -> ApiError:
        if row is None or row.live:
            return not_found(
                f"there is no lease {lease_id!r}. Register the task again to get one.", "no-such-lease", retryable=False
            )
        task = f"/job:{row.job}/replica:0/task:{row.index}"
        how = f"{task} of cluster {row.cluster!r} became {row.outcome}: {row.reason}"
        return ApiError(
            "FAILED_PRECONDITION",
            f"lease {lease_id!r} has ended ({how}). Register the task again to get a new one.",
            kind="lease-ended",
            status=410,
            title="Lease ended",
            task=task,
            extra={"outcome": row.outcome, "reason": row.reason},
        )

    # -- changing

    def _lock(self, name: str) -> asyncio.Lock:
        return self._locks.setdefault(name, asyncio.Lock())

    async def _change(
        self,
        name: str,
        decide: Callable[[Cluster], tuple[Cluster, T]],
        expired: tuple[str, int] | None = None,
    ) -> T:
        """Decides on the newest value, commits, publishes. `decide` may run several times, so it must be pure."""
        await self.cluster(name)
        async with self._lock(name):
            for _ in range(_ATTEMPTS):
                old = self._clusters[name]
                new, outcome = decide(old)
                if new is old:
                    return outcome
                # Shielded: a client that goes away must not leave the database ahead of what this process knows.
                saved = asyncio.ensure_future(
                    self._store.save_cluster(old, new, lease_ttl=self._settings.lease_ttl, expired=expired)
                )
                try:
                    done = await asyncio.shield(saved)
                except asyncio.CancelledError:
                    if await saved:
                        self._publish(new)
                    raise
                if done:
                    self._publish(new)
                    return outcome
                await self._reload(name)
        raise ApiError("ABORTED", f"cluster {name!r} is being changed by many at once; send the request again.")

    def _publish(self, cluster: Cluster) -> None:
        old = self._clusters.get(cluster.name)
        before = {} if old is None else {t.lease_id: t for t in old.tasks.values() if t.lease_id}
        after = {t.lease_id: t for t in cluster.tasks.values() if t.lease_id}
        for lease_id in before.keys() - after.keys():
            self.leases.end(lease_id)
            self._holders.pop(lease_id, None)
        for lease_id, task in after.items():
            self._holders[lease_id] = (cluster.name, task.job, task.index)
            if lease_id not in self.leases:
                self.leases.grant(lease_id, self._settings.lease_ttl)
                self._wake.set()
        self._clusters[cluster.name] = cluster
        self._watches.setdefault(cluster.name, Watch()).notify()
        for listener in self.listeners:
            listener(cluster)

    # -- other replicas

    async def _reload(self, name: str) -> None:
        for cluster in await self._store.load_clusters(name):
            known = self._clusters.get(name)
            if known is None or cluster.version > known.version:
                self._publish(cluster)

    async def _refresh(self) -> None:
        """Takes in what other replicas committed. Free when the database is ours alone."""
        if not self._store.shared:
            return
        for name, version in (await self._store.versions()).items():
            known = self._clusters.get(name)
            if known is None or known.version < version:
                await self._reload(name)

    # -- expiry

    async def _sweep(self) -> None:
        while True:
            pause = self.leases.next_look()
            if self._store.shared:
                pause = min(pause, self._settings.refresh_interval)
            # Not wait_for: before Python 3.12 it loses a cancellation that comes together with the event.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._wake.wait()
            self._wake.clear()
            try:
                await self._refresh()
                if self._store.shared:
                    for row in await self._store.live_leases():
                        if row.id in self._holders:
                            self.leases.observe(row.id, row.ttl, row.renewals)
                for lease_id in self.leases.expired():
                    await self._expire(lease_id)
            except Exception:
                # The database may be away for a while; leases must go on expiring once it is back.
                log.exception(
                    "the lease sweeper could not do its work; it tries again in %g s", self._settings.heartbeat
                )
                await asyncio.sleep(self._settings.heartbeat)

    async def _expire(self, lease_id: str) -> None:
        holder = self._holders.get(lease_id)
        if holder is None:
            self.leases.end(lease_id)
            return
        name, job, index = holder
        silent = self.leases.age(lease_id) or 0.0

        def decide(cluster: Cluster) -> tuple[Cluster, bool]:
            renewed = (self.leases.remaining(lease_id) or 0.0) > 0
            if renewed or cluster.task(job, index).lease_id != lease_id:
                return cluster, False
            reason = f"lease expired: no heartbeat for {silent:.1f} s"
            return cluster.lose(job, index, reason, self._wall()), True

        self._expiring.add(lease_id)
        try:
            lost = await self._change(name, decide, expired=(lease_id, self.leases.renewals(lease_id)))
        finally:
            self._expiring.discard(lease_id)
        if lost:
            log.warning("/job:%s/replica:0/task:%d of cluster %s is lost: its lease expired", job, index, name)
            for listener in self.lost_listeners:
                listener(name)

    async def forget_old(self) -> None:
        """Drops leases that ended long ago."""
        await self._store.forget_ended_leases(self._wall() - self._settings.ended_lease_memory)
