"""Heartbeats on their way to a database that services share: those that come within a moment are one statement.

Used by registry.py. `RenewalQueue` decides which heartbeats go together, and when: no event loop, no database.
`Renewals` is the rim: one asyncio task, `control:renewals`, as long as heartbeats wait. A heartbeat is answered once
its renewal is committed, and refused by itself: docs/decisions/0185-heartbeats-are-written-together.md.
"""

from __future__ import annotations

import asyncio
import time
from itertools import islice
from typing import TYPE_CHECKING, Protocol

from tenfold_control_api.database import STATEMENT_S, DatabaseAwayError
from tenfold_control_api.loops import end_loop
from tenfold_control_api.problems import ApiError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold_control_api.leases import Clock

#: From one batch to the next, of the time between two heartbeats of a task: so much later is a heartbeat at most, and
#: one that comes alone is not. A batch has that part of the service's tasks, however many and however often they come.
GAP = 1 / 20
#: Leases of one batch: it holds up no other statement for long.
MOST = 1000


class CountsRenewals(Protocol):
    """What is used of store.py."""

    async def count_renewals(self, lease_ids: Sequence[str]) -> set[str]: ...

    async def count_renewal(self, lease_id: str) -> bool: ...


class RenewalQueue:
    """Leases whose renewals wait to be written, in the order in which they came. Never blocks."""

    def __init__(self, clock: Clock, gap: float, most: int = MOST) -> None:
        """`gap`: seconds from one batch to the next."""
        self._clock, self._gap, self._most = clock, gap, most
        #: Lease → the number of its batch. At most one entry a lease, however often it is renewed.
        self._waiting: dict[str, int] = {}
        #: The number of the batch that was taken last, and when the next one may be.
        self._taken = 0
        self._next = float("-inf")

    def add(self, lease_id: str) -> int:
        """The number of the batch that will contain the lease, numbered from 1."""
        number = self._waiting.get(lease_id)
        if number is None:
            # batches are taken in order, and full while others wait
            number = self._waiting[lease_id] = self._taken + 1 + len(self._waiting) // self._most
        return number

    def pause(self) -> float | None:
        """Seconds until the next batch is to be taken; None where nothing waits."""
        return min(max(0.0, self._next - self._clock()), self._gap) if self._waiting else None

    def take(self) -> tuple[int, list[str]]:
        """The next batch: its number and its leases, `most` of them or all that wait."""
        leases = list(islice(self._waiting, self._most))
        for lease_id in leases:
            del self._waiting[lease_id]
        self._taken += 1
        self._next = self._clock() + self._gap
        return self._taken, leases


class Renewals:
    """Writes renewals to `store`. Used on one event loop, until `stop`."""

    def __init__(self, store: CountsRenewals, heartbeat: float, clock: Clock = time.monotonic) -> None:
        """`heartbeat`: seconds between two of a task."""
        self._store = store
        self._queue = RenewalQueue(clock, heartbeat * GAP)
        #: By number: the batches that have not been written, with the leases that turned out to be live.
        self._batches: dict[int, asyncio.Future[set[str]]] = {}
        self._writing: asyncio.Task[None] | None = None

    async def renew(self, lease_id: str) -> bool:
        """Whether the lease is live; then the other services know of its renewal. Raises SQLAlchemyError where the
        database has not done it after as long as a statement may take."""
        number = self._queue.add(lease_id)
        batch = self._batches.get(number)
        if batch is None:
            batch = self._batches[number] = asyncio.get_running_loop().create_future()
            batch.add_done_callback(_look_at_error)
        if self._writing is None:
            self._writing = asyncio.create_task(self._write(), name="control:renewals")
        # not wait_for: a heartbeat that is given up must not cancel those of its batch
        await asyncio.wait((batch,), timeout=STATEMENT_S)
        if not batch.done():
            raise DatabaseAwayError(TimeoutError(f"a renewal was not written within {STATEMENT_S:g} s"))
        # one whose row is being changed is left out of the batch, and waits for that by itself
        return lease_id in batch.result() or await self._store.count_renewal(lease_id)

    async def stop(self) -> None:
        """Ends heartbeats that still wait with UNAVAILABLE."""
        await end_loop(self._writing)
        for batch in self._batches.values():
            batch.set_exception(ApiError("stopping", "the control service is stopping; send the heartbeat again."))
        self._batches.clear()

    async def _write(self) -> None:
        try:
            while (pause := self._queue.pause()) is not None:
                await asyncio.sleep(pause)
                number, leases = self._queue.take()
                try:
                    renewed = await self._store.count_renewals(leases)
                except Exception as error:
                    self._batches.pop(number).set_exception(error)
                else:
                    self._batches.pop(number).set_result(renewed)
        finally:
            self._writing = None


def _look_at_error(batch: asyncio.Future[set[str]]) -> None:
    """Those that wait are told; asyncio complains where all of them have gone."""
    if not batch.cancelled():
        batch.exception()
