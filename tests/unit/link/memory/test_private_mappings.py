"""Fetched values: what is mapped, what is copied, and that nobody's writes reach another."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tenfold_core import dtypes
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.resources.state import Variable
from tenfold_link.memory import private_mappings, shared_variables
from tenfold_link.memory.leases import Home, Lease, bottom, lend

if TYPE_CHECKING:
    from tenfold_kernels.resources.state import Array

COUNT = private_mappings.MAPPED // 4


@pytest.fixture
def variable() -> Variable:
    """Of 1 MB, ones, in the commons."""
    arena = shared_variables.get()
    assert arena is not None
    arena.reserve(16 << 20)
    made = Variable("v", dtypes.float32, TensorShape([COUNT]))
    made.assign(np.ones(COUNT, np.float32))
    home = bottom(made.value)
    home.ask()
    home.ask()
    del home
    assert bottom(made.value).block is not None
    return made


def add(variable: Variable, amount: float) -> None:
    with variable.lock:
        buffer = variable.buffer()
        buffer += amount


def test_a_value_is_mapped_and_keeps_what_it_was(variable: Variable) -> None:
    fetched = private_mappings.own(variable.value)
    assert fetched.flags.writeable
    assert type(bottom(fetched)) is private_mappings._Private
    add(variable, 1)
    assert fetched.min() == fetched.max() == 1
    assert variable.value.min() == 2


def test_writing_to_a_fetched_value_reaches_nobody_else(variable: Variable) -> None:
    first, second = private_mappings.own(variable.value), private_mappings.own(variable.value)
    first[:] = 7
    assert second.max() == 1
    assert variable.value.max() == 1


def test_a_mapping_that_comes_back_unwritten_is_handed_out_again(variable: Variable) -> None:
    fetched = private_mappings.own(variable.value)
    address = fetched.__array_interface__["data"][0]
    assert fetched.sum() == COUNT
    del fetched
    add(variable, 1)
    again = private_mappings.own(variable.value)
    assert again.__array_interface__["data"][0] == address
    assert again.min() == 2


def test_a_mapping_that_comes_back_written_is_not(variable: Variable) -> None:
    fetched = private_mappings.own(variable.value)
    fetched[5] = 3
    del fetched
    again = private_mappings.own(variable.value)
    assert again.max() == 1
    assert type(bottom(again)) is not private_mappings._Private
    for _ in range(private_mappings._SHY):
        again = private_mappings.own(variable.value)
    assert type(bottom(again)) is private_mappings._Private
    assert again.max() == 1


def test_a_part_of_a_value(variable: Variable) -> None:
    add(variable, 1)
    whole = Variable("w", dtypes.float32, TensorShape([3, COUNT]))
    whole.assign(np.arange(3 * COUNT, dtype=np.float32).reshape(3, COUNT))
    home = bottom(whole.value)
    home.ask()
    home.ask()
    del home
    part = private_mappings.own(whole.value.reshape(-1)[3 : COUNT + 3])
    assert type(bottom(part)) is private_mappings._Private
    assert part.tolist() == list(range(3, COUNT + 3))


def test_more_than_may_be_mapped_is_copied(variable: Variable, monkeypatch: pytest.MonkeyPatch) -> None:
    arena = shared_variables.get()
    assert arena is not None
    held = []
    monkeypatch.setattr(private_mappings, "_PART", arena.size // (2 * private_mappings.MAPPED))
    kinds = []
    for _ in range(3):
        held.append(private_mappings.own(variable.value))
        kinds.append(type(bottom(held[-1])) is private_mappings._Private)
    assert kinds == [True, True, False]


def test_no_more_mappings_than_allowed(variable: Variable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private_mappings, "_places", type(private_mappings._places)())
    assert private_mappings.own(variable.value).max() == 1


def test_what_is_small_or_elsewhere_is_copied() -> None:
    value = np.ones(COUNT, np.float32)
    value.setflags(write=False)
    for each in (value, value[:10], value[::2]):
        fetched = private_mappings.own(each)
        assert fetched.flags.writeable
        assert np.array_equal(fetched, each)
        assert not np.shares_memory(fetched, value)


def test_a_pinned_value_stays(variable: Variable) -> None:
    stays = private_mappings.pinned(variable.value)
    assert stays is not None
    assert not stays.flags.writeable
    assert type(bottom(stays)) is Lease
    assert private_mappings.pinned(stays) is stays
    add(variable, 1)
    assert stays.max() == 1
    assert private_mappings.own(stays).max() == 1


class TestLending:
    """The states of a home."""

    def test_a_writer_moves_a_lent_variable_once(self, variable: Variable) -> None:
        home = bottom(variable.value)
        lease = lend(variable.value)
        assert lease is not None
        assert home.lent
        add(variable, 1)
        moved = bottom(variable.value)
        assert moved is not home
        assert not home.live
        assert moved.live
        assert not moved.lent
        add(variable, 1)
        assert bottom(variable.value) is moved
        assert lease.array().view(np.float32).max() == 1
        assert variable.value.max() == 3

    def test_a_reader_that_is_done_does_not_move_it(self, variable: Variable) -> None:
        home = bottom(variable.value)
        lease = lend(variable.value)
        array = lease.array() if lease is not None else None
        del lease
        assert home.lent
        del array
        assert not home.lent
        add(variable, 1)
        assert bottom(variable.value) is home

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

    def test_a_variable_that_somebody_looks_at_does_not_move_to_the_commons(self) -> None:
        made = Variable("v", dtypes.float32, TensorShape([COUNT]))
        made.assign(np.ones(COUNT, np.float32))
        view = made.value
        bottom(view).ask()
        bottom(view).ask()
        add(made, 1)
        assert made.value is view
        assert view.max() == 2
        del view
        assert bottom(made.value).block is not None

    def test_being_asked_once_is_no_reason(self) -> None:
        made = Variable("v", dtypes.float32, TensorShape([COUNT]))
        made.assign(np.ones(COUNT, np.float32))
        bottom(made.value).ask()
        assert bottom(made.value).block is None

    def test_what_is_written_to_now_is_not_lent(self, variable: Variable) -> None:
        import threading

        found: list[Lease | None] = []
        with variable.lock:
            thread = threading.Thread(target=lambda: found.append(lend(variable.value)))
            thread.start()
            thread.join()
        assert found == [None]

    def test_small_values_and_strings_have_no_home(self) -> None:
        for dtype, value in (
            (dtypes.float32, np.ones(10, np.float32)),
            (dtypes.string, np.array([b"x"] * 99_999, "O")),
        ):
            made = Variable("v", dtype, TensorShape(None))
            made.assign(value)
            assert type(bottom(made.value)) is not Home
            assert lend(made.value) is None

    def test_memory_of_a_variable_goes_back(self, variable: Variable) -> None:
        arena = shared_variables.get()
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
