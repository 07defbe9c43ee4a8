"""The dashboard: the page at `/`, what it loads from `/ui/`, and what it has to know of this service."""

from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Header, Query, Response
from starlette.responses import RedirectResponse

from tenfold_control_api.dashboard_files import HEADERS, files
from tenfold_control_api.etags import is_known
from tenfold_control_api.problems import ApiError
from tenfold_control_api.routes.common import ControlDep

router = APIRouter(include_in_schema=False)


@router.get("/")
async def page(if_none_match: Annotated[str | None, Header()] = None) -> Response:
    return _file("index.html", if_none_match)


@router.get("/runs/compare")
async def compare(run: Annotated[list[str], Query(max_length=100)] = []) -> Response:  # noqa: B006 - never changed
    """An address without # of the page Compare, which is a view of the one page."""
    query = urlencode([("run", each) for each in run])
    return RedirectResponse(f"/#/runs/compare?{query}", headers=HEADERS)


@router.get("/ui/config.json")
async def config(control: ControlDep) -> dict[str, Any]:
    """Whether programs can be submitted and models are served, and where TensorBoard is. Told without a token, so
    nothing secret."""
    settings = control.settings
    return {
        "runs": settings.allow_runs,
        "models": settings.models_folder is not None,
        "tensorboard": settings.tensorboard_url,
    }


@router.get("/ui/{path:path}")
async def file(path: str, if_none_match: Annotated[str | None, Header()] = None) -> Response:
    return _file(path, if_none_match)


def _file(path: str, known: str | None) -> Response:
    found = files().get(path)
    if found is None:
        raise ApiError("no-such-route", f"the dashboard has no file {path!r}; the page itself is at /.")
    headers = {**HEADERS, "ETag": found.tag}
    if is_known(found.tag, known):
        return Response(status_code=304, headers=headers)
    return Response(found.content, media_type=found.media_type, headers=headers)
