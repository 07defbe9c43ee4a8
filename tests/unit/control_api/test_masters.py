"""Blocking calls to masters: their bounds, their errors, the loss of a task, and which connection each goes over."""

from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from tenfold_control_api import masters as module
from tenfold_control_api.cluster import Cluster, Newcomer
from tenfold_control_api.masters import Masters, Registered
from tenfold_control_api.problems import ApiError
from tenfold_core import errors
from tenfold_core.access.roles import Role
from tenfold_core.access.task_tokens import service_token
from tenfold_core.access.tokens import Token, TokenSet, digest_of

TASK = "/job:worker/replica:0/task:0"


class Master:
    """A connection whose calls wait until it is closed or released."""

    def __init__(self, where: tuple[Any, ...]) -> None:
        self.where, self.closed = where, 0
        self.entered, self.released = threading.Event(), threading.Event()

    def wait(self) -> str:
        self.entered.set()
        if not self.released.wait(30):
            raise AssertionError("nobody released the call")
        return "done"

    def close(self) -> None:
        self.closed += 1
        self.released.set()


class Connections:
    """The masters with what they were made for; closed at the end."""

    def __init__(self, *, threads: int = 1, backlog: int = 1) -> None:
        self.made: list[Master] = []
        self.masters = Masters(self._make, threads=threads, backlog=backlog)  # type: ignore[arg-type]

    def _make(self, *where: Any) -> Master:
        self.made.append(Master(where))
        return self.made[-1]

    async def __aenter__(self) -> Connections:
        return self

    async def __aexit__(self, *_: object) -> None:
        for master in self.made:
            master.released.set()
        await self.masters.close(30.0)

    async def call(self, work: Any = None, *, target: str = "grpc://h:1", limit: float = 30.0, **given: Any) -> Any:
        return await self.masters.call(
            target, work or (lambda master, _: master.wait()), limit=limit, task=TASK, **given
        )

    async def begin(self, **given: Any) -> asyncio.Task[Any]:
        """A call that runs now."""
        call = asyncio.create_task(self.call(**given))
        await asyncio.sleep(0)
        await asyncio.to_thread(self.made[-1].entered.wait)
        return call


async def refused(call: Any) -> ApiError:
    with pytest.raises(ApiError) as raised:
        await call
    return raised.value


async def test_a_call_gets_the_connection_and_the_seconds_that_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Connections() as made:
        master, left = await made.call(lambda master, left: (master, left), limit=20.0)
        assert master.where == ("grpc://h:1", None)
        assert 19.0 < left <= 20.0
        assert made.masters.running == 0
        moments = iter((100.0, 120.0))
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: next(moments)))
        assert (await made.call(lambda _, left: left, limit=20.0)) == 0.001


async def test_each_target_role_and_shown_token_has_a_connection() -> None:
    known = Registered("lease", None)
    async with Connections() as made:
        for given in (
            *({}, {}),
            {"target": "grpc://h:2"},
            {"as_role": Role.READ},
            *({"known": known}, {"known": known, "as_role": Role.READ}),
        ):
            await made.call(lambda *_: None, **given)
    assert [master.where for master in made.made] == [
        ("grpc://h:1", None),
        ("grpc://h:2", None),
        ("grpc://h:1", Role.READ),
        ("grpc://h:1", None, known),
        ("grpc://h:1", Role.READ, known),
    ]
    assert [master.closed for master in made.made] == [1] * 5


async def test_an_error_of_the_master_names_its_task() -> None:
    def fail(*_: Any) -> None:
        raise errors.AbortedError(None, None, "the variable is gone")

    async with Connections() as made:
        error = await refused(made.call(fail))
    assert (error.code, error.task) == ("ABORTED", TASK)
    assert "the variable is gone" in error.detail


async def test_calls_that_run_or_wait_are_bounded_and_closing_is_not_counted() -> None:
    async with Connections(threads=1, backlog=1) as made:
        first = await made.begin()
        second = asyncio.create_task(made.call())
        await asyncio.sleep(0)
        assert made.masters.running == 2
        error = await refused(made.call())
        assert (error.kind, error.extra, error.headers) == (
            "too-many-calls",
            {"outcome": "not-run"},
            {"Retry-After": "1"},
        )
        assert error.detail == ("2 calls to masters are running or waiting: the limit is 2. Send the request later.")
        assert await made.call(lambda *_: "closed", closing=True) == "closed"
        made.made[0].released.set()
        assert await asyncio.gather(first, second) == ["done", "done"]
        closing = asyncio.create_task(made.call(lambda *_: "closed", closing=True))
        other = asyncio.create_task(made.call(lambda *_: "other"))
        assert await asyncio.gather(closing, other) == ["closed", "other"]


async def test_a_call_that_waits_too_long_for_a_thread_was_not_started() -> None:
    async with Connections() as made:
        first = await made.begin()
        error = await refused(made.call(limit=0.01))
        assert (error.kind, error.task, error.extra) == ("call-not-started", TASK, {"outcome": "not-run"})
        assert error.detail == f"the call to {TASK} waited 0.01 s for one of 1 threads and was not started."
        made.made[0].released.set()
        await first
        assert made.masters.running == 0


async def test_a_call_that_is_not_answered_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_OVERTIME", 0.01)
    async with Connections() as made:
        error = await refused(made.call(limit=0.01))
        assert (error.kind, error.task, error.detail) == (
            "call-unanswered",
            TASK,
            f"{TASK} did not answer within 0.01 s.",
        )
        assert made.masters.running == 1


async def test_the_masters_own_error_is_waited_for_a_little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_OVERTIME", 30.0)
    async with Connections() as made:
        call = await made.begin(limit=0.01)
        asyncio.get_running_loop().call_later(0.05, made.made[0].released.set)
        assert await call == "done"


async def test_a_lost_task_ends_its_calls_at_once() -> None:
    async with Connections() as made:
        lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        running = await made.begin(lost=lost)
        waiting = asyncio.create_task(made.call(lost=lost))
        await asyncio.sleep(0)
        lost.set_result(f"{TASK} was lost")
        errors_found = [await refused(running), await refused(waiting)]
    begun, queued = errors_found
    assert (begun.kind, begun.retryable, begun.extra, begun.missing_tasks) == ("task-lost", False, {}, [TASK])
    assert begun.detail == f"{TASK} was lost while a call to its master was running."
    assert (queued.retryable, queued.extra) == (True, {"outcome": "not-run"})
    assert queued.detail == f"{TASK} was lost while a call to its master was waiting for its turn."
    assert made.made[0].closed == 1


async def test_an_answer_that_came_counts_even_if_the_task_is_lost() -> None:
    async with Connections() as made:
        lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        call = await made.begin(lost=lost)
        made.made[0].released.set()
        assert await call == "done"
        lost.set_result("late")


async def test_connections_that_nobody_uses_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_KEPT", 2)
    async with Connections(threads=2) as made:
        busy = await made.begin()
        for number in range(2, 5):
            await made.call(lambda *_: None, target=f"grpc://h:{number}")
        assert [master.closed for master in made.made] == [0, 1, 1, 0]
        made.made[0].released.set()
        await busy


async def test_closing_ends_the_calls_and_waits_for_them() -> None:
    made = Connections()
    call = await made.begin()
    await made.masters.close(30.0)
    assert await call == "done"
    assert (made.made[0].closed, made.masters.running) == (1, 0)
    with pytest.raises(RuntimeError):
        await made.call()
    with pytest.raises(RuntimeError):
        await made.call(closing=True)


async def test_a_connection_that_is_not_open_is_forgotten_without_an_error() -> None:
    async with Connections() as made:
        made.masters.forget(("grpc://h:1", None, None))


# --- what is shown


def tokens(*texts: str | None) -> TokenSet:
    return TokenSet((text, Token(digest_of(text or "hashed"))) for text in texts)


def test_what_is_known_of_a_task_is_its_own_lease_or_who_registered_it() -> None:
    cluster = Cluster.new("c", "u", {"worker": 2}, now=0.0)
    own = cluster.register("worker", 0, Newcomer("h:1", "a", "lease", registrar="ann", lease="lease"), 1.0).task
    given = cluster.register("worker", 1, Newcomer("h:2", "b", "lease", registrar="ann"), 1.0).task
    assert Registered.of(own) == Registered("lease", None)
    assert Registered.of(given) == Registered(None, "ann")


def test_a_task_is_shown_what_only_it_can_use_or_what_it_showed_itself() -> None:
    assert Registered("lease", None).shown(tokens("the-token")).shown == service_token("lease")
    registrar = digest_of("the-token").hex()
    assert Registered(None, registrar).shown(tokens("other", "the-token")).lines == tokens("the-token").lines
    assert len(Registered(None, registrar).shown(tokens("other"))) == 0
    assert len(Registered(None, digest_of("hashed").hex()).shown(tokens(None))) == 0
    assert len(Registered(None, None).shown(tokens("the-token"))) == 0
