"""Where the next stretch of a run computes: on its caller's thread, on the event loop's thread, or in the pool.

A program has one `RunPolicy`, which remembers what its runs took and with which shapes. part_run.py asks it before each
stretch and tells it the time of each run; `is_callable` and `waits_for_links_only` say at registration which programs a
caller's thread may run. Decisions 0009 (callers' threads), 0025 (the event loop) and 0026 (one clock).
"""

from __future__ import annotations

from time import thread_time_ns
from typing import TYPE_CHECKING

from tenfold_kernels.resources import state

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from tenfold_compiler.program import Program

#: The clock of all runs, in nanoseconds: processor time of the thread. Waiting for a core or for the interpreter's lock
#: does not make a program long.
clock = thread_time_ns

#: Where a turn of a run is taken. Plain numbers, which cost less to compare than members of an Enum.
CALLER, EVENT_LOOP, FUNCTION_CALLER = range(3)
#: Stretches that a function's body may take on its caller's thread.
FUNCTION_STRETCHES = 8
#: Nanoseconds. A program that takes less is timed one time in so many on the event loop: reading the clock takes as
#: long as a small kernel.
_TINY, _TIMED_ONE_IN = 100_000, 8
#: Nanoseconds. A turn that takes less is not worth the way to the pool and back.
_HOP = 50_000
#: Shapes with which one program is known as short.
_KNOWN_SHAPES = 1024
#: A program that takes less than this part of its deadline needs no timer: nothing in it waits.
FAR_FROM_DEADLINE = 100


class RunPolicy:
    """Of one program. Any thread; a note that two threads make at once may be lost."""

    __slots__ = (
        "_limit", "_loops", "_reshapes", "_short_with", "_untimed", "nanoseconds", "sized_by_values", "usual",
    )  # fmt: skip

    def __init__(self, limit: int, sized_by_values: bool, loops: bool) -> None:
        """A run of less than `limit` nanoseconds is short. `loops`: its nodes may run more than once."""
        self._limit, self._loops = limit, loops
        #: Runs since one was timed.
        self._untimed = 0
        #: Nanoseconds of the last runs, smoothed; None before the first.
        self.nanoseconds: float | None = None
        #: Its running time may be any, whatever the shapes of what it gets: a number says how long.
        self.sized_by_values = sized_by_values
        #: Execution.shapes of runs that were short, while variables have had the shapes that they have.
        self._short_with: set[int] = set()
        self._reshapes = state.reshapes()
        #: Execution.pairs of a short run; None before the first. A run that has got some of them, and nothing else, is
        #: short so far. Their order is any, so of 16 tensors 65,536 combinations would have to be known.
        self.usual: frozenset[int] | None = None

    def is_short(self, shapes: int, spent: int = 0, usual: frozenset[int] | None = None) -> bool:
        """Whether the next stretch of a run belongs on an event loop's thread; if not, in a pool.

        `shapes` are those of all that has come from outside so far (Execution.shapes), `usual` is Execution.usual,
        `spent` the `held` time so far.
        """
        nanoseconds = self.nanoseconds
        return (
            nanoseconds is not None
            and nanoseconds < self._limit
            and spent < self._limit
            and ((usual is not None and usual is self.usual) or shapes in self._short_with)
            and not self.sized_by_values
            and self._reshapes == state.reshapes()
        )

    def was_short(self) -> bool:
        """Whether the last runs were short, and nothing but shapes settles the next one's time."""
        nanoseconds = self.nanoseconds
        return nanoseconds is not None and nanoseconds < self._limit and not self.sized_by_values

    def times_next(self) -> bool:
        """Whether to time the stretches on the event loop of the run that begins now, and to `note` it."""
        nanoseconds = self.nanoseconds
        if nanoseconds is None or nanoseconds > _TINY or self._loops:
            return True
        self._untimed += 1
        if self._untimed < _TIMED_ONE_IN:
            return False
        self._untimed = 0
        return True

    def note(self, nanoseconds: int, shapes: Iterable[int] = (), pairs: Iterable[int] | None = None) -> None:
        """A run took so long by `clock`: it counts a quarter, the ones before three. If it was short, so are `shapes`,
        its Execution.shapes, and what it got in `pairs` is usual.
        """
        last = self.nanoseconds
        self.nanoseconds = nanoseconds if last is None else last * 0.75 + nanoseconds * 0.25
        if nanoseconds >= self._limit:
            return
        known, reshapes = self._short_with, state.reshapes()
        if self._reshapes != reshapes or len(known) > _KNOWN_SHAPES:
            self._reshapes = reshapes
            known = self._short_with = set()
            self.usual = None
        known.update(shapes)
        if pairs is not None:
            self.usual = frozenset(pairs)

    def is_far_from(self, seconds: float) -> bool:
        """Whether a run surely ends long before its deadline in `seconds`, so that no timer has to watch it."""
        nanoseconds = self.nanoseconds
        return nanoseconds is not None and nanoseconds * FAR_FROM_DEADLINE <= seconds * 1e9

    def forget_time(self) -> None:
        """A run has come near its deadline, and the times of earlier ones say nothing any more: the next one is
        watched, and measured anew."""
        self.nanoseconds = None


def held(spent: int, turns: int, longest: int) -> int:
    """What counts of a run that has computed for `spent` nanoseconds in so many turns on an event loop's thread: all of
    it, or the longest turn where turns are short. Others have theirs in between."""
    return spent if spent >= turns * _HOP else longest


def is_callable(program: Program) -> bool:
    """Whether a run on a caller's thread is one call (direct_call.py): one region that receives and sends nothing."""
    return program.is_straight and not program.transfers.send_keys


def waits_for_links_only(program: Program, pushed: Collection[str]) -> bool:
    """Whether a caller's thread that waits for links can run the program: no kernel waits, and all is `pushed`."""
    return not program.blocks and program.transfers.recv_keys.issubset(pushed)


def waits_for_kernels_only(program: Program) -> bool:
    """Whether a caller's thread that waits for kernels can run the program: it takes and gives what is the caller's."""
    return not program.transfers.recv_keys and not program.transfers.send_keys
