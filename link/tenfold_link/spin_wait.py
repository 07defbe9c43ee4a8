"""When to wait awake, and when asleep: being woken up on another core takes longer than many answers do.

A processor that went to sleep answers late, and what it runs then finds its caches cold: a step of 50 µs becomes one of
130 µs. So who waits for a peer that is quick looks again and again for a moment, and only then sleeps in the kernel.
Between two looks it gives way to whoever wants its core. Whether that pays is learnt from the waits before: where it
was of no use (a slow peer, more processes than cores) it is tried less and less often. Used by both ends of links.
"""

from __future__ import annotations

import os
import sys
from time import perf_counter
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

#: Seconds that one wait stays awake: a small step of the peer's, with what two wake-ups cost.
STAY_AWAKE = 300e-6
#: Without a way to give up the core nobody else could use it.
_CAN_YIELD = sys.platform == "linux"
#: Bytes. While more than this of one buffer is still to come, its reader waits awake for each piece: sleeping between
#: two would take longer than they do. Without end where the core cannot be given up.
STREAMED = 256 << 10 if _CAN_YIELD else sys.maxsize
#: Waits that sleep at once after vain attempts: 1, 2, 4, … up to this many.
_MOST_ASLEEP = 256


def another_look(came: float) -> bool:
    """Whether to look again at once for the next piece of a large buffer. The last one came at `came` (perf_counter).

    Others have had the core meanwhile.
    """
    if perf_counter() - came >= STAY_AWAKE:
        return False
    os.sched_yield()
    return True


class Awake:
    """What one waiter has learnt. Used by one thread at a time."""

    __slots__ = ("_asleep", "_vain")

    def __init__(self) -> None:
        #: So many waits are asleep after the next vain attempt; and are left to be.
        self._vain = 1
        self._asleep = 0 if _CAN_YIELD else sys.maxsize

    def wait(self, look: Callable[[], T]) -> T | None:
        """What `look` gives, once that is true; None after a moment, or at once: sleep then.

        `look` must not block, and lets other threads of this process have their turn.
        """
        if self._asleep:
            self._asleep -= 1
            return None
        begin = perf_counter()
        end = begin + STAY_AWAKE
        while True:
            found = look()
            now = perf_counter()
            if found:
                if now < end + STAY_AWAKE:
                    self._vain = max(1, self._vain >> 1)
                    return found
                break  # somebody else computes on this core, and giving way to him took long
            if now >= end:
                break
            os.sched_yield()
        self._asleep = self._vain
        self._vain = min(self._vain << 1, _MOST_ASLEEP)
        return found or None
