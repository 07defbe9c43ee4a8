"""One process at a time compiles a loop for Numba's cache on disk; the others wait, and find the machine code there.

Numba numbers a function's files by reading its index and writing it again. Two processes that do so at once, say two
tasks of a cluster on a new machine, may choose one number for two element types: then an index names machine code of
another type, for every process to come. Used by compiling.py; fusion/cache.py has a file for each type and needs none.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: Seconds to wait for another process, and between two looks. It takes LLVM about a second to compile a loop; a process
#: that was stopped meanwhile must not hold up the others for good.
_WAIT_SECONDS, _LOOK_SECONDS = 60.0, 0.02


@contextlib.contextmanager
def cache_lock(path: Path, wait_seconds: float = _WAIT_SECONDS) -> Iterator[bool]:
    """Holds the lock file at `path`, made if need be; gives whether it is held. Blocks, at most `wait_seconds`.

    Not held, and no error, after that time or where the file cannot be made: a lock is no reason not to compile. The
    file stays, because to remove it would give two processes a lock each.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError:
        yield False
        return
    try:
        yield _locked(descriptor, time.monotonic() + wait_seconds)
    finally:
        os.close(descriptor)  # and the lock with it


def _locked(descriptor: int, deadline: float) -> bool:
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                return False
            time.sleep(_LOOK_SECONDS)
        except OSError:  # a file system without locks
            return False
        else:
            return True
