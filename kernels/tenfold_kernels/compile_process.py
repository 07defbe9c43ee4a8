"""Machine code made by a process of its own and left on disk, for this one to load.

Here LLVM would hold up every step: much of its work holds the interpreter's lock. Started by cpu/_compiled/loading.py
and fusion/compiler.py; at the other end a module's `main` goes through `given_work`.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_log = logging.getLogger(__name__)

#: Seconds that a process may compile, and between two looks at whether it still should.
PROCESS_SECONDS, _LOOK_SECONDS = 300.0, 0.2


class CompileProcess:
    """One process at a time. `run` is for one thread, `kill` for any."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._killed = False

    def run(self, command: Sequence[str], work: Sequence[Any], stopping: Callable[[], bool]) -> None:
        """Runs `python -m` the command and gives it `work`. Blocks until it ends, or `stopping()`.

        Never fails: what is not on disk afterwards is compiled here, when it is asked for.
        """
        if not work or not sys.executable:
            return
        try:
            with self._lock:
                if self._killed:
                    return
                self._process = subprocess.Popen(
                    [sys.executable, "-m", *command],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
            _wait_for(self._process, json.dumps(work).encode(), stopping)
        except OSError as error:
            _log.debug("No process to compile in: %s", error)
        finally:
            self._process = None

    def kill(self) -> None:
        """Ends the process, if there is one; no other is started."""
        with self._lock:
            self._killed = True
            if self._process is not None:
                self._process.kill()


def _wait_for(process: subprocess.Popen[bytes], given: bytes, stopping: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PROCESS_SECONDS
    with process:
        try:
            process.communicate(given, timeout=_LOOK_SECONDS)
        except subprocess.TimeoutExpired:
            # the end of this process must not wait for LLVM
            while process.poll() is None and time.monotonic() < deadline and not stopping():
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(_LOOK_SECONDS)
        finally:
            process.kill()


def given_work() -> list[Any]:
    """In the process: what it was given. From now on it has a lower priority than the steps that go on meanwhile."""
    if hasattr(os, "nice"):
        with contextlib.suppress(OSError):
            os.nice(5)
    work: list[Any] = json.load(sys.stdin)
    return work
