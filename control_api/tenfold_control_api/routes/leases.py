"""`/v1/leases`: heartbeats, and releasing a lease."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import ValidationError

from tenfold_control_api import views
from tenfold_control_api.cluster import TaskState
from tenfold_control_api.control import Control
from tenfold_control_api.direct import DirectRoute, FallbackError
from tenfold_control_api.models import Ending, ExitCode, LeaseRelease, LeaseRenewal, LeaseView, Reason, ReleaseView
from tenfold_control_api.openapi import problems
from tenfold_control_api.routes.common import ControlDep, JsonBody, require_json
from tenfold_core.device import task_name

router = APIRouter(prefix="/v1/leases", tags=["leases"])


@router.get("/{lease:name}", summary="One lease", openapi_extra=problems("no-such-lease"))
async def get_lease(lease: str, control: ControlDep) -> LeaseView:
    """A lease remains visible for a day after its end, with the reason."""
    row = await control.registry.lease(lease)
    return LeaseView(
        id=row.id,
        state="live" if row.live else "ended",
        cluster=row.cluster,
        task=task_name(row.job, row.index),
        ttl=row.ttl,
        heartbeat=control.settings.heartbeat,
        expires_in=control.registry.leases.remaining(row.id),
        outcome=row.outcome,
        reason=row.reason,
        exit_code=row.exit_code,
    )


@router.post(
    "/{lease}:renew",
    summary="Heartbeat",
    dependencies=[JsonBody],
    openapi_extra=problems("no-such-lease", "lease-ended"),
)
async def renew_lease(lease: str, control: ControlDep, body: LeaseRenewal | None = None) -> LeaseView:
    """Returns the newest spec version. 404 for an unknown lease; 410 for one that has ended, with the reason. The body
    can contain the task's figures, which are shown until the lease ends and never stored."""
    return await _renewed(control, lease, body)


async def _renew_directly(request: Request, control: Control, lease: str) -> Response:
    """`renew_lease` for a request that nothing is wrong with."""
    content = await request.body()
    try:
        body = LeaseRenewal.model_validate_json(content) if content else None
    except ValidationError:
        raise FallbackError from None
    await require_json(request)
    return Response((await _renewed(control, lease, body)).model_dump_json(), media_type="application/json")


RENEWAL = DirectRoute("POST", "/v1/leases/{lease}:renew", _renew_directly)


async def _renewed(control: Control, lease: str, body: LeaseRenewal | None) -> LeaseView:
    cluster, task = await control.registry.renew(lease, None if body is None else body.figures)
    settings = control.settings
    return views.lease_view(cluster, task, control.registry.leases, settings.heartbeat, settings.lease_ttl)


@router.post(
    "/{lease}:release",
    summary="Leave: finished, stopped or lost",
    dependencies=[JsonBody],
    openapi_extra=problems(
        "no-such-lease",
        "lease-ended",
        "failed-is-not-finished",
        "too-many-changes",
        "no-such-cluster",
        "no-such-job",
        "no-such-task",
    ),
)
async def release_lease(lease: str, control: ControlDep, body: LeaseRelease | None = None) -> ReleaseView:
    """A finished task is not missing: the cluster does not wait for it. One that failed or was asked to stop has not
    finished."""
    return await _release(control, lease, body or LeaseRelease())


@router.delete(
    "/{lease:name}",
    summary="Leave: finished, stopped or lost",
    openapi_extra=problems(
        "no-such-lease",
        "lease-ended",
        "failed-is-not-finished",
        "too-many-changes",
        "no-such-cluster",
        "no-such-job",
        "no-such-task",
    ),
)
async def delete_lease(
    lease: str,
    control: ControlDep,
    state: Annotated[Ending, Query()] = "finished",
    reason: Annotated[Reason | None, Query()] = None,
    exit_code: Annotated[ExitCode | None, Query()] = None,
) -> ReleaseView:
    return await _release(control, lease, LeaseRelease(state=state, reason=reason, exit_code=exit_code))


async def _release(control: Control, lease: str, body: LeaseRelease) -> ReleaseView:
    state = TaskState(body.state)
    exit_code = body.exit_code or 0 if state is TaskState.FINISHED else body.exit_code
    cluster, task = await control.registry.release(lease, state, body.reason, exit_code)
    return ReleaseView(task=views.task_view(cluster, task, control.registry.leases), spec_version=cluster.version)
