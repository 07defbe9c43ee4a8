"""Shares the work of one large kernel among a few threads, where its compiled loops leave the GIL alone.

A kernel calls `in_parts`; parts are taken from one counter, by the calling thread too, which never waits for a part
that no thread has begun. How many threads there are is what `intra_op_parallelism_threads` and the machine allow
(chunks.py, which does the same for compiled functions, without the GIL). A helper looks a moment for the next job
before it sleeps, as kernels of one step follow each other: to wake it takes longer than many of them. Small work is
never split.
"""

from __future__ import annotations

import contextvars
import itertools
import os
import threading
from typing import TYPE_CHECKING

import numpy as np

from tenfold_core.blas_env import available_cores
from tenfold_kernels import chunks
from tenfold_kernels.denormals import flush_on_this_thread

if TYPE_CHECKING:
    from collections.abc import Callable

#: More threads than this do not make memory any faster.
_MOST = 16
#: Parts for each thread: one that lost its core leaves the rest to the others.
_PARTS_EACH = 3
#: Nanoseconds. A caller looks so long for the end of a part before it sleeps: longer than to be woken.
_CALLER_SPINS = 150_000


class _Helper:
    """A thread that takes parts for one caller at a time: who has taken it from `_free`."""

    def __init__(self) -> None:
        #: Jobs given, and how often the thread had the GIL no more and looked for another one.
        self._given, self._rested = np.zeros(8, np.int64), np.zeros(8, np.int64)
        self._given_at, self._rested_at = chunks.address_of(self._given), chunks.address_of(self._rested)
        self._work: Callable[[], None] = _nothing
        #: One entry while the job that was given has not begun: the thread takes it, or the caller takes it back.
        self._turn: list[None] = []
        #: One entry while the thread sleeps: the taker wakes the thread.
        self._asleep: list[None] = []
        self._woken, self._done = threading.Lock(), threading.Lock()
        self._woken.acquire()
        self._done.acquire()
        self._error: BaseException | None = None
        threading.Thread(target=self._live, name="tenfold-intra-op", daemon=True).start()

    def give(self, work: Callable[[], None]) -> None:
        """Has the thread call `work` soon, unless `take_back` comes first. Never blocks."""
        self._work = work
        self._turn.append(None)
        self._given[0] += 1
        if _take(self._asleep):
            self._woken.release()

    def take_back(self) -> BaseException | None:
        """The job is over for the caller: waits if the thread has begun; what its work raised."""
        if _take(self._turn):
            self._work = _nothing
            return None
        rested = int(self._rested[0])
        if not self._done.acquire(blocking=False):
            # until the thread has let the GIL go: a thread that waits for the GIL has to be woken
            chunks.await_change(self._rested_at, rested, _CALLER_SPINS)
            self._done.acquire()
        error, self._error = self._error, None
        return error

    def _live(self) -> None:
        flush_on_this_thread()
        seen = 0
        while True:
            if self._given[0] == seen:
                chunks.await_change(self._given_at, seen, chunks.HELPER_SPINS, self._rested_at)
            if self._given[0] == seen:
                self._asleep.append(None)
                # given meanwhile: who gave it has seen no sleeper, or wakes this thread
                if self._given[0] == seen or not _take(self._asleep):
                    self._woken.acquire()
            seen = int(self._given[0])
            if not _take(self._turn):
                continue
            work, self._work = self._work, _nothing
            try:
                work()
            except BaseException as error:  # the caller raises it
                self._error = error
            del work
            self._done.release()


def _nothing() -> None:
    pass


def _take(tokens: list[None]) -> bool:
    """Whether there was one, and this thread has it: one operation under the GIL."""
    try:
        tokens.pop()
    except IndexError:
        return False
    return True


#: Helpers that no caller has; None before the first job.
_free: list[_Helper] | None = None
_lock = threading.Lock()


def _forget() -> None:
    """A forked process has none of the threads."""
    global _free
    _free = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def in_parts(work: Callable[[int, int], None], total: int, least: int) -> None:
    """Calls `work(first, last)` for parts that cover range(total), each of at least `least`; blocks until all ended.

    Which parts there are depends on the arguments and the number of threads allowed, never on how they ran. `work` must
    not call `in_parts`, and must run compiled loops only: NumPy's error settings belong to the caller's thread. The
    first error of a part is raised once all that were begun have ended.
    """
    width = _width()
    parts = min(total // max(least, 1), width * _PARTS_EACH) if width > 1 else 1
    if parts <= 1:
        if total > 0:
            work(0, total)
        return
    edges = [total * i // parts for i in range(parts + 1)]
    # A counter's next number is taken under the GIL, so by one thread only.
    numbers = itertools.count()

    def take() -> None:
        for i in numbers:
            if i >= parts:
                return
            work(edges[i], edges[i + 1])

    helpers = _taken(min(width, parts) - 1)
    for helper in helpers:
        # In the caller's context: what a helper allocates comes from the memory that its steps keep (memory.py).
        context = contextvars.copy_context()
        helper.give(lambda context=context: context.run(take))  # type: ignore[misc]
    errors: list[BaseException] = []
    try:
        take()
    finally:
        # Nobody may write to the caller's arrays after this returned; who has not begun by now need not begin.
        for helper in helpers:
            error = helper.take_back()
            if error is not None:
                errors.append(error)
        if _free is not None:
            _free.extend(helpers)
    for error in errors:
        raise error


def first_in_parts(work: Callable[[int, int], int], total: int, least: int) -> int:
    """The first bad place in range(total), -1 if there is none. `work(first, last)` of a part says it likewise, counted
    from `first`. Else as `in_parts`.
    """
    found = list[int]()

    def part(first: int, last: int) -> None:
        bad = work(first, last)
        if bad >= 0:
            found.append(first + bad)

    in_parts(part, total, least)
    return min(found, default=-1)


def _width() -> int:
    return chunks.width()


def _taken(count: int) -> list[_Helper]:
    """Helpers that are free, at most so many; none where the cores have enough to do."""
    global _free
    if chunks.is_crowded():
        return []
    if _free is None:
        with _lock:
            if _free is None:
                _free = [_Helper() for _ in range(max(1, min(available_cores(), _MOST) - 1))]
    free, found = _free, list[_Helper]()
    while len(found) < count:
        try:
            found.append(free.pop())
        except IndexError:
            break
    return found
