"""What a link does for its peer: each call's answer or error, numbers that come once, limits, the end. No sockets."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import Any

import pytest

from tenfold_core import errors, telemetry
from tenfold_core.access.roles import Role
from tenfold_link.aio.methods import Deferred, LinkMethod
from tenfold_link.aio.serving import Serving
from tenfold_link.link_settings import DEFAULT_LINK_SETTINGS
from tenfold_link.protocol_error import ProtocolError
from tenfold_link.wire.frames import Frame, FrameKind, FrameReader
from tenfold_link.wire.inflow import Inflow
from tenfold_link.wire.packing import Packer
from tenfold_link.wire.trace_prefix import TRACED

LINK: Any = "the link"
SETTINGS = replace(DEFAULT_LINK_SETTINGS, calls_in_flight=2)


class Ends:
    """A Serving with one method, number 3, that does what `handler` says."""

    def __init__(self, handler: Any = None) -> None:
        self.said: list[Frame] = []
        self._reader = FrameReader(SETTINGS, lambda *_: bytearray())
        self.seen: list[Any] = []
        self.handler = handler
        self.serving = Serving("the peer", SETTINGS, Packer(SETTINGS, None), self)  # type: ignore[arg-type]
        self.serving.methods = {3: LinkMethod("Do", self._handle, Role.READ)}

    def _handle(self, link: Any, header: bytes, buffers: list[Any]) -> Any:
        self.seen.append((link, header, buffers))
        return self.handler(header) if callable(self.handler) else self.handler

    def send(self, pieces: list[Any]) -> None:
        data = b"".join(pieces)
        while data:
            space = self._reader.buffer()
            part = data[: len(space)]
            space[: len(part)] = part
            self.said += self._reader.received(len(part))
            data = data[len(part) :]

    def call(self, number: int, header: bytes = b"h", method: int = 3, cost: Any = 0) -> None:
        frames = [Frame(FrameKind.REQUEST, method, number, header, [b"buffer"], cost)]  # type: ignore[list-item]
        self.serving.request(LINK, frames)
        assert frames == []

    def notice(self, method: int = 3) -> None:
        self.serving.notice(LINK, Frame(FrameKind.NOTIFY, method, 0, b"h", []))

    def answers(self) -> list[tuple[FrameKind, int, int, bytes]]:
        said, self.said = self.said, []
        return [(frame.kind, frame.method, frame.call, frame.header) for frame in said]


async def turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_answers_at_once() -> None:
    ends = Ends(lambda header: None if header == b"none" else (b"answer", [b"a", b"b"]))
    ends.call(1)
    assert ends.seen == [(LINK, b"h", [b"buffer"])]
    assert [bytes(buffer) for buffer in ends.said[0].buffers] == [b"a", b"b"]
    ends.call(2, b"none")
    assert ends.answers() == [(FrameKind.REPLY, 0, 1, b"answer"), (FrameKind.REPLY, 0, 2, b"")]


async def test_answers_that_come_later() -> None:
    async def later(header: bytes) -> Any:
        return header.upper(), []

    ends = Ends(later)
    ends.call(1, b"x")
    (task,) = (task for task in asyncio.all_tasks() if task.get_name() == "link:the peer;Do")
    assert ends.answers() == []
    await task
    await turns()
    assert ends.answers() == [(FrameKind.REPLY, 0, 1, b"X")]

    future, deferred = asyncio.get_running_loop().create_future(), Deferred(loop=asyncio.get_running_loop())
    ends.handler = lambda header: future if header == b"future" else deferred
    ends.call(2, b"future")
    ends.call(3, b"deferred")
    deferred.set_result((b"second", []))
    assert ends.answers() == [(FrameKind.REPLY, 0, 3, b"second")], "at once"
    future.set_result(None)
    await turns()
    assert ends.answers() == [(FrameKind.REPLY, 0, 2, b"")]
    ends.handler = lambda header: deferred
    ends.call(4)
    await turns()
    assert ends.answers() == [(FrameKind.REPLY, 0, 4, b"second")], "one that is done already"


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize(
    ("error", "code", "text", "level"),
    [
        (errors.NotFoundError(None, None, "no such thing"), errors.NOT_FOUND, "no such thing", None),
        (MemoryError(), errors.RESOURCE_EXHAUSTED, "Do: there is no memory for it.", "WARNING"),
        (MemoryError("2 TB"), errors.RESOURCE_EXHAUSTED, "Do: there is no memory for it: 2 TB", "WARNING"),
        (KeyError("k"), errors.INTERNAL, "Do: KeyError: 'k'", "ERROR"),
    ],
)
async def test_errors_of_a_handler(
    error: Exception, code: int, text: str, level: str | None, waits: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def later() -> Any:
        raise error

    def handler(header: bytes) -> Any:
        if waits:
            return later()
        raise error

    ends = Ends(handler)
    ends.call(1)
    await turns()
    assert ends.answers() == [(FrameKind.ERROR, code, 1, text.encode())]
    assert [record.levelname for record in caplog.records] == ([] if level is None else [level])


async def test_an_answer_that_cannot_be_sent_is_an_error() -> None:
    ends = Ends((bytes(SETTINGS.header_bytes + 1), []))
    ends.call(1)
    ((kind, code, number, text),) = ends.answers()
    assert (kind, code, number) == (FrameKind.ERROR, errors.RESOURCE_EXHAUSTED, 1)
    assert b"The header is" in text


async def test_a_text_that_is_too_long_is_cut() -> None:
    def fails(header: bytes) -> Any:
        raise errors.unknown("x" * ((1 << 20) + 5))

    ends = Ends(fails)
    ends.call(1)
    assert len(ends.answers()[0][3]) == 1 << 20


async def test_a_method_that_there_is_not() -> None:
    ends = Ends()
    ends.call(1, method=9)
    ends.call(2, method=9 | TRACED)
    assert ends.answers() == [
        (FrameKind.ERROR, errors.UNIMPLEMENTED, 1, b"This end of the link serves no method 9."),
        (FrameKind.ERROR, errors.UNIMPLEMENTED, 2, b"This end of the link serves no method 9."),
    ]


async def test_the_parent_of_a_trace_stands_before_the_header(monkeypatch: pytest.MonkeyPatch) -> None:
    ends, parent = Ends(), b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    monkeypatch.setattr(telemetry, "tracer", None)
    ends.call(1, parent + b"header", 3 | TRACED)
    assert ends.seen == [(LINK, b"header", [b"buffer"])]
    below: list[Any] = []
    monkeypatch.setattr(telemetry, "tracer", object())
    monkeypatch.setattr(
        telemetry, "run_below", lambda carrier, handle, *args: (below.append(carrier), handle(*args))[1]
    )
    ends.call(2, parent + b"more", 3 | TRACED)
    assert below == [{telemetry.TRACEPARENT: parent.decode()}]
    assert ends.seen[1][1] == b"more"
    ends.call(3, b"short", 3 | TRACED)
    assert [kind for kind, *_ in ends.answers()] == [FrameKind.REPLY, FrameKind.REPLY, FrameKind.ERROR]


# -- numbers -----------------------------------------------------------------------------------------------------------


async def test_a_call_runs_once() -> None:
    ends = Ends()
    for number in (1, 2, 5, 4, 3, 6):
        ends.call(number)
    assert len(ends.seen) == 6
    for number in (6, 5, 3, 1):
        with pytest.raises(ProtocolError, match=f"a second call of number {number}"):
            ends.call(number)


async def test_so_many_numbers_may_be_left_out() -> None:
    ends = Ends()
    ends.call(2000)
    ends.call(2000 - 1024)
    ends.call(1999)
    with pytest.raises(ProtocolError):
        ends.call(2000 - 1025)
    ends.call(2010)
    with pytest.raises(ProtocolError):
        ends.call(2000 - 1024 + 1)


# -- limits ------------------------------------------------------------------------------------------------------------


async def test_more_calls_than_may_be_under_way_are_refused() -> None:
    futures = [asyncio.get_running_loop().create_future() for _ in range(3)]
    ends = Ends(lambda header: futures[int(header)])
    ends.call(1, b"0")
    ends.call(2, b"1")
    ends.call(3, b"2")
    ((kind, code, number, text),) = ends.answers()
    assert (kind, code, number) == (FrameKind.ERROR, errors.RESOURCE_EXHAUSTED, 3)
    assert b"2 calls of this link are under way" in text
    assert b"TENFOLD_LINK_CALLS_IN_FLIGHT" in text
    futures[0].set_result(None)
    await turns()
    ends.call(4, b"2")
    assert ends.answers() == [(FrameKind.REPLY, 0, 1, b"")]
    ends.serving.end()


async def test_bytes_are_given_back_with_the_answer() -> None:
    future = asyncio.get_running_loop().create_future()
    ends = Ends(lambda header: future if header == b"wait" else None)
    ends.serving.inflow = Inflow("it", 100, "X")
    assert ends.serving.inflow.take(60) is None
    ends.call(1, cost=10)
    assert ends.serving.inflow.taken == 50
    ends.call(2, b"wait", cost=20)
    assert ends.serving.inflow.taken == 50
    ends.call(3, method=9, cost=5)
    assert ends.serving.inflow.taken == 45
    future.set_result(None)
    await turns()
    assert ends.serving.inflow.taken == 25
    refused = errors.ResourceExhaustedError(None, None, "no room")
    ends.answers()
    ends.call(4, cost=refused)
    assert ends.answers() == [(FrameKind.ERROR, errors.RESOURCE_EXHAUSTED, 4, b"no room")]
    ends.serving.end()
    assert ends.serving.inflow.taken == 0


# -- notifications -----------------------------------------------------------------------------------------------------


async def test_notifications_are_not_answered(caplog: pytest.LogCaptureFixture) -> None:
    async def fails() -> Any:
        raise errors.unknown("later")

    ends = Ends(None)
    ends.notice()
    ends.handler = (b"ignored", [])
    ends.notice()
    ends.handler = lambda header: fails()
    ends.notice()
    await turns()
    ends.notice(9)
    assert ends.answers() == []
    assert len(ends.seen) == 3
    assert [record.getMessage() for record in caplog.records] == [
        "Do from the peer came to nothing: later",
        "method 9 from the peer came to nothing: This end of the link serves no method 9.",
    ]
    assert all(record.levelno == logging.WARNING for record in caplog.records)


async def test_more_notifications_than_may_be_worked_on_end_the_link() -> None:
    futures = [asyncio.get_running_loop().create_future() for _ in range(2)]
    waiting = list(futures)
    ends = Ends(lambda header: waiting.pop())
    ends.notice()
    ends.notice()
    with pytest.raises(ProtocolError, match="more than 2 notifications that are still worked on"):
        ends.notice()
    futures[0].set_result(None)
    await turns()
    waiting.append(asyncio.get_running_loop().create_future())
    ends.notice()
    ends.serving.end()


# -- the end -----------------------------------------------------------------------------------------------------------


async def test_a_call_that_is_cancelled_is_answered_so() -> None:
    future = asyncio.get_running_loop().create_future()
    ends = Ends(lambda header: future)
    ends.call(1)
    ends.serving.cancel(2)
    assert not future.cancelled()
    ends.serving.cancel(1)
    await turns()
    assert ends.answers() == [(FrameKind.ERROR, errors.CANCELLED, 1, b"Do was cancelled.")]


async def test_the_end_cancels_what_is_under_way_and_answers_nothing() -> None:
    loop = asyncio.get_running_loop()
    call, notice, failing = loop.create_future(), loop.create_future(), Deferred(loop=loop)
    futures = [call, notice, failing]
    ends = Ends(lambda header: futures.pop(0))
    ends.call(1, cost=7)
    ends.notice()
    ends.call(2)
    failing.cancel = lambda msg=None: (failing.set_exception(errors.unknown("x")), True)[1]  # type: ignore[method-assign, assignment, func-returns-value]
    ends.serving.end()
    await turns()
    assert call.cancelled()
    assert notice.cancelled()
    assert ends.answers() == []
    assert ends.serving._costs == {}
