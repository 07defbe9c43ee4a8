"""Further connections of a link: to whom there are some, and how a handshake comes to them."""

from __future__ import annotations

import dataclasses
import socket
from typing import Any

import pytest

from tenfold_core import errors
from tenfold_link.link_settings import DEFAULT_LINK_SETTINGS
from tenfold_link.protocol_error import ProtocolError
from tenfold_link.wire import further, sockets
from tenfold_link.wire.frames import FrameKind, pack
from tenfold_protos import link_pb2

KNOWS, KNOWS_NOT = link_pb2.OpenLinkResponse(can=["streams"]), link_pb2.OpenLinkResponse(can=["trace"])
ONE = dataclasses.replace(DEFAULT_LINK_SETTINGS, streams=1)


class Sock:
    def __init__(self, family: int = socket.AF_INET) -> None:
        self.family = family
        self.closed = False

    def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize(
    ("family", "answer", "settings", "seconds", "count"),
    [
        (socket.AF_INET, KNOWS, DEFAULT_LINK_SETTINGS, 0.001, 4),
        (socket.AF_INET6, KNOWS, DEFAULT_LINK_SETTINGS, 0.2, 4),
        (socket.AF_INET, KNOWS, DEFAULT_LINK_SETTINGS, 0.0009, 0),
        (socket.AF_UNIX, KNOWS, DEFAULT_LINK_SETTINGS, 0.2, 0),
        (socket.AF_INET, KNOWS_NOT, DEFAULT_LINK_SETTINGS, 0.2, 0),
        (socket.AF_INET, KNOWS, ONE, 0.2, 0),
    ],
)
def test_who_gets_some(
    monkeypatch: pytest.MonkeyPatch, family: int, answer: Any, settings: Any, seconds: float, count: int
) -> None:
    monkeypatch.setattr(sockets, "round_trip", lambda _: seconds)
    sock: Any = Sock(family)
    assert further.wanted(sock, answer, settings) == count


@pytest.mark.parametrize(
    ("asked", "settings", "count"), [(9, DEFAULT_LINK_SETTINGS, 4), (2, DEFAULT_LINK_SETTINGS, 2), (4, ONE, 0)]
)
def test_no_more_than_this_end_has(asked: int, settings: Any, count: int) -> None:
    assert further.granted(link_pb2.LinkHello(streams=asked), settings) == count


def test_what_ends_the_handshake_is_read_and_nothing_of_what_follows() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        joined, frame = further.Joined(), further.joined(3)
        theirs.send(frame[:10])
        assert joined.receive(ours) is None
        theirs.send(frame[10:] + b"and so on")
        assert joined.receive(ours) == 3
        assert ours.recv(100) == b"and so on"
        theirs.close()
        with pytest.raises(errors.UnavailableError, match="hung up"):
            further.Joined().receive(ours)


@pytest.mark.parametrize(
    "frame", [pack(FrameKind.PING), pack(FrameKind.STREAMS, method=1), pack(FrameKind.STREAMS, header=b"x"), bytes(24)]
)
def test_another_frame_is_refused(frame: bytes) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.send(frame)
        with pytest.raises(ProtocolError, match="no STREAMS frame"):
            further.Joined().receive(ours)


def test_a_party_takes_as_many_as_were_agreed_on() -> None:
    party = further.Party(2)
    socks: list[Any] = [Sock(), Sock()]
    party.join(socks[0])
    with pytest.raises(ProtocolError, match="2 further connections, where 1 have joined"):
        party.take(2)
    party.join(socks[1])
    with pytest.raises(ProtocolError, match="more than 2"):
        party.join(socks[0])
    assert party.take(2) == socks
    party.close()
    assert not socks[0].closed


def test_those_that_were_not_taken_are_closed() -> None:
    party = further.Party(2)
    sock: Any = Sock()
    party.join(sock)
    assert party.take(0) == []
    party.close()
    assert sock.closed
