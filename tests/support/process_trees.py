"""The end of a process and of all that it has started, as a loss of power would have it."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import psutil

from support.awaited import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterable


def kill_tree(pid: int) -> None:
    """Kills the process and its descendants, in sessions of their own too, at once."""
    with contextlib.suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        for each in (process, *process.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess):
                each.kill()


def left_alive(pids: Iterable[int]) -> list[int]:
    """Those that have not ended when all have had their time. A zombie has ended."""
    processes = []
    for pid in pids:
        with contextlib.suppress(psutil.NoSuchProcess):
            processes.append(psutil.Process(pid))
    left = []
    for each in psutil.wait_procs(processes, timeout=PATIENCE)[1]:
        with contextlib.suppress(psutil.NoSuchProcess):
            if each.status() != psutil.STATUS_ZOMBIE:
                left.append(each.pid)
    return left
