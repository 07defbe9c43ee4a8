"""Sweep records → the answers of models.py. Pure."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, get_args

from tenfold_control_api.models import Condition
from tenfold_control_api.sweeps.driver import curve_of
from tenfold_control_api.sweeps.machine import ENDED, REFUSED, RUNNING, WAITING
from tenfold_control_api.sweeps.models import SweepSummary, SweepView, TrialState, TrialView
from tenfold_control_api.views import timestamp

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tenfold_control_api.runs.progress import TaskProgress
    from tenfold_control_api.sweeps.record import SweepRecord

_STATES = {WAITING: "WAITING", RUNNING: "RUNNING", REFUSED: "REFUSED"}


def running(sweep: SweepRecord) -> list[str]:
    """The runs that go on."""
    return [kept["run"] for kept in sweep.trials if kept is not None and kept["phase"] == RUNNING]


def summary(sweep: SweepRecord) -> SweepSummary:
    return SweepSummary(**_members(sweep))


def view(sweep: SweepRecord, progress: Mapping[str, Sequence[TaskProgress]]) -> SweepView:
    """`progress`: of the runs that go on."""
    trials = [_trial(sweep, index, progress) for index in range(len(sweep.points))]
    known = [trial for trial in trials if isinstance(trial.best, (int, float))]
    sign = 1 if sweep.definition["goal"] == "min" else -1
    best = min(known, key=lambda trial: sign * float(trial.best or 0), default=None)
    return SweepView(**_members(sweep), trials=trials, best=best)


def _members(sweep: SweepRecord) -> dict[str, Any]:
    asked = sweep.definition
    states = Counter(_state(sweep.trials[index] if sweep.trials else None) for index in range(len(sweep.points)))
    return {
        "name": sweep.name,
        "uid": sweep.name,
        "version": sweep.version,
        "state": sweep.state,
        "conditions": [
            Condition(type="Ended", status=sweep.state.final, reason=sweep.state.capitalize(), message=sweep.reason)
        ],
        "reason": sweep.reason,
        "stop": sweep.stop,
        "created": timestamp(sweep.created),
        "ended": None if sweep.ended is None else timestamp(sweep.ended),
        "launcher": asked["launcher"],
        "entrypoint": asked["program"]["entrypoint"],
        "metric": asked["metric"],
        "goal": asked["goal"],
        "parallel": asked["parallel"],
        "settings": len(sweep.points),
        "counts": {state: states[state] for state in get_args(TrialState)},
    }


def _state(kept: Mapping[str, Any] | None) -> str:
    if kept is None:
        return _STATES[WAITING]
    return str(kept["state"]) if kept["phase"] == ENDED else _STATES[kept["phase"]]


def _trial(sweep: SweepRecord, index: int, progress: Mapping[str, Sequence[TaskProgress]]) -> TrialView:
    kept = sweep.trials[index] if sweep.trials else None
    known: Mapping[str, Any] = kept or {"run": None, "early": False, "reason": None, "best": None}
    best, metric = known["best"], sweep.definition["metric"]
    if known["run"] in progress and metric is not None and best is None:
        best = sweep.rule.best(curve_of(progress[known["run"]], metric))
    return TrialView(
        index=index,
        state=_state(kept),  # type: ignore[arg-type]
        parameters=dict(sweep.points[index]),
        run=known["run"],
        stopped_early=known["early"],
        reason=known["reason"],
        best=best,
    )
