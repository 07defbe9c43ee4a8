"""What an engine or a run has left on this machine: processes that still have to do with a folder."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import psutil

from support.task_processes import PATIENCE

if TYPE_CHECKING:
    from pathlib import Path


def left_over(folder: Path, *, seconds: float = PATIENCE) -> list[str]:
    """Command lines of processes that are in `folder` or name it, besides this one and those that it descends from; of
    those that are left when all have had `seconds`."""
    ours = {os.getpid(), *(each.pid for each in psutil.Process().parents())}
    end = time.monotonic() + seconds
    while found := [line for pid, line in _of(str(folder)) if pid not in ours]:
        if time.monotonic() > end:
            return found
        time.sleep(0.1)
    return []


def _of(folder: str) -> list[tuple[int, str]]:
    found = []
    for process in psutil.process_iter():
        try:
            words = process.cmdline()
            inside = f"{process.cwd()}/".startswith(f"{folder}/")
            if (inside or any(folder in word for word in words)) and process.status() != psutil.STATUS_ZOMBIE:
                found.append((process.pid, " ".join(words) or process.name()))
        except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
            continue
    return found
