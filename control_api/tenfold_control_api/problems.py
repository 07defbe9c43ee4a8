"""Errors of the control service as data: RFC 9457 problem details carrying TensorFlow's canonical code.

The one place that maps canonical codes to HTTP. All other modules raise `ApiError`; `handlers.py` turns it, and all
other exceptions, into `application/problem+json`. The client's counterpart is tenfold/control/problem.py.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tenfold_core import errors

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: Canonical code → (HTTP status, is the same request worth sending again, title).
CODES: Mapping[str, tuple[int, bool, str]] = {
    "CANCELLED": (499, False, "Cancelled"),
    "UNKNOWN": (500, False, "Unknown error"),
    "INVALID_ARGUMENT": (400, False, "Invalid argument"),
    "DEADLINE_EXCEEDED": (504, True, "Deadline exceeded"),
    "NOT_FOUND": (404, False, "Not found"),
    "ALREADY_EXISTS": (409, False, "Already exists"),
    "PERMISSION_DENIED": (403, False, "Permission denied"),
    "RESOURCE_EXHAUSTED": (429, True, "Resource exhausted"),
    "FAILED_PRECONDITION": (400, False, "Failed precondition"),
    "ABORTED": (409, True, "Aborted"),
    "OUT_OF_RANGE": (400, False, "Out of range"),
    "UNIMPLEMENTED": (501, False, "Unimplemented"),
    "INTERNAL": (500, False, "Internal error"),
    "UNAVAILABLE": (503, True, "Unavailable"),
    "DATA_LOSS": (500, False, "Data loss"),
    "UNAUTHENTICATED": (401, False, "Unauthenticated"),
}

_TASK = re.compile(r"/job:[A-Za-z][A-Za-z0-9_]*(?:/replica:\d+)?/task:\d+")
#: Longest detail of a problem. A master's message may be very long (a graph in an error), and is cut.
MAX_DETAIL = 16_000


@dataclass(slots=True)
class ApiError(Exception):
    """A request that cannot be answered with 2xx. `kind` becomes the problem's type, `urn:tenfold:problem:<kind>`."""

    code: str
    detail: str
    kind: str | None = None
    #: Only where HTTP has a more precise status than the table's (404 route, 405, 410, 413, 415, 422).
    status: int | None = None
    title: str | None = None
    task: str | None = None
    node: str | None = None
    retryable: bool | None = None
    missing_tasks: Sequence[str] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    #: More members of the problem object, e.g. `outcome`, `errors`.
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.code}: {self.detail}"

    @property
    def http_status(self) -> int:
        return self.status if self.status is not None else CODES[self.code][0]

    def body(self, instance: str) -> dict[str, Any]:
        """The problem object. `instance` is the path of the request."""
        _, retryable, title = CODES[self.code]
        problem: dict[str, Any] = {
            "type": f"urn:tenfold:problem:{self.kind}" if self.kind else "about:blank",
            "title": self.title or title,
            "status": self.http_status,
            "detail": self.detail[:MAX_DETAIL],
            "instance": instance,
            "code": self.code,
            "retryable": retryable if self.retryable is None else self.retryable,
        }
        if self.task:
            problem["task"] = self.task
        if self.node:
            problem["node"] = self.node
        if self.missing_tasks:
            problem["missing_tasks"] = list(self.missing_tasks)
        problem.update(self.extra)
        return problem


def invalid(detail: str, **more: Any) -> ApiError:
    """INVALID_ARGUMENT, the commonest."""
    return ApiError("INVALID_ARGUMENT", detail, **more)


def not_found(detail: str, kind: str, **more: Any) -> ApiError:
    return ApiError("NOT_FOUND", detail, kind=kind, **more)


def from_op_error(error: errors.OpError, **more: Any) -> ApiError:
    """What a master or a tensor codec raised, with the node and task that its message names."""
    message = str(error.message)
    code = errors.code_name(error.code)
    node = error.node_def.name if error.node_def is not None else error.node_name
    task = more.pop("task", None)
    if match := _TASK.search(message):
        task = match.group(0)
    return ApiError(code if code in CODES else "UNKNOWN", message, node=node, task=task, **more)
