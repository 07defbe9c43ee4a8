"""The receiving half over a fake socket: what ends it, large buffers by the piece, and how often it is woken."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from tenfold_core.traffic import Traffic
from tenfold_link.link_settings import DEFAULT_LINK_SETTINGS
from tenfold_link.protocol_error import ProtocolError
from tenfold_link.spin_wait import STREAMED
from tenfold_link.wire import inbound as inbound_module
from tenfold_link.wire.frames import PREFIX, ROW, FrameKind, pack
from tenfold_link.wire.inbound import Inbound, why_ended
from tenfold_link.wire.inflow import Inflow

SIZE = STREAMED + 100_000
LARGE = pack(FrameKind.REQUEST, 1, 1, b"h", [ROW.pack(SIZE, 0, 0)])


class Sock:
    """Gives `parts`, one a call; an error is raised."""

    family = socket.AF_UNIX

    def __init__(self, *parts: Any) -> None:
        self.parts = list(parts)
        self.flags: list[int] = []

    def recv_into(self, space: memoryview, most: int, flags: int) -> int:
        assert most == 0, "as much as there is room for"
        self.flags.append(flags)
        if not self.parts:
            raise BlockingIOError
        found = self.parts.pop(0)
        if isinstance(found, BaseException):
            raise found
        part = found[: len(space)]
        space[: len(part)] = part
        if found[len(part) :]:
            self.parts.insert(0, found[len(part) :])
        return len(part)


def made(*parts: Any, open_block: Any = None) -> tuple[Inbound, Sock]:
    sock = Sock(*parts)
    return Inbound(sock, DEFAULT_LINK_SETTINGS, open_block, Traffic()), sock  # type: ignore[arg-type]


def test_frames_as_they_come() -> None:
    ping = pack(FrameKind.PING)
    inbound, sock = made(ping + ping[:5], ping[5:])
    assert (inbound.streaming, inbound.exhausted) == (False, True), "nothing has come"
    assert [frame.kind for frame in inbound.receive()] == [FrameKind.PING]
    assert inbound.exhausted
    assert not inbound.streaming
    assert [frame.kind for frame in inbound.receive(socket.MSG_DONTWAIT)] == [FrameKind.PING]
    assert sock.flags == [0, socket.MSG_DONTWAIT]
    with pytest.raises(BlockingIOError):
        inbound.receive()


def test_a_full_read_may_have_left_something() -> None:
    frame = pack(FrameKind.NOTIFY, 1, 0, bytes((64 << 10) - PREFIX.size))
    inbound, _ = made(frame + b"x")
    assert len(inbound.receive()) == 1
    assert not inbound.exhausted


def test_the_end_of_the_stream() -> None:
    inbound, _ = made(b"")
    with pytest.raises(EOFError):
        inbound.receive()


def test_a_large_buffer_is_received_piece_by_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbound_module, "poll_again", lambda came: False)
    inbound, sock = made(LARGE, bytes(50_000), bytes(SIZE - 50_000) + pack(FrameKind.PING))
    assert inbound.receive() == []
    assert inbound.streaming
    (frame,) = inbound.receive_pieces(60.0)
    assert len(frame.buffers[0]) == SIZE
    assert not inbound.streaming
    assert sock.flags[1:] == [socket.MSG_DONTWAIT] * 2
    assert inbound.receive_pieces(60.0) == [], "nothing is awaited"
    assert len(sock.flags) == 3


def test_streaming_ends_where_little_is_left() -> None:
    inbound, _ = made(LARGE, bytes(SIZE - STREAMED), b"x")
    inbound.receive()
    inbound.receive()
    assert inbound.streaming
    inbound.receive()
    assert not inbound.streaming


def test_pieces_are_polled_for_as_long_as_it_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    polls: list[float] = []

    def again(came: float) -> bool:
        polls.append(came)
        return len(polls) < 3

    monkeypatch.setattr(inbound_module, "poll_again", again)
    inbound, _ = made(LARGE, InterruptedError(), bytes(10))
    inbound.receive()
    assert inbound.receive_pieces(60.0) == []
    assert len(polls) == 3
    assert polls[1] > polls[0], "a piece came in between"


def test_pieces_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]

    def now() -> float:
        clock[0] += 1.0
        return clock[0]

    monkeypatch.setattr(inbound_module, "perf_counter", now)
    inbound, sock = made(LARGE, *[bytes(10)] * 100)
    inbound.receive()
    assert inbound.receive_pieces(3.0) == []
    assert len(sock.flags) == 1 + 3


def test_what_comes_is_counted_once_there_is_a_limit() -> None:
    inbound, _ = made(LARGE)
    flow = Inflow("it", 1 << 30, "X")
    inbound.limit(flow)
    inbound.receive()
    assert flow.taken == SIZE


def test_a_block_without_an_arena_is_refused() -> None:
    inbound, _ = made(pack(FrameKind.REQUEST, 1, 1, b"h", [ROW.pack(8, 1, 0)]))
    with pytest.raises(ProtocolError, match="a shared block without an arena"):
        inbound.receive()


def test_blocks_are_opened_until_the_end() -> None:
    opened: list[Any] = []
    frame = pack(FrameKind.REQUEST, 1, 1, b"h", [ROW.pack(8, 1, 16)])
    inbound, _ = made(frame, frame, open_block=lambda *block: (opened.append(block), bytearray(8))[1])
    inbound.receive()
    assert opened == [(1, 16, 8)]
    inbound.close()
    with pytest.raises(ProtocolError, match="a block after the end"):
        inbound.receive()


def test_what_was_received_in_part_is_dropped() -> None:
    inbound, _ = made(LARGE)
    inbound.receive()
    assert inbound._reader.awaited
    inbound.drop()
    assert not inbound._reader.awaited


@pytest.mark.parametrize(("family", "follows"), [(socket.AF_UNIX, False), (socket.AF_INET, True)])
def test_a_reader_over_tcp_is_woken_less_often(monkeypatch: pytest.MonkeyPatch, family: int, follows: bool) -> None:
    marks: list[int] = []

    class Mark:
        is_set = False

        def __init__(self, sock: Any) -> None:
            pass

        def follow(self, awaited: int) -> None:
            marks.append(awaited)
            self.is_set = awaited > 0

    monkeypatch.setattr(inbound_module, "LowWaterMark", Mark)
    monkeypatch.setattr(Sock, "family", family)
    inbound, _ = made(pack(FrameKind.PING), LARGE, bytes(SIZE), pack(FrameKind.PING))
    for _ in range(3):
        inbound.receive()
    while inbound._reader.awaited:
        inbound.receive()
    inbound.receive()
    assert bool(marks) is follows
    if follows:
        assert marks[0] == SIZE
        assert marks[-1] == 0, "and as often as before where nothing is awaited; then it is left alone"
        assert marks.count(0) == 1


def test_what_tls_has_received_already_is_taken_too(monkeypatch: pytest.MonkeyPatch) -> None:
    class Tls(Sock):
        family = socket.AF_INET
        waiting = pack(FrameKind.PONG) + pack(FrameKind.PING)

        def take(self, space: memoryview) -> int:
            part, self.waiting = self.waiting[:30], self.waiting[30:]
            space[: len(part)] = part
            return len(part)

    monkeypatch.setattr(inbound_module, "TlsSocket", Tls)
    sock = Tls(pack(FrameKind.PING))
    inbound = Inbound(sock, DEFAULT_LINK_SETTINGS, None, Traffic())  # type: ignore[arg-type]
    assert [frame.kind for frame in inbound.receive()] == [FrameKind.PING, FrameKind.PONG, FrameKind.PING]
    assert inbound._low_water_mark is None


def test_why_a_link_ended() -> None:
    for error, text in (
        (ProtocolError("nonsense"), "it broke the protocol: it sent nonsense"),
        (MemoryError(), "there is no memory for what it sends"),
        (OSError(104, "Connection reset by peer"), "the connection broke: Connection reset by peer"),
        (OSError("words"), "the connection broke: words"),
        (EOFError(), "the connection broke, its process ended"),
    ):
        assert why_ended(error) == text
