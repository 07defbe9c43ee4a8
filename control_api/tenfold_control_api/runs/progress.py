"""How far a run is: what each of its programs reported, as bounded curves, and the one line that sums it up. Pure.

A curve has at most MAX_POINTS points: when it is full every second one goes, and from then on only every second one is
taken. So it spans the whole run, whatever its length, at the resolution that there is room for.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

MAX_POINTS = 500
#: Names of scalars of one task; of further ones nothing is kept.
MAX_CURVES = 64
#: The newest checkpoints of one task.
MAX_CHECKPOINTS = 20

#: (wall-clock seconds, global step or None, value); NaN and the infinities are words, as in JSON.
Point = tuple[float, int | None, "float | str"]


@dataclass(slots=True)
class Curve:
    """One scalar over time. `stride`: one of so many points is kept; `skipped` counts since the last one."""

    points: list[Point] = field(default_factory=list)
    stride: int = 1
    skipped: int = 0
    #: The newest value, kept or not.
    last: Point | None = None

    def add(self, point: Point) -> None:
        self.last = point
        self.skipped += 1
        if self.skipped < self.stride and self.points:
            return
        self.skipped = 0
        self.points.append(point)
        if len(self.points) >= MAX_POINTS:
            # the one just added goes, too, so that the gaps stay even
            del self.points[1::2]
            self.skipped = self.stride
            self.stride *= 2


@dataclass(slots=True)
class TaskProgress:
    """What one program reported so far."""

    job: str
    index: int
    updated: float = 0.0
    #: Steps that its sessions have run.
    steps: int = 0
    global_step: int | None = None
    steps_per_second: float | None = None
    curves: dict[str, Curve] = field(default_factory=dict)
    checkpoints: list[dict[str, Any]] = field(default_factory=list)
    figures: dict[str, float] = field(default_factory=dict)

    def add(self, report: Mapping[str, Any], now: float) -> None:
        """One report, in the form of `ProgramReport`."""
        self.updated = now
        self.steps = report["steps"]
        self.figures = report["figures"]
        if report["global_step"] is not None:
            self.global_step = report["global_step"]
            self.steps_per_second = report["steps_per_second"]
        for point in report["points"]:
            for name, value in point["values"].items():
                curve = self.curves.get(name)
                if curve is None:
                    if len(self.curves) >= MAX_CURVES:
                        continue
                    curve = self.curves[name] = Curve()
                curve.add((point["time"], point["step"], value))
        self.checkpoints = (self.checkpoints + report["checkpoints"])[-MAX_CHECKPOINTS:]

    def to_json(self) -> dict[str, Any]:
        return {
            "updated": self.updated,
            "steps": self.steps,
            "global_step": self.global_step,
            "steps_per_second": self.steps_per_second,
            "curves": {
                name: {"points": curve.points, "stride": curve.stride, "skipped": curve.skipped, "last": curve.last}
                for name, curve in self.curves.items()
            },
            "checkpoints": self.checkpoints,
            "figures": self.figures,
        }

    @staticmethod
    def from_json(job: str, index: int, kept: Mapping[str, Any]) -> TaskProgress:
        curves = {
            name: Curve(
                [_point(each) for each in curve["points"]],
                curve["stride"],
                curve["skipped"],
                None if curve["last"] is None else _point(curve["last"]),
            )
            for name, curve in kept["curves"].items()
        }
        plain = {key: value for key, value in kept.items() if key != "curves"}
        return TaskProgress(job, index, curves=curves, **plain)


@dataclass(frozen=True, slots=True)
class Summary:
    """A run in one line: of the task that leads, which is the chief where it reports."""

    global_step: int | None
    steps_per_second: float | None
    #: The newest value of each scalar.
    values: Mapping[str, Any]
    checkpoint: str | None
    updated: float


def summed_up(tasks: Iterable[TaskProgress], leaders: Sequence[tuple[str, int]]) -> Summary | None:
    """None if no program has reported a step. `leaders`: tasks whose scalars count first."""
    active = [task for task in tasks if task.steps]
    if not active:
        return None
    rank = {key: at for at, key in enumerate(leaders)}
    ordered = sorted(active, key=lambda task: (rank.get((task.job, task.index), len(rank)), task.job, task.index))
    counting = [task for task in ordered if task.global_step is not None]
    furthest = max(counting, key=lambda task: task.global_step or 0, default=None)
    values: dict[str, float | str] = {}
    for task in reversed(ordered):
        values |= {name: curve.last[2] for name, curve in task.curves.items() if curve.last is not None}
    checkpoints = sorted((each["time"], each["path"]) for task in ordered for each in task.checkpoints)
    return Summary(
        None if furthest is None else furthest.global_step,
        None if furthest is None else furthest.steps_per_second,
        values,
        checkpoints[-1][1] if checkpoints else None,
        max(task.updated for task in active),
    )


def _point(kept: Sequence[Any]) -> Point:
    moment, step, value = kept
    return moment, step, value
