"""Run records → the answers of models.py. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold_control_api.figures import TableFigures
from tenfold_control_api.models import Condition
from tenfold_control_api.problems import ApiError
from tenfold_control_api.runs.detail_models import SourceView
from tenfold_control_api.runs.details import parameters_of, source_of
from tenfold_control_api.runs.models import (
    CheckpointReport,
    CurveView,
    DistributionView,
    ProgressView,
    Restarts,
    RunProgressView,
    RunTaskView,
    RunView,
    TaskError,
    TaskProgressView,
)
from tenfold_control_api.runs.progress import DISTRIBUTION, summed_up
from tenfold_control_api.tables import TableParts
from tenfold_control_api.views import timestamp
from tenfold_core.device import task_name
from tenfold_core.exit_codes import signal_name
from tenfold_core.master_jobs import MASTER_JOBS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tenfold_control_api.runs.progress import Curve, Summary, TaskProgress
    from tenfold_control_api.runs.record import RunRecord


def run_view(run: RunRecord, tasks: Sequence[TaskProgress] = ()) -> RunView:
    """`tasks`: what its programs reported."""
    given = run.submission
    return RunView(
        name=run.id,
        uid=run.id,
        version=run.version,
        state=run.state,
        conditions=[Condition(type="Ended", status=run.state.final, reason=run.state.capitalize(), message=run.reason)],
        submission_id=run.submission_id,
        launcher=run.launcher,
        entrypoint=given["entrypoint"],
        working_dir=given["working_dir"],
        package=given.get("package"),
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
        progress=progress_view(run, tasks),
        tasks=[task_view(task) for task in run.tasks],
        **_details_view(run.details),
    )


def _details_view(details: Mapping[str, Any]) -> dict[str, Any]:
    told, source = details.get("recorded", {}), source_of(details)
    return {
        "display_name": details.get("display_name"),
        "tags": details.get("tags", []),
        "notes": details.get("notes", ""),
        "parameters": parameters_of(details),
        "versions": told.get("versions", {}),
        "seed": told.get("seed"),
        "source": None if source is None else SourceView(**source),
    }


def summary_of(run: RunRecord, tasks: Sequence[TaskProgress]) -> Summary | None:
    """What its programs reported, in one line; None where none has reported a step."""
    return summed_up(tasks, [(job, 0) for job in MASTER_JOBS if job in run.submission["jobs"]])


def progress_view(run: RunRecord, tasks: Sequence[TaskProgress]) -> ProgressView | None:
    found = summary_of(run, tasks)
    if found is None:
        return None
    return ProgressView(
        global_step=found.global_step,
        steps_per_second=_rate(found.steps_per_second),
        examples_per_second=_rate(found.examples_per_second),
        last_step=found.last_step,
        percent=found.percent,
        seconds_left=None if run.state.final else found.seconds_left,
        values=dict(found.values),
        checkpoint=found.checkpoint,
        updated=timestamp(found.updated),
    )


def curves_view(run: RunRecord, tasks: Sequence[TaskProgress]) -> RunProgressView:
    parts = TableParts()
    for task in tasks:
        tables, told = [TableFigures.model_construct(**each) for each in task.tables], task.figures
        parts.add(
            task.job, task.index, tables, told.get("table_rows"), told.get("table_bytes"), told.get("tables_left_out")
        )
    return RunProgressView(
        run=run.id,
        progress=progress_view(run, tasks),
        tasks=[
            TaskProgressView(
                job=task.job,
                index=task.index,
                updated=timestamp(task.updated),
                steps=task.steps,
                global_step=task.global_step,
                last_step=task.last_step,
                steps_per_second=task.steps_per_second,
                examples_per_second=task.examples_per_second,
                curves={name: curve_view(curve) for name, curve in task.curves.items()},
                global_steps=curve_view(task.global_steps),
                speed=curve_view(task.speed),
                used={name: curve_view(curve) for name, curve in task.used.items()},
                distributions={name: distribution_view(curve) for name, curve in task.distributions.items()},
                checkpoints=[CheckpointReport(**each) for each in task.checkpoints],
                logdirs=task.logdirs,
                figures=task.figures,
                tables=_tables(task),
            )
            for task in tasks
        ],
        tables=parts.view(),
    )


def _tables(task: TaskProgress) -> list[TableFigures]:
    return [TableFigures.model_construct(**each) for each in task.tables]


def curve_view(curve: Curve) -> CurveView:
    """The curve's points, the newest of them last."""
    points: list[Any] = curve.shown()
    return CurveView(
        times=[time for time, _, _ in points],
        steps=[step for _, step, _ in points],
        values=[value for _, _, value in points],
    )


def distribution_view(curve: Curve) -> DistributionView:
    """The curve of a histogram, the newest of its points last."""
    points = curve.shown()
    return DistributionView(
        times=[time for time, _, _ in points],
        steps=[step for _, step, _ in points],
        **{name: [value[at] for _, _, value in points] for at, name in enumerate(DISTRIBUTION)},
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
        page=task.get("page"),
        exit_code=code,
        signal=signal_name(-code) if code is not None and code < 0 else None,
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
            raise ApiError(
                "no-such-task", f"run {run.id} has no task {task!r}; it has {', '.join(sorted(known)[:20])}."
            )
    return [task for task in dict.fromkeys(wanted) if task in there]


def _rate(number: float | None) -> float | None:
    return None if number is None else round(number, 3)


def _time(seconds: float | None) -> str | None:
    return None if seconds is None else timestamp(seconds)
