"""Clocks for the age of what is kept for a time, where the wall clock will not do: somebody may set it.

`ServiceTime` outlives the service and runs only while one runs: set forward by a day, the wall clock would make every
key of a request forgotten at once, and the request run again. Several services on one database keep the furthest one's
time. `SteadyWall` is for what carries a moment that people see.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from sqlalchemy import select, update

from tenfold_control_api.schema import meta

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

    from tenfold_control_api.leases import Clock

_ROW = meta.c.key == "service_seconds"


class SteadyWall:
    """The wall clock, without what it was set forward by since the start. What is older than a day by it is a day old,
    or was written before the service started."""

    def __init__(self, wall_clock: Clock, clock: Clock = time.monotonic) -> None:
        self._wall, self._clock = wall_clock, clock
        self._base = wall_clock() - clock()

    def now(self) -> float:
        """Never later than the wall clock: what is written after it was set back is as young as it looks."""
        return min(self._wall(), self._base + self._clock())


class ServiceTime:
    """Seconds that services have run on this database. Without `keep` for a while a crash loses that while."""

    def __init__(self, engine: AsyncEngine, clock: Clock = time.monotonic) -> None:
        self._engine, self._clock = engine, clock
        self._base = -clock()

    def now(self) -> float:
        return self._base + self._clock()

    async def keep(self) -> None:
        """Writes it down, or goes on from what is written if that is further."""
        async with self._engine.begin() as db:
            kept = float(await db.scalar(select(meta.c.value).where(_ROW)) or 0)
            self._base += max(0.0, kept - self.now())
            await db.execute(update(meta).where(_ROW).values(value=repr(self.now())))
