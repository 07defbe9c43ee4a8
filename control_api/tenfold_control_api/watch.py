"""Waiting for a change: an event wakes long-polls; nothing polls the table.

Used by cluster_table.py, one `Watch` per cluster. Single-threaded (one event loop): no change between the check
and the wait is missed, because `until` takes the event before it checks.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tenfold_control_api.problems import ApiError

if TYPE_CHECKING:
    from collections.abc import Callable


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
