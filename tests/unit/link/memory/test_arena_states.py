"""An arena by itself: what is counted, what is given back and when, and what is left of it when it is closed."""

from __future__ import annotations

import fcntl
import gc
import os
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest

from tenfold_link.memory import arena as arena_module
from tenfold_link.memory import prefault
from tenfold_link.memory.arena import VARIABLE, Arena, SharedBlock
from tenfold_link.memory.charges import Charges
from tenfold_link.memory.extents import PAGE
from tenfold_link.memory.remains import REMAINS
from tenfold_link.protocol_error import ProtocolError

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="this system has no memfd")

MB = 1 << 20


class Requests:
    """In place of the thread that makes memory resident."""

    def __init__(self) -> None:
        self.arenas: list[Arena] = []

    def __call__(self, arena: Arena) -> None:
        self.arenas.append(arena)


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> Requests:
    made = Requests()
    monkeypatch.setattr(prefault, "request", made)
    return made


@pytest.fixture
def charges() -> Charges:
    return Charges(64 * MB)


@pytest.fixture
def arena(requests: Requests, charges: Charges) -> Iterator[Arena]:
    made = Arena(16 * MB, 4 * MB, charges=charges)
    yield made
    made.close()


def block_of(arena: Arena, nbytes: int) -> SharedBlock:
    found = arena.allocate(nbytes)
    assert found is not None
    return found


def resident_bytes(fd: int) -> int:
    """What a memory file takes, as the system has it."""
    return os.fstat(fd).st_blocks * 512


# -- blocks ------------------------------------------------------------------------------------------------------------


def test_an_arena_has_whole_pages_and_a_sealed_file(charges: Charges) -> None:
    made = Arena(PAGE + 1, 0, charges=charges)
    assert made.size == len(made.memory) == 2 * PAGE
    assert made.address == made.memory.__array_interface__["data"][0]
    seals = fcntl.fcntl(made.descriptor, fcntl.F_GET_SEALS)
    assert seals == fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
    assert os.fstat(made.descriptor).st_size == 2 * PAGE
    assert not os.get_inheritable(made.descriptor)
    made.close()


def test_a_block_has_its_number_its_place_and_its_memory(arena: Arena) -> None:
    arena.reserve(MB)
    first, second = block_of(arena, PAGE + 1), block_of(arena, 10)
    assert (first.id, second.id) == (1, 2)
    assert (first.offset, second.offset) == (0, 2 * PAGE)
    assert (first.nbytes, second.nbytes) == (PAGE + 1, 10)
    first.array[:], second.array[:] = 3, 4
    assert arena.memory[: PAGE + 1].tolist() == [3] * (PAGE + 1)
    assert arena.memory[2 * PAGE : 2 * PAGE + 11].tolist() == [4] * 10 + [0]
    assert arena.held == {1: (0, 2 * PAGE), 2: (2 * PAGE, PAGE)}
    assert (arena.lent, arena.taken) == ({}, 2)


def test_a_copy_is_all_of_it(arena: Arena) -> None:
    arena.reserve(MB)
    data = np.arange(10_000, dtype=np.uint8)
    copied = arena.copy_in(data)
    assert copied is not None
    np.testing.assert_array_equal(copied.array, data)
    assert arena.copy_in(np.zeros(2 * MB, np.uint8)) is None


def test_held_lent_and_dropped_blocks_are_told_apart(arena: Arena) -> None:
    arena.reserve(MB)
    other = Arena(MB, 0)
    one, two = block_of(arena, 10), block_of(arena, 20)
    assert arena.holds(one)
    assert not other.holds(one)
    assert not arena.holds(None)
    one.lend(arena)
    assert not arena.holds(one), "it was sent"
    assert (list(arena.held), list(arena.lent), arena.taken) == ([2], [1], 2)
    del one
    assert (list(arena.dropped), arena.taken) == ([], 2), "a block that was sent is the peer's to return"
    del two
    assert (list(arena.dropped), arena.taken) == ([2], 1)
    third = block_of(arena, 30)
    assert (list(arena.dropped), list(arena.held), arena.taken) == ([], [3], 2)
    assert third.offset == PAGE, "where the dropped one was"
    arena.release([1])
    assert (arena.lent, arena.taken) == ({}, 1)
    other.close()


def test_a_variable_is_lent_under_a_number_of_its_own(arena: Arena) -> None:
    class Lease:
        offset = 100

        class memory:
            class block:
                offset = 7 * PAGE

    arena.reserve(MB)
    plain = block_of(arena, 10)
    lease = cast("Any", Lease())
    number, offset = arena.lend_variable(lease)
    assert (number, offset) == (VARIABLE | (plain.id + 1), 7 * PAGE + 100)
    assert number == (1 << 63) + plain.id + 1, "the highest bit of what a frame has room for"
    again, _ = arena.lend_variable(lease)
    assert again == VARIABLE | (plain.id + 2)
    assert arena.taken == 1
    arena.release([again])
    assert list(arena.leases) == [number]
    with pytest.raises(ProtocolError, match=f"the release of block {again}, which was not lent"):
        arena.release([again])
    arena.close()
    assert arena.leases == {}


def test_what_comes_before_a_wrong_number_is_released(arena: Arena) -> None:
    arena.reserve(MB)
    one = block_of(arena, MB)
    one.lend(arena)
    with pytest.raises(ProtocolError):
        arena.release([one.id, 99])
    assert block_of(arena, MB).offset == 0


# -- growing -----------------------------------------------------------------------------------------------------------


def test_what_does_not_fit_is_asked_for_once_and_up_to_the_size(arena: Arena, requests: Requests) -> None:
    assert arena.allocate(6 * MB) is None
    assert requests.arenas == [arena]
    assert arena.allocate(10 * MB) is None
    assert requests.arenas == [arena], "the thread is on its way"
    assert arena.allocate(1) is None, "all 16 MB are wanted, and no more than that"
    arena.prefault()
    assert arena.resident == 16 * MB
    whole = block_of(arena, 16 * MB)
    assert arena.allocate(1) is None
    assert whole.offset == 0
    assert requests.arenas == [arena], "there is no more to be made resident"


def test_the_thread_is_asked_again_once_it_is_done(arena: Arena, requests: Requests) -> None:
    grown: list[int] = []
    arena.on_grown = lambda: grown.append(arena.resident)
    assert arena.allocate(MB) is None
    arena.prefault()
    assert grown == [MB]
    arena.prefault()
    assert grown == [MB], "nothing is wanted"
    assert arena.allocate(2 * MB) is None
    assert requests.arenas == [arena, arena]
    arena.prefault()
    assert grown == [MB, 3 * MB]
    assert arena.allocate(3 * MB) is not None, "the new part joins the old one"


def test_memory_is_made_a_piece_at_a_time_as_far_as_is_allowed(
    requests: Requests, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prefault, "PIECE", 2 * MB)
    charges = Charges(5 * MB)
    made = Arena(16 * MB, 0, charges=charges)
    made.reserve(7 * MB)
    assert (made.resident, charges.taken) == (4 * MB, 4 * MB)
    assert resident_bytes(made.descriptor) == 4 * MB
    made.reserve(4 * MB)
    made.reserve(3 * MB)
    assert made.resident == 4 * MB, "so much is resident already"
    made.reserve(4 * MB + 1)
    assert made.resident == 4 * MB + PAGE
    assert block_of(made, 4 * MB + PAGE).offset == 0
    made.close()
    assert charges.taken == 0


def test_the_end_of_the_arena_is_the_end(arena: Arena, charges: Charges) -> None:
    arena.reserve(15 * MB)
    arena._extend(2 * MB)
    assert (arena.resident, charges.taken) == (16 * MB, 16 * MB)
    arena.reserve(17 * MB)
    assert arena.resident == 16 * MB


def test_a_closed_arena_gives_nothing_and_wants_nothing(arena: Arena, requests: Requests, charges: Charges) -> None:
    arena.reserve(MB)
    arena.close()
    asked = len(requests.arenas)
    assert arena.allocate(10) is None
    arena.reserve(MB)
    arena.prefault()
    assert (arena.resident, charges.taken) == (0, 0)
    assert len(requests.arenas) == asked


def test_what_was_wanted_is_not_made_once_it_is_closed(arena: Arena, requests: Requests, charges: Charges) -> None:
    grown: list[int] = []
    arena.on_grown = lambda: grown.append(1)
    assert arena.allocate(MB) is None
    arena.close()
    arena.prefault()
    assert (grown, arena.resident, charges.taken) == ([], 0, 0)


# -- giving back -------------------------------------------------------------------------------------------------------


def test_an_arena_that_was_idle_so_long_gives_back_what_is_free(arena: Arena, charges: Charges) -> None:
    arena.reserve(12 * MB)
    low = block_of(arena, MB)
    high = block_of(arena, 6 * MB)
    arena._last_used = 100.0
    assert arena.trim(100.0 + prefault.IDLE_SECONDS - 0.01)
    assert arena.resident == 12 * MB
    assert arena.trim(100.0 + prefault.IDLE_SECONDS), "what a caller has is kept: look again"
    assert (arena.resident, charges.taken) == (7 * MB, 7 * MB)
    assert resident_bytes(arena.descriptor) == 7 * MB
    del high
    assert block_of(arena, MB).offset == MB, "a use of it starts the time anew"
    assert arena._last_used > 100.0
    arena._last_used = 100.0
    assert arena.trim(1e6) is False
    assert (arena.resident, charges.taken) == (4 * MB, 4 * MB), "so much is kept"
    assert arena.trim(1e6) is False
    assert (arena.resident, charges.taken) == (4 * MB, 4 * MB)
    assert low.offset == 0


def test_an_arena_that_is_in_use_to_its_end_gives_nothing_back(arena: Arena, charges: Charges) -> None:
    arena.reserve(16 * MB)
    whole = block_of(arena, 16 * MB)
    assert arena.trim(1e9) is True
    assert (arena.resident, charges.taken, whole.nbytes) == (16 * MB, 16 * MB, 16 * MB)


def test_a_closed_arena_has_nothing_to_trim(arena: Arena) -> None:
    arena.reserve(12 * MB)
    arena.close()
    assert arena.trim(1e12) is False


# -- the end -----------------------------------------------------------------------------------------------------------


def test_close_keeps_what_is_held_and_punches_out_the_rest(requests: Requests, charges: Charges) -> None:
    made = Arena(16 * MB, 0, charges=charges)
    made.reserve(8 * MB)
    first, lent = block_of(made, 2 * MB), block_of(made, MB)
    free = block_of(made, 3 * MB)
    del free
    made.memory[: 8 * MB] = 5
    lent.lend(made)
    array = lent.array
    fd = made.copy_descriptor()
    assert fd != made.descriptor
    made.close()
    assert made.resident == 0
    assert len(made.memory) == 0
    # what was dropped unsent was not freed yet: it stays as long as the file does
    assert charges.taken == resident_bytes(fd) == 6 * MB
    assert (array.min(), array.max(), first.array.max()) == (5, 5, 5)
    made.close()
    assert charges.taken == 6 * MB, "once"
    asked = requests.arenas
    assert asked == [made], "the thread looks when they let go"
    os.close(fd)
    del first, lent, array, made
    asked.clear()
    gc.collect()
    REMAINS.sweep()
    assert charges.taken == 0


def test_close_closes_what_no_peer_has_taken(charges: Charges) -> None:
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    made = Arena(MB, 0, charges=charges)
    assert len(os.listdir("/proc/self/fd")) == before + 3, "mapping, file and the peer's"
    taken = made.take_descriptor()
    assert made.descriptor == -1
    made.close()
    gc.collect()
    os.close(taken)
    left = Arena(MB, 0, charges=charges)
    left.close()
    assert left.descriptor == -1
    del left, made
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == before


def test_descriptor_nought_is_closed_as_any_other(monkeypatch: pytest.MonkeyPatch, charges: Charges) -> None:
    closed: list[int] = []
    made = Arena(MB, 0, charges=charges)
    os.close(made.take_descriptor())
    left = Arena.__new__(Arena)
    left._fd, left._file = 0, 0
    with monkeypatch.context() as patch:
        patch.setattr(arena_module.os, "close", closed.append)
        made._fd, file = 0, made._file
        made.close()
        assert closed == [0, file]
        del left
        assert closed == [0, file, 0, 0]
    os.close(file)


@pytest.mark.parametrize("call", ["ftruncate", "fchmod", "open"])
def test_an_arena_that_cannot_be_made_leaves_no_descriptor(monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    def refused(*_: object) -> None:
        raise PermissionError(call)

    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    with monkeypatch.context() as patch:
        patch.setattr(arena_module.os, call, refused)
        with pytest.raises(PermissionError, match=call):
            Arena(MB, 0)
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == before


def test_only_the_owner_may_change_the_file(arena: Arena) -> None:
    assert os.fstat(arena.descriptor).st_mode & 0o777 == 0o400
    copy = arena.copy_descriptor()
    assert os.fstat(copy).st_ino == os.fstat(arena.descriptor).st_ino
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.write(copy, b"x")
    os.close(copy)
