"""A link's frames without sockets: what goes in comes out, however it is cut up; what no peer of ours sends is refused.

pack ──► bytes ──► cut into arbitrary pieces ──► FrameReader ──► the same frames
"""

from __future__ import annotations

import dataclasses
import random
from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenfold_core import errors
from tenfold_link.link_settings import DEFAULT_LINK_SETTINGS, LinkSettings
from tenfold_link.protocol_error import ProtocolError
from tenfold_link.wire.frames import (
    MAGIC,
    PREFIX,
    ROW,
    SMALL,
    Frame,
    FrameKind,
    FrameReader,
    pack,
    pack_ids,
    pack_release,
    unpack_ids,
)
from tenfold_link.wire.packing import Packer

if TYPE_CHECKING:
    from collections.abc import Iterable

SMALL_LIMITS = dataclasses.replace(
    DEFAULT_LINK_SETTINGS, header_bytes=1 << 20, frame_bytes=4 << 20, buffers_per_frame=16
)


SIZES = [0, 1, 7, 1000, SMALL, SMALL + 1, 70_000]


def no_arena(block: int, offset: int, size: int) -> Any:
    raise ProtocolError("a shared block without an arena")


def stream(*messages: tuple[int, int, int, bytes, list[Any]]) -> bytes:
    packer = Packer(DEFAULT_LINK_SETTINGS, None)
    return b"".join(bytes(piece) for message in messages for piece in packer.pack(*message))


def feed(reader: FrameReader, data: bytes, cuts: Iterable[int]) -> list[Frame]:
    """Gives `data` to the reader as a socket would: at most as much as it has asked for, at most as the cuts allow."""
    frames: list[Frame] = []
    rest = memoryview(data)
    limits = iter(cuts)
    while rest:
        space = reader.buffer()
        assert len(space) > 0
        count = min(len(rest), len(space), next(limits, 1 << 30))
        space[:count] = rest[:count]
        rest = rest[count:]
        frames += reader.received(count)
    return frames


def plain(frame: Frame) -> tuple[int, int, int, bytes, list[bytes]]:
    return int(frame.kind), frame.method, frame.call, frame.header, [bytes(buffer) for buffer in frame.buffers]


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(
        st.tuples(st.integers(0, 300), st.lists(st.sampled_from(SIZES), max_size=5)),
        min_size=1,
        max_size=6,
    ),
    seed=st.integers(0, 1 << 30),
)
def test_frames_survive_any_cut(sizes: list[tuple[int, list[int]]], seed: int) -> None:
    dice = random.Random(seed)
    messages = [
        (FrameKind.REQUEST, number, number + 1, dice.randbytes(header), [dice.randbytes(size) for size in buffers])
        for number, (header, buffers) in enumerate(sizes)
    ]
    data = stream(*messages)
    cuts = iter(lambda: dice.choice([1, 3, 23, 24, 25, 100, 5000, 66_000]), None)

    frames = feed(FrameReader(DEFAULT_LINK_SETTINGS, no_arena), data, cuts)

    assert [plain(frame) for frame in frames] == messages


def test_one_byte_at_a_time() -> None:
    message = (FrameKind.REPLY, 0, 9, b"header", [b"", b"abc", bytes(range(256)) * 200])

    frames = feed(FrameReader(DEFAULT_LINK_SETTINGS, no_arena), stream(message), [1] * 100_000)

    assert [plain(frame) for frame in frames] == [message]


def test_a_header_larger_than_the_scratch_area() -> None:
    message = (FrameKind.NOTIFY, 3, 0, bytes(range(256)) * 2000, [b"tail"])
    reader = FrameReader(DEFAULT_LINK_SETTINGS, no_arena)

    frames = feed(reader, stream(message, message), [60_000] * 100)

    assert [plain(frame) for frame in frames] == [message, message]
    assert len(reader.buffer()) <= 64 << 10, "the large scratch area was given up"


def test_large_buffers_are_received_where_they_stay() -> None:
    allocated: list[np.ndarray] = []

    def allocate(size: int) -> np.ndarray:
        allocated.append(np.empty(size, np.uint8))
        return allocated[-1]

    reader = FrameReader(DEFAULT_LINK_SETTINGS, no_arena, allocate)
    data = stream((FrameKind.REQUEST, 1, 1, b"", [bytes(100_000)]))

    first = feed(reader, data[:1000], [])
    space = reader.buffer()

    assert first == []
    assert np.shares_memory(np.frombuffer(space, np.uint8), allocated[0])


def test_received_buffers_are_writable_and_apart() -> None:
    data = stream((FrameKind.REQUEST, 1, 1, b"", [b"1234", bytes(20_000)]))

    frames = feed(FrameReader(DEFAULT_LINK_SETTINGS, no_arena), data, [])

    small, large = (np.frombuffer(buffer, np.uint8) for buffer in frames[0].buffers)

    small[0] = 0
    large[0] = 1
    assert small[0] == 0


# -- what is refused -------------------------------------------------------------------------------------------------


def prefix(kind: int = FrameKind.REQUEST, header: int = 0, rows: int = 0, magic: int = MAGIC, zero: int = 0) -> bytes:
    return PREFIX.pack(magic, kind, zero, 1, header, rows, 1)


HOSTILE = [
    (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "does not start where it should"),
    (prefix(zero=1), "does not start where it should"),
    (prefix(kind=0), "unknown kind 0"),
    (prefix(kind=200), "unknown kind 200"),
    (prefix(header=0xFFFF_FFFF), "a header of 4294967295 bytes"),
    (prefix(header=(1 << 20) + 1), "a header of 1048577 bytes"),
    (prefix(rows=0xFFFF_FFFF), "a frame of 4294967295 buffers"),
    (prefix(rows=17), "a frame of 17 buffers"),
    (prefix(rows=1) + ROW.pack((1 << 64) - 1, 0, 0), "a frame of 18446744073709551615 bytes"),
    (prefix(rows=2) + ROW.pack(3 << 20, 0, 0) + ROW.pack(2 << 20, 0, 0), "a frame of 5242880 bytes"),
    (prefix(rows=1) + ROW.pack(100, 7, 0), "without an arena"),
]


@pytest.mark.parametrize(("data", "says"), HOSTILE)
def test_hostile_frames_are_refused_before_anything_is_allocated(data: bytes, says: str) -> None:
    def allocate(size: int) -> np.ndarray:
        raise AssertionError(f"{size} bytes allocated for a lie")

    reader = FrameReader(SMALL_LIMITS, no_arena, allocate)

    with pytest.raises(ProtocolError, match=says):
        feed(reader, data, [])


@settings(max_examples=200, deadline=None)
@given(data=st.binary(max_size=400), start=st.sampled_from([b"", prefix(), prefix(rows=3), prefix(header=40)]))
def test_noise_is_refused_or_waited_for(data: bytes, start: bytes) -> None:
    reader = FrameReader(SMALL_LIMITS, no_arena)

    try:
        feed(reader, start + data, [])
    except ProtocolError:
        return
    assert len(reader.buffer()) <= (4 << 20)


def test_lists_of_blocks() -> None:
    assert unpack_ids(pack_ids([1, 1 << 60, 3])) == (1, 1 << 60, 3)
    with pytest.raises(ProtocolError, match="9 bytes"):
        unpack_ids(b"123456789")


# -- what is not even sent -------------------------------------------------------------------------------------------


def test_what_the_peer_would_refuse_costs_the_call_only() -> None:
    packer = Packer(SMALL_LIMITS, None)

    with pytest.raises(errors.ResourceExhaustedError, match="header is 1048577"):
        packer.pack(FrameKind.REQUEST, header=bytes((1 << 20) + 1))
    with pytest.raises(errors.ResourceExhaustedError, match="header is 1048577"):
        packer.pack(FrameKind.REQUEST, header=bytes((1 << 20) + 1), buffers=[b""])
    with pytest.raises(errors.ResourceExhaustedError, match="number of buffers is 17"):
        packer.pack(FrameKind.REQUEST, buffers=[b""] * 17)
    with pytest.raises(errors.ResourceExhaustedError, match="size of a frame is 4194305"):
        packer.pack(FrameKind.REQUEST, buffers=[bytes(4 << 20), b"1"])
    with pytest.raises(errors.InvalidArgumentError, match="array of objects"):
        packer.pack(FrameKind.REQUEST, buffers=[np.array([b"text"], dtype=object)])


@pytest.mark.parametrize(
    "value",
    [
        np.float32(3).reshape(()),
        np.zeros((0, 3), np.float64),
        np.arange(12, dtype=np.complex64).reshape(3, 4),
        np.arange(10_000, dtype=np.float16),
        np.arange(40_000, dtype=np.int64).reshape(200, 200)[::2, ::3],
        np.array(["2020-01-01"] * 3000, dtype="datetime64[D]"),
    ],
    ids=lambda value: f"{value.dtype}{list(value.shape)}",
)
def test_every_plain_array_travels(value: np.ndarray) -> None:
    pieces = Packer(DEFAULT_LINK_SETTINGS, None).pack(FrameKind.REQUEST, buffers=[value])

    (frame,) = feed(FrameReader(DEFAULT_LINK_SETTINGS, no_arena), b"".join(map(bytes, pieces)), [])

    np.testing.assert_array_equal(np.ndarray(value.shape, value.dtype, frame.buffers[0]), value)


def test_small_messages_are_one_piece_and_large_buffers_are_not_copied() -> None:
    packer = Packer(DEFAULT_LINK_SETTINGS, None)
    large = np.zeros(100_000, np.uint8)

    assert len(packer.pack(FrameKind.REQUEST, 1, 1, b"head", [b"x", np.arange(4)])) == 1
    head, body = packer.pack(FrameKind.REQUEST, 1, 1, b"head", [large])

    assert len(head) == PREFIX.size + ROW.size + 4
    assert np.shares_memory(np.frombuffer(body, np.uint8), large)


def test_staging_copies() -> None:
    value = np.arange(100, dtype=np.int32)

    staged = Packer(DEFAULT_LINK_SETTINGS, None).stage(value)
    value[:] = 0

    assert np.asarray(staged).view(np.int32)[5] == 5


# -- settings --------------------------------------------------------------------------------------------------------


def test_settings_come_from_the_environment() -> None:
    environment = {"TENFOLD_LINK": "tcp", "TENFOLD_SHARED_MEMORY": "off", "TENFOLD_SHARED_MEMORY_THRESHOLD": "4096"}

    made = LinkSettings.from_environment(environment)

    assert (made.mode, made.shared_memory, made.shared_threshold) == ("tcp", False, 4096)
    assert LinkSettings.from_environment({}) == DEFAULT_LINK_SETTINGS


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("TENFOLD_LINK", "udp", "auto, tcp or off"),
        ("TENFOLD_SHARED_MEMORY", "1", "auto or off"),
        ("TENFOLD_SHARED_MEMORY_THRESHOLD", "64k", "a number of bytes"),
        ("TENFOLD_SHARED_MEMORY_THRESHOLD", "0", "a number of bytes"),
    ],
)
def test_a_wrong_setting_says_what_would_be_right(name: str, value: str, allowed: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=f"{name} is '{value}'; it may be {allowed}"):
        LinkSettings.from_environment({name: value})


def test_a_frame_without_anything() -> None:
    (frame,) = feed(FrameReader(DEFAULT_LINK_SETTINGS, no_arena), pack(FrameKind.PING), [])

    assert plain(frame) == (FrameKind.PING, 0, 0, b"", [])


def test_what_was_received_in_part_is_let_go() -> None:
    gone: list[int] = []

    class Memory(np.ndarray):
        def __del__(self) -> None:
            gone.append(self.nbytes)

    size = 1 << 20
    reader = FrameReader(DEFAULT_LINK_SETTINGS, no_arena, lambda nbytes: np.empty(nbytes, np.uint8).view(Memory))
    started = pack(FrameKind.REPLY, 0, 7, b"", [ROW.pack(size, 0, 0)]) + bytes(1000)
    reader.buffer()[: len(started)] = started
    assert reader.received(len(started)) == []
    assert reader.awaited == size - 1000
    assert not gone

    reader.close()
    reader.drop()

    assert size in gone


def test_the_numbers_of_the_wire_are_what_other_releases_know() -> None:
    assert [kind.name for kind in sorted(FrameKind)] == [
        *("HELLO", "WELCOME", "REQUEST", "NOTIFY", "REPLY", "ERROR", "CANCEL", "PING", "PONG", "RELEASE", "GOODBYE"),
        "STREAMS",
    ]
    assert [int(kind) for kind in sorted(FrameKind)] == list(range(1, 13))


def test_a_release_names_every_block_that_was_returned_and_takes_them() -> None:
    returned = deque([7, 1 << 40, 3])

    (frame,) = feed(FrameReader(DEFAULT_LINK_SETTINGS, no_arena), pack_release(returned), [])

    assert (frame.kind, unpack_ids(frame.header)) == (FrameKind.RELEASE, (7, 1 << 40, 3))
    assert not returned


def test_a_header_may_be_as_long_as_the_limit_and_no_longer() -> None:
    header = bytes(SMALL_LIMITS.header_bytes)

    (frame,) = feed(FrameReader(SMALL_LIMITS, no_arena), pack(FrameKind.NOTIFY, header=header), [])

    assert frame.header == header
    with pytest.raises(ProtocolError, match="header of"):
        feed(FrameReader(SMALL_LIMITS, no_arena), pack(FrameKind.NOTIFY, header=header + b"x"), [])
