"""Requests with an Idempotency-Key: which run, which get a stored answer, and what becomes of their keys."""

from __future__ import annotations

import asyncio
import logging
from types import SimpleNamespace
from typing import Any, cast

import pytest
from sqlalchemy.exc import OperationalError

from tenfold_control_api.answer_store import StoredAnswer
from tenfold_control_api.asgi import acting
from tenfold_control_api.entry import CALLER
from tenfold_control_api.idempotency import IdempotencyMiddleware
from tenfold_control_api.problems import ApiError
from tenfold_control_api.service_settings import Settings
from tenfold_core.access.gate import Caller
from tenfold_core.access.roles import Role

BROKEN = OperationalError("", {}, Exception("the disk is full"))


class Answers:
    """The table of answers, of one process named "me", in memory."""

    owner = "me"

    def __init__(self) -> None:
        self.rows: dict[str, StoredAnswer] = {}
        self.old: set[str] = set()
        self.done: list[str] = []
        #: Calls that fail, by name.
        self.broken: set[str] = set()

    def _did(self, what: str) -> None:
        self.done.append(what)
        if what in self.broken:
            raise BROKEN

    async def former(self, key: str) -> StoredAnswer | None:
        return StoredAnswer("", "", 0.0, 200, [], b"") if key in self.old else None

    async def begin(self, key: str, fingerprint: str, principal: str) -> StoredAnswer | None:
        self._did("begin")
        if key in self.rows:
            return self.rows[key]
        self.rows[key] = StoredAnswer(fingerprint, self.owner, 0.0, None, [], None)
        return None

    async def take_over(self, key: str, owner: str) -> bool:
        self._did("take_over")
        row = self.rows[key]
        if row.owner != owner:
            return False
        self.rows[key] = StoredAnswer(row.fingerprint, self.owner, 0.0, None, [], None)
        return True

    async def finish(self, key: str, principal: str, status: int, headers: Any, body: bytes | None) -> None:
        self._did("finish")
        row = self.rows[key]
        self.rows[key] = StoredAnswer(row.fingerprint, row.owner, 0.0, status, headers, body)

    async def drop(self, key: str, principal: str) -> None:
        self._did("drop")
        del self.rows[key]


class Service:
    """The middleware over an app that answers as a test says."""

    def __init__(self, **settings: Any) -> None:
        self.answers, self.ran = Answers(), 0
        self.status, self.body, self.acts = 200, b"hello", False
        self.error: BaseException | None = None
        self.gate: asyncio.Event | None = None
        self.entered = asyncio.Event()
        self.undone = 0
        self.bodies: list[bytes] = []
        self.alive: set[str] = set()

        async def alive(owner: str) -> bool:
            return owner in self.alive

        replicas = SimpleNamespace(alive=alive)
        control = SimpleNamespace(answers=self.answers, replicas=replicas)
        self.app = SimpleNamespace(state=SimpleNamespace(control=control))
        self.middleware = IdempotencyMiddleware(cast("Any", self.work), Settings(**settings))

    async def work(self, scope: Any, receive: Any, send: Any) -> None:
        self.ran += 1
        self.entered.set()
        if scope["type"] == "http" and scope["method"] == "POST":
            self.bodies.append((await receive()).get("body"))
        if self.gate is not None:
            await self.gate.wait()
        if self.acts:
            acting(scope)()
            acting(scope).undo = self._undo
        if self.error is not None:
            raise self.error
        await send({"type": "http.response.start", "status": self.status, "headers": [(b"x-name", b"value")]})
        await send({"type": "http.response.body", "body": self.body[:2], "more_body": True})
        await send({"type": "http.response.body", "body": self.body[2:]})

    async def _undo(self) -> None:
        self.undone += 1

    async def __call__(
        self,
        key: str | None = "key",
        *,
        path: str = "/v1/leases",
        method: str = "POST",
        kind: str = "http",
        body: tuple[bytes, ...] = (b"body",),
        query: bytes = b"",
        caller: str = "ann",
        **headers: str,
    ) -> SimpleNamespace | None:
        given = [(name.replace("_", "-").encode(), value.encode("latin-1")) for name, value in headers.items()]
        if key is not None:
            given.append((b"idempotency-key", key.encode("latin-1")))
        scope: Any = {"type": kind, "method": method, "path": path, "query_string": query, "headers": given}
        scope |= {"app": self.app, CALLER: Caller(Role.ADMIN, caller)}
        messages = [
            {"type": "http.request", "body": part, "more_body": number < len(body)}
            for number, part in enumerate(body, 1)
        ] or [{"type": "http.disconnect"}]
        sent: list[Any] = []

        async def receive() -> Any:
            return messages.pop(0)

        async def send(message: Any) -> None:
            sent.append(message)

        await self.middleware(scope, receive, send)
        if not sent:
            return None
        start, *parts = sent
        return SimpleNamespace(
            status=start["status"], headers=dict(start["headers"]), body=b"".join(part["body"] for part in parts)
        )

    async def refused(self, *args: Any, **kwargs: Any) -> ApiError:
        with pytest.raises(ApiError) as raised:
            await self(*args, **kwargs)
        return raised.value


@pytest.mark.parametrize("given", [{"key": None}, {"method": "GET"}, {"kind": "lifespan"}])
async def test_what_has_no_key_or_is_no_post_passes_untouched(given: dict[str, Any]) -> None:
    service = Service()

    await service(**given)
    await service(**given)

    assert (service.ran, service.answers.done) == (2, [])


@pytest.mark.parametrize("key", ["", "k" * 256, "käse", "two\tparts"])
async def test_a_key_has_printable_characters_of_ascii(key: str) -> None:
    service = Service()
    error = await service.refused(key)
    assert (error.kind, error.detail) == (
        "invalid-idempotency-key",
        "Idempotency-Key must be 1 to 255 printable ASCII characters.",
    )
    assert service.ran == 0


async def test_the_longest_key_is_accepted() -> None:
    assert await Service()("k" * 255) is not None
    assert await Service()("k") is not None


async def test_a_client_that_goes_away_before_its_body_ends_runs_nothing() -> None:
    service = Service()
    assert await service(body=()) is None
    assert (service.ran, service.answers.done) == (0, [])


async def test_the_second_request_gets_the_first_ones_answer() -> None:
    service = Service()

    first = await service(body=(b"bo", b"dy"))
    again = await service()

    assert first is not None
    assert again is not None
    assert (first.status, first.body, first.headers) == (200, b"hello", {b"x-name": b"value", b"content-length": b"5"})
    assert again.headers == {**first.headers, b"idempotency-replayed": b"true"}
    assert (again.status, again.body) == (200, b"hello")
    assert (service.ran, service.bodies) == (1, [b"body"])


@pytest.mark.parametrize(
    "given",
    [
        {"body": (b"other",)},
        {"query": b"a=1"},
        {"content_type": "text/plain"},
        {"inference_header_content_length": "7"},
    ],
)
async def test_a_key_is_for_one_request_alone(given: dict[str, Any]) -> None:
    service = Service()
    await service()

    error = await service.refused(**given)

    assert error.kind == "idempotency-key-reused"
    assert error.detail.startswith("this Idempotency-Key was used before for another request (body, query or content")
    assert service.ran == 1


@pytest.mark.parametrize("given", [{"caller": "bob"}, {"path": "/v1/clusters/c/claim"}, {"key": "other"}])
async def test_each_caller_and_path_has_its_own_keys(given: dict[str, Any]) -> None:
    service = Service()
    await service()
    await service(**given)
    assert service.ran == 2


@pytest.mark.parametrize("status", [400, 199, 300])
async def test_a_refusal_before_anything_was_done_frees_the_key(status: int) -> None:
    service = Service()
    service.status = status
    refused = await service()
    assert refused is not None
    assert refused.status == status
    assert service.answers.rows == {}

    service.status = 200
    assert (await service()).status == 200  # type: ignore[union-attr]
    assert service.ran == 2


async def test_a_refusal_after_it_took_effect_is_kept() -> None:
    service = Service()
    service.status, service.acts = 409, True
    await service()
    again = await service()
    assert again is not None
    assert (again.status, service.ran) == (409, 1)


@pytest.mark.parametrize(("size", "kept"), [(8, True), (9, False)])
async def test_an_answer_that_is_too_large_is_given_but_not_kept(size: int, kept: bool) -> None:
    service = Service(max_stored_answer=8)
    service.body = b"x" * size
    first = await service()
    assert first is not None
    assert first.body == service.body
    if kept:
        assert (await service()).body == service.body  # type: ignore[union-attr]
        return

    error = await service.refused()

    assert (error.kind, error.extra) == ("answer-not-kept", {"outcome": "done"})
    assert "worked on and answered with status 200, but the answer was too large to keep" in error.detail
    assert service.ran == 1


async def test_an_error_frees_the_key_unless_the_request_took_effect() -> None:
    service = Service()
    service.error = RuntimeError("broken")
    with pytest.raises(RuntimeError, match="broken"):
        await service()
    assert service.answers.done == ["begin", "drop"]

    service.acts = True
    with pytest.raises(RuntimeError, match="broken"):
        await service()
    assert service.answers.done == ["begin", "drop", "begin"]


async def test_a_key_that_cannot_be_freed_is_logged_and_the_answer_is_given(caplog: pytest.LogCaptureFixture) -> None:
    service = Service()
    service.status, service.answers.broken = 404, {"drop"}
    answer = await service()
    assert answer is not None
    assert answer.status == 404
    assert [each.message for each in caplog.records] == ["an Idempotency-Key could not be freed"]


@pytest.mark.parametrize("acts", [False, True])
@pytest.mark.parametrize("path", ["/v1/leases", "/v1/sessions"])
async def test_an_answer_that_cannot_be_kept_is_not_given_and_undone(path: str, acts: bool) -> None:
    service = Service()
    service.answers.broken, service.acts = {"finish"}, acts

    error = await service.refused(path=path)

    then = "send it again" if path == "/v1/leases" else "it will not be run again under this key"
    assert error.detail == (
        f"the answer to this request could not be stored. Whether it took effect is unknown; {then}."
    )
    assert (error.kind, error.extra) == ("outcome-unknown", {"outcome": "unknown"})
    assert service.undone == int(acts)


async def test_a_database_that_fails_is_said_to(caplog: pytest.LogCaptureFixture) -> None:
    service = Service()
    service.answers.broken = {"begin"}
    error = await service.refused()
    assert (error.kind, service.ran) == ("database-unavailable", 0)
    assert "failed over an Idempotency-Key of POST /v1/leases: " in caplog.text
    service.answers.broken = set()
    assert await service() is not None


async def test_the_same_request_meanwhile_waits_and_gets_the_answer_and_another_is_refused() -> None:
    service = Service()
    service.gate = asyncio.Event()
    first = asyncio.create_task(service())
    await service.entered.wait()
    second = asyncio.create_task(service())
    assert (await service.refused(body=(b"other",))).kind == "idempotency-key-reused"
    service.gate.set()

    await first
    again = await second

    assert again is not None
    assert again.headers[b"idempotency-replayed"] == b"true"
    assert service.ran == 1


async def test_it_waits_no_longer_than_a_long_poll() -> None:
    service = Service(max_wait=0.01)
    service.gate = asyncio.Event()
    first = asyncio.create_task(service())
    await service.entered.wait()

    error = await service.refused()

    assert (error.kind, error.extra) == ("in-progress", {"outcome": "unknown"})
    assert error.headers == {"Retry-After": "1"}
    service.gate.set()
    await first


def _left(service: Service, owner: str) -> None:
    """The only row is that of a request which `owner` did not finish."""
    (key,) = service.answers.rows
    row = service.answers.rows[key]
    service.answers.rows[key] = StoredAnswer(row.fingerprint, owner, 0.0, None, [], None)
    service.answers.done.clear()


async def test_a_request_of_a_living_service_is_in_progress() -> None:
    service = Service()
    await service()
    _left(service, "other")
    service.alive = {"other", "me"}
    assert (await service.refused()).kind == "in-progress"
    assert service.ran == 1


@pytest.mark.parametrize("owner", ["me", "gone"])
async def test_a_registry_request_that_was_left_runs_again(owner: str) -> None:
    service = Service()
    await service()
    _left(service, owner)
    service.alive = {"me"}

    answer = await service()

    assert answer is not None
    assert b"idempotency-replayed" not in answer.headers
    assert (service.ran, service.answers.done) == (2, ["begin", "take_over", "finish"])


@pytest.mark.parametrize("owner", ["me", "gone"])
async def test_a_step_that_was_left_never_runs_again(owner: str) -> None:
    service = Service()
    await service(path="/v1/sessions/s/steps")
    _left(service, owner)

    error = await service.refused(path="/v1/sessions/s/steps")

    assert error.kind == "outcome-unknown"
    assert error.detail == (
        "the control service stopped while it worked on the request with this key. Whether it took effect is unknown; "
        "it will not be run again under this key."
    )
    assert service.ran == 1


async def test_another_service_that_takes_over_first_answers() -> None:
    service = Service()
    await service()
    _left(service, "gone")
    take_over = service.answers.take_over

    async def too_late(key: str, owner: str) -> bool:
        row = service.answers.rows[key]
        service.answers.rows[key] = StoredAnswer(row.fingerprint, "faster", 0.0, 202, [], b"theirs")
        return await take_over(key, owner)

    service.answers.take_over = too_late  # type: ignore[method-assign]

    answer = await service()

    assert answer is not None
    assert (answer.status, answer.body, service.ran) == (202, b"theirs", 1)


async def test_a_key_of_before_keys_had_callers_is_refused() -> None:
    service = Service()
    asked: list[str] = []

    async def former(key: str) -> StoredAnswer:
        asked.append(key)
        return StoredAnswer("", "", 0.0, 200, [], b"")

    service.answers.former = former  # type: ignore[method-assign]

    error = await service.refused()
    await service.refused(caller="bob")

    assert error.detail == (
        "this key was used before a release in which keys belong to their callers. Whether it took effect is unknown; "
        "it will not be run again under this key."
    )
    assert asked[0] == asked[1]
    assert (service.ran, service.answers.done) == (0, [])


async def test_a_step_goes_on_when_its_client_goes_away() -> None:
    service = Service()
    listening = asyncio.Event()

    async def work(scope: Any, receive: Any, send: Any) -> None:
        assert await receive() == {"type": "http.request", "body": b"body", "more_body": False}
        rest = asyncio.ensure_future(receive())
        await asyncio.sleep(0)
        assert not rest.done()
        rest.cancel()
        listening.set()
        await service.work({**scope, "method": "PUT"}, receive, send)

    service.middleware = IdempotencyMiddleware(cast("Any", work), Settings())

    assert await service() is not None
    assert listening.is_set()


async def test_one_that_is_cancelled_frees_its_key() -> None:
    service = Service()
    service.gate = asyncio.Event()
    first = asyncio.create_task(service())
    await service.entered.wait()
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first

    assert service.answers.done == ["begin", "drop"]
    service.gate.set()
    assert await service() is not None


@pytest.fixture(autouse=True)
def _logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
