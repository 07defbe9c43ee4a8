"""The median rule: a trial whose best is worse than what half of the others had on average by then is stopped. Pure.

As Vizier describes it: at step s a trial is compared by its best value up to s with the median, over the other trials
that have come to s, of the mean of their values up to s.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import fmean, median
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

Goal = Literal["min", "max"]
#: Global step and value, in the order of the steps; NaN for a value that is none.
Curve: TypeAlias = "Sequence[tuple[int, float]]"


@dataclass(frozen=True, slots=True)
class MedianRule:
    """When a trial is stopped."""

    goal: Goal = "min"
    #: Steps that every trial may make.
    grace: int = 0
    #: Other trials that must have come as far.
    others: int = 2

    def verdict(self, mine: Curve, others: Sequence[Curve]) -> str | None:
        """Why the trial is stopped; None while it is not."""
        if not mine or mine[-1][0] < self.grace:
            return None
        step = mine[-1][0]
        if not math.isfinite(mine[-1][1]):
            return f"its value at step {step} is {mine[-1][1]}"
        as_far = [self._mean(curve, step) for curve in others if curve and curve[-1][0] >= step]
        known = [mean for mean in as_far if mean is not None]
        if len(known) < max(self.others, 1):
            return None
        best, middle = self.best(mine), median(known)
        assert best is not None
        if best <= middle if self.goal == "min" else best >= middle:
            return None
        return f"by step {step} its best is {best:.4g}, and the median of {len(known)} others is {middle:.4g}"

    def best(self, curve: Curve) -> float | None:
        """The best value of a curve; None where it has none."""
        values = [value for _, value in curve if math.isfinite(value)]
        return (min if self.goal == "min" else max)(values, default=None)

    def place(self, curve: Curve) -> tuple[bool, float]:
        """Sorts curves by their best values, those without one last."""
        best = self.best(curve)
        return best is None, 0.0 if best is None else best if self.goal == "min" else -best

    @staticmethod
    def _mean(curve: Curve, step: int) -> float | None:
        values = [value for at, value in curve if at <= step and math.isfinite(value)]
        return fmean(values) if values else None
