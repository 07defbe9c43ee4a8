"""Frames out of a peer's bytes: the same ones however the bytes are cut, payload in its place, and what is refused.

`Told` writes down what the reader tells; connection.py, which gives frames their meaning, is not here.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenfold_services.http2 import frames
from tenfold_services.http2.frames import PREFACE, Code, ConnectionFault
from tenfold_services.http2.reader import Http2FrameReader

from .peers import Request, frame


class Told:
    """What the reader tells, in order; payload of DATA by stream. With `room`, payload is put there."""

    def __init__(self, *, room: int = 0) -> None:
        self.events: list[object] = []
        self.requests: dict[int, Request] = {}
        self._room = room

    def frame(self, kind: int, flags: int, number: int, payload: bytes) -> None:
        self.events.append((kind, flags, number, payload))

    def data_begins(self, flags: int, number: int, length: int) -> Request:
        self.events.append(("data", number, length))
        room = bytearray(self._room) if self._room else None
        return self.requests.setdefault(number, Request(None, room))

    def data_ended(self) -> None:
        self.events.append("data ended")

    def meaningless(self, kind: int) -> None:
        self.events.append(("meaningless", kind))


def feed(reader: Http2FrameReader, data: bytes, sizes: list[int]) -> int:
    """Gives the reader all of `data`, in pieces of `sizes` in turn; how much went to the receiver's own memory."""
    at = turn = direct = 0
    while at < len(data):
        left = sizes[turn % len(sizes)]
        turn += 1
        count = 0
        spaces = reader.spaces()
        for place, space in enumerate(spaces):
            part = data[at : at + min(len(space), left)]
            space[: len(part)] = part
            at, count, left = at + len(part), count + len(part), left - len(part)
            if len(spaces) == 2 and place == 0:
                direct += len(part)
        assert count, "the reader gave no room"
        reader.received(count)
    return direct


def padded(stream: int, payload: bytes, padding: int) -> bytes:
    return frame(frames.DATA, frames.PADDED, stream, bytes([padding]) + payload + bytes(padding))


STORY = b"".join(
    (
        PREFACE,
        frame(frames.SETTINGS, 0, 0, b"123456"),
        frame(frames.HEADERS, frames.END_HEADERS, 1, b"head"),
        frame(frames.DATA, 0, 1, b"a" * 40),
        frame(0x77, 0, 0, b"an extension"),
        padded(1, b"b" * 20, 30),
        frame(frames.DATA, frames.END_STREAM, 1),
        frame(frames.GOAWAY, 0, 0, bytes(8)),
        frame(frames.PING, 0, 0, b"12345678"),
    )
)
EVENTS = [
    (frames.SETTINGS, 0, 0, b"123456"),
    (frames.HEADERS, frames.END_HEADERS, 1, b"head"),
    *(("data", 1, 40), "data ended", ("meaningless", 0x77)),
    *(("data", 1, 51), "data ended", ("data", 1, 0), "data ended"),
    ("meaningless", frames.GOAWAY),
    (frames.PING, 0, 0, b"12345678"),
]


@given(st.lists(st.integers(1, 60), min_size=1, max_size=8))
def test_the_same_frames_however_the_bytes_are_cut(sizes: list[int]) -> None:
    told = Told()
    reader = Http2FrameReader(told, 1 << 20, 1 << 10)

    feed(reader, STORY, sizes)

    assert told.events == EVENTS
    assert bytes(told.requests[1].data) == b"a" * 40 + b"b" * 20
    assert not reader.inside_frame


@given(st.lists(st.integers(1, 30_000), min_size=1, max_size=4))
def test_large_payload_goes_straight_to_its_place(sizes: list[int]) -> None:
    payload = bytes(range(256)) * 400
    told = Told(room=len(payload))
    reader = Http2FrameReader(told, 1 << 20, 1 << 10)

    direct = feed(reader, PREFACE + frame(frames.DATA, 0, 1, payload) + STORY[len(PREFACE) :], sizes)

    assert bytes(told.requests[1].data)[: len(payload)] == payload
    assert direct >= len(payload) - 40_000 - max(sizes), "most of it was not copied"
    assert told.events[-1] == EVENTS[-1]


def test_bytes_that_are_due_are_known() -> None:
    reader = Http2FrameReader(Told(), 1 << 20, 1 << 10)
    assert reader.inside_frame, "the preface is due"
    feed(reader, PREFACE, [1 << 10])
    assert not reader.inside_frame
    data = frame(frames.DATA, 0, 1, b"abcde") + frame(0x77, 0, 0, b"123")
    inside = []
    for at in range(len(data)):
        feed(reader, data[at : at + 1], [1])
        inside.append(reader.inside_frame)
    ends = [frames.HEADER_BYTES + 4, len(data) - 1]
    assert [at for at, due in enumerate(inside) if not due] == ends


def test_payload_that_is_dropped_is_read_to_its_end() -> None:
    told = Told()
    reader = Http2FrameReader(told, 1 << 20, 1 << 10)
    data = frame(frames.DATA, 0, 1, b"x" * 30) + frame(frames.PING, 0, 0, b"12345678")
    feed(reader, PREFACE + data[:20], [1 << 10])
    reader.drop()
    feed(reader, data[20:], [7])

    assert told.events[-1] == (frames.PING, 0, 0, b"12345678")
    assert len(told.requests[1].data) == 20 - frames.HEADER_BYTES


@pytest.mark.parametrize(
    ("data", "code"),
    [
        pytest.param(b"GET / HTTP/1.1\r\n", Code.PROTOCOL_ERROR, id="no preface"),
        pytest.param(PREFACE + frames.header(2001, frames.DATA, 0, 1), Code.FRAME_SIZE_ERROR, id="long data"),
        pytest.param(PREFACE + frames.header(1001, frames.HEADERS, 0, 1), Code.ENHANCE_YOUR_CALM, id="long headers"),
        pytest.param(PREFACE + frame(frames.DATA, frames.PADDED, 1), Code.PROTOCOL_ERROR, id="padding without bytes"),
        pytest.param(
            PREFACE + frame(frames.DATA, frames.PADDED, 1, b"\x05abcd"), Code.PROTOCOL_ERROR, id="all of it padding"
        ),
    ],
)
@pytest.mark.parametrize("size", [1, 1 << 10])
def test_what_is_refused(data: bytes, code: Code, size: int) -> None:
    with pytest.raises(ConnectionFault) as caught:
        feed(Http2FrameReader(Told(), 2000, 1000), data, [size])
    assert caught.value.code == code
