"""ASGI types that the middleware modules share, and how a middleware answers with a problem.

Used by middleware.py and idempotency.py. Plain ASGI, because Starlette's BaseHTTPMiddleware would run every request in
one more task.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.types import Scope, Send

    from tenfold_control_api.problems import ApiError

PROBLEM_JSON = "application/problem+json"


def header(scope: Scope, name: str) -> str | None:
    """The value of a request header, None when it is absent."""
    wanted = name.lower().encode("latin-1")
    for key, value in scope["headers"]:
        if key == wanted:
            return bytes(value).decode("latin-1")
    return None


async def send_answer(send: Send, status: int, headers: Iterable[tuple[str, str]], body: bytes) -> None:
    """One whole response."""
    raw = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers]
    raw = [pair for pair in raw if pair[0] != b"content-length"]
    raw.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": body})


async def send_problem(scope: Scope, send: Send, error: ApiError) -> None:
    headers = [("content-type", PROBLEM_JSON), *error.headers.items()]
    await send_answer(send, error.http_status, headers, json.dumps(error.body(scope["path"])).encode())
