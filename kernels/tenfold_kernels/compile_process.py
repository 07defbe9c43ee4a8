"""Machine code made by a process of its own and left on disk, for this one to load, piece by piece.

Here LLVM would hold up every step: much of its work holds the interpreter's lock. Started by cpu/_compiled/loading.py
and fusion/compiler.py, which say before each piece which one is next; at the other end a module's `main` is
`do_given_work`. On the pipes: a line of JSON for each piece of work, and an empty line back once it is on disk.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import selectors
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_log = logging.getLogger(__name__)

#: Seconds that one piece may be compiled, and between two looks at what else there is to do.
PROCESS_SECONDS, _LOOK_SECONDS = 300.0, 0.2


class CompileProcess:
    """One process at a time. `run` is for one thread, `kill` for any."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._killed = False

    def run(
        self, command: Sequence[str], work: Iterator[tuple[bool, Any]], stopping: Callable[[], bool] = lambda: False
    ) -> None:
        """Runs `python -m` the command and gives it what `work` yields: (whether steps suffer without it, what it is).

        `work` is asked for the next piece once one is on disk. Blocks until there is no more, or the process has ended;
        meanwhile it asks `stopping` several times a second. Never fails: a piece that was yielded and whose successor
        was not asked for is compiled here, when it is needed.
        """
        first = next(work, None)
        if first is None or not sys.executable:
            return
        try:
            with self._lock:
                if self._killed:
                    return
                self._process = subprocess.Popen(
                    [sys.executable, "-m", *command],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                )
            _feed(self._process, first, work, stopping)
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


def _feed(
    process: subprocess.Popen[bytes], first: tuple[bool, Any], work: Iterator[tuple[bool, Any]], stopping: Any
) -> None:
    with process:
        try:
            piece: tuple[bool, Any] | None = first
            assert process.stdin is not None
            while piece is not None:
                process.stdin.write(json.dumps(piece).encode() + b"\n")
                process.stdin.flush()
                piece = next(work, None) if _answered(process, stopping) else None
        finally:
            # what it answered for is on disk, and the end of this process must not wait for LLVM
            process.kill()


def _answered(process: subprocess.Popen[bytes], stopping: Callable[[], bool]) -> bool:
    """Waits until a piece is on disk; False where the process ended first, it took too long, or `stopping()`."""
    assert process.stdout is not None
    deadline = time.monotonic() + PROCESS_SECONDS
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while not stopping() and time.monotonic() < deadline:
            if selector.select(_LOOK_SECONDS):
                return bool(process.stdout.readline())
    return False


def do_given_work(do: Callable[..., Any]) -> None:
    """In the process: calls `do(*piece)` for each piece that it is given, until there is no more. What no step suffers
    from goes to a thread with a lower priority than the steps that go on meanwhile.
    """
    answers, sys.stdout = sys.stdout, sys.stderr
    with ThreadPoolExecutor(1, "tenfold-compile", _step_back) as behind:
        for line in sys.stdin:
            is_urgent, piece = json.loads(line)
            if is_urgent:
                do(*piece)
            else:
                behind.submit(do, *piece).result(timeout=PROCESS_SECONDS)
            answers.write("\n")
            answers.flush()


def _step_back() -> None:
    # of this thread on Linux; of the whole process elsewhere
    if hasattr(os, "nice"):
        with contextlib.suppress(OSError):
            os.nice(5)
