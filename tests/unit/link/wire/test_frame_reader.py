"""What a reader of frames counts, refuses and gives up, and where it has the next bytes go; that what goes in comes out
is in test_frames.py.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tenfold_core import errors
from tenfold_core.traffic import Traffic
from tenfold_link.link_settings import DEFAULT_LINK_SETTINGS
from tenfold_link.protocol_error import ProtocolError
from tenfold_link.wire.frames import ROW, SMALL, Frame, FrameKind, FrameReader, pack, unpack_ids
from tenfold_link.wire.inflow import Inflow
from tenfold_link.wire.spread import LEAST, SPREAD, Gathering

if TYPE_CHECKING:
    from collections.abc import Callable

KB = 1 << 10
#: What the reader takes at once at most, while no header is longer.
SCRATCH = 64 * KB


class Noted(Inflow):
    """An Inflow that notes each number."""

    def __init__(self, limit: int) -> None:
        super().__init__("somebody", limit, "SOME_LIMIT")
        self.asked: list[int] = []

    def take(self, count: int) -> errors.OpError | None:
        self.asked.append(count)
        return super().take(count)


def reader_of(
    inflow: Inflow | None = None, allocate: Callable[[int], np.ndarray] | None = None, **limits: int
) -> FrameReader:
    settings = dataclasses.replace(DEFAULT_LINK_SETTINGS, **limits)  # type: ignore[arg-type]
    made = FrameReader(settings, lambda block, offset, size: np.full(size, block, np.uint8), allocate)
    made.inflow = inflow
    return made


def frame(*sizes: int, kind: int = FrameKind.REQUEST, call: int = 1, header: bytes = b"") -> bytes:
    """A frame with buffers of these sizes, each filled with its number."""
    rows = [ROW.pack(size, 0, 0) for size in sizes]
    inline = b"".join(bytes([number]) * size for number, size in enumerate(sizes))
    return pack(kind, 5, call, header, rows) + inline


def feed(reader: FrameReader, data: bytes, most: int = 1 << 30) -> list[Frame]:
    """`most` bytes at a time, and no more than the reader has room for."""
    frames: list[Frame] = []
    rest = memoryview(data)
    while rest:
        space = reader.buffer()
        assert len(space) > 0
        count = min(len(rest), len(space), most)
        space[:count] = rest[:count]
        rest = rest[count:]
        frames += reader.received(count)
    return frames


def contents(found: Frame) -> list[bytes]:
    return [bytes(buffer) for buffer in found.buffers]


# -- what is counted ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [1, 777, 1 << 30])
def test_a_frame_costs_its_inline_buffers_once_and_before_they_come(most: int) -> None:
    inflow = Noted(100_000)
    reader = reader_of(inflow)
    data = frame(10, 30_000, 5, header=b"text")
    (found,) = feed(reader, data, most)
    assert found.cost == 30_015
    assert (inflow.asked, inflow.taken) == ([30_015], 30_015)
    assert contents(found) == [b"\0" * 10, b"\1" * 30_000, b"\2" * 5]
    # the next one is counted by itself
    (found,) = feed(reader, frame(7), most)
    assert (found.cost, inflow.taken) == (7, 30_022)


def test_a_frame_without_inline_buffers_costs_nothing() -> None:
    inflow = Noted(0)
    reader = reader_of(inflow)
    shared = pack(FrameKind.REQUEST, 1, 1, b"header", [ROW.pack(1 << 20, 9, 0)])
    first, second = feed(reader, shared + frame(header=b"another"))
    assert (first.cost, second.cost, inflow.asked) == (0, 0, [])
    assert len(contents(first)[0]) == 1 << 20


def test_without_an_inflow_nothing_is_counted() -> None:
    assert [found.cost for found in feed(reader_of(), frame(5) + frame(header=bytes(2 * SCRATCH)))] == [0, 0]


@pytest.mark.parametrize("over", [0, 1])
def test_a_header_beyond_the_scratch_area_is_counted_before_it_comes(over: int) -> None:
    inflow = Noted(1 << 20)
    reader = reader_of(inflow)
    plain = len(frame(11))
    data = frame(11, header=bytes(SCRATCH - plain + 11 + over))
    head, rest = data[:1000], data[1000:]
    assert feed(reader, head) == []
    assert inflow.asked == [SCRATCH + 1] * over
    (found,) = feed(reader, rest, 10_000)
    assert inflow.asked == [SCRATCH + 1] * over + [11]
    assert found.cost == sum(inflow.asked)
    assert len(found.header) == SCRATCH - plain + 11 + over


def test_what_is_at_the_limit_has_room_and_what_is_beyond_has_not() -> None:
    inflow = Noted(50)
    reader = reader_of(inflow)
    fits, too_much, after = feed(reader, frame(50, call=1) + frame(1, call=2) + frame(call=3, header=b"x"))
    assert (fits.cost, after.cost) == (50, 0)
    assert isinstance(too_much.cost, errors.ResourceExhaustedError)
    assert (too_much.call, too_much.method, too_much.buffers, too_much.header) == (2, 5, [], b"")
    assert (after.call, after.header) == (3, b"x")
    assert inflow.taken == 50


@pytest.mark.parametrize("most", [1, 23, 40_000, 1 << 30])
def test_what_there_is_no_room_for_is_dropped_as_it_comes(most: int) -> None:
    inflow = Noted(1000)
    allocated: list[int] = []

    def allocate(size: int) -> np.ndarray:
        allocated.append(size)
        return np.empty(size, np.uint8)

    reader = reader_of(inflow, allocate)
    wide = frame(30_000, 20, 100_000, call=1, header=b"refused")
    first, second = feed(reader, wide + frame(100, call=2), most)
    assert (first.call, first.buffers, first.header) == (1, [], b"")
    assert isinstance(first.cost, errors.ResourceExhaustedError)
    assert "130020 more bytes" in first.cost.message
    assert (second.call, contents(second), second.cost) == (2, [b"\0" * 100], 100)
    assert allocated == []
    assert inflow.taken == 100


def test_a_long_header_of_what_is_refused_is_given_back() -> None:
    inflow = Noted(SCRATCH + 5000)
    reader = reader_of(inflow)
    first, second = feed(reader, frame(9000, header=bytes(SCRATCH)) + frame(10, call=2), 5000)
    assert isinstance(first.cost, errors.ResourceExhaustedError)
    assert len(inflow.asked) == 3
    assert (second.cost, inflow.taken) == (10, 10)


@pytest.mark.parametrize("kind", [FrameKind.NOTIFY, FrameKind.REPLY, FrameKind.ERROR])
def test_only_a_request_can_be_refused_alone(kind: FrameKind) -> None:
    with pytest.raises(ProtocolError, match=r"what there is no room for: .*SOME_LIMIT"):
        feed(reader_of(Noted(10)), frame(11, kind=kind))
    assert len(feed(reader_of(Noted(10)), frame(10, kind=kind))) == 1


def test_a_long_header_without_room_ends_the_link() -> None:
    with pytest.raises(ProtocolError, match="what there is no room for"):
        feed(reader_of(Noted(SCRATCH)), frame(header=bytes(SCRATCH))[:100])


def test_no_memory_for_a_buffer_refuses_the_request_alone() -> None:
    def allocate(size: int) -> np.ndarray:
        if size > 50_000:
            raise MemoryError
        return np.empty(size, np.uint8)

    inflow = Noted(1 << 20)
    reader = reader_of(inflow, allocate)
    first, second = feed(reader, frame(20_000, 60_000, 30, call=1) + frame(40_000, call=2), 9000)
    assert isinstance(first.cost, errors.ResourceExhaustedError)
    assert "no memory for a buffer of 60000 bytes" in first.cost.message
    assert first.buffers == []
    assert (second.call, contents(second)) == (2, [b"\0" * 40_000])
    assert inflow.taken == 40_000
    with pytest.raises(MemoryError):
        feed(reader_of(Noted(1 << 20), allocate), frame(60_000, kind=FrameKind.REPLY))
    # nothing counts here, and it is refused as well
    first, second = feed(reader_of(None, allocate), frame(60_000) + frame(1, call=2))
    assert isinstance(first.cost, errors.ResourceExhaustedError)
    assert contents(second) == [b"\0"]


def test_traffic_is_what_came_and_what_was_lent() -> None:
    traffic = Traffic()
    reader = FrameReader(DEFAULT_LINK_SETTINGS, lambda *_: np.zeros(0, np.uint8), traffic=traffic)
    traffic.received = 3
    data = frame(100, 20_000, header=b"x") + pack(FrameKind.NOTIFY, rows=[ROW.pack(777, 1, 0), ROW.pack(1000, 2, 0)])
    feed(reader, data, 999)
    assert traffic.received == 3 + len(data) + 1777


# -- limits ------------------------------------------------------------------------------------------------------------


def test_a_frame_may_be_as_large_as_the_limit_and_have_as_many_buffers() -> None:
    limits = {"frame_bytes": 1000, "buffers_per_frame": 3}
    (found,) = feed(reader_of(**limits), frame(500, 0, 500))
    assert [len(buffer) for buffer in contents(found)] == [500, 0, 500]
    with pytest.raises(ProtocolError, match="a frame of 1001 bytes or more; 1000 are allowed"):
        feed(reader_of(**limits), frame(500, 501))
    with pytest.raises(ProtocolError, match="a frame of 4 buffers; 3 are allowed"):
        feed(reader_of(**limits), frame(0, 0, 0, 0))
    # what lies in an arena is none of it
    rows = [ROW.pack(900, 1, 0), ROW.pack(1000, 0, 0), ROW.pack(900, 2, 0)]
    (found,) = feed(reader_of(**limits), pack(FrameKind.NOTIFY, rows=rows) + bytes(1000))
    assert [bytes(buffer[:1]) for buffer in found.buffers] == [b"\1", b"\0", b"\2"]


@pytest.mark.parametrize("data", [b"\x54\x4d" + frame()[2:], frame()[:3] + b"\1" + frame()[4:]])
def test_a_prefix_that_is_wrong_in_one_place_is_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError, match="does not start where it should"):
        feed(reader_of(), data)


@pytest.mark.parametrize("size", [1, 7, 9, 15])
def test_a_list_of_blocks_has_whole_numbers(size: int) -> None:
    with pytest.raises(ProtocolError, match=f"a list of blocks of {size} bytes"):
        unpack_ids(bytes(size))
    assert unpack_ids(b"") == ()


# -- where bytes go ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "direct"), [(16 * KB, False), (16 * KB + 1, True)])
def test_a_buffer_beyond_the_limit_is_received_where_it_stays(size: int, direct: bool) -> None:
    asked: list[int] = []

    def allocate(count: int) -> np.ndarray:
        asked.append(count)
        return np.empty(count, np.uint8)

    reader = reader_of(allocate=allocate)
    data = frame(size, 3)
    assert feed(reader, data[: 72 + 10]) == []
    assert asked == [size] * direct
    assert reader.awaited == (size - 10 if direct else 0)
    assert not direct or len(reader.buffer()) == size - 10
    assert feed(reader, data[82:1000]) == []
    assert reader.awaited == (size - 10 - 918 if direct else 0)
    (found,) = feed(reader, data[1000:])
    assert contents(found) == [b"\0" * size, b"\1" * 3]
    assert reader.awaited == 0


def test_a_buffer_that_is_all_there_awaits_nothing() -> None:
    (found,) = feed(reader_of(), frame(SMALL + 1))
    assert contents(found) == [b"\0" * (SMALL + 1)]


@pytest.mark.parametrize("most", [SCRATCH, 5000, 999])
def test_many_frames_in_a_row_move_to_the_front_of_the_area(most: int) -> None:
    reader = reader_of()
    data = b"".join(frame(size, 3, call=size, header=bytes(size)) for size in range(0, 4000, 13))
    found = feed(reader, data, most)
    assert [one.call for one in found] == list(range(0, 4000, 13))
    assert all(contents(one) == [b"\0" * one.call, b"\1" * 3] for one in found)
    assert len(reader.buffer()) == SCRATCH


def test_small_frames_and_such_as_fill_it_leave_the_area_in_place() -> None:
    reader = reader_of()
    area = np.frombuffer(reader.buffer(), np.uint8)
    (found,) = feed(reader, frame(header=bytes(SCRATCH - 24)))
    assert len(found.header) == SCRATCH - 24
    for _ in range(3):
        feed(reader, frame(10) + frame(SMALL, SMALL + 1) + frame(header=bytes(SCRATCH - 24)), 30_000)
        assert np.shares_memory(np.frombuffer(reader.buffer(), np.uint8), area)
        assert len(reader.buffer()) == SCRATCH


@pytest.mark.parametrize("by", [-1, 0, 1])
@pytest.mark.parametrize("rest", ["header", "buffer"])
def test_there_is_room_for_the_rest_of_what_has_begun(rest: str, by: int) -> None:
    """It is moved to the front of the area where it does not fit behind what came before, and else stays."""
    reader = reader_of()
    sizes, header = ((10_000,), 0) if rest == "buffer" else ((), 10_000)
    last = frame(*sizes, header=bytes(header))
    before = SCRATCH - len(last) + by
    first = frame(header=bytes(before - 24))
    assert len(feed(reader, first + last[:1000])) == 1
    left = SCRATCH - before - 1000
    assert len(reader.buffer()) == (left if by <= 0 else SCRATCH - (1000 if rest == "header" else 1000 - 48))
    (found,) = feed(reader, last[1000:])
    assert (len(found.header), [len(one) for one in contents(found)]) == (header, list(sizes))


@pytest.mark.parametrize("there", [1, 10, 23, 24])
def test_an_area_that_ends_within_a_prefix_has_room_for_the_rest(there: int) -> None:
    reader = reader_of()
    first, second = frame(header=bytes(SCRATCH - there - 24)), frame(5, call=2)
    assert [one.call for one in feed(reader, first + second[:there])] == [1]
    assert len(reader.buffer()) == SCRATCH - there
    assert [one.call for one in feed(reader, second[there:])] == [2]


def test_a_header_of_the_whole_area_after_one_byte_moves_to_its_front() -> None:
    reader = reader_of()
    first, second = frame(1), frame(call=2, header=bytes(SCRATCH - 24))
    assert feed(reader, first[:-1]) == []
    assert [one.call for one in feed(reader, first[-1:] + second)] == [1, 2]


def test_after_a_long_header_the_area_is_small_again() -> None:
    reader = reader_of()
    data = frame(header=bytes(3 * SCRATCH))
    assert feed(reader, data[:-1]) == []
    assert len(reader.buffer()) == 1, "as much as the header needs"
    assert len(feed(reader, data[-1:])) == 1
    assert len(reader.buffer()) == SCRATCH
    # what follows at once is not lost
    both = feed(reader, data + frame(5, call=2))
    assert [one.call for one in both] == [1, 2]
    assert len(reader.buffer()) == SCRATCH


def test_a_frame_under_way_keeps_a_large_area_until_it_is_complete() -> None:
    reader = reader_of()
    data = frame(SMALL, header=bytes(2 * SCRATCH))
    assert feed(reader, data[:-SMALL]) == []
    (found,) = feed(reader, data[-SMALL:])
    assert (len(found.header), contents(found)) == (2 * SCRATCH, [b"\0" * SMALL])
    assert len(reader.buffer()) == SCRATCH


def test_what_was_dropped_is_not_awaited_and_a_closed_reader_opens_nothing() -> None:
    reader = reader_of()
    assert feed(reader, frame(70_000, 3)[:100]) == []
    assert reader.awaited == 70_000 - 28
    reader.close()
    reader.drop()
    assert reader.awaited == 0
    assert len(reader.buffer()) == SCRATCH
    (found,) = feed(reader, frame(SMALL + 5, call=2))
    assert contents(found) == [b"\0" * (SMALL + 5)]
    with pytest.raises(ProtocolError, match="a block after the end"):
        feed(reader, pack(FrameKind.REQUEST, rows=[ROW.pack(1, 1, 0)]))


def test_a_frame_is_told_by_its_numbers() -> None:
    data = pack(FrameKind.ERROR, 8, (1 << 63) + 5, b"text", [ROW.pack(2, 0, 0)]) + b"ab"
    (found,) = feed(reader_of(), data)
    expected: list[Any] = [FrameKind.ERROR, 8, (1 << 63) + 5, b"text", [b"ab"]]
    assert [found.kind, found.method, found.call, found.header, contents(found)] == expected
    assert data[:2] == b"TL"


# -- buffers over further connections ----------------------------------------------------------------------------------


def spread_frame(*sizes: int, offset: int = 0) -> bytes:
    """A frame whose large buffers are spread, and do not follow it."""
    rows = [ROW.pack(size, SPREAD if size >= LEAST else 0, offset if size >= LEAST else 0) for size in sizes]
    inline = b"".join(bytes([number]) * size for number, size in enumerate(sizes) if size < LEAST)
    return pack(FrameKind.REQUEST, 5, 1, b"h", rows) + inline


def gathering_reader(**options: Any) -> tuple[FrameReader, list[memoryview]]:
    gathered: list[memoryview] = []

    def gather(memory: memoryview) -> Gathering:
        gathered.append(memory)
        return Gathering(len(gathered) - 1, memory)

    return FrameReader(DEFAULT_LINK_SETTINGS, _no_block, gather=gather, **options), gathered


def _no_block(block: int, offset: int, size: int) -> Any:
    raise ProtocolError("no arena")


def test_a_spread_buffer_is_awaited_elsewhere_and_what_follows_waits_for_it() -> None:
    reader, gathered = gathering_reader()
    data = spread_frame(3, LEAST, 20_000, LEAST + 1, 2) + frame(4)
    space = reader.buffer()
    space[: len(data)] = data
    assert reader.received(len(data)) == []
    assert (reader.spread is not None, reader.awaited, [len(each) for each in gathered]) == (True, LEAST, [LEAST])
    gathered[0][:] = b"\1" * LEAST
    assert reader.received(LEAST - 1) == []
    assert reader.received(1) == []
    assert [len(each) for each in gathered] == [LEAST, LEAST + 1]
    gathered[1][:] = b"\3" * (LEAST + 1)
    first, second = reader.received(LEAST + 1)
    assert reader.spread is None
    assert contents(first) == [
        b"\0" * 3, b"\1" * LEAST, b"\2" * 20_000, b"\3" * (LEAST + 1), b"\4" * 2,
    ]  # fmt: skip
    assert contents(second) == [b"\0" * 4]


@pytest.mark.parametrize(("size", "offset"), [(LEAST - 1, 0), (LEAST, 1)])
def test_what_is_no_spread_buffer(size: int, offset: int) -> None:
    reader, _ = gathering_reader()
    with pytest.raises(ProtocolError, match=f"a buffer of {size} bytes over further connections"):
        feed(reader, pack(FrameKind.REQUEST, 5, 1, b"", [ROW.pack(size, SPREAD, offset)]))


def test_without_further_connections_none_can_be_spread() -> None:
    with pytest.raises(ProtocolError, match="over further connections"):
        feed(reader_of(), spread_frame(LEAST))


def test_a_spread_buffer_without_memory_ends_the_link() -> None:
    def fails(size: int) -> Any:
        raise MemoryError

    for sizes in ((LEAST,), (20_000, LEAST)):
        reader, _ = gathering_reader(allocate=fails)
        with pytest.raises(MemoryError):
            feed(reader, spread_frame(*sizes))


def test_a_reader_that_is_dropped_awaits_nothing() -> None:
    reader, _ = gathering_reader()
    feed(reader, spread_frame(LEAST))
    reader.drop()
    assert (reader.spread, reader.awaited) == (None, 0)
