"""What the programs of a run have started and left: processes that went to sessions and parents of their own are ended,
too. Used by supervise.py.

A program that forks twice with `setsid` is in nobody's group and is nobody's child. Linux makes the nearest ancestor
that asks for it (PR_SET_CHILD_SUBREAPER) the parent of such orphans, so whatever descends from a program is a
descendant of this process. Elsewhere they are not seen, and groups are all that is ended (cli/children.py).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

_PR_SET_CHILD_SUBREAPER = 36
#: Seconds between two looks for orphans that have ended by themselves; nobody tells of them.
_LOOK_S = 2.0
#: Seconds for all of the descent to be gone, and between two looks meanwhile.
_END_S, _AGAIN_S = 10.0, 0.01
#: How often processes are stopped before they are killed, until no new one is seen: a stopped one starts no other.
_ROUNDS = 50


class Descent:
    """The descendants of this process. One for a process, which has no children but the programs of a run."""

    def __init__(self, own: Callable[[], Collection[int]]) -> None:
        """`own` gives the children that somebody else waits for. From now on orphans come here."""
        self._own = own
        self._over = threading.Event()
        self._lock = threading.Lock()
        self.adopts = _adopt()
        #: Orphans that had ended at the last look.
        self._ended: set[int] = set()
        self._thread = threading.Thread(target=self._look_for_ever, name="orphans", daemon=True)
        if self.adopts:
            self._thread.start()

    def end(self, seconds: float = _END_S) -> int:
        """Kills all that descends from this process, but for `own` and what descends from these. Blocks until it is
        gone, `seconds` at most; returns how many processes there were."""
        if not self.adopts:
            return 0
        with self._lock:
            deadline = time.monotonic() + seconds
            found: set[int] = set()
            while (living := self._living()) and time.monotonic() < deadline:
                found |= living
                for _ in range(_ROUNDS):
                    _signal(living, signal.SIGSTOP)
                    if not (more := self._living() - living):
                        break
                    living |= more
                found |= living
                _signal(living, signal.SIGKILL)
                self._reap()
                if self._living():
                    self._over.wait(_AGAIN_S)
            self._reap()
            return len(found)

    def close(self) -> None:
        """Ends the looks. Bounded."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join(_END_S)

    def _living(self) -> set[int]:
        """The descendants that run."""
        children: dict[int, list[int]] = {}
        states: dict[int, str] = {}
        for pid, parent, state in _processes():
            children.setdefault(parent, []).append(pid)
            states[pid] = state
        kept = set(self._own())
        found: set[int] = set()
        ahead = [pid for pid in children.get(os.getpid(), ()) if pid not in kept]
        while ahead:
            pid = ahead.pop()
            ahead += children.get(pid, ())
            if states[pid] not in "ZX":
                found.add(pid)
        return found

    def _reap(self) -> set[int]:
        """Takes leave of orphans that have ended, once two looks have seen it: a child of somebody else's is taken by
        its own waiter long before. Returns those that one look has seen."""
        own, me = set(self._own()), os.getpid()
        dead = {pid for pid, parent, state in _processes() if parent == me and state == "Z" and pid not in own}
        for pid in dead & self._ended:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        self._ended = dead - self._ended
        return self._ended

    def _look_for_ever(self) -> None:
        while not self._over.wait(_LOOK_S):
            with self._lock:
                self._reap()


def _adopt() -> bool:
    """Makes this process the parent of its orphaned descendants; whether it can be."""
    if not sys.platform.startswith("linux"):
        return False
    library = ctypes.CDLL(None, use_errno=True)
    return int(library.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)) == 0


def _signal(pids: Collection[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _processes() -> list[tuple[int, int, str]]:
    """(pid, parent, state) of every process that can be seen."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdecimal():
            try:
                with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                    # the name of the program stands in parentheses and may hold anything
                    state, parent = file.read().rpartition(")")[2].split()[:2]
            except (OSError, ValueError):
                continue
            found.append((int(name), int(parent), state))
    return found
