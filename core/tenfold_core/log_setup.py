"""Python's logging for a whole process: one handler on standard error, in text or as JSON lines.

Called once by the commands (tenfold/cli/log_options.py), by client/cli/child.py for programs where the environment asks
for it, and by client/runs/supervise.py. A line of text, and a line of JSON with the same members:

    2026-11-24T03:30:01.123456Z WARNING tenfold.control: the lease ran out [/job:ps/task:0] [request 1f2e3d4c]
    {"time": "…", "level": "WARNING", "logger": "…", "message": "…", "task": "/job:ps/task:0", "request_id": "1f2e3d4c"}

`task` is the task that this process is, `request_id` the request to the control service that is being answered; both
are left out where there is none. What a record has in `fields` becomes members of the JSON line.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, TextIO, get_args

if TYPE_CHECKING:
    from collections.abc import Mapping

LEVEL, FORMAT = "TENFOLD_LOG_LEVEL", "TENFOLD_LOG_FORMAT"
Level = Literal["debug", "info", "warning", "error", "critical"]
Format = Literal["text", "json"]
LEVELS: tuple[Level, ...] = get_args(Level)
FORMATS: tuple[Format, ...] = get_args(Format)

if TYPE_CHECKING:
    _StreamHandler = logging.StreamHandler[TextIO]
else:
    _StreamHandler = logging.StreamHandler

#: The request that this context answers.
request_id: ContextVar[str | None] = ContextVar("request_id", default=None)

#: Libraries that have nothing to say to a user below a warning: each request, each compiled instruction, each header.
_QUIET = ("httpx", "httpcore", "numba", "hpack", "alembic", "aiosqlite", "asyncio", "matplotlib")


class _Handler(_StreamHandler):
    """Writes to what is standard error then, and adds the task and the request, on the thread and in the context that
    logs."""

    def __init__(self, task: str | None) -> None:
        logging.Handler.__init__(self)
        self.task = task

    @property
    def stream(self) -> TextIO:
        return sys.stderr

    @stream.setter
    def stream(self, stream: TextIO) -> None:
        raise AttributeError("it writes to standard error")

    def emit(self, record: logging.LogRecord) -> None:
        record.task = self.task
        record.request_id = request_id.get()
        super().emit(record)


class TextFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        record.message = record.getMessage()
        marks = [getattr(record, "task", None), getattr(record, "request_id", None)]
        text = f"{_time(record)} {record.levelname} {record.name}: {record.message}"
        text += f" [{marks[0]}]" * bool(marks[0]) + f" [request {marks[1]}]" * bool(marks[1])
        return "\n".join([text, *_more(self, record)])


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        members: dict[str, Any] = {
            "time": _time(record),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        for name in ("task", "request_id"):
            if value := getattr(record, name, None):
                members[name] = value
        members |= getattr(record, "fields", {})
        if more := _more(self, record):
            members["traceback"] = "\n".join(more)
        return json.dumps(members, ensure_ascii=False, default=str)


def configure(level: Level, form: Format, task: str | None = None) -> None:
    """Makes this the logging of the process, in place of what an earlier call made."""
    handler = _Handler(task)
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    root = logging.getLogger()
    for former in _ours():
        root.removeHandler(former)
    root.addHandler(handler)
    root.setLevel(level.upper())
    for name in _QUIET:
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))


def is_configured() -> bool:
    """Whether this process's logging is ours, and not its program's own."""
    return bool(_ours())


def set_task(task: str) -> None:
    """From now on this process is that task."""
    for handler in _ours():
        handler.task = task


def asked_for(environment: Mapping[str, str] = os.environ) -> tuple[Level, Format] | None:
    """What the environment asks for, for a process without options; None where it asks for nothing. A value that is
    none of those allowed counts as not set: the program is not ours to stop."""
    level = next((each for each in LEVELS if each == environment.get(LEVEL, "").lower()), None)
    form = next((each for each in FORMATS if each == environment.get(FORMAT, "").lower()), None)
    return None if level is None and form is None else (level or "warning", form or "text")


def _ours() -> list[_Handler]:
    return [handler for handler in logging.getLogger().handlers if isinstance(handler, _Handler)]


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _more(formatter: logging.Formatter, record: logging.LogRecord) -> list[str]:
    """The traceback, and the stack where one was asked for."""
    found = [formatter.formatException(record.exc_info)] if record.exc_info and record.exc_info[0] else []
    return found + ([formatter.formatStack(record.stack_info)] if record.stack_info else [])
