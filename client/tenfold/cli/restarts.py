"""When a task of `tenfold up` that died is started again: after a pause that doubles, so many times in a row at most.

Pure but for the clock that it is given. up.py tells it who ended, and starts who is due.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tenfold.runs.plan import RunPolicy

if TYPE_CHECKING:
    from collections.abc import Callable

#: Seconds before the first start of a row, and before any.
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 30.0
#: They double as those between the restarts of a run do.
_PAUSES = RunPolicy(backoff=FIRST_PAUSE_S, longest_backoff=LONGEST_PAUSE_S)
#: Seconds that a task runs until it begins a new row when it dies.
STEADY_S = 60.0


@dataclass(frozen=True, slots=True)
class Again:
    """The next start of a task that died: in so many seconds, which of how many in a row."""

    seconds: float
    number: int


class Restarts:
    """Of all tasks, by name."""

    def __init__(self, most: int, clock: Callable[[], float]) -> None:
        """At most so many starts in a row, each of a task that did not run for STEADY_S."""
        self.most = most
        self._clock = clock
        self._begun: dict[str, float] = {}
        self._count: dict[str, int] = {}
        #: When those that wait are started.
        self._due: dict[str, float] = {}

    def started(self, name: str) -> None:
        """A process of the task was started."""
        self._begun[name] = self._clock()
        self._due.pop(name, None)

    def died(self, name: str) -> Again | None:
        """When it is started again; None once it has used up its starts."""
        now = self._clock()
        if now - self._begun.get(name, now) >= STEADY_S:
            self._count.pop(name, None)
        count = self._count.get(name, 0)
        if count >= self.most:
            return None
        self._count[name] = count + 1
        pause = _PAUSES.pause(count + 1)
        self._due[name] = now + pause
        return Again(pause, count + 1)

    @property
    def seconds(self) -> float | None:
        """Until the next one is due; None if none waits."""
        return max(0.0, min(self._due.values()) - self._clock()) if self._due else None

    def due(self) -> list[str]:
        """Those to be started now."""
        now = self._clock()
        return [name for name, when in self._due.items() if when <= now]
