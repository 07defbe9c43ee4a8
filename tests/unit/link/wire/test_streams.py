"""Several connections as one socket: what goes over which, what is waited for, how it ends."""

from __future__ import annotations

import select
import socket
from contextlib import ExitStack
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tenfold_link.wire.spread import CHUNK, LEAST, Spread
from tenfold_link.wire.streams import CAN, StreamsSocket, connections, streams_over

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(not CAN, reason="this system has no epoll")

DATA = np.random.default_rng(3).integers(0, 256, 9 * CHUNK + 5, np.uint8)


@pytest.fixture
def ends() -> Iterator[tuple[StreamsSocket, StreamsSocket]]:
    """Two ends, of one connection and three further ones, that do not wait."""
    with ExitStack() as stack:
        pairs = [socket.socketpair() for _ in range(4)]
        made = tuple(StreamsSocket(first, further) for first, *further in zip(*pairs, strict=True))
        for end in made:
            stack.callback(end.close)
        yield made[0], made[1]


def fill(end: StreamsSocket) -> None:
    while True:
        end.send(bytes(1 << 20))


def readable(descriptor: int) -> bool:
    return bool(select.select([descriptor], [], [], 0)[0])


def carry(sender: StreamsSocket, receiver: StreamsSocket, pieces: list[bytes | Spread], size: int) -> np.ndarray:
    """Sends these, the last of which is Spread and of that size, and gives what came of it."""
    memory = np.zeros(size, np.uint8)
    into = receiver.gather(memoryview(memory))  # type: ignore[arg-type] # an array is a buffer
    left, got = list(pieces), 0
    for _ in range(10_000):
        if left:
            assert readable(sender.out_fileno()) or got < size
            try:
                sent = sender.sendmsg(left)
            except BlockingIOError:
                sent = 0
            while left and sent >= len(left[0]):
                sent -= len(left.pop(0))
            if sent:
                piece = left[0]
                left[0] = piece.after(sent) if isinstance(piece, Spread) else piece[sent:]
        if got < size:
            try:
                got += receiver.receive_spread(into)
            except BlockingIOError:
                continue
        elif not left:
            break
    assert got == size
    receiver.gathered()
    return memory


def spread(data: np.ndarray) -> Spread:
    return Spread(memoryview(data))  # type: ignore[arg-type] # an array is a buffer


def test_large_buffers_arrive_whole_one_after_another(ends: tuple[StreamsSocket, StreamsSocket]) -> None:
    one, other = ends
    for round_ in range(3):
        data = np.roll(DATA, round_)[: DATA.nbytes - round_]
        assert np.array_equal(carry(one, other, [b"head", spread(data)], data.nbytes), data)
        space = bytearray(100)
        assert other.recv_into(space) == 4
        assert space[:4] == b"head"
        assert np.array_equal(carry(other, one, [spread(data)], data.nbytes), data), "the other way"
    assert not one.half_sent


def test_small_ones_go_over_the_first(ends: tuple[StreamsSocket, StreamsSocket]) -> None:
    one, other = ends
    assert one.send(b"ab") == 2
    assert one.sendmsg([b"cd", b"e"]) == 3
    assert other.connections[0].recv(10) == b"abcde"
    assert not any(readable(sock.fileno()) for sock in other.connections[1:])


def test_it_tells_of_what_is_waited_for_alone(ends: tuple[StreamsSocket, StreamsSocket]) -> None:
    one, other = ends
    for sock in one.connections[1:]:
        sock.send(b"early")
    assert not readable(other.fileno()), "no large buffer is due"
    one.send(b"x")
    assert readable(other.fileno())
    into = np.empty(LEAST, np.uint8)
    other.gather(memoryview(into))  # type: ignore[arg-type] # an array is a buffer
    other.connections[1].recv(5)
    assert readable(other.fileno())
    for sock in other.connections[2:]:
        sock.recv(5)
    assert not readable(other.fileno()), "the first connection is not looked at meanwhile"
    other.gathered()
    assert readable(other.fileno())


def test_a_sender_that_is_stopped_waits_for_what_is_full(ends: tuple[StreamsSocket, StreamsSocket]) -> None:
    one, other = ends
    piece = spread(np.zeros(64 << 20, np.uint8))

    def send_all(rest: Spread) -> None:
        while rest:
            rest = rest.after(one.send(rest))

    with pytest.raises(BlockingIOError):
        send_all(piece)
    assert one.half_sent
    assert not readable(one.out_fileno())
    other.connections[2].recv(64 << 20)
    assert readable(one.out_fileno())


def test_an_end_that_waits_does_so_for_a_while() -> None:
    first, theirs = socket.socketpair()
    more, their_more = socket.socketpair()
    end = StreamsSocket(first, [more], 0.01)
    with theirs, their_more:
        space = bytearray(10)
        with pytest.raises(BlockingIOError):
            end.recv_into(space)
        with pytest.raises(BlockingIOError):
            end.recv_into(space, 0, socket.MSG_DONTWAIT)
        theirs.send(b"abc")
        assert end.recv_into(space) == 3
        into = end.gather(memoryview(bytearray(LEAST)))
        with pytest.raises(BlockingIOError):
            end.receive_spread(into)
        their_more.close()
        with pytest.raises(EOFError):
            end.receive_spread(into)
        with pytest.raises(BlockingIOError):
            fill(end)
        end.settimeout(3)
        assert end.connections[0].gettimeout() == 0, "it stays as it was made"
        end.close()


def test_an_end_that_is_closed(ends: tuple[StreamsSocket, StreamsSocket]) -> None:
    one, other = ends
    one.shutdown(socket.SHUT_RDWR)
    assert other.recv_into(bytearray(1)) == 0
    one.close()
    assert (one.fileno(), one.out_fileno()) == (-1, -1)
    one.gathered()
    with pytest.raises(OSError, match="Bad file descriptor"):
        one.send(b"x")
    one.shutdown(socket.SHUT_RDWR)
    one.close()


def test_which_sockets_the_system_knows() -> None:
    pairs = [socket.socketpair() for _ in range(2)]
    (one, _), (other, _) = pairs
    assert connections(one) == [one]
    both = streams_over(one, [other])
    assert connections(both) == [one, other]
    assert both.family == one.family
    assert both.getsockname() == one.getsockname()
    both.close()
    for _, theirs in pairs:
        theirs.close()


def test_without_descriptors_nothing_stays_open(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> None:
        raise OSError("Too many open files")

    monkeypatch.setattr(select, "epoll", fails)
    (first, theirs), (more, their_more) = socket.socketpair(), socket.socketpair()
    with first, theirs, their_more:
        with pytest.raises(OSError, match="Too many"):
            StreamsSocket(first, [more])
        assert more.fileno() == -1
        assert first.fileno() >= 0
