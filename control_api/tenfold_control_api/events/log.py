"""The event log of one service: one writer, any number of readers, each at a place of its own.

Changes are noted without waiting (`note`); one asyncio task, `control:event-writer`, writes them in batches and then
shows them. The newest events are kept in memory for readers that keep up; who falls behind reads the database, and who
falls behind that has lost its place. So a reader costs its place, however slow it is.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import TYPE_CHECKING

from tenfold_control_api.loops import end_loop
from tenfold_control_api.problems import ApiError
from tenfold_control_api.watch import Watch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold_control_api.events.event import Event, Filter
    from tenfold_control_api.events.store import EventStore
    from tenfold_control_api.service_settings import Settings

log = logging.getLogger(__name__)

#: Events in memory.
_RECENT = 10_000
#: Events that wait to be written, while the database is away; the oldest goes first.
_WAITING = 100_000
#: Events that one look gives.
PAGE = 500
#: Seconds until writing is tried again.
_AGAIN_S = 1.0


class EventLog:
    """Used on one event loop, between `start` and `stop`."""

    def __init__(self, store: EventStore, settings: Settings, *, shared: bool) -> None:
        self._store, self._settings, self._shared = store, settings, shared
        self._waiting: deque[Event] = deque(maxlen=_WAITING)
        #: The newest ones, without a gap up to `last`.
        self._recent: deque[Event] = deque(maxlen=_RECENT)
        self._noted = asyncio.Event()
        self._watch = Watch()
        self._writing: asyncio.Task[None] | None = None
        self._stopping = False
        #: The id of the newest event that was shown, and of the oldest that is kept.
        self.last = 0
        self.first = 1

    async def start(self) -> None:
        self.first, self.last = await self._store.bounds()
        self._writing = asyncio.create_task(self._write_for_ever(), name="control:event-writer")

    def begin_stop(self) -> None:
        """Ends every wait. Never blocks."""
        self._stopping = True
        self._noted.set()
        self._watch.close()

    async def stop(self) -> None:
        """Writes what waits, if that does not take longer than `settings.grace`."""
        self.begin_stop()
        if self._writing is not None:
            await asyncio.wait((self._writing,), timeout=self._settings.grace)
        await end_loop(self._writing)

    def note(self, events: Sequence[Event]) -> None:
        """These have happened. Never blocks."""
        if events:
            self._waiting.extend(events)
            self._noted.set()

    async def after(self, last: int, limit: float = 0.0) -> list[Event]:
        """The next events after the place `last`, at most PAGE, as soon as there is one; an empty list after `limit`
        seconds. Raises OUT_OF_RANGE, 410, for a place that is forgotten already, or was never there."""
        last = last or self.first - 1
        if last > self.last and self._shared:
            await self._show([])  # another replica may have given it
        if last > self.last:
            raise self._gone(last, f"the newest event is {self.last}")
        if limit > 0 and self._watch.waiting >= self._settings.max_watchers:
            raise ApiError(
                "too-many-watchers",
                f"{self._settings.max_watchers} requests already wait for events; that is the limit.",
            )
        deadline = asyncio.get_running_loop().time() + limit
        while True:
            if limit > 0:
                left = deadline - asyncio.get_running_loop().time()
                await self._watch.until(lambda place=last: self.last > place, max(0.0, left))  # type: ignore[misc]
            newest = self.last
            if newest <= last:
                return []
            if found := await self._between(last, newest):
                return found
            # ids that were given to nothing, as where writing failed
            last = newest
            if limit <= 0:
                return []

    async def wanted(self, last: int, chosen_by: Filter, limit: float = 0.0) -> tuple[list[Event], int]:
        """Those of one look after the place `last` that fit, and the place to go on from. Looks until one fits, at most
        `limit` seconds; without a limit once. Raises as `after` does."""
        deadline = asyncio.get_running_loop().time() + limit
        while True:
            found = await self.after(last, limit)
            last = found[-1].id if found else last
            chosen = [event for event in found if chosen_by.fits(event)]
            limit = max(0.0, deadline - asyncio.get_running_loop().time())
            if chosen or limit == 0.0:
                return chosen, last

    async def _between(self, last: int, newest: int) -> list[Event]:
        """The events after `last` up to `newest`, at most PAGE."""
        if self._recent and self._recent[0].id <= last + 1:
            start = last + 1 - self._recent[0].id
            if 0 <= start < len(self._recent) and self._recent[start].id == last + 1:
                return [self._recent[at] for at in range(start, min(start + PAGE, len(self._recent)))]
            return [event for event in self._recent if event.id > last][:PAGE]
        if last + 1 < self.first:
            raise self._gone(last, f"events before {self.first} are forgotten")
        found = await self._store.after(last, PAGE)
        return [event for event in found if event.id <= newest]

    async def forget_old(self, now: float) -> None:
        """Forgets what is older than the window at `now`."""
        await self._store.forget(now - self._settings.event_memory)
        self.first, _ = await self._store.bounds()

    @staticmethod
    def _gone(last: int, why: str) -> ApiError:
        return ApiError("events-gone", f"there is no place after event {last} any more: {why}. Start over without it.")

    async def _write_for_ever(self) -> None:
        pause = self._settings.refresh_interval if self._shared else None
        while not (self._stopping and not self._waiting):
            if not self._waiting:
                try:
                    async with asyncio.timeout(pause):
                        await self._noted.wait()
                except TimeoutError:
                    pass  # other replicas write, too
            self._noted.clear()
            batch = list(self._waiting)
            try:
                written = await self._store.add(batch) if batch else []
                for _ in batch:
                    self._waiting.popleft()
                await self._show(written)
            except Exception:
                log.exception("events could not be written; it is tried again")
                if self._stopping:
                    return
                await asyncio.sleep(_AGAIN_S)

    async def _show(self, written: list[Event]) -> None:
        """Makes events visible, without a gap."""
        fresh = written
        if self._shared:
            # this runs for a reader and for the writer, at once
            fresh = [event for event in await self._store.after(self.last, _RECENT) if event.id > self.last]
        if not fresh:
            return
        self._recent.extend(fresh)
        self.last = fresh[-1].id
        self._watch.notify()
