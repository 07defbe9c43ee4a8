"""How this process's program ends, as far as it can be seen from inside, when the interpreter ends.

An uncaught error is in `sys.last_value`, where the interpreter and cli/child.py leave it. `sys.exit` leaves nothing, so
`watch_exit` puts a function in its place whose exception notices that the interpreter itself asks for its exit code. A
program that raises SystemExit without `sys.exit`, or ends by a signal, does not tell: then there is no exit code.
"""

from __future__ import annotations

import sys
from typing import Any

from tenfold.runs.error_file import described

#: What `sys.exit` raised, once the interpreter ends by it.
_ended_by: SystemExit | None = None
_watching = False


def watch_exit() -> None:
    """From now on `how_it_ended` knows what `sys.exit` was told. Idempotent."""
    global _watching
    if not _watching:
        _watching = True
        sys.exit = _exit


def _exit(status: Any = None, /) -> Any:
    """Exit the interpreter by raising SystemExit(status)."""
    raise _Exit(status)


class _Exit(SystemExit):
    """The SystemExit of `sys.exit`."""

    def _code(self) -> Any:
        global _ended_by
        if sys._getframe().f_back is None:
            # no code of the program asks: every frame of it is gone
            _ended_by = self
        return self.args[0]

    code = property(_code)


_Exit.__name__ = _Exit.__qualname__ = "SystemExit"


def how_it_ended() -> dict[str, Any]:
    """State, exit code and error, in the form of a report's `ending`. For atexit; a program that still runs would be
    said to have succeeded."""
    error = getattr(sys, "last_value", None)
    if error is None:
        error = _ended_by
    if error is None:
        return {"state": "succeeded"}
    if isinstance(error, SystemExit):
        code = _code_of(error)
        if code == 0:
            return {"state": "succeeded", "exit_code": 0}
        told = error.code if isinstance(error.code, str) else f"sys.exit with exit code {code}"
        return {"state": "failed", "exit_code": code, "error": {"type": "SystemExit", "message": told[:4000]}}
    if isinstance(error, KeyboardInterrupt):
        return {"state": "stopped", "error": {"type": "KeyboardInterrupt", "message": "stopped by SIGINT"}}
    return {"state": "failed", "exit_code": 1, "error": described(error)}


def _code_of(error: SystemExit) -> int:
    """What a shell sees: a byte, 1 for a text."""
    if error.code is None:
        return 0
    return error.code & 0xFF if isinstance(error.code, int) else 1
