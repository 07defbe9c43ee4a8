"""How many threads the BLAS uses in this process: what `intra_op_parallelism_threads` means here.

Large compiled kernels share their work under the same limit (parallel.py); everything else in a kernel runs on the
thread that called it. The number belongs to the process, as TensorFlow's thread
pools do: each owner (a server) may ask for one, and the smallest counts until its owner lets go. Used by
tenfold_services/server.py and worker.py; what is read when NumPy is loaded is in tenfold_core.blas_env.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable

#: Guards the three names below.
_lock = threading.Lock()
#: Owner → the number it asked for.
_limits: dict[Hashable, int] = {}
#: What the BLAS had before the first owner asked; None until then.
_unlimited: int | None = None
#: What it has now, as far as we set it.
_current: int | None = None


def limit_blas_threads(owner: Hashable, count: int) -> None:
    """`owner` wants no more than `count` threads from now on; 0 takes back what it wanted.

    A few milliseconds when the number changes, else nothing. A BLAS that runs on OpenMP keeps a number for each calling
    thread and is not limited: set OMP_NUM_THREADS there.
    """
    global _unlimited, _current
    with _lock:
        if count > 0:
            _limits[owner] = count
        elif _limits.pop(owner, None) is None:
            return
        if _unlimited is None:
            _unlimited = _current = blas_threads()
        wanted = min((_unlimited, *_limits.values()))
        if wanted in (0, _current):
            return
        # threadpoolctl lets one thread set the number, as long as that thread lives, and ignores the others silently.
        # Servers start and stop on many threads, so each change has a thread of its own.
        setter = threading.Thread(target=_set, args=(wanted,), name="tenfold-blas-threads")
        setter.start()
        setter.join()
        _current = wanted


def intra_op_limit() -> int:
    """The smallest number of threads that any owner asked for; 0 when none asked. Never blocks."""
    with _lock:
        return min(_limits.values(), default=0)


def blas_threads() -> int:
    """The largest number of threads that a BLAS of this process uses; 0 when none is loaded."""
    from threadpoolctl import ThreadpoolController

    libraries = ThreadpoolController().info()
    return max((int(info["num_threads"]) for info in libraries if info["user_api"] == "blas"), default=0)


def _set(count: int) -> None:
    from threadpoolctl import ThreadpoolController

    # A limiter restores the old number when it is left as a context; this one is never entered.
    ThreadpoolController().limit(limits=count, user_api="blas")
