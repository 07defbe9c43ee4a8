"""What the arenas of this process take together. RLIMIT_DATA does not count shared memory, so it is counted here.

An arena that may not grow gives no block, and what it was asked for travels in the socket (arena.py).
"""

from __future__ import annotations

import threading

from tenfold_core import memory_limits
from tenfold_link.memory.remains import REMAINS

#: Of the machine's memory, or of the cgroup's, as much as one tensor may take by default.
_PART_OF_MEMORY = 2


class Charges:
    """Bytes resident in arenas, and the most there may be. Thread-safe; never blocks for long."""

    def __init__(self, most: int = 0) -> None:
        """`most` is by default half of the memory that there is, looked up when it is first needed."""
        self._most = most
        self._lock = threading.Lock()
        #: Resident now.
        self.taken = 0

    @property
    def most(self) -> int:
        if not self._most:
            self._most = memory_limits.memory() // _PART_OF_MEMORY or 1 << 40
        return self._most

    def take(self, nbytes: int) -> bool:
        """Charges `nbytes`, or, where they would be too many, nothing: False."""
        if self._take(nbytes):
            return True
        # of closed links, some may be free by now
        REMAINS.sweep()
        return self._take(nbytes)

    def _take(self, nbytes: int) -> bool:
        with self._lock:
            if self.taken + nbytes > self.most:
                return False
            self.taken += nbytes
            return True

    def give(self, nbytes: int) -> None:
        """They are free again."""
        with self._lock:
            self.taken -= nbytes


#: Of this process.
CHARGES = Charges()
