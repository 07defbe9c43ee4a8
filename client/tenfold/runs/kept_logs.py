"""What the tasks of a run by hand wrote, kept with the user's state for `tenfold logs`, until the run is deleted.

Written by `tenfold run --control`; read by a control service of the same user and machine (runs/supervisors.py there).
A folder for each run; the newest KEPT stay, and those that are being written.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tenfold.runs.task_logs import SEGMENTS, TaskLogs
from tenfold_core.user_folders import run_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: Runs whose logs are kept.
KEPT = 20


@contextmanager
def kept_logs(run: str, task_bytes: int) -> Iterator[TaskLogs]:
    """The logs of that run, `task_bytes` at most for each task. Removes those of old runs. Raises OSError."""
    folder = run_folder(run)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _forget_old(folder.parent)
        with TaskLogs(folder / "logs", segment_bytes=max(1, task_bytes // SEGMENTS)) as logs:
            yield logs
    finally:
        os.close(lock)


def _forget_old(folder: Path) -> None:
    for path in sorted(folder.iterdir(), key=lambda each: each.stat().st_mtime, reverse=True)[KEPT:]:
        with contextlib.suppress(OSError):  # another process writes it, or removes it, too
            lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(lock)
