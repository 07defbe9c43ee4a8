"""A folder for files of one process, among the system's temporary ones, that no process leaves behind for ever.

The folder is locked as long as its process lives; the kernel gives the lock back however that ends. Each new folder
first removes those of its kind that nobody holds: what SIGKILL left goes with the next start.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_PREFIX = "tenfold-"


@contextmanager
def scratch_folder(kind: str, parent: str | None = None) -> Iterator[Path]:
    """A folder `tenfold-KIND-…` of this process, removed on leaving; in `parent`, or among the system's
    temporary files. Raises OSError."""
    remove_abandoned(kind, parent)
    path, lock = _locked(kind, parent)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        os.close(lock)


def remove_abandoned(kind: str, parent: str | None = None) -> None:
    """Removes the folders of this user and kind whose processes are gone."""
    for path in Path(parent or tempfile.gettempdir()).glob(f"{_PREFIX}{kind}-*"):
        with contextlib.suppress(OSError):  # another process removes it, too
            if path.is_symlink() or path.stat().st_uid != os.getuid():
                continue
            lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(lock)


def _locked(kind: str, parent: str | None) -> tuple[Path, int]:
    while True:
        path = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{kind}-", dir=parent))
        lock = -1
        try:
            lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if path.is_dir():
                return path, lock
        except (BlockingIOError, FileNotFoundError):
            pass  # another process took it for abandoned before it was locked
        if lock >= 0:
            os.close(lock)
