"""The two loops of shared work without the GIL: the caller's, and that of a helper thread that takes chunks from it.

A pool is a block of int64 cells (the `Cell` numbers) that both read and write; there is one job at a time. A caller
opens a job, works through its chunks itself from a counter, closes it and waits only for helpers that are inside. A
helper sleeps on a condition variable of the C library between jobs. Loops are compiled and cached without addresses of
functions: these stand in cells. Called by tenfold_kernels/chunks.py, which decides when to share at all.
"""

from __future__ import annotations

import enum

from .compiling import inline
from .intrinsics import call_0, call_1, call_2, call_clock, exchange, fetch_add, load, store, two_words


class Cell(enum.IntEnum):
    """What the cells of a pool hold. `_FN` are addresses of functions of the C library."""

    #: 1 while a caller owns the pool.
    CLAIMED = 0
    #: 1 while helpers may take chunks. A helper first counts itself in INSIDE and then looks here; the caller clears
    #: it and then looks at INSIDE: one of the two sees the other.
    OPEN = 1
    INSIDE = 2
    #: The next chunk, how many there are, and what does one: function(arguments, chunk).
    NEXT = 3
    COUNT = 4
    FUNCTION = 5
    ARGUMENTS = 6
    #: Chunks that helpers did in this job.
    HELPED = 7
    #: Counts jobs; changes under the mutex only.
    JOB = 8
    #: 1 while the caller sleeps until the last helper has left.
    WAITING = 9
    #: Nanoseconds that a helper looks for the next job, and the caller for the last helper, before they sleep.
    HELPER_SPINS = 10
    CALLER_SPINS = 11
    MUTEX = 12
    CHANGED = 13
    LEFT = 14
    LOCK_FN = 15
    UNLOCK_FN = 16
    WAIT_FN = 17
    WAKE_ALL_FN = 18
    WAKE_FN = 19
    CLOCK_FN = 20
    YIELD_FN = 21
    #: How many helpers may be inside.
    MOST_HELPERS = 22
    #: Results of the last job, for its caller: its own chunks, the nanoseconds they took, and those that it waited.
    OWN = 23
    WORKED = 24
    WAITED = 25


CELLS = 32
_CLOCK_MONOTONIC = 1

# The cells' places as constants of the loops: Numba reads no enum.
(
    _CLAIMED, _OPEN, _INSIDE, _NEXT, _COUNT, _FUNCTION, _ARGUMENTS, _HELPED, _JOB, _WAITING, _HELPER_SPINS,
    _CALLER_SPINS, _MUTEX, _CHANGED, _LEFT, _LOCK, _UNLOCK, _WAIT, _WAKE_ALL, _WAKE, _CLOCK, _YIELD, _MOST_HELPERS,
    _OWN, _WORKED, _WAITED,
) = (8 * int(cell) for cell in Cell)  # fmt: skip


@inline
def _now(pool, timespec):  # type: ignore[no-untyped-def]
    call_clock(load(pool + _CLOCK), _CLOCK_MONOTONIC, timespec)
    return load(timespec) * 1_000_000_000 + load(timespec + 8)


@inline
def _chunks(pool):  # type: ignore[no-untyped-def]
    # Takes chunks until none is left; how many.
    function, arguments, count = load(pool + _FUNCTION), load(pool + _ARGUMENTS), load(pool + _COUNT)
    done = 0
    while True:
        chunk = fetch_add(pool + _NEXT, 1)
        if chunk >= count:
            return done
        call_2(function, arguments, chunk)
        done += 1


@inline
def _help(pool):  # type: ignore[no-untyped-def]
    inside = fetch_add(pool + _INSIDE, 1)
    if load(pool + _OPEN) and inside < load(pool + _MOST_HELPERS):
        fetch_add(pool + _HELPED, _chunks(pool))
    if fetch_add(pool + _INSIDE, -1) == 1 and load(pool + _WAITING):
        call_1(load(pool + _LOCK), load(pool + _MUTEX))
        call_1(load(pool + _WAKE), load(pool + _LEFT))
        call_1(load(pool + _UNLOCK), load(pool + _MUTEX))


def helper(pool):  # type: ignore[no-untyped-def]
    """A helper thread's life; never returns."""
    timespec = two_words()
    seen = 0
    while True:
        if load(pool + _JOB) == seen and load(pool + _HELPER_SPINS):
            end = _now(pool, timespec) + load(pool + _HELPER_SPINS)
            while load(pool + _JOB) == seen and _now(pool, timespec) < end:
                call_0(load(pool + _YIELD))
        if load(pool + _JOB) == seen:
            call_1(load(pool + _LOCK), load(pool + _MUTEX))
            while load(pool + _JOB) == seen:
                call_2(load(pool + _WAIT), load(pool + _CHANGED), load(pool + _MUTEX))
            call_1(load(pool + _UNLOCK), load(pool + _MUTEX))
        seen = load(pool + _JOB)
        _help(pool)


def share(pool, function, arguments, count):  # type: ignore[no-untyped-def]
    """Does all chunks with what helpers there are; how many chunks they did, or -1 if another caller has the pool.

    Else the caller clears CLAIMED once it has read what it wants of the results.
    """
    if exchange(pool + _CLAIMED, 1):
        return -1
    timespec = two_words()
    store(pool + _FUNCTION, function)
    store(pool + _ARGUMENTS, arguments)
    store(pool + _COUNT, count)
    store(pool + _NEXT, 0)
    store(pool + _HELPED, 0)
    begun = _now(pool, timespec)
    store(pool + _OPEN, 1)
    call_1(load(pool + _LOCK), load(pool + _MUTEX))
    fetch_add(pool + _JOB, 1)
    call_1(load(pool + _UNLOCK), load(pool + _MUTEX))
    call_1(load(pool + _WAKE_ALL), load(pool + _CHANGED))
    own = _chunks(pool)
    ended = _now(pool, timespec)
    store(pool + _OPEN, 0)
    if load(pool + _INSIDE):
        end = ended + load(pool + _CALLER_SPINS)
        while load(pool + _INSIDE) and _now(pool, timespec) < end:
            pass
        if load(pool + _INSIDE):
            store(pool + _WAITING, 1)
            call_1(load(pool + _LOCK), load(pool + _MUTEX))
            while load(pool + _INSIDE):
                call_2(load(pool + _WAIT), load(pool + _LEFT), load(pool + _MUTEX))
            call_1(load(pool + _UNLOCK), load(pool + _MUTEX))
            store(pool + _WAITING, 0)
    helped = load(pool + _HELPED)
    store(pool + _OWN, own)
    store(pool + _WORKED, ended - begun)
    store(pool + _WAITED, _now(pool, timespec) - ended)
    return helped


def await_change(pool, cell, seen, nanoseconds, told):  # type: ignore[no-untyped-def]
    """Counts in the cell `told`, if there is one, and looks so long, yielding the core, whether `cell` holds something
    else; what it holds. Both are addresses.
    """
    if told:
        fetch_add(told, 1)
    timespec = two_words()
    end = _now(pool, timespec) + nanoseconds
    while load(cell) == seen and _now(pool, timespec) < end:
        call_0(load(pool + _YIELD))
    return load(cell)
