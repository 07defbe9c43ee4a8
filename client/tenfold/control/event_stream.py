"""Server-sent events (the HTML standard's text/event-stream), read from the lines of a response. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


@dataclass(frozen=True, slots=True)
class Event:
    """One event. `id` is None where the stream gave none; `data` is empty where it gave nothing but an id."""

    name: str
    data: str
    id: str | None


def parse_events(lines: Iterable[str]) -> Iterator[Event]:
    """The events of a stream; comments are left out, and so is an event that the stream broke off in."""
    name, last = "message", None
    data: list[str] = []
    for line in lines:
        if not line:
            if data or last is not None:
                yield Event(name, "\n".join(data), last)
            name, data, last = "message", [], None
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        match field:
            case "event":
                name = value
            case "data":
                data.append(value)
            case "id":
                last = value
