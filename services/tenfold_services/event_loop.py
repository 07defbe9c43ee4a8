"""The event loop of a task's server: asyncio's own, but that it spins for a moment before it sleeps where that pays.

A parameter server gets its next request some 50 µs after it has answered the last one. From sleep it would answer late,
and slowly (tenfold_link.spin_wait says why, and when it sleeps at once). background.py runs a server on it.
"""

from __future__ import annotations

import asyncio
import selectors
from typing import TYPE_CHECKING

from tenfold_link.spin_wait import SpinWait

if TYPE_CHECKING:
    Ready = list[tuple[selectors.SelectorKey, int]]


class SpinningSelector(selectors.DefaultSelector):
    """A selector that polls for a moment before it sleeps, as long as events come soon."""

    def __init__(self) -> None:
        super().__init__()
        self._spin = SpinWait()
        self._select_now = super().select

    def select(self, timeout: float | None = None) -> Ready:
        """As `BaseSelector.select`."""
        if timeout is None or timeout > 0:
            ready = self._spin.wait(self._poll)
            if ready:
                return ready
        return super().select(timeout)

    def _poll(self) -> Ready:
        return self._select_now(0)


def new_event_loop() -> asyncio.AbstractEventLoop:
    """A loop for a task's server; the caller closes it."""
    return asyncio.SelectorEventLoop(SpinningSelector())
