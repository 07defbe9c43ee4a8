"""`/v1/sessions/{session}/placement`: which node is on which device, and why."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Query, Request

from tenfold_control_api.models import PlacementView
from tenfold_control_api.openapi import MASTER_CALL, problems
from tenfold_control_api.placements import page_of
from tenfold_control_api.routes.common import ControlDep
from tenfold_control_api.routes.sessions import owned_session

router = APIRouter(prefix="/v1/sessions", tags=["sessions"])


@router.get(
    "/{session}/placement",
    summary="Where the nodes of a session's graph are, and why, in pages",
    openapi_extra=problems("no-such-session", "owned-by-another", "placement-unknown", "invalid-cursor", *MASTER_CALL),
)
async def get_placement(
    session: str,
    request: Request,
    control: ControlDep,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1000,
    after: Annotated[str | None, Query(max_length=10_000, description="`next` of the previous page.")] = None,
    name: Annotated[str, Query(max_length=1000, description="Only nodes with this in their name.")] = "",
    op: Annotated[str | None, Query(max_length=200, description="Only nodes of this op.")] = None,
) -> PlacementView:
    """The session's master computes this on request. `tasks` counts the whole graph: nodes, variables, and the bytes
    of the variables whose shapes are known. 501 for a session at a TensorFlow server."""
    await owned_session(session, request, control)
    found = await control.placements.get(session)
    return await asyncio.to_thread(page_of, session, found, limit=limit, after=after, name=name, op=op)
