"""A process of another user that tries what a test asks of it: the attacker of the tests of who is accepted.

`stranger.ask("connect", target)` runs a function of stranger_tricks.py there and gives what it gives. It blocks, also
an event loop of the test, where that is what the attack needs. Only root can start one: `needs_another_user`.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from support.other_user import WHY_NOT, can_become

if TYPE_CHECKING:
    from collections.abc import Iterator

needs_another_user = pytest.mark.skipif(not can_become, reason=WHY_NOT)

_SERVES = """
import json, sys
from support.other_user import become_nobody
from support.stranger_tricks import TRICKS
become_nobody()
for line in sys.stdin:
    name, arguments = json.loads(line)
    try:
        answer = {"gave": TRICKS[name](*arguments)}
    except Exception as error:
        answer = {"error": repr(error)}
    print(json.dumps(answer), flush=True)
"""


class Stranger:
    """One such process. Any thread, one at a time."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def begin(self, name: str, *arguments: Any) -> None:
        """Has it begin; `end` gives the outcome."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([name, arguments]) + "\n")
        self._process.stdin.flush()

    def end(self) -> Any:
        """Waits for what was begun."""
        assert self._process.stdout is not None
        answer = json.loads(self._process.stdout.readline())
        assert "error" not in answer, answer["error"]
        return answer["gave"]

    def ask(self, name: str, *arguments: Any) -> Any:
        """Both."""
        self.begin(name, *arguments)
        return self.end()


@contextlib.contextmanager
def a_stranger() -> Iterator[Stranger]:
    """Starts one, and ends it with all that it holds."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    process = subprocess.Popen(
        [sys.executable, "-S", "-c", _SERVES],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        cwd="/",
    )
    try:
        yield Stranger(process)
    finally:
        process.kill()
        process.communicate(timeout=20)
