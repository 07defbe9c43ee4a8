"""The database of `tenfold up`: one of them at a time has it, and learns of the one before. Used by up.py.

Beside FILE lies FILE.up, locked as long as its `tenfold up` lives; the kernel gives the lock back however that ends. It
says who that is, and afterwards who it was. SQLite's locks, and the control service's, are on other files.
"""

from __future__ import annotations

import fcntl
import json
import os
import threading
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tenfold_core.user_folders import up_database

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

#: Seconds for what a killed `tenfold up` left to end: as long as child.py lets it, and a little more.
_LEFTOVERS_S = 20.0
#: Bytes of the file that are read.
_MOST = 4096


class DatabaseError(RuntimeError):
    """The file cannot be the registry's: another `tenfold up` uses it, or the system refuses."""


@dataclass(frozen=True, slots=True)
class Holder:
    """A `tenfold up`: its process, the moment (wall-clock seconds) since which the database was its, where its control
    service listens, and whether it has ended in order."""

    pid: int
    since: float
    url: str = ""
    ended: bool = False

    def __str__(self) -> str:
        return f"`tenfold up` of process {self.pid}" + (f" ({self.url})" if self.url else "")


def read(text: str) -> Holder | None:
    """What the file says; None for one that says nothing, or what nobody here wrote."""
    try:
        found = json.loads(text)
        return Holder(int(found["pid"]), float(found["since"]), str(found["url"]), bool(found["ended"]))
    except (ValueError, TypeError, KeyError):
        return None


class HeldDatabase:
    """The SQLite file, in a `with` block this process's alone. The file and its folder are made for this user alone."""

    def __init__(self, file: str | None, say: Callable[[str], None]) -> None:
        """`file`: None for the user's own. `say` is told of a wait."""
        self.file = Path(os.path.abspath(file or up_database()))
        self._own, self._say = file is None, say
        #: The one before; None for the first one.
        self.former: Holder | None = None
        self._lock = -1
        self._now = Holder(os.getpid(), time.time())

    def __enter__(self) -> HeldDatabase:
        """Waits until the processes of a killed `tenfold up` have ended. Raises DatabaseError."""
        try:
            self.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if self._own:
                self.file.parent.chmod(0o700)
            # the database first: a file that this user may not write is said so by its own name
            os.close(os.open(self.file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            self._lock = os.open(f"{self.file}.up", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            self.former = read(os.pread(self._lock, _MOST, 0).decode("utf-8", "replace"))
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # only now it is certain that nobody writes it
            self.former = read(os.pread(self._lock, _MOST, 0).decode("utf-8", "replace"))
            if self.former is not None:
                if not self.former.ended:
                    self._wait_for_leftovers(self.former)
                self._now = replace(self._now, since=self.former.since)
            self._write(self._now)
        except OSError as error:
            self._close()
            taken = isinstance(error, BlockingIOError)
            why = f"{self.former or 'another `tenfold up`'} uses it" if taken else str(error.strerror)
            raise DatabaseError(f"{self.file}: {why}") from None
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        try:
            # one that never served leaves the word of the one before
            told = replace(self._now, ended=True) if self._now.url else self.former
            self._write(told)
        finally:
            self._close()

    def serves(self, url: str) -> None:
        """From now on the control service of this process answers there."""
        self._now = replace(self._now, since=time.time(), url=url)
        self._write(self._now)

    def _write(self, holder: Holder | None) -> None:
        text = b"" if holder is None else json.dumps(asdict(holder)).encode() + b"\n"
        os.pwrite(self._lock, text, 0)
        os.ftruncate(self._lock, len(text))

    def _close(self) -> None:
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _wait_for_leftovers(self, former: Holder) -> None:
        """Returns once the control service of a killed one has given the database back: it stops its runs first."""
        try:
            lock = os.open(f"{self.file}.lock", os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pass
        else:
            os.close(lock)
            return
        self._say(f"The last {former} was killed; its processes are still ending.")

        def wait() -> None:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX)
                free.set()
            finally:
                os.close(lock)

        free = threading.Event()
        threading.Thread(target=wait, name="wait-for-leftovers", daemon=True).start()
        if not free.wait(_LEFTOVERS_S):
            raise DatabaseError(f"{self.file}: a control service still uses it")
