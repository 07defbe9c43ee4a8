"""What leaves a connection, and when: windows, turns of streams, limits of the peer's settings. No sockets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenfold_services.http2 import frame_types as frames
from tenfold_services.http2.frame_types import Code, ConnectionFault
from tenfold_services.http2.outbound import Http2Outbound

from .peers import split


class Sender:
    """An outbound half that notes which streams ended, and what left it."""

    def __init__(self, *streams: int) -> None:
        self.ended: list[int] = []
        self.out = Http2Outbound(self.ended.append)
        for stream in streams:
            self.out.open(stream)

    def pull(self, budget: int = 1 << 30) -> list[tuple[int, int, int, bytes]]:
        return split(b"".join(self.out.pull(budget)))

    def sizes(self, budget: int = 1 << 30) -> list[tuple[int, int]]:
        """(stream, bytes) of the DATA frames that leave now."""
        return [(stream, len(payload)) for kind, _, stream, payload in self.pull(budget) if kind == frames.DATA]


def test_a_small_answer_leaves_as_one_piece_and_ends_its_stream() -> None:
    sender = Sender(1)
    sender.out.answer(1, b"head", [b"ab", b"", b"c"], b"tail")

    assert sender.ended == [1]
    assert len(sender.out.pull(1 << 30)) == 1
    assert not sender.out.pending
    assert sender.out.window == frames.DEFAULT_WINDOW - 3


def test_the_frames_of_an_answer() -> None:
    sender = Sender(1)
    sender.out.answer(1, b"head", [b"abc"], b"tail")

    assert sender.pull() == [
        (frames.HEADERS, frames.END_HEADERS, 1, b"head"),
        (frames.DATA, 0, 1, b"abc"),
        (frames.HEADERS, frames.END_HEADERS | frames.END_STREAM, 1, b"tail"),
    ]


def test_large_pieces_are_not_copied() -> None:
    sender, piece = Sender(1), bytes(20_000)
    sender.out.obey([(frames.FRAME_SIZE, 1 << 20)])
    sender.out.answer(1, b"", [piece], b"tail")
    assert any(found is piece for found in sender.out.pull(1 << 30))


def test_an_answer_beyond_the_stream_window_waits_for_it() -> None:
    sender = Sender(1)
    assert sender.out.grow(0, 1 << 20)
    sender.out.answer(1, b"head", [bytes(frames.DEFAULT_WINDOW + 10)], b"tail")

    assert sum(size for _, size in sender.sizes()) == frames.DEFAULT_WINDOW
    assert sender.ended == []
    assert sender.out.pending
    assert sender.pull() == []
    assert sender.out.grow(1, 10)
    assert sender.pull()[-1] == (frames.HEADERS, frames.END_HEADERS | frames.END_STREAM, 1, b"tail")
    assert sender.ended == [1]


def test_streams_take_turns_frame_by_frame() -> None:
    sender = Sender(1, 3)
    for stream in (1, 3):
        sender.out.answer(stream, b"", [bytes(2 * frames.DEFAULT_FRAME)], b"t")

    assert [stream for stream, _ in sender.sizes()] == [1, 3, 1, 3]


def test_a_closed_stream_window_does_not_hold_back_others() -> None:
    sender = Sender(1, 3)
    sender.out.obey([(frames.INITIAL_WINDOW, 0)])
    sender.out.answer(1, b"", [b"x"], b"t")
    sender.out.answer(3, b"", [b"y"], b"t")
    assert sender.out.grow(3, 1)

    assert sender.sizes() == [(3, 1)]
    assert sender.ended == [3]


def test_what_waits_for_a_forgotten_stream_does_not_leave() -> None:
    sender = Sender(1)
    sender.out.answer(1, b"", [bytes(frames.DEFAULT_WINDOW + 1)], b"t")
    sender.out.forget(1)

    assert sender.pull() == []
    assert sender.out.grow(1, 1), "a window of a stream that is over does no harm"


def test_a_smaller_initial_window_makes_windows_negative() -> None:
    sender = Sender(1)
    sender.out.answer(1, b"", [b"x" * 100], b"t")
    sender.pull()
    sender.out.open(3)
    sender.out.obey([(frames.INITIAL_WINDOW, 10)])
    sender.out.answer(3, b"", [b"y" * 50], b"t")
    assert sender.sizes() == [(3, 10)]
    sender.out.obey([(frames.INITIAL_WINDOW, 0)])
    assert sender.out.grow(3, 30)
    assert sender.sizes() == [(3, 20)]


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        (frames.INITIAL_WINDOW, frames.MAX_WINDOW + 1, Code.FLOW_CONTROL_ERROR),
        (frames.FRAME_SIZE, frames.DEFAULT_FRAME - 1, Code.PROTOCOL_ERROR),
        (frames.FRAME_SIZE, frames.MAX_FRAME + 1, Code.PROTOCOL_ERROR),
        (frames.ENABLE_PUSH, 2, Code.PROTOCOL_ERROR),
    ],
)
def test_settings_that_there_are_not(name: int, value: int, code: Code) -> None:
    with pytest.raises(ConnectionFault) as caught:
        Sender(1).out.obey([(name, value)])
    assert caught.value.code == code


def test_windows_beyond_the_largest_are_told() -> None:
    sender = Sender(1)
    assert not sender.out.grow(0, frames.MAX_WINDOW)
    assert not sender.out.grow(1, frames.MAX_WINDOW)
    other = Sender(1)
    assert other.out.grow(1, 1)
    with pytest.raises(ConnectionFault):
        other.out.obey([(frames.INITIAL_WINDOW, frames.MAX_WINDOW)])


@given(
    answers=st.lists(st.lists(st.integers(0, 40_000), max_size=3), min_size=1, max_size=4),
    budgets=st.lists(st.integers(500, 50_000), min_size=1, max_size=5),
)
def test_every_answer_leaves_whole_within_windows_and_budgets(answers: list[list[int]], budgets: list[int]) -> None:
    streams = [2 * number + 1 for number in range(len(answers))]
    sender = Sender(*streams)
    sent: dict[int, bytes] = dict.fromkeys(streams, b"")
    for stream, sizes in zip(streams, answers, strict=True):
        sender.out.answer(stream, b"", [bytes([stream]) * size for size in sizes], b"t")
    turn = 0
    while sender.out.pending:
        budget = budgets[turn % len(budgets)]
        turn += 1
        for kind, _, stream, payload in sender.pull(budget):
            if kind == frames.DATA:
                assert len(payload) <= sender.out.frame_size
                sent[stream] += payload
        assert sender.out.window >= 0
        for stream in streams:
            assert sender.out.grow(stream, 1000)
        assert sender.out.grow(0, 5000)
        assert turn < 10_000
    assert sorted(sender.ended) == streams
    assert sent == {s: bytes([s]) * sum(sizes) for s, sizes in zip(streams, answers, strict=True)}


def test_a_window_that_opens_by_settings_lets_all_streams_go_on() -> None:
    sender = Sender(1, 3)
    sender.out.obey([(frames.INITIAL_WINDOW, 0)])
    for stream in (1, 3):
        sender.out.answer(stream, b"", [b"abc"], b"tail")
    assert sender.sizes() == []

    sender.out.obey([(frames.INITIAL_WINDOW, 2)])

    assert sender.sizes() == [(1, 2), (3, 2)]
    assert sender.out.grow(3, 1)
    assert sender.sizes() == [(3, 1)]
    assert sender.ended == [3]
    assert sender.out.pending


def test_of_a_setting_that_comes_several_times_the_last_counts() -> None:
    sender = Sender(1)
    assert sender.out.obey([(frames.INITIAL_WINDOW, size) for size in (0, 9, 4)]) == 0
    sender.out.answer(1, b"", [b"abcdef"], b"tail")
    assert sender.sizes() == [(1, 4)]


def test_more_settings_than_there_are() -> None:
    with pytest.raises(ConnectionFault, match="65 settings in one frame") as caught:
        Sender(1).out.obey([(frames.INITIAL_WINDOW, 5)] * 65)
    assert caught.value.code == Code.ENHANCE_YOUR_CALM


def test_settings_that_have_us_look_at_streams_say_what_they_cost() -> None:
    sender = Sender(*range(1, 2001, 2))
    assert sender.out.obey([(frames.INITIAL_WINDOW, 1)]) == 0
    for stream in range(1, 2001, 2):
        sender.out.answer(stream, b"", [b"abc"], b"tail")
    sender.pull()
    assert sender.out.obey([(frames.INITIAL_WINDOW, 0)]) == 0
    assert sender.out.obey([(frames.INITIAL_WINDOW, 2)]) == 1000 // 64


def test_a_window_that_a_stream_had_does_not_count_once_it_is_over() -> None:
    sender = Sender(1, 3)
    assert sender.out.grow(1, frames.MAX_WINDOW - frames.DEFAULT_WINDOW)
    sender.out.forget(1)
    sender.out.obey([(frames.INITIAL_WINDOW, frames.DEFAULT_WINDOW + 1)])
    sender.out.grow(3, frames.MAX_WINDOW - frames.DEFAULT_WINDOW - 1)
    with pytest.raises(ConnectionFault, match="a window of"):
        sender.out.obey([(frames.INITIAL_WINDOW, frames.DEFAULT_WINDOW + 2)])


def test_what_the_peer_has_not_taken_is_counted_until_it_leaves_or_is_forgotten() -> None:
    sender = Sender(1, 3, 5)
    size = frames.DEFAULT_WINDOW + 10
    sender.out.answer(1, b"", [b"x" * 100], b"t")
    sender.out.answer(3, b"", [bytes(size)], b"t")
    sender.out.answer(5, b"", [bytes(50)], b"t")
    assert sender.out.unread.bytes == sender.out.own_unread == 100 + size + 50
    sender.pull()
    assert sender.out.unread.bytes == 160, "the connection's window is closed"
    sender.out.forget(3)
    assert sender.out.unread.bytes == 0


def test_a_connection_that_is_lost_counts_no_more() -> None:
    sender = Sender(1)
    sender.out.answer(1, b"", [bytes(100)], b"t")
    sender.out.lost()
    assert sender.out.unread.bytes == sender.out.own_unread == 0


def test_headers_ahead_of_an_answer_leave_and_keep_the_stream_open() -> None:
    sender = Sender(1)
    sender.out.headers(1, b"head")

    assert sender.pull() == [(frames.HEADERS, frames.END_HEADERS, 1, b"head")]
    assert sender.ended == []


def test_trailers_alone_leave_and_end_the_stream() -> None:
    sender = Sender(1)
    sender.out.end(1, b"tail")

    assert sender.pull() == [(frames.HEADERS, frames.END_HEADERS | frames.END_STREAM, 1, b"tail")]
    assert sender.ended == [1]


def test_the_largest_settings_that_there_are() -> None:
    sender = Sender(1)
    sender.out.obey([(frames.INITIAL_WINDOW, frames.MAX_WINDOW), (frames.FRAME_SIZE, frames.MAX_FRAME)])
    assert (sender.out.initial_window, sender.out.frame_size) == (frames.MAX_WINDOW, frames.MAX_FRAME)
    sender.out.obey([(frames.FRAME_SIZE, frames.DEFAULT_FRAME), (frames.ENABLE_PUSH, 1)])
    assert sender.out.frame_size == frames.DEFAULT_FRAME


# -- edges -------------------------------------------------------------------------------------------------------------


def room(*streams: int, window: int = 1 << 20) -> Sender:
    """With frames of 32 KiB and windows for them."""
    sender = Sender(*streams)
    sender.out.obey([(frames.FRAME_SIZE, 32 << 10), (frames.INITIAL_WINDOW, window)])
    assert sender.out.grow(0, 1 << 20)
    return sender


@pytest.mark.parametrize(("size", "pieces"), [(0, 1), ((16 << 10), 1), ((16 << 10) + 1, 3)])
def test_a_small_answer_is_one_piece_and_a_large_one_is_not_copied(size: int, pieces: int) -> None:
    sender = room(1)
    sender.out.pull(1)
    data = bytes(size)
    sender.out.answer(1, b"head", [data], b"tail")
    found = sender.out.pull(1)
    assert len(found) == pieces
    assert split(b"".join(found)) == [
        (frames.HEADERS, frames.END_HEADERS, 1, b"head"),
        (frames.DATA, 0, 1, data),
        (frames.HEADERS, frames.END_HEADERS | frames.END_STREAM, 1, b"tail"),
    ]


@pytest.mark.parametrize(
    ("stream_window", "size", "head", "tail", "at_once"),
    [
        (1 << 20, 32 << 10, 1, 1, True),
        (1 << 20, (32 << 10) + 1, 1, 1, False),
        (100, 100, 1, 1, True),
        (100, 101, 1, 1, False),
        (1 << 20, 5, 32 << 10, 1, True),
        (1 << 20, 5, (32 << 10) + 1, 1, False),
        (1 << 20, 5, 1, 32 << 10, True),
        (1 << 20, 5, 1, (32 << 10) + 1, False),
    ],
)
def test_what_fits_frame_and_windows_is_on_its_way_at_once(
    stream_window: int, size: int, head: int, tail: int, at_once: bool
) -> None:
    sender = room(1, window=stream_window)
    sender.out.answer(1, bytes(head), [bytes(size)], bytes(tail))
    assert (sender.ended == [1]) is at_once
    assert sender.out.own_unread == sender.out.unread.bytes == size
    sender.out.grow(1, 1)
    found = sender.pull()
    blocks = [frame for frame in found if frame[0] in (frames.HEADERS, frames.CONTINUATION)]
    assert b"".join(frame[3] for frame in blocks) == bytes(head + tail)
    assert sum(len(frame[3]) for frame in found if frame[0] == frames.DATA) == size
    assert sender.ended == [1]
    assert sender.out.unread.bytes == sender.out.own_unread == 0


@pytest.mark.parametrize(("size", "at_once"), [(frames.DEFAULT_WINDOW - 5, True), (frames.DEFAULT_WINDOW - 4, False)])
def test_what_fits_the_connections_window_is_on_its_way_at_once(size: int, at_once: bool) -> None:
    sender = Sender(1, 3)
    sender.out.obey([(frames.FRAME_SIZE, 1 << 20), (frames.INITIAL_WINDOW, 1 << 20)])
    sender.out.answer(1, b"", [b"12345"], b"t")
    sender.out.answer(3, b"", [bytes(size)], b"t")
    assert (sender.ended == [1, 3]) is at_once
    sender.pull()
    assert sender.out.window == 0
    assert sender.out.pending is not at_once


def test_an_answer_does_not_overtake_one_that_waits_or_is_stuck() -> None:
    sender = Sender(1, 3, 5)
    sender.out.obey([(frames.INITIAL_WINDOW, 3)])
    sender.out.answer(1, b"", [b"12345"], b"t")
    sender.out.answer(3, b"", [b"abc"], b"t")
    assert sender.ended == [], "the first is in the way"
    assert sender.sizes() == [(1, 3), (3, 3)]
    assert sender.ended == [3]
    sender.out.answer(5, b"h", [], b"t")
    assert sender.ended == [3], "the first is stuck"
    assert sender.pull() == [
        (frames.HEADERS, frames.END_HEADERS, 5, b"h"),
        (frames.HEADERS, frames.END_HEADERS | frames.END_STREAM, 5, b"t"),
    ]
    assert sender.ended == [3, 5]
    assert sender.out.pending
    assert sender.out.unread.bytes == sender.out.own_unread == 2


def test_nothing_leaves_for_a_stream_that_is_over() -> None:
    sender = Sender(1)
    sender.out.forget(1)
    sender.out.forget(3)
    sender.out.headers(1, b"h")
    sender.out.end(1, b"t")
    sender.out.answer(1, b"h", [b"x"], b"t")
    assert sender.pull() == []
    assert (sender.ended, sender.out.unread.bytes, sender.out.window) == ([], 0, frames.DEFAULT_WINDOW)
    assert sender.out.grow(1, frames.MAX_WINDOW)


def test_frames_of_control_are_counted_until_they_leave_and_in_all() -> None:
    sender = Sender(1)
    sender.out.control(b"x" * 9)
    sender.out.control(b"y" * 8)
    assert (sender.out.control_bytes, sender.out.all_control_bytes, sender.out.pending) == (17, 17, True)
    assert b"".join(sender.out.pull(0)) == b"x" * 9 + b"y" * 8
    assert (sender.out.control_bytes, sender.out.all_control_bytes, sender.out.pending) == (0, 17, False)
    sender.out.control(b"z")
    assert (sender.out.control_bytes, sender.out.all_control_bytes) == (1, 18)


def test_a_pull_takes_its_budget_with_the_trailers_and_goes_on_with_the_next() -> None:
    sender = Sender(1, 3)
    sender.out.obey([(frames.INITIAL_WINDOW, 0)])
    for stream in (1, 3):
        sender.out.answer(stream, b"", [b"12345"], b"tail")
    sender.pull()
    sender.out.obey([(frames.INITIAL_WINDOW, 100)])
    assert sender.sizes(9) == [(1, 5)], "five bytes and four of the trailers"
    assert sender.ended == [1]
    assert sender.sizes(0) == []
    assert sender.sizes(1) == [(3, 1)]
    assert sender.sizes(3) == [(3, 3)]
    assert sender.sizes(10) == [(3, 1)]
    assert sender.ended == [1, 3]


def test_a_pull_with_a_byte_of_its_budget_left_goes_on() -> None:
    sender = Sender(1, 3)
    sender.out.obey([(frames.INITIAL_WINDOW, 0)])
    for stream in (1, 3):
        sender.out.answer(stream, b"", [b"12345"], b"tail")
    sender.pull()
    sender.out.obey([(frames.INITIAL_WINDOW, 100)])
    assert sender.sizes(10) == [(1, 5), (3, 1)]


@pytest.mark.parametrize(("stream", "more", "fits"), [(0, 0, True), (0, 1, False), (1, 0, True), (1, 1, False)])
def test_windows_as_large_as_there_are(stream: int, more: int, fits: bool) -> None:
    assert Sender(1).out.grow(stream, frames.MAX_WINDOW - frames.DEFAULT_WINDOW + more) is fits


@pytest.mark.parametrize(("more", "fits"), [(0, True), (1, False)])
def test_a_setting_that_makes_a_window_as_large_as_there_is(more: int, fits: bool) -> None:
    sender = Sender(1)
    assert sender.out.grow(1, 100)
    settings = [(frames.INITIAL_WINDOW, frames.MAX_WINDOW - 100 + more)]
    if fits:
        assert sender.out.obey(settings) == 0
        assert sender.out.initial_window == frames.MAX_WINDOW - 100
    else:
        with pytest.raises(ConnectionFault, match=f"^a window of {frames.MAX_WINDOW + 1}$") as caught:
            sender.out.obey(settings)
        assert caught.value.code == Code.FLOW_CONTROL_ERROR


def test_a_window_that_opens_by_less_than_it_owes_stays_closed() -> None:
    sender = Sender(1)
    sender.out.obey([(frames.INITIAL_WINDOW, 10)])
    sender.out.answer(1, b"", [b"x" * 30], b"t")
    assert sender.sizes() == [(1, 10)]
    sender.out.obey([(frames.INITIAL_WINDOW, 0)])
    assert sender.out.grow(1, 10)
    assert sender.out._stuck
    assert sender.sizes() == []
    assert sender.out.grow(1, 1)
    assert not sender.out._stuck
    assert sender.sizes() == [(1, 1)]


def test_the_same_window_again_costs_nothing_and_opens_nothing() -> None:
    sender = Sender(*range(1, 301, 2))
    sender.out.obey([(frames.INITIAL_WINDOW, 0)])
    for stream in range(1, 301, 2):
        sender.out.answer(stream, b"", [b"abc"], b"t")
    sender.pull()
    assert sender.out.obey([(frames.INITIAL_WINDOW, 0)]) == 0
    assert len(sender.out._stuck) == 150
    assert sender.out.obey([(frames.INITIAL_WINDOW, 1)]) == 150 // 64
    assert not sender.out._stuck


def test_sixty_four_settings_are_read() -> None:
    sender = Sender(1)
    sender.out.obey([(frames.INITIAL_WINDOW, 5)] * 64)
    assert sender.out.initial_window == 5
    sender.out.obey([(0x99, 1 << 31)])
    with pytest.raises(ConnectionFault, match=r"^ENABLE_PUSH is 2$"):
        sender.out.obey([(frames.ENABLE_PUSH, 2)])
    with pytest.raises(ConnectionFault, match=f"^a frame size of {frames.DEFAULT_FRAME - 1}$"):
        sender.out.obey([(frames.FRAME_SIZE, frames.DEFAULT_FRAME - 1)])
    with pytest.raises(ConnectionFault, match=f"^a window of {frames.MAX_WINDOW + 1}$"):
        sender.out.obey([(frames.INITIAL_WINDOW, frames.MAX_WINDOW + 1)])
    assert sender.out.initial_window == 5


def test_connections_count_what_is_unread_together() -> None:
    one, other = Sender(1, 3), Sender(1)
    other.out.unread = one.out.unread
    one.out.answer(1, b"", [b"abc"], b"t")
    one.out.answer(3, b"", [bytes(frames.DEFAULT_WINDOW + 1)], b"t")
    other.out.answer(1, b"", [b"abcd"], b"t")
    assert one.out.unread.bytes == 3 + frames.DEFAULT_WINDOW + 1 + 4
    assert (one.out.own_unread, other.out.own_unread) == (3 + frames.DEFAULT_WINDOW + 1, 4)
    one.out.lost()
    assert (one.out.unread.bytes, one.out.own_unread, other.out.own_unread) == (4, 0, 4)
