"""Limits on frames: a rate for those that only cost work, and which may still come for closed streams. No I/O.

Used by connection.py; numbers are in http2_settings.py.
"""

from __future__ import annotations

from collections import OrderedDict
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


class ClosedStreams:
    """Streams that we are done with while the peer may take them for open: what comes for them is ignored."""

    def __init__(self, most: int) -> None:
        self._most = most
        #: Oldest first; beyond `_most` they are forgotten, and their frames are errors.
        self._numbers: OrderedDict[int, None] = OrderedDict()

    def __contains__(self, number: int) -> bool:
        return number in self._numbers

    def add(self, number: int) -> None:
        self._numbers[number] = None
        if len(self._numbers) > self._most:
            self._numbers.popitem(last=False)

    def discard(self, number: int) -> None:
        """The peer has ended it, too."""
        self._numbers.pop(number, None)
