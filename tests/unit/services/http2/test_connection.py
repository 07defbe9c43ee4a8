"""One connection: what a peer may send and what it gets for the rest, byte by byte and all at once. No sockets."""

from __future__ import annotations

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, ResponseReceived, StreamEnded, TrailersReceived

from tenfold_services.http2 import frame_types as frames
from tenfold_services.http2.frame_types import Code
from tenfold_services.http2.hpack import encode
from tenfold_services.http2.http2_settings import Http2Settings

from .peers import GREETING, POST, Peer, data, frame, request

HEAD, TAIL = encode([(b":status", b"200")]), encode([(b"grpc-status", b"0")])


def test_settings_come_first_and_are_acknowledged() -> None:
    peer = Peer(Http2Settings(streams=7), greet=False)
    first, window = peer.pull()
    assert first[0] == frames.SETTINGS
    assert (frames.MAX_STREAMS, 7) in frames.parse_settings(first[3])
    assert window == (frames.WINDOW_UPDATE, 0, 0, (frames.MAX_WINDOW - 65535).to_bytes(4, "big"))
    peer.send(GREETING)
    assert peer.pull() == [(frames.SETTINGS, frames.ACK, 0, b"")]
    assert peer.connection.greeted


@pytest.mark.parametrize("size", [1, 7, 1 << 20])
def test_a_request_however_its_bytes_come(size: int) -> None:
    peer = Peer()
    peer.send(request(1) + data(1, b"ab") + data(1, b"cd", ends=True), size)
    got = peer.requests[1]
    assert (bytes(got.data), got.complete, got.gone) == (b"abcd", True, False)
    assert got.fields is not None
    assert (b":path", b"/x/Y") in got.fields


def test_another_implementation_of_http2_understands_us() -> None:
    client = H2Connection(H2Configuration(client_side=True, header_encoding=None))
    client.initiate_connection()
    client.send_headers(1, [(b":method", b"POST"), (b":scheme", b"http"), (b":path", b"/x/Y"), (b":authority", b"a")])
    client.send_data(1, b"request", end_stream=True)
    peer = Peer(greet=False)
    peer.send(client.data_to_send())
    assert peer.requests[1].data == b"request"

    answer = b"0123456789" * 20_000
    peer.connection.out.answer(1, HEAD, [answer], TAIL)
    events = []
    while peer.connection.out.pending:
        got = client.receive_data(b"".join(peer.connection.out.pull(1 << 20)))
        for event in got:
            if isinstance(event, DataReceived):
                client.acknowledge_received_data(event.flow_controlled_length, 1)
        events += got
        peer.send(client.data_to_send())
    kinds = [type(event) for event in events]
    assert b"".join(event.data for event in events if isinstance(event, DataReceived)) == answer
    assert kinds.index(ResponseReceived) < kinds.index(DataReceived) < kinds.index(TrailersReceived)
    assert kinds[-1] is StreamEnded or StreamEnded in kinds
    assert not peer.connection.streams


def test_padding_and_priority_are_no_part_of_the_request() -> None:
    peer = Peer()
    flags = frames.END_HEADERS | frames.PADDED | frames.WITH_PRIORITY
    peer.send(frame(frames.HEADERS, flags, 1, b"\x03" + bytes(5) + POST + b"pad"), 5)
    peer.send(frame(frames.DATA, frames.PADDED, 1, b"\x04abc" + bytes(4)), 3)
    peer.send(frame(frames.DATA, frames.PADDED | frames.END_STREAM, 1, b"\x00d"))
    assert peer.requests[1].data == b"abcd"
    assert peer.requests[1].complete


def test_headers_that_go_on() -> None:
    peer = Peer()
    peer.send(frame(frames.HEADERS, frames.END_STREAM, 1, POST[:5]))
    peer.send(frame(frames.CONTINUATION, 0, 1, POST[5:6]) + frame(frames.CONTINUATION, frames.END_HEADERS, 1, POST[6:]))
    assert peer.requests[1].complete


def test_large_payload_is_received_where_it_stays() -> None:
    size = 300_000
    peer = Peer(room=size)
    payload = bytes(range(256)) * (size // 256 + 1)
    half = size // 2
    peer.send(request(1) + data(1, payload[:half]) + data(1, payload[half:size], ends=True) + request(3))
    assert bytes(peer.requests[1].data) == payload[:size]
    assert peer.direct > size - 150_000
    assert 3 in peer.requests


def test_pings_are_answered_and_unknown_frames_ignored() -> None:
    peer = Peer()
    peer.send(frame(frames.PING, 0, 0, b"12345678") + frame(99, 0, 5, b"?" * 70_000))
    peer.send(frame(frames.GOAWAY, 0, 0, bytes(8)))
    peer.send(request(1, ends=True), 1)
    assert peer.pull() == [(frames.PING, frames.ACK, 0, b"12345678")]
    assert peer.requests[1].complete


CONNECTION_ERRORS = {
    "no preface": (b"GET / HTTP/1.1\r\n", Code.PROTOCOL_ERROR, False),
    "no settings": (frames.PREFACE + frame(frames.PING, 0, 0, bytes(8)), Code.PROTOCOL_ERROR, False),
    "data before settings": (frames.PREFACE + data(1, b""), Code.PROTOCOL_ERROR, False),
    "data on an idle stream": (data(1, b"x"), Code.PROTOCOL_ERROR, True),
    "data on no stream": (data(0, b"x"), Code.PROTOCOL_ERROR, True),
    "headers on no stream": (request(0), Code.PROTOCOL_ERROR, True),
    "headers on an even stream": (request(2), Code.PROTOCOL_ERROR, True),
    "settings on a stream": (frame(frames.SETTINGS, 0, 1), Code.PROTOCOL_ERROR, True),
    "settings of seven bytes": (frame(frames.SETTINGS, 0, 0, bytes(7)), Code.FRAME_SIZE_ERROR, True),
    "an acknowledgement that says more": (frame(frames.SETTINGS, frames.ACK, 0, bytes(6)), Code.FRAME_SIZE_ERROR, True),
    "a window of 2**31": (frames.settings({frames.INITIAL_WINDOW: 1 << 31}), Code.FLOW_CONTROL_ERROR, True),
    "a frame size of 1": (frames.settings({frames.FRAME_SIZE: 1}), Code.PROTOCOL_ERROR, True),
    "push of 2": (frames.settings({frames.ENABLE_PUSH: 2}), Code.PROTOCOL_ERROR, True),
    "a ping of seven bytes": (frame(frames.PING, 0, 0, bytes(7)), Code.FRAME_SIZE_ERROR, True),
    "a ping on a stream": (frame(frames.PING, 0, 1, bytes(8)), Code.PROTOCOL_ERROR, True),
    "a push": (frame(frames.PUSH_PROMISE, 0, 1, bytes(8)), Code.PROTOCOL_ERROR, True),
    "a window update of nothing": (frame(frames.WINDOW_UPDATE, 0, 0, bytes(4)), Code.PROTOCOL_ERROR, True),
    "a window beyond the limit": (frames.window_update(0, frames.MAX_WINDOW), Code.FLOW_CONTROL_ERROR, True),
    "a window update of an idle stream": (frames.window_update(1, 1), Code.PROTOCOL_ERROR, True),
    "a window update of three bytes": (frame(frames.WINDOW_UPDATE, 0, 0, bytes(3)), Code.FRAME_SIZE_ERROR, True),
    "a reset of an idle stream": (frames.rst_stream(1, Code.CANCEL), Code.PROTOCOL_ERROR, True),
    "a reset of three bytes": (request(1) + frame(frames.RST_STREAM, 0, 1, bytes(3)), Code.FRAME_SIZE_ERROR, True),
    "priority of four bytes": (frame(frames.PRIORITY, 0, 1, bytes(4)), Code.FRAME_SIZE_ERROR, True),
    "a continuation of nothing": (frame(frames.CONTINUATION, 0, 1), Code.PROTOCOL_ERROR, True),
    "a ping inside headers": (
        frame(frames.HEADERS, 0, 1, POST) + frame(frames.PING, 0, 0, bytes(8)),
        Code.PROTOCOL_ERROR,
        True,
    ),
    "data inside headers": (frame(frames.HEADERS, 0, 1, POST) + data(1, b"x"), Code.PROTOCOL_ERROR, True),
    "another stream's continuation": (
        frame(frames.HEADERS, 0, 1, POST) + frame(frames.CONTINUATION, 4, 3),
        Code.PROTOCOL_ERROR,
        True,
    ),
    "padding beyond the frame": (
        request(1) + frame(frames.DATA, frames.PADDED, 1, b"\x05ab"),
        Code.PROTOCOL_ERROR,
        True,
    ),
    "padding of an empty frame": (request(1) + frame(frames.DATA, frames.PADDED, 1), Code.PROTOCOL_ERROR, True),
    "headers' padding beyond the frame": (
        frame(frames.HEADERS, frames.PADDED | frames.END_HEADERS, 1, b"\x05ab"),
        Code.PROTOCOL_ERROR,
        True,
    ),
    "a block that cannot be decoded": (request(1, block=b"\x80"), Code.COMPRESSION_ERROR, True),
    "headers that never end": (
        frame(frames.HEADERS, 0, 1, POST) + frame(frames.CONTINUATION, 0, 1) * 100,
        Code.ENHANCE_YOUR_CALM,
        True,
    ),
    "headers that are huge": (
        frame(frames.HEADERS, 0, 1, bytes(30_000)) + frame(frames.CONTINUATION, 0, 1, bytes(30_000)),
        Code.ENHANCE_YOUR_CALM,
        True,
    ),
    "one frame of huge headers": (frame(frames.HEADERS, 0, 1, bytes(40_000)), Code.ENHANCE_YOUR_CALM, True),
}


@pytest.mark.parametrize("name", CONNECTION_ERRORS)
@pytest.mark.parametrize("size", [1, 1 << 20])
def test_what_ends_the_connection(name: str, size: int) -> None:
    sent, code, greet = CONNECTION_ERRORS[name]
    peer = Peer(greet=greet)
    peer.send(sent, size)
    assert peer.code is code
    assert all(got.gone for got in peer.requests.values())


def test_a_frame_larger_than_announced() -> None:
    peer = Peer(Http2Settings(frame_bytes=16_384))
    peer.send(request(1) + frames.header(16_385, frames.DATA, 0, 1))
    assert peer.code is Code.FRAME_SIZE_ERROR


def resets(peer: Peer) -> list[tuple[int, int]]:
    return [(stream, payload[3]) for kind, _, stream, payload in peer.pull() if kind == frames.RST_STREAM]


def test_what_ends_a_stream_only() -> None:
    peer = Peer(Http2Settings(streams=2))
    peer.send(request(1, ends=True) + data(1, b"more"))
    assert resets(peer) == [(1, Code.STREAM_CLOSED)]
    assert peer.requests[1].gone
    peer.send(data(1, b"and more"))  # on its way before the peer knew
    peer.send(request(3) + request(3))
    assert resets(peer) == [(3, Code.PROTOCOL_ERROR)]
    peer.send(request(5) + frames.window_update(5, frames.MAX_WINDOW))
    assert resets(peer) == [(5, Code.FLOW_CONTROL_ERROR)]
    peer.send(request(7) + frame(frames.WINDOW_UPDATE, 0, 7, bytes(4)))
    assert resets(peer) == [(7, Code.PROTOCOL_ERROR)]
    peer.send(request(9) + request(11) + request(13))
    assert resets(peer) == [(13, Code.REFUSED_STREAM)]
    assert peer.code is None


def test_a_stream_that_is_over_for_both_ends() -> None:
    peer = Peer()
    peer.send(request(1, ends=True))
    peer.connection.out.end(1, HEAD)
    peer.send(frames.window_update(1, 5) + frames.rst_stream(1, Code.CANCEL))
    assert peer.code is None
    peer.send(data(1, b"late"))
    assert peer.code is Code.STREAM_CLOSED


def test_a_cancelled_request() -> None:
    peer = Peer()
    peer.send(request(1) + data(1, b"ab") + frames.rst_stream(1, Code.CANCEL))
    assert peer.requests[1].gone
    peer.connection.out.answer(1, HEAD, [b"answer"], TAIL)
    assert peer.pull() == []


def test_an_answer_before_the_request_is_complete() -> None:
    peer = Peer()
    peer.send(request(1))
    peer.connection.out.end(1, HEAD)
    end, reset = peer.pull()
    assert end == (frames.HEADERS, frames.END_HEADERS | frames.END_STREAM, 1, HEAD)
    assert reset == (frames.RST_STREAM, 0, 1, bytes(4))
    peer.send(data(1, b"x" * 50_000) + data(1, b"", ends=True))
    assert peer.code is None
    assert not peer.requests[1].data


# -- flow control ------------------------------------------------------------------------------------------------------


def test_an_answer_waits_for_the_windows_of_its_stream_and_of_the_connection() -> None:
    peer = Peer()
    peer.send(frames.settings({frames.INITIAL_WINDOW: 10}) + request(1, ends=True))
    peer.pull()
    peer.connection.out.answer(1, HEAD, [b"0123456789", b"abcdef"], TAIL)
    assert [payload for _, _, _, payload in peer.pull()] == [HEAD, b"0123456789"]
    peer.send(frames.window_update(1, 2))
    assert [payload for _, _, _, payload in peer.pull()] == [b"ab"]
    peer.send(frames.settings({frames.INITIAL_WINDOW: 4}))  # six less for open streams: the window is negative
    peer.send(frames.window_update(1, 6))
    assert [kind for kind, _, _, _ in peer.pull()] == [frames.SETTINGS]
    peer.send(frames.window_update(1, 100))
    assert [payload for _, _, _, payload in peer.pull()] == [b"cdef", TAIL]
    assert not peer.connection.streams


def test_answers_that_wait_take_turns() -> None:
    peer = Peer()
    peer.send(frames.settings({frames.INITIAL_WINDOW: 1 << 20}))
    peer.send(request(1, ends=True) + request(3, ends=True) + frames.window_update(0, 1 << 20))
    peer.pull()
    for stream in (1, 3):
        peer.connection.out.answer(stream, HEAD, [bytes(40_000)], TAIL)
    order = [stream for kind, _, stream, payload in peer.pull() if kind == frames.DATA]
    assert order == [1, 3, 1, 3, 1, 3]


def test_a_small_answer_passes_one_whose_window_is_closed() -> None:
    peer = Peer()
    peer.send(frames.settings({frames.INITIAL_WINDOW: 20}) + request(1, ends=True) + request(3, ends=True))
    peer.pull()
    peer.connection.out.answer(1, HEAD, [bytes(100)], TAIL)
    peer.connection.out.answer(3, HEAD, [b"small"], TAIL)
    assert [(kind, stream) for kind, _, stream, _ in peer.pull()] == [
        (frames.HEADERS, 1),
        (frames.HEADERS, 3),
        (frames.DATA, 1),
        (frames.DATA, 3),
        (frames.HEADERS, 3),
    ]


def test_more_than_we_allowed() -> None:
    peer = Peer(Http2Settings(stream_window=100, connection_window=1 << 20))
    peer.send(request(1) + data(1, bytes(101)) + request(3, ends=True))
    assert resets(peer) == [(1, Code.FLOW_CONTROL_ERROR)]
    assert peer.requests[3].complete
    peer = Peer(Http2Settings(stream_window=1 << 20, connection_window=65_535))
    peer.send(request(1) + data(1, bytes(30_000)) + data(1, bytes(65_535)))
    assert peer.code is Code.FLOW_CONTROL_ERROR


def test_what_was_taken_may_be_sent_again() -> None:
    peer = Peer(Http2Settings(stream_window=100_000, connection_window=70_000))
    peer.send(request(1))
    for _ in range(20):
        peer.send(data(1, bytes(36_000)))
        updates = [(stream, int.from_bytes(payload, "big")) for kind, _, stream, payload in peer.pull()]
        assert (0, 36_000) in updates
    assert peer.code is None
    assert len(peer.requests[1].data) == 720_000


# -- floods ------------------------------------------------------------------------------------------------------------

FLOODS = {
    "pings": frame(frames.PING, frames.ACK, 0, bytes(8)),
    "pings to answer": frame(frames.PING, 0, 0, bytes(8)),
    "settings": frames.settings({}),
    "priorities": frame(frames.PRIORITY, 0, 1, bytes(5)),
    "unknown frames": frame(77, 0, 0),
    "empty data": data(1, b""),
}


@pytest.mark.parametrize("name", FLOODS)
def test_floods(name: str) -> None:
    peer = Peer(Http2Settings(control_burst=1000, control_per_second=100))
    peer.send(request(1))
    peer.send(FLOODS[name] * 950)
    assert peer.connection.fault is None
    peer.pull()
    peer.now = 1.0
    peer.send(FLOODS[name] * 100)
    assert peer.connection.fault is None
    peer.send(FLOODS[name] * 1000)
    assert peer.code is Code.ENHANCE_YOUR_CALM


def test_rapid_resets() -> None:
    peer = Peer(Http2Settings(control_burst=1000))
    for number in range(1, 4001, 2):
        peer.send(request(number) + frames.rst_stream(number, Code.CANCEL))
    assert peer.code is Code.ENHANCE_YOUR_CALM
    assert all(got.gone for got in peer.requests.values())


def test_a_peer_that_does_not_read() -> None:
    peer = Peer(Http2Settings(control_bytes=1000))
    for _ in range(100):
        peer.send(frame(frames.PING, 0, 0, bytes(8)))
    assert peer.code is Code.ENHANCE_YOUR_CALM


def test_goodbye() -> None:
    peer = Peer()
    peer.send(request(1) + data(1, b"half"))
    peer.connection.say_goodbye()
    [(kind, _, _, payload)] = peer.pull()
    assert kind == frames.GOAWAY
    assert payload[:8] == (1).to_bytes(4, "big") + bytes(4)
    peer.send(request(3) + data(3, b"nobody's", ends=True) + data(1, b"", ends=True))
    assert 3 not in peer.requests
    peer.connection.out.end(1, HEAD)
    assert peer.pull() == [(frames.HEADERS, frames.END_HEADERS | frames.END_STREAM, 1, HEAD)]
