"""Closes what another user has made, apart from the threads that serve.

The maker of a descriptor decides how long its last close takes: a TCP socket with SO_LINGER, a file of a FUSE mount. A
Unix socket whose peer has passed such a one closes it too, whether or not it was read. So what may come from another
user is closed by threads of its own, a bounded number; while all of them stand still, `has_room` says so, and no more
is taken in. Used by sockets.py, for listeners and for those who dial.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

#: Threads that close, at most; and what may wait for one of them before no more is to be taken in.
_THREADS, _WAITING = 16, 64


class Apart:
    """Any thread. Nothing here blocks its caller."""

    def __init__(self, threads: int = _THREADS, waiting: int = _WAITING) -> None:
        self._most, self._most_waiting = threads, waiting
        self._lock = threading.Lock()
        #: What is to be closed, oldest first; guarded by _lock, as the numbers are.
        self._waiting: deque[Callable[[], None]] = deque()
        self._threads = 0
        #: Threads that are inside a close.
        self._closing = 0

    @property
    def has_room(self) -> bool:
        """Whether more may be taken in that has to be closed here."""
        return len(self._waiting) < self._most_waiting

    def close(self, closing: Callable[[], None]) -> None:
        """Calls `closing`, which may take as long as it likes and may raise OSError, in a thread."""
        with self._lock:
            self._waiting.append(closing)
            if self._threads >= self._most or self._threads - self._closing >= len(self._waiting):
                return
            self._threads += 1
        # no one waits for its end, also not the end of the process
        threading.Thread(target=self._work, name="close-apart", daemon=True).start()

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._threads -= 1
                    return
                closing = self._waiting.popleft()
                self._closing += 1
            try:
                with contextlib.suppress(OSError):
                    closing()
            finally:
                with self._lock:
                    self._closing -= 1


#: Of this process.
apart = Apart()
