"""The registry's database in memory, for tests of cluster_table.py and of what stands on it."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncIterator

    from tenfold_control_api.cluster import Cluster


class MemoryStore:
    """A database in memory. `refused` changes fail as if another replica had been faster; `gate` holds one back."""

    def __init__(self, *, shared: bool = False) -> None:
        self.shared = shared
        self.clusters: dict[str, Cluster] = {}
        self.refused = 0
        self.attempts = 0
        #: Changes that waited behind others'.
        self.turns = 0
        #: The names that were asked for, None for all.
        self.loads: list[str | None] = []
        self.leases: list[Any] = []
        self.gate: asyncio.Event | None = None

    @asynccontextmanager
    async def turn(self, name: str) -> AsyncIterator[str]:
        self.turns += 1
        yield name

    async def load_clusters(
        self, name: str | None = None, known: Cluster | None = None, turn: str | None = None
    ) -> list[Cluster]:
        self.loads.append(name)
        return [cluster for cluster in self.clusters.values() if name in (None, cluster.name)]

    async def live_leases(self) -> list[Any]:
        return self.leases

    async def renewal_counts(self) -> list[tuple[str, float, int]]:
        return [(lease.id, lease.ttl, lease.renewals) for lease in self.leases]

    async def versions(self) -> dict[str, tuple[str, int]]:
        return {cluster.name: (cluster.uid, cluster.version) for cluster in self.clusters.values()}

    async def remove_cluster(self, old: Cluster) -> bool:
        self.attempts += 1
        if self.gate is not None:
            await self.gate.wait()
        if self.refused or self.clusters.get(old.name) is not old:
            self.refused = max(0, self.refused - 1)
            return False
        del self.clusters[old.name]
        return True

    async def save_cluster(self, old: Cluster | None, new: Cluster, **_: Any) -> bool:
        self.attempts += 1
        if self.gate is not None:
            await self.gate.wait()
        if self.refused:
            self.refused -= 1
            return False
        self.clusters[new.name] = new
        return True
