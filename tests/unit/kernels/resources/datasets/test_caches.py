"""Caches in memory: filled by whole passes, kept once, saved with what was seen."""

from __future__ import annotations

from typing import Any

import pytest

from support.dataset_machines import INT, SCALAR, Called, drained, mapped, numbers, one, plain
from tenfold_core import errors
from tenfold_kernels.resources.datasets.caches import Cache, MemoryCache
from tenfold_kernels.resources.datasets.core import Dataset, Run
from tenfold_kernels.resources.datasets.functional import Map
from tenfold_kernels.resources.datasets.sources import Listed


class Counted:
    """A source whose elements are counted."""

    def __init__(self, count: int = 3) -> None:
        self.calls: list[int] = []
        self.dataset = mapped(numbers(count), self._call)

    def _call(self, n: Any) -> Any:
        self.calls.append(int(n))
        return n


def test_the_first_whole_pass_is_kept() -> None:
    memory = MemoryCache()
    assert memory.elements is None
    memory.keep([(one(1),)])
    memory.keep([(one(2),)])
    assert memory.elements == [(one(1),)]
    empty = MemoryCache()
    empty.keep([])
    empty.keep([(one(2),)])
    assert empty.elements == [], "a pass without elements is a whole one"


def test_passes_of_one_cache() -> None:
    counted, memory = Counted(), MemoryCache()
    dataset = Cache(counted.dataset, memory)
    first, second = dataset.iterate(Run()), dataset.iterate(Run())
    assert [plain(first()), plain(first()), plain(second())] == [0, 1, 0]
    assert memory.elements is None
    assert drained(first) == [2]
    assert drained(second) == [1, 2], "begun before: it goes on by itself"
    assert counted.calls == [0, 1, 0, 2, 1, 2]
    third = dataset.iterate(Run())
    assert drained(third) == [0, 1, 2]
    assert third() is None
    assert len(counted.calls) == 6
    assert dataset.cardinality() == 3
    assert dataset.is_slow


def test_a_pass_that_found_nothing_is_kept() -> None:
    memory, asked = MemoryCache(), list[int]()

    class Empty(Listed):
        def iterate(self, run: Run) -> Any:
            asked.append(1)
            return super().iterate(run)

    dataset = Cache(Empty(INT, SCALAR, []), memory)
    for _ in range(3):
        assert drained(dataset) == []
    assert asked == [1]


def test_each_by_its_number() -> None:
    counted = Counted()
    dataset = Cache(counted.dataset, MemoryCache())
    run = Run()
    assert plain(dataset.at(1, run)) == 1
    with pytest.raises(errors.OutOfRangeError):
        dataset.at(3, run)
    drained(dataset)
    counted.calls.clear()
    assert [plain(dataset.at(number, run)) for number in (0, 2)] == [0, 2]
    for beyond in (-1, 3):
        with pytest.raises(errors.OutOfRangeError, match=rf"^Index out of range \[0, 3\): {beyond}$"):
            dataset.at(beyond, run)
    assert counted.calls == []


@pytest.mark.parametrize("taken", range(5))
def test_a_pass_that_fills_the_cache_goes_on_elsewhere(taken: int) -> None:
    """What was seen goes with it: who restores has an empty cache, and fills it with the whole."""
    machine = Cache(numbers(3), MemoryCache()).iterate(Run())
    for _ in range(taken):
        machine()
    memory = MemoryCache()
    dataset = Cache(numbers(3), memory)
    other = dataset.iterate(Run())
    other()
    other.restore(machine.save())
    assert drained(other) == [0, 1, 2][taken:]
    assert [plain(element) for element in memory.elements or ()] == [0, 1, 2]
    assert drained(dataset) == [0, 1, 2]
    if taken < 3:
        assert drained(machine) == [0, 1, 2][taken:]


@pytest.mark.parametrize("taken", range(4))
def test_a_pass_that_reads_the_cache_goes_on_elsewhere(taken: int) -> None:
    full = Cache(numbers(3), MemoryCache())
    drained(full)
    machine = full.iterate(Run())
    for _ in range(taken):
        machine()
    at, seen, inner = machine.save()
    assert (at, [plain(element) for element in seen], inner) == (taken, [0, 1, 2], None)
    memory, counted = MemoryCache(), Counted()
    dataset = Cache(counted.dataset, memory)
    other = dataset.iterate(Run())
    other.restore((at, [list(element) for element in seen], inner))
    assert all(type(element) is tuple for element in memory.elements or ())
    assert drained(other) == [0, 1, 2][taken:]
    assert drained(dataset) == [0, 1, 2]
    assert counted.calls == []


def test_a_pass_that_read_may_be_set_back_to_one_that_fills() -> None:
    memory, counted = MemoryCache(), Counted()
    dataset = Cache(counted.dataset, memory)
    machine = dataset.iterate(Run())
    machine()
    state = machine.save()
    machine()
    assert len(state[1]) == 1, "what is seen later is not in it"
    drained(machine)
    reading = dataset.iterate(Run())
    reading.restore(state)
    counted.calls.clear()
    assert drained(reading) == [1, 2]
    assert counted.calls == [1, 2]


def test_an_element_that_fails_is_not_in_the_cache() -> None:
    def body(n: Any) -> Any:
        if n == 1 and not failed:
            failed.append(1)
            raise errors.DataLossError(None, None, "torn")
        return n

    failed: list[int] = []
    memory = MemoryCache()
    dataset: Dataset = Cache(Map(INT, SCALAR, numbers(3), Called(body), ()), memory)
    machine = dataset.iterate(Run())
    machine()
    with pytest.raises(errors.DataLossError):
        machine()
    assert drained(machine) == [2]
    assert drained(dataset) == [0, 2]
