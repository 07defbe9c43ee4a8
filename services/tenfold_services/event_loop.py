"""The event loop of a task's server: asyncio's own, but that it waits awake for a moment where that pays.

A parameter server gets its next request some 50 µs after it has answered the last one. Asleep it would be late for it,
and slow with it (tenfold_link.spin_wait says why, and when not). background.py runs a server on it.
"""

from __future__ import annotations

import asyncio
import selectors
from typing import TYPE_CHECKING

from tenfold_link.spin_wait import Awake

if TYPE_CHECKING:
    Ready = list[tuple[selectors.SelectorKey, int]]


class AwakeSelector(selectors.DefaultSelector):
    """A selector that looks again and again before it sleeps, as long as something comes soon."""

    def __init__(self) -> None:
        super().__init__()
        self._awake = Awake()
        self._look_at_once = super().select

    def select(self, timeout: float | None = None) -> Ready:
        """As `BaseSelector.select`."""
        if timeout is None or timeout > 0:
            ready = self._awake.wait(self._look)
            if ready:
                return ready
        return super().select(timeout)

    def _look(self) -> Ready:
        return self._look_at_once(0)


def new_event_loop() -> asyncio.AbstractEventLoop:
    """A loop for a task's server; whoever asks for it closes it."""
    return asyncio.SelectorEventLoop(AwakeSelector())
