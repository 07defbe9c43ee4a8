"""Buffers that are filled ahead: their size, what stands in them, errors in their place, ends, and closed runs."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from support.dataset_machines import SOON_S, drained, failing, mapped, numbers, plain, told
from tenfold_core import errors
from tenfold_kernels.resources.datasets import prefetch
from tenfold_kernels.resources.datasets.core import Machine, Run
from tenfold_kernels.resources.datasets.prefetch import AUTOTUNED, MOST, Prefetch


class Here:
    """In place of the pool: work is kept until it is asked for, and done on this thread."""

    def __init__(self) -> None:
        self.work: list[Any] = []

    def submit(self, work: Any) -> None:
        self.work.append(work)

    def run(self) -> None:
        while self.work:
            self.work.pop(0)()


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Here:
    found = Here()
    monkeypatch.setattr(prefetch, "pool", found)
    monkeypatch.setattr(prefetch, "_PAUSE_S", 0.0)
    return found


class Counted:
    """A function that gives its element back, and how often it was called."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, n: Any) -> Any:
        self.calls += 1
        return n


def ahead(size: int, count: int = 9) -> tuple[Counted, Machine]:
    counted = Counted()
    return counted, Prefetch(mapped(numbers(count), counted), size).iterate(Run())


@pytest.mark.parametrize(("size", "held"), [(-1, AUTOTUNED), (0, 0), (5, 5), (MOST, MOST), (MOST + 1, MOST)])
def test_how_many_elements_are_held(size: int, held: int) -> None:
    assert Prefetch(numbers(1), size)._size == held


def test_the_size_of_a_buffer() -> None:
    assert MOST == 4096
    with pytest.raises(errors.InvalidArgumentError, match="buffer_size must be >= 0 or set buffer_size to be -1"):
        Prefetch(numbers(1), -2)


def test_what_takes_no_time_is_not_made_ahead() -> None:
    source = numbers(3)
    assert Prefetch(source, 2).iterate(Run()).is_ready is None
    slow = mapped(source, lambda n: n)
    assert Prefetch(slow, 2).iterate(Run()).is_ready is not None
    assert Prefetch(slow, 0).iterate(Run()).is_ready is None
    dataset = Prefetch(slow, 2)
    assert (dataset.cardinality(), plain(dataset.at(2, Run())), dataset.node_number) == (3, 2, slow.node_number + 2)


def test_the_buffer_is_filled_once_it_is_asked(here: Here) -> None:
    counted, machine = ahead(3)
    assert (counted.calls, here.work) == (0, [])
    assert machine.is_ready is not None
    assert not machine.is_ready()
    assert plain(machine()) == 0
    assert (counted.calls, len(here.work)) == (1, 1)
    here.run()
    assert counted.calls == 4, "three ahead"
    assert machine.is_ready()
    assert plain(machine()) == 1
    assert (counted.calls, len(here.work)) == (4, 1)
    assert plain(machine()) == 2
    assert len(here.work) == 1, "a thread is on its way"
    here.run()
    assert counted.calls == 6
    assert drained(machine) == [3, 4, 5, 6, 7, 8]


def test_an_end_is_found_once(here: Here) -> None:
    counted, machine = ahead(9, count=3)
    machine()
    here.run()
    assert [plain(machine()) for _ in range(2)] == [1, 2]
    assert [machine(), machine()] == [None, None]
    assert (counted.calls, here.work) == (3, [])


def test_an_error_stands_in_its_place_and_nothing_is_made_behind_it(here: Here) -> None:
    calls: list[int] = []

    def body(n: Any) -> Any:
        calls.append(int(n))
        return failing(2)(n)

    machine = Prefetch(mapped(numbers(5), body), 4).iterate(Run())
    machine()
    here.run()
    assert calls == [0, 1, 2]
    assert told(machine, most=2) == [1, "no 2"]
    here.run()
    assert calls == [0, 1, 2, 3, 4]
    assert drained(machine) == [3, 4]


def test_a_bug_is_an_error_of_its_element(here: Here) -> None:
    def body(n: Any) -> Any:
        raise ZeroDivisionError("by zero")

    machine = Prefetch(mapped(numbers(2), body), 4).iterate(Run())
    with pytest.raises(errors.InternalError, match=r"^ZeroDivisionError: by zero$"):
        machine()


def test_a_run_that_is_closed_fills_nothing(here: Here) -> None:
    counted = Counted()
    run = Run()
    machine = Prefetch(mapped(numbers(9), counted), 4).iterate(run)
    machine()
    run.close()
    here.run()
    assert counted.calls == 1


@pytest.mark.parametrize("taken", range(6))
def test_what_stands_in_the_buffer_is_saved(here: Here, taken: int) -> None:
    dataset = Prefetch(mapped(numbers(5), failing(2)), 4)
    machine, other = dataset.iterate(Run()), dataset.iterate(Run())
    whole = [0, 1, "no 2", 3, 4]
    assert told(machine, most=taken) == whole[:taken]
    here.run()
    other()
    here.run()
    other.restore(machine.save())
    assert told(other) == whole[taken:]
    assert told(machine) == whole[taken:]


def test_the_end_is_saved(here: Here) -> None:
    counted, machine = ahead(9, count=2)
    _, other = ahead(9, count=2)
    assert drained(machine) == [0, 1]
    other.restore(machine.save())
    assert other() is None
    assert counted.calls == 2


class Noted:
    """An aggregator that remembers what it is given."""

    def __init__(self) -> None:
        self.figures: list[tuple[str, float]] = []

    def add_to_histogram(self, name: str, value: float, step: int) -> None:
        self.figures.append((name.rpartition("::")[2], value))

    add_scalar = add_to_histogram


def test_how_full_the_buffer_is_is_noted(here: Here) -> None:
    run, noted = Run(), Noted()
    run.aggregator = noted
    machine = Prefetch(numbers(9), 4).iterate(run)
    machine()
    assert noted.figures == [("buffer_utilization", 0.25), ("buffer_size", 1), ("buffer_capacity", 4)]
    here.run()
    noted.figures.clear()
    machine()
    assert noted.figures == [("buffer_utilization", 1), ("buffer_size", 4), ("buffer_capacity", 4)]


def test_a_thread_that_fills_goes_on_when_few_are_left() -> None:
    """It is woken by who takes one when half of them are gone, and looks by itself before it goes."""
    entered, go_on = threading.Semaphore(0), threading.Semaphore(0)

    def body(n: Any) -> Any:
        entered.release()
        assert go_on.acquire(timeout=SOON_S)
        return n

    go_on.release()
    machine = Prefetch(mapped(numbers(6), body), 2).iterate(Run())
    assert plain(machine()) == 0
    for _ in range(6):
        go_on.release()
    assert drained(machine) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("size", [1, 2, 3, 50])
def test_all_elements_come_in_order(size: int) -> None:
    assert drained(Prefetch(mapped(numbers(40), lambda n: n), size)) == list(range(40))
    empty = Prefetch(mapped(numbers(0), lambda n: n), size)
    assert drained(empty) == []


def inside(machine: Machine) -> Any:
    return machine.following.__self__  # type: ignore[attr-defined]


def test_who_fills_is_woken_when_half_of_a_buffer_is_left(here: Here) -> None:
    _, machine = ahead(4)
    buffer = inside(machine)
    machine()
    here.run()
    assert len(buffer._buffer) == 4
    buffer._is_filling = True
    machine()
    assert not buffer._is_low.is_set()
    machine()
    assert buffer._is_low.is_set(), "two of four"
    assert here.work == []


def test_who_has_looked_is_woken_by_the_next_alone(here: Here) -> None:
    _, machine = ahead(4)
    buffer = inside(machine)
    buffer._is_low.set()
    machine()
    here.run()
    assert not buffer._is_low.is_set()
    assert not buffer._is_filling


def test_who_waits_at_a_full_buffer_fills_it_when_it_is_woken(monkeypatch: pytest.MonkeyPatch) -> None:
    assert prefetch._PAUSE_S == 1e-3
    monkeypatch.setattr(prefetch, "_PAUSE_S", 2 * SOON_S)
    made = [threading.Event() for _ in range(9)]
    waits = threading.Event()

    class Low(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            waits.set()
            return super().wait(timeout)

    def body(n: Any) -> Any:
        made[int(n)].set()
        return n

    run = Run()
    machine = Prefetch(mapped(numbers(9), body), 2).iterate(run)
    low = inside(machine)._is_low = Low()
    assert plain(machine()) == 0
    assert waits.wait(SOON_S)
    assert not made[3].is_set()
    assert plain(machine()) == 1
    assert made[3].wait(SOON_S)
    run.close()
    low.set()
