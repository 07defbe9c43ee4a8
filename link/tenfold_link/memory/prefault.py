"""The thread that takes the page faults of arenas before they are used, and gives memory of idle ones back.

The first write to a fresh shared page costs ten times the copy (64 MB: 40 ms), so it is done here, where no step waits
for it; NumPy releases the GIL meanwhile. One daemon thread a process, started with the first large tensor; it holds
no arena alive.
"""

from __future__ import annotations

import queue
import threading
import time
import weakref
from typing import Protocol

from tenfold_link.memory.remains import REMAINS

#: Bytes that are written at a time: the first piece can be used while the next is made.
PIECE = 8 << 20
#: An arena that lent nothing for this long gives back what it has beyond its settings.
IDLE_SECONDS = 30.0


class Grows(Protocol):
    """An arena, as its thread sees it."""

    def prefault(self) -> None:
        """Takes page faults."""
        ...

    def trim(self, now: float) -> bool:
        """Gives memory back; whether there may be more to give later."""
        ...


_lock = threading.Lock()
_thread: threading.Thread | None = None
_requests: queue.SimpleQueue[weakref.ref[Grows]] = queue.SimpleQueue()


def request(arena: Grows) -> None:
    """Has `arena.prefault()` called soon. Never blocks."""
    global _thread
    _requests.put(weakref.ref(arena))
    if _thread is None or not _thread.is_alive():
        with _lock:
            if _thread is None or not _thread.is_alive():
                _thread = threading.Thread(target=_work, name="tenfold-arena", daemon=True)
                _thread.start()


def _work() -> None:
    #: Arenas that may have something to give back.
    grown: weakref.WeakSet[Grows] = weakref.WeakSet()
    while True:
        try:
            arena = _requests.get(timeout=IDLE_SECONDS / 2 if grown or REMAINS else None)()
        except queue.Empty:
            now = time.monotonic()
            REMAINS.sweep()
            for one in list(grown):
                if not one.trim(now):
                    grown.discard(one)
            one = None  # type: ignore[assignment] # the loop's last arena must not live until the next request
            continue
        if arena is not None:
            arena.prefault()
            grown.add(arena)
        arena = None
