"""Events as server-sent events. Used by routes/events.py."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tenfold_control_api.problems import ApiError
from tenfold_control_api.views import timestamp

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tenfold_control_api.events.event import Event, Filter
    from tenfold_control_api.events.log import EventLog

#: Seconds of silence after which a comment is sent, so that both ends know that the other is there.
_COMMENT_S = 10.0


def event_json(event: Event) -> dict[str, Any]:
    """The JSON of one event."""
    return {
        "id": event.id,
        "time": timestamp(event.time),
        "kind": event.kind,
        "action": event.action,
        "object": event.object,
        "message": event.message,
        "cluster": event.cluster,
        "run": event.run,
        "data": dict(event.data),
    }


async def follow(log: EventLog, last: int, wanted: Filter) -> AsyncIterator[bytes]:
    """The events after `last` that are wanted, for ever. A listener that has fallen so far behind that its place is
    forgotten gets a last event `dropped` that says so; so does everybody when the service stops."""
    # a connection that breaks before the first event goes on here, too
    yield f"id: {last}\n\n".encode()
    try:
        while True:
            events = await log.after(last, _COMMENT_S)
            if not events:
                yield b": nothing new\n\n"
                continue
            last = events[-1].id
            chosen = [event for event in events if wanted.fits(event)]
            yield b"".join(map(_written, chosen)) or f"id: {last}\n: others\n\n".encode()
    except ApiError as error:
        yield f"event: dropped\ndata: {json.dumps(error.body('/v1/events'))}\n\n".encode()


def _written(event: Event) -> bytes:
    return f"id: {event.id}\nevent: {event.kind}\ndata: {json.dumps(event_json(event))}\n\n".encode()
