"""Works through the chunks of one large kernel, with helper threads that take from the same counter if they get a core.

`run` is for compiled chunk functions, and needs no GIL: the caller does chunks itself from the first moment, never
waits for one that nobody has begun, and sleeps while a helper is in the middle of one. Helpers are native threads that
sleep between jobs, fewer than `intra_op_parallelism_threads` and the cores. On a busy machine a helper loses its core
within a chunk: nobody shares where more want to run than there are cores, and what it brings is learnt (`Payoff`).
Loops: cpu/_compiled/chunk_loops.py; the same for Python functions: parallel.py.

    address = compile_callback(function)  # function(arguments: int64, chunk: int64), by cpu/_compiled/objects.py
    run(address, arguments, count)        # chunks of 50 µs and more; arguments is a NumPy array of int64
"""

from __future__ import annotations

import atexit
import ctypes
import logging
import os
import threading
from collections import defaultdict
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core.blas_env import available_cores
from tenfold_kernels import threads
from tenfold_kernels.crowd import Crowd
from tenfold_kernels.denormals import flush_on_this_thread

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_kernels.arrays import Array

_log = logging.getLogger(__name__)

#: Seconds before loading begins, so that it does not compete with a first step, and the most that it may take.
_CALM_SECONDS, _LOAD_SECONDS = 0.5, 60.0
#: More threads than this do not make one kernel any faster.
_MOST = 16
#: Nanoseconds. A helper looks so long for the next job, yielding its core, before it sleeps: products of one step
#: follow each other within it. The caller looks so long for the last helper.
HELPER_SPINS, _CALLER_SPINS = 300_000, 20_000
#: Bytes for a mutex or a condition variable of any C library.
_LOCK_BYTES = 128
#: Nanoseconds that it costs the caller to wake helpers.
_WAKING = 5_000
#: After jobs that helpers made slower, 1, 2, 4, … up to this many are done alone.
_MOST_ALONE = 256


class Payoff:
    """Whether to share the next job of one kind, learnt from those before. For the pool's owner, one at a time."""

    def __init__(self) -> None:
        #: Nanoseconds that helpers saved lately; below 0 they cost.
        self._gain = 0.0
        #: So many of the next jobs are done alone, and so many after the next loss.
        self._alone, self._next_alone = 0, 1

    def is_worth_it(self) -> bool:
        """Asked once before each job."""
        if self._alone:
            self._alone -= 1
            return False
        return True

    def note(self, own: int, helped: int, worked: int, waited: int) -> None:
        """A job's chunks done by the caller and by helpers; nanoseconds that the caller worked and then waited."""
        each = worked / max(own, 1)
        self._gain = 0.75 * self._gain + min(helped * each, worked) - waited - _WAKING
        if self._gain >= 0:
            self._next_alone = max(1, self._next_alone >> 1)
            return
        self._gain = 0.0
        self._alone = self._next_alone
        self._next_alone = min(self._next_alone << 1, _MOST_ALONE)


#: The memory of every pool: its helpers never end, so it must not be freed.
_kept: list[Any] = []


class _Pool:
    """The helpers of this process and the memory that they and their callers share. Never ends."""

    def __init__(self, helpers: int) -> None:
        from tenfold_kernels.cpu._compiled import chunk_loops
        from tenfold_kernels.cpu._compiled.chunk_loops import CELLS, Cell
        from tenfold_kernels.cpu._compiled.loop_spec import LoopSpec
        from tenfold_kernels.cpu._compiled.objects import compile_callback, compile_spec

        #: By function and about how many chunks: small jobs that do not pay say nothing of large ones.
        self._payoffs: defaultdict[tuple[int, int], Payoff] = defaultdict(Payoff)
        self._share = compile_spec(LoopSpec(chunk_loops.share, "n n n n", np.dtype(np.int64), np.dtype(np.int64), "n"))
        #: (address of `cells`, …): chunk_loops.await_change.
        self.await_change = compile_spec(
            LoopSpec(chunk_loops.await_change, "n n n n n", np.dtype(np.int64), np.dtype(np.int64), "n")
        )
        life = compile_callback(chunk_loops.helper, "void(int64)")
        library = ctypes.CDLL(None, use_errno=True)
        self._locks = ctypes.create_string_buffer(3 * _LOCK_BYTES)
        cells = self.cells = np.zeros(CELLS, np.int64)
        self.address = address_of(cells)
        mutex = ctypes.addressof(self._locks)
        for i, cell in enumerate((Cell.MUTEX, Cell.CHANGED, Cell.LEFT)):
            cells[cell] = mutex + i * _LOCK_BYTES
        library.pthread_mutex_init(ctypes.c_void_p(mutex), None)
        for condition in (Cell.CHANGED, Cell.LEFT):
            library.pthread_cond_init(ctypes.c_void_p(int(cells[condition])), None)
        for cell, name in (
            (Cell.LOCK_FN, "pthread_mutex_lock"),
            (Cell.UNLOCK_FN, "pthread_mutex_unlock"),
            (Cell.WAIT_FN, "pthread_cond_wait"),
            (Cell.WAKE_ALL_FN, "pthread_cond_broadcast"),
            (Cell.WAKE_FN, "pthread_cond_signal"),
            (Cell.CLOCK_FN, "clock_gettime"),
            (Cell.YIELD_FN, "sched_yield"),
        ):
            cells[cell] = ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
        cells[Cell.HELPER_SPINS], cells[Cell.CALLER_SPINS] = HELPER_SPINS, _CALLER_SPINS
        _kept.append((self._locks, cells))
        self.helpers = 0
        for _ in range(helpers):
            thread = ctypes.c_size_t()
            wrong = library.pthread_create(
                ctypes.byref(thread), None, ctypes.c_void_p(life), ctypes.c_void_p(self.address)
            )
            if wrong:  # no more threads for this user: with those that there are
                break
            library.pthread_detach(thread)
            self.helpers += 1
        self._helpers, self._claimed = int(Cell.MOST_HELPERS), int(Cell.CLAIMED)
        self._results = slice(int(Cell.OWN), int(Cell.WAITED) + 1)

    def is_worth_it(self, function: int, count: int) -> bool:
        """Whether helpers were of use in such jobs lately. Asked once before each."""
        return self._payoffs[function, count.bit_length()].is_worth_it()

    def share(self, function: int, arguments: int, count: int, helpers: int) -> bool:
        """Whether all chunks were done; False when another caller has the helpers."""
        cells = self.cells
        cells[self._helpers] = helpers
        helped = self._share(self.address, function, arguments, count)
        if helped < 0:
            return False
        own, worked, waited = cells[self._results].tolist()
        cells[self._claimed] = 0
        self._payoffs[function, count.bit_length()].note(own, helped, worked, waited)
        return True


class _Starter:
    """Starts the pool, and loads what its callers need, beside the steps: Numba takes half a second to import."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._works: list[Callable[[], None]] = [self._start]
        self._thread: threading.Thread | None = None
        #: Whether the thread will still look for work. Under the lock.
        self._is_running = False
        self._closed = threading.Event()
        #: None until the pool works, and for ever where there can be none.
        self.pool: _Pool | None = None

    def begin(self, work: Callable[[], None] | None = None) -> None:
        """Has the pool started, and then `work` done, on a thread that waits a moment for first steps. Never blocks."""
        if self._thread is not None and work is None:
            return
        with self._lock:
            if work is not None:
                self._works.append(work)
            if self._works and not self._is_running:
                if self._thread is None:
                    atexit.register(self.close)
                self._is_running = True
                self._thread = threading.Thread(target=self._run, name="tenfold-chunks", daemon=True)
                self._thread.start()

    def join(self, timeout: float) -> None:
        """Waits until all that was asked for is loaded, `timeout` seconds at most."""
        if self._thread is not None:
            self._thread.join(timeout)

    def close(self) -> None:
        """Loads nothing more. Waits for what is under way: a process that ends inside LLVM crashes."""
        self._closed.set()
        self.join(_LOAD_SECONDS)

    def _run(self) -> None:
        flush_on_this_thread()  # helpers have the mode of the thread that starts them
        self._closed.wait(_CALM_SECONDS)
        while not self._closed.is_set():
            with self._lock:
                if not self._works:
                    self._is_running = False
                    return
                work = self._works.pop(0)
            try:
                work()
            except Exception:  # products go on without helpers: that is slower, and no reason for a step to fail
                _log.exception("Helpers for large kernels could not be started; callers go on alone.")

    def _start(self) -> None:
        helpers = min(available_cores(), _MOST) - 1
        if helpers > 0 and os.name == "posix":
            self.pool = _Pool(helpers)


def begin_loading(work: Callable[[], None]) -> None:
    """Has `work`, which loads machine code for chunks, done beside the steps. Never blocks."""
    _starter.begin(work)


#: Seconds for which the number of cores holds.
_CORES_HOLD = 1e-3


class _Cores:
    """The cores that this process may run on, by a look that is at most a moment old."""

    def __init__(self) -> None:
        self._read_at, self._count = -1.0, 1

    def count(self, now: float) -> int:
        """At `now` (perf_counter)."""
        if now - self._read_at >= _CORES_HOLD:
            self._read_at, self._count = now, available_cores()
        return self._count


_starter = _Starter()
_crowd, _cores = Crowd(), _Cores()


def _forget() -> None:
    """In a forked child, which has none of its parent's threads."""
    global _starter
    _starter = _Starter()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def width() -> int:
    """How many threads, the caller's among them, one kernel may use."""
    cores = _cores.count(perf_counter())
    return min(threads.intra_op_limit() or _MOST, threads.loaded_with() or _MOST, cores, _MOST)


def shared_pool(function: int, count: int) -> _Pool | None:
    """The helpers, if so many chunks of `function` are to be shared with them now; None when the caller should do them
    alone. Never blocks."""
    pool = _starter.pool
    if pool is None:
        _starter.begin()
        return None
    if not pool.helpers or width() < 2 or is_crowded():
        return None
    return pool if pool.is_worth_it(function, count) else None


def await_change(cell: int, seen: int, nanoseconds: int, told: int = 0) -> None:
    """Looks so long, without the GIL and yielding the core, whether the int64 at an address holds something else.

    Counts in the one at `told` once the GIL is free. Returns at once where there is no machine code for it yet.
    """
    pool = _starter.pool
    if pool is not None:
        pool.await_change(pool.address, cell, seen, nanoseconds, told)


def is_crowded() -> bool:
    """Whether more threads of this machine want to run than it has cores: then help comes late."""
    return _crowd.is_crowded(perf_counter())


def run(function: int, arguments: Array, count: int) -> None:
    """Calls the C function at address `function` with (address of `arguments`, chunk) for each chunk below `count`.

    Blocks until all have returned, without the GIL. Chunks run in any order and beside each other.
    """
    pool = shared_pool(function, count) if count > 1 else None
    address = address_of(arguments)
    if pool is not None and pool.share(function, address, count, width() - 1):
        return
    call = _PLAIN(function)
    for chunk in range(count):
        call(address, chunk)


_PLAIN: Callable[[int], Any] = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64)


def address_of(array: Array) -> int:
    """Where its memory begins."""
    return int(array.__array_interface__["data"][0])
