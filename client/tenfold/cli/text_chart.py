"""Curves as text: a letter for each curve on a grid of characters, with the range of both axes. Pure."""

from __future__ import annotations

import math
from bisect import bisect_right
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

#: x and y of each point, in the order of x.
Points = list[tuple[float, float]]
#: Where several curves meet.
_SEVERAL = "*"


def chart(curves: Sequence[tuple[str, Points]], width: int, height: int) -> list[str]:
    """Lines of text: `width` columns at most, `height` rows, and a line for x below. A curve is a mark, one character,
    and its points; those that are not finite are left out. [] where no point is left."""
    kept = [
        (mark, sorted((x, y) for x, y in points if math.isfinite(x) and math.isfinite(y))) for mark, points in curves
    ]
    every = [point for _, points in kept for point in points]
    if not every:
        return []
    (left, right), (low, high) = ((min(values), max(values)) for values in zip(*every, strict=True))
    labels = [f"{high:.4g}", f"{low:.4g}"]
    margin = max(map(len, labels))
    columns = max(2, width - margin - 2)
    grid = [[" "] * columns for _ in range(height)]
    for mark, points in kept:
        for column in range(columns):
            y = _value(points, left + (right - left) * column / (columns - 1), (right - left) / (columns - 1))
            if y is not None:
                row = height - 1 - (round((y - low) / (high - low) * (height - 1)) if high > low else 0)
                grid[row][column] = mark if grid[row][column] in (" ", mark) else _SEVERAL
    beside = {0: labels[0], height - 1: labels[1]}
    lines = [f"{beside.get(at, ''):>{margin}} │{''.join(row).rstrip()}" for at, row in enumerate(grid)]
    ends = f"{left:.6g}", f"{right:.6g}"
    return [*lines, f"{'':>{margin}} └{ends[0]}{ends[1]:>{max(1, columns - len(ends[0]))}}"]


def _value(points: Points, x: float, gap: float) -> float | None:
    """The curve's value at x, on the line between its neighbours; None further than half a column off its ends."""
    if not points or not points[0][0] - gap / 2 <= x <= points[-1][0] + gap / 2:
        return None
    after = bisect_right(points, (x, math.inf))
    if after == 0:
        return points[0][1]
    if after == len(points):
        return points[-1][1]
    (x0, y0), (x1, y1) = points[after - 1], points[after]
    return y0 + (y1 - y0) * (x - x0) / (x1 - x0)
