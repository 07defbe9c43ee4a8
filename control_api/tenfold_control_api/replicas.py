"""Which control services share the database, and which of them live. One asyncio task, `control:replica-beat`.

Each counts up in a row of its own; who sees a count stand still for a lease's time, by its own monotonic clock, takes
that service for dead: leases.py decides that, as for tasks. What a dead one was about to do is then decided anew
(idempotency.py, runs). It may be wrong, where a service was merely stopped: so nothing hangs on it but when somebody
else tries, and every change itself is a compare-and-set.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import uuid
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from sqlalchemy import delete, insert, select, update
from sqlalchemy.exc import SQLAlchemyError

from tenfold_control_api.leases import LeaseTable
from tenfold_control_api.loops import end_loop
from tenfold_control_api.schema import services
from tenfold_core.loopback import is_loopback

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

    from tenfold_control_api.leases import Clock
    from tenfold_control_api.service_settings import Settings

log = logging.getLogger(__name__)


class Replicas:
    """The services of the database, this one among them. Without a shared database there is no other."""

    def __init__(
        self, engine: AsyncEngine, settings: Settings, *, shared: bool, clock: Clock, wall_clock: Clock
    ) -> None:
        #: This service, anew at every start.
        self.id = uuid.uuid4().hex
        self._engine, self._settings, self._shared, self._wall = engine, settings, shared, wall_clock
        self._seen = LeaseTable(clock, stall=2 * settings.heartbeat)
        self._addresses: dict[str, str] = {}
        self._host = socket.gethostname()
        self._address: str | None = None
        self._look = asyncio.Event()
        self._beating: asyncio.Task[None] | None = None

    @property
    def shared(self) -> bool:
        """Whether there may be others."""
        return self._shared

    async def start(self) -> None:
        if self._shared:
            await self.beat()
            self._beating = asyncio.create_task(self._beat_for_ever(), name="control:replica-beat")

    async def stop(self) -> None:
        """What this service was about to do is free at once."""
        await end_loop(self._beating)
        if self._shared:
            with contextlib.suppress(SQLAlchemyError, OSError):
                async with self._engine.begin() as db:
                    await db.execute(delete(services).where(services.c.id == self.id))

    def serve_at(self, address: str) -> None:
        """Others may be told that this service is at `address`. Never blocks."""
        self._address = address
        self._look.set()

    async def alive(self, service: str) -> bool:
        """Whether that service lives, as far as is known."""
        if service == self.id or not self._shared:
            return service == self.id
        if service not in self._seen:
            await self.observe()  # it may have started a moment ago
        return self._counts(service)

    async def living(self) -> list[str]:
        """All that live."""
        await self.observe()
        return [self.id, *(service for service in self._addresses if self._counts(service))]

    def addresses(self) -> list[str]:
        """Where the other ones are that live, as far as this machine can reach them."""
        return [address for service, address in self._addresses.items() if address and self._counts(service)]

    async def beat(self) -> None:
        """Says that this service lives, and looks who else does."""
        mine = {"host": self._host, "address": self._address}
        async with self._engine.begin() as db:
            counted = update(services).where(services.c.id == self.id).values(beats=services.c.beats + 1, **mine)
            if (await db.execute(counted)).rowcount == 0:
                await db.execute(insert(services).values(id=self.id, started=self._wall(), beats=0, **mine))
        await self.observe()
        for service in self._seen.expired():
            log.warning("control service %s does not answer any more", self._addresses.get(service) or service)
            async with self._engine.begin() as db:
                same = (services.c.id == service, services.c.beats == self._seen.renewals(service))
                await db.execute(delete(services).where(*same))
            self._forget(service)

    async def observe(self) -> None:
        """Looks which services count on."""
        if not self._shared:
            return
        async with self._engine.connect() as db:
            rows = (await db.execute(select(services).where(services.c.id != self.id))).mappings().all()
        for row in rows:
            self._seen.observe(row["id"], self._settings.lease_ttl, row["beats"])
            near = row["host"] == self._host or not is_loopback(urlsplit(row["address"] or "").hostname or "")
            self._addresses[row["id"]] = row["address"] or "" if near else ""
        for gone in self._addresses.keys() - {row["id"] for row in rows}:
            self._forget(gone)

    def _counts(self, service: str) -> bool:
        return (self._seen.remaining(service) or 0.0) > 0

    def _forget(self, service: str) -> None:
        self._seen.end(service)
        self._addresses.pop(service, None)

    async def _beat_for_ever(self) -> None:
        while True:
            # Not wait_for: before Python 3.12 it loses a cancellation that comes together with the event.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._settings.heartbeat):
                    await self._look.wait()
            self._look.clear()
            try:
                await self.beat()
            except Exception:
                log.exception("this service could not say that it lives; it tries again")
                await asyncio.sleep(self._settings.heartbeat)
