"""Runs any command as a task's program: `python -m tenfold.cli.run_command COMMAND argument …`.

The command is a child that gets the signals of this process and ends with it; its exit code, or the signal that ended
it, becomes this process's own. Started through child.py, like every program of a run.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from tenfold_core.exit_codes import STOP_SIGNALS


def main(command: list[str]) -> int:
    """Runs the command to its end. Blocks. Raises SystemExit with a message if it cannot be started."""
    try:
        process = subprocess.Popen(command)
    except OSError as error:
        raise SystemExit(f"cannot start {command[0]!r}: {error.strerror}") from None
    for each in STOP_SIGNALS:
        signal.signal(each, lambda number, frame: process.send_signal(number))
    try:
        code = process.wait()
    finally:
        process.kill()
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
