"""Shares the work of one large kernel among a few threads, where its compiled loops leave the GIL alone.

A kernel calls `in_parts`; parts are taken from one counter, by the calling thread too, which never waits for a part
that no thread has begun. How many threads there are is what `intra_op_parallelism_threads` and the machine allow
(chunks.py, which does the same for compiled functions, without the GIL). Small work is never split: waking a thread
costs 50 µs.
"""

from __future__ import annotations

import contextvars
import itertools
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TYPE_CHECKING

from tenfold_core.blas_env import available_cores
from tenfold_kernels import chunks
from tenfold_kernels.denormals import flush_on_this_thread

if TYPE_CHECKING:
    from collections.abc import Callable

#: More threads than this do not make memory any faster.
_MOST = 16
#: Parts for each thread: one that lost its core leaves the rest to the others.
_PARTS_EACH = 3

_lock = threading.Lock()
_pool: ThreadPoolExecutor | None = None


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

    pool = _executor()
    # In the caller's context: what a helper allocates comes from the memory that the caller's steps keep (memory.py).
    others = [pool.submit(contextvars.copy_context().run, take) for _ in range(min(width, parts) - 1)]
    try:
        take()
    finally:
        # Nobody may write to the caller's arrays after this returned; who has not begun by now need not begin.
        begun = [other for other in others if not other.cancel()]
        wait(begun)
    for other in begun:
        other.result()


def _width() -> int:
    return chunks.width()


def _executor() -> ThreadPoolExecutor:
    global _pool
    with _lock:
        if _pool is None:
            count = max(1, min(available_cores(), _MOST) - 1)
            _pool = ThreadPoolExecutor(count, "tenfold-intra-op", initializer=flush_on_this_thread)
        return _pool
