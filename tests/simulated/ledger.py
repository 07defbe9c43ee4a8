"""What simulated clients asked for and were told, against what the tasks hold: exact, or the seed has failed.

Each request of a counter, of the accumulator or of the queue has a number. Of those that were acknowledged, each has
happened once, in one life of the task; of the others each has happened once or not at all (P2, P5, P6).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from simulated.graphs import MOST_REQUESTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class Requests:
    """Those of one place: a counter, say."""

    def __init__(self, name: str, broken: Callable[[str], None]) -> None:
        self.name, self._broken = name, broken
        self.sent = 0
        self.acknowledged: set[int] = set()
        #: How often each was found, over all lives of the task that holds the place.
        self.found: dict[int, int] = {}

    def new(self) -> int | None:
        """The number of a new request; None where no more fit."""
        if self.sent >= MOST_REQUESTS:
            return None
        self.sent += 1
        return self.sent - 1

    def seen(self, value: int, number: int) -> None:
        """A request got this value: it is among what the value has, and none is there twice."""
        digits = digits_of(value)
        if digits.get(number) != 1 or any(count > 1 for count in digits.values()):
            self._broken(f"request {number} of {self.name} was answered with {digits}")

    def ended(self, numbers: Iterable[tuple[int, int]]) -> None:
        """A life of the place is over: it has (request, how often)."""
        for number, count in numbers:
            self.found[number] = self.found.get(number, 0) + count

    def check(self, lost: int = 0) -> None:
        """All lives have ended. So many as are `lost` may be missing: what was taken out and did not come."""
        for number in range(self.sent):
            count = self.found.get(number, 0)
            if count > 1:
                self._broken(f"request {number} of {self.name} was applied {count} times")
        missing = [number for number in sorted(self.acknowledged) if not self.found.get(number)]
        if len(missing) > lost:
            self._broken(f"requests {missing} of {self.name} were acknowledged and not applied; {lost} may be lost")
        unknown = sorted(number for number in self.found if number >= self.sent)
        if unknown:
            self._broken(f"{self.name} has requests that nobody sent: {unknown}")


def digits_of(value: int) -> dict[int, int]:
    """Request → how often it was added, of a sum of powers of four."""
    return {place: value >> 2 * place & 3 for place in range(32) if value >> 2 * place & 3}
