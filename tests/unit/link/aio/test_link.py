"""The asyncio end of a link: calls, what the peer says, silence, turns and the end. The peer is played, and what it
says is read when the test says so."""

from __future__ import annotations

import asyncio
import dataclasses
import socket
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tenfold_core import errors, telemetry
from tenfold_core.access.gate import EVERYBODY
from tenfold_core.access.roles import Role
from tenfold_link.aio import link as link_module
from tenfold_link.aio.link import Link
from tenfold_link.aio.methods import LinkMethod
from tenfold_link.link_settings import DEFAULT_LINK_SETTINGS
from tenfold_link.wire.frames import Frame, FrameKind, FrameReader, pack
from tenfold_link.wire.handshake import Agreed
from tenfold_link.wire.inflow import Inflow
from tenfold_link.wire.moving import Moving
from tenfold_link.wire.trace_prefix import ABILITY

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tenfold_link.aio.methods import Methods

SETTINGS = dataclasses.replace(DEFAULT_LINK_SETTINGS, ping_every_seconds=1000.0, ping_answer_seconds=7.0)


class Ends:
    """A link and the socket of its peer."""

    def __init__(self, **options: Any) -> None:
        self.ours, self.peer = socket.socketpair()
        self.ours.setblocking(False)
        self.peer.settimeout(20)
        agreed = Agreed("unix", None, None, can=frozenset({ABILITY}))
        options = {"peer_always_reads": True, **options}
        self.link = Link(self.ours, peer="/job:ps", settings=SETTINGS, agreed=agreed, **options)
        self.notices: list[tuple[bytes, Any]] = []
        self.link.serve(self.methods())
        self._reader = FrameReader(DEFAULT_LINK_SETTINGS, lambda *_: bytearray())

    def methods(self) -> Methods:
        def noted(link: Any, header: bytes, buffers: Any) -> None:
            self.notices.append((header, link))

        return {
            16: LinkMethod("Note", noted),
            17: LinkMethod("Answer", lambda link, header, buffers: (b"answer to " + header, [])),
        }

    def heard(self) -> list[tuple[Any, ...]]:
        """What the link has said."""
        frames = self._reader.received(self.peer.recv_into(self._reader.buffer()))
        return [(frame.kind, frame.method, frame.call, frame.header) for frame in frames]

    def say(self, *frames: tuple[Any, ...]) -> None:
        """All in one piece, which is read at once."""
        self.peer.sendall(b"".join(pack(*frame) for frame in frames))
        self.link._readable()

    def is_quiet(self) -> bool:
        self.peer.setblocking(False)
        try:
            return not self.peer.recv(1)
        except BlockingIOError:
            return True
        finally:
            self.peer.settimeout(20)


@pytest.fixture
async def ends() -> AsyncIterator[Ends]:
    made = Ends()
    yield made
    made.link.abort("the test is over")
    made.peer.close()


def failure(call: Any) -> errors.OpError:
    found = call.exception()
    assert isinstance(found, errors.OpError)
    return found


# -- calls -----------------------------------------------------------------------------------------------------------


async def test_calls_have_numbers_and_get_the_answer_of_theirs(ends: Ends) -> None:
    first, second, third = (ends.link.call_nowait(20 + number, b"h%d" % number) for number in range(3))
    assert ends.heard() == [(FrameKind.REQUEST, 20 + number, number + 1, b"h%d" % number) for number in range(3)]
    ends.say((FrameKind.REPLY, 0, 2, b"two"), (FrameKind.REPLY, 0, 9, b"nobody asked"))
    ends.say((FrameKind.ERROR, errors.NOT_FOUND, 1, b"no \xff graph"))

    assert second.result() == (b"two", [])
    assert isinstance(failure(first), errors.NotFoundError)
    assert failure(first).message == "no \ufffd graph"
    assert not third.done()
    assert list(ends.link._calls) == [3]


async def test_a_cancelled_call_is_told_and_its_answer_dropped(ends: Ends) -> None:
    call, answered = ends.link.call_nowait(20), ends.link.call_nowait(21)
    assert call.cancel()
    assert not call.cancel()
    assert [(kind, number) for kind, _, number, _ in ends.heard()] == [
        (FrameKind.REQUEST, 1), (FrameKind.REQUEST, 2), (FrameKind.CANCEL, 1)
    ]  # fmt: skip
    ends.say((FrameKind.REPLY, 0, 1, b"late"), (FrameKind.REPLY, 0, 2, b"in time"))

    assert answered.result() == (b"in time", [])
    assert not answered.cancel()
    assert ends.is_quiet()


async def test_a_traced_call_says_so_to_a_peer_that_can_read_it(ends: Ends, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_module, "in_trace", lambda method, header: (method + 100, b"trace " + header))
    calls = [ends.link.call_nowait(20, b"a")]
    monkeypatch.setattr(telemetry, "tracer", object())
    calls.append(ends.link.call_nowait(20, b"b"))
    ends.link.can = frozenset()
    calls.append(ends.link.call_nowait(20, b"c"))

    assert [(method, header) for _, method, _, header in ends.heard()] == [(20, b"a"), (120, b"trace b"), (20, b"c")]
    for call in calls:
        call.cancel()


async def test_a_call_and_a_notice_wait_for_room_that_calls_of_now_do_not(ends: Ends) -> None:
    high = ends.link._settings.outbound_high_water
    ends.link._out.queued_bytes = high
    await asyncio.wait_for(ends.link.notify(20, b"at the mark"), 20)
    ends.link._out.queued_bytes = high + 1
    waiting = [asyncio.ensure_future(ends.link.notify(21)), asyncio.ensure_future(ends.link.call(22))]
    for _ in range(5):
        await asyncio.sleep(0)
    assert not any(each.done() for each in waiting)
    ends.link.notify_nowait(23)
    ends.link._out.queued_bytes = 0
    for each in waiting:
        each.cancel()
    await asyncio.wait(waiting)

    assert [(kind, method) for kind, method, _, _ in ends.heard()] == [
        (FrameKind.NOTIFY, 20), (FrameKind.NOTIFY, 23)
    ]  # fmt: skip


# -- what the peer says ----------------------------------------------------------------------------------------------


async def test_what_a_peer_asks_and_says(ends: Ends) -> None:
    ends.say(
        (FrameKind.NOTIFY, 16, 0, b"told"), (FrameKind.REQUEST, 17, 7, b"asked"), (FrameKind.PING,),
        (FrameKind.PONG,), (FrameKind.CANCEL, 0, 3),
    )  # fmt: skip

    assert ends.notices == [(b"told", ends.link)]
    assert ends.heard() == [(FrameKind.REPLY, 0, 7, b"answer to asked"), (FrameKind.PONG, 0, 0, b"")]
    assert (ends.link.peer_role, ends.link.peer_caller) == (Role.ADMIN, EVERYBODY)
    assert ends.link._heard


@pytest.mark.parametrize("single", [True, False])
async def test_what_is_against_the_protocol_ends_the_link(
    ends: Ends, single: bool, caplog: pytest.LogCaptureFixture
) -> None:
    call = ends.link.call_nowait(20)
    ends.heard()
    ends.say(*([] if single else [(FrameKind.PONG,)]), (FrameKind.WELCOME,), *([] if single else [(FrameKind.PING,)]))

    assert ends.link.closed
    assert "WELCOME after the handshake" in failure(call).message
    assert ends.heard() == [(FrameKind.GOODBYE, 0, 0, b"you sent WELCOME after the handshake")]
    assert "The link to /job:ps is closed: it sent WELCOME after the handshake" in caplog.text
    assert ends.ours.fileno() == -1


async def test_a_peer_that_hangs_up_ends_the_link_without_a_warning(
    ends: Ends, caplog: pytest.LogCaptureFixture
) -> None:
    call = ends.link.call_nowait(20)
    ends.peer.shutdown(socket.SHUT_RDWR)
    ends.link._readable()

    assert ends.link.closed
    assert isinstance(failure(call), errors.UnavailableError)
    assert not caplog.records


async def test_nothing_to_read_is_not_heard(ends: Ends) -> None:
    ends.link._readable()

    assert not ends.link._heard
    assert not ends.link.closed


async def test_others_have_their_turn_after_a_while_and_after_so_many_reads(
    ends: Ends, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Endless:
        """Has a frame whenever it is asked."""

        streaming = exhausted = False
        reads = 0

        def receive(self) -> list[Any]:
            self.reads += 1
            return []

    now = [0.0]

    def clock() -> float:
        now[0] += 0.001
        return now[0]

    monkeypatch.setattr(link_module, "perf_counter", clock)
    inbound, ends.link._inbound = ends.link._inbound, Endless()  # type: ignore[assignment]
    ends.link._readable()
    assert ends.link._inbound.reads == 6  # type: ignore[attr-defined]
    monkeypatch.setattr(link_module, "perf_counter", lambda: 0.0)
    ends.link._readable()
    assert ends.link._inbound.reads == 6 + 256  # type: ignore[attr-defined]
    ends.link._inbound.exhausted = True  # type: ignore[misc]
    ends.link._readable()
    assert ends.link._inbound.reads == 6 + 256 + 1  # type: ignore[attr-defined]
    ends.link._inbound = inbound


# -- silence ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def clock(ends: Ends, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time that the link sees, in its one element."""
    now = [1000.0]
    monkeypatch.setattr(ends.link._loop, "time", lambda: now[0])
    return now


async def test_who_owes_an_answer_is_asked_and_given_up(ends: Ends, clock: list[float]) -> None:
    call = ends.link.call_nowait(20)
    ends.heard()
    ends.link._check_life()
    assert ends.heard() == [(FrameKind.PING, 0, 0, b"")]
    clock[0] += 6.9
    ends.link._check_life()
    assert ends.is_quiet()
    assert not ends.link.closed
    clock[0] += 0.1
    ends.link._check_life()
    assert "it has not said anything for 7 s" in failure(call).message


async def test_a_sign_of_life_takes_the_question_back(ends: Ends, clock: list[float]) -> None:
    call = ends.link.call_nowait(20)
    ends.link._check_life()
    clock[0] += 6.9
    ends.say((FrameKind.PONG,))
    ends.link._check_life()
    assert (ends.link._pinged_at, ends.link._heard) == (None, False)
    clock[0] += 6.9
    ends.link._check_life()
    assert ends.link._pinged_at == clock[0]
    assert not ends.link.closed
    call.cancel()


@pytest.mark.parametrize("reason", ["nothing is owed", "it may not read", "something moves"])
async def test_a_peer_is_not_asked_where(reason: str, clock: list[float], ends: Ends,
                                         monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    if reason != "nothing is owed":
        ends.link.call_nowait(20)
        ends.heard()
    ends.link._peer_always_reads = reason != "it may not read"
    monkeypatch.setattr(Moving, "look", lambda moving, taken: reason == "something moves")
    for _ in range(3):
        ends.link._check_life()
        clock[0] += 100

    assert ends.is_quiet()
    assert not ends.link.closed


async def test_a_peer_that_reads_a_large_message_slowly_is_not_given_up(
    ends: Ends, clock: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    ends.link.notify_nowait(16, b"large", [np.zeros(4 << 20, np.uint8)])
    for _ in range(4):
        ends.peer.recv(1 << 20)
        ends.link._out.flush()
        ends.link._check_life()
        assert ends.link._pinged_at is None
        clock[0] += 9.5
    # it stands still
    ends.link._check_life()
    clock[0] += 7.0
    assert not ends.link.closed
    ends.link._check_life()
    assert ends.link.reason is not None
    assert "it has not said anything for 7 s" in ends.link.reason.message
    assert "The link to /job:ps is closed: it has not said anything for 7 s." in caplog.text


# -- the end ---------------------------------------------------------------------------------------------------------


async def test_the_end_is_told_to_all_once(ends: Ends) -> None:
    call, done = ends.link.call_nowait(20), ends.link.call_nowait(21)
    done.cancel()
    told: list[errors.OpError] = []
    ends.link.on_close(told.append)
    ends.link.abort("its host is gone")
    ends.link.abort("something else")
    ends.link.on_close(told.append)

    assert failure(call).message == "The link to /job:ps ended: its host is gone."
    assert [each.message for each in told] == ["The link to /job:ps ended: its host is gone."] * 2
    assert told[0] is told[1] is ends.link.reason
    assert (ends.ours.fileno(), ends.link._calls, ends.link.closed) == (-1, {}, True)
    assert ends.link._timer is not None
    assert ends.link._timer.cancelled()
    raised = []
    for attempt in (ends.link.call_nowait, ends.link.notify_nowait):
        with pytest.raises(errors.UnavailableError, match="its host is gone") as caught:
            attempt(20)
        raised.append(caught.value)
    assert raised[0] is not raised[1]


async def test_a_link_says_goodbye(ends: Ends) -> None:
    await ends.link.close()
    await ends.link.close("again")

    assert ends.heard() == [(FrameKind.GOODBYE, 0, 0, b"it is no longer needed")]
    assert ends.link.reason is not None
    assert ends.link.reason.message == "The link to /job:ps ended: it was closed here: it is no longer needed."


async def test_a_call_that_waits_gets_the_answer(ends: Ends) -> None:
    call = asyncio.ensure_future(ends.link.call(20, b"header"))
    await asyncio.sleep(0)
    assert ends.heard() == [(FrameKind.REQUEST, 20, 1, b"header")]
    ends.say((FrameKind.REPLY, 0, 1, b"answer"))

    assert await asyncio.wait_for(call, 20) == (b"answer", [])


async def test_the_end_gives_the_memory_back(ends: Ends) -> None:
    closed: list[int] = []
    arena: Any = SimpleNamespace(close=lambda: closed.append(1))
    ends.link._arena = arena
    ends.link.abort("it is over")
    ends.link.abort("it is over")

    assert closed == [1]


# -- what it hands on --------------------------------------------------------------------------------------------------


class Noted:
    """Stands for a part of the link: each call of it is noted, and nothing else happens."""

    def __init__(self, name: str, done: list[str], **values: Any) -> None:
        self._name, self._done = name, done
        self.__dict__.update(values)

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments: self._done.append(f"{self._name}.{name}{arguments}")


async def test_each_part_ends_with_the_link(ends: Ends) -> None:
    done: list[str] = []
    inbound, out, serving = ends.link._inbound, ends.link._out, ends.link._serving
    for name in ("_inbound", "_out", "_serving"):
        setattr(ends.link, name, Noted(name, done))
    ends.link.abort("it is over")
    assert done == ["_out.close()", "_inbound.close()", "_inbound.drop()", "_serving.end()"]
    assert not asyncio.get_running_loop().remove_reader(ends.link._fd)
    for part in (inbound, out):
        part.close()
    serving.end()


async def test_memory_that_was_kept_goes_while_the_peer_is_silent(ends: Ends) -> None:
    done: list[str] = []
    ends.link._inbound.pool = Noted("pool", done)  # type: ignore[assignment]
    ends.link._heard = True
    ends.link._check_life()
    assert done == []
    ends.link._check_life()
    assert done == ["pool.clear()"]


async def test_what_is_queued_has_a_second_to_leave(ends: Ends) -> None:
    waited: list[float] = []

    async def drain(seconds: float) -> None:
        waited.append(seconds)

    ends.link._out.drain = drain  # type: ignore[method-assign]
    await ends.link.close("enough")
    other = Ends()
    other.link._out.drain = drain  # type: ignore[method-assign]
    await other.link.close(seconds=3.0)
    other.peer.close()
    assert waited == [1.0, 3.0]


async def test_what_comes_in_is_counted_from_the_beginning_and_given_back(ends: Ends) -> None:
    flow = Inflow("it", 100, "X")
    ends.link.limit(flow)
    assert ends.link._inbound._reader.inflow is ends.link._serving.inflow is flow
    assert flow.take(50) is None
    for kind, left in ((FrameKind.NOTIFY, 40), (FrameKind.REPLY, 30), (FrameKind.PONG, 20)):
        ends.link._take([Frame(kind, 16, 1, b"", [], 10)])
        assert flow.taken == left
    ends.link._take([Frame(FrameKind.PONG, 0, 0, b"", [], 0)])
    assert flow.taken == 20


async def test_answers_to_one_read_leave_in_one_write(ends: Ends, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: list[int] = []
    flush = ends.link._out.flush
    ends.link._out.flush = lambda: (flushed.append(len(ends.link._out.queue)), flush())[1]  # type: ignore[method-assign]
    ends.say((FrameKind.REQUEST, 17, 1), (FrameKind.REQUEST, 17, 2))
    assert flushed == [2]
    ends.say((FrameKind.NOTIFY, 16), (FrameKind.NOTIFY, 16))
    assert flushed == [2], "nothing is to be said"
    assert not ends.link._out.corked
    assert len(ends.heard()) == 2
    ends.link._out.corked = True
    ends.link._take_all([Frame(FrameKind.REQUEST, 17, number, b"", []) for number in (3, 4)])
    assert (ends.link._out.corked, len(ends.link._out.queue)) == (True, 2), "whoever corked it flushes it"
    ends.link._out.corked = False
    flush()


async def test_frames_after_the_last_word_are_not_looked_at(ends: Ends) -> None:
    ends.say((FrameKind.NOTIFY, 16, 0, b"first"), (FrameKind.GOODBYE, 0, 0, b"bye"), (FrameKind.NOTIFY, 16, 0, b"late"))
    assert [header for header, _ in ends.notices] == [b"first"]
    assert ends.link.closed
    assert ends.link.reason is not None
    assert ends.link.reason.message == "The link to /job:ps ended: it closed the link: bye."


@pytest.mark.parametrize("frames", [[], [Frame(FrameKind.NOTIFY, 16, 0, b"large", [])]])
async def test_a_large_buffer_has_the_time_of_a_turn(ends: Ends, frames: list[Frame]) -> None:
    class Streaming:
        streaming, exhausted = True, True
        asked: list[float] = []  # noqa: RUF012

        def receive_pieces(self, seconds: float) -> list[Frame]:
            self.asked.append(seconds)
            self.streaming = False
            return list(frames)

        def receive(self) -> list[Frame]:
            raise AssertionError("others have their turn")

    inbound, ends.link._inbound = ends.link._inbound, Streaming()  # type: ignore[assignment]
    Streaming.asked.clear()
    ends.link._readable()
    assert Streaming.asked == [0.005]
    assert ends.link._heard
    assert [header for header, _ in ends.notices] == [frame.header for frame in frames]
    ends.link._inbound = inbound
