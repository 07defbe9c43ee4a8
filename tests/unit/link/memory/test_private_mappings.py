"""Fetched values: what is mapped, what is copied, and that no holder's writes reach another."""

from __future__ import annotations

import gc
import mmap
import sys
import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tenfold_core import dtypes
from tenfold_core.tensor_shape import TensorShape
from tenfold_core.variable_memory import LENDABLE, MemoryLease, VariableMemory, lend, memory_owner
from tenfold_kernels.resources.state import Variable
from tenfold_link.memory import private_mappings, shared_variables
from tenfold_link.memory.arena import Arena
from tenfold_link.memory.arena_reader import ArenaReader

if TYPE_CHECKING:
    from tenfold_kernels.resources.state import Array

#: Floats of 1 MB, the least that is mapped.
COUNT = (1 << 20) // 4


@pytest.fixture
def variable() -> Variable:
    """Of 1 MB, ones, in shared memory."""
    arena = shared_variables.arena()
    assert arena is not None
    arena.reserve(16 << 20)
    made = Variable("v", dtypes.float32, TensorShape([COUNT]))
    made.assign(np.ones(COUNT, np.float32))
    memory = memory_owner(made.value)
    memory.request_shared(shared_variables.allocate)
    memory.request_shared(shared_variables.allocate)
    del memory
    assert memory_owner(made.value).block is not None
    return made


def add(variable: Variable, amount: float) -> None:
    with variable.lock:
        buffer = variable.buffer()
        buffer += amount


def test_a_value_is_mapped_and_keeps_what_it_was(variable: Variable) -> None:
    fetched = private_mappings.writable(variable.value)
    assert fetched.flags.writeable
    assert type(memory_owner(fetched)) is private_mappings.MappedValue
    add(variable, 1)
    assert fetched.min() == fetched.max() == 1
    assert variable.value.min() == 2


def test_writing_to_a_fetched_value_reaches_nobody_else(variable: Variable) -> None:
    first, second = private_mappings.writable(variable.value), private_mappings.writable(variable.value)
    first[:] = 7
    assert second.max() == 1
    assert variable.value.max() == 1


def test_a_mapping_that_comes_back_unwritten_is_handed_out_again(variable: Variable) -> None:
    fetched = private_mappings.writable(variable.value)
    address = fetched.__array_interface__["data"][0]
    assert fetched.sum() == COUNT
    del fetched
    add(variable, 1)
    again = private_mappings.writable(variable.value)
    assert again.__array_interface__["data"][0] == address
    assert again.min() == 2


def test_a_mapping_that_comes_back_written_is_not(variable: Variable) -> None:
    fetched = private_mappings.writable(variable.value)
    fetched[5] = 3
    del fetched
    again = private_mappings.writable(variable.value)
    assert again.max() == 1
    assert type(memory_owner(again)) is not private_mappings.MappedValue
    for _ in range(private_mappings._COPIES_AFTER_WRITE):
        again = private_mappings.writable(variable.value)
    assert type(memory_owner(again)) is private_mappings.MappedValue
    assert again.max() == 1


def test_a_part_of_a_value(variable: Variable) -> None:
    add(variable, 1)
    whole = Variable("w", dtypes.float32, TensorShape([3, COUNT]))
    whole.assign(np.arange(3 * COUNT, dtype=np.float32).reshape(3, COUNT))
    memory = memory_owner(whole.value)
    memory.request_shared(shared_variables.allocate)
    memory.request_shared(shared_variables.allocate)
    del memory
    part = private_mappings.writable(whole.value.reshape(-1)[3 : COUNT + 3])
    assert type(memory_owner(part)) is private_mappings.MappedValue
    assert part.tolist() == list(range(3, COUNT + 3))
    address = part.__array_interface__["data"][0]
    del part
    again = private_mappings.writable(whole.value.reshape(-1)[3 : COUNT + 3])
    assert again.__array_interface__["data"][0] == address, "its mapping came back, and serves the same part again"


def test_more_than_may_be_mapped_is_copied(variable: Variable, monkeypatch: pytest.MonkeyPatch) -> None:
    arena = shared_variables.arena()
    assert arena is not None
    held = []
    monkeypatch.setattr(private_mappings, "_PART", arena.size // (2 * private_mappings.MAPPED))
    kinds = []
    for _ in range(3):
        held.append(private_mappings.writable(variable.value))
        kinds.append(type(memory_owner(held[-1])) is private_mappings.MappedValue)
    assert kinds == [True, True, False]


def test_no_more_mappings_than_allowed(variable: Variable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private_mappings, "_permits", type(private_mappings._permits)())
    assert private_mappings.writable(variable.value).max() == 1


def test_what_is_small_or_elsewhere_is_copied() -> None:
    value = np.ones(COUNT, np.float32)
    value.setflags(write=False)
    for each in (value, value[:10], value[::2]):
        fetched = private_mappings.writable(each)
        assert fetched.flags.writeable
        assert np.array_equal(fetched, each)
        assert not np.shares_memory(fetched, value)


def test_a_pinned_value_stays(variable: Variable) -> None:
    stays = private_mappings.snapshot(variable.value)
    assert stays is not None
    assert not stays.flags.writeable
    assert type(memory_owner(stays)) is MemoryLease
    assert private_mappings.snapshot(stays) is stays
    add(variable, 1)
    assert stays.max() == 1
    assert private_mappings.writable(stays).max() == 1


class TestLending:
    """The states of a variable's memory."""

    def test_a_writer_moves_a_lent_variable_once(self, variable: Variable) -> None:
        memory = memory_owner(variable.value)
        lease = lend(variable.value)
        assert lease is not None
        assert memory.lent
        add(variable, 1)
        moved = memory_owner(variable.value)
        assert moved is not memory
        assert not memory.current
        assert moved.current
        assert not moved.lent
        add(variable, 1)
        assert memory_owner(variable.value) is moved
        assert lease.array().view(np.float32).max() == 1
        assert variable.value.max() == 3

    def test_a_reader_that_is_done_does_not_move_it(self, variable: Variable) -> None:
        memory = memory_owner(variable.value)
        lease = lend(variable.value)
        array = lease.array() if lease is not None else None
        del lease
        assert memory.lent
        del array
        assert not memory.lent
        add(variable, 1)
        assert memory_owner(variable.value) is memory

    def test_assigning_moves_a_lent_variable(self, variable: Variable) -> None:
        lease = lend(variable.value)
        assert lease is not None
        variable.assign(np.full(COUNT, 5, np.float32))
        assert lease.array().view(np.float32).max() == 1
        assert variable.value.min() == 5

    def test_local_readers_of_a_reference_see_updates(self, variable: Variable) -> None:
        view = variable.value
        add(variable, 1)
        assert view.max() == 2

    def test_a_variable_with_a_reader_does_not_move_to_shared_memory(self) -> None:
        made = Variable("v", dtypes.float32, TensorShape([COUNT]))
        made.assign(np.ones(COUNT, np.float32))
        view = made.value
        memory_owner(view).request_shared(shared_variables.allocate)
        memory_owner(view).request_shared(shared_variables.allocate)
        add(made, 1)
        assert made.value is view
        assert view.max() == 2
        del view
        assert memory_owner(made.value).block is not None

    def test_one_request_is_no_reason(self) -> None:
        made = Variable("v", dtypes.float32, TensorShape([COUNT]))
        made.assign(np.ones(COUNT, np.float32))
        memory_owner(made.value).request_shared(shared_variables.allocate)
        assert memory_owner(made.value).block is None

    def test_what_is_written_to_now_is_not_lent(self, variable: Variable) -> None:
        found: list[MemoryLease | None] = []
        with variable.lock:
            thread = threading.Thread(target=lambda: found.append(lend(variable.value)))
            thread.start()
            thread.join()
        assert found == [None]

    def test_small_values_and_strings_have_no_memory_to_lend(self) -> None:
        for dtype, value in (
            (dtypes.float32, np.ones(10, np.float32)),
            (dtypes.string, np.array([b"x"] * 99_999, "O")),
        ):
            made = Variable("v", dtype, TensorShape(None))
            made.assign(value)
            assert type(memory_owner(made.value)) is not VariableMemory
            assert lend(made.value) is None

    def test_memory_of_a_variable_goes_back(self, variable: Variable) -> None:
        arena = shared_variables.arena()
        assert arena is not None
        gc.collect()
        before = arena.taken
        lease = lend(variable.value)
        add(variable, 1)
        assert arena.taken == before + 1
        del lease
        assert arena.taken == before


def test_an_exclusive_update_leaves_local_snapshots(variable: Variable) -> None:
    with variable.lock:
        snapshot: Array = variable.value
        buffer = variable.buffer(exclusive=True)
        buffer += 1
        del buffer
    assert snapshot.max() == 1
    assert variable.value.max() == 2


def test_a_value_in_use_counts_until_its_last_view_goes(variable: Variable) -> None:
    fetched = private_mappings.writable(variable.value)
    file = private_mappings._files[shared_variables.arena()]
    assert file.in_use == {id(memory_owner(fetched)): 4 * COUNT}
    view = fetched[3:5]
    del fetched
    assert len(file.in_use) == 1
    assert not file.returned
    del view
    assert file.in_use == {}
    assert len(file.returned) == 1


def test_a_mapped_value_has_type_and_shape_of_the_variable_s() -> None:
    arena = shared_variables.arena()
    assert arena is not None
    arena.reserve(16 << 20)
    made = Variable("v", dtypes.float64, TensorShape([4, COUNT // 4]))
    made.assign(np.arange(COUNT, dtype=np.float64).reshape(4, -1))
    memory_owner(made.value).request_shared(shared_variables.allocate)
    memory_owner(made.value).request_shared(shared_variables.allocate)
    fetched = private_mappings.writable(made.value)
    assert type(memory_owner(fetched)) is private_mappings.MappedValue
    assert (fetched.dtype, fetched.shape) == (np.float64, (4, COUNT // 4))
    np.testing.assert_array_equal(fetched, np.arange(COUNT, dtype=np.float64).reshape(4, -1))


def test_what_is_smaller_than_what_is_mapped_is_copied(variable: Variable) -> None:
    assert type(memory_owner(private_mappings.writable(variable.value))) is private_mappings.MappedValue
    for smaller in (variable.value[1:], variable.value[: COUNT - 1]):
        fetched = private_mappings.writable(smaller)
        assert type(memory_owner(fetched)) is not private_mappings.MappedValue
        np.testing.assert_array_equal(fetched, smaller)


def test_what_may_be_written_to_already_stays() -> None:
    value = np.ones(COUNT, np.float32)
    assert private_mappings.writable(value) is value


def test_a_variable_that_is_fetched_often_moves_to_shared_memory() -> None:
    arena = shared_variables.arena()
    assert arena is not None
    arena.reserve(16 << 20)
    made = Variable("v", dtypes.float32, TensorShape([COUNT]))
    made.assign(np.ones(COUNT, np.float32))
    for _ in range(2):
        fetched = private_mappings.writable(made.value)
        assert type(memory_owner(fetched)) is not private_mappings.MappedValue
        assert fetched.max() == 1
    add(made, 1)
    fetched = private_mappings.writable(made.value)
    assert type(memory_owner(fetched)) is private_mappings.MappedValue
    assert fetched.max() == fetched.min() == 2


def test_a_value_that_is_written_to_now_is_copied(variable: Variable) -> None:
    found: list[np.ndarray] = []
    value = variable.value
    with variable.lock:
        thread = threading.Thread(target=lambda: found.append(private_mappings.writable(value)))
        thread.start()
        thread.join()
    assert type(memory_owner(found[0])) is not private_mappings.MappedValue
    assert found[0].max() == 1


def test_without_an_arena_a_value_is_copied(variable: Variable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_variables, "arena", lambda: None)
    fetched = private_mappings.writable(variable.value)
    assert type(memory_owner(fetched)) is not private_mappings.MappedValue
    assert fetched.max() == 1
    other = Arena(1 << 20, 0)
    monkeypatch.setattr(shared_variables, "arena", lambda: other)
    assert type(memory_owner(private_mappings.writable(variable.value))) is not private_mappings.MappedValue
    other.close()


def test_a_peer_s_block_is_mapped_and_stays_as_it_is() -> None:
    arena = Arena(16 << 20, 0)
    arena.reserve(4 << 20)
    back: list[int] = []
    peer = ArenaReader(arena.take_descriptor(), arena.size, back.append)
    block = arena.copy_in(np.arange(2 << 20, dtype=np.uint8))
    assert block is not None
    block.lend(arena)
    lent = peer.open(block.id, block.offset, block.nbytes)
    assert isinstance(lent, np.ndarray)
    assert private_mappings.snapshot(lent) is lent

    fetched = private_mappings.writable(lent)
    assert type(memory_owner(fetched)) is private_mappings.MappedValue
    fetched[0] = 77
    assert (lent[0], fetched[1]) == (0, 1)
    del lent
    assert back == [], "the block is held as long as the value"
    del fetched
    private_mappings._files.clear()
    gc.collect()
    assert back == [block.id]
    arena.close()


def test_what_is_no_variable_s_or_too_small_is_not_pinned(variable: Variable) -> None:
    least = LENDABLE // 4
    assert private_mappings.snapshot(variable.value[:least]) is not None
    assert private_mappings.snapshot(variable.value[: least - 1]) is None
    assert private_mappings.snapshot(np.ones(COUNT, np.float32)) is None
    shaped = private_mappings.snapshot(variable.value.reshape(4, -1)[1:3])
    assert shaped is not None
    assert (shaped.shape, shaped.dtype) == ((2, COUNT // 4), np.float32)
    assert private_mappings.snapshot(variable.value.reshape(4, -1)[:, ::2]) is None


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells of pages")
@pytest.mark.parametrize(
    ("pages", "written"),
    [
        ([], True),
        ([0], True),
        ([0, 0], False),
        ([0, 5 << 61], False),
        ([5 << 61, 1 << 63], True),
        ([1 << 63, 0], True),
        ([0, 1 << 62], True),
        ([0, 3 << 61], False),
        ([0, 1 << 61], False),
        ([0, (1 << 55) - 1], False),
    ],
)
def test_what_the_system_says_of_pages(pages: list[int], written: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two pages: bit 63 says in memory, 62 swapped out, 61 the file's own; fewer than asked for say nothing."""
    asked: list[tuple[int, int]] = []

    def pread(descriptor: int, count: int, offset: int) -> bytes:
        asked.append((count, offset))
        return np.array(pages, np.uint64).tobytes()

    monkeypatch.setattr(private_mappings.os, "pread", pread)
    mapping: Any = SimpleNamespace(address=7 * mmap.PAGESIZE, nbytes=mmap.PAGESIZE + 1)
    look: Any = private_mappings._Mapping.written
    assert look.fget(mapping) is written
    assert asked == [(16, 56)]
