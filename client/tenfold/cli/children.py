"""A group of child processes that start and stop together. Used by local.py (`tenfold up`), by tenfold.runs and by
examples/demo.py.

Each child's output is read line by line by a thread of its own, handed to `echo` and kept (the last lines only) for
error messages. Waiting is done on one condition, woken by lines and exits; nothing polls. No child outlives this
process: see child.py. Blocking API; all of it but `wake` belongs to one thread.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tenfold_core.exit_codes import described

if TYPE_CHECKING:
    from types import TracebackType

#: Called with a child's name and one line of its output, from that child's reader thread.
Echo = Callable[[str, str], None]

#: Lines kept for each child.
KEPT_LINES = 200
#: Characters of a line; a longer one is split into lines of this length.
LINE_CHARACTERS = 1 << 16
#: Seconds to wait for the output of a child that has ended, where a process that it started still holds the pipe open.
DRAIN_S = 2.0
#: Seconds for the system to end a process that was killed: it may be in the middle of a write to a dead disk.
END_S = 10.0

log = logging.getLogger(__name__)


class ChildFailedError(RuntimeError):
    """A child ended, or did not write the expected line. The message holds the last lines that it wrote."""


@dataclass(slots=True, eq=False)
class Child:
    """One process. All fields but `process` are guarded by the condition of the Children it belongs to."""

    name: str
    process: subprocess.Popen[str]
    #: Children of a later stage depend on those of an earlier one, and are stopped before them.
    stage: int = 0
    #: The newest lines; matched by wait_for_line, shown in errors.
    lines: deque[str] = field(default_factory=lambda: deque(maxlen=KEPT_LINES))
    #: None while it runs; negative: the signal that ended it.
    exit_code: int | None = None
    #: When it ended, on the monotonic clock.
    ended_at: float = 0.0
    #: Thread that reads its lines; ends when no process holds its output open any more.
    reader: threading.Thread | None = None
    #: Thread that waits for its end.
    waiter: threading.Thread | None = None


class Children:
    """Starts children, and stops all of them on leaving the `with` block."""

    def __init__(self, echo: Echo | None = None) -> None:
        self._echo = echo
        self._changed = threading.Condition()
        #: In order of their start. Guarded by _changed.
        self._children: dict[str, Child] = {}

    def __enter__(self) -> Children:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.stop()

    def start(
        self,
        name: str,
        program: Sequence[str],
        *,
        stage: int = 0,
        env: Mapping[str, str] | None = None,
        interpreter: Sequence[str] = (),
        cwd: str | None = None,
    ) -> None:
        """Starts `python PROGRAM…` (["-m", module, …] or [file, …]) under `name`, in a session of its own and in the
        folder `cwd`, where it is not to be this process's. `interpreter` has options for Python itself.

        Because of the session a terminal's Ctrl-C reaches only this process, which stops the children in order.
        Raises ValueError if the name is taken, OSError if no process can be made.
        """
        if name in self._children:
            raise ValueError(f"a child named {name!r} was started already")
        process = subprocess.Popen(
            # -P: what lies in the folder where this runs is found by the program only, which child.py sees to
            [sys.executable, "-u", *interpreter, "-P", "-m", "tenfold.cli.child", *program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
            env={**os.environ, "PYTHONUNBUFFERED": "1", **(env or {})},
            start_new_session=True,
            cwd=cwd,
        )
        child = Child(name, process, stage)
        with self._changed:
            self._children[name] = child
        child.reader = threading.Thread(target=self._read, args=(child,), name=f"read:{name}", daemon=True)
        child.waiter = threading.Thread(target=self._wait_for_end, args=(child,), name=f"wait:{name}", daemon=True)
        child.reader.start()
        child.waiter.start()

    def wait_for_line(self, name: str, pattern: str, timeout: float) -> re.Match[str]:
        """Waits until the child wrote a line that `pattern` matches, and returns the match.

        Raises ChildFailedError if the child ends before, or after `timeout` seconds.
        """
        child = self._children[name]
        compiled = re.compile(pattern)

        def found() -> re.Match[str] | None:
            return next((match for line in child.lines if (match := compiled.search(line))), None)

        with self._changed:
            self._changed.wait_for(lambda: found() or child.exit_code is not None, timeout)
            if match := found():
                return match
            silent = f"did not say {pattern!r} within {timeout:g} s"
            what = silent if child.exit_code is None else described(child.exit_code)
            raise ChildFailedError(f"{name} {what}; its last lines:\n{_tail(child)}")

    def wait_for_exit(
        self,
        names: Sequence[str] | None = None,
        timeout: float | None = None,
        *,
        unless: Callable[[], bool] | None = None,
    ) -> tuple[str, int] | None:
        """Waits until one of `names` (all children by default) has ended; its name and exit code, None in time-out.

        Of several that have ended, the first one. None as well once `unless`, asked again after each `wake`, is true.
        """
        watched = [self._children[name] for name in (self._children if names is None else names)]

        def ended() -> Child | None:
            done = [child for child in watched if child.exit_code is not None]
            return min(done, key=lambda child: child.ended_at, default=None)

        with self._changed:
            self._changed.wait_for(lambda: ended() is not None or (unless is not None and unless()), timeout)
            child = ended()
            return None if child is None or child.exit_code is None else (child.name, child.exit_code)

    def failure(self, name: str) -> ChildFailedError:
        """The error that says how the child ended and what it wrote last."""
        child = self._children[name]
        with self._changed:
            return ChildFailedError(f"{name} {described(child.exit_code)}; its last lines:\n{_tail(child)}")

    def wake(self) -> None:
        """Lets `wait_for_exit` ask its `unless` again. From any thread."""
        with self._changed:
            self._changed.notify_all()

    def last_lines(self, name: str, count: int) -> list[str]:
        """The newest lines of the child, `count` at most."""
        with self._changed:
            return list(self._children[name].lines)[-count:]

    def terminate(self, name: str) -> None:
        """SIGTERM to the child; one that has ended is no error."""
        self._children[name].process.send_signal(signal.SIGTERM)

    def kill(self, name: str) -> None:
        """SIGKILL to the child and to what it started; one that has ended is no error."""
        process = self._children[name].process
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)

    def knows(self, name: str) -> bool:
        """Whether a child was started under that name and not forgotten."""
        return name in self._children

    def forget(self, name: str) -> None:
        """Frees the name of a child that has ended, so that another can be started under it."""
        child = self._children[name]
        if child.exit_code is None:
            raise ValueError(f"{name} still runs")
        _close_pipes(child)
        with self._changed:
            del self._children[name]

    def pids(self) -> list[int]:
        """The process ids of the children that have not ended. Any thread."""
        with self._changed:
            return [child.process.pid for child in self._children.values() if child.exit_code is None]

    def pid(self, name: str) -> int:
        """The child's process id."""
        return self._children[name].process.pid

    def stop(self, grace: float = 10.0) -> None:
        """Ends every child that still runs; returns when none does. Idempotent. Takes at most `grace` and a moment.

        1 SIGTERM, the last stage first, and wait for each stage, so that tasks can still release their leases at the
        control service · 2 SIGKILL to what is left · 3 close the pipes and join the readers. An exception skips to 2.
        """
        deadline = time.monotonic() + grace
        running = [child for child in self._children.values() if child.process.poll() is None]
        try:
            for stage in sorted({child.stage for child in running}, reverse=True):
                members = [child for child in running if child.stage == stage]
                for child in members:
                    child.process.send_signal(signal.SIGTERM)
                for child in members:
                    self._wait(child, deadline - time.monotonic())
        finally:
            for child in running:
                if child.process.poll() is None:
                    os.killpg(child.process.pid, signal.SIGKILL)
                    self._wait(child, END_S)
            for child in self._children.values():
                _close_pipes(child)

    @staticmethod
    def _wait(child: Child, timeout: float) -> None:
        # A child that takes too long is killed in step 2.
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.process.wait(max(timeout, 0.1))

    def _read(self, child: Child) -> None:
        """Body of a reader thread: reads lines until no process holds the child's output open."""
        assert child.process.stdout is not None
        echo = self._echo
        with child.process.stdout as lines:
            while line := lines.readline(LINE_CHARACTERS):
                text = line.rstrip("\n")
                if echo is not None:
                    try:
                        echo(child.name, text)
                    except Exception:
                        # keep reading: a child whose pipe is full would block
                        log.exception("the output of %s is not shown any more", child.name)
                        echo = None
                with self._changed:
                    child.lines.append(text)
                    self._changed.notify_all()

    def _wait_for_end(self, child: Child) -> None:
        """Body of a waiter thread: records how the child ended, after its last line if that comes within DRAIN_S."""
        code = child.process.wait()
        now = time.monotonic()
        assert child.reader is not None
        child.reader.join(DRAIN_S)
        with self._changed:
            child.ended_at, child.exit_code = now, code
            self._changed.notify_all()


def _close_pipes(child: Child) -> None:
    """Closes the pipes of a child that has ended, and kills processes of its session that still hold them open."""
    assert child.process.stdin is not None
    child.process.stdin.close()
    if child.waiter is not None:
        child.waiter.join(END_S + DRAIN_S)
    if child.reader is not None and child.reader.is_alive():
        # a process of the session still runs, so the kernel has not given the group's number to another one
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.process.pid, signal.SIGKILL)
        child.reader.join(DRAIN_S)


def _tail(child: Child, count: int = 20) -> str:
    return "\n".join(f"    {line}" for line in list(child.lines)[-count:]) or "    (none)"
