"""Two connections to one peer: what is a sign of life, and what is none."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tenfold_core import errors
from tenfold_core.access.credentials import NO_CREDENTIALS
from tenfold_protos import worker_pb2
from tenfold_services.limits import DEFAULT_LIMITS
from tenfold_services.rpc import peer_life
from tenfold_services.rpc.peer_life import PeerLife

if TYPE_CHECKING:
    from collections.abc import Callable

LIMITS = replace(DEFAULT_LIMITS, probe_every_seconds=0.01, probe_answer_seconds=0.1, probe_behind_seconds=0.5)
LATE = errors.deadline_exceeded("not in time")


class Beside:
    """Stands in for the second connection: answers as it is told, and counts."""

    def __init__(self, *answers: errors.OpError | None) -> None:
        self._answers = list(answers)
        self.asked = 0
        self.on_ask: Callable[[], None] = lambda: None

    async def ask(self, *_: Any) -> None:
        self.asked += 1
        self.on_ask()
        answer = self._answers[min(self.asked, len(self._answers)) - 1]
        if answer is not None:
            raise answer

    async def close(self) -> None:
        self.asked = -1


def life(monkeypatch: pytest.MonkeyPatch, beside: Beside, behind: Callable[[float], Any]) -> PeerLife:
    monkeypatch.setattr(peer_life, "open_channel", lambda *_: beside)
    monkeypatch.setattr(peer_life, "ask", beside.ask)
    return PeerLife("/job:ps/task:0", "host:1", LIMITS, NO_CREDENTIALS, behind)


async def test_who_answers_at_once_is_not_asked_beside(monkeypatch: pytest.MonkeyPatch) -> None:
    async def at_once(seconds: float) -> None:
        assert seconds == LIMITS.probe_behind_seconds

    beside = Beside(LATE)
    await life(monkeypatch, beside, at_once).check()

    assert beside.asked == 0


async def test_an_answer_that_is_late_is_waited_for_while_the_peer_answers_beside(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    beside, came = Beside(None), asyncio.Event()
    beside.on_ask = lambda: came.set() if beside.asked == 3 else None
    made = life(monkeypatch, beside, lambda _: came.wait())
    await made.check()
    assert beside.asked >= 3

    await made.close()
    assert beside.asked == -1


@pytest.mark.parametrize("answer", [LATE, errors.unavailable("connection refused")])
async def test_silence_on_both_is_no_sign_of_life(monkeypatch: pytest.MonkeyPatch, answer: errors.OpError) -> None:
    made = life(monkeypatch, Beside(None, answer), lambda _: asyncio.Event().wait())

    with pytest.raises(errors.DeadlineExceededError, match=answer.message):
        await made.check()


async def test_a_refusal_beside_is_a_sign_of_life(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = errors.PermissionDeniedError(None, None, "who are you?")
    made = life(monkeypatch, Beside(refused, refused, LATE), lambda _: asyncio.Event().wait())

    with pytest.raises(errors.DeadlineExceededError, match="not in time"):
        await made.check()


async def test_a_first_connection_that_stays_silent_is_given_up_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    async def late(seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await asyncio.Event().wait()
        raise LATE

    with pytest.raises(errors.DeadlineExceededError):
        await life(monkeypatch, Beside(None), late).check()


async def test_the_peer_is_asked_beside_at_its_address_for_what_is_left_of_the_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[Any] = []
    opened: list[Any] = []
    came = asyncio.Event()
    beside = Beside(None)

    async def ask(*given: Any) -> None:
        asked.append(given)
        if len(asked) == 2:
            came.set()

    made = life(monkeypatch, beside, lambda _: came.wait())
    monkeypatch.setattr(peer_life, "ask", ask)
    monkeypatch.setattr(peer_life, "open_channel", lambda *given: (opened.append(given), beside)[1])

    await made.check()

    assert opened == [("host:1", NO_CREDENTIALS)]
    path, request, response = asked[0][1:4]
    assert (path, request, response) == (
        "/tensorflow.WorkerService/GetStatus",
        worker_pb2.GetStatusRequest(),
        worker_pb2.GetStatusResponse,
    )
    channel, *_, task, address, seconds = asked[0]
    assert (channel, task, address) == (beside, "/job:ps/task:0", "host:1")
    assert seconds == pytest.approx(LIMITS.probe_answer_seconds * 0.85)


async def test_an_error_on_the_first_connection_is_raised_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(seconds: float) -> None:
        raise errors.unavailable("broke")

    with pytest.raises(errors.UnavailableError, match="broke"):
        await life(monkeypatch, Beside(None), broken).check()


async def test_the_first_connection_is_not_asked_any_more_once_the_second_is_silent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gone = asyncio.Event()

    async def behind(seconds: float) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            gone.set()

    with pytest.raises(errors.DeadlineExceededError):
        await life(monkeypatch, Beside(LATE), behind).check()
    assert gone.is_set()


async def test_an_answer_that_fails_while_it_is_cancelled_is_looked_at(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def behind(seconds: float) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise errors.unavailable("broke while it was cancelled")

    with pytest.raises(errors.DeadlineExceededError):
        await life(monkeypatch, Beside(LATE), behind).check()
    gc.collect()
    assert caplog.records == []


async def test_closing_again_or_before_anything_was_asked_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    beside, came = Beside(None), asyncio.Event()
    beside.on_ask = came.set
    made = life(monkeypatch, beside, lambda _: came.wait())
    await made.close()
    await made.check()
    await made.close()
    assert beside.asked == -1
    beside.asked = 0
    await made.close()
    assert beside.asked == 0
