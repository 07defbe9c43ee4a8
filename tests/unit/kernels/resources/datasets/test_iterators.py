"""The line of an iterator's steps, one thread after the other: what is served, kept, given up and told.

The pool is a list here, so that a test says when a thread takes over what it was given.
"""

from __future__ import annotations

import gc
import threading
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from support.dataset_machines import ANY, INT, SCALAR, SOON_S, Called, failing, mapped, numbers, result
from tenfold_core import dtypes, errors
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.resources.datasets import iterators
from tenfold_kernels.resources.datasets.core import Dataset, Machine, Run
from tenfold_kernels.resources.datasets.functional import Map
from tenfold_kernels.resources.datasets.iterators import DatasetIterator, verify
from tenfold_kernels.resources.waiting import Waiting

if TYPE_CHECKING:
    from collections.abc import Callable


def number(element: Any) -> Any:
    return None if element is None else int(element[0])


class Threads:
    """What was handed over, run when the test says so."""

    def __init__(self) -> None:
        self.work: list[Callable[[], None]] = []

    def submit(self, work: Callable[[], None]) -> None:
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
    monkeypatch.setattr(iterators, "pool", found)
    return found


class Source(Dataset):
    """Numbers from 0; says which runs there were, and whether an element stands ready."""

    def __init__(self, count: int = 100, is_slow: bool = False) -> None:
        super().__init__(INT, SCALAR)
        self.is_slow, self._count = is_slow, count
        self.ready = False
        self.runs: list[Run] = []
        self.asked = 0
        #: Called by the machine before it gives an element.
        self.before: Callable[[], None] = bool

    def iterate(self, run: Run) -> Machine:
        self.runs.append(run)
        at = 0

        def following() -> Any:
            nonlocal at
            self.asked += 1
            self.before()
            if at == self._count:
                return None
            at += 1
            return (np.array(at - 1),)

        def restore(state: Any) -> None:
            nonlocal at
            at = state

        return Machine(following, lambda: at, restore, is_ready=lambda: self.ready)


def started(dataset: Dataset) -> DatasetIterator:
    iterator = DatasetIterator((), ())
    iterator.start(dataset)
    return iterator


# ---- at once, or in the line -----------------------------------------------------------------------------------------


def test_quick_elements_are_given_at_once_on_the_steps_thread(threads: Threads) -> None:
    iterator = started(Source(2))
    assert [iterator.get_next(number) for _ in range(4)] == [0, 1, None, None]
    assert threads.run() == 0


def test_an_end_is_not_asked_for_twice(threads: Threads) -> None:
    source = Source(1)
    iterator = started(source)
    assert [iterator.get_next(number) for _ in range(4)] == [0, None, None, None]
    assert source.asked == 2


def test_slow_elements_are_made_by_a_thread_unless_one_stands_ready(threads: Threads) -> None:
    source = Source(is_slow=True)
    iterator = started(source)
    first = iterator.get_next(number)
    assert isinstance(first, Waiting)
    assert source.asked == 0
    assert threads.run() == 1
    assert result(first) == 0
    source.ready = True
    assert iterator.get_next(number) == 1
    source.ready = False
    assert isinstance(iterator.get_next(number), Waiting)
    assert threads.run() == 1


def test_a_machine_that_cannot_tell_whether_it_is_ready_is_slow(threads: Threads) -> None:
    iterator = started(Map(INT, ANY, numbers(2), Called(lambda n: n), ()))
    assert isinstance(iterator.get_next(number), Waiting)


def test_one_thread_serves_all_that_wait_in_their_order(threads: Threads) -> None:
    iterator = started(Source(is_slow=True))
    steps = [iterator.get_next(number) for _ in range(3)]
    assert threads.run() == 1
    assert [result(step) for step in steps] == [0, 1, 2]


def test_steps_that_come_while_an_element_is_made_wait_for_theirs(threads: Threads) -> None:
    source = Source()
    iterator = started(source)
    later: list[Any] = []

    def ask_too() -> None:
        source.before = bool
        later.append(iterator.get_next(number))
        assert isinstance(later[0], Waiting), "one at a time is at the machine"
        assert not threads.work, "the thread that is there passes it on"

    source.before = ask_too
    assert iterator.get_next(number) == 0
    assert threads.run() == 1
    assert result(later[0]) == 1
    assert iterator.get_next(number) == 2


def test_a_step_that_fails_at_once_makes_way_for_the_next(threads: Threads) -> None:
    def fail() -> None:
        raise errors.DataLossError(None, None, "torn")

    source = Source()
    iterator = started(source)
    source.before = fail
    with pytest.raises(errors.DataLossError, match="torn"):
        iterator.get_next(number)
    source.before = bool
    assert iterator.get_next(number) == 0


@pytest.mark.parametrize(
    ("raised", "kind", "text"),
    [
        (errors.DataLossError(None, None, "torn"), errors.DataLossError, "^torn"),
        (ZeroDivisionError("by nothing"), errors.InternalError, r"^ZeroDivisionError: by nothing"),
    ],
)
def test_an_error_goes_to_its_step_alone(raised: Exception, kind: Any, text: str, threads: Threads) -> None:
    def fail() -> None:
        source.before = bool
        raise raised

    source = Source(is_slow=True)
    iterator = started(source)
    source.before = fail
    first, second = iterator.get_next(number), iterator.get_next(number)
    threads.run()
    with pytest.raises(kind, match=text):
        result(first)
    assert result(second) == 0


# ---- steps that end --------------------------------------------------------------------------------------------------


def test_a_step_that_leaves_the_line_takes_nothing(threads: Threads) -> None:
    source = Source(is_slow=True)
    iterator = started(source)
    first, second = iterator.get_next(number), iterator.get_next(number)
    first.cancel()
    threads.run()
    assert result(second) == 0
    assert source.asked == 1


def test_a_step_that_leaves_the_line_is_forgotten(threads: Threads) -> None:
    """A step holds what it asked for; many may come and go while one element is made."""

    def finish(element: Any) -> Any:
        return number(element)

    iterator = started(Source(is_slow=True))
    steps = [iterator.get_next(number), iterator.get_next(finish)]
    held = weakref.ref(finish)
    del finish
    steps[1].cancel()
    steps.pop()
    gc.collect()
    assert held() is None
    threads.run()
    assert result(steps[0]) == 0


def test_a_line_that_is_empty_when_its_thread_comes_leaves_the_machine_free(threads: Threads) -> None:
    source = Source(is_slow=True)
    iterator = started(source)
    iterator.get_next(number).cancel()
    threads.run()
    source.ready = True
    assert iterator.get_next(number) == 0


def test_an_element_that_its_step_could_not_have_is_the_next_ones_at_once(threads: Threads) -> None:
    source = Source(is_slow=True)
    iterator = started(source)
    step = iterator.get_next(number)
    source.before = step.cancel
    threads.run()
    source.before = bool
    assert (source.asked, iterator.get_next(number)) == (1, 0), "it waits for nobody"
    step = iterator.get_next(number)
    threads.run()
    assert result(step) == 1


def test_an_element_of_a_run_that_is_over_is_dropped(threads: Threads) -> None:
    source = Source(is_slow=True)
    iterator = started(source)
    step = iterator.get_next(number)

    def start_anew() -> None:
        step.cancel()
        iterator.start(Source(is_slow=True))

    source.before = start_anew
    threads.run()
    step = iterator.get_next(number)
    assert isinstance(step, Waiting), "nothing of the first run is left"
    threads.run()
    assert result(step) == 0


def test_the_end_of_a_run_that_is_over_is_not_that_of_the_next(threads: Threads) -> None:
    source = Source(0)
    iterator = started(source)
    source.before = lambda: iterator.start(Source(2))
    assert iterator.get_next(number) is None
    assert [iterator.get_next(number) for _ in range(3)] == [0, 1, None]


def test_a_step_that_ends_gives_up_the_element_that_is_made_for_it_and_no_other(threads: Threads) -> None:
    source = Source(is_slow=True)
    iterator = started(source)
    first, second, third = (iterator.get_next(number) for _ in range(3))
    checks: list[bool] = []

    def look() -> None:
        source.before = source.runs[0].check
        for ends in (bool, third.cancel, first.cancel):
            ends()
            checks.append(False)
            try:
                source.runs[0].check()
            except errors.CancelledError:
                checks[-1] = True
                raise

    source.before = look
    threads.run()
    assert checks == [False, False, True], "only that of the step that was served"
    assert result(second) == 0, "the thread goes on for the next step"


# ---- runs ------------------------------------------------------------------------------------------------------------


def test_a_run_is_closed_by_the_next_by_the_end_of_work_and_with_the_iterator() -> None:
    source = Source()
    iterator = started(source)
    iterator.start(source)
    assert [run.is_closed for run in source.runs] == [True, False]
    iterator.end_work()
    assert source.runs[1].is_closed
    iterator.start(source)
    del iterator
    gc.collect()
    assert [run.is_closed for run in source.runs] == [True] * 3


def test_several_steps_start_an_iterator_once() -> None:
    source, iterator = Source(), DatasetIterator((), ())
    assert not iterator.is_started
    iterator.start_once(source)
    assert iterator.is_started
    assert iterator.get_next(number) == 0
    iterator.start_once(source)
    assert iterator.get_next(number) == 1
    assert len(source.runs) == 1


# ---- what is remembered ----------------------------------------------------------------------------------------------


def test_an_end_is_remembered(threads: Threads) -> None:
    iterator = started(Source(1))
    assert [iterator.get_next(number) for _ in range(2)] == [0, None]
    step = iterator.save(dict)
    threads.run()
    saved = result(step)
    assert saved == {"is_over": True, "unread": [], "machine": 1}

    source = Source(5)
    other = started(source)
    other.restore(saved)
    assert other.get_next(number) is None
    assert source.asked == 0
    assert [run.is_closed for run in source.runs] == [True, False]


def test_elements_that_wait_for_a_step_are_remembered(threads: Threads) -> None:
    source = Source(is_slow=True)
    iterator = started(source)
    step = iterator.get_next(number)
    source.before = step.cancel
    threads.run()
    saving, later = iterator.save(dict), iterator.get_next(number)
    threads.run()
    saved = result(saving)
    assert ([number(element) for element in saved["unread"]], saved["machine"]) == ([0], 1)
    assert result(later) == 0

    other = started(Source(is_slow=True))
    other.restore({**saved, "unread": [list(element) for element in saved["unread"]]})
    assert other.get_next(number) == 0


def test_to_save_waits_for_what_was_asked_before(threads: Threads) -> None:
    iterator = started(Source(is_slow=True))
    step, saving = iterator.get_next(number), iterator.save(lambda state: state["machine"])
    assert threads.run() == 1
    assert (result(step), result(saving)) == (0, 1)


@pytest.mark.parametrize("state", [{}, {"machine": 1}, {"machine": 1, "unread": []}, None, {"machine": 1, "unread": 5}])
def test_what_is_no_state_is_refused_and_changes_nothing(state: Any) -> None:
    iterator = started(Source())
    assert iterator.get_next(number) == 0
    with pytest.raises(errors.DataLossError, match=r"^The saved state is not that of an iterator over this dataset"):
        iterator.restore(state)
    assert iterator.get_next(number) == 1


def test_an_iterator_without_functions_is_saved_also_where_all_must_be() -> None:
    assert result(started(Source()).save(lambda state: state["machine"], is_all=True)) == 0
    with pytest.raises(errors.FailedPreconditionError, match=r"^Save\(\) failed because the iterator has not been"):
        DatasetIterator((), ()).save(dict, is_all=True)


# ---- with the pool's own threads -------------------------------------------------------------------------------------


def test_errors_and_elements_come_in_their_order_through_threads() -> None:
    iterator = started(mapped(numbers(4), failing(1, 2)))
    found: list[Any] = []
    for step in [iterator.get_next(number) for _ in range(6)]:
        try:
            found.append(result(step))
        except errors.InvalidArgumentError as error:
            found.append(error.message)
    assert found == [0, "no 1", "no 2", 3, None, None]


def test_a_step_and_a_thread_are_never_at_the_machine_together() -> None:
    inside, entered, released = threading.Semaphore(1), threading.Event(), threading.Event()

    def before() -> None:
        assert inside.acquire(blocking=False), "two at a time"
        entered.set()
        assert released.wait(SOON_S)
        inside.release()

    source = Source()
    source.before = before
    iterator = started(source)
    found: list[Any] = []
    other = threading.Thread(target=lambda: found.append(iterator.get_next(number)))
    other.start()
    assert entered.wait(SOON_S)
    steps = [iterator.get_next(number) for _ in range(3)]
    released.set()
    other.join(SOON_S)
    assert found == [0]
    assert [result(step) for step in steps] == [1, 2, 3]


# ---- what was declared -----------------------------------------------------------------------------------------------


def shapes(*given: Any) -> tuple[TensorShape, ...]:
    return tuple(TensorShape(shape) for shape in given)


@pytest.mark.parametrize(
    ("types", "declared", "given", "found", "text"),
    [
        (INT, shapes([]), INT * 2, shapes([], []), "Number of components does not match: expected 1 types but got 2."),
        (INT * 2, shapes([], []), INT, shapes([]), "Number of components does not match: expected 2 types but got 1."),
        (
            INT * 2, shapes([], []), (dtypes.int64, dtypes.string), shapes([], []),
            "Data type mismatch at component 1: expected int64 but got string.",
        ),
        (INT * 2, shapes([], [2]), INT * 2, shapes([], [3]), "Incompatible shapes at component 1: expected (2,) but"),
    ],
)  # fmt: skip
def test_other_elements_than_declared(types: Any, declared: Any, given: Any, found: Any, text: str) -> None:
    with pytest.raises(errors.InvalidArgumentError) as refused:
        verify(types, declared, given, found)
    assert refused.value.message.startswith(text)


def test_elements_that_may_be_what_was_declared() -> None:
    verify((), (), INT, SCALAR)
    verify(INT * 2, shapes(None, [2, None]), INT * 2, shapes([7], [None, 3]))
    verify(INT, (), INT, SCALAR)
