"""Spin for a moment before sleeping: a wake-up on another core takes longer than many answers do.

A core that went to sleep answers late, and what it runs then finds its caches cold: a step of 50 µs becomes one of
130 µs. So a waiter whose peer is quick polls again and again for a moment, and only then sleeps in the kernel. Between
two polls it yields its core to other processes. Whether that pays is learnt from the waits before: where spinning was
of no use (a slow peer, a machine with more to do than it has cores) it is tried less and less often. Used by both ends
of links, by the steps across tasks, and by the event loop of a task's server.
"""

from __future__ import annotations

import os
import sys
from time import perf_counter
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

#: Seconds that one wait spins: a small step of the peer's, with what two wake-ups cost.
SPIN_SECONDS = 300e-6
#: Where a core cannot be yielded, a spinning process would keep it from the others.
_CAN_YIELD = sys.platform == "linux"
#: Bytes. While more than this of one buffer is still to come, its reader spins for each piece: sleeping between two
#: would take longer than they do. Without end where the core cannot be yielded.
STREAMED = 256 << 10 if _CAN_YIELD else sys.maxsize
#: After spins without a result 1, 2, 4, … up to this many waits sleep at once.
_MOST_SKIPPED = 256


def poll_again(last: float) -> bool:
    """Whether to poll again for the next piece of a large buffer, after the core was yielded.

    The last piece came at `last` (perf_counter).
    """
    if perf_counter() >= last + SPIN_SECONDS:
        return False
    os.sched_yield()
    return True


class SpinWait:
    """What one waiter has learnt. Used by one thread at a time."""

    __slots__ = ("_skip", "_to_skip")

    def __init__(self) -> None:
        #: So many waits sleep at once after the next spin without a result.
        self._skip = 1
        #: So many of the next waits sleep at once.
        self._to_skip = 0 if _CAN_YIELD else sys.maxsize

    def wait(self, poll: Callable[[], T]) -> T | None:
        """What `poll` gives, once that is true; None after a moment, or sooner: the caller sleeps then.

        `poll` must not block, and lets other threads of this process have their turn.
        """
        if self._to_skip:
            self._to_skip -= 1
            return None
        begin = perf_counter()
        while True:
            found = poll()
            now = perf_counter()
            if found:
                if now < begin + 2 * SPIN_SECONDS:
                    self._skip = max(1, self._skip >> 1)
                    return found
                break  # another process computes on this core: yielding to it took long
            if now >= begin + SPIN_SECONDS:
                break
            os.sched_yield()
        self._to_skip = self._skip
        self._skip = min(self._skip << 1, _MOST_SKIPPED)
        return found or None
