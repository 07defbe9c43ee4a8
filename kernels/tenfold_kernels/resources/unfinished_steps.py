"""Steps that have made some of their updates on this task and not yet all: between two of them a save takes its cut.

A step notes its first and its last update (services: worker/static_executor.py). A save waits for a moment when none is
between the two, and holds it while it takes its cut, so that of a step's updates on a task it has all or none. Steps
wait for nothing but that; where so many overlap that no such moment comes, new ones wait with their first update until
those under way have made their last. Used by cpu/_cuts.py; decision 0197.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class UnfinishedSteps:
    """Of one task. Thread-safe."""

    def __init__(self) -> None:
        #: Held by a save at its moment. Who notes something holds no other lock; a step may end within anything.
        self._changed = threading.Condition(threading.RLock())
        self._numbers = itertools.count()
        self._open: set[int] = set()
        #: Saves for which new steps wait.
        self._held_back = 0

    def begin(self) -> UnfinishedStep:
        """A step is about to make its first update. Waits while a save takes its cut, or has waited for long."""
        number = next(self._numbers)
        with self._changed:
            if self._held_back:
                self._changed.wait_for(lambda: not self._held_back)
            self._open.add(number)
        return UnfinishedStep(partial(self._end, number))

    def _end(self, number: int) -> None:
        with self._changed:
            self._open.discard(number)
            if not self._open:
                self._changed.notify_all()

    @contextlib.contextmanager
    def none(self, seconds: float, held_back: float) -> Iterator[bool]:
        """Within the block no step begins or ends its updates. Waits `seconds` at most for a moment when none is
        between the two, and then `held_back` at most while no other step begins; whether there was one."""
        with self._changed:
            found = self._changed.wait_for(lambda: not self._open, seconds)
            if not found:
                self._held_back += 1
                try:
                    found = self._changed.wait_for(lambda: not self._open, held_back)
                finally:
                    # those that wait go on once the lock is free
                    self._held_back -= 1
                    self._changed.notify_all()
            yield found


class UnfinishedStep:
    """One step. It ends once, at the latest when nothing refers to it any more: a step that fails just goes."""

    __slots__ = ("_end",)

    def __init__(self, end: Callable[[], None]) -> None:
        self._end: Callable[[], None] | None = end

    def end(self) -> None:
        """All its updates are made."""
        end, self._end = self._end, None
        if end is not None:
            end()

    __del__ = end
