"""Mutexes that steps hold: a lock is a value of a step, and is given back when it is consumed or let go.

Steps that wait stand in a line and hold no thread. Used by cpu/data_flow_mutex.py. Follows mutex_ops.cc.
"""

from __future__ import annotations

import functools
import threading
import weakref
from collections import deque
from typing import Any

import numpy as np

from tenfold_kernels.resources.waiting import Waiting


class MutexLock:
    """The value of a variant edge: who has it holds the mutex."""

    __slots__ = ("__weakref__", "_release")

    def __init__(self, mutex: Mutex) -> None:
        self._release = weakref.finalize(self, mutex.release)

    def release(self) -> None:
        """Gives the mutex back, once."""
        self._release()


class Mutex:
    """Thread-safe. Handed to those who ask in the order in which they asked."""

    def __init__(self) -> None:
        # a lock may be let go of anywhere, by the collector of garbage too
        self._lock = threading.RLock()
        self._is_held = False
        self._line: deque[Waiting] = deque()

    def ask(self) -> Any:
        """An array with a MutexLock, or a Waiting for it."""
        with self._lock:
            if not self._is_held:
                self._is_held = True
                return self._locked()
            waiting = Waiting()
            waiting.on_cancel = functools.partial(self._leave, waiting)
            self._line.append(waiting)
            return waiting

    def release(self) -> None:
        """The mutex goes to the next in line."""
        following: Waiting | None = None
        with self._lock:
            while self._line and following is None:
                first = self._line.popleft()
                following = first if first.claim() else None
            self._is_held = following is not None
        if following is not None:
            following.deliver(self._locked())

    def _locked(self) -> np.ndarray[Any, np.dtype[Any]]:
        array = np.empty((), object)
        array[()] = MutexLock(self)
        return array

    def _leave(self, waiting: Waiting) -> None:
        with self._lock:
            if waiting in self._line:
                self._line.remove(waiting)
