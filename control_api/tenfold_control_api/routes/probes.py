"""`/healthz`, `/readyz`, `/metrics`, and the status page for people at `/`."""

import asyncio

from fastapi import APIRouter, Response
from fastapi.responses import HTMLResponse
from sqlalchemy.exc import SQLAlchemyError

from tenfold_control_api.openapi import problems
from tenfold_control_api.page import render_page
from tenfold_control_api.problems import ApiError
from tenfold_control_api.routes.common import ControlDep
from tenfold_control_api.runs.views import run_view
from tenfold_control_api.scrape import scrape
from tenfold_core.task_metrics import CONTENT_TYPE

router = APIRouter(tags=["probes"])

#: A database that needs longer than this for one row is not ready.
_PING_TIMEOUT = 2.0
#: Runs on the page for people.
_RUNS = 10


@router.get("/healthz", summary="Does the process answer?")
async def healthz() -> dict[str, str]:
    return {"status": "ok"}


@router.get(
    "/readyz", summary="Can requests be served (is the database there)?", openapi_extra=problems("database-unavailable")
)
async def readyz(control: ControlDep) -> dict[str, str]:
    try:
        async with asyncio.timeout(_PING_TIMEOUT):
            await control.store.ping()
    except (TimeoutError, OSError, SQLAlchemyError) as error:
        raise ApiError("database-unavailable", f"the database does not answer ({type(error).__name__}).") from error
    return {"status": "ready"}


@router.get(
    "/metrics",
    summary="Prometheus",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def metrics(control: ControlDep) -> Response:
    """The service's own series, those of its process, of every task that sends figures, and of the active runs."""
    return Response(await scrape(control), media_type=CONTENT_TYPE)


@router.get("/", include_in_schema=False)
async def page(control: ControlDep) -> HTMLResponse:
    newest = await control.runs.page([], _RUNS, None)
    progress = await control.runs.progress.of_all([run.id for run in newest])
    runs = [run_view(run, progress[run.id]) for run in newest]
    clusters = await control.registry.refreshed()
    text = render_page(clusters, control.registry.leases, len(control.sessions.table), runs)
    return HTMLResponse(
        text,
        headers={
            "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
            "Cache-Control": "no-store",
        },
    )
