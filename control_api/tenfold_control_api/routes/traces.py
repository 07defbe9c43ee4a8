"""Traces: `POST /v1/sessions/{session}:trace`, `POST /v1/runs/{run}:trace`, `/v1/runs/{run}/traces`."""

from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from tenfold_control_api.asgi import acting
from tenfold_control_api.openapi import problems
from tenfold_control_api.routes.common import ControlDep, JsonBody, seconds
from tenfold_control_api.routes.program_messages import received, taking
from tenfold_control_api.routes.runs import require_submitter
from tenfold_control_api.routes.sessions import STEP_BODY, owned_session, step_of
from tenfold_control_api.runs.models import RunTrace
from tenfold_control_api.steps import JSON, read_apart
from tenfold_control_api.traces.session_trace import hosts_of, traced
from tenfold_protos.trace_pb2 import ProgramTrace

router = APIRouter()

#: OpenAPI's description of the file.
_FILE: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "A trace for ui.perfetto.dev and chrome://tracing.",
        "content": {
            JSON: {
                "schema": {
                    "type": "object",
                    "required": ["traceEvents", "metadata"],
                    "properties": {
                        "traceEvents": {
                            "type": "array",
                            "items": {"type": "object"},
                            "description": "Chrome's trace events: what each task did, and when.",
                        },
                        "metadata": {"type": "object", "description": "Clocks, steps, and missing tasks."},
                    },
                }
            }
        },
    }
}


@router.post(
    "/v1/sessions/{session}:trace",
    tags=["sessions"],
    summary="Run a step and get its trace",
    response_class=Response,
    responses=_FILE,
    openapi_extra=STEP_BODY,
)
async def trace_session(session: str, request: Request, control: ControlDep) -> Response:
    """The body is a step's, and the step takes effect; the answer shows where its time went, not the fetched values."""
    body = await request.body()
    step = await read_apart(partial(step_of, request, body), len(body))
    clocks = hosts_of(control.sessions.cluster_of(await owned_session(session, request, control)))
    file = await control.sessions.run_step(session, traced(step, clocks), step.timeout, acting(request.scope))
    return Response(file, media_type=JSON)


@router.post(
    "/v1/runs/{run}:trace",
    tags=["runs"],
    summary="Trace the next steps of a run's programs",
    response_class=Response,
    responses=_FILE,
    openapi_extra=problems(
        "no-such-run",
        "owned-by-another",
        "run-ended",
        "no-such-task",
        "trace-active",
        "too-many-traces",
        "nothing-traced",
        "invalid-duration",
    ),
    dependencies=[JsonBody],
)
async def trace_run(
    run: str,
    request: Request,
    control: ControlDep,
    body: RunTrace | None = None,
    wait: Annotated[str, Query(description="How long to wait for the programs: 30s, 500ms, 1m.")] = "30s",
) -> Response:
    """Answers once all programs have sent their traces, or when `wait` expires: `metadata.missing` names those that
    have not. The file can be fetched at `Location` for a limited time."""
    asked = body or RunTrace()
    limit = seconds(wait, control.settings.max_wait)
    name, file = await control.run_traces.trace(
        run, asked.steps, asked.tasks, limit, lambda found: require_submitter(request.scope, found)
    )
    return Response(file, media_type=JSON, headers={"Location": f"/v1/runs/{run}/traces/{name}"})


@router.get(
    "/v1/runs/{run}/traces/{trace}",
    tags=["runs"],
    summary="A finished trace",
    response_class=Response,
    responses=_FILE,
    openapi_extra=problems("no-such-run", "no-such-trace"),
)
async def get_trace(run: str, trace: str, control: ControlDep) -> Response:
    """The service keeps it until newer ones need the memory, or until it ends."""
    return Response(await control.run_traces.get(run, trace), media_type=JSON)


@router.put(
    "/v1/runs/{run}/traces/{trace}/tasks/{job}/{index}",
    tags=["runs"],
    summary="A program's trace, sent by the program",
    status_code=204,
    openapi_extra=taking("A ProgramTrace.", "no-such-trace"),
)
async def put_program_trace(
    run: str, trace: str, job: str, index: int, request: Request, control: ControlDep
) -> Response:
    """404 once the trace is over, or the program has sent its part."""
    control.run_traces.add(run, trace, job, index, await received(request, ProgramTrace))
    return Response(status_code=204)
