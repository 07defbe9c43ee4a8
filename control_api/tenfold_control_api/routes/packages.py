"""`/v1/packages`: working directories of runs, uploaded as zip files under their sha256."""

from typing import Annotated

from fastapi import APIRouter, Path, Request, Response
from pydantic import BaseModel

from tenfold_control_api.openapi import problems
from tenfold_control_api.problems import ApiError
from tenfold_control_api.routes.common import ControlDep, content_type, unsupported

router = APIRouter(prefix="/v1/packages", tags=["runs"])

Name = Annotated[str, Path(pattern=r"^[0-9a-f]{64}$", description="The sha256 of the zip file.")]


class PackageView(BaseModel):
    name: str


@router.put(
    "/{name}",
    summary="Upload a working directory",
    responses={201: {"model": PackageView, "description": "The package is new."}},
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/zip": {"schema": {"type": "string", "format": "binary"}}},
        },
        **problems(
            *("runs-not-allowed", "package-differs", "package-not-zip", "package-broken", "package-too-large"),
            "disk-unavailable",
        ),
    },
)
async def put_package(name: Name, request: Request, response: Response, control: ControlDep) -> PackageView:
    """A zip file, whose files become the run's working directory. The service keeps it for a day after its last use by
    a run."""
    if content_type(request) != "application/zip":
        raise unsupported(request, "application/zip")
    response.status_code = 201 if await control.runs.submissions.add_package(name, await request.body()) else 200
    return PackageView(name=name)


@router.get("/{name}", summary="Does a package exist?", openapi_extra=problems("no-such-package"))
async def get_package(name: Name, control: ControlDep) -> PackageView:
    if not await control.runs.submissions.has_package(name):
        raise ApiError("no-such-package", f"there is no package {name}.")
    return PackageView(name=name)
