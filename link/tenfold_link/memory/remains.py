"""Memory of closed arenas that peers still map: it stays counted until they have let go of it.

A block that a peer holds when its link ends stays the peer's, and the file with it. Whether it is still mapped is the
system's to say: a lease for writing (F_SETLEASE) is granted on a file that nobody else has open, and a mapping keeps it
open. So a closed arena's file is kept here, its free part punched out, and looked at from time to time: by prefault.py,
and by charges.py where memory gets scarce. Where the system grants no leases, memory counts as free once its link ends.
"""

from __future__ import annotations

import fcntl
import os
import threading
from errno import EAGAIN
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable


class _Rest(NamedTuple):
    """Of one arena."""

    fd: int
    give: Callable[[int], None]
    nbytes: int


class Remains:
    """The files that were left. Thread-safe; never blocks for long."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rests: list[_Rest] = []

    def __len__(self) -> int:
        return len(self._rests)

    def leave(self, fd: int, nbytes: int, give: Callable[[int], None]) -> None:
        """`nbytes` of the file are held by the peer. Takes over `fd`, which was opened by a name to write: a file that
        was not opened so is never granted. Calls `give(nbytes)` once they are not held any more, maybe now."""
        rest = _Rest(fd, give, nbytes)
        if nbytes and _is_open_elsewhere(fd):
            with self._lock:
                self._rests.append(rest)
        else:
            _forget(rest)

    def sweep(self) -> None:
        """Gives back what no peer holds any more."""
        with self._lock:
            rests, self._rests = self._rests, []
        for rest in rests:
            if _is_open_elsewhere(rest.fd):
                with self._lock:
                    self._rests.append(rest)
            else:
                _forget(rest)


def _forget(rest: _Rest) -> None:
    os.close(rest.fd)
    rest.give(rest.nbytes)


def _is_open_elsewhere(fd: int) -> bool:
    """Whether another open file than this one, or a mapping of it, has the file. False where the system cannot say."""
    try:
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    except OSError as error:
        return error.errno == EAGAIN
    fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    return False


#: Of this process.
REMAINS = Remains()
