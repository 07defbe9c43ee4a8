"""A connection that goes no further: each call gets the reason, and the connection its end."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tenfold_core.access.gate import NOBODY, Gate
from tenfold_core.access.roles import Role
from tenfold_services.http2.handler import Failure
from tenfold_services.tunnel import refusals
from tenfold_services.tunnel.refusals import refuse

FAILURE = Failure(7, "not for you")


class FakeConnection:
    """A ConnectionSocket. `leave` ends it, unless it is `stuck`."""

    made: FakeConnection
    stuck = False

    def __init__(self, sock: Any, peer: str, calls: Any, on_end: Any, caller: Any) -> None:
        FakeConnection.made = self
        self.sock, self.peer, self.calls, self.on_end, self.caller = sock, peer, calls, on_end, caller
        self.left: list[float] = []
        self.closed = 0

    def leave(self, seconds: float) -> None:
        self.left.append(seconds)
        if not self.stuck:
            self.on_end(self)

    def close(self) -> None:
        self.closed += 1


@pytest.fixture(autouse=True)
def fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refusals, "ConnectionSocket", FakeConnection)
    monkeypatch.setattr(Gate, "accepted", lambda self, sock: NOBODY)


async def begun(seconds: float) -> asyncio.Task[None]:
    task = asyncio.create_task(refuse("the socket", "peer:1", FAILURE, seconds))  # type: ignore[arg-type]
    await asyncio.sleep(0)
    return task


async def test_every_call_of_anybody_is_answered_with_the_reason() -> None:
    task = await begun(60.0)
    made = FakeConnection.made
    assert (made.sock, made.peer, made.caller) == ("the socket", "peer:1", NOBODY)
    for path in (b"/a/B", b"/tensorflow.MasterService/CreateSession"):
        handler, _ = made.calls.handler(path)
        assert handler.needs is Role.NONE
        assert (handler.aligned, handler.action) == (None, "tunnel")
        assert handler.begin(b"request", None) == FAILURE
    made.on_end(made)
    await task
    assert (made.left, made.closed) == ([], 1)


async def test_what_such_a_connection_may_take() -> None:
    task = await begun(60.0)
    calls = FakeConnection.made.calls
    assert calls.budget.limit == 64 << 20
    assert (calls.settings.calls, calls.settings.streams, calls.settings.handshake_seconds) == (1024, 512, 5.0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert FakeConnection.made.closed == 1


async def test_it_ends_after_a_while_once_the_answers_are_read() -> None:
    async with asyncio.timeout(20):
        await (await begun(0.001))
    assert FakeConnection.made.left == [1.0]
    assert FakeConnection.made.closed == 1


async def test_one_whose_end_is_not_read_ends_too(monkeypatch: pytest.MonkeyPatch) -> None:
    bounds: list[float] = []
    timeout = asyncio.timeout
    monkeypatch.setattr(refusals.asyncio, "timeout", lambda seconds: (bounds.append(seconds), timeout(seconds))[1])
    monkeypatch.setattr(refusals, "_LINGER_S", 0.001)
    monkeypatch.setattr(FakeConnection, "stuck", True)
    async with asyncio.timeout(20):
        with pytest.raises(TimeoutError):
            await (await begun(0.001))
    assert FakeConnection.made.closed == 1
    assert bounds[-2:] == [0.001, 0.002]
