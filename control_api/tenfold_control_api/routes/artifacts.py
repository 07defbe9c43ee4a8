"""`/v1/runs/{run}/artifacts`: what a run has left in its output folder."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from tenfold_control_api.openapi import problems
from tenfold_control_api.routes.common import ControlDep, content_type, unsupported
from tenfold_control_api.routes.pages import LIMIT, After, Limit, page_of, place
from tenfold_control_api.runs import artifacts
from tenfold_control_api.views import timestamp

router = APIRouter(prefix="/v1/runs", tags=["runs"])

#: A program wrote the file: a browser keeps it, and shows nothing of it as a page of this service.
_HEADERS = {
    "Content-Disposition": "attachment",
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "sandbox",
    "Accept-Ranges": "bytes",
}


class ArtifactView(BaseModel):
    """A file in a run's output folder."""

    path: str = Field(description="Path in the output folder, with slashes.")
    size: int = Field(description="Size in bytes.")
    modified: str = Field(description="When it was last written.")


class ArtifactList(BaseModel):
    run: str
    artifacts: list[ArtifactView] = Field(description="The files of this page, by path.")
    next: str | None = Field(description="`after` of the next page; null on the last one.")


@router.get(
    "/{run}/artifacts",
    summary="The files in a run's output folder, in pages",
    openapi_extra=problems("no-such-run", "no-artifacts", "invalid-cursor"),
)
async def list_artifacts(run: str, control: ControlDep, limit: Limit = LIMIT, after: After = None) -> ArtifactList:
    """The folder that its tasks find in the variable TENFOLD_OUTPUT. Links are left out."""
    record = await control.runs.get(run)
    found = await asyncio.to_thread(artifacts.listed, control.runs.output(record))
    page, more = page_of(found, lambda each: (each.path,), place(after, str), limit)
    views = [ArtifactView(path=each.path, size=each.size, modified=timestamp(each.modified)) for each in page]
    return ArtifactList(run=record.id, artifacts=views, next=more)


@router.put(
    "/{run}/tasks/{job}/{index}/output",
    summary="Send a file from a task's output folder",
    status_code=204,
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
        },
        **problems(
            *("no-such-run", "no-such-task", "run-ended", "no-artifacts", "invalid-artifact", "output-too-large"),
            "disk-unavailable",
        ),
    },
)
async def put_output(
    run: str,
    job: str,
    index: int,
    request: Request,
    control: ControlDep,
    path: Annotated[str, Query(min_length=1, max_length=4000, description="Path in the folder, with slashes.")],
    size: Annotated[int, Query(ge=0, lt=1 << 50, description="The size of the whole file in bytes.")],
    offset: Annotated[int, Query(ge=0, lt=1 << 50, description="Where this piece begins.")] = 0,
) -> Response:
    """For tasks on other machines than the service. The file appears once all its pieces have been sent, in order."""
    if content_type(request) != "application/octet-stream":
        raise unsupported(request, "application/octet-stream")
    await control.runs.take_output(run, job, index, path, await request.body(), offset, size)
    return Response(status_code=204)


@router.get(
    "/{run}/artifacts/{path:path}",
    summary="One of these files",
    response_class=Response,
    responses={
        200: {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}},
        206: {"description": "The part that Range asked for.", "content": {"application/octet-stream": {}}},
    },
    openapi_extra=problems("no-such-run", "no-artifacts", "no-such-artifact", "range-not-there"),
)
async def get_artifact(
    run: str, path: str, control: ControlDep, range: Annotated[str | None, Header(max_length=200)] = None
) -> Response:
    """With `Range: bytes=0-99`, only that part."""
    record = await control.runs.get(run)
    file, size = await asyncio.to_thread(artifacts.opened, control.runs.output(record), path)
    try:
        part = artifacts.asked_range(range, size)
    except BaseException:
        artifacts.close(file)
        raise
    begin, end = part or (0, size)
    headers = {**_HEADERS, "Content-Length": str(end - begin)}
    if part is not None:
        headers["Content-Range"] = f"bytes {begin}-{end - 1}/{size}"
    body = artifacts.pieces(file, begin, end)
    return StreamingResponse(body, 206 if part else 200, headers, media_type="application/octet-stream")
