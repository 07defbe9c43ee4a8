"""Shared memory of a link, both ends in one process: lending, returning, growing, and what is refused.

Arena (sender) ──memfd──► ArenaReader (receiver) ──► read-only array ──last reference gone──► block number back
"""

from __future__ import annotations

import fcntl
import gc
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.other_user import can_become
from tenfold_core.buffer_pool import BufferPool
from tenfold_link.link_settings import DEFAULT_LINK_SETTINGS, LinkSettings
from tenfold_link.memory import prefault
from tenfold_link.memory.arena import VARIABLE, Arena, SharedBlock
from tenfold_link.memory.arena_reader import ArenaReader
from tenfold_link.memory.charges import Charges
from tenfold_link.memory.extents import PAGE, Extents, pages
from tenfold_link.protocol_error import ProtocolError
from tenfold_link.wire import handshake
from tenfold_link.wire.packing import Packer

if TYPE_CHECKING:
    from collections.abc import Iterator

MB = 1 << 20


def _grants_leases() -> bool:
    made = os.memfd_create("test")
    fd = os.open(f"/proc/self/fd/{made}", os.O_RDWR)
    os.close(made)
    try:
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    except OSError:
        return False
    finally:
        os.close(fd)
    return True


LEASES = hasattr(os, "memfd_create") and hasattr(fcntl, "F_SETLEASE") and _grants_leases()

pytestmark = pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="this system has no memfd")


@pytest.fixture
def arena() -> Iterator[Arena]:
    made = Arena(16 * MB, 4 * MB)
    yield made
    made.close()


class Receiver:
    """The other end: maps the arena and notes which blocks come back."""

    def __init__(self, arena: Arena) -> None:
        self.back: list[int] = []
        self.reader = ArenaReader(arena.take_descriptor(), arena.size, self.back.append)

    def open(self, block: SharedBlock) -> np.ndarray:
        opened = self.reader.open(block.id, block.offset, block.nbytes)
        assert isinstance(opened, np.ndarray)
        return opened


def lend(arena: Arena, data: np.ndarray) -> SharedBlock:
    block = arena.copy_in(data)
    assert block is not None
    block.lend(arena)
    return block


# -- lending -----------------------------------------------------------------------------------------------------------


def test_what_the_sender_writes_the_receiver_sees_and_may_not_change(arena: Arena) -> None:
    receiver = Receiver(arena)
    arena.reserve(MB)
    data = np.arange(MB, dtype=np.uint8)

    seen = receiver.open(lend(arena, data))

    np.testing.assert_array_equal(seen, data)
    assert not seen.flags.writeable
    with pytest.raises(ValueError, match="WRITEABLE"):
        seen.flags.writeable = True


def test_a_block_goes_back_when_the_last_view_is_dropped(arena: Arena) -> None:
    receiver = Receiver(arena)
    arena.reserve(MB)
    block = lend(arena, np.arange(4096, dtype=np.uint8))
    seen = receiver.open(block)
    row = seen.view(np.float32).reshape(32, 32)[3:4, ::2]

    del seen
    assert receiver.back == []
    del row

    assert receiver.back == [block.id]


def test_a_returned_block_is_used_again(arena: Arena) -> None:
    arena.reserve(MB)
    first = lend(arena, np.zeros(MB, np.uint8))
    assert arena.copy_in(np.zeros(MB, np.uint8)) is None

    arena.release([first.id])
    second = lend(arena, np.zeros(MB, np.uint8))

    assert (second.offset, second.id != first.id) == (first.offset, True)


def test_a_block_that_is_dropped_unsent_is_free_again(arena: Arena) -> None:
    arena.reserve(MB)
    block = arena.allocate(MB)
    assert block is not None
    assert arena.taken == 1

    del block

    assert arena.taken == 0
    assert arena.allocate(MB) is not None


def test_a_block_is_sent_once_and_over_its_own_link(arena: Arena) -> None:
    arena.reserve(MB)
    block = arena.allocate(100)
    assert block is not None
    other = Arena(MB, 0)

    with pytest.raises(ValueError, match="sent once"):
        block.lend(other)
    block.lend(arena)
    with pytest.raises(ValueError, match="sent once"):
        block.lend(arena)
    other.close()


def test_memory_outlives_the_arena_for_who_still_reads_it(arena: Arena) -> None:
    receiver = Receiver(arena)
    arena.reserve(MB)
    seen = receiver.open(lend(arena, np.full(1000, 7, np.uint8)))

    arena.close()
    del receiver
    gc.collect()

    assert int(seen.sum()) == 7000


def test_descriptors_go_with_the_arena() -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        arena = Arena(MB, 0)
        Receiver(arena)
        arena.close()
        arena = Arena(MB, 0)
        arena.allocate(MB // 2)
        arena.close()  # its descriptor went to no peer
    del arena
    gc.collect()

    assert len(os.listdir("/proc/self/fd")) == before


# -- growing -----------------------------------------------------------------------------------------------------------


def test_a_request_that_does_not_fit_warms_the_arena_in_the_background(arena: Arena) -> None:
    grown = threading.Event()
    arena.on_grown = grown.set

    assert arena.resident == 0
    assert arena.allocate(3 * MB) is None
    assert grown.wait(30)

    assert arena.resident == 3 * MB
    assert arena.allocate(3 * MB) is not None


def test_an_arena_never_grows_beyond_its_size(arena: Arena) -> None:
    arena.reserve(100 * MB)

    assert arena.resident == arena.size == 16 * MB
    assert arena.allocate(17 * MB) is None
    blocks = [arena.allocate(4 * MB) for _ in range(4)]
    assert None not in blocks
    assert arena.allocate(1) is None


def test_an_idle_arena_gives_back_what_it_need_not_keep(arena: Arena) -> None:
    arena.reserve(12 * MB)
    later = arena._last_used + 2 * prefault.IDLE_SECONDS

    assert arena.trim(arena._last_used) is True, "not idle yet: look again"
    assert arena.resident == 12 * MB
    assert arena.trim(later) is False

    assert arena.resident == 4 * MB
    memory = arena.memory[4 * MB : 12 * MB]
    assert int(memory.max()) == 0
    arena.reserve(6 * MB)
    assert arena.allocate(2 * MB) is not None


def test_what_is_lent_is_not_given_back(arena: Arena) -> None:
    receiver = Receiver(arena)
    arena.reserve(8 * MB)
    low = arena.allocate(6 * MB)
    assert low is not None
    seen = receiver.open(lend(arena, np.full(2 * MB, 9, np.uint8)))
    del low

    arena.trim(arena._last_used + 2 * prefault.IDLE_SECONDS)

    assert int(seen.min()) == 9
    assert arena.resident == 8 * MB


def test_the_thread_holds_no_arena_alive() -> None:
    grown = threading.Event()
    arena = Arena(MB, 0)
    arena.on_grown = grown.set
    arena.allocate(100)
    assert grown.wait(30)

    arena.close()

    assert arena.trim(1e12) is False


# -- what is refused ---------------------------------------------------------------------------------------------------


def test_a_release_of_what_was_not_lent(arena: Arena) -> None:
    arena.reserve(MB)
    block = lend(arena, np.zeros(10, np.uint8))

    with pytest.raises(ProtocolError, match="block 77"):
        arena.release([77])
    arena.release([block.id])
    with pytest.raises(ProtocolError, match=f"block {block.id}"):
        arena.release([block.id])
    with pytest.raises(ProtocolError, match="which was not lent"):
        arena.release([VARIABLE | 7])


def test_a_block_that_its_holder_did_not_send_cannot_be_released_by_the_peer(arena: Arena) -> None:
    arena.reserve(MB)
    block = arena.allocate(10)
    assert block is not None

    with pytest.raises(ProtocolError, match=f"block {block.id}"):
        arena.release([block.id])


@pytest.mark.parametrize(("offset", "size"), [(16 * MB, 1), (0, 16 * MB + 1), ((1 << 64) - 1, 2), (15 * MB, 2 * MB)])
def test_a_block_outside_of_the_arena(arena: Arena, offset: int, size: int) -> None:
    receiver = Receiver(arena)

    with pytest.raises(ProtocolError, match="in an arena of"):
        receiver.reader.open(1, offset, size)


def test_an_arena_that_can_shrink() -> None:
    fd = os.memfd_create("test", os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, MB)

    with pytest.raises(ProtocolError, match="can shrink"):
        ArenaReader(fd, MB, lambda block: None)


def test_an_arena_that_is_smaller_than_said() -> None:
    arena = Arena(MB, 0)

    with pytest.raises(ProtocolError, match="can shrink"):
        ArenaReader(arena.take_descriptor(), 2 * MB, lambda block: None)
    arena.close()


@pytest.mark.parametrize("size", [0, 1 << 62])
def test_an_arena_of_no_sensible_size(arena: Arena, size: int) -> None:
    with pytest.raises(ProtocolError, match="an arena of"):
        ArenaReader(arena.take_descriptor(), size, lambda block: None)


def test_a_descriptor_that_is_no_memory() -> None:
    with pytest.raises(ProtocolError, match="can shrink"):
        ArenaReader(os.open("/dev/null", os.O_RDONLY), MB, lambda block: None)


def test_the_peer_gets_the_file_read_only(arena: Arena) -> None:
    fd = arena.take_descriptor()

    try:
        assert fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY
        assert fcntl.fcntl(fd, fcntl.F_GET_SEALS) & fcntl.F_SEAL_SHRINK
    finally:
        os.close(fd)


# -- packing -----------------------------------------------------------------------------------------------------------


def test_large_buffers_take_the_arena_and_fall_back_to_the_socket(arena: Arena) -> None:
    packer = Packer(DEFAULT_LINK_SETTINGS, arena)
    arena.reserve(MB)
    data = np.ones(MB, np.uint8)

    by_arena = packer.pack(3, buffers=[data])
    inline = packer.pack(3, buffers=[data])

    assert len(by_arena) == 1
    assert sum(map(len, inline)) > MB


def test_a_failed_pack_lends_nothing(arena: Arena) -> None:
    packer = Packer(DEFAULT_LINK_SETTINGS, arena)
    arena.reserve(2 * MB)

    with pytest.raises(Exception, match="objects"):
        packer.pack(3, buffers=[np.ones(MB, np.uint8), np.array([None])])
    gc.collect()

    assert arena.taken == 0


# -- extents -----------------------------------------------------------------------------------------------------------


def test_best_fit_and_joining() -> None:
    extents = Extents()
    extents.give(0, 10 * PAGE)
    a, b, c = extents.take(2 * PAGE), extents.take(3 * PAGE), extents.take(5 * PAGE)
    assert (a, b, c) == (0, 2 * PAGE, 5 * PAGE)
    assert extents.take(PAGE) is None

    extents.give(0, 2 * PAGE)
    extents.give(5 * PAGE, 5 * PAGE)

    assert extents.take(2 * PAGE) == 0, "the smaller one fits best"
    extents.give(0, 2 * PAGE)
    extents.give(2 * PAGE, 3 * PAGE)
    assert extents.take(10 * PAGE) == 0, "neighbours were joined on both sides"


def test_pages() -> None:
    assert [pages(size) for size in (0, 1, PAGE, PAGE + 1)] == [PAGE, PAGE, PAGE, 2 * PAGE]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(1, 9)), max_size=80))
def test_extents_never_overlap_and_never_get_lost(moves: list[tuple[bool, int]]) -> None:
    extents = Extents()
    extents.give(0, 40 * PAGE)
    taken: list[tuple[int, int]] = []
    for takes, number in moves:
        if takes:
            offset = extents.take(number * PAGE)
            if offset is not None:
                assert all(offset + number * PAGE <= at or at + size <= offset for at, size in taken)
                taken.append((offset, number * PAGE))
        elif taken:
            extents.give(*taken.pop(number % len(taken)))
        assert extents.free + sum(size for _, size in taken) == 40 * PAGE
    for one in taken:
        extents.give(*one)

    assert extents.take(40 * PAGE) == 0


# -- memory for what comes in the socket -----------------------------------------------------------------------------


def test_received_memory_is_used_again_once_nobody_looks_at_it() -> None:
    pool = BufferPool(8 * MB)
    first = pool.allocate(2 * MB)
    address, view = first.__array_interface__["data"][0], first[5:10]
    del first

    second = pool.allocate(2 * MB)
    assert second.__array_interface__["data"][0] != address, "a view of the first one is still there"
    del view
    third = pool.allocate(2 * MB)

    assert third.__array_interface__["data"][0] == address
    third[:] = 1
    assert third.flags.writeable


def test_received_memory_is_kept_within_bounds_and_the_latest_sizes_first() -> None:
    pool = BufferPool(6 * MB)
    arrays = [pool.allocate(size * MB) for size in (1, 2, 4)]
    while arrays:
        arrays.pop(0)

    assert pool.free_bytes == 6 * MB
    pool.allocate(7 * MB)
    assert pool.free_bytes == 6 * MB
    pool.clear()
    assert pool.free_bytes == 0


def test_a_peer_of_another_user_cannot_open_the_file_anew_to_write(arena: Arena) -> None:
    """Finding 7: a memory file has the mode 0777, and /proc/self/fd opens it again."""
    fd = arena.take_descriptor()
    try:
        assert os.fstat(fd).st_mode & 0o777 == 0o400
        if not can_become:
            return
        program = [sys.executable, "-c", REOPEN, str(fd)]
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
        ended = subprocess.run(
            program, env=environment, pass_fds=[fd], capture_output=True, text=True, timeout=60, check=True
        )
        assert ended.stdout.split() == ["mapped", "PermissionError"]
    finally:
        os.close(fd)


#: As another user: maps what was passed, then tries to open it to write.
REOPEN = """
import mmap, os, sys
from support.other_user import become_nobody

become_nobody()
fd = int(sys.argv[1])
mmap.mmap(fd, mmap.PAGESIZE, mmap.MAP_SHARED, mmap.PROT_READ)
print("mapped")
try:
    os.open(f"/proc/self/fd/{fd}", os.O_RDWR)
    print("opened")
except OSError as error:
    print(type(error).__name__)
"""


def sparse(size: int) -> int:
    """A file that takes nothing of its maker's memory."""
    fd = os.memfd_create("test", os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, size)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
    return fd


def test_a_sparse_file_that_is_larger_than_it_may_be_is_not_mapped() -> None:
    """Finding 8: a peer announced 1 TiB, which takes nothing of its memory, and of ours what is read."""
    with pytest.raises(ProtocolError, match=r"1099511627776 bytes; 1073741824 at most .*TENFOLD_LINK_MAPPING_BYTES"):
        ArenaReader(sparse(1 << 40), 1 << 40, lambda block: None, most=1 << 30)
    with pytest.raises(ProtocolError, match="4194304 bytes; 2097152 at most"):
        ArenaReader(sparse(MB), MB, lambda block: None, sparse(4 * MB), most=2 * MB)


def test_what_is_mapped_is_bounded_by_the_machine_s_memory() -> None:
    half = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    assert handshake.largest_mapping(LinkSettings()) == pages(max(half, LinkSettings().arena_bytes))
    assert handshake.largest_mapping(LinkSettings(arena_bytes=1 << 60)) == 1 << 60
    assert handshake.largest_mapping(LinkSettings(mapping_bytes=7)) == 7


@pytest.mark.skipif(not LEASES, reason="the system grants no leases on memory files")
def test_what_a_peer_holds_of_a_closed_link_counts_until_it_lets_go() -> None:
    """Finding 8: it counted as free once the link was closed, and the next link got as much again."""
    charges = Charges(4 * MB)
    arena = Arena(16 * MB, 0, charges=charges)
    receiver = Receiver(arena)
    arena.reserve(2 * MB)
    block = lend(arena, np.full(MB, 7, np.uint8))
    held = receiver.reader.open(block.id, block.offset, MB)
    assert charges.taken == 2 * MB

    arena.close()

    assert charges.taken == MB, "what the peer does not hold is free"
    assert held.sum() == 7 * MB, "what it holds stays as it is"
    assert not charges.take(4 * MB)
    assert charges.taken == MB
    del held, receiver, block
    gc.collect()
    assert charges.take(4 * MB), "looked at again where memory is scarce"


def test_an_arena_without_lent_blocks_leaves_nothing() -> None:
    charges = Charges(4 * MB)
    before = len(os.listdir("/proc/self/fd"))
    for close in (True, False):
        arena = Arena(16 * MB, 0, charges=charges)
        arena.reserve(MB)
        if close:
            arena.close()
            assert charges.taken == 0
        del arena
        gc.collect()
        assert len(os.listdir("/proc/self/fd")) == before
