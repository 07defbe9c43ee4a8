"""How a program's end is told: from what the interpreter keeps, and from what `sys.exit` was told."""

from __future__ import annotations

import subprocess
import sys

import pytest

#: A program that says at its end how it ended.
PROGRAM = """
import atexit, contextlib, json, sys
from tenfold.runs import program_end

program_end.watch_exit()
atexit.register(lambda: print(json.dumps(program_end.how_it_ended())))
"""


@pytest.mark.parametrize(
    ("last", "told"),
    [
        ("", '{"state": "succeeded"}'),
        ("sys.exit()", '{"state": "succeeded", "exit_code": 0}'),
        ("sys.exit(0)", '{"state": "succeeded", "exit_code": 0}'),
        ("with contextlib.suppress(KeyError):\n    sys.exit(259)", '"exit_code": 3'),
        ("sys.exit('no data')", '"exit_code": 1, "error": {"type": "SystemExit", "message": "no data"}'),
        ("with contextlib.suppress(SystemExit):\n    sys.exit(3)", '{"state": "succeeded"}'),
        ("try:\n    sys.exit(3)\nexcept SystemExit as end:\n    assert end.code == 3", '{"state": "succeeded"}'),
        ("1 / 0", '"error": {"type": "ZeroDivisionError", "message": "division by zero"}'),
        ("raise KeyboardInterrupt", '"state": "stopped"'),
    ],
)
def test_how_it_ended(last: str, told: str) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM + last], capture_output=True, text=True, timeout=60)

    assert told in done.stdout, done.stderr
