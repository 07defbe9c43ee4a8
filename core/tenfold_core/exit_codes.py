"""What an exit code of a child process means, in words and as a state. Negative: the signal that ended it; above 128:
the signal by which the process ended itself in order (cli/signals.py).

Used by everything that has children (`tenfold up`, `tenfold run`, the supervisor of a run), and where their ends are
shown.
"""

from __future__ import annotations

import signal

#: The signals that ask a process to end: from a terminal's Ctrl-C, a supervisor, a terminal that was closed.
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_STOPS = {128 + each: each.name for each in STOP_SIGNALS}


def ending(code: int) -> tuple[str, str]:
    """What it means for a task: finished, stopped or lost, and why."""
    if code == 0:
        return "finished", "finished with exit code 0"
    if code in _STOPS:
        return "stopped", f"stopped by {_STOPS[code]}"
    return "lost", f"ended by {signal_name(-code)}" if code < 0 else f"ended with exit code {code}"


def described(code: int | None) -> str:
    """ "ended with exit code 3", "was ended by SIGKILL", "was stopped by SIGTERM"; None: "still runs"."""
    if code is None:
        return "still runs"
    state, why = ending(code)
    if code == 0:
        return "ended with exit code 0"
    return f"was {why}" if state == "stopped" or code < 0 else why


def signal_name(number: int) -> str:
    """ "SIGKILL"; "signal 40" for one without a name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
