"""Waiting for a change: an event wakes long-polls; nothing polls the table.

Used by cluster_table.py, one `Watch` per cluster, and as `Watches` for runs and sweeps. Single-threaded (one event
loop): no change between the check and the wait is missed, because `until` takes the event before it checks.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, TypeVar

from tenfold_control_api.problems import ApiError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tenfold_control_api.leases import Clock
    from tenfold_control_api.service_settings import Settings

T = TypeVar("T")


class Watch:
    """An event that can happen again and again."""

    def __init__(self) -> None:
        self._changed = asyncio.Event()
        self._closed = False
        self.waiting = 0
        #: Of its owner: how many use it, waiting or not, while it must not be given up.
        self.holders = 0
        #: How often it has happened.
        self.count = 0

    def notify(self) -> None:
        """Wakes all that wait. Never blocks."""
        self.count += 1
        self._changed.set()
        self._changed = asyncio.Event()

    def close(self) -> None:
        """Wakes all that wait, and refuses later ones: the service is stopping."""
        self._closed = True
        self.notify()

    async def after(self, count: int, limit: float) -> bool:
        """Waits until it has happened more often than `count` times, as `until` does."""
        return await self.until(lambda: self.count > count, limit)

    async def until(self, satisfied: Callable[[], bool], limit: float) -> bool:
        """Waits until `satisfied()`, at most `limit` seconds; tells whether it was. Raises UNAVAILABLE on `close`."""
        self.waiting += 1
        try:
            async with asyncio.timeout(limit):
                while True:
                    if self._closed:
                        raise ApiError("stopping", "the control service is stopping; ask again.")
                    changed = self._changed
                    if satisfied():
                        return True
                    await changed.wait()
        except TimeoutError:
            return satisfied()
        finally:
            self.waiting -= 1


class Watches:
    """Long-polls for objects of one kind, by name: a `Watch` for each that somebody waits for."""

    def __init__(self, kind: str, settings: Settings, *, shared: bool, clock: Clock = time.monotonic) -> None:
        """`kind`: "a run". `shared`: others change the objects, too, on the same database."""
        self._kind, self._settings, self._shared, self._clock = kind, settings, shared, clock
        self._watches: dict[str, Watch] = {}

    async def wait(
        self, name: str, get: Callable[[str], Awaitable[T]], satisfied: Callable[[T], bool], limit: float
    ) -> T:
        """The object as soon as it is `satisfied`, or after `limit` seconds as it is then. Raises what `get` raises,
        RESOURCE_EXHAUSTED, and UNAVAILABLE once the service stops."""
        if limit <= 0:
            return await get(name)
        if sum(watch.holders for watch in self._watches.values()) >= self._settings.max_watchers:
            raise ApiError(
                "too-many-watchers",
                f"{self._settings.max_watchers} requests already wait for {self._kind}; that is the limit. "
                "Ask again later.",
            )
        deadline = self._clock() + limit
        # held from before the first look: a task that drops it meanwhile would take the word of the change along
        watch = self._watches.setdefault(name, Watch())
        watch.holders += 1
        try:
            while True:
                seen = watch.count
                found = await get(name)
                left = deadline - self._clock()
                if satisfied(found) or left <= 0:
                    return found
                # a replica's changes are not told of: look again
                await watch.after(seen, min(left, self._settings.refresh_interval) if self._shared else left)
        finally:
            watch.holders -= 1
            if not watch.holders and self._watches.get(name) is watch:
                del self._watches[name]

    def notify(self, name: str, *, gone: bool = False) -> None:
        """The object has changed, or is `gone`. Never blocks."""
        watch = self._watches.pop(name, None) if gone else self._watches.get(name)
        if watch is not None:
            watch.notify()

    def close(self) -> None:
        """Ends every wait. Never blocks."""
        for watch in self._watches.values():
            watch.close()
