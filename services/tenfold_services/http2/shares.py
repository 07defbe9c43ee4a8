"""Who may begin another call while there are few places left: no connection, and no host, gets them all. No I/O.

The more calls there are, the fewer one may have: a connection as many as there are free places, a host twice as many.
So one connection gets half of all at most, two get a third each, and whoever comes next always finds some. The
processes of this machine count by connection only. Used by open_calls.py; the number is http2_settings.py's.
"""

from __future__ import annotations

from collections import Counter
from typing import Any


class CallShares:
    """Counts calls by connection (any object) and by host ("" for this machine)."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.total = 0
        self._by_connection: Counter[object] = Counter()
        self._by_host: Counter[str] = Counter()

    def begin(self, connection: object, host: str) -> str | None:
        """Another call is there, until `end`. Why it is to be refused, if it is."""
        free = self._most - self.total
        own, of_host = self._by_connection[connection], self._by_host[host] if host else 0
        self.total += 1
        self._by_connection[connection] = own + 1
        if host:
            self._by_host[host] = of_host + 1
        if free <= 0:
            return f"Concurrent RPC limit exceeded! The server works on {self._most} calls (TENFOLD_HTTP2_CALLS)."
        if own >= free:
            return self._text("This connection", own, free)
        if of_host >= 2 * free:
            return self._text(f"The host {host}", of_host, free)
        return None

    def end(self, connection: object, host: str) -> None:
        """One of the calls is over."""
        self.total -= 1
        _less(self._by_connection, connection)
        if host:
            _less(self._by_host, host)

    def _text(self, who: str, own: int, free: int) -> str:
        return (
            f"Concurrent RPC limit exceeded! {who} has {own} of {self._most} calls (TENFOLD_HTTP2_CALLS); "
            f"the {free} that are left are for others."
        )


def _less(counts: Counter[Any], key: Any) -> None:
    counts[key] -= 1
    if not counts[key]:
        del counts[key]
