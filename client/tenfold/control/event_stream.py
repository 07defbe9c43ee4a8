"""Server-sent events (the HTML standard's text/event-stream), read from the lines of a response. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One event. `id` is None where the stream gave none; `data` is empty where it gave nothing but an id."""

    name: str
    data: str
    id: str | None


@dataclass(slots=True)
class EventParser:
    """Takes the lines of one response. Comments are left out, and so is an event that the stream broke off in."""

    _name: str = "message"
    _id: str | None = None
    _data: list[str] = field(default_factory=list)

    def read(self, line: str) -> StreamEvent | None:
        """The event that `line` completes, if it does."""
        if not line:
            event = StreamEvent(self._name, "\n".join(self._data), self._id)
            known = bool(self._data) or self._id is not None
            self._name, self._id, self._data = "message", None, []
            return event if known else None
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        match name:
            case "event":
                self._name = value
            case "data":
                self._data.append(value)
            case "id":
                self._id = value
        return None
