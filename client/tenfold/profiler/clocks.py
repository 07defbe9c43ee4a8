"""The clocks of several hosts on one time line, from what must have come before what. Pure.

What is sent comes before it is received, and a step begins at its client before it runs anywhere. Two clocks that
disagree break such orders; the corrections that break none form an interval for each clock, found as shortest paths.
Used by cluster_trace.py; the method and its error are described in docs/traces.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Nanoseconds by which an order may seem to be broken and is still believed: some clocks count microseconds.
_GRAIN = 2_000


@dataclass(frozen=True, slots=True)
class Correction:
    """What to add to a clock's times, in nanoseconds, and how far the truth may be from that; None: not bounded."""

    offset: int
    error: int | None


@dataclass(slots=True)
class Orders:
    """Pairs of events of different clocks, of which the first came before the second."""

    #: (clock of the first, clock of the second) → the least time between them, by their own clocks. Nanoseconds.
    least: dict[tuple[str, str], int] = field(default_factory=dict)

    def add(self, first: str, then: str, before: int, after: int) -> None:
        """The event at `before` by the clock `first` came before the one at `after` by the clock `then`."""
        if first != then:
            known = self.least.get((first, then))
            self.least[first, then] = after - before if known is None else min(known, after - before)


def corrections(orders: Orders, reference: str) -> dict[str, Correction]:
    """Clock → its correction, relative to the clock `reference`, whose own is 0.

    Clocks that contradict no order are left as they are. Else each is put in the middle of what the orders allow.
    """
    clocks = {reference, *(clock for pair in orders.least for clock in pair)}
    # correction[first] - correction[then] <= least time between: the greatest and the smallest that this allows
    highest = _shortest(reference, {(then, first): gap for (first, then), gap in orders.least.items()})
    lowest = _shortest(reference, orders.least)
    if highest is None or lowest is None:
        # no corrections keep all orders: a clock was set meanwhile
        return {clock: Correction(0, None) for clock in clocks}
    agree = all(gap >= -_GRAIN for gap in orders.least.values())
    found: dict[str, Correction] = {}
    for clock in clocks:
        high, low = highest.get(clock), lowest.get(clock)
        low = None if low is None else -low
        if high is None or low is None:
            bound = high if low is None else low
            found[clock] = Correction(0 if agree or bound is None else bound, None)
        elif agree:
            found[clock] = Correction(0, max(abs(high), abs(low)))
        else:
            found[clock] = Correction((high + low) // 2, (high - low + 1) // 2)
    return found


def _shortest(start: str, edges: Mapping[tuple[str, str], int]) -> dict[str, int] | None:
    """The lengths of the shortest paths from `start` (Bellman and Ford); None if they have no end."""
    lengths = {start: 0}
    for _ in range(len({clock for edge in edges for clock in edge}) + 1):
        changed = False
        for (here, there), length in edges.items():
            if here in lengths and lengths[here] + length < lengths.get(there, lengths[here] + length + 1):
                lengths[there] = lengths[here] + length
                changed = True
        if not changed:
            return lengths
    return None
