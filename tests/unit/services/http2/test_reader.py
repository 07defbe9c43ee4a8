"""Frames out of a peer's bytes: the same ones however the bytes are cut, payload in its place, and what is refused.

`Told` writes down what the reader tells; connection.py, which gives frames their meaning, is not here.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenfold_services.http2 import frame_types as frames
from tenfold_services.http2.frame_types import PREFACE, Code, ConnectionFault
from tenfold_services.http2.reader import AT_ONCE, FEW, Http2FrameReader

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


# -- how much at once ----------------------------------------------------------------------------------------------


def begun(tell: Told, frame_bytes: int = 1 << 20, block_bytes: int = 1 << 10) -> Http2FrameReader:
    """A reader behind the preface."""
    reader = Http2FrameReader(tell, frame_bytes, block_bytes)
    feed(reader, PREFACE, [1 << 10])
    return reader


def sizes_of(reader: Http2FrameReader) -> list[int]:
    return [len(space) for space in reader.spaces()]


def test_little_is_received_at_once_where_it_is_asked_for() -> None:
    reader = begun(Told())
    assert sizes_of(reader) == [16 << 10]
    reader.at_once = FEW
    assert sizes_of(reader) == [1 << 10]
    reader.at_once = AT_ONCE
    assert sizes_of(reader) == [16 << 10]


@pytest.mark.parametrize(("missing", "spaces"), [(8191, [16 << 10]), (8192, [8192, 4096]), (8193, [8193, 4096])])
def test_payload_goes_to_its_place_from_eight_kilobytes_on(missing: int, spaces: list[int]) -> None:
    reader = begun(Told(room=1 << 20))
    feed(reader, frames.header(missing, frames.DATA, 0, 1), [1 << 10])
    assert sizes_of(reader) == spaces


def test_payload_goes_no_further_than_its_place_and_its_frame() -> None:
    told = Told(room=10_000)
    reader = begun(told)
    feed(reader, frames.header(20_000, frames.DATA, 0, 1), [1 << 10])
    assert sizes_of(reader) == [10_000, 4096], "so much room there is"
    reader.received(2_000)
    assert sizes_of(reader) == [8_000, 4096]
    reader.received(8_000 + 5)
    assert len(told.requests[1].data) == 10_005, "what came behind it was handed over"
    assert sizes_of(reader) == [16 << 10], "without room it is handed over"


def test_payload_that_nobody_takes_has_no_place() -> None:
    class Nobody(Told):
        def data_begins(self, flags: int, number: int, length: int) -> None:  # type: ignore[override]
            self.events.append(("data", number, length))

    told = Nobody(room=1 << 20)
    reader = begun(told)
    feed(reader, frames.header(20_000, frames.DATA, 0, 1), [1 << 10])
    assert sizes_of(reader) == [16 << 10]
    feed(reader, bytes(20_000) + frame(frames.PING, 0, 0, b"12345678"), [3000])
    assert told.events == [("data", 1, 20_000), "data ended", (frames.PING, 0, 0, b"12345678")]


def test_payload_that_is_dropped_while_it_goes_to_its_place() -> None:
    told = Told(room=1 << 20)
    reader = begun(told)
    feed(reader, frames.header(20_000, frames.DATA, 0, 1), [1 << 10])
    reader.spaces()
    reader.drop()
    reader.received(9_000)
    assert sizes_of(reader) == [16 << 10]
    feed(reader, bytes(11_000) + frame(frames.PING, 0, 0, b"12345678"), [1 << 14])
    assert told.events[1:] == ["data ended", (frames.PING, 0, 0, b"12345678")]
    assert not told.requests[1].data


def test_a_frame_of_the_largest_size_fits_whatever_came_before_it() -> None:
    told = Told()
    reader = begun(told)
    block = bytes(range(256)) * 4
    ping, headers = frame(frames.PING, 0, 0, b"12345678"), frame(frames.HEADERS, 0, 3, block)
    for cut in (1, 9, 100, len(headers) - 1):
        told.events.clear()
        # as much as the socket has: the frame's beginning comes behind many small ones
        feed(reader, ping * 900 + headers[:cut], [16 << 10])
        assert sizes_of(reader) == [16 << 10], "what was dealt with takes no room"
        feed(reader, headers[cut:], [16 << 10])
        assert told.events[-1] == (frames.HEADERS, 0, 3, block)
        assert len(told.events) == 901
        assert not reader.inside_frame


# -- bounds and kinds ----------------------------------------------------------------------------------------------


def test_frames_as_large_as_the_bounds_are_taken_and_larger_ones_are_named() -> None:
    told = Told()
    reader = begun(told, 2000, 1000)
    feed(reader, frame(frames.DATA, 0, 1, bytes(2000)) + frame(frames.HEADERS, 0, 1, bytes(1000)), [1 << 10])
    feed(reader, frame(0x77, 0, 1, bytes(2000)), [1 << 10])
    assert told.events == [
        *(("data", 1, 2000), "data ended"), (frames.HEADERS, 0, 1, bytes(1000)), ("meaningless", 0x77),
    ]  # fmt: skip
    assert not reader.inside_frame
    for kind, length, text in (
        (frames.DATA, 2001, "a frame of 2001 bytes"),
        (0x77, 2001, "a frame of 2001 bytes"),
        (frames.DATA, 1 << 16, "a frame of 65536 bytes"),
        (frames.HEADERS, 1001, "a frame of type 1 with 1001 bytes"),
    ):
        with pytest.raises(ConnectionFault) as caught:
            feed(begun(Told(), 2000, 1000), frames.header(length, kind, 0, 1), [1 << 10])
        assert caught.value.text == text


@pytest.mark.parametrize("kind", range(12))
def test_which_kinds_are_told_whole(kind: int) -> None:
    told = Told()
    feed(begun(told), frame(kind, 0, 0x8000_0005, b"abc"), [1 << 10])
    if kind == frames.DATA:
        assert told.events == [("data", 5, 3), "data ended"]
    elif kind == frames.GOAWAY or kind > frames.CONTINUATION:
        assert told.events == [("meaningless", kind)]
    else:
        assert told.events == [(kind, 0, 5, b"abc")], "the reserved bit of the stream's number is left out"


@pytest.mark.parametrize("size", [1, 1 << 10])
@pytest.mark.parametrize("padding", [0, 1, 255])
def test_padding_may_be_all_but_the_byte_that_tells_it(padding: int, size: int) -> None:
    told = Told()
    reader = begun(told)
    feed(reader, padded(1, b"", padding) + padded(1, b"z", padding), [size])
    assert told.events == [("data", 1, padding + 1), "data ended", ("data", 1, padding + 2), "data ended"]
    assert told.requests[1].data == b"z"
    assert not reader.inside_frame


def test_padding_is_due_though_all_payload_came() -> None:
    told = Told()
    reader = begun(told)
    data = padded(1, b"abc", 4)
    feed(reader, data[:-1], [1 << 10])
    assert told.events[-1] == "data ended"
    assert reader.inside_frame
    feed(reader, data[-1:], [1])
    assert not reader.inside_frame


def test_what_is_no_preface_is_refused_at_its_first_wrong_byte() -> None:
    reader = Http2FrameReader(Told(), 2000, 1000)
    feed(reader, PREFACE[:-1], [1])
    with pytest.raises(ConnectionFault, match="no HTTP/2 preface"):
        feed(reader, b"x", [1])
    feed(Http2FrameReader(Told(), 2000, 1000), PREFACE[:5], [3])
    with pytest.raises(ConnectionFault, match="more padding than there are bytes in the frame"):
        feed(begun(Told()), frame(frames.DATA, frames.PADDED, 1, b"\x02a"), [1])
