"""What soak_faults.py finds: what each process held through its life, how fast steps were, and what was broken."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field

import faults
from faults import STORY
from soak import ALLOWED

#: A process is judged that lived so long and was looked at so often; its first looks are its warm-up.
LIVED, LOOKS, WARM_UP = 120.0, 8, 2
#: What the last third of the windows may take longer than the first.
SLOWER = 1.7


@dataclass
class Life:
    """One process, from its start to its end."""

    name: str
    pid: int
    #: Seconds since the beginning, and what it held then.
    looks: list[tuple[float, dict[str, float]]] = field(default_factory=list)

    def growth(self) -> dict[str, float]:
        """By how much the median of its last looks is above that of its first; nothing for a short life."""
        return {key: each[3] - each[0] for key, each in self._quarters().items()}

    def leaks(self) -> list[str]:
        """What grows by more than is allowed, and at both ends of the life: what is only made when it is first needed,
        as the threads of gRPC when a task is first a client's master, is no leak."""
        return [
            f"{self.name}: {key} grew by {each[3] - each[0]:.1f}, allowed {ALLOWED[key]:g}"
            for key, each in self._quarters().items()
            if each[3] - each[0] > ALLOWED[key] and min(each[1] - each[0], each[3] - each[2]) > ALLOWED[key] / 8
        ]

    def _quarters(self) -> dict[str, list[float]]:
        """The median of each quarter of the looks; nothing for a short life."""
        looks = self.looks[WARM_UP:]
        if len(looks) < LOOKS or looks[-1][0] - looks[0][0] < LIVED:
            return {}
        part = len(looks) // 4
        quarters = looks[:part], looks[part : 2 * part], looks[-2 * part : -part], looks[-part:]
        return {key: [statistics.median(held[key] for _, held in each) for each in quarters] for key in ALLOWED}


@dataclass
class Found:
    """What came of it."""

    seed: int
    seconds: float = 0.0
    last_step: int = 0
    faults: dict[str, int] = field(default_factory=dict)
    #: Seconds from each fault's end (a kill, SIGCONT) until training went on.
    recovery: list[float] = field(default_factory=list)
    #: Seconds since the beginning, and steps a second of all workers in the window then.
    speeds: list[tuple[float, float]] = field(default_factory=list)
    growth: list[tuple[str, float, dict[str, float]]] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)

    def slowing(self) -> list[str]:
        """What to say of steps that slow down; nothing where they do not, or are too few to tell."""
        speeds = [speed for _, speed in self.speeds]
        third = len(speeds) // 3
        if third < 4:
            return []
        first, last = statistics.median(speeds[:third]), statistics.median(speeds[-third:])
        return [f"steps slow down: {first:.0f} a second at first, {last:.0f} at last"] if first > SLOWER * last else []

    def __str__(self) -> str:
        kinds = ", ".join(f"{name} {count}" for name, count in sorted(self.faults.items()))
        speeds = [speed for _, speed in self.speeds]
        third = max(1, len(speeds) // 3)
        rates = (
            f"steps a second: first third {statistics.median(speeds[:third]):.0f}, "
            f"last third {statistics.median(speeds[-third:]):.0f}"
            if speeds
            else "no window was timed"
        )
        recovered = [faults.percentile(self.recovery, percent) for percent in (50, 99)]
        grown = [
            f"  {name}, {lived:.0f} s: " + ", ".join(f"{key} {value:+.1f}" for key, value in growth.items())
            for name, lived, growth in self.growth
        ]
        return "\n".join(
            [
                f"{sum(self.faults.values())} faults (seed {self.seed}: {kinds}) in {self.last_step} synchronous steps "
                f"of {STORY.workers} workers, {self.seconds:.0f} s",
                f"training went on after: p50 {recovered[0]:.2f} s, p99 {recovered[1]:.2f} s",
                rates,
                "growth of those that lived long:",
                *grown,
                f"violations: {len(self.violations)}",
                *self.violations,
            ]
        )
