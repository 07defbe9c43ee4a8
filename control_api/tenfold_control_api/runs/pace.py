"""How far a training is on its way to its last step, and how long the rest will take. Pure; used by progress.py.

The pace is that of the last minutes, not of the last report: a checkpoint that is saved, or an evaluation, slows some
seconds and not the rest of the run. While nothing moves, the time that passes counts too, so that the rest grows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    #: As progress.py has it; the value is the step.
    Point = tuple[float, int | None, Any]

#: Seconds that the pace is taken over.
WINDOW_S = 300.0
#: Over less than this a pace is noise.
_SHORTEST_S = 1.0
#: Seconds before the newest step in which a higher one is no sign of a restore: sessions see it before or after an
#: update.
_UNORDERED_S = 5.0


def pace(points: Sequence[Point], last: Point | None, still: float) -> float | None:
    """Global steps a second, up to the step `last` and `still` seconds in which none came after it. `points`: (seconds,
    step, …), the oldest first, some of the steps before. None where they do not tell."""
    if last is None or last[1] is None:
        return None
    moment, step = last[0], last[1]
    begin: Point | None = None
    for point in reversed(points):
        if point[0] >= moment:
            continue  # the newest one itself
        if point[1] is None or point[1] > step:
            if moment - point[0] < _UNORDERED_S:
                continue
            break  # from before a checkpoint was restored
        if begin is not None and moment - point[0] > WINDOW_S:
            break
        # of a long run the points may lie further apart than that
        begin = point
    if begin is None or begin[1] is None:
        return None
    passed = moment - begin[0] + max(0.0, still)
    return (step - begin[1]) / passed if passed >= _SHORTEST_S and step > begin[1] else None


def percent(step: int | None, last_step: int | None) -> float | None:
    """0 to 100, with one decimal; 100 not before the last step."""
    if step is None or not last_step:
        return None
    done = min(max(step, 0), last_step)
    return done * 1000 // last_step / 10


def seconds_left(step: int | None, last_step: int | None, pace: float | None) -> float | None:
    """Whole seconds until the last step; 0 once it is there. None where the end or the pace is not known."""
    if step is None or last_step is None:
        return None
    if step >= last_step:
        return 0.0
    return None if not pace else float(round((last_step - step) / pace))
