"""A link for a step's caller: several calls under way, what the peer pushes, and its end. The peer is played."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

import pytest

from tenfold_core import errors
from tenfold_link.blocking import step_link
from tenfold_link.blocking.step_link import StepLink, connect_for_steps
from tenfold_link.link_settings import DEFAULT_LINK_SETTINGS
from tenfold_link.wire.frames import ROW, FrameKind, FrameReader, pack
from tenfold_link.wire.handshake import Agreed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tenfold_link.blocking.link import BlockingLink
    from tenfold_link.wire.frames import Frame


class Ends:
    """A StepLink and the socket of its peer."""

    def __init__(self) -> None:
        ours, self.peer = socket.socketpair()
        self.peer.settimeout(20)
        agreed = Agreed("unix", None, None)
        self.link = StepLink(ours, peer="/job:ps", settings=DEFAULT_LINK_SETTINGS, agreed=agreed)
        self._reader = FrameReader(DEFAULT_LINK_SETTINGS, lambda *_: bytearray())

    def heard(self) -> list[Frame]:
        """What the link has said."""
        return self._reader.received(self.peer.recv_into(self._reader.buffer()))

    def say(self, *frame: Any) -> None:
        self.peer.sendall(pack(*frame))
        self.link.receive()


@pytest.fixture
def ends() -> Iterator[Ends]:
    made = Ends()
    yield made
    made.link.end()
    made.peer.close()


def test_several_calls_are_under_way_at_once(ends: Ends) -> None:
    first, second = ends.link.start(16, b"one"), ends.link.start(17, b"two")
    assert [(frame.kind, frame.method, frame.call, frame.header) for frame in ends.heard()] == [
        (FrameKind.REQUEST, 16, 1, b"one"),
        (FrameKind.REQUEST, 17, 2, b"two"),
    ]
    ends.link.receive()
    assert (first.answer, second.answer) == (None, None), "nothing has come, and nobody waits"
    ends.say(FrameKind.REPLY, 0, 2, b"second")
    assert (first.answer, second.answer) == (None, (b"second", []))
    ends.say(FrameKind.ERROR, errors.NOT_FOUND, 1, b"no such graph")
    assert isinstance(first.error, errors.NotFoundError)
    assert ends.link.fileno() >= 0


def test_what_the_peer_pushes_is_taken_while_somebody_listens(ends: Ends) -> None:
    seen: list[Any] = []
    ends.say(FrameKind.NOTIFY, 19, 0, b"dropped")
    ends.link.on_notice = lambda *notice: seen.append(notice)
    ends.say(FrameKind.NOTIFY, 19, 0, b"tensor")
    assert seen == [(19, b"tensor", [])]
    ends.say(FrameKind.REQUEST, 1, 5, b"")
    (frame,) = ends.heard()
    assert (frame.kind, frame.method, frame.call) == (FrameKind.ERROR, errors.UNIMPLEMENTED, 5)


def test_telling_the_peer_something(ends: Ends) -> None:
    ends.link.notify_nowait(18, b"graph")
    (frame,) = ends.heard()
    assert (frame.kind, frame.method, frame.header) == (FrameKind.NOTIFY, 18, b"graph")
    ends.peer.sendall(pack(FrameKind.PING))
    ends.link.notify_nowait(19)
    assert [frame.kind for frame in ends.heard()] == [FrameKind.NOTIFY], "who holds the link reads when it says so"
    ends.link.receive()
    assert [frame.kind for frame in ends.heard()] == [FrameKind.PONG]


def test_an_answer_that_is_no_longer_wanted_still_comes(ends: Ends) -> None:
    call = ends.link.start(16)
    ends.link.abandon(call)
    assert [(frame.kind, frame.call) for frame in ends.heard()] == [(FrameKind.REQUEST, 1), (FrameKind.CANCEL, 1)]
    ends.say(FrameKind.ERROR, errors.CANCELLED, 1, b"cancelled")
    assert isinstance(call.error, errors.CancelledError)


def test_a_silent_peer_is_asked(ends: Ends) -> None:
    ends.link.check_life()
    ends.link._heard_at -= 2.6
    ends.link.check_life()
    assert [frame.kind for frame in ends.heard()] == [FrameKind.PING]
    ends.say(FrameKind.PONG)
    ends.link.check_life()
    assert ends.link.reason is None


def test_a_peer_that_is_gone_fails_the_calls_and_later_looks_do_nothing(ends: Ends) -> None:
    call = ends.link.start(16)
    ends.peer.close()
    ends.link.receive()
    assert isinstance(call.error, errors.UnavailableError)
    ends.link.receive()
    ends.link.check_life()
    with pytest.raises(errors.UnavailableError):
        ends.link.start(16)


def test_the_end_says_goodbye_and_closes_the_socket(ends: Ends) -> None:
    call = ends.link.start(16)
    ends.heard()
    ends.link.end()
    assert isinstance(call.error, errors.CancelledError)
    assert [(frame.kind, frame.header) for frame in ends.heard()] == [(FrameKind.GOODBYE, b"the client closed it")]
    assert ends.link.fileno() == -1


def test_the_end_lets_go_of_what_came_in_part(ends: Ends) -> None:
    ends.link.start(16)
    ends.say(FrameKind.REPLY, 0, 1, b"", [ROW.pack(100_000, 0, 0)])
    assert ends.link._inbound._reader.awaited == 100_000
    ends.link.end()
    assert ends.link._inbound._reader.awaited == 0


def test_connecting_for_steps(ends: Ends, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def connect(*arguments: Any, **more: Any) -> BlockingLink:
        asked.append((arguments, more))
        return ends.link

    monkeypatch.setattr(step_link, "connect", connect)
    credentials: Any = object()
    answer: Any = object()
    assert connect_for_steps(answer, "a:1", "/job:ps", DEFAULT_LINK_SETTINGS, credentials) is ends.link
    assert asked == [
        (
            (answer, "a:1"),
            {"peer": "/job:ps", "settings": DEFAULT_LINK_SETTINGS, "make": StepLink, "credentials": credentials},
        )
    ]
