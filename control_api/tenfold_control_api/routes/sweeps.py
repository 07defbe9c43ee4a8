"""`/v1/sweeps`: one program run with many settings of its parameters, a few at a time, the worst stopped early."""

import hashlib
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from tenfold_control_api.control import Control
from tenfold_control_api.entry import caller_of, require_owner
from tenfold_control_api.openapi import problems
from tenfold_control_api.routes.common import ControlDep, JsonBody, seconds
from tenfold_control_api.routes.pages import LIMIT, After, Limit, following, place
from tenfold_control_api.sweeps import views
from tenfold_control_api.sweeps.definition import sweep_of
from tenfold_control_api.sweeps.models import SweepCancel, SweepDefinition, SweepList, SweepView
from tenfold_control_api.sweeps.record import SweepRecord
from tenfold_core.run_states import RunState

router = APIRouter(prefix="/v1/sweeps", tags=["sweeps"])


@router.post(
    "",
    summary="Create a sweep",
    openapi_extra=problems(
        "runs-not-allowed",
        "invalid-space",
        "sweep-without-room",
        "sweep-differs",
        "too-many-sweeps",
        "run-too-large",
        "run-without-worker",
        "empty-entrypoint",
        "invalid-launcher",
        "launcher-not-usable",
        "working-dir-and-package",
        "no-such-working-dir",
        "no-such-package",
        "no-such-sweep",
    ),
    dependencies=[JsonBody],
    responses={201: {"model": SweepView, "description": "The sweep is new."}},
)
async def create_sweep(body: SweepDefinition, request: Request, response: Response, control: ControlDep) -> SweepView:
    """The service submits a run for each setting, with the submission id `NAME-INDEX`, at most `parallel` at once, and
    continues after a restart. Repeating a `name` with the same definition returns the same sweep (200); with a
    different one it is 409."""
    who = caller_of(request.scope).principal
    if body.name is None and (key := request.headers.get("idempotency-key")) is not None:
        # a service that dies over the request leaves the sweep to the next one that is asked
        digest = hashlib.sha256(repr((who, key)).encode()).hexdigest()[:32]
        body = body.model_copy(update={"name": f"key-{digest}"})
    sweep, created = await control.sweeps.create(sweep_of(body, control.replicas.id, who, control.wall_clock()))
    response.status_code = 201 if created else 200
    response.headers["Location"] = f"/v1/sweeps/{sweep.name}"
    return await _view(control, sweep)


@router.get("", summary="Sweeps, newest first, in pages", openapi_extra=problems("invalid-cursor"))
async def list_sweeps(
    control: ControlDep,
    state: Annotated[list[RunState] | None, Query(description="Only sweeps in one of these states.")] = None,
    limit: Limit = LIMIT,
    after: After = None,
) -> SweepList:
    """Without their trials."""
    found = await control.sweeps.page(state or [], limit + 1, place(after, float, str))
    page, more = following(found, limit, lambda sweep: (sweep.created, sweep.name))
    return SweepList(sweeps=[views.summary(sweep) for sweep in page], next=more)


@router.get(
    "/{sweep:name}",
    summary="One sweep with its trials, by long-poll",
    openapi_extra=problems("no-such-sweep", "invalid-duration", "too-many-watchers", "stopping"),
)
async def get_sweep(
    sweep: str,
    control: ControlDep,
    after: Annotated[int | None, Query(ge=0, description="Answer when the version is above this one.")] = None,
    ended: Annotated[bool, Query(description="Answer when the sweep has ended.")] = False,
    wait: Annotated[str, Query(description="How long to wait for that: 30s, 500ms, 1m.")] = "0s",
) -> SweepView:
    """When the wait expires, the answer is the current sweep. The version grows when a trial starts or ends."""

    def satisfied(now: SweepRecord) -> bool:
        return (after is None or now.version > after) and (now.state.final or not ended)

    return await _view(control, await control.sweeps.wait(sweep, satisfied, seconds(wait, control.settings.max_wait)))


@router.post(
    "/{sweep}:cancel",
    summary="Cancel a sweep",
    dependencies=[JsonBody],
    openapi_extra=problems("no-such-sweep", "owned-by-another", "too-many-changes"),
)
async def cancel_sweep(sweep: str, request: Request, control: ControlDep, body: SweepCancel | None = None) -> SweepView:
    """For its creator and the role admin. No further run starts, and the active runs are stopped. A sweep that has
    ended is not changed."""
    await _owned(sweep, request, control)
    return await _view(control, await control.sweeps.cancel(sweep, (body or SweepCancel()).reason))


@router.post(
    "/{sweep}:resume",
    summary="Resume a sweep that was cancelled",
    dependencies=[JsonBody],
    openapi_extra=problems(
        *(
            "no-such-sweep",
            "owned-by-another",
            "sweep-active",
            "too-many-sweeps",
            "runs-not-allowed",
            "too-many-changes",
        )
    ),
)
async def resume_sweep(sweep: str, request: Request, control: ControlDep) -> SweepView:
    """For its creator and the role admin. Starts the trials that were not started. A sweep without such a trial is not
    changed."""
    await _owned(sweep, request, control)
    return await _view(control, await control.sweeps.resume(sweep))


@router.delete(
    "/{sweep:name}", summary="Delete a sweep that has ended", openapi_extra=problems("no-such-sweep", "sweep-active")
)
async def delete_sweep(sweep: str, control: ControlDep) -> SweepView:
    """Its runs remain."""
    return views.view(await control.sweeps.delete(sweep), {})


async def _owned(sweep: str, request: Request, control: Control) -> None:
    """Raises NOT_FOUND, PERMISSION_DENIED."""
    require_owner(request.scope, (await control.sweeps.get(sweep)).submitter, f"sweep {sweep}")


async def _view(control: Control, sweep: SweepRecord) -> SweepView:
    return views.view(sweep, await control.runs.progress.of_all(views.running(sweep)))
