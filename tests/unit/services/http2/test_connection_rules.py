"""A connection's rules one by one: each limit at its edge, what each frame costs, and what is left of a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tenfold_services.http2 import frame_types as frames
from tenfold_services.http2.connection import Connection
from tenfold_services.http2.frame_types import Code, ConnectionFault, StreamFault
from tenfold_services.http2.hpack import encode
from tenfold_services.http2.http2_settings import Http2Settings

from .peers import GREETING, POST, Peer, Request, data, frame, request, split

if TYPE_CHECKING:
    from collections.abc import Callable

HEAD, TAIL = encode([(b":status", b"200")]), encode([(b"grpc-status", b"0")])
PING = frame(frames.PING, 0, 0, bytes(8))


def resets(peer: Peer) -> list[tuple[int, int]]:
    return [(stream, payload[3]) for kind, _, stream, payload in peer.pull() if kind == frames.RST_STREAM]


def updates(peer: Peer) -> list[tuple[int, int]]:
    """(stream, increment) of the windows that the peer is given."""
    return [
        (stream, int.from_bytes(payload, "big"))
        for kind, _, stream, payload in peer.pull()
        if kind == frames.WINDOW_UPDATE
    ]


# -- the start and the end ---------------------------------------------------------------------------------------------


def test_our_settings_are_all_told_and_a_window_only_where_it_differs() -> None:
    settings = Http2Settings(
        streams=5, stream_window=100_000, frame_bytes=20_000, header_list_bytes=9000, connection_window=65_535
    )
    peer = Peer(settings, greet=False)
    (told,) = peer.pull()
    assert told[:3] == (frames.SETTINGS, 0, 0)
    assert dict(frames.parse_settings(told[3])) == {
        frames.MAX_STREAMS: 5,
        frames.INITIAL_WINDOW: 100_000,
        frames.FRAME_SIZE: 20_000,
        frames.LIST_SIZE: 9000,
    }
    assert not peer.connection.greeted
    assert updates(Peer(Http2Settings(connection_window=65_536), greet=False)) == [(0, 1)]


def test_a_fault_ends_all_once_and_says_why() -> None:
    peer = Peer()
    peer.send(request(1, ends=True) + request(3))
    peer.connection.fail(ConnectionFault(Code.CANCEL, "enough"))
    peer.connection.fail(ConnectionFault(Code.INTERNAL_ERROR, "again"))
    assert peer.connection.fault is not None
    assert peer.connection.fault.text == "enough"
    assert all(got.gone for got in peer.requests.values())
    assert peer.connection.streams == {}
    (goodbye,) = peer.pull()
    assert goodbye == (frames.GOAWAY, 0, 0, b"\0\0\0\3" + Code.CANCEL.to_bytes(4, "big") + b"enough")
    # what was read already does not count any more
    peer.connection.spaces()[0][: len(PING)] = PING
    peer.connection.received(len(PING))
    assert peer.pull() == []
    peer.connection.out.answer(1, HEAD, [b"late"], TAIL)
    assert peer.pull() == []


def test_a_lost_peer_is_told_nothing_and_its_answers_do_not_count() -> None:
    peer = Peer()
    peer.send(request(1, ends=True) + request(3, ends=True) + request(5) + data(5, b"ab")[:-1])
    peer.connection.out.answer(1, HEAD, [bytes(1000)], TAIL)
    peer.connection.out.answer(3, HEAD, [bytes(100_000)], TAIL)
    assert peer.connection.out.unread.bytes == 101_000, "one is on its way, the other waits"
    assert peer.connection.half_way
    peer.connection.lost()
    assert [got.gone for got in peer.requests.values()] == [False, True, True]
    assert (peer.connection.out.unread.bytes, peer.connection.streams, peer.connection.fault) == (0, {}, None)
    assert [kind for kind, _, stream, _ in peer.pull() if stream == 3] == [frames.HEADERS], "what waits does not leave"


def test_nothing_more_is_received_for_a_request_of_a_lost_peer() -> None:
    peer = Peer(room=300_000)
    peer.send(request(1) + data(1, bytes(200_000))[:100_000])
    assert len(peer.connection.spaces()) == 2, "what comes goes to the request's own memory"
    peer.connection.lost()
    assert len(peer.connection.spaces()) == 1


def test_a_peer_owes_the_rest_of_a_frame_or_of_a_request() -> None:
    peer = Peer()
    assert not peer.connection.half_way
    peer.send(PING[:5])
    assert peer.connection.half_way
    peer.send(PING[5:])
    assert not peer.connection.half_way
    peer.send(request(1, ends=True))
    assert not peer.connection.half_way
    peer.send(request(3))
    assert peer.connection.half_way
    peer.send(data(3, b"", ends=True))
    assert not peer.connection.half_way


def test_what_is_said_of_a_stream_that_is_over_is_dropped() -> None:
    peer = Peer()
    peer.send(request(1, ends=True) + request(3, ends=True))
    connection = peer.connection
    connection.out.headers(1, HEAD)
    assert [one[:3] for one in peer.pull()] == [(frames.HEADERS, frames.END_HEADERS, 1)]
    peer.send(frames.rst_stream(1, Code.CANCEL))
    for number in (1, 5):
        connection.out.headers(number, HEAD)
        connection.out.answer(number, HEAD, [b"x"], TAIL)
        connection.out.end(number, TAIL)
    assert peer.pull() == []
    connection.out.end(3, TAIL)
    assert [one[2] for one in peer.pull()] == [3]
    connection.out.end(3, TAIL)
    assert peer.pull() == []


def test_what_waits_for_an_answer_goes_with_its_stream() -> None:
    peer = Peer()
    peer.send(frames.settings({frames.INITIAL_WINDOW: 5}) + request(1, ends=True) + request(3, ends=True))
    peer.pull()
    for number in (1, 3):
        peer.connection.out.answer(number, HEAD, [bytes(100)], TAIL)
    peer.pull()
    peer.send(frames.rst_stream(1, Code.CANCEL))
    peer.send(data(3, b"x"))
    assert resets(peer) == [(3, Code.STREAM_CLOSED)]
    assert peer.connection.out.unread.bytes == 0
    assert not peer.connection.out.pending


@pytest.mark.parametrize("over", [0, 1])
def test_as_much_may_wait_to_be_said_as_the_limit(over: int) -> None:
    peer = Peer(Http2Settings(control_bytes=10 * 17 - over))
    peer.send(PING * 10)
    assert (peer.connection.fault is not None) == bool(over)
    if over:
        assert peer.code is Code.ENHANCE_YOUR_CALM


def test_after_a_goodbye_streams_go_on_and_new_ones_come_to_nothing() -> None:
    peer = Peer(Http2Settings(stream_window=70_000, connection_window=70_000))
    peer.send(request(1) + request(3, ends=True))
    peer.connection.say_goodbye()
    ((kind, _, _, payload),) = peer.pull()
    assert (kind, payload[:8]) == (frames.GOAWAY, b"\0\0\0\3" + bytes(4))
    assert b"shutting down" in payload
    peer.send(request(5) + data(5, bytes(36_000)) + request(7, ends=True) + request(5, ends=True))
    assert (0, 36_000) in updates(peer), "what is dropped is taken all the same"
    assert set(peer.requests) == {1, 3}
    peer.send(data(1, b"end", ends=True))
    assert peer.requests[1].complete
    assert peer.connection.fault is None
    peer.send(data(9, b"x"))
    assert peer.code is Code.PROTOCOL_ERROR, "this one was never opened"


def test_after_a_goodbye_a_closed_stream_is_closed() -> None:
    peer = Peer()
    peer.send(request(1, ends=True))
    peer.connection.out.end(1, TAIL)
    peer.connection.say_goodbye()
    peer.send(data(1, b"x"))
    assert peer.code is Code.STREAM_CLOSED


# -- strangers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "one"),
    [
        ("ping", PING),
        ("data", data(1, b"x")),
        ("unknown", frame(77, 0, 0, b"?")),
        ("window", frames.window_update(0, 1)),
        ("headers", frame(frames.HEADERS, frames.END_HEADERS | frames.END_STREAM, 1, TAIL)),
    ],
)
def test_every_frame_of_a_stranger_counts(kind: str, one: bytes) -> None:
    peer = Peer(Http2Settings(strangers_burst=11, strangers_per_second=2.0))
    peer.connection.is_stranger(strange=True)
    peer.send(request(1))
    count = 1 if kind == "headers" else 10
    peer.send(one * count + PING * (10 - count))
    assert peer.connection.fault is None
    peer.now += 0.5
    peer.send(PING)
    assert peer.connection.fault is None, "one more by the rate"
    peer.send(one if kind != "headers" else PING)
    assert peer.connection.fault is not None
    assert "of one who has not shown who it is" in peer.connection.fault.text
    assert peer.code is Code.ENHANCE_YOUR_CALM


def test_one_who_is_known_is_counted_no_more() -> None:
    peer = Peer(Http2Settings(strangers_burst=3))
    peer.connection.is_stranger(strange=True)
    few = len(peer.connection.spaces()[0])
    peer.send(PING * 3)
    peer.connection.is_stranger(strange=False)
    peer.send(PING * 100 + request(1) + data(1, b"x") * 10 + frame(77, 0, 0))
    assert peer.connection.fault is None
    assert len(peer.connection.spaces()[0]) > few, "as a stranger it is read a little at a time"
    peer.connection.is_stranger(strange=True)
    peer.send(PING * 3)
    assert peer.connection.fault is None
    peer.send(PING)
    assert peer.code is Code.ENHANCE_YOUR_CALM


# -- what a frame costs ------------------------------------------------------------------------------------------------

TEN_SETTINGS = frames.settings({200 + number: 0 for number in range(10)})
NINE_SETTINGS = frames.settings({200 + number: 0 for number in range(9)})


@pytest.mark.parametrize(
    ("one", "cost"),
    [
        pytest.param(PING, 1, id="ping"),
        pytest.param(frame(frames.PING, frames.ACK, 0, bytes(8)), 1, id="ping's answer"),
        pytest.param(frames.settings({}), 1, id="settings"),
        pytest.param(NINE_SETTINGS, 1, id="nine settings"),
        pytest.param(TEN_SETTINGS, 2, id="ten settings"),
        pytest.param(frame(frames.SETTINGS, frames.ACK, 0), 1, id="settings' answer"),
        pytest.param(frame(frames.PRIORITY, 0, 1, bytes(5)), 1, id="priority"),
        pytest.param(frame(77, 0, 0, b"text"), 1, id="unknown"),
        pytest.param(frames.rst_stream(1, Code.CANCEL), 1, id="reset"),
        pytest.param(data(3, b""), 1, id="empty data"),
        pytest.param(data(3, b"x"), 0, id="data"),
        pytest.param(frames.window_update(0, 1), 0, id="window"),
        pytest.param(frames.window_update(3, 1), 0, id="window of a stream"),
    ],
)
def test_a_frame_costs(one: bytes, cost: int) -> None:
    # the greeting was one, the reset of stream 1 another
    peer = Peer(Http2Settings(control_burst=12, control_per_second=0.0))
    peer.send(request(1) + request(3) + frames.rst_stream(1, Code.CANCEL))
    peer.send(one * (10 // cost if cost else 100))
    assert peer.connection.fault is None
    peer.send(PING if not cost else one)
    assert (peer.connection.fault is not None) == bool(cost)
    if not cost:
        peer.send(PING * 9)
        assert peer.connection.fault is None
        peer.send(PING)
    assert peer.code is Code.ENHANCE_YOUR_CALM


def test_headers_cost_nothing_and_each_continuation_one() -> None:
    peer = Peer(Http2Settings(control_burst=6, control_per_second=0.0))
    for number in range(1, 21, 2):
        peer.send(request(number, ends=True))
    for _ in range(5):
        number += 2
        peer.send(frame(frames.HEADERS, 0, number, POST[:3]) + frame(frames.CONTINUATION, 4, number, POST[3:]))
    assert peer.connection.fault is None
    assert len(peer.requests) == 15
    peer.send(frame(frames.HEADERS, 0, 101, POST[:3]) + frame(frames.CONTINUATION, 4, 101, POST[3:]))
    assert peer.code is Code.ENHANCE_YOUR_CALM


def test_a_stream_that_we_reset_costs_one() -> None:
    peer = Peer(Http2Settings(control_burst=4, control_per_second=0.0))
    for number in (1, 3, 5):
        peer.send(request(number, ends=True) + data(number, b"x"))
    assert resets(peer) == [(number, Code.STREAM_CLOSED) for number in (1, 3, 5)]
    assert peer.connection.fault is None
    peer.send(request(7, ends=True) + data(7, b"x"))
    assert peer.code is Code.ENHANCE_YOUR_CALM


def test_empty_data_that_ends_a_request_costs_nothing() -> None:
    peer = Peer(Http2Settings(control_burst=1, control_per_second=0.0))
    for number in range(1, 21, 2):
        peer.send(request(number) + data(number, b"", ends=True))
    assert peer.connection.fault is None
    assert all(got.complete for got in peer.requests.values())


# -- what is no frame for now ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [frames.PRIORITY, frames.RST_STREAM, frames.PING, frames.WINDOW_UPDATE])
@pytest.mark.parametrize("by", [-1, 0, 1])
def test_a_frame_of_fixed_length_has_that_length(kind: int, by: int) -> None:
    size = {frames.PRIORITY: 5, frames.RST_STREAM: 4, frames.PING: 8, frames.WINDOW_UPDATE: 4}[kind] + by
    peer = Peer()
    peer.send(request(1) + frame(kind, 0, 0 if kind == frames.PING else 1, (b"\0\0\0\1" + bytes(5))[:size]))
    assert peer.code is (Code.FRAME_SIZE_ERROR if by else None)


@pytest.mark.parametrize("kind", [frames.HEADERS, frames.PRIORITY, frames.RST_STREAM, frames.PUSH_PROMISE])
def test_a_frame_of_a_stream_has_one(kind: int) -> None:
    peer = Peer()
    peer.send(
        frame(kind, frames.END_HEADERS, 0, {frames.PRIORITY: bytes(5), frames.RST_STREAM: bytes(4)}.get(kind, POST))
    )
    assert peer.code is Code.PROTOCOL_ERROR


def test_a_window_is_of_a_stream_or_of_all() -> None:
    peer = Peer()
    peer.send(request(1) + frames.window_update(0, 7) + frames.window_update(1, 5))
    peer.send(frame(frames.WINDOW_UPDATE, 0, 1, b"\x80\0\0\3"))
    assert peer.connection.fault is None
    assert peer.connection.out.window == 65_535 + 7
    assert peer.connection.out._windows[1] == 8, "the highest bit is reserved"
    peer.send(frames.window_update(3, 5))
    assert peer.code is Code.PROTOCOL_ERROR


@pytest.mark.parametrize("first", [frame(frames.SETTINGS, frames.ACK, 0), frame(77, 0, 0), PING, request(1)])
def test_settings_come_first_and_are_no_answer(first: bytes) -> None:
    peer = Peer(greet=False)
    peer.send(frames.PREFACE + first)
    assert peer.code is Code.PROTOCOL_ERROR
    assert not peer.connection.greeted


@pytest.mark.parametrize("between", [frame(77, 0, 0), data(1, b"x"), PING, frames.settings({}), request(3)])
def test_nothing_comes_between_headers_and_their_rest(between: bytes) -> None:
    peer = Peer()
    peer.send(request(1) + frame(frames.HEADERS, 0, 3, POST[:3]))
    assert peer.connection.fault is None
    peer.send(between)
    assert peer.code is Code.PROTOCOL_ERROR


def test_after_headers_that_went_on_everything_may_come() -> None:
    peer = Peer()
    peer.send(frame(frames.HEADERS, 0, 1, POST[:3]) + frame(frames.CONTINUATION, frames.END_HEADERS, 1, POST[3:]))
    peer.send(PING + data(1, b"x") + frame(77, 0, 0))
    assert peer.connection.fault is None
    assert bytes(peer.requests[1].data) == b"x"
    assert not peer.requests[1].complete
    peer.send(frame(frames.CONTINUATION, frames.END_HEADERS, 1, POST))
    assert peer.code is Code.PROTOCOL_ERROR


@pytest.mark.parametrize("payload", [bytes(1), bytes(5), bytes(7)])
def test_settings_are_six_bytes_each(payload: bytes) -> None:
    peer = Peer()
    peer.send(frame(frames.SETTINGS, 0, 0, payload))
    assert peer.code is Code.FRAME_SIZE_ERROR


def test_an_answer_to_our_settings_is_not_answered() -> None:
    peer = Peer()
    peer.send(frame(frames.SETTINGS, frames.ACK, 0) + frame(frames.PING, frames.ACK, 0, bytes(8)))
    assert peer.pull() == []
    assert peer.connection.fault is None


# -- headers -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "payload", "fits"),
    [
        (frames.PADDED, b"", False),
        (frames.PADDED, b"\0", True),
        (frames.PADDED, b"\3abc", True),
        (frames.PADDED, b"\4abc", False),
        (frames.WITH_PRIORITY, bytes(4), False),
        (frames.WITH_PRIORITY, bytes(5), True),
        (frames.PADDED | frames.WITH_PRIORITY, b"\2" + bytes(7), True),
        (frames.PADDED | frames.WITH_PRIORITY, b"\2" + bytes(6), False),
        (frames.PADDED | frames.WITH_PRIORITY, b"\2" + bytes(5) + POST + b"ab", True),
        (0, POST, True),
    ],
)
def test_padding_and_priority_have_their_place(flags: int, payload: bytes, fits: bool) -> None:
    peer = Peer()
    peer.send(frame(frames.HEADERS, frames.END_HEADERS | flags, 1, payload))
    assert peer.code is (None if fits else Code.PROTOCOL_ERROR)
    if POST in payload:
        fields = peer.requests[1].fields
        assert fields is not None
        assert (b":path", b"/x/Y") in fields


@pytest.mark.parametrize("over", [0, 1])
def test_headers_come_in_so_many_frames(over: int) -> None:
    peer = Peer(Http2Settings(continuations=3))
    peer.send(frame(frames.HEADERS, frames.END_STREAM, 1, POST[:1]))
    for at in range(1, 3 + over):
        peer.send(frame(frames.CONTINUATION, 0, 1, POST[at : at + 1]))
    assert peer.connection.fault is None
    peer.send(frame(frames.CONTINUATION, frames.END_HEADERS, 1, POST[3 + over :]))
    assert peer.code is (Code.ENHANCE_YOUR_CALM if over else None)
    assert over or peer.requests[1].complete


@pytest.mark.parametrize("over", [0, 1])
def test_headers_have_so_many_bytes(over: int) -> None:
    peer = Peer(Http2Settings(header_block_bytes=len(POST) - over))
    peer.send(frame(frames.HEADERS, 0, 1, POST[:5]) + frame(frames.CONTINUATION, frames.END_HEADERS, 1, POST[5:]))
    assert peer.code is (Code.ENHANCE_YOUR_CALM if over else None)


def test_trailers_end_a_request_once() -> None:
    peer = Peer()
    peer.send(request(1) + data(1, b"x") + request(1, ends=True))
    assert (peer.requests[1].complete, bytes(peer.requests[1].data)) == (True, b"x")
    assert resets(peer) == []
    peer.send(request(1, ends=True))
    assert resets(peer) == [(1, Code.STREAM_CLOSED)]
    peer.send(request(3) + request(3))
    assert resets(peer) == [(3, Code.PROTOCOL_ERROR)]
    assert (peer.requests[3].complete, peer.requests[3].gone) == (False, True)


def test_a_stream_has_an_odd_number_above_the_last() -> None:
    for number, code in ((4, Code.PROTOCOL_ERROR), (3, Code.STREAM_CLOSED), (1, Code.STREAM_CLOSED), (7, None)):
        peer = Peer()
        peer.send(request(5, ends=True))
        peer.connection.out.end(5, TAIL)
        peer.send(request(number))
        # a lower odd number was passed over, and so was closed
        assert peer.code is (Code.STREAM_CLOSED if number == 4 else code)
        assert (number in peer.requests) == (code is None)
    peer = Peer()
    peer.send(request(6))
    assert peer.code is Code.PROTOCOL_ERROR


def test_the_last_number_there_is_opens_a_stream() -> None:
    peer = Peer()
    peer.send(request((1 << 31) - 1, ends=True))
    assert peer.requests[(1 << 31) - 1].complete


def test_a_stream_too_many_is_refused_and_its_rest_ignored() -> None:
    peer = Peer(Http2Settings(streams=2))
    peer.send(request(1) + request(3))
    assert resets(peer) == []
    peer.send(request(5) + data(5, b"x") + data(5, b"y", ends=True))
    assert resets(peer) == [(5, Code.REFUSED_STREAM)]
    assert 5 not in peer.requests
    peer.connection.out.end(1, TAIL)
    peer.send(request(7))
    assert 7 in peer.requests


# -- the end of a stream -----------------------------------------------------------------------------------------------


def connection_of(open_request: Callable[[Connection, int], Any]) -> tuple[Connection, Callable[[bytes], None]]:
    """A greeted connection whose requests are opened by `open_request`, and what lets it read."""
    made: list[Connection] = []
    made.append(Connection(lambda number, run, fields: open_request(made[0], number), Http2Settings(), lambda: 0.0))

    def send(sent: bytes) -> None:
        made[0].spaces()[0][: len(sent)] = sent
        made[0].received(len(sent))

    send(GREETING)
    made[0].out.pull(1 << 20)
    return made[0], send


def test_a_request_that_is_refused_when_it_is_opened_is_reset_with_that_code() -> None:
    def refuse(connection: Connection, number: int) -> Any:
        raise StreamFault(Code.CANCEL, "no")

    connection, send = connection_of(refuse)
    send(request(1, ends=True) + data(1, b"on its way"))
    assert connection.fault is None
    assert split(b"".join(connection.out.pull(1 << 20))) == [(frames.RST_STREAM, 0, 1, b"\0\0\0\x08")]
    assert connection.streams == {}


@pytest.mark.parametrize("ends", [True, False])
def test_a_request_may_be_answered_when_it_is_opened(ends: bool) -> None:
    receiver = Request(None)

    def answer(connection: Connection, number: int) -> Request:
        connection.out.end(number, TAIL)
        return receiver

    connection, send = connection_of(answer)
    send(request(1, ends=ends))
    assert (receiver.complete, receiver.gone) == (False, False), "it is over for us"
    kinds = [kind for kind, *_ in split(b"".join(connection.out.pull(1 << 20)))]
    assert kinds == [frames.HEADERS] + [frames.RST_STREAM] * (not ends)
    assert connection.streams == {}


def test_a_complete_request_that_was_answered_leaves_nothing() -> None:
    peer = Peer()
    peer.send(request(1, ends=True))
    peer.connection.out.end(1, TAIL)
    assert [kind for kind, *_ in peer.pull()] == [frames.HEADERS]
    peer.send(frames.window_update(1, frames.MAX_WINDOW) * 2)
    assert peer.pull() == [], "it has no window any more that could be too large"
    peer.send(data(1, b"x"))
    assert peer.code is Code.STREAM_CLOSED


@pytest.mark.parametrize("how", ["END_STREAM", "trailers", "RST_STREAM"])
def test_a_stream_that_the_peer_ends_after_us_is_closed(how: str) -> None:
    peer = Peer()
    peer.send(request(1))
    peer.connection.out.end(1, TAIL)
    assert resets(peer) == [(1, Code.NO_ERROR)]
    peer.send(data(1, b"x") + data(1, b"y"))
    assert peer.connection.fault is None
    last = {"END_STREAM": data(1, b"", ends=True), "trailers": request(1, ends=True)}
    peer.send(last.get(how, frames.rst_stream(1, Code.CANCEL)))
    assert peer.connection.fault is None
    peer.send(data(1, b"z"))
    assert peer.code is Code.STREAM_CLOSED


def test_streams_that_both_have_ended_take_no_place_from_one_that_goes_on() -> None:
    peer = Peer(Http2Settings(streams=2))
    peer.send(request(1))
    peer.connection.out.end(1, TAIL)
    for number in range(3, 13, 2):
        peer.send(request(number))
        peer.connection.out.end(number, TAIL)
        peer.send(data(number, b"", ends=True))
    peer.send(data(1, b"still on its way"))
    assert peer.connection.fault is None


def test_headers_of_a_stream_that_we_left_are_ignored() -> None:
    peer = Peer()
    peer.send(request(1))
    peer.connection.out.end(1, TAIL)
    peer.send(request(1) + request(1, ends=True) + frames.window_update(1, 5))
    assert peer.connection.fault is None


def test_a_stream_that_ended_while_its_data_came_is_left() -> None:
    """The answer is out before the whole frame is there: what is left of it counts, and ends the stream for both."""
    peer = Peer()
    peer.send(request(1) + data(1, b"abcd", ends=True)[:-2])
    peer.connection.out.end(1, TAIL)
    peer.send(b"cd")
    assert not peer.requests[1].complete
    peer.send(data(1, b"x"))
    assert peer.code is Code.STREAM_CLOSED


@pytest.mark.parametrize(("number", "opened"), [(1, True), (3, False)])
def test_only_a_stream_that_was_opened_can_be_reset(number: int, opened: bool) -> None:
    peer = Peer()
    peer.send(request(1) + frames.rst_stream(number, Code.CANCEL))
    assert peer.code is (None if opened else Code.PROTOCOL_ERROR)
    assert peer.requests[1].gone


# -- windows -----------------------------------------------------------------------------------------------------------


def test_a_window_may_be_used_up_and_no_more() -> None:
    peer = Peer(Http2Settings(stream_window=100, connection_window=70_000))
    peer.send(request(1) + data(1, bytes(100)))
    assert (updates(peer), peer.requests[1].gone) == ([(1, 100)], False)
    peer.send(request(3) + data(3, bytes(101)))
    assert peer.requests[3].gone
    assert resets(peer) == [(3, Code.FLOW_CONTROL_ERROR)]
    peer = Peer(Http2Settings(connection_window=70_000))
    peer.send(request(1) + data(1, bytes(70_000)))
    assert peer.connection.fault is None
    peer.send(data(1, bytes(70_001))[:20])
    assert peer.code is Code.FLOW_CONTROL_ERROR


def test_windows_are_opened_again_below_the_half() -> None:
    peer = Peer(Http2Settings(stream_window=70_000, connection_window=70_000))
    peer.send(request(1) + data(1, bytes(35_000)))
    assert updates(peer) == []
    peer.send(data(1, b"x"))
    assert updates(peer) == [(0, 35_001), (1, 35_001)]
    peer.send(data(1, bytes(35_001)))
    assert updates(peer) == [(0, 35_001), (1, 35_001)]
    peer.send(data(1, bytes(35_001), ends=True))
    assert updates(peer) == [(0, 35_001)], "nothing more comes on the stream"


def test_padding_counts_and_data_of_streams_that_are_over_too() -> None:
    peer = Peer(Http2Settings(stream_window=70_000, connection_window=70_000))
    peer.send(request(1) + frame(frames.DATA, frames.PADDED, 1, b"\xff" + bytes(34_745) + bytes(255)))
    assert updates(peer) == [(0, 35_001), (1, 35_001)]
    peer.connection.out.end(1, TAIL)
    peer.pull()
    peer.send(data(1, bytes(35_001)))
    assert updates(peer) == [(0, 35_001)]
