"""Who reads a variable's memory is told by counts of references, whose baseline is this interpreter's own."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tenfold_core import variable_memory
from tenfold_core.variable_memory import LENDABLE, VariableMemory, lend, memory_owner

if TYPE_CHECKING:
    from tenfold_core.variable_memory import Bytes


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
