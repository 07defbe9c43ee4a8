"""Threads that work beside steps hold the interpreter in short turns.

A thread that imports or groups is made to give up the interpreter only after the switch interval, 5 ms as Python comes:
each of a step's kernels that lets go of it for a millisecond would wait so long to go on. While such a thread works the
interval is a tenth. Used by cpu/_compiled/loading.py and fusion/compiler.py.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Seconds of a turn.
TURN_S = 0.0005

_lock = threading.Lock()
#: How many threads are in a `short_turns` now, and the interval that the first of them found. Guarded by _lock.
_inside = 0
_usual = 0.0


@contextlib.contextmanager
def short_turns() -> Iterator[None]:
    """Short turns for all threads of this process until the last one has left. An interval that is shorter already, or
    that somebody sets meanwhile, stays."""
    global _inside, _usual
    with _lock:
        if not _inside:
            _usual = sys.getswitchinterval()
            if _usual > TURN_S:
                sys.setswitchinterval(TURN_S)
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            # read back as it was set, but for the microsecond that Python keeps it in
            if not _inside and _usual > TURN_S and abs(sys.getswitchinterval() - TURN_S) < 1e-6:
                sys.setswitchinterval(_usual)
