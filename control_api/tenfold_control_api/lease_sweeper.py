"""Ends the leases that were not renewed in time: one asyncio task, `control:lease-sweeper`.

Owned by registry.py. leases.py finds the expired ones; cluster.py decides what a lost task means for its cluster.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from tenfold_control_api.cluster import TaskState
from tenfold_control_api.loops import end_loop
from tenfold_core.access import audit
from tenfold_core.device import task_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_control_api.cluster import Cluster
    from tenfold_control_api.cluster_table import ClusterTable
    from tenfold_control_api.leases import Clock
    from tenfold_control_api.service_settings import Settings
    from tenfold_control_api.store import ControlStore

log = logging.getLogger(__name__)


class LeaseSweeper:
    """The sweeper of the clusters of `table`. Works between `start` and `stop`, on one event loop."""

    def __init__(self, table: ClusterTable, store: ControlStore, settings: Settings, wall_clock: Clock) -> None:
        self._table, self._store, self._settings, self._wall = table, store, settings, wall_clock
        #: Leases whose end is being written; a heartbeat that comes meanwhile waits for the outcome.
        self.expiring: set[str] = set()
        #: Called with a cluster's name for each of its tasks that is declared lost here.
        self.lost_listeners: list[Callable[[str], None]] = []
        self._sweeping: asyncio.Task[None] | None = None
        #: Why its last round did not end well; "" where it did.
        self._failed = ""

    def start(self) -> None:
        self._sweeping = asyncio.create_task(self._sweep(), name="control:lease-sweeper")

    async def stop(self) -> None:
        await end_loop(self._sweeping)
        self._sweeping = None

    def trouble(self) -> str:
        """Why leases do not run out as they should; "" where they do."""
        if self._sweeping is None or self._sweeping.done():
            return "the lease sweeper does not run"
        return self._failed

    async def _sweep(self) -> None:
        while True:
            pause = self._table.leases.next_look()
            if self._store.shared:
                pause = min(pause, self._settings.refresh_interval)
            await asyncio.sleep(pause)
            try:
                await self._table.refresh()
                if self._store.shared:
                    for lease_id, ttl, renewals in await self._store.renewal_counts():
                        if lease_id in self._table.holders:
                            self._table.leases.observe(lease_id, ttl, renewals)
                for lease_id in self._table.leases.expired():
                    await self._expire(lease_id)
                self._failed = ""
            except Exception as error:
                self._failed = f"the lease sweeper failed ({type(error).__name__})"
                # The database may fail for a while; leases must go on expiring once it answers again.
                log.exception(
                    "the lease sweeper could not do its work; it tries again in %g s", self._settings.heartbeat
                )
                await asyncio.sleep(self._settings.heartbeat)

    async def _expire(self, lease_id: str) -> None:
        holder = self._table.holders.get(lease_id)
        if holder is None:
            self._table.leases.end(lease_id)
            return
        name, job, index = holder
        silent = self._table.leases.age(lease_id) or 0.0

        def decide(cluster: Cluster) -> tuple[Cluster, bool]:
            renewed = (self._table.leases.remaining(lease_id) or 0.0) > 0
            if renewed or cluster.task(job, index).lease_id != lease_id:
                return cluster, False
            reason = f"lease expired: no heartbeat for {silent:.1f} s"
            return cluster.end(job, index, TaskState.LOST, reason, self._wall()), True

        self.expiring.add(lease_id)
        try:
            lost = await self._table.change(name, decide, expired=(lease_id, self._table.leases.renewals(lease_id)))
        finally:
            self.expiring.discard(lease_id)
        if lost:
            task = task_name(job, index)
            log.warning("%s of cluster %s is lost: its lease expired", task, name)
            reason = f"its lease ran out: no heartbeat for {silent:.1f} s"
            audit.done(audit.ITSELF, "lose task", cluster=name, task=task, reason=reason)
            for listener in self.lost_listeners:
                listener(name)
