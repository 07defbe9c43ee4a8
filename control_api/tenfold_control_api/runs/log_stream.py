"""The logs of a run as they come, as server-sent events. Used by routes/runs.py.

Nobody tells this process that a task has written: the files are looked at a few times a second, as long as somebody
follows them. Where one is in each task's files travels in the events' ids.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from fastapi.responses import StreamingResponse

from tenfold_control_api.problems import ApiError
from tenfold_control_api.runs import log_files, views

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from starlette.types import Receive, Scope, Send

    from tenfold_control_api.runs.log_files import Line, Place
    from tenfold_control_api.runs.record import RunRecord
    from tenfold_control_api.runs.service import RunService

#: Seconds between two looks at the files.
_LOOK_S = 0.2
#: Seconds of silence after which a comment is sent, so that both ends know that the other is there.
_COMMENT_S = 10.0


class _Following(StreamingResponse):
    """Gives back what it holds however it ends, also where nobody is there any more when it begins."""

    def __init__(self, stream: AsyncIterator[bytes], held: contextlib.ExitStack) -> None:
        super().__init__(stream, media_type="text/event-stream", headers={"Cache-Control": "no-store"})
        self._held = held

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._held:
            await super().__call__(scope, receive, send)


async def follow(
    runs: RunService, run: RunRecord, wanted: Sequence[str] | None, count: int, last_event_id: str | None, caller: str
) -> StreamingResponse:
    """For the principal `caller`: the last `count` lines, or what came after `last_event_id`, and then all that comes
    until the run has ended. Raises NOT_FOUND for a task that the run does not have, RESOURCE_EXHAUSTED,
    INVALID_ARGUMENT."""
    views.chosen_tasks(run, (), wanted)
    places = None if last_event_id is None else _places(last_event_id)
    held = contextlib.ExitStack()
    held.enter_context(runs.follower(caller))
    return _Following(_events(runs, run, wanted, count, places), held)


async def _events(
    runs: RunService, run: RunRecord, wanted: Sequence[str] | None, count: int, places: dict[str, Place] | None
) -> AsyncIterator[bytes]:
    try:
        silent = 0.0
        while not runs.stopping:
            # first the state, then the files: what was written before the end is not missed
            now = await runs.get(run.id)
            lines, places = await asyncio.to_thread(_look, runs.log_folder(now), now, wanted, count, places)
            if lines:
                silent = 0.0
                yield _event({"lines": [asdict(line) for line in lines]}, places)
            elif now.state.final:
                yield b"event: end\ndata: " + json.dumps({"state": now.state}).encode() + b"\n\n"
                return
            else:
                silent += _LOOK_S
                if silent >= _COMMENT_S:
                    silent = 0.0
                    yield b": nothing new\n\n"
                await asyncio.sleep(_LOOK_S)
    except ApiError:
        return  # the run was deleted


def _look(
    folder: Path | None, run: RunRecord, wanted: Sequence[str] | None, count: int, places: dict[str, Place] | None
) -> tuple[list[Line], dict[str, Place] | None]:
    if folder is None:
        return [], places
    tasks = views.chosen_tasks(run, log_files.tasks_of(folder), wanted)
    if places is None:
        until = log_files.ends(folder, tasks)
        lines = log_files.tail(folder, tasks, count, until)
        return (lines, until) if lines else log_files.read_on(folder, until, tasks)
    return log_files.read_on(folder, places, tasks)


def _event(content: dict[str, Any], places: dict[str, Place] | None) -> bytes:
    text = " ".join(f"{task}:{number}:{offset}" for task, (number, offset) in (places or {}).items())
    return f"id: {text}\ndata: {json.dumps(content)}\n\n".encode()


def _places(text: str) -> dict[str, Place]:
    found: dict[str, Place] = {}
    for part in text.split():
        task, number, offset = (*part.rsplit(":", 2), "", "")[:3]
        if not (number.isdecimal() and offset.isdecimal() and len(number) < 10 and len(offset) < 16):
            raise ApiError(
                "invalid-event-id", f"Last-Event-ID {text[:100]!r} is not the id of an event of this stream."
            )
        found[task] = (int(number), int(offset))
    return found
