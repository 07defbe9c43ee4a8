"""How far a run is: what each of its programs reported, as bounded curves, and the one line that sums it up. Pure.

A curve has at most MAX_POINTS points: when it is full every second one goes, and from then on only every second one is
taken. So it spans the whole run, whatever its length, at the resolution that there is room for. pace.py looks ahead.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tenfold_control_api.runs.pace import pace, percent, seconds_left

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

MAX_POINTS = 500
#: Of a curve as it is shown: those that are kept, and the newest.
SHOWN_POINTS = MAX_POINTS + 1
#: Names of scalars of one task; of further ones nothing is kept.
MAX_CURVES = 64
#: Names of histograms of one task, and the numbers that are kept of each.
MAX_DISTRIBUTIONS = 32
DISTRIBUTION = ("lowest", "p5", "median", "p95", "highest", "norm")
#: The newest checkpoints of one task.
MAX_CHECKPOINTS = 20
#: Folders of event files of one task.
MAX_LOGDIRS = 20
#: Seconds after which what a program said of its speed is not added to that of others any more.
STALE_S = 10.0

#: What a process uses: the name of its curve → the figure of its reports, and whether that is a total which only grows.
USED = {
    "memory": ("resident_bytes", False),
    "variables": ("variable_bytes", False),
    "tables": ("table_bytes", False),
    "rows": ("table_rows", False),
    "processor": ("cpu_seconds", True),
    "sent": ("bytes_sent", True),
    "received": ("bytes_received", True),
}

#: (wall-clock seconds, global step or None, value); NaN and the infinities are words, as in JSON. Of a histogram the
#: value is a list, in the order of DISTRIBUTION.
Point = tuple[float, int | None, Any]


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

    def shown(self) -> list[Point]:
        """The points, the newest of them last."""
        return self.points if self.last is None or self.last == self.points[-1] else [*self.points, self.last]

    def to_json(self) -> dict[str, Any]:
        return {"points": self.points, "stride": self.stride, "skipped": self.skipped, "last": self.last}

    @staticmethod
    def from_json(kept: Mapping[str, Any]) -> Curve:
        last = None if kept["last"] is None else _point(kept["last"])
        return Curve([_point(each) for each in kept["points"]], kept["stride"], kept["skipped"], last)


@dataclass(slots=True)
class TaskProgress:
    """What one program reported so far."""

    job: str
    index: int
    updated: float = 0.0
    #: Steps that its sessions have run.
    steps: int = 0
    global_step: int | None = None
    #: Where its training stops.
    last_step: int | None = None
    steps_per_second: float | None = None
    examples_per_second: float | None = None
    #: Global steps a second in the last minutes.
    pace: float | None = None
    #: When the newest global step came.
    moved: float = 0.0
    curves: dict[str, Curve] = field(default_factory=dict)
    #: The global steps that it saw, and how many a second.
    global_steps: Curve = field(default_factory=Curve)
    speed: Curve = field(default_factory=Curve)
    #: What its process uses, by the names of USED.
    used: dict[str, Curve] = field(default_factory=dict)
    #: The histograms that it wrote.
    distributions: dict[str, Curve] = field(default_factory=dict)
    checkpoints: list[dict[str, Any]] = field(default_factory=list)
    #: Where it writes event files.
    logdirs: list[str] = field(default_factory=list)
    figures: dict[str, float] = field(default_factory=dict)
    #: The largest tables of its servers, in the form of `TableFigures`.
    tables: list[dict[str, Any]] = field(default_factory=list)

    def add(self, report: Mapping[str, Any], now: float) -> None:
        """One report, in the form of `ProgramReport`."""
        self._use(report["figures"], now)
        self.updated = now
        self.steps = report["steps"]
        self.figures = report["figures"]
        # servers that have ended tell of none: what they held last is what there is to see
        self.tables = report.get("tables") or self.tables
        if report["global_step"] is not None:
            if report["global_step"] != self.global_step:
                self.moved = now
            self.global_step = report["global_step"]
        if report.get("last_step") is not None:
            self.last_step = report["last_step"]
        for rate in ("steps_per_second", "examples_per_second"):
            # a report that comes before two steps have been seen knows none
            if report[rate] is not None:
                setattr(self, rate, report[rate])
        if self.steps_per_second is not None and report["points"]:
            self.speed.add((report["points"][-1]["time"], self.global_step, self.steps_per_second))
        for point in report["points"]:
            if point["step"] is not None:
                self.global_steps.add((point["time"], point["step"], point["step"]))
            place = point["time"], point["step"]
            for name, value in point["values"].items():
                _add(self.curves, name, MAX_CURVES, (*place, value))
            for name, found in point.get("distributions", {}).items():
                _add(self.distributions, name, MAX_DISTRIBUTIONS, (*place, [found[each] for each in DISTRIBUTION]))
        self.pace = pace(self.global_steps.points, self.global_steps.last, now - self.moved)
        self.checkpoints = (self.checkpoints + report["checkpoints"])[-MAX_CHECKPOINTS:]
        self.logdirs = list(dict.fromkeys((*self.logdirs, *report["logdirs"])))[-MAX_LOGDIRS:]

    def _use(self, figures: Mapping[str, float], now: float) -> None:
        """Adds what the process uses to the curves: of a total, how much a second it grew since the last report."""
        passed = now - self.updated
        for name, (figure, total) in USED.items():
            value, before = figures.get(figure), self.figures.get(figure)
            if total:
                # less than before: the task is another process now
                known = value is not None and before is not None and value >= before and passed > 0
                value = (value - before) / passed if known else None  # type: ignore[operator]
            if value is not None:
                self.used.setdefault(name, Curve()).add((now, self.global_step, value))

    def to_json(self) -> dict[str, Any]:
        return {
            "updated": self.updated,
            "steps": self.steps,
            "global_step": self.global_step,
            "last_step": self.last_step,
            "steps_per_second": self.steps_per_second,
            "examples_per_second": self.examples_per_second,
            "pace": self.pace,
            "moved": self.moved,
            "curves": {name: curve.to_json() for name, curve in self.curves.items()},
            "global_steps": self.global_steps.to_json(),
            "speed": self.speed.to_json(),
            "used": {name: curve.to_json() for name, curve in self.used.items()},
            "distributions": {name: curve.to_json() for name, curve in self.distributions.items()},
            "checkpoints": self.checkpoints,
            "logdirs": self.logdirs,
            "figures": self.figures,
            "tables": self.tables,
        }

    def newest(self) -> dict[str, Any]:
        """What `from_newest` takes: the newest of everything, and no curve."""
        return {
            "updated": self.updated,
            "steps": self.steps,
            "global_step": self.global_step,
            "last_step": self.last_step,
            "steps_per_second": self.steps_per_second,
            "examples_per_second": self.examples_per_second,
            "pace": self.pace,
            "values": {name: curve.last for name, curve in self.curves.items()},
            "checkpoints": self.checkpoints[-1:],
        }

    @staticmethod
    def from_newest(job: str, index: int, kept: Mapping[str, Any]) -> TaskProgress:
        """One whose curves have but their newest point."""
        curves = {name: Curve(last=_point(last)) for name, last in kept["values"].items() if last is not None}
        plain = {key: value for key, value in kept.items() if key != "values"}
        return TaskProgress(job, index, curves=curves, **plain)

    @staticmethod
    def from_json(job: str, index: int, kept: Mapping[str, Any]) -> TaskProgress:
        # what an older service wrote has not all members
        own: dict[str, Any] = {name: Curve.from_json(kept[name]) for name in ("global_steps", "speed") if name in kept}
        for member in ("used", "distributions"):
            own[member] = {name: Curve.from_json(curve) for name, curve in kept.get(member, {}).items()}
        curves = {name: Curve.from_json(curve) for name, curve in kept["curves"].items()}
        plain = {key: value for key, value in kept.items() if key not in ("curves", *own, "global_steps", "speed")}
        return TaskProgress(job, index, curves=curves, **own, **plain)


@dataclass(frozen=True, slots=True)
class Summary:
    """A run in one line: of the task that leads, which is the chief where it reports."""

    global_step: int | None
    steps_per_second: float | None
    #: Of all programs together that feed examples now.
    examples_per_second: float | None
    #: The newest value of each scalar.
    values: Mapping[str, Any]
    checkpoint: str | None
    updated: float
    #: The global step at which the training stops, how many hundredths of it are done, and how long the rest will take.
    last_step: int | None = None
    percent: float | None = None
    seconds_left: float | None = None


def summed_up(tasks: Iterable[TaskProgress], leaders: Sequence[tuple[str, int]]) -> Summary | None:
    """None if no program has reported a step. `leaders`: tasks whose scalars count first."""
    active = [task for task in tasks if task.steps]
    if not active:
        return None
    rank = {key: at for at, key in enumerate(leaders)}
    ordered = sorted(active, key=lambda task: (rank.get((task.job, task.index), len(rank)), task.job, task.index))
    counting = [task for task in ordered if task.global_step is not None]
    furthest = max(counting, key=lambda task: task.global_step or 0, default=None)
    # where no program tells a global step, the leader's own steps are the run's
    leading = furthest or ordered[0]
    newest = max(task.updated for task in active)
    feeding = [
        task.examples_per_second
        for task in active
        if task.examples_per_second is not None and newest - task.updated < STALE_S
    ]
    values: dict[str, float | str] = {}
    for task in reversed(ordered):
        values |= {name: curve.last[2] for name, curve in task.curves.items() if curve.last is not None}
    last_step = next((task.last_step for task in (leading, *ordered) if task.last_step is not None), None)
    checkpoints = sorted((each["time"], each["path"]) for task in ordered for each in task.checkpoints)
    return Summary(
        None if furthest is None else furthest.global_step,
        leading.steps_per_second,
        sum(feeding) if feeding else None,
        values,
        checkpoints[-1][1] if checkpoints else None,
        newest,
        last_step,
        percent(leading.global_step, last_step),
        seconds_left(leading.global_step, last_step, leading.pace),
    )


def _add(curves: dict[str, Curve], name: str, limit: int, point: Point) -> None:
    """Adds a point to the curve of that name, which is new where there is room for one more."""
    if name in curves or len(curves) < limit:
        curves.setdefault(name, Curve()).add(point)


def _point(kept: Sequence[Any]) -> Point:
    moment, step, value = kept
    return moment, step, value
