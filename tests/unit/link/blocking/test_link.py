"""A client's end of a link on one thread or two: calls, what else the peer says, silence, and the end. The peer is
played: what it will answer lies in the socket before it is asked."""

from __future__ import annotations

import dataclasses
import socket
import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from tenfold_core import errors, telemetry
from tenfold_link.blocking import link as link_module
from tenfold_link.blocking.calls import PendingCall
from tenfold_link.blocking.link import BlockingLink
from tenfold_link.link_settings import DEFAULT_LINK_SETTINGS
from tenfold_link.wire.frames import Frame, FrameKind, FrameReader, pack
from tenfold_link.wire.handshake import Agreed
from tenfold_link.wire.inbound import Inbound
from tenfold_link.wire.moving import Moving
from tenfold_link.wire.trace_prefix import ABILITY

if TYPE_CHECKING:
    from collections.abc import Iterator

SETTINGS = dataclasses.replace(DEFAULT_LINK_SETTINGS, ping_every_seconds=2.5, ping_answer_seconds=7.0)


class Ends:
    """A link and the socket of its peer."""

    def __init__(self) -> None:
        ours, self.peer = socket.socketpair()
        self.peer.settimeout(20)
        agreed = Agreed("unix", None, None, can=frozenset({ABILITY}))
        self.link = BlockingLink(ours, peer="/job:ps", settings=SETTINGS, agreed=agreed)
        self.ours = ours
        self._reader = FrameReader(DEFAULT_LINK_SETTINGS, lambda *_: bytearray())

    def heard(self) -> list[tuple[Any, ...]]:
        """What the link has said."""
        frames = self._reader.received(self.peer.recv_into(self._reader.buffer()))
        return [(frame.kind, frame.method, frame.call, frame.header) for frame in frames]

    def say(self, *frame: Any) -> None:
        self.peer.sendall(pack(*frame))

    def is_quiet(self) -> bool:
        """Nothing that the link has said is left."""
        self.peer.setblocking(False)
        try:
            return not self.peer.recv(1)
        except BlockingIOError:
            return True
        finally:
            self.peer.settimeout(20)


@pytest.fixture
def ends() -> Iterator[Ends]:
    made = Ends()
    yield made
    made.link.close()
    made.peer.close()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time that links see, in its one element."""
    now = [1000.0]
    monkeypatch.setattr(link_module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    return now


# -- calls -----------------------------------------------------------------------------------------------------------


def test_calls_have_numbers_and_get_the_answer_of_theirs(ends: Ends) -> None:
    ends.say(FrameKind.REPLY, 0, 7, b"nobody asked")
    ends.say(FrameKind.REPLY, 0, 1, b"one")
    assert ends.link.call(16, b"first") == (b"one", [])
    ends.say(FrameKind.ERROR, errors.NOT_FOUND, 2, b"no \xff graph")
    with pytest.raises(errors.NotFoundError, match="no \ufffd graph"):
        ends.link.call(17)

    assert ends.heard() == [(FrameKind.REQUEST, 16, 1, b"first"), (FrameKind.REQUEST, 17, 2, b"")]
    assert ends.link._calls == {}
    assert not ends.link._led
    assert ends.is_quiet(), "an answered call is not cancelled, though it failed"


@pytest.mark.parametrize("timeout", [0.0, 0.02])
def test_a_call_that_takes_too_long_is_cancelled_and_its_answer_dropped(ends: Ends, timeout: float) -> None:
    with pytest.raises(errors.DeadlineExceededError, match="/job:ps"):
        ends.link.call(16, timeout=timeout)

    assert ends.heard() == [(FrameKind.REQUEST, 16, 1, b""), (FrameKind.CANCEL, 0, 1, b"")]
    assert (ends.link._calls, ends.link._led, ends.link.closed) == ({}, False, False)
    ends.say(FrameKind.REPLY, 0, 1, b"late")
    ends.say(FrameKind.REPLY, 0, 2, b"in time")
    assert ends.link.call(16, timeout=20) == (b"in time", [])


def test_a_traced_call_says_so_to_a_peer_that_can_read_it(ends: Ends, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_module, "in_trace", lambda method, header: (method + 100, b"trace " + header))
    ends.say(FrameKind.REPLY, 0, 1)
    ends.link.call(16, b"a")
    monkeypatch.setattr(telemetry, "tracer", object())
    ends.say(FrameKind.REPLY, 0, 2)
    ends.link.call(16, b"b")
    ends.link.can = frozenset()
    ends.say(FrameKind.REPLY, 0, 3)
    ends.link.call(16, b"c")

    assert [(method, header) for _, method, _, header in ends.heard()] == [(16, b"a"), (116, b"trace b"), (16, b"c")]


def test_an_interrupt_while_something_is_received_ends_the_link(ends: Ends, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(inbound: Inbound, flags: int) -> list[Frame]:
        raise KeyboardInterrupt

    monkeypatch.setattr(Inbound, "receive", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ends.link.call(16)

    with pytest.raises(errors.UnavailableError, match="The link to /job:ps ended: reading from it was interrupted"):
        ends.link.call(16)


class Follower(threading.Thread):
    """A second caller; `waits` is set once it waits for the first one."""

    def __init__(self, ends: Ends, monkeypatch: pytest.MonkeyPatch, timeout: float | None = None) -> None:
        super().__init__()
        self.waits = threading.Event()
        self.found: Any = None
        self._link, self._timeout = ends.link, timeout
        shut = PendingCall.shut_gate

        def noted(call: PendingCall) -> Any:
            gate = shut(call)
            self.waits.set()
            return gate

        monkeypatch.setattr(PendingCall, "shut_gate", noted)

    def run(self) -> None:
        try:
            self.found = self._link.call(17, b"follower", timeout=self._timeout)
        except errors.OpError as error:
            self.found = error


@pytest.fixture
def led(ends: Ends) -> Iterator[Ends]:
    """A first caller reads the socket, as far as others can see."""
    ends.link._led = True
    yield ends
    ends.link._led = False


def test_who_waits_for_another_caller_gets_its_answer_from_it(led: Ends, monkeypatch: pytest.MonkeyPatch) -> None:
    follower = Follower(led, monkeypatch)
    follower.start()
    assert follower.waits.wait(20)
    led.say(FrameKind.REPLY, 0, 1, b"for the follower")
    assert led.link._receive(0)
    follower.join(20)

    assert follower.found == (b"for the follower", [])
    assert led.link._led, "the first caller still reads"


def test_who_waits_takes_the_place_of_a_caller_that_leaves(led: Ends, monkeypatch: pytest.MonkeyPatch) -> None:
    follower = Follower(led, monkeypatch)
    follower.start()
    assert follower.waits.wait(20)
    led.link._hand_over()
    led.say(FrameKind.REPLY, 0, 1, b"read by itself")
    follower.join(20)

    assert follower.found == (b"read by itself", [])
    assert not led.link._led


def test_who_waits_fails_with_its_deadline_and_with_the_link(led: Ends, monkeypatch: pytest.MonkeyPatch) -> None:
    late = Follower(led, monkeypatch, timeout=0.0)
    late.start()
    late.join(20)
    assert isinstance(late.found, errors.DeadlineExceededError)
    follower = Follower(led, monkeypatch)
    follower.start()
    assert follower.waits.wait(20)
    led.link._lost("it is gone")
    follower.join(20)

    assert isinstance(follower.found, errors.UnavailableError)
    assert "The link to /job:ps ended: it is gone." in follower.found.message
    assert led.ours.fileno() >= 0, "the reader closes it"
    led.link._hand_over()
    assert led.ours.fileno() == -1


# -- what else the peer says -----------------------------------------------------------------------------------------


def test_what_a_peer_says_besides_answers(ends: Ends) -> None:
    for kind in (FrameKind.PING, FrameKind.PONG, FrameKind.NOTIFY, FrameKind.CANCEL):
        ends.say(kind)
    ends.say(FrameKind.REQUEST, 16, 5)
    ends.say(FrameKind.REPLY, 0, 1)
    ends.link.call(17)

    assert ends.heard() == [
        (FrameKind.REQUEST, 17, 1, b""),
        (FrameKind.PONG, 0, 0, b""),
        (FrameKind.ERROR, errors.UNIMPLEMENTED, 5, b"A client serves no methods."),
    ]


@pytest.mark.parametrize(
    ("frame", "reason", "said"),
    [
        ((FrameKind.GOODBYE, 0, 0, b"it stops"), "it closed the link: it stops", []),
        ((FrameKind.RELEASE, 0, 0, b""), "a release without an arena", [b"you sent a release without an arena"]),
        ((FrameKind.WELCOME, 0, 0, b""), "WELCOME after the handshake", [b"you sent WELCOME after the handshake"]),
    ],
)
def test_what_a_peer_says_last(ends: Ends, frame: tuple[Any, ...], reason: str, said: list[bytes]) -> None:
    ends.say(*frame)
    with pytest.raises(errors.UnavailableError, match=f"The link to /job:ps ended: .*{reason}"):
        ends.link.call(17)

    assert [header for kind, *_, header in ends.heard() if kind is FrameKind.GOODBYE] == said
    assert ends.link.closed
    assert ends.ours.fileno() == -1


def test_a_notice_reads_what_is_there_unless_somebody_reads(ends: Ends) -> None:
    ends.say(FrameKind.PING)
    ends.link.notify(18, b"graph")
    assert ends.heard() == [(FrameKind.NOTIFY, 18, 0, b"graph"), (FrameKind.PONG, 0, 0, b"")]
    assert not ends.link._led
    ends.link._led = True
    ends.say(FrameKind.PING)
    ends.link.notify(19)
    assert ends.heard() == [(FrameKind.NOTIFY, 19, 0, b"")]
    ends.link._led = False
    ends.link.notify(20)
    assert ends.heard() == [(FrameKind.NOTIFY, 20, 0, b""), (FrameKind.PONG, 0, 0, b"")]


# -- silence ---------------------------------------------------------------------------------------------------------


def test_a_peer_is_asked_once_when_it_is_silent_and_given_up_when_it_stays_so(ends: Ends, clock: list[float]) -> None:
    ends.link._heard_at = clock[0]
    clock[0] += 2.49
    ends.link._check_life()
    assert ends.is_quiet()
    clock[0] += 0.01
    ends.link._check_life()
    assert ends.heard() == [(FrameKind.PING, 0, 0, b"")]
    for later in (0.0, 2.6, 4.3):
        clock[0] += later
        ends.link._check_life()
        assert ends.is_quiet()
    assert not ends.link.closed
    clock[0] += 0.11
    ends.link._check_life()
    assert ends.link.reason is not None
    assert "it has not said anything for 10 s" in ends.link.reason.message


def test_a_sign_of_life_begins_the_silence_anew(ends: Ends, clock: list[float]) -> None:
    ends.link._heard_at = clock[0]
    clock[0] += 2.5
    ends.link._check_life()
    clock[0] += 6.9
    ends.say(FrameKind.PONG)
    assert ends.link._receive(0)
    assert ends.link._heard_at == clock[0]
    clock[0] += 2.4
    ends.link._check_life()
    assert [kind for kind, *_ in ends.heard()] == [FrameKind.PING]
    clock[0] += 0.1
    ends.link._check_life()
    assert [kind for kind, *_ in ends.heard()] == [FrameKind.PING]


def test_what_moves_slowly_counts_as_heard(ends: Ends, clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Moving, "look", lambda moving: True)
    ends.link._heard_at = clock[0]
    clock[0] += 100
    ends.link._check_life()
    assert ends.link._heard_at == clock[0]
    assert ends.is_quiet()


def test_nothing_there_is_no_sign_of_life(ends: Ends, clock: list[float]) -> None:
    ends.link._heard_at = 5.0
    assert not ends.link._receive(socket.MSG_DONTWAIT)
    assert ends.link._heard_at == 5.0


# -- the end ---------------------------------------------------------------------------------------------------------


def test_a_link_is_closed_once_and_its_first_reason_counts(ends: Ends) -> None:
    ends.link.close()
    ends.link.close(errors.AbortedError(None, None, "too late"))
    ends.link._lost("too late, too")

    assert ends.heard() == [(FrameKind.GOODBYE, 0, 0, b"the client closed it")]
    assert ends.ours.fileno() == -1
    raised = []
    for attempt in (ends.link.call, ends.link.notify):
        with pytest.raises(errors.CancelledError, match="The link to /job:ps was closed here") as caught:
            attempt(16)
        raised.append(caught.value)
    assert raised[0] is not raised[1]
    assert (ends.link.closed, ends.link._calls, ends.link._out.closed) == (True, {}, True)


def test_a_link_is_closed_with_a_reason_that_the_peers_end_does_not_hide(ends: Ends) -> None:
    """The peer hangs up on the GOODBYE, and the reader may see that first."""
    reason = errors.AbortedError(None, None, "the session was reset")
    goodbye = ends.link._say_goodbye

    def heard_at_once(why: str) -> None:
        goodbye(why)
        ends.link._lost("the peer hung up")

    ends.link._say_goodbye = heard_at_once
    ends.link.close(reason)

    with pytest.raises(errors.AbortedError, match="the session was reset"):
        ends.link.call(16)


def test_a_peer_that_is_gone_ends_the_link(ends: Ends) -> None:
    ends.peer.close()
    with pytest.raises(errors.UnavailableError, match="The link to /job:ps ended"):
        ends.link.call(16)
    assert ends.link.closed


def test_reads_and_writes_end_by_themselves(ends: Ends) -> None:
    for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
        raw = ends.ours.getsockopt(socket.SOL_SOCKET, option, 16)
        assert link_module._TIMEVAL.unpack(raw) == (0, 500_000)
    assert ends.ours.gettimeout() is None
    assert link_module._TIMEVAL.unpack(link_module._timeval(2.25)) == (2, 250_000)


def test_the_end_gives_the_memory_back(ends: Ends) -> None:
    closed: list[int] = []
    arena: Any = SimpleNamespace(close=lambda: closed.append(1))
    ends.link._arena = arena
    ends.link.close()
    ends.link.close()

    assert closed == [1]


# -- waiting for the socket ------------------------------------------------------------------------------------------


class Polled:
    """A poll, and what follows it, noted: milliseconds that were waited, reads, looks for life."""

    def __init__(self, link: Any, monkeypatch: pytest.MonkeyPatch, *, there: bool, came: bool = True) -> None:
        self.done: list[Any] = []
        self._there, self._came = there, came
        monkeypatch.setattr(link, "_poll", self)
        monkeypatch.setattr(link, "_receive", self.receive)
        monkeypatch.setattr(link, "_check_life", lambda: self.done.append("life"))

    def poll(self, milliseconds: float) -> bool:
        self.done.append(milliseconds)
        return self._there

    def receive(self, flags: int) -> bool:
        self.done.append(f"receive {flags}")
        return self._came


@pytest.mark.parametrize("main", [True, False])
@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize("came", [True, False])
def test_how_a_reader_waits(
    ends: Ends, clock: list[float], monkeypatch: pytest.MonkeyPatch, main: bool, there: bool, came: bool
) -> None:
    """The main thread, and who has little time, polls first; others are woken by the kernel after half a second."""
    monkeypatch.setattr(link_module, "_MAIN", threading.get_ident() if main else -1)
    read = ["receive 0"] if came else ["receive 0", "life"]
    for deadline, milliseconds in ((None, 500.0), (1000.5, 500.0), (1009.0, 500.0), (1000.25, 250.0)):
        polled = Polled(ends.link, monkeypatch, there=there, came=came)
        ends.link._read(deadline)
        if main or milliseconds < 500:
            assert polled.done == [milliseconds, *(read if there else ["life"])], deadline
        else:
            assert polled.done == read, deadline
    for late in (1000.0, 999.0):
        polled = Polled(ends.link, monkeypatch, there=there, came=came)
        with pytest.raises(errors.DeadlineExceededError, match="/job:ps did not answer in time"):
            ends.link._read(late)
        assert polled.done == []


def test_what_is_sent_has_its_deadline(ends: Ends, clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Any] = []
    monkeypatch.setattr(ends.link, "_send", lambda pieces, deadline=None: sent.append((bytes(pieces[0])[2], deadline)))
    ends.say(FrameKind.REPLY, 0, 1)
    ends.link.call(16, timeout=3.0)
    ends.say(FrameKind.REPLY, 0, 2)
    ends.link.call(16)
    ends.link._cancel(PendingCall(7))
    ends.link._heard_at = 997.0
    ends.link._check_life()
    assert sent == [
        (FrameKind.REQUEST, 1003.0), (FrameKind.REQUEST, None), (FrameKind.CANCEL, 1000.5), (FrameKind.PING, 1007.0)
    ]  # fmt: skip
    ends.link._lost("it is gone")
    ends.link._cancel(PendingCall(8))
    assert len(sent) == 4, "nothing is cancelled over a link that has ended"


def test_who_waits_for_another_caller_waits_until_its_deadline(
    led: Ends, clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []

    class Gate:
        def acquire(self, timeout: float) -> bool:
            waited.append(timeout)
            return False

    monkeypatch.setattr(PendingCall, "shut_gate", lambda call: Gate())
    for deadline in (None, 1002.0, 1000.0, 998.0):
        with pytest.raises(errors.DeadlineExceededError):
            led.link._await(PendingCall(1), deadline)
    assert waited == [-1.0, 2.0, 0.0, 0.0]


class Streams:
    """What comes in, of which much is still to come."""

    def __init__(self, *, streaming: bool, frames: list[Any]) -> None:
        self.streaming, self._frames = streaming, frames
        self.asked: list[Any] = []

    def receive(self, flags: int) -> list[Any]:
        self.asked.append(flags)
        return self._frames

    def receive_pieces(self, seconds: float) -> list[Any]:
        self.asked.append(seconds)
        return [frame_of(FrameKind.REPLY, 1)]

    def close(self) -> None:
        self.asked.append("close")

    def drop(self) -> None:
        self.asked.append("drop")


def frame_of(kind: FrameKind, call: int = 0) -> Frame:
    return Frame(kind, 0, call, b"answer", [])


def test_a_large_buffer_is_read_to_its_end_unless_the_link_has_ended(ends: Ends, clock: list[float]) -> None:
    call, _ = ends.link._begin(16, b"", ())
    streams: Any = Streams(streaming=False, frames=[])
    ends.link._inbound, inbound = streams, ends.link._inbound
    assert ends.link._receive(5)
    assert (streams.asked, call.answer) == ([5], None)
    streams.streaming = True
    clock[0] += 10
    assert ends.link._receive(0)
    assert (streams.asked, call.answer) == ([5, 0, 0.5], (b"answer", []))
    assert ends.link._heard_at == clock[0]
    streams._frames = [frame_of(FrameKind.GOODBYE)]
    assert ends.link._receive(0)
    assert streams.asked[3:] == [0, "close", "drop"]
    inbound.close()


def test_what_ends_with_the_link(ends: Ends) -> None:
    call, _ = ends.link._begin(16, b"", ())
    gate = call.shut_gate()
    streams: Any = Streams(streaming=False, frames=[])
    ends.link._inbound, inbound = streams, ends.link._inbound
    ends.link._led = True
    ends.link._lost("it is gone")
    assert not gate.locked()
    assert isinstance(call.error, errors.UnavailableError)
    assert call.error is not ends.link.reason
    assert streams.asked == ["close"], "the reader drops it"
    assert ends.peer.recv(1) == b"", "the peer sees it at once"
    ends.link._hand_over()
    assert streams.asked == ["close", "drop"]
    ends.link._read_what_is_there()
    assert not ends.link._led
    inbound.close()
