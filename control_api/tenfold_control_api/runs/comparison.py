"""Several runs side by side: their parameters, what else tells them apart, and their curves. Pure.

Called by routes/comparison.py. Rows in which the runs differ come first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold_control_api.runs import views
from tenfold_control_api.runs.comparison_models import ComparedScalar, ComparedValue, ComparisonView
from tenfold_control_api.runs.details import parameters_of, source_of
from tenfold_control_api.runs.models import CurveView
from tenfold_control_api.runs.progress import SHOWN_POINTS
from tenfold_core.master_jobs import master_order

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tenfold_control_api.runs.progress import Curve, TaskProgress
    from tenfold_control_api.runs.record import RunRecord

#: A run, and what its programs reported.
Compared = tuple["RunRecord", "Sequence[TaskProgress]"]


def compare(compared: Sequence[Compared], scalars: Sequence[str] = (), points: int = SHOWN_POINTS) -> ComparisonView:
    """The runs in the order in which they are given; of all their scalars, or those that are named, with so many points
    of each curve at most."""
    curves = [_curves(tasks) for _, tasks in compared]
    names = sorted({name for each in curves for name in each if not scalars or name in scalars})
    return ComparisonView(
        runs=[views.run_view(run, tasks) for run, tasks in compared],
        parameters=_rows([parameters_of(run.details) for run, _ in compared]),
        facts=_rows([_facts(run) for run, _ in compared]),
        scalars=[_scalar(name, [each.get(name) for each in curves], points) for name in names],
    )


def _rows(runs: Sequence[Mapping[str, Any]]) -> list[ComparedValue]:
    names = sorted({name for each in runs for name in each})
    rows = []
    for name in names:
        values = [each.get(name) for each in runs]
        # 1, 1.0 and true are equal to Python, and are not the same parameter
        differs = len({(type(value) in (bool, str), value) for value in values}) > 1
        rows.append(ComparedValue(name=name, differs=differs, values=values))
    return sorted(rows, key=lambda row: not row.differs)


def _facts(run: RunRecord) -> dict[str, Any]:
    told, source = run.details.get("recorded", {}), source_of(run.details) or {}
    found = {
        "state": str(run.state),
        "program": " ".join(run.submission["entrypoint"]),
        "jobs": ", ".join(f"{job}={size}" for job, size in run.submission["jobs"].items()),
        "launcher": run.launcher,
        "commit": source.get("commit"),
        "changed files": source.get("dirty"),
        "seed": told.get("seed"),
        "seconds": None if run.started is None or run.ended is None else round(run.ended - run.started, 3),
        **told.get("versions", {}),
    }
    return {name: value for name, value in found.items() if value is not None}


def _curves(tasks: Sequence[TaskProgress]) -> dict[str, Curve]:
    """By name, of the task that leads among those that have it."""
    found: dict[str, Curve] = {}
    for task in sorted(tasks, key=lambda each: master_order(each.job, each.index), reverse=True):
        found.update({name: curve for name, curve in task.curves.items() if curve.last is not None})
    return found


def _scalar(name: str, curves: Sequence[Curve | None], points: int) -> ComparedScalar:
    shown = [None if curve is None else views.curve_view(curve) for curve in curves]
    numbers = [[] if curve is None else [v for v in curve.values if not isinstance(v, str)] for curve in shown]
    return ComparedScalar(
        name=name,
        newest=[None if curve is None else curve.values[-1] for curve in shown],
        lowest=[min(each, default=None) for each in numbers],
        highest=[max(each, default=None) for each in numbers],
        curves=[None if curve is None else _thinned(curve, points) for curve in shown],
    )


def _thinned(curve: CurveView, most: int) -> CurveView:
    """Points of the curve as far apart as `most` of them need, the newest one among them."""
    count = len(curve.values)
    if count <= most:
        return curve
    kept = [round(at * (count - 1) / (most - 1)) for at in range(most)]
    return CurveView(
        times=[curve.times[at] for at in kept],
        steps=[curve.steps[at] for at in kept],
        values=[curve.values[at] for at in kept],
    )
