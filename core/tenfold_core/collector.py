"""Python's garbage collector, held back while a large graph is worked on.

A pass makes hundreds of objects a node and keeps them, and none of them is garbage. The collector goes through all that
there is each time the heap has grown by a quarter: half of the time of a first step with 20,000 nodes. Used by the
pool for large graphs (services: worker/step_pool.py) and by a session that ships one.
"""

from __future__ import annotations

import contextlib
import gc
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

#: How often a process that serves collects: young objects after 5,000 new ones, all after 2,000 times that.
_RARELY = (5000, 20, 100)

_lock = threading.Lock()
#: Sections under way, in any thread.
_held = 0
#: Whether the collector was on before the first of them.
_was_on = False


def settle() -> None:
    """For a process that has loaded all it needs and begins to serve: what is there now is not gone through again, and
    what comes is gone through less often. A pass over a control service's 100 MB held every request up for 100 ms, so
    none is made here either: of what imports leave, a hundredth is garbage, and it stays.
    """
    gc.freeze()
    gc.set_threshold(*_RARELY)


@contextlib.contextmanager
def held_back() -> Iterator[None]:
    """No automatic collection in this process until the section ends; sections may overlap. A program's own
    `gc.collect()` still works, and a collector that the program had turned off stays off.
    """
    global _held, _was_on
    with _lock:
        if not _held:
            _was_on = gc.isenabled()
            gc.disable()
        _held += 1
    try:
        yield
    finally:
        with _lock:
            _held -= 1
            if not _held and _was_on:
                gc.enable()
