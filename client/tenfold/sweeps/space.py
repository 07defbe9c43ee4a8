"""Which settings a sweep tries: `lr=0.1,0.01`, `layers=2..4`, `lr=log:1e-4..0.1`; all of them, or some drawn. Pure."""

from __future__ import annotations

import itertools
import math
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from tenfold_core.parameter_values import read_value, write_value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold_core.parameter_values import Value

#: The most settings of one sweep.
MAX_POINTS = 10_000
#: Bytes of all settings of one sweep as text, at most.
MAX_TEXT = 8 << 20
#: Significant digits of a number that is drawn.
_DIGITS = 6
_LOG = "log:"

Point: TypeAlias = "dict[str, Value]"


class SpaceError(ValueError):
    """A parameter, or a sweep, that cannot be tried; says what would be right."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One of these values."""

    name: str
    values: tuple[Value, ...]

    def space(self) -> dict[str, Any]:
        """As a member of `parameters` in `POST /v1/sweeps`."""
        return {"values": list(self.values)}


@dataclass(frozen=True, slots=True)
class Interval:
    """Any number from `low` to `high`, drawn evenly, or with `log` evenly in its logarithm."""

    name: str
    low: float
    high: float
    log: bool = False

    def space(self) -> dict[str, Any]:
        """As a member of `parameters` in `POST /v1/sweeps`."""
        return {"low": self.low, "high": self.high, "log": self.log}


Dimension: TypeAlias = Choice | Interval


def parse(text: str) -> Dimension:
    """ "lr=0.1,0.01" and "layers=2..4" (2, 3, 4) and "rate=0.1..0.5..0.2" (0.1, 0.3, 0.5) are choices;
    "rate=0.1..0.5" and "rate=log:1e-4..0.1" are intervals. Raises SpaceError."""
    name, equals, given = text.partition("=")
    if not name or not equals or not given:
        raise SpaceError(f"{text!r} is no parameter to try: write lr=0.1,0.01 or layers=2..4")
    if ".." in given:
        return _range(name, given)
    parts = given.split(",")
    if "" in parts:
        raise SpaceError(f"{text!r} has an empty value between its commas")
    return Choice(name, tuple(dict.fromkeys(map(read_value, parts))))


def grid(dimensions: Sequence[Dimension]) -> list[Point]:
    """Every combination, the last parameter changing fastest. Raises SpaceError for an interval, and for more than
    MAX_POINTS."""
    _check_names(dimensions)
    for each in dimensions:
        if isinstance(each, Interval):
            hint = f"{each.name}={each.low:g}..{each.high:g}..STEP, or --random N to draw from it"
            raise SpaceError(f"{each.name} has endlessly many values: write {hint}")
    choices = [each for each in dimensions if isinstance(each, Choice)]
    if (count := math.prod(len(each.values) for each in choices)) > MAX_POINTS:
        raise SpaceError(f"these are {count} settings, and {MAX_POINTS} is the limit: draw some, with --random N")
    _check_text(dimensions, count)
    names = [each.name for each in choices]
    return [dict(zip(names, values, strict=True)) for values in itertools.product(*(each.values for each in choices))]


def draw(dimensions: Sequence[Dimension], count: int, seed: int) -> list[Point]:
    """`count` settings drawn at random, the same ones for the same seed. Where there are only choices, no setting comes
    twice, and all of them where there are no more than `count`. Raises SpaceError."""
    _check_names(dimensions)
    if not 0 < count <= MAX_POINTS:
        raise SpaceError(f"{count} settings cannot be drawn: 1 to {MAX_POINTS} can")
    source = random.Random(seed)
    sizes = [len(each.values) for each in dimensions if isinstance(each, Choice)]
    if len(sizes) == len(dimensions) and math.prod(sizes) <= MAX_POINTS:
        every = grid(dimensions)
        return source.sample(every, min(count, len(every)))
    _check_text(dimensions, count)
    return [{each.name: _drawn(each, source) for each in dimensions} for _ in range(count)]


def _drawn(dimension: Dimension, source: random.Random) -> Value:
    if isinstance(dimension, Choice):
        return source.choice(dimension.values)
    if dimension.log:
        value = math.exp(source.uniform(math.log(dimension.low), math.log(dimension.high)))
    else:
        value = source.uniform(dimension.low, dimension.high)
    return float(f"{value:.{_DIGITS}g}")


def _check_names(dimensions: Sequence[Dimension]) -> None:
    names = [each.name for each in dimensions]
    if not names:
        raise SpaceError("there is no parameter to try: write --param lr=0.1,0.01")
    for name in names:
        if names.count(name) > 1:
            raise SpaceError(f"{name} is given twice; all its values stand in one, as {name}=1,2,3")


def _check_text(dimensions: Sequence[Dimension], count: int) -> None:
    """Raises SpaceError where `count` settings may take more than MAX_TEXT."""
    longest = [max(len(write_value(value)) for value in each.values) for each in dimensions if isinstance(each, Choice)]
    size = count * (sum(longest) + sum(len(each.name) + _DIGITS for each in dimensions))
    if size > MAX_TEXT:
        raise SpaceError(f"{count} settings take up to {size} bytes as text, and {MAX_TEXT} is the limit")


def _range(name: str, given: str) -> Dimension:
    log = given.startswith(_LOG)
    ends = [read_value(part) for part in given.removeprefix(_LOG).split("..")]
    numbers = [each for each in ends if isinstance(each, (int, float)) and not isinstance(each, bool)]
    if len(numbers) != len(ends) or len(ends) not in (2, 3) or (log and len(ends) == 3):
        raise SpaceError(f"{name}={given!r} is not a range: write 2..4, 0.1..0.5..0.1 or log:1e-4..0.1")
    return interval_or_steps(name, numbers[0], numbers[1], numbers[2] if len(numbers) == 3 else None, log=log)


def interval_or_steps(name: str, low: float, high: float, step: float | None = None, *, log: bool = False) -> Dimension:
    """From `low` to `high`: the numbers that are `step` apart, 1 for whole numbers; else the interval. Raises
    SpaceError."""
    given = f"{low:g} to {high:g}"
    if low >= high:
        raise SpaceError(f"{name} from {given} ends before it begins")
    if log and low <= 0:
        raise SpaceError(f"{name} from {given} begins at {low:g}, which has no logarithm")
    whole = all(isinstance(each, int) for each in (low, high, step or 1)) and not log
    if step is None and not whole:
        return Interval(name, float(low), float(high), log)
    step = 1 if step is None else step
    if step <= 0:
        raise SpaceError(f"{name} has no step that leads from {given}: it is {step:g}")
    steps = (high - low) / step * (1 + 1e-9)
    if not steps < MAX_POINTS:
        raise SpaceError(f"{name} from {given} by {step:g} has {steps + 1:.0f} values, and {MAX_POINTS} is the limit")
    values = [low + at * step for at in range(math.floor(steps) + 1)]
    return Choice(name, tuple(values if whole else (float(f"{each:.12g}") for each in values)))
