"""The operations on clusters and leases: declaring, registering, heartbeats, leaving.

Called by routes/clusters.py and routes/leases.py. cluster.py decides, cluster_table.py commits and publishes changes,
lease_sweeper.py ends the leases that are not renewed.
"""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING

from tenfold_control_api.attempts import ATTEMPTS
from tenfold_control_api.cluster import Cluster, Drain, Newcomer, Registration, Task, TaskState
from tenfold_control_api.cluster_table import ClusterTable
from tenfold_control_api.figures import NewestFigures
from tenfold_control_api.lease_sweeper import LeaseSweeper
from tenfold_control_api.problems import ApiError
from tenfold_control_api.renewals import Renewals
from tenfold_core.device import task_name
from tenfold_core.open_files import Shortage, needed_by_service

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tenfold_control_api.figures import FiguresReport
    from tenfold_control_api.leases import Clock
    from tenfold_control_api.service_settings import Settings
    from tenfold_control_api.store import ControlStore, LeaseRow


#: Why a task is in a state, where it says nothing more.
_WHY = {
    TaskState.FINISHED: "finished with exit code 0",
    TaskState.STOPPED: "stopped before it had finished",
    TaskState.LOST: "released its lease without having finished",
}


class Registry:
    """All clusters of the service, between `start` and `stop`."""

    def __init__(
        self,
        store: ControlStore,
        settings: Settings,
        *,
        clock: Clock = time.monotonic,
        wall_clock: Clock = time.time,
    ) -> None:
        self._store = store
        self._settings = settings
        self._wall = wall_clock
        self._table = ClusterTable(store, settings, clock)
        self._sweeper = LeaseSweeper(self._table, store, settings, wall_clock)
        self._renewals = Renewals(store, settings.heartbeat, clock)
        self.leases = self._table.leases
        #: Called with each new value of a cluster; must not block.
        self.listeners = self._table.listeners
        self._files_short = Shortage("This control service")
        self.listeners.append(lambda _: self._look_at_files())
        #: The same, but only for changes that were made here and not by another replica.
        self.change_listeners = self._table.change_listeners
        #: Called with each cluster that is gone, also when another replica deleted it; must not block.
        self.removal_listeners = self._table.removal_listeners
        #: The same, but only for clusters that were deleted here.
        self.deletion_listeners = self._table.deletion_listeners
        #: Called with a cluster's name for each of its tasks that is declared lost here.
        self.lost_listeners = self._sweeper.lost_listeners

    async def start(self) -> None:
        """Loads everything; from now on leases can run out."""
        await self._table.load()
        self._look_at_files()
        self._sweeper.start()

    def begin_stop(self) -> None:
        """Ends every long-poll with UNAVAILABLE. Never blocks."""
        self._table.close_watches()

    async def stop(self) -> None:
        self.begin_stop()
        await self._sweeper.stop()
        await self._renewals.stop()

    def trouble(self) -> str:
        """Why leases do not run out as they should; "" where they do."""
        return self._sweeper.trouble()

    def _look_at_files(self) -> None:
        """Warns where this process may have fewer connections than its tasks keep."""
        tasks = sum(sum(cluster.jobs.values()) for cluster in self._table.clusters.values())
        self._files_short.look(needed_by_service(tasks), f"a registry of {tasks} tasks")

    # -- looking

    def clusters(self) -> list[Cluster]:
        return list(self._table.clusters.values())

    async def refreshed(self) -> list[Cluster]:
        """All clusters by name, other replicas' changes included."""
        await self._table.refresh()
        return sorted(self._table.clusters.values(), key=lambda cluster: cluster.name)

    def known(self, name: str) -> Cluster | None:
        """The cluster as this process knows it, without asking the database."""
        return self._table.clusters.get(name)

    async def cluster(self, name: str) -> Cluster:
        """Raises NOT_FOUND that says how to declare it."""
        return await self._table.get(name)

    async def wait(self, name: str, satisfied: Callable[[Cluster], bool], limit: float) -> tuple[Cluster, bool]:
        """The cluster as soon as it is `satisfied`, or after `limit` seconds as it is then."""
        return await self._table.wait(name, satisfied, limit)

    def watchers(self) -> int:
        """Requests that wait for a cluster."""
        return self._table.watchers()

    # -- declaring and registering

    async def declare(
        self, name: str, jobs: Mapping[str, int], *, stop_with_workers: bool | None = None
    ) -> tuple[Cluster, bool]:
        """Declares or changes a cluster; tells whether it is new. Raises what `Cluster.declare` raises."""
        if sum(jobs.values()) > self._settings.max_tasks or len(jobs) > self._settings.max_jobs:
            raise ApiError(
                "cluster-too-large",
                f"{sum(jobs.values())} tasks in {len(jobs)} jobs are too many: the limits of this control service are "
                f"{self._settings.max_tasks} tasks and {self._settings.max_jobs} jobs a cluster.",
                at=("jobs",),
            )
        await self._table.refresh()
        fresh = Cluster.new(name, uuid.uuid4().hex, jobs, self._wall(), stop_with_workers=stop_with_workers)
        if await self._table.add(fresh):
            return fresh, True

        def change(cluster: Cluster) -> tuple[Cluster, Cluster]:
            after = cluster.declare(jobs, self._wall(), stop_with_workers=stop_with_workers)
            return after, after

        return await self._table.change(name, change), False

    async def delete(self, name: str, *, force: bool) -> Cluster:
        """Forgets a cluster and its leases; returns it as it was. Raises FAILED_PRECONDITION for one whose tasks are
        alive, unless it is forced."""

        def check(cluster: Cluster) -> None:
            if not force:
                cluster.require_idle()

        return await self._table.remove(name, check)

    async def register(self, name: str, job: str, index: int, newcomer: Newcomer) -> Registration:
        """Raises what `Cluster.register` raises, NOT_FOUND for a cluster that is not declared, and 410 for a lease that
        has ended."""
        await self._look_at_lease(newcomer, (name, job, index))
        return await self._admit(name, lambda c: c.register(job, index, newcomer, self._wall()))

    async def claim(self, name: str, job: str, newcomer: Newcomer) -> Registration:
        """Raises what `Cluster.claim` raises, NOT_FOUND for a cluster that is not declared, and 410 for a lease that
        has ended."""
        await self._look_at_lease(newcomer, (name, job))
        return await self._admit(name, lambda c: c.claim(job, newcomer, self._wall()))

    async def _look_at_lease(self, newcomer: Newcomer, place: tuple[str | int, ...]) -> None:
        """Raises for a lease that cannot be one of this place: leases are made up once, and die for good."""
        row = None if newcomer.lease is None else await self._store.lease(newcomer.lease)
        if row is None or newcomer.lease is None:
            return
        if not row.live:
            raise self._gone(newcomer.lease, row)
        if (row.cluster, row.job, row.index)[: len(place)] != place:
            raise ApiError("task-taken", "the lease is that of another place. Make up a new one for each registration.")

    async def _admit(self, name: str, decide: Callable[[Cluster], Registration]) -> Registration:
        def admit(cluster: Cluster) -> tuple[Cluster, Registration]:
            outcome = decide(cluster)
            return outcome.cluster, outcome

        outcome = await self._table.change(name, admit)
        if not outcome.fresh and outcome.task.lease_id is not None:
            await self.renew(outcome.task.lease_id)
        return outcome

    async def deregister(self, name: str, job: str, index: int, reason: str) -> Task:
        """Takes a task off its index; its lease ends. Returns the task as it is now (missing)."""

        def decide(cluster: Cluster) -> tuple[Cluster, Task]:
            after = cluster.deregister(job, index, reason, self._wall())
            return after, after.task(job, index)

        return await self._table.change(name, decide)

    async def end_task(
        self, name: str, job: str, index: int, state: TaskState, reason: str | None, exit_code: int | None
    ) -> Task:
        """Somebody saw the task end: its lease ends now. A task without a live lease stays as it is, because what it
        said itself counts. Returns the task."""

        def decide(cluster: Cluster) -> tuple[Cluster, Task]:
            if cluster.task(job, index).state is not TaskState.READY:
                return cluster, cluster.task(job, index)
            after = cluster.end(job, index, state, reason or _WHY[state], self._wall(), exit_code)
            return after, after.task(job, index)

        return await self._table.change(name, decide)

    async def drain(self, name: str, job: str, index: int, drain: Drain) -> Task:
        """The task hears of it with its next heartbeat. Raises what `Cluster.drain` raises. Returns the task."""

        def decide(cluster: Cluster) -> tuple[Cluster, Task]:
            after = cluster.drain(job, index, drain)
            return after, after.task(job, index)

        return await self._table.change(name, decide)

    # -- leases

    async def renew(self, lease_id: str, figures: FiguresReport | None = None) -> tuple[Cluster, Task]:
        """One heartbeat, maybe with what its task says of itself. Raises NOT_FOUND for an unknown lease, and 410 saying
        how it ended for one that is over."""
        for _ in range(ATTEMPTS):
            holder = self._table.holders.get(lease_id)
            if holder is None:
                await self._table.refresh()  # it may have registered at another service a moment ago
                holder = self._table.holders.get(lease_id)
            if holder is None:
                raise self._gone(lease_id, await self._store.lease(lease_id))
            if lease_id in self._sweeper.expiring:
                async with self._table.lock(holder[0]):
                    continue
            if self._store.shared:
                if not await self._renewals.renew(lease_id):
                    await self._table.reload(holder[0])
                    continue
                await self._table.refresh()  # the answer tells the newest spec version
            if self._table.leases.renew(lease_id):
                if figures is not None:
                    self._table.leases.note(lease_id, NewestFigures(figures, self._wall()))
                cluster = self._table.clusters[holder[0]]
                return cluster, cluster.tasks[holder[1], holder[2]]
        raise self._gone(lease_id, await self._store.lease(lease_id))

    async def release(
        self, lease_id: str, state: TaskState, reason: str | None, exit_code: int | None
    ) -> tuple[Cluster, Task]:
        """The task leaves, FINISHED, STOPPED or LOST. The same release again is answered the same way."""
        await self._table.refresh()
        holder = self._table.holders.get(lease_id)
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
            after = cluster.end(job, index, state, reason or _WHY[state], self._wall(), exit_code)
            return after, (after, after.task(job, index))

        return await self._table.change(name, decide)

    async def lease(self, lease_id: str) -> LeaseRow:
        """A lease, live or ended. Raises NOT_FOUND."""
        row = await self._store.lease(lease_id)
        if row is None:
            raise self._gone(lease_id, None)
        return row

    def _gone(self, lease_id: str, row: LeaseRow | None) -> ApiError:
        if row is None or row.live:
            return ApiError("no-such-lease", f"there is no lease {lease_id!r}. Register the task again to get one.")
        task = task_name(row.job, row.index)
        how = f"{task} of cluster {row.cluster!r} became {row.outcome}: {row.reason}"
        return ApiError(
            "lease-ended",
            f"lease {lease_id!r} has ended ({how}). Register the task again to get a new one.",
            task=task,
            extra={"outcome": row.outcome, "reason": row.reason},
        )

    async def forget_old(self, now: float) -> None:
        """Drops leases that ended long before `now`."""
        await self._store.forget_ended_leases(now - self._settings.ended_lease_memory)
