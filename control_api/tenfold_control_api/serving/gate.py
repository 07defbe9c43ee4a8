"""A gate before a model: requests go through side by side; a change of the model waits until none is inside.

So a request sees the model before a change or after it, never some of both. Used by loading.py and following.py; for
one event loop.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class Gate:
    """Open, until somebody wants to be alone."""

    def __init__(self) -> None:
        self._inside = 0
        self._is_open, self._is_empty = asyncio.Event(), asyncio.Event()
        self._is_open.set()
        self._is_empty.set()

    @asynccontextmanager
    async def through(self) -> AsyncIterator[None]:
        """A request. Waits while somebody is alone, or waits for that, which both have bounds."""
        while not self._is_open.is_set():
            await self._is_open.wait()
        self._inside += 1
        self._is_empty.clear()
        try:
            yield
        finally:
            self._inside -= 1
            if not self._inside:
                self._is_empty.set()

    @asynccontextmanager
    async def alone(self, patience: float) -> AsyncIterator[bool]:
        """Whether nobody else is inside; nobody comes in within the block. Those that are inside have `patience`
        seconds to leave, in which nobody comes in either. For one task at a time."""
        self._is_open.clear()
        try:
            if self._inside:
                with suppress(TimeoutError):
                    async with asyncio.timeout(patience):
                        await self._is_empty.wait()
            yield not self._inside
        finally:
            self._is_open.set()
