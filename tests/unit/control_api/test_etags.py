"""Which answers get a tag, and which tags a request knows."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tenfold_control_api.etags import LARGEST, ETagMiddleware, is_known, tag_of

TAG = tag_of(b"{}")


@pytest.mark.parametrize(
    ("header", "known"),
    [
        (None, False),
        (TAG, True),
        (f"W/{TAG}", True),
        (f'"a",  {TAG}', True),
        ("*", True),
        ('"a"', False),
        (TAG.strip('"'), False),
        ("", False),
    ],
)
def test_the_tags_of_a_request(header: str | None, known: bool) -> None:
    assert is_known(TAG, header) is known


def test_tags_tell_answers_apart() -> None:
    assert tag_of(b"{}") != tag_of(b"{} ")


def answered(bodies: list[bytes], known: str = TAG, *, status: int = 200, **headers: str) -> list[dict[str, Any]]:
    """What goes out where the app answers with these pieces of a body to a request that knows the tag."""
    found: list[dict[str, Any]] = []
    head = [(b"content-type", b"application/json"), *((k.encode(), v.encode()) for k, v in headers.items())]

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": status, "headers": head})
        for i, body in enumerate(bodies):
            await send({"type": "http.response.body", "body": body, "more_body": i < len(bodies) - 1})

    async def send(message: Any) -> None:
        found.append(message)

    async def receive() -> Any:
        raise AssertionError("nobody asks for the body of a GET")

    scope = {"type": "http", "method": "GET", "path": "/v1/x", "headers": [(b"if-none-match", known.encode())]}
    asyncio.run(ETagMiddleware(app)(scope, receive, send))
    return found


def test_a_known_answer_is_304() -> None:
    start, body = answered([b"{}"])

    assert (start["status"], body["body"]) == (304, b"")
    assert dict(start["headers"])[b"etag"] == TAG.encode()
    assert b"content-type" not in dict(start["headers"])


@pytest.mark.parametrize(
    ("bodies", "more"),
    [
        ([b"{", b"}"], {}),
        ([b" " * (LARGEST + 1)], {}),
        ([b"{}"], {"status": 404}),
        ([b"{}"], {"etag": '"its own"'}),
        ([b"{}"], {"cache-control": "no-store"}),
    ],
)
def test_what_passes_untouched(bodies: list[bytes], more: dict[str, Any]) -> None:
    start, *sent = answered(bodies, "*", **more)

    assert start["status"] == more.get("status", 200)
    assert [each["body"] for each in sent] == bodies
    assert dict(start["headers"]).get(b"etag") == (more["etag"].encode() if "etag" in more else None)
