"""A clock for what takes one as an argument: leases, idle sessions, frames' rates."""

from __future__ import annotations


class HandClock:
    """A monotonic clock that only the test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now
