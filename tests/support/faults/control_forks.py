"""Control services that are killed at a write, or whose wall clock jumps: control_forks_main.py, from a test.

    with ControlForks() as forks:
        forks.start(database)
        forks.arm(3)                  # killed at the third write from now on
        …                             # a request, which may get no answer
        forks.ended()                 # -9
        forks.start(database)

A fork is up within a tenth of a second, so that hundreds can be killed. One lives at a time.
"""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Self

import httpx

#: Seconds for anything to happen that should.
PATIENCE = 60.0
_TESTS = Path(__file__).resolve().parents[2]


class ControlForks:
    """The process that forks, and the control service that it last started. A context manager."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-W", "error", "-m", "support.faults.control_forks_main"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=_TESTS,
        )
        #: What it said, in order; None at its end.
        self._said: queue.Queue[str | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read, name="read:control-forks", daemon=True)
        self._reader.start()
        self.url = ""
        #: The exit code of the last one, once it has ended.
        self.code: int | None = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(PATIENCE)
        self._reader.join(PATIENCE)

    def start(
        self, database: str, *, port: int = 0, shift: float = 0.0, writes: int = 0, **settings: Any
    ) -> str | None:
        """A control service on `database`; its URL. Its wall clock shows `shift` seconds more. With `writes` it is
        killed at that write, and may not come to serve: then None."""
        assert self.code is not None, "the last one has not ended"
        self.code = None
        plan = {"database": database, "port": port, "shift": shift, "writes": writes, "settings": settings}
        self._tell(f"start {json.dumps(plan)}")
        said = self._next()
        if said.startswith("ended"):
            self.code = int(said.split()[1])
            assert writes, f"the control service ended with {self.code} instead of serving"
            return None
        self.url = said.removeprefix("serving ")
        return self.url

    def client(self, **options: Any) -> httpx.Client:
        """A client of the one that runs."""
        return httpx.Client(base_url=self.url, trust_env=False, timeout=PATIENCE, **options)

    def arm(self, writes: int) -> None:
        """It will be killed at so many writes from now on."""
        self._ask(f"arm {writes}", "armed")

    def shift(self, seconds: float) -> None:
        """Its wall clock shows so many seconds more than the machine's from now on."""
        self._ask(f"shift {seconds}", "shifted")

    def kill(self) -> None:
        """kill -9, unless it has ended; returns once it is gone."""
        if self.code is None:
            self._tell("kill 9")
            self.ended()

    def end(self) -> int:
        """SIGTERM; its exit code."""
        self._tell("end 15")
        return self.ended()

    def ended(self) -> int:
        """The exit code, as soon as it has ended."""
        if self.code is None:
            said = self._next()
            assert said.startswith("ended"), said
            self.code = int(said.split()[1])
        return self.code

    def _ask(self, command: str, answer: str) -> None:
        self._tell(command)
        said = self._next()
        assert said == answer, said

    def _tell(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def _next(self) -> str:
        said = self._said.get(timeout=PATIENCE)
        assert said is not None, "the process that forks has ended"
        return said

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._said.put(line.strip())
        self._process.stdout.close()
        self._said.put(None)
