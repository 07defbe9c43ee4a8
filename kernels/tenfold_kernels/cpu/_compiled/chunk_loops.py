"""The two loops of shared work without the GIL: the caller's, and that of a helper thread that takes chunks from it.

A pool is a block of int64 cells (the `Cell` numbers) that both read and write; there is one job at a time. A caller
opens a job, works through its chunks itself from a counter, closes it and waits only for helpers that are inside. A
helper sleeps on a condition variable of the C library between jobs. Loops are compiled and cached without addresses of
functions: these stand in cells. Called by tenfold_kernels/chunks.py, which decides when to share at all.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

import numba
from llvmlite import ir  # type: ignore[import-untyped]
from numba import extending, types

if TYPE_CHECKING:
    from collections.abc import Callable


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
_I64, _I32 = ir.IntType(64), ir.IntType(32)
_CLOCK_MONOTONIC = 1
#: What it makes is called without the typing context that its definition takes, so it has no type of its own.
_intrinsic: Callable[[Any], Any] = extending.intrinsic


@_intrinsic
def load(typingctx: Any, address: Any) -> Any:
    """The cell at an address, read in one order with all other atomic accesses."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load_atomic(builder.inttoptr(args[0], _I64.as_pointer()), "seq_cst", 8)

    return types.int64(types.int64), build


@_intrinsic
def store(typingctx: Any, address: Any, value: Any) -> Any:
    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store_atomic(args[1], builder.inttoptr(args[0], _I64.as_pointer()), "seq_cst", 8)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), build


@_intrinsic
def fetch_add(typingctx: Any, address: Any, value: Any) -> Any:
    """Adds to the cell; what it was before."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.atomic_rmw("add", builder.inttoptr(args[0], _I64.as_pointer()), args[1], "seq_cst")

    return types.int64(types.int64, types.int64), build


@_intrinsic
def exchange(typingctx: Any, address: Any, value: Any) -> Any:
    """Sets the cell; what it was before."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.atomic_rmw("xchg", builder.inttoptr(args[0], _I64.as_pointer()), args[1], "seq_cst")

    return types.int64(types.int64, types.int64), build


def _caller_of(result: Any, parameters: list[Any]) -> Any:
    """An intrinsic that calls the C function at an address with int64s, each cut to the type that it takes."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.FunctionType(result, parameters)
        function = builder.inttoptr(args[0], kind.as_pointer())
        values = [
            value if wanted.width == 64 else builder.trunc(value, wanted)
            for value, wanted in zip(args[1:], parameters, strict=True)
        ]
        builder.call(function, values)
        return context.get_dummy_value()

    return build


@_intrinsic
def call_0(typingctx: Any, function: Any) -> Any:
    """int function(void); what it gives is not looked at, here and below."""
    return types.void(types.int64), _caller_of(_I32, [])


@_intrinsic
def call_1(typingctx: Any, function: Any, a: Any) -> Any:
    """int function(void *)"""
    return types.void(types.int64, types.int64), _caller_of(_I32, [_I64])


@_intrinsic
def call_2(typingctx: Any, function: Any, a: Any, b: Any) -> Any:
    """void function(int64, int64), or of two pointers"""
    return types.void(types.int64, types.int64, types.int64), _caller_of(ir.VoidType(), [_I64, _I64])


@_intrinsic
def call_clock(typingctx: Any, function: Any, clock: Any, timespec: Any) -> Any:
    """int clock_gettime(clockid_t, struct timespec *)"""
    return types.void(types.int64, types.int64, types.int64), _caller_of(_I32, [_I32, _I64])


@_intrinsic
def _two_words(typingctx: Any) -> Any:
    """The address of 16 bytes on the stack, until the function returns."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        with builder.goto_entry_block():
            memory = builder.alloca(ir.ArrayType(_I64, 2))
        return builder.ptrtoint(memory, _I64)

    return types.int64(), build


# The cells' places as constants of the loops: Numba reads no enum.
(
    _CLAIMED, _OPEN, _INSIDE, _NEXT, _COUNT, _FUNCTION, _ARGUMENTS, _HELPED, _JOB, _WAITING, _HELPER_SPINS,
    _CALLER_SPINS, _MUTEX, _CHANGED, _LEFT, _LOCK, _UNLOCK, _WAIT, _WAKE_ALL, _WAKE, _CLOCK, _YIELD, _MOST_HELPERS,
    _OWN, _WORKED, _WAITED,
) = (8 * int(cell) for cell in Cell)  # fmt: skip

_inline = numba.njit(nogil=True, error_model="numpy")


@_inline
def _now(pool, timespec):  # type: ignore[no-untyped-def]
    call_clock(load(pool + _CLOCK), _CLOCK_MONOTONIC, timespec)
    return load(timespec) * 1_000_000_000 + load(timespec + 8)


@_inline
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


@_inline
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
    timespec = _two_words()
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
    timespec = _two_words()
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
    timespec = _two_words()
    end = _now(pool, timespec) + nanoseconds
    while load(cell) == seen and _now(pool, timespec) < end:
        call_0(load(pool + _YIELD))
    return load(cell)
