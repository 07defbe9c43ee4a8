"""What a peer passes is checked before it is mapped, mapped once, and closed whatever happens."""

from __future__ import annotations

import fcntl
import gc
import os
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tenfold_link.memory import arena_reader
from tenfold_link.memory.arena import VARIABLE
from tenfold_link.memory.arena_reader import ArenaReader, PeerMapping, weakly
from tenfold_link.protocol_error import ProtocolError

PAGE = 4096


def memory_file(size: int = 4 * PAGE, seals: int = fcntl.F_SEAL_SHRINK) -> int:
    fd = os.memfd_create("test", os.MFD_ALLOW_SEALING)
    os.pwrite(fd, bytes(range(256)) * (size // 256), 0)
    os.ftruncate(fd, size)
    if seals:
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
    return fd


def is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def test_blocks_are_read_only_and_go_back_once() -> None:
    back: list[int] = []
    reader = ArenaReader(memory_file(), 4 * PAGE, back.append)
    block = reader.open(7, 256, 512)
    assert not block.flags.writeable
    np.testing.assert_array_equal(block, np.tile(np.arange(256, dtype=np.uint8), 2))
    part = block[10:]
    del block
    assert back == []
    del part
    gc.collect()
    assert back == [7]


@pytest.mark.parametrize(
    ("offset", "size", "fits"), [(0, 4 * PAGE, True), (1, 4 * PAGE, False), (4 * PAGE, 0, True), (4 * PAGE, 1, False)]
)
def test_a_block_lies_in_the_arena(offset: int, size: int, fits: bool) -> None:
    reader = ArenaReader(memory_file(), 4 * PAGE, lambda block: None)
    if fits:
        assert len(reader.open(1, offset, size)) == size
        return
    with pytest.raises(ProtocolError, match=f"a block at {offset} of {size} bytes in an arena of {4 * PAGE}"):
        reader.open(1, offset, size)


def test_variables_have_a_file_of_their_own() -> None:
    variables = memory_file(8 * PAGE)
    reader = ArenaReader(memory_file(), 4 * PAGE, lambda block: None, variables)
    assert len(reader.open(VARIABLE | 1, 7 * PAGE, PAGE)) == PAGE
    with pytest.raises(ProtocolError):
        reader.open(1, 7 * PAGE, PAGE)
    without = ArenaReader(memory_file(), 4 * PAGE, lambda block: None)
    with pytest.raises(ProtocolError, match="in an arena of 0"):
        without.open(VARIABLE | 1, 0, 1)


def test_a_file_is_mapped_once_however_many_links_pass_it() -> None:
    fd = memory_file()
    first = ArenaReader(memory_file(), 4 * PAGE, lambda block: None, os.dup(fd))
    second = ArenaReader(memory_file(), 4 * PAGE, lambda block: None, os.dup(fd))
    assert first._variables is second._variables
    assert first._arena is not second._arena
    os.close(fd)
    mapping = first._variables
    assert mapping is not None
    descriptor = mapping.descriptor
    del first, second
    assert is_open(descriptor)
    del mapping
    gc.collect()
    assert not is_open(descriptor)


def test_of_another_size_it_is_mapped_anew() -> None:
    fd = memory_file()
    whole = ArenaReader(os.dup(fd), 4 * PAGE, lambda block: None)
    part = ArenaReader(fd, 2 * PAGE, lambda block: None)
    assert whole._arena is not part._arena
    assert (whole._arena.size, part._arena.size) == (4 * PAGE, 2 * PAGE)


@pytest.mark.parametrize(
    ("seals", "size", "most", "text"),
    [
        (0, 4 * PAGE, 1 << 30, "an arena that can shrink"),
        (fcntl.F_SEAL_GROW, 4 * PAGE, 1 << 30, "an arena that can shrink"),
        (fcntl.F_SEAL_SHRINK, 4 * PAGE + 1, 1 << 30, "an arena that can shrink"),
        (fcntl.F_SEAL_SHRINK, 0, 1 << 30, "an arena of 0 bytes"),
        (fcntl.F_SEAL_SHRINK, 4 * PAGE, 4 * PAGE - 1, "TENFOLD_LINK_MAPPING_BYTES"),
    ],
)
def test_what_is_not_mapped_is_closed(seals: int, size: int, most: int, text: str) -> None:
    fd, variables = memory_file(seals=seals), memory_file()
    with pytest.raises(ProtocolError, match=text):
        ArenaReader(fd, size, lambda block: None, variables, most)
    assert not is_open(fd)
    assert not is_open(variables)


def test_what_is_just_small_enough_is_mapped() -> None:
    assert ArenaReader(memory_file(), 4 * PAGE, lambda block: None, most=4 * PAGE)._arena.size == 4 * PAGE


def test_variables_that_are_not_mapped_are_closed() -> None:
    fd, variables = memory_file(), memory_file(seals=0)
    with pytest.raises(ProtocolError, match="an arena that can shrink"):
        ArenaReader(fd, 4 * PAGE, lambda block: None, variables)
    assert not is_open(variables)


def test_what_is_no_memory_file_cannot_be_mapped() -> None:
    fd = os.open(os.devnull, os.O_RDONLY)
    with pytest.raises(ProtocolError, match="an arena that can shrink"):
        ArenaReader(fd, PAGE, lambda block: None)
    assert not is_open(fd)


def test_the_number_nought_is_a_descriptor_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process without a standard input gets it next."""
    fd, closed = memory_file(), []
    with monkeypatch.context() as patched:
        patched.setattr(arena_reader.os, "close", closed.append)
        patched.setattr(arena_reader.os, "fstat", lambda _: SimpleNamespace(st_size=0, st_dev=1, st_ino=2))
        with pytest.raises(ProtocolError):
            ArenaReader(0, PAGE, lambda block: None, 0)
        assert closed == [0, 0], "of the arena, and of the variables"
        patched.setattr(arena_reader, "_map", lambda fd, size, most: (fd, size))
        both: Any = ArenaReader(1, PAGE, lambda block: None, 0)
        assert (both._arena, both._variables) == ((1, PAGE), (0, None))
        assert ArenaReader(1, PAGE, lambda block: None)._variables is None
        mapping = PeerMapping(fd, 4 * PAGE)
        mapping.descriptor = 0
        del mapping
        assert closed == [0, 0, 0]
        with pytest.raises(OSError, match="Bad file descriptor"):
            PeerMapping(os.dup(fd) + 1000, PAGE)
        assert closed == [0, 0, 0], "what was never mapped is not its own"
    os.close(fd)


def test_a_link_is_not_kept_by_what_came_over_it() -> None:
    class Link:
        back: list[int]

        def __init__(self) -> None:
            self.back = []

        def give_back(self, block: int) -> None:
            self.back.append(block)

    link: Any = Link()
    give, back = weakly(link.give_back), link.back
    give(1)
    assert back == [1]
    del link
    give(2)
    assert back == [1]
