"""`/healthz`, `/readyz`, `/metrics`."""

import asyncio

from fastapi import APIRouter, Response
from sqlalchemy.exc import SQLAlchemyError

from tenfold_control_api.control import Control
from tenfold_control_api.openapi import problems
from tenfold_control_api.problems import ApiError, from_database_error
from tenfold_control_api.routes.common import ControlDep
from tenfold_control_api.scrape import scrape
from tenfold_core.task_metrics import CONTENT_TYPE

router = APIRouter(tags=["probes"])

#: A database that needs longer than this for one row is not ready.
_PING_TIMEOUT = 2.0


@router.get("/healthz", summary="Does the process answer?")
async def healthz() -> dict[str, str]:
    return {"status": "ok"}


@router.get(
    "/readyz",
    summary="Can the service handle requests (are the database and the sweepers available)?",
    openapi_extra=problems("database-unavailable", "disk-unavailable", "not-ready"),
)
async def readyz(control: ControlDep) -> dict[str, str]:
    await require_ready(control)
    return {"status": "ready"}


async def require_ready(control: Control) -> None:
    """Raises UNAVAILABLE where the database does not answer, or something does not do its work."""
    try:
        async with asyncio.timeout(_PING_TIMEOUT):
            await control.store.ping()
    except (TimeoutError, OSError, SQLAlchemyError) as error:
        raise from_database_error(error) from error
    if trouble := control.trouble():
        raise ApiError("not-ready", f"{trouble}.")
    if trouble := await control.runs.submissions.trouble():
        raise ApiError("disk-unavailable", f"{trouble}.")


@router.get(
    "/metrics",
    summary="Prometheus",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def metrics(control: ControlDep) -> Response:
    """Metrics of the service, its process, every task that sends figures, and the active runs."""
    return Response(await scrape(control), media_type=CONTENT_TYPE)
