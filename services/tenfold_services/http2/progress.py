"""Whether a connection moves as it should: a pure bucket that time empties and bytes fill. No I/O.

A peer that sends or takes one byte now and then must not keep a connection for ever, so what counts is a rate and not
that something moved. Used by connection_socket.py, once for each direction.
"""

from __future__ import annotations


class Progress:
    """One direction of a connection. It may stand still for `seconds`; `rate` bytes make up for a second."""

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
