"""`Idempotency-Key` on every POST: the same request again gets the stored answer, and a step never runs twice.

Innermost middleware of app.py, over answer_store.py. A key is its caller's: of two callers each has the same one for
itself. Registry requests (claim, renew, release) run again if the
service ended while they ran, because they are idempotent; session requests do not, and their answer is then that the
outcome is unknown. A request that is refused before it did anything frees its key.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from typing import TYPE_CHECKING

from sqlalchemy.exc import SQLAlchemyError

from tenfold_control_api.asgi import acting, header, send_answer
from tenfold_control_api.entry import caller_of
from tenfold_control_api.problems import ApiError, from_database_error

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from tenfold_control_api.answer_store import AnswerStore, StoredAnswer
    from tenfold_control_api.replicas import Replicas
    from tenfold_control_api.service_settings import Settings

log = logging.getLogger(__name__)


class IdempotencyMiddleware:
    """ASGI middleware; requests without the header pass through untouched."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._settings = settings
        #: Keys that this process works on now: set before the database has them.
        self._running: dict[str, _Running] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST" or header(scope, "idempotency-key") is None:
            await self._app(scope, receive, send)
            return
        key = header(scope, "idempotency-key") or ""
        if not 1 <= len(key) <= 255 or not key.isascii() or not key.isprintable():
            raise ApiError("invalid-idempotency-key", "Idempotency-Key must be 1 to 255 printable ASCII characters.")
        body = await _read(receive)
        if body is None:
            return
        store: AnswerStore = scope["app"].state.control.answers
        principal = caller_of(scope).principal
        row_key = _digest(principal.encode(), scope["path"].encode(), key.encode())
        told = [header(scope, name) or "" for name in ("content-type", "inference-header-content-length")]
        fingerprint = _digest(scope["query_string"], *(text.encode("latin-1") for text in told), body)
        await self._wait_for(row_key, fingerprint)
        mine = self._running[row_key] = _Running(fingerprint)
        try:
            try:
                await self._look_at_former(scope, store, key)
                answered = await self._answered(scope, send, store, row_key, fingerprint, principal)
            except (SQLAlchemyError, OSError) as error:
                log.error("the database failed over an Idempotency-Key of POST %s: %s", scope["path"], error)
                raise from_database_error(error) from None
            if not answered:
                await self._work(scope, send, store, row_key, principal, body)
        finally:
            del self._running[row_key]
            mine.done.set()

    async def _wait_for(self, key: str, fingerprint: str) -> None:
        """Returns when no request of this process has the key."""
        while (running := self._running.get(key)) is not None:
            if running.fingerprint != fingerprint:
                raise _reused()
            try:
                async with asyncio.timeout(self._settings.max_wait):
                    await running.done.wait()
            except TimeoutError:
                raise _in_progress() from None

    async def _look_at_former(self, scope: Scope, store: AnswerStore, key: str) -> None:
        """Raises for a key that was used when keys belonged to nobody: its answer may be another caller's, and the
        request may have been this one."""
        if await store.former(_digest(scope["path"].encode(), key.encode())) is not None:
            why = "this key was used before a release in which keys belong to their callers"
            raise _unknown(scope, why, again=False)

    async def _answered(
        self, scope: Scope, send: Send, store: AnswerStore, key: str, fingerprint: str, principal: str
    ) -> bool:
        """True if the answer was sent; False if this request has the key now and must run."""
        replicas: Replicas = scope["app"].state.control.replicas
        while (row := await store.begin(key, fingerprint, principal)) is not None:
            if row.fingerprint != fingerprint:
                raise _reused()
            if row.status is not None:
                await _replay(send, row)
                return True
            # one of our own could not write down its answer
            if row.owner != store.owner and await replicas.alive(row.owner):
                raise _in_progress()
            if _once(scope):
                raise _unknown(scope, "the control service stopped while it worked on the request with this key")
            if await store.take_over(key, row.owner):
                return False
        return False

    async def _work(
        self, scope: Scope, send: Send, store: AnswerStore, key: str, principal: str, body: bytes
    ) -> None:
        began = acting(scope)
        answer = _Recorder()
        try:
            await self._app(scope, _replayed(body), answer)
        except BaseException:
            if not began.began:
                await asyncio.shield(_drop(store, key, principal))
            raise
        if began.began or 200 <= answer.status < 300:
            kept = bytes(answer.body) if len(answer.body) <= self._settings.max_stored_answer else None
            try:
                await asyncio.shield(store.finish(key, principal, answer.status, answer.headers, kept))
            except (SQLAlchemyError, OSError):
                # a client that sends it again must not get another answer than this one
                log.exception("the answer to a request with an Idempotency-Key could not be kept")
                if began.undo is not None:
                    await asyncio.shield(began.undo())
                raise _unknown(scope, "the answer to this request could not be stored") from None
        else:
            await _drop(store, key, principal)
        await send_answer(send, answer.status, answer.headers, bytes(answer.body))


def _once(scope: Scope) -> bool:
    """Whether the request must not be worked on twice. The others find what they did the first time."""
    return bool(scope["path"].startswith("/v1/sessions"))


class _Running:
    """A request that this process works on."""

    def __init__(self, fingerprint: str) -> None:
        self.fingerprint = fingerprint
        self.done = asyncio.Event()


async def _drop(store: AnswerStore, key: str, principal: str) -> None:
    """Frees the key of a request that did nothing. Where that fails the next one takes it over."""
    try:
        await store.drop(key, principal)
    except (SQLAlchemyError, OSError):
        log.exception("an Idempotency-Key could not be freed")


class _Recorder:
    """An ASGI `send` that keeps the response until it has been stored."""

    def __init__(self) -> None:
        self.status = 500
        self.headers: list[tuple[str, str]] = []
        self.body = bytearray()

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = [(k.decode("latin-1"), v.decode("latin-1")) for k, v in message["headers"]]
        elif message["type"] == "http.response.body":
            self.body += message.get("body", b"")


def _reused() -> ApiError:
    return ApiError(
        "idempotency-key-reused",
        "this Idempotency-Key was used before for another request (body, query or content type differ). Use a new key "
        "for a new request.",
    )


def _unknown(scope: Scope, why: str, *, again: bool = True) -> ApiError:
    what = "send it again" if again and not _once(scope) else "it will not be run again under this key"
    return ApiError(
        "outcome-unknown",
        f"{why}. Whether it took effect is unknown; {what}.",
        extra={"outcome": "unknown"},
    )


def _in_progress() -> ApiError:
    return ApiError(
        "in-progress",
        "a request with this Idempotency-Key is being worked on. Send it again later to get its answer.",
        extra={"outcome": "unknown"},
        headers={"Retry-After": "1"},
    )


async def _replay(send: Send, row: StoredAnswer) -> None:
    assert row.status is not None
    if row.body is None:
        raise ApiError(
            "answer-not-kept",
            f"the request with this Idempotency-Key was worked on and answered with status {row.status}, but the "
            "answer was too large to keep, or had to make room for newer ones. It was not run again.",
            extra={"outcome": "done"},
        )
    await send_answer(send, row.status, [*row.headers, ("Idempotency-Replayed", "true")], row.body)


async def _read(receive: Receive) -> bytes | None:
    """The whole body (its size is bounded further out); None when the client went away."""
    parts = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        parts += message.get("body", b"")
        if not message.get("more_body", False):
            return bytes(parts)


def _replayed(body: bytes) -> Receive:
    sent = False

    async def receive() -> Message:
        nonlocal sent
        if sent:
            # The step goes on when its client disconnects: a request that repeats the key gets the answer.
            await asyncio.Event().wait()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive


def _digest(*parts: bytes) -> str:
    sha = hashlib.sha256()
    for part in parts:
        sha.update(len(part).to_bytes(8, "big"))
        sha.update(part)
    return sha.hexdigest()
