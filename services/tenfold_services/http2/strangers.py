"""The share of the loop's time that connections have together which nobody knows yet. On the server's loop.

What a stranger sends costs far more time than bytes: a refused call some 60 µs for ten bytes. Each of its connections
has a quota of frames (http2_settings.py), but it can open another one. So all of them together have a part of the time,
in small portions: beyond that they wait for their turn, and those who are known go on. Used by server.py and
connection_socket.py.
"""

from __future__ import annotations

from collections import deque
from time import perf_counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable


class StrangersTime:
    """A bucket of seconds that time fills and turns empty, and a queue of those who wait for it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, share: float, most: float) -> None:
        """`share` of each second; `most` may be saved up."""
        self._loop, self._share, self._most = loop, share, most
        self._left, self._at = most, perf_counter()
        #: Turns that are due, in their order; while there are some, a timer runs.
        self._waiting: deque[Callable[[], None]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    def has_some(self) -> bool:
        """Whether a turn may begin now."""
        now = perf_counter()
        self._left, self._at = min(self._most, self._left + (now - self._at) * self._share), now
        return self._left > 0

    def spend(self, seconds: float) -> None:
        """A turn took so long."""
        self._left -= seconds

    def wait(self, turn: Callable[[], None], *, first: bool = False) -> None:
        """Has `turn()` called when there is some again, after those who wait already; or before them."""
        if first:
            self._waiting.appendleft(turn)
        else:
            self._waiting.append(turn)
        self._arm()

    def close(self) -> None:
        """Forgets who waits."""
        self._waiting.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self) -> None:
        if self._timer is None and self._waiting:
            self._timer = self._loop.call_later(max(0.001, -self._left / self._share), self._go_on)

    def _go_on(self) -> None:
        self._timer = None
        while self._waiting and self.has_some():
            self._waiting.popleft()()
        self._arm()
