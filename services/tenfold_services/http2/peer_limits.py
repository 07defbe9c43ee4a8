"""What one peer may use up: frames, time in which nothing moves, and places for calls. No I/O.

Numbers are http2_settings.py's. Used by connection.py, connection_socket.py and open_calls.py.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from .frame_types import Code, ConnectionFault

if TYPE_CHECKING:
    from collections.abc import Callable


class FrameQuota:
    """A token bucket for frames that cost work and ask for nothing: a burst of them is allowed, and a rate."""

    def __init__(
        self, burst: int, per_second: float, clock: Callable[[], float], what: str = "that ask for nothing"
    ) -> None:
        """`what` it is that may not be too many."""
        self._what = what
        self._burst, self._per_second, self._clock = burst, per_second, clock
        #: What is left of it, as of `_at`.
        self._left, self._at = float(burst), clock()

    def spend(self, count: int = 1) -> None:
        """So many more have come. Raises ConnectionFault when that is too much."""
        self._left -= count
        if self._left < 0:
            now = self._clock()
            self._left, self._at = min(self._burst, self._left + (now - self._at) * self._per_second), now
            if self._left < 0:
                raise ConnectionFault(Code.ENHANCE_YOUR_CALM, f"too many frames {self._what}")


class Progress:
    """One direction of a connection. It may stand still for `seconds`; `rate` bytes make up for a second, so that a
    byte now and then does not keep it for ever."""

    def __init__(self, seconds: float, rate: float) -> None:
        self._most, self._rate = seconds, rate
        #: Seconds that it may still stand still.
        self._left = seconds
        #: The bytes that there were at the last look.
        self._seen = 0

    def stalled(self, due: bool, total: int, seconds: float) -> bool:
        """Whether it has stood still for too long. To be asked every so many `seconds`; `due`: something should move;
        `total`: all bytes that ever moved."""
        moved, self._seen = max(0, total - self._seen), max(total, self._seen)
        self._left = min(self._most, self._left - seconds + moved / self._rate) if due else self._most
        return self._left <= 0


class CallShares:
    """Counts calls by connection (any object) and by host ("" for this machine, whose processes count by connection
    only). A connection may have as many as there are free places, a host twice as many: so one connection gets half of
    all at most, two get a third each, and the next peer always finds some."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.total = 0
        #: By connection and by host; those that have some.
        self._counts: Counter[object] = Counter()

    def begin(self, connection: object, host: str) -> str | None:
        """Another call is there, until `end`. Why it is to be refused, if it is."""
        free = self._most - self.total
        own, of_host = self._counts[connection], self._counts[host] if host else 0
        self.total += 1
        self._counts[connection] = own + 1
        if host:
            self._counts[host] = of_host + 1
        if free <= 0:
            return f"Concurrent RPC limit exceeded! The server works on {self._most} calls (TENFOLD_HTTP2_CALLS)."
        if own < free and of_host < 2 * free:
            return None
        who, has = ("This connection", own) if own >= free else (f"The host {host}", of_host)
        return (
            f"Concurrent RPC limit exceeded! {who} has {has} of {self._most} calls (TENFOLD_HTTP2_CALLS); "
            f"the {free} that are left are for others."
        )

    def end(self, connection: object, host: str) -> None:
        """One of the calls is over."""
        self.total -= 1
        for key in (connection, host) if host else (connection,):
            self._counts[key] -= 1
            if not self._counts[key]:
                del self._counts[key]
