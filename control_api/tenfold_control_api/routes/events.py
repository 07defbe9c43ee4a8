"""`/v1/events`: what happened to clusters, tasks, runs and sessions, as a page, by long-poll, or as a stream."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field, StringConstraints

from tenfold_control_api.entry import owned_by
from tenfold_control_api.events.event import Filter
from tenfold_control_api.events.stream import event_json, follow
from tenfold_control_api.openapi import problems
from tenfold_control_api.problems import ApiError
from tenfold_control_api.routes.common import ControlDep, seconds

router = APIRouter(prefix="/v1/events", tags=["events"])


EventAction = Annotated[str, StringConstraints(max_length=63)]


class EventView(BaseModel):
    id: int
    time: str
    kind: Literal["cluster", "task", "run", "checkpoint", "session"]
    action: str
    object: str
    message: str
    cluster: str | None
    run: str | None
    data: dict[str, Any]


class EventList(BaseModel):
    events: list[EventView]
    next: int = Field(description="`after` of the next request.")


@router.get(
    "",
    summary="Events, as a page or as server-sent events",
    response_model=EventList,
    responses={200: {"content": {"text/event-stream": {}}}},
    openapi_extra=problems("invalid-event-id", "invalid-duration", "events-gone", "too-many-watchers", "stopping"),
)
async def list_events(
    request: Request,
    control: ControlDep,
    after: Annotated[int | None, Query(ge=0, description="Events after this id; without it, future events.")] = None,
    kind: Annotated[list[Literal["cluster", "task", "run", "checkpoint", "session"]] | None, Query()] = None,
    cluster: Annotated[str | None, Query(max_length=63)] = None,
    run: Annotated[str | None, Query(max_length=63)] = None,
    action: Annotated[
        list[EventAction] | None,
        Query(max_length=20, description="Only events with this action, such as `ready` or `lost`."),
    ] = None,
    object: Annotated[
        str | None, Query(max_length=500, description="Only events of the object with this name.")
    ] = None,
    wait: Annotated[str, Query(description="How long to wait for the first match: 30s, 500ms, 1m.")] = "0s",
    last_event_id: Annotated[str | None, Header(max_length=20)] = None,
) -> Any:
    """A session's events are visible only to its owner and the role admin. With `Accept: text/event-stream`, the
    answer is a stream that resumes at `Last-Event-ID`. Events are kept for a day; an expired cursor is 410, or in a
    stream an event `dropped`."""
    if last_event_id is not None:
        if not last_event_id.isdecimal():
            raise ApiError("invalid-event-id", f"Last-Event-ID {last_event_id!r} is not the id of an event.")
        after = int(last_event_id)
    last = control.events.last if after is None else after
    wanted = Filter(
        frozenset(kind or ()), cluster, run, owned_by(request.scope), actions=frozenset(action or ()), object=object
    )
    if "text/event-stream" in request.headers.get("accept", ""):
        # a place that is gone is told before the stream begins
        await control.events.after(last)
        headers = {"Cache-Control": "no-store"}
        return StreamingResponse(follow(control.events, last, wanted), media_type="text/event-stream", headers=headers)
    chosen, last = await control.events.wanted(last, wanted, seconds(wait, control.settings.max_wait))
    return EventList(events=[EventView(**event_json(event)) for event in chosen], next=last)
