"""`/v1/runs`: submitting a program, how it goes, its logs, stopping and deleting it."""

import asyncio
import hashlib
from dataclasses import asdict
from typing import Annotated, Literal

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import PlainTextResponse
from starlette.types import Scope

from tenfold_control_api.control import Control
from tenfold_control_api.entry import caller_of, require_owner
from tenfold_control_api.openapi import problems
from tenfold_control_api.routes.common import ControlDep, JsonBody, seconds
from tenfold_control_api.routes.pages import LIMIT, After, Limit, following, place
from tenfold_control_api.runs import log_files, log_stream, views
from tenfold_control_api.runs.detail_models import RunEdit
from tenfold_control_api.runs.joined import Newcomer
from tenfold_control_api.runs.models import (
    LogLine,
    LogPage,
    ProgramReport,
    ProgramReportView,
    ReportView,
    RunJoin,
    RunList,
    RunPlaceView,
    RunProgressView,
    RunReport,
    RunStop,
    RunSubmission,
    RunView,
    dumped,
    given_details,
)
from tenfold_control_api.runs.record import RunRecord
from tenfold_control_api.why.models import WhyOrder
from tenfold_core.run_states import RunState

router = APIRouter(prefix="/v1/runs", tags=["runs"])


@router.post(
    "",
    summary="Submit a program",
    openapi_extra=problems(
        "runs-not-allowed",
        "run-too-large",
        "run-without-worker",
        "empty-entrypoint",
        "invalid-launcher",
        "launcher-not-usable",
        "working-dir-and-package",
        "no-such-working-dir",
        "no-such-package",
        "no-such-program",
        "submission-differs",
        "too-many-runs",
        "run-deleted",
    ),
    dependencies=[JsonBody],
    responses={201: {"model": RunView, "description": "The run is new."}},
)
async def submit_run(body: RunSubmission, request: Request, response: Response, control: ControlDep) -> RunView:
    """The program starts as every task of a cluster: on the service's machine, or wherever a launcher such as
    `"launcher": "ssh"` starts tasks. With `"launcher": "external"` the caller has started it, and reports. Repeating a
    `submission_id` returns the same run (200) and starts nothing; with a different submission it is 409."""
    submission_id = body.submission_id
    who = caller_of(request.scope).principal
    if submission_id is None and (key := request.headers.get("idempotency-key")) is not None:
        # a service that dies over the request leaves the run to the next one that is asked
        submission_id = f"key-{hashlib.sha256(repr((who, key)).encode()).hexdigest()[:32]}"
    run, created = await control.runs.submit(dumped(body), submission_id, body.launcher, who, given_details(body))
    response.status_code = 201 if created else 200
    response.headers["Location"] = f"/v1/runs/{run.id}"
    return await _view(control, run)


@router.post(
    ":join",
    summary="List a manually started program",
    dependencies=[JsonBody],
    openapi_extra=problems("no-run-to-join", "no-such-task", "run-too-large", "too-many-runs", "too-many-changes"),
)
async def join_run(body: RunJoin, request: Request, control: ControlDep) -> RunPlaceView:
    """The program becomes a task of the active run with its `key`, or of a new one, and reports as that task from then
    on. The same process gets the same place again. A program that has not reported for longer than a lease has failed;
    the run ends when its programs have ended."""
    submission = None
    if body.create:
        jobs = {**body.jobs}
        if body.index is not None:
            jobs[body.job] = max(jobs.get(body.job, 0), body.index + 1)
        told = RunSubmission(
            launcher="external",
            entrypoint=body.entrypoint,
            working_dir=body.working_dir,
            jobs=jobs or {body.job: 1},
        )
        submission = dumped(told)
    newcomer = Newcomer(body.key, body.job, body.index, body.process.host, body.process.pid)
    run, index = await control.runs.join(newcomer, submission, caller_of(request.scope).principal)
    return RunPlaceView(run=run.id, job=body.job, index=index, heartbeat=control.settings.progress_interval)


@router.get("", summary="Runs, newest first, in pages", openapi_extra=problems("invalid-cursor", "invalid-filter"))
async def list_runs(
    control: ControlDep,
    state: Annotated[list[RunState] | None, Query(description="Only runs in one of these states.")] = None,
    filter: Annotated[str | None, Query(description="Only runs that match this filter: tag=a and lr>0.01")] = None,
    sort: Annotated[
        str | None,
        Query(max_length=300, description="A name, for the smallest value first; -name, for the largest first."),
    ] = None,
    limit: Limit = LIMIT,
    after: After = None,
) -> RunList:
    if filter is not None or sort is not None:
        chosen = await control.runs.select(
            state or [], filter, sort or "-created", limit + 1, place(after, float, float, str, str)
        )
        shown, more = following(chosen, limit, lambda each: tuple(each[0]))
        progress = await control.runs.progress.newest_of([run.id for _, run in shown])
        return RunList(runs=[views.run_view(run, progress[run.id]) for _, run in shown], next=more)
    found = await control.runs.page(state or [], limit + 1, place(after, float, str))
    page, more = following(found, limit, lambda run: (run.created, run.id))
    progress = await control.runs.progress.newest_of([run.id for run in page])
    return RunList(runs=[views.run_view(run, progress[run.id]) for run in page], next=more)


@router.get(
    "/{run:name}",
    summary="One run, by long-poll",
    openapi_extra=problems("no-such-run", "invalid-duration", "too-many-watchers", "stopping"),
)
async def get_run(
    run: str,
    control: ControlDep,
    after: Annotated[int | None, Query(ge=0, description="Answer when the version is above this one.")] = None,
    ended: Annotated[bool, Query(description="Answer when the run has ended.")] = False,
    wait: Annotated[str, Query(description="How long to wait for that: 30s, 500ms, 1m.")] = "0s",
) -> RunView:
    """When the wait expires, the answer is the current run."""

    def satisfied(now: RunRecord) -> bool:
        return (after is None or now.version > after) and (now.state.final or not ended)

    return await _view(control, await control.runs.wait(run, satisfied, seconds(wait, control.settings.max_wait)))


@router.post(
    "/{run}:stop",
    summary="Stop a run",
    dependencies=[JsonBody],
    openapi_extra=problems("no-such-run", "owned-by-another", "too-many-changes"),
)
async def stop_run(run: str, request: Request, control: ControlDep, body: RunStop | None = None) -> RunView:
    """For its submitter and the role admin. Its tasks get SIGTERM, parameter servers last, and SIGKILL after
    `stop_grace`. A run that has ended is not changed."""
    await owned_run(run, request, control)
    return await _view(control, await control.runs.ask_to_stop(run, (body or RunStop()).reason))


@router.patch(
    "/{run:name}",
    summary="Change the name, tags, notes and parameters of a run",
    dependencies=[JsonBody],
    openapi_extra=problems("no-such-run", "owned-by-another", "too-many-changes"),
)
async def edit_run(run: str, body: RunEdit, request: Request, control: ControlDep) -> RunView:
    """For its submitter and the role admin. The run may have ended."""
    await owned_run(run, request, control)
    return await _view(control, await control.runs.edit(run, body.model_dump(mode="json", exclude_unset=True)))


@router.get(
    "/{run}/diff",
    summary="How a run's files differed from their commit",
    response_class=PlainTextResponse,
    openapi_extra=problems("no-such-run"),
)
async def get_diff(run: str, control: ControlDep) -> PlainTextResponse:
    """The output of `git diff HEAD` in its working directory when the run started; empty if nothing differed or
    nothing is known. The run's `source.diff_truncated` says whether the end is missing."""
    return PlainTextResponse(await control.runs.diff(await control.runs.get(run)))


@router.delete(
    "/{run:name}", summary="Delete a run that has ended", openapi_extra=problems("no-such-run", "run-active")
)
async def delete_run(run: str, control: ControlDep) -> RunView:
    """Its logs are deleted with it."""
    return views.run_view(await control.runs.delete(run))


@router.post(
    "/{run}:report",
    summary="Report a run's state, from its supervisor",
    dependencies=[JsonBody],
    openapi_extra=problems("no-such-run", "run-ended", "run-taken", "run-joined", "too-many-changes"),
)
async def report_run(run: str, body: RunReport, control: ControlDep) -> ReportView:
    """Also the supervisor's heartbeat. 410 if the run has ended, or belongs to another supervisor."""
    record = await control.runs.report(run, body.model_dump(mode="json"))
    services = control.replicas.addresses()
    return ReportView(state=record.state, stop=record.stop, heartbeat=control.settings.heartbeat, services=services)


@router.get("/{run}/progress", summary="The curves of a run, by task", openapi_extra=problems("no-such-run"))
async def get_progress(run: str, control: ControlDep) -> RunProgressView:
    """The scalars that its programs fetch or write as summaries, their global steps, checkpoints and resource usage."""
    record = await control.runs.get(run)
    return views.curves_view(record, await control.runs.progress.of(record.id))


@router.post(
    "/{run}/tasks/{job}/{index}:report",
    summary="Report a program's progress",
    dependencies=[JsonBody],
    openapi_extra=problems(
        *("no-such-run", "no-such-task", "run-ended", "run-left", "run-without-process", "too-many-changes")
    ),
)
async def report_task(run: str, job: str, index: int, body: ProgramReport, control: ControlDep) -> ProgramReportView:
    """The program reports in batches. 410 once the run has ended."""
    stop = await control.runs.report_task(run, job, index, body.model_dump(mode="json"))
    order = control.run_traces.order_for(run, job, index)
    asked = control.why.order_for(run, job, index)
    return ProgramReportView(
        heartbeat=control.settings.progress_interval,
        stop=stop,
        trace=order,
        why=None if asked is None else WhyOrder(id=asked),
        services=control.replicas.addresses(),
    )


@router.get(
    "/{run}/logs",
    summary="The newest output of a run's tasks",
    response_model=LogPage,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}, "text/event-stream": {}}}},
    openapi_extra=problems("no-such-run", "no-logs", "no-such-task", "invalid-event-id", "too-many-followers"),
)
async def get_logs(
    run: str,
    request: Request,
    control: ControlDep,
    task: Annotated[list[str] | None, Query(description='Only of these tasks, as "worker/0".')] = None,
    tail: Annotated[int, Query(ge=0, le=100_000, description="Number of lines, for all tasks together.")] = 200,
    follow: Annotated[bool, Query(description="Continue as server-sent events until the run has ended.")] = False,
    format: Annotated[Literal["json", "text"], Query()] = "json",
    last_event_id: Annotated[str | None, Header(max_length=100_000)] = None,
) -> LogPage | Response:
    """Readable as long as the run exists, even after its tasks have ended. The newest 64 MiB of each task are kept.

    With `follow` each event holds `{"lines": […]}`, and a client resumes there with its id as Last-Event-ID; the last
    event is named `end`, with `{"state": …}`."""
    record = await control.runs.get(run)
    if follow:
        who = caller_of(request.scope).principal
        return await log_stream.follow(control.runs, record, task, tail, last_event_id, who)
    folder = control.runs.logs(record)
    there = await asyncio.to_thread(log_files.tasks_of, folder)
    chosen = views.chosen_tasks(record, there, task)
    lines = await asyncio.to_thread(log_files.tail, folder, chosen, tail)
    if format == "text":
        return PlainTextResponse("".join(f"{each.time} {each.level:8}{each.task} {each.text}\n" for each in lines))
    return LogPage(run=record.id, lines=[LogLine(**asdict(line)) for line in lines])


async def owned_run(run: str, request: Request, control: Control) -> RunRecord:
    """The run, if it is the caller's. Raises NOT_FOUND, PERMISSION_DENIED."""
    record = await control.runs.get(run)
    require_submitter(request.scope, record)
    return record


def require_submitter(scope: Scope, run: RunRecord) -> None:
    """Raises PERMISSION_DENIED unless the run is the caller's, or the caller an admin."""
    require_owner(scope, run.submitter, f"run {run.id}")


async def _view(control: Control, run: RunRecord) -> RunView:
    return views.run_view(run, await control.runs.progress.of(run.id))
