"""Whether more threads of this machine want to run than it has cores: then no kernel asks for help.

Asked by what would share a kernel with another thread (chunks.py). Reads /proc/loadavg, which takes 2 µs; elsewhere
than on Linux the answer is no.
"""

from __future__ import annotations

import os

#: Seconds for which what was read holds.
_HOLDS = 100e-6


class Crowd:
    """Whether more threads of this machine want to run than it has cores. Never blocks; False where nobody can say."""

    def __init__(self, path: str = "/proc/loadavg", cores: int | None = None) -> None:
        self._cores = cores or os.cpu_count() or 1
        self._read_at = -1.0
        self._is_crowded = False
        try:
            self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self._file = -1

    def is_crowded(self, now: float) -> bool:
        """At `now` (perf_counter), by a look that is at most a moment old."""
        if now - self._read_at >= _HOLDS and self._file >= 0:
            self._read_at = now
            try:
                # "0.12 0.99 1.63 3/621 1553": three run or wait for a core, the asking thread among them.
                self._is_crowded = int(os.pread(self._file, 128, 0).split()[3].partition(b"/")[0]) > self._cores
            except (OSError, IndexError, ValueError):
                self._file, self._is_crowded = -1, False
        return self._is_crowded
