"""How many threads one kernel may use in this process: what `intra_op_parallelism_threads` means here.

The number belongs to the process, as TensorFlow's thread pools do: each owner (a server) may ask for one, and the
smallest counts until its owner lets go. Large kernels share their work under it (chunks.py, parallel.py). The BLAS has
threads of its own until a product is built (`keep_blas_on_callers`). Used by tenfold_services/server.py and
services/worker/worker.py; what is read when NumPy is loaded is in tenfold_core.blas_env.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from tenfold_kernels import blas

if TYPE_CHECKING:
    from collections.abc import Hashable

#: Guards the names below.
_lock = threading.Lock()
#: Owner → the number it asked for; and the smallest of them, 0 where there is none.
_limits: dict[Hashable, int] = {}
_smallest = 0
#: What the BLAS had before the first owner asked; None until then.
_unlimited: int | None = None
#: What it has now, as far as we set it.
_current: int | None = None
#: Whether the BLAS computes on the thread that calls it, whatever the limits say.
_on_callers = False


def limit_blas_threads(owner: Hashable, count: int) -> None:
    """`owner` wants no more than `count` threads from now on; 0 takes back what it wanted.

    A few milliseconds when the number changes, else nothing. A BLAS that runs on OpenMP keeps a number for each calling
    thread and is not limited: set OMP_NUM_THREADS there.
    """
    global _smallest
    with _lock:
        if count > 0:
            _limits[owner] = count
        elif _limits.pop(owner, None) is None:
            return
        _smallest = min(_limits.values(), default=0)
        _apply()


def keep_blas_on_callers(yes: bool = True) -> None:
    """From now on the BLAS starts no threads: its products are cut by ours, which do not wait awake for each other.

    Only for a BLAS whose entries we can call (blas.py). A few milliseconds the first time, then nothing.
    """
    global _on_callers
    if _on_callers == yes:
        return
    with _lock:
        _on_callers = yes
        _apply()


def loaded_with() -> int:
    """The threads that the BLAS had before anybody asked for another number: the user's own choice; 0 if unknown."""
    return _unlimited or 0


def _apply() -> None:
    """Under the lock: gives the BLAS the number that now counts."""
    global _unlimited, _current
    if _unlimited is None:
        _unlimited = _current = blas_threads()
    wanted = min((_unlimited, *_limits.values(), *((1,) if _on_callers else ())))
    if wanted in (0, _current):
        return
    _set(wanted)
    _current = wanted


def intra_op_limit() -> int:
    """The smallest number of threads that any owner asked for; 0 when none asked. Never blocks."""
    return _smallest


def blas_threads() -> int:
    """The largest number of threads that a BLAS of this process uses; 0 when none is loaded."""
    if count := blas.threads():
        return count
    from threadpoolctl import ThreadpoolController

    libraries = ThreadpoolController().info()
    return max((int(info["num_threads"]) for info in libraries if info["user_api"] == "blas"), default=0)


def _set(count: int) -> None:
    if blas.set_threads(count):
        return
    # threadpoolctl lets one thread set the number, as long as that thread lives, and ignores the others silently.
    # Servers start and stop on many threads, so each change has a thread of its own.
    setter = threading.Thread(target=_set_by_threadpoolctl, args=(count,), name="tenfold-blas-threads")
    setter.start()
    setter.join()


def _set_by_threadpoolctl(count: int) -> None:
    from threadpoolctl import ThreadpoolController

    # A limiter restores the old number when it is left as a context; this one is never entered.
    ThreadpoolController().limit(limits=count, user_api="blas")
