"""The end of a process and of all that it has started, as a loss of power would have it."""

from __future__ import annotations

import contextlib

import psutil


def kill_tree(pid: int) -> None:
    """Kills the process and its descendants, in sessions of their own too, at once."""
    with contextlib.suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        for each in (process, *process.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess):
                each.kill()
