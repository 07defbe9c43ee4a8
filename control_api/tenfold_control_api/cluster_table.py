"""Every cluster as the database last confirmed it, and the one way in which a cluster changes.

Owned by registry.py. A change runs in this order: cluster.py decides, store.py commits, watchers are notified. So it is
visible, and answered, only after the database has it. With a shared database every change is a
compare-and-set on the cluster's version, and a reader first loads what other replicas committed.
"""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakValueDictionary

from tenfold_control_api.attempts import attempts
from tenfold_control_api.leases import LeaseTable
from tenfold_control_api.problems import ApiError
from tenfold_control_api.watch import Watch

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy.ext.asyncio import AsyncConnection

    from tenfold_control_api.cluster import Cluster
    from tenfold_control_api.leases import Clock
    from tenfold_control_api.service_settings import Settings
    from tenfold_control_api.store import ControlStore

T = TypeVar("T")


def _look_at_error(done: asyncio.Future[None]) -> None:
    """Those that wait are told; asyncio complains where all of them have gone."""
    if not done.cancelled():
        done.exception()


class ClusterTable:
    """All clusters of one service. Used on one event loop."""

    def __init__(self, store: ControlStore, settings: Settings, clock: Clock) -> None:
        self._store, self._settings = store, settings
        #: When the leases in `holders` end.
        self.leases = LeaseTable(clock, stall=2 * settings.heartbeat)
        #: The newest value of each cluster that the database has confirmed.
        self.clusters: dict[str, Cluster] = {}
        #: Live lease → the task that holds it. Exactly the lease ids of ready tasks in `clusters`.
        self.holders: dict[str, tuple[str, str, int]] = {}
        #: The refresh that is under way, or was the last one; and the one that follows it, which has not begun.
        self._refreshing: asyncio.Future[None] | None = None
        self._next_refresh: asyncio.Future[None] | None = None
        self._watches: dict[str, Watch] = {}
        #: Kept while one is held or waited for, so that names that come and go leave none behind.
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        #: Called with each new value of a cluster; must not block.
        self.listeners: list[Callable[[Cluster], None]] = []
        #: With the value before and the new one, but only for changes that were made here and not by another replica.
        self.change_listeners: list[Callable[[Cluster | None, Cluster], None]] = []
        #: Called with each cluster that is gone, and with those that were deleted here; must not block.
        self.removal_listeners: list[Callable[[Cluster], None]] = []
        self.deletion_listeners: list[Callable[[Cluster], None]] = []

    async def load(self) -> None:
        """Loads everything and grants each live lease its whole ttl: tasks could not renew while no service
        listened."""
        for cluster in await self._store.load_clusters():
            self._publish(cluster)
        for row in await self._store.live_leases():
            if row.id in self.holders:
                self.leases.grant(row.id, row.ttl, row.renewals)

    # -- looking

    async def get(self, name: str) -> Cluster:
        """The newest value of a cluster. Raises NOT_FOUND that says how to declare it."""
        await self.refresh()
        return self._known(name)

    def _known(self, name: str) -> Cluster:
        found = self.clusters.get(name)
        if found is None:
            raise ApiError(
                "no-such-cluster",
                f"cluster {name!r} is not declared. Declare it first: PUT /v1/clusters/{name} with a body like "
                '{"jobs": {"ps": 1, "worker": 2}}.',
            )
        return found

    async def wait(self, name: str, satisfied: Callable[[Cluster], bool], limit: float) -> tuple[Cluster, bool]:
        """The cluster as soon as it is `satisfied`, or after `limit` seconds as it is then."""
        await self.get(name)
        watch = self._watches[name]
        if self.watchers() >= self._settings.max_watchers:
            raise ApiError(
                "too-many-watchers",
                f"{self._settings.max_watchers} requests already wait for a spec; that is the limit. Ask again later.",
            )
        try:
            met = await watch.until(lambda: name not in self.clusters or satisfied(self.clusters[name]), limit)
        finally:
            self._give_up_watch(name)
        return self._known(name), met

    def watchers(self) -> int:
        """Requests that wait."""
        return sum(watch.waiting for watch in self._watches.values())

    def close_watches(self) -> None:
        """Ends every long-poll with UNAVAILABLE. Never blocks."""
        for watch in self._watches.values():
            watch.close()

    async def refresh(self) -> None:
        """Loads what other replicas had committed when this was called. Does nothing where no other replica shares the
        database."""
        if not self._store.shared:
            return
        # one at a time: all that ask while one is under way share the next one
        if self._next_refresh is None:
            self._next_refresh = asyncio.ensure_future(self._refresh_behind(self._refreshing))
            self._next_refresh.add_done_callback(_look_at_error)
        await asyncio.shield(self._next_refresh)

    async def _refresh_behind(self, other: asyncio.Future[None] | None) -> None:
        if other is not None:
            await asyncio.wait([other])
        self._refreshing, self._next_refresh = self._next_refresh, None
        there = await self._store.versions()
        for name in [name for name in self.clusters if name not in there]:
            await self.reload(name)
        for name, (uid, version) in there.items():
            known = self.clusters.get(name)
            if known is None or known.uid != uid or known.version < version:
                await self.reload(name)

    async def reload(self, name: str, turn: AsyncConnection | None = None) -> None:
        """Loads one cluster from the database, if it is newer there, or gone."""
        found = await self._store.load_clusters(name, self.clusters.get(name), turn)
        known = self.clusters.get(name)
        if known is not None and known.uid not in {cluster.uid for cluster in found}:
            self._forget(known)
        for cluster in found:
            known = self.clusters.get(name)
            if known is None or cluster.version > known.version:
                self._publish(cluster)

    # -- changing

    def lock(self, name: str) -> asyncio.Lock:
        """The lock to hold while the cluster changes."""
        found = self._locks.get(name)
        if found is None:
            found = self._locks[name] = asyncio.Lock()
        return found

    async def add(self, fresh: Cluster) -> bool:
        """Declares a cluster; False if there is one of that name. Raises RESOURCE_EXHAUSTED, and ABORTED where replicas
        declare and delete it all the time."""
        name = fresh.name
        tries = attempts(f"cluster {name!r}")
        while name not in self.clusters:
            next(tries)
            async with self.lock(name):
                if name in self.clusters:
                    break
                if len(self.clusters) >= self._settings.max_clusters:
                    raise ApiError(
                        "too-many-clusters",
                        f"{len(self.clusters)} clusters are declared; that is this control service's limit.",
                    )
                if await self._store.save_cluster(None, fresh, lease_ttl=self._settings.lease_ttl):
                    self._changed(None, fresh)
                    return True
                await self.reload(name)
        return False

    async def change(
        self,
        name: str,
        decide: Callable[[Cluster], tuple[Cluster, T]],
        expired: tuple[str, int] | None = None,
    ) -> T:
        """Decides on the newest value, commits, publishes. `decide` may run several times, so it must be pure."""
        await self.get(name)
        async with self.lock(name):
            outdated, tries = False, attempts(f"cluster {name!r}")
            while True:
                next(tries)
                # Shielded: a client that disconnects must not leave the database ahead of this table.
                trying = asyncio.ensure_future(self._try(name, decide, expired, in_turn=outdated))
                try:
                    done, outcome = await asyncio.shield(trying)
                except asyncio.CancelledError:
                    await asyncio.gather(trying, return_exceptions=True)
                    raise
                if done:
                    return outcome
                outdated = True

    async def _try(
        self,
        name: str,
        decide: Callable[[Cluster], tuple[Cluster, T]],
        expired: tuple[str, int] | None,
        *,
        in_turn: bool,
    ) -> tuple[bool, T]:
        """Whether the change was made, and its outcome. `in_turn`: behind the changes of other replicas that wait."""
        async with self._store.turn(name) if in_turn else nullcontext() as turn:
            if turn is not None:
                await self.reload(name, turn)
            old = self._known(name)
            new, outcome = decide(old)
            done = new is old or await self._store.save_cluster(
                old, new, lease_ttl=self._settings.lease_ttl, expired=expired, turn=turn
            )
        if done and new is not old:
            self._changed(old, new)
        return done, outcome

    async def remove(self, name: str, check: Callable[[Cluster], None]) -> Cluster:
        """Deletes a cluster with its tasks and leases, if its newest value passes `check`; returns that value."""
        await self.get(name)
        async with self.lock(name):
            tries = attempts(f"cluster {name!r}")
            while True:
                next(tries)
                old = self._known(name)
                check(old)
                # shielded, as in `change`
                removed = asyncio.ensure_future(self._store.remove_cluster(old))
                try:
                    done = await asyncio.shield(removed)
                except asyncio.CancelledError:
                    if await removed:
                        self._deleted(old)
                    raise
                if done:
                    self._deleted(old)
                    return old
                await self.reload(name)

    def _deleted(self, cluster: Cluster) -> None:
        self._forget(cluster)
        for listener in self.deletion_listeners:
            listener(cluster)

    def _forget(self, cluster: Cluster) -> None:
        """A cluster that the database does not have any more: its leases end, who waits for it hears of it."""
        del self.clusters[cluster.name]
        for task in cluster.tasks.values():
            if task.lease_id is not None:
                self.leases.end(task.lease_id)
                self.holders.pop(task.lease_id, None)
        self._watches[cluster.name].notify()
        self._give_up_watch(cluster.name)
        for listener in self.removal_listeners:
            listener(cluster)

    def _give_up_watch(self, name: str) -> None:
        """Of a cluster that is gone no watch stays once nobody waits by it: names may come and go without end. As long
        as one waits it stays, for a cluster of that name may be declared before it has woken."""
        watch = self._watches.get(name)
        if watch is not None and name not in self.clusters and not watch.waiting:
            del self._watches[name]

    def _changed(self, old: Cluster | None, new: Cluster) -> None:
        """A change that was made here has been committed."""
        self._publish(new)
        for listener in self.change_listeners:
            listener(old, new)
        new.settle()

    def _publish(self, cluster: Cluster) -> None:
        old = self.clusters.get(cluster.name)
        known = {} if old is None else old.tasks
        changed, gone = cluster.differing(old), cluster.dropped(old)
        before = {task.lease_id: task for key in (*changed, *gone) if (task := known.get(key)) and task.lease_id}
        after = {task.lease_id: task for key in changed if (task := cluster.tasks[key]).lease_id}
        for lease_id in before.keys() - after.keys():
            self.leases.end(lease_id)
            self.holders.pop(lease_id, None)
        for lease_id, task in after.items():
            self.holders[lease_id] = (cluster.name, task.job, task.index)
            if lease_id not in self.leases:
                self.leases.grant(lease_id, self._settings.lease_ttl)
        self.clusters[cluster.name] = cluster
        self._watches.setdefault(cluster.name, Watch()).notify()
        for listener in self.listeners:
            listener(cluster)
