"""Shares the work of one large kernel among a few threads, where its compiled loops leave the GIL alone.

A kernel calls `in_parts`; the calling thread takes the first part and waits for the others. How many threads there are
is what `intra_op_parallelism_threads` and the machine allow (threads.py). Small work is never split: waking a thread
costs about 50 µs.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TYPE_CHECKING

from tenfold_core.blas_env import available_cores
from tenfold_kernels import threads

if TYPE_CHECKING:
    from collections.abc import Callable

#: More threads than this do not make memory any faster.
_MOST = 16

_lock = threading.Lock()
_pool: ThreadPoolExecutor | None = None


def in_parts(work: Callable[[int, int], None], total: int, least: int) -> None:
    """Calls `work(first, last)` for parts that cover range(total), each of at least `least`; blocks until all ended.

    `work` must not call `in_parts`, and must run compiled loops only: NumPy's error settings belong to the caller's
    thread. The first error of a part is raised once all have ended.
    """
    parts = min(total // max(least, 1), _width())
    if parts <= 1:
        if total > 0:
            work(0, total)
        return
    edges = [total * i // parts for i in range(parts + 1)]
    pool = _executor()
    others = [pool.submit(work, edges[i], edges[i + 1]) for i in range(1, parts)]
    try:
        work(edges[0], edges[1])
    finally:
        # Nobody may write to the caller's arrays after this returned.
        wait(others)
    for other in others:
        other.result()


def _width() -> int:
    return min(threads.intra_op_limit() or _MOST, available_cores(), _MOST)


def _executor() -> ThreadPoolExecutor:
    global _pool
    with _lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(max(1, min(available_cores(), _MOST) - 1), "tenfold-intra-op")
        return _pool
