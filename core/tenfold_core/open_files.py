"""How many files, sockets among them, this process may have open: raised at its start, and told where it is too low.

Called by a task (tenfold_services/server.py) and the control service (tenfold_control_api/main.py). What runs into the
limit asks here for the words: the listeners, links (tenfold_link), `tenfold doctor`. In the system's terms: the limit
is RLIMIT_NOFILE, running into it EMFILE, and ENFILE where the whole machine has no more.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import resource
import time
from typing import TYPE_CHECKING

from tenfold_core import errors

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

_log = logging.getLogger(__name__)

#: More is not asked for: what goes through all numbers up to the limit must come to an end.
ENOUGH = 1 << 20
#: What a process has open for itself: its log, libraries while they load, event loops, a database, checkpoints.
_OWN = 256
#: Sockets that a task has with each other one: gRPC and links both ways, and links of steps on callers' threads.
_EACH_TASK = 16
#: Connections of a task at the control service: its lease, its watch of the spec, the reports of its program.
_EACH_LEASE = 4
#: Seconds between two lines of the log about connections that were sent away.
_TELL_EVERY_S = 5.0
#: What a peer is told that is sent away.
TOLD = "it may open no more files and sockets (RLIMIT_NOFILE): ask again later, and see its log"
#: How it is raised.
REMEDY = "ulimit -n 65536 before the start; --ulimit nofile=65536 of docker, LimitNOFILE=65536 of systemd"


def limit() -> int | None:
    """How many files this process may have open now; None: as many as it likes."""
    return _shown(resource.getrlimit(resource.RLIMIT_NOFILE)[0])


def attainable() -> int | None:
    """How many it may have once `raise_limit` has been called."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _shown(_raised(soft, hard))


def raise_limit() -> int | None:
    """Takes as many as this process may without more rights, and says how many that is; None: no limit. Never
    raises."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _raised(soft, hard)
    if wanted != soft:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError) as error:  # a sandbox may forbid it
            _log.info("The number of open files stays at %d: %s", soft, error)
    return limit()


def needed_by_task(tasks: int) -> int:
    """What a task of a cluster of so many needs, sessions of some dozens of clients included."""
    return _OWN + _EACH_TASK * tasks


def needed_by_service(tasks: int) -> int:
    """What a control service of so many tasks needs."""
    return _OWN + _EACH_LEASE * tasks


class Shortage:
    """Warns in the log where the limit is below what is needed: once for each larger need. Any thread."""

    def __init__(self, who: str) -> None:
        self._who = who
        self._told = 0

    def look(self, needed: int, what: str) -> None:
        """`what`: for what it is needed, "a cluster of 400 tasks"."""
        allowed = limit()
        if allowed is None or needed <= max(allowed, self._told):
            return
        self._told = needed
        _log.warning(
            "%s may have %d files and sockets open, and %s needs about %d: connections will be refused. %s.",
            self._who,
            allowed,
            what,
            needed,
            REMEDY,
        )


class Reserve:
    """A descriptor that is kept for when there is no other one: in its place a listener takes those who wait, tells
    them why and sends them away, where they would otherwise wait without end. One thread."""

    def __init__(self, who: str, close: Callable[[socket.socket], None] | None = None) -> None:
        """`close` closes what was accepted, where that might block."""
        self._who, self._close = who, close or _close
        self._kept = -1
        self._told_at = -_TELL_EVERY_S
        self._keep()

    def turn_away(self, listening: socket.socket, say: Callable[[socket.socket], None]) -> None:
        """Takes a connection, lets `say(sock)` write what it likes without blocking, and closes it. Raises
        BlockingIOError where nobody waits, OSError where the reserve itself is gone: other threads open files, too."""
        self._keep()
        if self._kept < 0:
            raise out_of_files()
        os.close(self._kept)
        self._kept = -1
        try:
            sock, _ = listening.accept()
            try:
                with contextlib.suppress(OSError):
                    sock.setblocking(False)
                    say(sock)
            finally:
                self._close(sock)
        finally:
            self._keep()
        self.tell()

    def sent_away(self, listening: socket.socket, error: OSError, say: Callable[[socket.socket], None]) -> bool | None:
        """What to do after an `error` of accept: True, somebody was sent away, go on; False, nobody waits; None, the
        listener must rest for a moment, because the system would tell of the same connection again and again."""
        if is_out_of_files(error):
            try:
                self.turn_away(listening, say)
                return True
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return False
            except OSError as still:
                error = still
        _log.warning("%s cannot accept a connection: %s", self._who, words(error))
        return None

    def tell(self) -> None:
        """Says in the log that somebody was sent away; every few seconds at most."""
        if time.monotonic() - self._told_at >= _TELL_EVERY_S:
            self._told_at = time.monotonic()
            _log.warning("%s sends connections away: %s.", self._who, words(out_of_files()))

    def close(self) -> None:
        """Gives it back."""
        if self._kept >= 0:
            os.close(self._kept)
            self._kept = -1

    def _keep(self) -> None:
        if self._kept < 0:
            with contextlib.suppress(OSError):
                self._kept = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)


def _close(sock: socket.socket) -> None:
    sock.close()


def is_out_of_files(error: BaseException) -> bool:
    """Whether `error` came because no more files may be opened."""
    return isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE)


def out_of_files() -> OSError:
    """What the system raises where no more files may be opened; for what it does not say by an error."""
    return OSError(errno.EMFILE, "Too many open files")


def words(error: BaseException) -> str:
    """What `error` says, with the limit and the way out where it came of open files."""
    if not is_out_of_files(error):
        return str(error)
    assert isinstance(error, OSError)
    if error.errno == errno.ENFILE:
        return "this machine has as many files and sockets open as it may (ENFILE): raise fs.file-max there"
    return (
        f"this process has all {limit()} files and sockets open that it may (EMFILE, RLIMIT_NOFILE): "
        f"{REMEDY}; or fewer tasks and clients at once"
    )


def exhausted(error: BaseException, what: str) -> errors.ResourceExhaustedError:
    """The error for `what` could not be done because of `error`, which is_out_of_files."""
    return errors.ResourceExhaustedError(None, None, f"{what}: {words(error)}.")


def _raised(soft: int, hard: int) -> int:
    if soft == resource.RLIM_INFINITY:
        return soft
    most = ENOUGH if hard == resource.RLIM_INFINITY else min(hard, ENOUGH)
    return max(soft, most)


def _shown(found: int) -> int | None:
    return None if found == resource.RLIM_INFINITY else found
