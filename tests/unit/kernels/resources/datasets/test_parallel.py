"""Parallel maps: order, errors, calls that meet, and steps that give up."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from support.dataset_machines import ANY, INT, SCALAR, SOON_S, AtOnce, Called, drained, numbers, plain, result
from support.dataset_machines import mapped as plainly_mapped
from tenfold_core import errors
from tenfold_kernels.resources.datasets import parallel
from tenfold_kernels.resources.datasets.batches import Batch
from tenfold_kernels.resources.datasets.core import Dataset, Machine, Run
from tenfold_kernels.resources.datasets.iterators import DatasetIterator
from tenfold_kernels.resources.datasets.parallel import ParallelMap
from tenfold_kernels.resources.waiting import Waiting


@pytest.fixture(autouse=True)
def every_call_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "_LONG", 0.0)


def mapped(count: int, body: Any, calls: int = 3, in_order: bool = True) -> ParallelMap:
    return ParallelMap(INT, ANY, numbers(count), Called(body), (), True, calls, in_order)


def test_calls_run_side_by_side_and_come_out_in_order() -> None:
    meeting = threading.Barrier(3)

    def body(n: Any) -> Any:
        if n < 3:
            meeting.wait(SOON_S)
        return n * 10

    assert drained(mapped(20, body)) == [n * 10 for n in range(20)]


def test_every_element_comes_where_order_does_not_matter() -> None:
    gate = threading.Event()

    def body(n: Any) -> Any:
        if n == 0:
            assert gate.wait(SOON_S)
        elif n == 1:
            gate.set()
        return n

    assert sorted(drained(mapped(9, body, calls=2, in_order=False))) == list(range(9))


def test_an_error_stands_where_its_element_would() -> None:
    def body(n: Any) -> Any:
        if n == 2:
            raise errors.InvalidArgumentError(None, None, "two")
        return n

    machine = mapped(5, body).iterate(Run())
    assert [machine()[0].item() for _ in range(2)] == [0, 1]  # type: ignore[index]
    with pytest.raises(errors.InvalidArgumentError, match="two"):
        machine()
    assert drained(machine) == [3, 4]


def test_a_step_that_gives_up_loses_no_element() -> None:
    gate, entered = threading.Event(), threading.Event()

    def body(n: Any) -> Any:
        if n == 1:
            entered.set()
            assert gate.wait(SOON_S)
        return n

    iterator = DatasetIterator(INT, ANY)
    iterator.start(mapped(4, body))
    assert result(iterator.get_next(lambda e: e[0].item())) == 0
    step = iterator.get_next(lambda e: e[0].item())
    assert entered.wait(SOON_S)
    step.cancel()
    gate.set()

    assert [result(iterator.get_next(lambda e: e[0].item())) for _ in range(3)] == [1, 2, 3]


def test_blocks_and_elements_are_of_one_pass() -> None:
    doubled = AtOnce(lambda n: n * 2, lambda n: n * 2)
    dataset = ParallelMap(INT, SCALAR, numbers(10), doubled, (), True, 3, True)
    assert drained(Batch(INT, ANY, dataset, 4, False)) == [[0, 2, 4, 6], [8, 10, 12, 14], [16, 18]]
    machine = dataset.iterate(Run())
    assert machine.following() is not None
    assert machine.block is not None
    assert machine.block(3) is None, "elements are being made already"


def test_a_number_of_calls_that_is_none() -> None:
    with pytest.raises(errors.InvalidArgumentError, match="num_parallel_calls must be greater than zero"):
        mapped(3, lambda n: n, calls=0)


def test_options_that_ask_for_no_order_hold_for_maps() -> None:
    """A first call that waits for the second does not hold it up, though calls were short before."""
    second = threading.Event()

    def body(n: Any) -> Any:
        if n == 0:
            assert second.wait(SOON_S)
        second.set()
        return n

    run = Run()
    run.is_sloppy = True
    machine = mapped(2, body, calls=2).iterate(run)

    assert sorted(drained(machine)) == [0, 1]


# -- calls without threads: work is kept until a test does it ----------------------------------------------------------


class Here:
    """In place of the pool."""

    def __init__(self) -> None:
        self.work: list[Any] = []

    def submit(self, work: Any) -> None:
        self.work.append(work)

    def run(self, *numbers: int) -> None:
        """Does the work of these numbers, in this order; all without any."""
        for work in [self.work[number] for number in numbers] if numbers else self.work:
            work()
        if not numbers:
            self.work.clear()


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Here:
    found = Here()
    monkeypatch.setattr(parallel, "pool", found)
    return found


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The clock, which calls move on."""
    seconds = [0.0]
    monkeypatch.setattr(parallel.time, "perf_counter", lambda: seconds[0])
    monkeypatch.setattr(parallel, "_LONG", 3e-4)
    return seconds


class Body:
    """Gives its element back after some time, and remembers which it was called for."""

    def __init__(self, now: list[float] | None = None, seconds: float = 0.0, fails: tuple[int, ...] = ()) -> None:
        self.seen: list[int] = []
        self._now, self._seconds, self._fails = now if now is not None else [0.0], seconds, fails

    def __call__(self, n: Any) -> Any:
        self.seen.append(int(n))
        self._now[0] += self._seconds
        if n in self._fails:
            raise errors.DataLossError(None, None, f"no {n}")
        return n


@pytest.mark.parametrize(("calls", "most"), [(1, 1), (2, 2), (32, 32), (33, 32)])
def test_how_many_calls_there_are_at_once(calls: int, most: int) -> None:
    assert parallel.MOST_CALLS == 32
    assert mapped(3, Body(), calls=calls)._calls == most


def test_their_number_may_be_left_to_us(monkeypatch: pytest.MonkeyPatch) -> None:
    for cores, most in ((3, 3), (100, 32), (None, 1)):
        monkeypatch.setattr(parallel.os, "cpu_count", lambda cores=cores: cores)
        assert mapped(3, Body(), calls=-1)._calls == most
    with pytest.raises(errors.InvalidArgumentError, match="num_parallel_calls"):
        mapped(3, Body(), calls=-2)


def test_one_call_at_a_time_is_a_plain_map(here: Here) -> None:
    assert drained(mapped(5, Body(), calls=1)) == [0, 1, 2, 3, 4]
    assert here.work == []
    assert mapped(5, Body(), calls=1).iterate(Run()).is_ready is None


def test_long_calls_are_begun_ahead_and_come_in_order(here: Here) -> None:
    body = Body()
    machine = mapped(6, body).iterate(Run())
    assert machine.is_ready is not None
    assert plain(machine()) == 0
    assert (body.seen, len(here.work)) == ([0], 3), "no thread has begun: it is made here"
    assert not machine.is_ready()
    here.run(2, 1)
    assert body.seen == [0, 2, 1]
    assert machine.is_ready()
    assert [plain(machine()) for _ in range(2)] == [1, 2]
    here.run(0)
    assert body.seen == [0, 2, 1], "made once"
    assert [plain(e) for e in iter(machine, None)] == [3, 4, 5]
    assert machine() is None
    assert sorted(body.seen) == [0, 1, 2, 3, 4, 5]


def test_a_thread_makes_nothing_for_a_run_that_is_closed(here: Here) -> None:
    body, run = Body(), Run()
    machine = mapped(6, body).iterate(run)
    machine()
    run.close()
    here.run()
    assert body.seen == [0]


def test_short_calls_are_made_one_by_one(here: Here, now: list[float]) -> None:
    body = Body(now, 1e-4)
    machine = mapped(6, body).iterate(Run())
    assert [plain(e) for e in iter(machine, None)] == [0, 1, 2, 3, 4, 5]
    assert (here.work, body.seen) == ([], [0, 1, 2, 3, 4, 5])
    assert machine() is None


def test_calls_that_prove_long_are_begun_ahead(here: Here, now: list[float]) -> None:
    """The average of 1 ms is known by quarters: 0.25 ms after the first call, 0.44 after the second."""
    body = Body(now, 1e-3)
    machine = mapped(9, body).iterate(Run())
    for taken in (1, 2):
        machine()
        assert (len(here.work), len(body.seen)) == (0, taken)
    machine()
    assert len(here.work) == 3
    here.run()
    body._seconds = 0.0
    assert [plain(machine()) for _ in range(6)] == [3, 4, 5, 6, 7, 8]
    assert machine() is None


@pytest.mark.parametrize(("made", "begun"), [(15, 2), (16, 0)])
def test_without_order_calls_are_short_only_when_enough_have_shown_it(
    here: Here, now: list[float], monkeypatch: pytest.MonkeyPatch, made: int, begun: int
) -> None:
    monkeypatch.setattr(parallel, "_PATIENCE_S", 0.0)
    calls = parallel._Calls(numbers(9).iterate(Run()), Run(), lambda run, element: element, 2, False, None)
    calls._made = made
    assert plain(calls.following()) == 0
    assert len(here.work) == begun


def test_an_error_of_the_input_is_one_element(here: Here) -> None:
    source = plainly_mapped(numbers(4), Body(fails=(1,)))
    machine = ParallelMap(INT, ANY, source, Called(Body()), (), True, 3, True).iterate(Run())
    assert told_all(machine) == [0, "no 1", 2, 3]


def told_all(machine: Any) -> list[Any]:
    found: list[Any] = []
    while True:
        try:
            element = machine()
        except errors.DataLossError as error:
            found.append(error.message)
            continue
        if element is None:
            return found
        found.append(plain(element))


def test_a_bug_is_an_error_of_its_element(here: Here) -> None:
    def body(n: Any) -> Any:
        raise ZeroDivisionError("by zero")

    with pytest.raises(errors.InternalError, match=r"^ZeroDivisionError: by zero$"):
        mapped(2, body).iterate(Run())()


@pytest.mark.parametrize("taken", range(7))
def test_what_is_being_made_is_saved_with_its_errors(here: Here, taken: int) -> None:
    whole = [0, "no 1", 2, 3, "no 4", 5]
    dataset = mapped(6, Body(fails=(1, 4)))
    machine, other = dataset.iterate(Run()), dataset.iterate(Run())
    for wanted in whole[:taken]:
        if isinstance(wanted, str):
            with pytest.raises(errors.DataLossError, match=wanted):
                machine()
        else:
            assert plain(machine()) == wanted
    here.run()
    other()
    other.restore(machine.save())
    assert told_all(other) == whole[taken:]
    assert told_all(machine) == whole[taken:]


def test_blocks_rest_while_elements_are_being_made(here: Here) -> None:
    doubled = AtOnce(lambda n: n * 2, lambda n: n * 2)
    machine = ParallelMap(INT, SCALAR, numbers(10), doubled, (), True, 2, True).iterate(Run())
    assert machine.block is not None
    found = machine.block(3)
    assert found is not None
    assert found[0].tolist() == [0, 2, 4]
    assert plain(machine()) == 6
    assert machine.block(3) is None
    assert [plain(machine()) for _ in range(6)] == [8, 10, 12, 14, 16, 18]
    assert machine() is None
    assert machine.block(3) is None


def test_what_comes_first_is_taken_where_order_does_not_matter(here: Here) -> None:
    machine = mapped(4, Body(), calls=3, in_order=False).iterate(Run())
    submit, count = here.submit, [0]

    def third_at_once(work: Any) -> None:
        count[0] += 1
        work() if count[0] == 3 else submit(work)

    here.submit = third_at_once  # type: ignore[method-assign]
    assert plain(machine()) == 2
    here.run(1)
    assert plain(machine()) == 1


def test_who_waits_long_for_the_pool_makes_one_itself(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "_PATIENCE_S", 0.0)
    body = Body()
    machine = mapped(4, body, calls=3, in_order=False).iterate(Run())
    assert plain(machine()) == 0
    assert (body.seen, len(here.work)) == ([0], 3)
    assert [plain(e) for e in iter(machine, None)] == [1, 2, 3]
    assert machine() is None


class Noted:
    """An aggregator that remembers names and values."""

    def __init__(self) -> None:
        self.figures: list[tuple[str, float]] = []

    def add_to_histogram(self, name: str, value: float, step: int) -> None:
        self.figures.append((name.rpartition("::")[2], value))

    add_scalar = add_to_histogram


@pytest.mark.parametrize("calls", [1, 2])
def test_calls_and_threads_are_noted(here: Here, monkeypatch: pytest.MonkeyPatch, calls: int) -> None:
    nanoseconds = iter(range(0, 10_000, 7))
    monkeypatch.setattr(parallel.time, "perf_counter_ns", lambda: next(nanoseconds))
    run, noted = Run(), Noted()
    run.aggregator = noted
    machine = mapped(3, Body(fails=(1,)), calls=calls).iterate(run)
    assert machine.block is None
    assert told_all(machine) == [0, "no 1", 2]
    assert [figure for figure in noted.figures if figure[0] == "execution_time"] == [("execution_time", 7)] * 3
    assert [value for name, value in noted.figures if name == "thread_utilization"] == [0] * 4


class Noticed(dict[Any, Any]):
    """Waits of a run; says when one is put there."""

    def __init__(self) -> None:
        super().__init__()
        self.has_one = threading.Event()

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, value)
        self.has_one.set()


def test_to_save_waits_for_what_a_thread_makes(here: Here) -> None:
    entered, gate = threading.Event(), threading.Event()

    def body(n: Any) -> Any:
        if n == 1:
            entered.set()
            assert gate.wait(SOON_S)
        return n

    run, saved = Run(), list[Any]()
    waits = run._waits = Noticed()
    machine = mapped(6, body).iterate(run)
    assert plain(machine()) == 0
    at_work = threading.Thread(target=here.work[1])
    at_work.start()
    assert entered.wait(SOON_S)
    saving = threading.Thread(target=lambda: saved.append(machine.save()))
    saving.start()
    assert waits.has_one.wait(SOON_S), "it waits"
    gate.set()
    for thread in (at_work, saving):
        thread.join(SOON_S)
    other = mapped(6, Body()).iterate(Run())
    other.restore(saved[0])
    assert [plain(e) for e in iter(other, None)] == [1, 2, 3, 4, 5]


def test_a_thread_of_the_pool_hears_of_its_own_step(here: Here) -> None:
    """The one before may have been given up on the same thread."""
    answer = Waiting()
    answer.complete([np.asarray(7)])
    run = Run()
    machine = mapped(3, lambda n: answer if n == 1 else n).iterate(run)
    assert plain(machine()) == 0
    run.cancel(threading.get_ident())
    here.run(1)
    assert plain(machine()) == 7


class Scalars:
    """An aggregator that remembers how busy the threads were."""

    def __init__(self) -> None:
        self.found: list[float] = []

    def add_to_histogram(self, name: str, value: float, step: int) -> None:
        pass

    def add_scalar(self, name: str, value: float, step: int) -> None:
        assert name.endswith("::thread_utilization")
        self.found.append(value)


def test_how_many_calls_are_under_way_is_noted(here: Here) -> None:
    run, noted = Run(), Scalars()
    run.aggregator = noted
    machine = mapped(9, Body(), calls=4).iterate(run)
    machine()
    here.run(1)
    window = machine.following.__self__._window  # type: ignore[attr-defined]
    assert window[1].claim()
    machine()
    assert noted.found == [0, 0.25], "what is made and what nobody has begun is not under way"


@pytest.mark.parametrize("is_short", [True, False])
def test_an_end_is_not_asked_for_twice(here: Here, monkeypatch: pytest.MonkeyPatch, is_short: bool) -> None:
    monkeypatch.setattr(parallel, "_LONG", float("inf") if is_short else 0.0)
    asked: list[int] = []

    class Source(Dataset):
        def iterate(self, run: Run) -> Machine:
            machine = numbers(2).iterate(run)
            return Machine(lambda: asked.append(1) or machine.following(), machine.save, machine.restore)  # type: ignore[func-returns-value]

    dataset = ParallelMap(INT, ANY, Source(INT, SCALAR), Called(Body()), (), True, 3, True)
    machine = dataset.iterate(Run())
    assert [plain(machine()), plain(machine()), machine(), machine()] == [0, 1, None, None]
    assert len(asked) == 3
    other = dataset.iterate(Run())
    other.restore(machine.save())
    assert other() is None
    assert len(asked) == 3


def test_a_call_takes_the_time_from_its_begin_to_its_end(now: list[float]) -> None:
    """A quarter of the average is the last one; alone, or among several."""
    now[0] = 100.0
    body = Body(now, 1e-3)
    calls = parallel._Calls(numbers(9).iterate(Run()), Run(), lambda run, n: (body(n[0]),), 2, True, None)
    calls.following()
    assert calls._seconds == pytest.approx(0.25e-3)
    calls._make(parallel._Slot((np.asarray(1),)))
    assert calls._seconds == pytest.approx(0.4375e-3)
    assert calls._made == 1
