"""What a failing program leaves for who started it: the error, with its node and task, as one JSON file.

Written by cli/child.py in the failing process, where the variable ERROR_FILE names a file; read by driver.py.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from pathlib import Path
from typing import Any

#: The variable that names the file.
ERROR_FILE = "TENFOLD_ERROR_FILE"

_MEMBERS = ("type", "message", "node", "task")
_CHARACTERS = 4000
#: Follows the message of a program that asks for a TensorFlow that is not installed.
_AS_TENSORFLOW = (
    '. Start it with --as-tensorflow (in REST "as_tensorflow": true), and `import tensorflow` gives it Tenfold'
)
_TASK = re.compile(r"/job:[A-Za-z][A-Za-z0-9_]*(?:/replica:\d+)?/task:\d+")


class ReportedExit(SystemExit):
    """The end of a program whose error was left in the file and shown: callers add nothing to it. It lives here, as
    cli/child.py may be in one process twice, as the main program and as a module."""


def leave_error(error: BaseException) -> None:
    """Writes the file, if the environment names one. Never raises: the program's own error counts."""
    path = os.environ.get(ERROR_FILE)
    if path:
        with contextlib.suppress(OSError):
            Path(path).write_text(json.dumps(described(error)), encoding="utf-8")


def described(error: BaseException) -> dict[str, str]:
    """Type and message, and for an error of the runtime the node and the task, where they are known."""
    from tenfold_core.errors import OpError

    found: dict[str, Any] = {"type": type(error).__name__, "message": str(error)}
    if isinstance(error, ModuleNotFoundError) and str(error.name).partition(".")[0] == "tensorflow":
        found["message"] += _AS_TENSORFLOW
    if isinstance(error, OpError):
        found["message"] = error.message
        found["node"] = error.node_def.name if error.node_def is not None else error.node_name
        device = str(getattr(error.op, "device", "") or "")
        named = _TASK.search(error.message) or _TASK.search(device)
        found["task"] = named[0] if named else None
    return {key: str(value)[:_CHARACTERS] for key, value in found.items() if value}


def read_error(path: Path) -> dict[str, str] | None:
    """What a program left; None if it ended without an exception: by a signal, by os._exit."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(found, dict):
        return None
    return {key: str(found[key])[:_CHARACTERS] for key in _MEMBERS if found.get(key)}
