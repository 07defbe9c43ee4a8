"""Run records → the answers of models.py. Pure."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any

from tenfold_control_api.models import Condition
from tenfold_control_api.problems import not_found
from tenfold_control_api.runs.models import Restarts, RunTaskView, RunView, TaskError
from tenfold_control_api.views import timestamp
from tenfold_core.device import task_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tenfold_control_api.runs.record import RunRecord


def run_view(run: RunRecord) -> RunView:
    given = run.submission
    return RunView(
        name=run.id,
        uid=run.id,
        version=run.version,
        state=run.state,
        conditions=[
            Condition(type="Ended", status=run.state.final, reason=run.state.capitalize(), message=run.reason)
        ],
        submission_id=run.submission_id,
        launcher=run.launcher,
        entrypoint=given["entrypoint"],
        working_dir=given["working_dir"],
        environment=sorted(given["environment"]),
        jobs=given["jobs"],
        success=given["success"],
        restarts=Restarts(**given["restarts"]),
        deadline=given["deadline"],
        reason=run.reason,
        stop=run.stop,
        attempt=run.attempt,
        restarts_used=run.restarts,
        created=timestamp(run.created),
        started=_time(run.started),
        ended=_time(run.ended),
        tasks=[task_view(task) for task in run.tasks],
    )


def task_view(task: Mapping[str, Any]) -> RunTaskView:
    code, error = task["exit_code"], task["error"]
    return RunTaskView(
        name=task_name(task["job"], task["index"]),
        job=task["job"],
        index=task["index"],
        state=task["state"],
        starts=task["starts"],
        host=task["host"],
        pid=task["pid"],
        exit_code=code,
        signal=_signal(-code) if code is not None and code < 0 else None,
        started=_time(task["started"]),
        ended=_time(task["ended"]),
        error=None if error is None else TaskError(**error),
        last_lines=task["last_lines"],
    )


def chosen_tasks(run: RunRecord, there: Sequence[str], wanted: Sequence[str] | None) -> list[str]:
    """The tasks whose logs are shown: all that wrote, or those that are wanted. Raises NOT_FOUND for one that the run
    does not have."""
    if wanted is None:
        return list(there)
    known = {*there, *(f"{job}/{index}" for job, size in run.submission["jobs"].items() for index in range(size))}
    for task in wanted:
        if task not in known:
            raise not_found(
                f"run {run.id} has no task {task!r}; it has {', '.join(sorted(known)[:20])}.", "no-such-task"
            )
    return [task for task in dict.fromkeys(wanted) if task in there]


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _time(seconds: float | None) -> str | None:
    return None if seconds is None else timestamp(seconds)
