"""ETags for what is asked again and again: a GET whose answer has not changed is answered with 304 and no body.

A layer of app.py, inside the gate: who may not read a thing learns nothing of its tag. The tag is a digest of the JSON
that would be sent, so that no route has to know what its answer depends on; it saves sending and parsing, not looking.
A stream, a large answer, and one that has a tag of its own (the dashboard's files) pass through untouched.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from tenfold_control_api.asgi import header

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: Bytes of the longest answer that gets a tag.
LARGEST = 4 << 20
#: Paths whose answers get one.
PREFIXES = ("/v1/", "/v2", "/openapi.json")
#: Browsers and proxies keep the answer to one caller, and ask whether it is still good before they use it again.
CACHE_CONTROL = "private, no-cache"
#: Answers differ by these request headers.
_VARY = "Accept, Authorization"


def tag_of(body: bytes) -> str:
    """The strong ETag of an answer."""
    return f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'


def is_known(tag: str, if_none_match: str | None) -> bool:
    """Whether a request's If-None-Match has the tag. Weak comparison, as RFC 9110 asks for."""
    if if_none_match is None:
        return False
    return any(each.strip().removeprefix("W/") in (tag, "*") for each in if_none_match.split(","))


class ETagMiddleware:
    """Plain ASGI."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "GET" or not scope["path"].startswith(PREFIXES):
            await self._app(scope, receive, send)
            return
        held: Message | None = None

        async def tagged(message: Message) -> None:
            nonlocal held
            if message["type"] == "http.response.start" and _may_be_tagged(message):
                held = message
                return
            start, held = held, None
            if start is None:
                await send(message)
                return
            body = message.get("body", b"")
            if message["type"] != "http.response.body" or message.get("more_body", False) or len(body) > LARGEST:
                await send(start)
                await send(message)
                return
            tag = tag_of(body)
            added = ((b"etag", tag), (b"cache-control", CACHE_CONTROL), (b"vary", _VARY))
            headers = [*start["headers"], *((name, value.encode("ascii")) for name, value in added)]
            if is_known(tag, header(scope, "if-none-match")):
                kept = [pair for pair in headers if pair[0] not in (b"content-length", b"content-type")]
                await send({**start, "status": 304, "headers": kept})
                await send({**message, "body": b""})
                return
            await send({**start, "headers": headers})
            await send(message)

        await self._app(scope, receive, tagged)


def _may_be_tagged(start: Message) -> bool:
    headers = {name.lower(): value for name, value in start["headers"]}
    kind = headers.get(b"content-type", b"").partition(b";")[0]
    return start["status"] == 200 and kind == b"application/json" and not {b"etag", b"cache-control"} & headers.keys()
