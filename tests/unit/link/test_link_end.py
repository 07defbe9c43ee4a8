"""What both kinds of end have: frames of no call, and the words in which a link ends."""

from __future__ import annotations

import socket
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tenfold_core import errors
from tenfold_link.link_end import LinkEnd
from tenfold_link.link_settings import DEFAULT_LINK_SETTINGS
from tenfold_link.protocol_error import ProtocolError
from tenfold_link.wire.frames import Frame, FrameKind, pack, pack_ids
from tenfold_link.wire.handshake import Agreed

if TYPE_CHECKING:
    from collections.abc import Iterator


class End(LinkEnd):
    """Notes what it sends, and why it ends."""

    def __init__(self, sock: socket.socket, **agreed: Any) -> None:
        self.sent: list[bytes] = []
        self.ended: list[str] = []
        self.given: list[int] = []
        self._send = lambda pieces, *_: self.sent.append(b"".join(pieces))
        self._say_goodbye = lambda reason: self.sent.append(reason.encode())
        agreed = {"path": "unix", "arena": None, "peer_arena": None, **agreed}
        super().__init__(sock, "/job:ps", DEFAULT_LINK_SETTINGS, Agreed(**agreed), self.give)

    def give(self, block: int) -> None:
        self.given.append(block)

    def _lost(self, reason: str) -> None:
        self.ended.append(reason)


@pytest.fixture
def sock() -> Iterator[socket.socket]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours


def frame(kind: FrameKind, header: bytes = b"") -> Frame:
    return Frame(kind, 0, 0, header, [])


def test_what_was_agreed_on_is_the_link_s(sock: socket.socket) -> None:
    end = End(sock, path="tcp", version=3, can=frozenset({"trace"}))
    assert (end.peer, end.path, end.version, end.can) == ("/job:ps", "tcp", 3, {"trace"})
    assert (end.closed, end.reason, end.state) == (False, None, {})
    assert [next(end._numbers), next(end._numbers)] == [1, 2]
    assert repr(end) == "<End to /job:ps by tcp>"
    end.closed = True
    assert repr(end) == "<End to /job:ps by tcp, closed>"


def test_frames_of_no_call(sock: socket.socket) -> None:
    released: list[Any] = []
    arena = SimpleNamespace(release=released.extend, reserve=released.append, allocate=lambda size: ("block", size))
    end = End(sock, arena=arena)
    end._take_control(frame(FrameKind.PING))
    assert end.sent == [pack(FrameKind.PONG)]
    end._take_control(frame(FrameKind.PONG))
    end._take_control(frame(FrameKind.RELEASE, pack_ids([4, 5])))
    assert released == [4, 5]
    end._take_control(frame(FrameKind.GOODBYE, b"\xff" + b"x" * 2000))
    assert end.ended == ["it closed the link: \N{REPLACEMENT CHARACTER}" + "x" * 999]
    for kind in (FrameKind.HELLO, FrameKind.WELCOME):
        with pytest.raises(ProtocolError, match=f"{kind.name} after the handshake"):
            end._take_control(frame(kind))
    end.reserve(77)
    assert released[-1] == 77
    assert end.allocate(9) == ("block", 9)


def test_without_an_arena_nothing_is_released(sock: socket.socket) -> None:
    end = End(sock)
    with pytest.raises(ProtocolError, match="a release without an arena"):
        end._take_control(frame(FrameKind.RELEASE, pack_ids([1])))
    end.reserve(77)
    assert end.allocate(9) is None
    value = np.ones(3, np.uint8)
    assert bytes(end.stage(value)) == b"\1\1\1"  # type: ignore[arg-type]


def test_the_peer_s_blocks_go_back_while_the_link_is_there(sock: socket.socket) -> None:
    made: list[Any] = []
    end = End(sock, peer_arena=lambda give_back: made.append(give_back) or SimpleNamespace(open=None))
    made[0](3)
    assert end.given == [3]


def test_the_words_of_the_end(sock: socket.socket) -> None:
    end = End(sock)
    end._silent(9.6)
    end._receiving_failed(EOFError())
    assert end.sent == [b"you have not said anything for 10 s"]
    end._receiving_failed(ProtocolError("nonsense"))
    assert end.sent[1:] == [b"you sent nonsense"]
    assert end.ended == [
        "it has not said anything for 10 s, it hangs or its host is gone",
        "the connection broke, its process ended",
        "it broke the protocol: it sent nonsense",
    ]
    error = end._ended("why")
    assert isinstance(error, errors.UnavailableError)
    assert error.message == "The link to /job:ps ended: why."


def test_a_kind_of_end_says_how_it_is_lost(sock: socket.socket) -> None:
    with pytest.raises(NotImplementedError):
        LinkEnd._lost(End(sock), "x")
