"""The wall clock of a process of the tests, which jumps. Imported before what asks for the time: many keep `time.time`.

The monotonic clock goes on, as it does where a clock is set.
"""

from __future__ import annotations

import time

_seconds, _nanoseconds = time.time, time.time_ns
_shift = 0.0


def shift(seconds: float) -> None:
    """From now on it shows so many seconds more than the machine's."""
    global _shift
    _shift = seconds


time.time = lambda: _seconds() + _shift
time.time_ns = lambda: _nanoseconds() + int(_shift * 1e9)
