"""Lets a process, this one or another, have only so many more files open: RLIMIT_NOFILE, which counts by number."""

from __future__ import annotations

import os
import resource
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def few_files(free: int = 0, pid: int | None = None) -> Iterator[int]:
    """Only `free` more within the block; the limit that this comes to. `pid` is a process of the same user."""
    who = os.getpid() if pid is None else pid
    before = resource.prlimit(who, resource.RLIMIT_NOFILE)
    taken = {int(name) for name in os.listdir(f"/proc/{who}/fd")}
    if pid is None:
        # of the listing itself, which has been closed
        taken = {number for number in taken if _is_open(number)}
    limit = 0
    while limit - len([number for number in taken if number < limit]) < free:
        limit += 1
    while limit in taken:
        limit += 1
    resource.prlimit(who, resource.RLIMIT_NOFILE, (limit, before[1]))
    try:
        yield limit
    finally:
        resource.prlimit(who, resource.RLIMIT_NOFILE, before)


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True
