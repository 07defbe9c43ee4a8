"""What the layers share: headers, answers, problems, and whether a request has taken effect yet.

Used by middleware.py, idempotency.py and handlers.py. Plain ASGI, because Starlette's BaseHTTPMiddleware would run
every request in one more task.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from starlette.types import Scope, Send

    from tenfold_control_api.problems import ApiError

PROBLEM_JSON = "application/problem+json"
#: The scope's member that holds the request's `Acting`.
_ACTING = "tenfold.acting"
_LEASE = re.compile(r"(?<=^/v1/leases/)([^/:]{0,6})[^/:]*")
_STEPS = re.compile(r"/v1/sessions/[^/]+/steps")
#: What may fail after a step ran, and says nothing of it.
_AFTERWARDS = ("internal-error", "database-unavailable")


def header(scope: Scope, name: str) -> str | None:
    """The value of a request header, None when it is absent."""
    wanted = name.lower().encode("latin-1")
    for key, value in scope["headers"]:
        if key == wanted:
            return bytes(value).decode("latin-1")
    return None


def logged_path(scope: Scope) -> str:
    """The path as logs may have it: with the beginning of a lease alone, which is as good as the task that holds it."""
    return _LEASE.sub(r"\1…", scope["path"])


async def send_answer(send: Send, status: int, headers: Iterable[tuple[str, str]], body: bytes) -> None:
    """One whole response."""
    raw = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers]
    raw = [pair for pair in raw if pair[0] != b"content-length"]
    raw.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": body})


async def send_problem(scope: Scope, send: Send, error: ApiError) -> None:
    headers = [("content-type", problem_type(scope["path"])), *error.headers.items()]
    await send_answer(send, error.http_status, headers, json.dumps(problem_body(scope, error)).encode())


def problem_type(path: str) -> str:
    """The media type of a problem. Under /v2 it is JSON's own: KServe's client reads the message of no other."""
    return "application/json" if path == "/v2" or path.startswith("/v2/") else PROBLEM_JSON


def problem_body(scope: Scope, error: ApiError) -> dict[str, Any]:
    """The problem object. That of a step says what became of the step, where the error itself does not; one under /v2
    has the Open Inference Protocol's member `error` too, which is all that its clients read."""
    body = error.body(scope["path"])
    if error.at is not None and not _has_json(scope):
        del body["errors"]
    if scope["path"].startswith("/v2"):
        body["error"] = body["detail"]
    if "outcome" not in body and scope["method"] == "POST" and _STEPS.fullmatch(scope["path"]):
        if not acting(scope).began:
            body["outcome"] = "not-run"
        elif error.kind in _AFTERWARDS:
            body.update(outcome="unknown", retryable=False)
    return body


def _has_json(scope: Scope) -> bool:
    """Whether a JSON Pointer can lead into the request's body: into a protobuf message, or none, it leads nowhere."""
    return scope["method"] in ("POST", "PUT", "PATCH") and "protobuf" not in (header(scope, "content-type") or "")


class Acting:
    """Records that a request has taken effect, or may have. Called from any thread."""

    def __init__(self) -> None:
        self.began = False
        #: Undoes what the request did, where that can be done: its answer is lost, and nobody would know of it.
        self.undo: Callable[[], Awaitable[object]] | None = None

    def __call__(self) -> None:
        self.began = True


def acting(scope: Scope) -> Acting:
    """The function to call just before the request takes effect; the same one for each layer of a request."""
    found = scope.setdefault(_ACTING, Acting())
    assert isinstance(found, Acting)
    return found
