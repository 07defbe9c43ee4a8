"""Threads that run iterators and fill buffers: few, made when they are needed, ended when they are idle.

They are daemons: a map function may wait for a queue that is never filled, and a process must still end. Used by
iterators.py and prefetch.py. A pipeline may have some of its own for its functions (cpu/dataset_threads.py).
"""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

#: Iterators that may be at work, or wait in a function, at the same time.
LIMIT = 64
#: A thread without work ends after so many seconds.
IDLE_S = 5.0


class Threads:
    """Thread-safe. Work that is handed over never raises: it delivers its errors itself."""

    def __init__(self, limit: int = LIMIT, name: str = "tenfold-dataset") -> None:
        self._limit, self._name = limit, name
        self._news = threading.Condition()
        self._work: deque[Callable[[], None]] = deque()
        self._count = self._idle = 0

    def submit(self, work: Callable[[], None]) -> None:
        """Runs `work` soon, on a thread that may be held for long. Never blocks."""
        with self._news:
            self._work.append(work)
            if len(self._work) > self._idle and self._count < self._limit:
                self._count += 1
                threading.Thread(target=self._run, name=f"{self._name}-{self._count}", daemon=True).start()
            else:
                self._news.notify()

    def _run(self) -> None:
        while True:
            with self._news:
                if not self._work:
                    self._idle += 1
                    # Work that this thread is woken for may be taken by one that has just finished: it goes on waiting.
                    self._news.wait_for(lambda: self._work, IDLE_S)
                    self._idle -= 1
                if not self._work:
                    self._count -= 1
                    return
                work = self._work.popleft()
            work()
            del work  # what it held is not kept alive by an idle thread


pool = Threads()
