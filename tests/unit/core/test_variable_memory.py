"""Who reads a variable's memory is told by counts of references, whose baseline is this interpreter's own."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tenfold_core import variable_memory
from tenfold_core.variable_memory import LENDABLE, VariableMemory, lend, memory_owner

if TYPE_CHECKING:
    from tenfold_core.variable_memory import Bytes, MemoryLease


@pytest.fixture
def memory() -> VariableMemory:
    return variable_memory.allocate(LENDABLE, threading.RLock())


def test_memory_that_nothing_reads_is_not_lent(memory: VariableMemory) -> None:
    array = memory.array()
    # often enough for the interpreter to have adapted its code
    assert not any(memory.lent for _ in range(10_000))
    assert not any((lambda each: each.lent)(memory) for _ in range(10_000))
    assert memory_owner(array) is memory


@pytest.mark.parametrize("readers", [1, 2, 5])
def test_each_lease_counts_until_it_is_dropped(memory: VariableMemory, readers: int) -> None:
    leases = [lend(memory.array()) for _ in range(readers)]
    assert None not in leases
    for _ in range(readers):
        assert memory.lent
        leases.pop()
    assert not memory.lent


def test_an_array_of_a_lease_counts(memory: VariableMemory) -> None:
    lease = lend(memory.array())
    assert lease is not None
    array = lease.array().view(np.float32)[3:9]
    del lease
    assert memory.lent
    del array
    assert not memory.lent


def test_a_reader_in_another_thread_counts_and_its_end_is_seen(memory: VariableMemory) -> None:
    lent, release, done = threading.Event(), threading.Event(), threading.Event()

    def read(array: Bytes) -> None:
        lease = lend(array)
        lent.set()
        release.wait(30)
        del lease
        done.set()

    reader = threading.Thread(target=read, args=(memory.array(),))
    reader.start()
    assert lent.wait(30)
    assert memory.lent
    release.set()
    assert done.wait(30)
    assert not memory.lent
    reader.join(30)


def test_memory_that_is_being_written_is_not_lent(memory: VariableMemory) -> None:
    locked, release = threading.Event(), threading.Event()

    def write() -> None:
        with memory.lock:
            locked.set()
            release.wait(30)

    writer = threading.Thread(target=write)
    writer.start()
    assert locked.wait(30)
    assert lend(memory.array()) is None
    release.set()
    writer.join(30)
    assert lend(memory.array()) is not None


class Block:
    """Shared memory, as an arena gives it."""

    offset = 0

    def __init__(self, nbytes: int) -> None:
        self.array = np.empty(nbytes, np.uint8)


def lease_of(memory: VariableMemory, part: slice = slice(None)) -> MemoryLease:
    lease = lend(memory.array()[part])
    assert lease is not None
    return lease


def test_one_copy_serves_all_that_have_it_at_once(memory: VariableMemory) -> None:
    memory.array()[:] = 1
    made: list[Block] = []

    def allocate(nbytes: int) -> Block:
        made.append(Block(nbytes))
        return made[-1]

    first = memory.lend_copy(lease_of(memory), allocate)
    second = memory.lend_copy(lease_of(memory), allocate)
    assert first is not None
    assert second is not None
    assert first.memory is second.memory
    assert [first.memory.block] == made
    assert not first.memory.current
    assert memory.lent, "the variable moves before it writes, so that the copy stays one of its value"
    np.testing.assert_array_equal(second.array(), memory.array())
    assert lend(first.memory.array()) is not None

    del first, second
    assert not memory.lent
    memory.array()[:] = 2
    third = memory.lend_copy(lease_of(memory), allocate)
    assert third is not None
    assert len(made) == 2
    assert set(third.array().tolist()) == {2}


def test_a_part_of_the_memory_is_not_copied(memory: VariableMemory) -> None:
    assert memory.lend_copy(lease_of(memory, slice(1, None)), Block) is None
    assert memory.lend_copy(lease_of(memory), Block) is not None


def test_room_for_a_copy_is_asked_for_once(memory: VariableMemory) -> None:
    asked: list[int] = []

    def full(nbytes: int) -> None:
        asked.append(nbytes)

    for _ in range(3):
        assert memory.lend_copy(lease_of(memory), full) is None
    assert asked == [LENDABLE]
