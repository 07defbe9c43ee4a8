"""Mutexes that steps hold: a lock is a value of a step, and is given back when it is consumed or let go.

A step that fails gives back what it holds: its error, with the frames in which it was raised, may keep the value for
long. Steps that wait stand in a line and hold no thread. Used by cpu/data_flow_mutex.py. Follows mutex_ops.cc.
"""

from __future__ import annotations

import functools
import threading
import weakref
from collections import deque

from tenfold_kernels.arrays import scalar_object
from tenfold_kernels.resources.waiting import LOCK, Lack, Waiting


class MutexLock:
    """The value of a variant edge: who has it holds the mutex."""

    __slots__ = ("__weakref__", "release")

    def __init__(self, mutex: Mutex) -> None:
        #: Gives the mutex back, once; without a hold on this value.
        self.release = weakref.finalize(self, mutex.release)


class Mutex:
    """Thread-safe. Handed to those who ask in the order in which they asked."""

    def __init__(self, name: str = "") -> None:
        self.name = name
        # a lock may be let go of anywhere, by the collector of garbage too
        self._lock = threading.RLock()
        self._is_held = False
        #: The id of the result by which its holder got it: the result itself may hold the lock, which ends with it.
        self._holder = 0
        self._line: deque[Waiting] = deque()

    def ask(self) -> Waiting:
        """A Waiting for an array with a MutexLock, which a step that fails gives back by `cancel`."""
        waiting = Waiting()
        with self._lock:
            if self._is_held:
                waiting.on_cancel = functools.partial(self._leave, waiting)
                waiting.lack = self._lack
                self._line.append(waiting)
                return waiting
            self._is_held = waiting.claim()
        self._hand_to(waiting)
        return waiting

    def _lack(self) -> Lack:
        return Lack(LOCK, self.name, 0, 1, "another step holds the lock", self._holder)

    def release(self) -> None:
        """The mutex goes to the next in line."""
        following: Waiting | None = None
        with self._lock:
            while self._line and following is None:
                first = self._line.popleft()
                following = first if first.claim() else None
            self._is_held = following is not None
        if following is not None:
            self._hand_to(following)

    def _hand_to(self, waiting: Waiting) -> None:
        """The next holder, claimed, gets the lock."""
        self._holder = id(waiting)
        lock = MutexLock(self)
        waiting.give_back = lock.release
        waiting.deliver(scalar_object(lock))

    def _leave(self, waiting: Waiting) -> None:
        with self._lock:
            if waiting in self._line:
                self._line.remove(waiting)
