"""A message's pieces: small ones joined, large ones as they are or in the arena, and what cannot be sent."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tenfold_core import errors, variable_memory
from tenfold_core.traffic import Traffic
from tenfold_core.variable_memory import MemoryLease
from tenfold_link.link_settings import DEFAULT_LINK_SETTINGS
from tenfold_link.memory.arena import Arena, SharedBlock
from tenfold_link.wire import packing
from tenfold_link.wire.frames import MAGIC, PREFIX, ROW, SMALL, FrameKind
from tenfold_link.wire.packing import Packer, unsent
from tenfold_link.wire.spread import LEAST, SPREAD, Spread

if TYPE_CHECKING:
    from collections.abc import Iterator

SETTINGS = replace(DEFAULT_LINK_SETTINGS, header_bytes=100, buffers_per_frame=3, frame_bytes=50_000)


@pytest.fixture
def arena() -> Iterator[Arena]:
    made = Arena(8 << 20, 1 << 20)
    made.reserve(4 << 20)
    yield made
    made.close()


def rows(pieces: list[Any], count: int) -> list[tuple[int, int, int]]:
    head = bytes(pieces[0])
    return list(ROW.iter_unpack(head[PREFIX.size : PREFIX.size + count * ROW.size]))


def test_a_frame_without_buffers_is_one_piece() -> None:
    traffic = Traffic()
    (piece,) = Packer(SETTINGS, None, traffic).pack(FrameKind.REQUEST, 3, 9, b"header")
    assert piece == PREFIX.pack(MAGIC, FrameKind.REQUEST, 0, 3, 6, 0, 9) + b"header"
    assert traffic.sent == len(piece)


def test_small_buffers_are_joined_with_their_header() -> None:
    traffic = Traffic()
    (piece,) = Packer(SETTINGS, None, traffic).pack(FrameKind.REPLY, 1, 2, b"h", [b"ab", np.array([1, 2], np.uint8)])
    assert piece == (
        PREFIX.pack(MAGIC, FrameKind.REPLY, 0, 1, 1, 2, 2) + ROW.pack(2, 0, 0) + ROW.pack(2, 0, 0) + b"h" + b"ab\1\2"
    )
    assert traffic.sent == len(piece)


@pytest.mark.parametrize(("size", "pieces"), [(SMALL, 1), (SMALL + 1, 2)])
def test_from_which_size_on_a_buffer_is_a_piece_of_its_own(size: int, pieces: int) -> None:
    found = Packer(SETTINGS, None).pack(FrameKind.REPLY, 0, 2, b"h", [np.zeros(size, np.uint8)])
    assert len(found) == pieces
    assert rows(found, 1) == [(size, 0, 0)]


def test_several_that_are_large_together_are_pieces() -> None:
    found = Packer(SETTINGS, None).pack(FrameKind.REPLY, 0, 2, b"h", [bytes(SMALL), b"x"])
    assert [len(piece) for piece in found] == [PREFIX.size + 2 * ROW.size + 1, SMALL, 1]


@pytest.mark.parametrize(
    "buffer",
    [
        np.arange(30_000, dtype=np.uint8),
        bytearray(30_000),
        memoryview(bytes(30_000)),
        np.arange(5_000, dtype=np.float64),
    ],
)
def test_large_memory_is_not_copied(buffer: Any) -> None:
    found = Packer(SETTINGS, None).pack(FrameKind.REPLY, 0, 2, b"h", [buffer])
    assert np.shares_memory(np.frombuffer(found[1], np.uint8), np.frombuffer(buffer, np.uint8))
    assert len(found[1]) == memoryview(buffer).nbytes


def test_what_is_not_contiguous_is_copied_in_its_order() -> None:
    value = np.arange(40_000, dtype=np.uint8).reshape(200, 200).T
    found = Packer(SETTINGS, None).pack(FrameKind.REPLY, 0, 2, b"h", [value])
    assert bytes(found[1]) == value.tobytes()


@pytest.mark.parametrize("size", [1, 3000])
def test_objects_are_no_bytes(size: int) -> None:
    with pytest.raises(errors.InvalidArgumentError, match="An array of objects cannot be sent as bytes"):
        Packer(SETTINGS, None).pack(FrameKind.REPLY, 0, 2, b"h", [np.array([None] * size, object)])


@pytest.mark.parametrize(
    ("header", "buffers", "text"),
    [
        (bytes(101), [], "The header is 101, and a link takes 100 at most"),
        (bytes(101), [b"x"], "The header is 101, and a link takes 100 at most"),
        (b"", [b"x"] * 4, "The number of buffers is 4, and a link takes 3 at most"),
        (b"", [bytes(25_000), bytes(25_001)], "The size of a frame is 50001, and a link takes 50000 at most"),
    ],
)
def test_what_the_peer_would_refuse_is_refused_here(header: bytes, buffers: list[Any], text: str) -> None:
    traffic = Traffic()
    packer = Packer(SETTINGS, None, traffic)
    with pytest.raises(errors.ResourceExhaustedError, match=text):
        packer.pack(FrameKind.REQUEST, 0, 1, header, buffers)
    assert traffic.sent == 0


def test_what_is_just_small_enough_is_sent() -> None:
    packer = Packer(SETTINGS, None)
    packer.pack(FrameKind.REQUEST, 0, 1, bytes(100))
    packer.pack(FrameKind.REQUEST, 0, 1, bytes(100), [b"x", bytes(25_000), bytes(24_999)])


# -- shared memory -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "shared"), [(SETTINGS.shared_threshold, True), (SETTINGS.shared_threshold - 1, False)]
)
def test_from_which_size_on_a_buffer_goes_by_shared_memory(arena: Arena, size: int, shared: bool) -> None:
    traffic, value = Traffic(), (np.arange(size) % 251).astype(np.uint8)
    packer = Packer(replace(SETTINGS, frame_bytes=1 << 20), arena, traffic)
    found = packer.pack(FrameKind.REPLY, 0, 2, b"h", [value])
    ((nbytes, block, _),) = rows(found, 1)
    assert nbytes == size
    assert (block > 0) is shared
    assert len(found) == (1 if shared else 2)
    assert traffic.sent == PREFIX.size + ROW.size + 1 + size
    if shared:
        arena.release([block])


def test_a_block_that_was_made_to_be_sent_is_lent(arena: Arena) -> None:
    packer = Packer(SETTINGS, arena)
    block = packer.allocate(200_000)
    assert isinstance(block, SharedBlock)
    assert packer.stage(block) is block
    found = packer.pack(FrameKind.REPLY, 0, 2, b"h", [block])
    assert rows(found, 1) == [(block.nbytes, block.id, block.offset)]
    with pytest.raises(errors.InvalidArgumentError, match="A shared block cannot go over a link without arena"):
        Packer(SETTINGS, None).pack(FrameKind.REPLY, 0, 2, b"h", [block])
    arena.release([block.id])


def test_without_an_arena_there_are_no_blocks() -> None:
    assert Packer(SETTINGS, None).allocate(1) is None


@pytest.mark.parametrize("size", [10, SETTINGS.shared_threshold - 1, SETTINGS.shared_threshold])
def test_what_is_staged_may_change_afterwards(arena: Arena, size: int) -> None:
    for packer in (Packer(SETTINGS, None), Packer(SETTINGS, arena)):
        value = np.ones(size, np.uint8)
        staged = packer.stage(value)
        value[:] = 2
        is_shared = isinstance(staged, SharedBlock)
        assert is_shared is (packer._arena is not None and size == SETTINGS.shared_threshold)
        if not is_shared:
            assert not np.shares_memory(np.asarray(staged), value)
            assert set(bytes(staged)) == {1}  # type: ignore[arg-type]


@pytest.mark.parametrize("room", [True, False])
def test_a_variable_is_copied_once_for_all_links_or_not_at_all(room: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    variables = Arena(8 << 20, 1 << 20)
    asked: list[int] = []

    def allocate(nbytes: int) -> SharedBlock | None:
        asked.append(nbytes)
        return variables.allocate(nbytes) if room else None

    monkeypatch.setattr(packing.shared_variables, "allocate", allocate)
    variables.reserve(4 << 20)
    links = [Arena(8 << 20, 1 << 20) for _ in range(3)]
    memory = variable_memory.allocate(SETTINGS.shared_threshold, threading.RLock())
    memory.array()[:] = 7
    try:
        staged = [Packer(SETTINGS, link).stage(memory.array()) for link in links]
        assert asked == [SETTINGS.shared_threshold]
        assert all(isinstance(each, MemoryLease) for each in staged)
        owners = {id(each.memory) for each in staged}  # type: ignore[union-attr]
        assert len(owners) == 1
        assert (owners == {id(memory)}) is not room
        assert memory.to_be_shared
        packer = Packer(DEFAULT_LINK_SETTINGS, links[0])
        shared = rows(packer.pack(FrameKind.REPLY, 0, 2, b"h", staged[:1]), 1)
        assert bool(shared[0][1]) is room
        assert not any(link.taken for link in links), "no copy of a link's own"
    finally:
        for each in (*links, variables):
            each.close()


def test_an_arena_that_has_no_room_leaves_it_to_the_socket(arena: Arena) -> None:
    value = np.zeros(200_000, np.uint8)
    arena.copy_in = lambda data: None  # type: ignore[method-assign, assignment, return-value]
    packer = Packer(replace(SETTINGS, frame_bytes=1 << 20), arena)
    found = packer.pack(FrameKind.REPLY, 0, 2, b"h", [value])
    assert rows(found, 1) == [(200_000, 0, 0)]
    assert not isinstance(packer.stage(value), SharedBlock)


@pytest.mark.parametrize(
    ("sent", "left"), [(0, [b"abc", b"", b"de"]), (1, [b"bc", b"", b"de"]), (3, [b"de"]), (4, [b"e"]), (5, [])]
)
def test_what_is_left_of_the_pieces(sent: int, left: list[bytes]) -> None:
    assert [bytes(piece) for piece in unsent([b"abc", b"", b"de"], sent)] == left


def test_what_goes_over_further_connections() -> None:
    settings = replace(DEFAULT_LINK_SETTINGS)
    value = np.zeros(LEAST, np.uint8)
    pieces = Packer(settings, None, spreads=True).pack(FrameKind.REPLY, 0, 2, b"h", [value, value[1:], value[:4]])
    assert rows(pieces, 3) == [(LEAST, SPREAD, 0), (LEAST - 1, 0, 0), (4, 0, 0)]
    spread = pieces[1]
    assert isinstance(spread, Spread)
    assert len(spread) == LEAST
    assert [type(piece) for piece in pieces[2:]] == [memoryview, bytes]
    (rest, *others) = unsent(pieces[1:], 10)
    assert isinstance(rest, Spread)
    assert len(rest) == LEAST - 10
    assert others == pieces[2:]
    assert rows(Packer(settings, None).pack(FrameKind.REPLY, 0, 2, b"h", [value]), 1) == [(LEAST, 0, 0)]
