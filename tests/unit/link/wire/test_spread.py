"""Pieces of large buffers: which connection sends what, and where what comes belongs."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tenfold_link.protocol_error import ProtocolError
from tenfold_link.wire import spread
from tenfold_link.wire.spread import CHUNK, HEAD, Gathering, Leaving, Spread, Stream

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Two pieces, the second one of seven bytes.
DATA = np.arange(CHUNK + 7, dtype=np.uint32).astype(np.uint8)


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.settimeout(30)
    with ours, theirs:
        yield ours, theirs


def gathering(number: int = 0) -> tuple[Gathering, np.ndarray]:
    memory = np.zeros(DATA.nbytes, np.uint8)
    return Gathering(number, memoryview(memory)), memory  # type: ignore[arg-type] # an array is a buffer


def test_the_length_is_what_is_left() -> None:
    whole = Spread(memoryview(b"abcdef"))
    assert (len(whole), len(whole.after(2)), len(whole.after(2).after(4))) == (6, 4, 0)


def test_each_piece_is_given_once(pair: tuple[socket.socket, socket.socket]) -> None:
    leaving = Leaving(5, memoryview(DATA))  # type: ignore[arg-type] # ditto
    one, other = Stream(pair[0]), Stream(pair[1])

    assert [leaving.given, leaving.give(one), leaving.given, leaving.give(other), leaving.given] == [
        False, True, False, True, True,
    ]  # fmt: skip
    assert not leaving.give(one)
    assert [HEAD.unpack(stream.leaving[0]) for stream in (one, other)] == [(5, 0), (5, 1)]
    assert [bytes(stream.leaving[1]) for stream in (one, other)] == [DATA[:CHUNK].tobytes(), DATA[CHUNK:].tobytes()]


def test_what_a_connection_does_not_take_goes_on_later(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    leaving, stream, came = Leaving(1, memoryview(DATA)), Stream(ours), bytearray()  # type: ignore[arg-type] # ditto
    leaving.give(stream)
    sent = 0
    while stream.leaving:
        sent += stream.send()
        while len(came) < sent + HEAD.size:
            came += theirs.recv(1 << 20)

    assert sent == CHUNK
    assert HEAD.unpack(came[: HEAD.size]) == (1, 0)
    assert bytes(came[HEAD.size :]) == DATA[:CHUNK].tobytes()


def test_pieces_come_in_any_order_and_in_any_cuts(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    into, memory = gathering()
    stream, total = Stream(ours), 0
    wire = HEAD.pack(0, 1) + DATA[CHUNK:].tobytes() + HEAD.pack(0, 0) + DATA[:CHUNK].tobytes()
    for begin, end in ((0, 3), (3, 17), (17, 25), (25, 38), (38, 40), (40, 4000), (4000, len(wire))):
        # a piece that the buffer of a socket may not hold at once
        for at in range(begin, end, 60_000):
            theirs.sendall(wire[at : min(at + 60_000, end)])
            total += stream.receive(into)

    assert total == DATA.nbytes
    assert np.array_equal(memory, DATA)
    assert not stream.is_ahead


def test_a_later_buffer_waits_until_it_is_due(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    stream, (first, _), (second, memory) = Stream(ours), gathering(0), gathering(1)
    theirs.sendall(HEAD.pack(1, 1) + DATA[CHUNK:].tobytes())

    assert stream.receive(first) == 0
    assert stream.is_ahead
    assert stream.receive(second) == 7
    assert bytes(memory[CHUNK:]) == DATA[CHUNK:].tobytes()


@pytest.mark.parametrize(
    ("heads", "what"),
    [
        ([(0, 2)], "piece 2 of a buffer that has 2"),
        ([(0, 1 << 63)], "that has 2"),
        ([(0, 1), (0, 1)], "piece 1 of a buffer twice"),
    ],
)
def test_what_belongs_nowhere_ends_the_link(
    pair: tuple[socket.socket, socket.socket], heads: list[tuple[int, int]], what: str
) -> None:
    ours, theirs = pair
    stream, (into, _) = Stream(ours), gathering()
    for number, index in heads:
        theirs.sendall(HEAD.pack(number, index) + DATA[CHUNK:].tobytes())

    def receive_all() -> None:
        for _ in range(3):
            stream.receive(into)

    with pytest.raises(ProtocolError, match=what):
        receive_all()


def test_a_piece_of_a_buffer_that_is_complete(pair: tuple[socket.socket, socket.socket]) -> None:
    pair[1].sendall(HEAD.pack(0, 0))
    with pytest.raises(ProtocolError, match="buffer 0, which is complete"):
        Stream(pair[0]).receive(gathering(1)[0])


def test_the_end_of_a_connection(pair: tuple[socket.socket, socket.socket]) -> None:
    pair[1].close()
    with pytest.raises(EOFError):
        Stream(pair[0]).receive(gathering()[0])


def test_a_turn_that_ends_behind_a_head_is_not_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its piece is due, and must be waited for."""
    monkeypatch.setattr(spread, "TURN_BYTES", 7)
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with ours, theirs:
        theirs.sendall(HEAD.pack(0, 1) + DATA[CHUNK:].tobytes() + HEAD.pack(0, 0) + b"x")
        stream, (into, _) = Stream(ours), gathering()
        assert (stream.receive(into), stream.is_ahead) == (7, False)
        assert (stream.receive(into), stream.is_ahead) == (1, False)


def test_the_reader_is_woken_for_what_is_sure_to_come(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    stream, (into, _) = Stream(ours), gathering()

    def least() -> int:
        return ours.getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT)

    theirs.sendall(HEAD.pack(0, 1) + DATA[CHUNK : CHUNK + 3].tobytes())
    stream.receive(into)
    assert least() == 4, "the rest of its piece"
    theirs.sendall(DATA[CHUNK + 3 :].tobytes())
    stream.receive(into)
    assert least() == 1
    theirs.sendall(HEAD.pack(0, 0) + b"x")
    stream.receive(into)
    assert least() == spread.WAKE_BYTES
