"""Iterators over several devices: who gets which element, who waits for whom, and how it ends."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from support.dataset_machines import INT, SCALAR, numbers, result
from tenfold_core import dtypes, errors
from tenfold_kernels.resources.datasets import devices
from tenfold_kernels.resources.datasets.core import Dataset, Machine, Run
from tenfold_kernels.resources.datasets.devices import MultiDeviceIterator
from tenfold_kernels.resources.waiting import Waiting


def value(element: Any) -> Any:
    return None if element is None else element[0].item()


def test_elements_go_round_and_the_end_is_everyones() -> None:
    iterator = MultiDeviceIterator(INT, SCALAR, 2)
    first = iterator.start(numbers(5), 2)

    assert [result(iterator.get_next(shard, first, value)) for shard in (0, 1, 1, 0, 0)] == [0, 1, 3, 2, 4]
    assert [result(iterator.get_next(shard, first, value)) for shard in (1, 0)] == [None, None]


def test_a_shard_waits_until_another_takes_what_is_its_own() -> None:
    iterator = MultiDeviceIterator(INT, SCALAR, 2)
    first = iterator.start(numbers(9), 1)
    got = [result(iterator.get_next(0, first, value)) for _ in range(2)]
    waiting = iterator.get_next(0, first, value)
    assert isinstance(waiting, Waiting)

    assert [result(iterator.get_next(1, first, value)) for _ in range(2)] == [1, 3]
    assert (got, result(waiting)) == ([0, 2], 4)


def test_a_new_pass_ends_the_old_one() -> None:
    iterator = MultiDeviceIterator(INT, SCALAR, 1)
    first = iterator.start(numbers(3), 1)
    assert result(iterator.get_next(0, first, value)) == 0
    second = iterator.start(numbers(3), 1)

    with pytest.raises(errors.InvalidArgumentError, match=r"Invalid incarnation id. Provided: 1; Expected: 2"):
        iterator.get_next(0, first, value)
    with pytest.raises(errors.InvalidArgumentError, match="Invalid shard number 1"):
        iterator.get_next(1, second, value)
    assert result(iterator.get_next(0, second, value)) == 0


def test_closing_wakes_who_waits() -> None:
    iterator = MultiDeviceIterator(INT, SCALAR, 2)
    first = iterator.start(numbers(9), 1)
    result(iterator.get_next(0, first, value))
    result(iterator.get_next(0, first, value))
    waiting = iterator.get_next(0, first, value)
    iterator.close()

    with pytest.raises(errors.CancelledError, match="Cancelled Multidevice iterator"):
        result(waiting)


# ---- one thread after the other --------------------------------------------------------------------------------------


class Threads:
    """What was handed over, run when the test says so."""

    def __init__(self) -> None:
        self.work: list[Any] = []

    def submit(self, work: Any) -> None:
        self.work.append(work)

    def run(self) -> int:
        """How many pieces there were; each runs to its end."""
        count = 0
        while self.work:
            count += 1
            self.work.pop(0)()
        return count


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> Threads:
    found = Threads()
    monkeypatch.setattr(devices, "pool", found)
    return found


class Source(Dataset):
    """Numbers from 0; remembers its runs and how many were asked for."""

    def __init__(self, count: int = 100, before: Any = bool) -> None:
        super().__init__(INT, SCALAR)
        self._count, self.before = count, before
        self.runs: list[Run] = []
        self.asked = 0

    def iterate(self, run: Run) -> Machine:
        self.runs.append(run)
        at = 0

        def following() -> Any:
            nonlocal at
            self.asked += 1
            if at >= self._count:
                return None
            at += 1
            self.before(at - 1)
            return (np.array(at - 1),)

        return Machine(following)


def begun(source: Dataset, shards: int = 2, most: int = 2) -> tuple[MultiDeviceIterator, int]:
    iterator = MultiDeviceIterator(INT, SCALAR, shards)
    return iterator, iterator.start(source, most)


@pytest.mark.parametrize(("most", "size"), [(-1, 1), (0, 1), (1, 1), (2, 2), (4096, 4096), (4097, 4096)])
def test_how_many_elements_wait_for_a_shard(most: int, size: int) -> None:
    iterator, _ = begun(numbers(3), 2, most)
    assert iterator._pass is not None
    assert (iterator._pass._size, devices.MOST) == (size, 4096)


def test_buffers_are_filled_as_far_as_they_may(threads: Threads) -> None:
    source = Source()
    iterator, first = begun(source, 2, 2)
    assert source.asked == 0, "begun when it is asked"
    step = iterator.get_next(0, first, value)
    assert (threads.run(), result(step)) == (1, 0)
    assert source.asked == 5, "one was taken, two wait for each"
    assert result(iterator.get_next(0, first, value)) == 2
    assert threads.run() == 1
    assert source.asked == 5, "the next one is of the other, whose buffer is full"
    assert result(iterator.get_next(1, first, value)) == 1
    threads.run()
    assert source.asked == 7
    assert [result(iterator.get_next(1, first, value)) for _ in range(2)] == [3, 5]
    assert [result(iterator.get_next(0, first, value)) for _ in range(2)] == [4, 6]


def test_one_thread_at_a_time_fills(threads: Threads) -> None:
    iterator, first = begun(Source())
    steps = [iterator.get_next(shard, first, value) for shard in (1, 0, 1)]
    assert len(threads.work) == 1
    threads.run()
    assert [result(step) for step in steps] == [1, 0, 3]
    iterator.get_next(0, first, value)
    assert len(threads.work) == 1


def test_after_the_end_nobody_is_asked(threads: Threads) -> None:
    source = Source(3)
    iterator, first = begun(source)
    steps = [iterator.get_next(shard, first, value) for shard in (0, 1, 1, 0, 0)]
    threads.run()
    assert [result(step) for step in steps] == [0, 1, None, 2, None]
    assert source.asked == 4
    for shard in (0, 1):
        assert result(iterator.get_next(shard, first, value)) is None
    assert (threads.run(), source.asked) == (0, 4)


def test_what_waits_is_given_before_the_end(threads: Threads) -> None:
    iterator, first = begun(Source(3))
    iterator.get_next(1, first, value)
    threads.run()
    assert [result(iterator.get_next(0, first, value)) for _ in range(3)] == [0, 2, None]


def test_errors_come_in_their_turn(threads: Threads) -> None:
    def fail(n: int) -> None:
        if n == 1:
            raise errors.DataLossError(None, None, "torn")
        if n == 2:
            raise ZeroDivisionError("by zero")

    iterator, first = begun(Source(before=fail))
    steps = [iterator.get_next(0, first, value) for _ in range(2)]
    threads.run()
    assert result(steps[0]) == 0
    with pytest.raises(errors.InternalError, match=r"^ZeroDivisionError: by zero"):
        result(steps[1])
    with pytest.raises(errors.DataLossError, match="torn"):
        result(iterator.get_next(1, first, value))
    assert result(iterator.get_next(1, first, value)) == 3


def test_a_step_that_gives_up_leaves_its_element_to_the_next(threads: Threads) -> None:
    iterator, first = begun(Source())
    given_up, kept = iterator.get_next(0, first, value), iterator.get_next(0, first, value)
    assert iterator._pass is not None
    for _ in range(2):
        given_up.cancel()
        assert len(iterator._pass._lines[0]) == 1, "it is forgotten"
    threads.run()
    assert result(kept) == 0


def test_a_step_that_gives_up_while_its_element_is_made_leaves_it(threads: Threads) -> None:
    source = Source()
    iterator, first = begun(source)
    step = iterator.get_next(0, first, value)
    source.before = lambda n: step.cancel()
    threads.run()
    assert result(iterator.get_next(0, first, value)) == 0


def test_a_step_that_is_over_is_passed_over(threads: Threads) -> None:
    """It may give up between the moment in which it is found and the one in which it is claimed."""
    iterator, first = begun(Source())
    assert iterator._pass is not None
    gone = Waiting()
    gone.cancel()
    iterator._pass._lines[0].append(gone)
    step = iterator.get_next(0, first, value)
    threads.run()
    assert result(step) == 0
    assert not iterator._pass._lines[0]


def test_what_a_step_makes_of_its_element_may_fail(threads: Threads) -> None:
    def refuse(element: Any) -> Any:
        raise errors.OutOfRangeError(None, None, "not this one")

    iterator, first = begun(Source())
    step = iterator.get_next(0, first, refuse)
    threads.run()
    with pytest.raises(errors.OutOfRangeError, match="not this one"):
        result(step)
    with pytest.raises(errors.OutOfRangeError, match="not this one"):
        result(iterator.get_next(0, first, refuse))


def test_a_pass_that_is_closed_gives_up_its_run_and_those_who_wait(threads: Threads) -> None:
    source = Source()
    iterator, first = begun(source)
    steps = [iterator.get_next(shard, first, value) for shard in (0, 1)]
    iterator.start(source, 2)
    for step in steps:
        with pytest.raises(errors.CancelledError, match=r"^Cancelled Multidevice iterator"):
            result(step)
    assert [run.is_closed for run in source.runs] == [True, False]
    threads.run()
    assert source.asked == 0, "what was to be filled is over"
    iterator.close()
    assert source.runs[1].is_closed
    iterator.close()
    with pytest.raises(errors.InvalidArgumentError, match="Provided: 2; Expected: 2"):
        iterator.get_next(0, 2, value)


def test_a_thread_that_fills_hears_of_steps_of_its_own_pass(threads: Threads) -> None:
    source = Source()
    iterator, first = begun(source)
    run = source.runs[0]
    run.cancel(threading.get_ident())
    source.before = lambda n: run.check()
    step = iterator.get_next(0, first, value)
    threads.run()
    assert result(step) == 0


def test_a_dataset_must_be_of_the_iterator_s_types_and_shards_must_be_there() -> None:
    with pytest.raises(errors.InvalidArgumentError, match="Data type mismatch at component 0"):
        MultiDeviceIterator((dtypes.string,), SCALAR, 2).start(numbers(3), 1)
    with pytest.raises(errors.InvalidArgumentError, match="Provided: 0; Expected: 0"):
        MultiDeviceIterator(INT, SCALAR, 2).get_next(0, 0, value)
    iterator, first = begun(numbers(3), 2)
    for shard in (-1, 2):
        with pytest.raises(errors.InvalidArgumentError, match=f"^Invalid shard number {shard}: the iterator has 2 dev"):
            iterator.get_next(shard, first, value)


@pytest.mark.parametrize("ahead", [True, False])
@pytest.mark.parametrize("shards", [1, 3, 4])
def test_elements_go_round_all_shards(threads: Threads, shards: int, ahead: bool) -> None:
    """Those that wait in buffers, and those that steps wait for."""
    iterator, first = begun(Source(), shards, 3)
    if ahead:
        iterator.get_next(0, first, value)
        threads.run()
    steps = [(shard, iterator.get_next(shard, first, value)) for _ in range(2) for shard in range(shards)]
    threads.run()
    found = [(shard, result(step)) for shard, step in steps]
    behind = [0] * shards
    behind[0] = shards if ahead else 0
    assert found == [(shard, shard + behind[shard] + turn * shards) for turn in range(2) for shard in range(shards)]
