"""`/v1/leases`: heartbeats, and releasing a lease."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query

from tenfold_control_api import views
from tenfold_control_api.cluster import TaskState
from tenfold_control_api.control import Control
from tenfold_control_api.models import LeaseRelease, LeaseView, ReleaseView
from tenfold_control_api.routes.common import PROBLEMS, ControlDep, JsonBody
from tenfold_core.device import task_name

router = APIRouter(prefix="/v1/leases", tags=["leases"], responses=PROBLEMS)


@router.get("/{lease}", summary="One lease")
async def get_lease(lease: str, control: ControlDep) -> LeaseView:
    """A lease that has ended stays visible for a day, with how it ended."""
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


@router.post("/{lease}:renew", summary="Heartbeat")
async def renew(lease: str, control: ControlDep) -> LeaseView:
    """Tells the newest spec version. 404 for an unknown lease; 410 for one that has ended, with how."""
    cluster, task = await control.registry.renew(lease)
    settings = control.settings
    return views.lease_view(cluster, task, control.registry.leases, settings.heartbeat, settings.lease_ttl)


@router.post("/{lease}:release", summary="Leave, finished or lost", dependencies=[JsonBody])
async def release(lease: str, control: ControlDep, body: LeaseRelease | None = None) -> ReleaseView:
    """A finished task is not missing: the cluster does not wait for it, and its exit code stays visible."""
    return await _release(control, lease, body or LeaseRelease())


@router.delete("/{lease}", summary="Leave, finished or lost")
async def delete_lease(
    lease: str,
    control: ControlDep,
    state: Literal["finished", "lost"] = "finished",
    reason: Annotated[str | None, Query(max_length=500, pattern=r"^[^\x00]*$")] = None,
    exit_code: Annotated[int | None, Query(ge=-255, le=255)] = None,
) -> ReleaseView:
    return await _release(control, lease, LeaseRelease(state=state, reason=reason, exit_code=exit_code))


async def _release(control: Control, lease: str, body: LeaseRelease) -> ReleaseView:
    state = TaskState(body.state)
    exit_code = body.exit_code if state is TaskState.LOST else body.exit_code or 0
    cluster, task = await control.registry.release(lease, state, body.reason, exit_code)
    return ReleaseView(task=views.task_view(cluster, task, control.registry.leases), spec_version=cluster.version)
