"""Turns between datasets: of a cycle that is filled, of given ones; contrib's errors are an element each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.dataset_machines import INT, SCALAR, Called, drained, failing, mapped, numbers, one, plain, told
from tenfold_core import errors
from tenfold_kernels.resources.datasets import interleave
from tenfold_kernels.resources.datasets.core import INFINITE, UNKNOWN, Dataset, Machine, Run
from tenfold_kernels.resources.datasets.functional import Filter
from tenfold_kernels.resources.datasets.interleave import Directed, Fastest, Interleave
from tenfold_kernels.resources.datasets.prefetch import Prefetch
from tenfold_kernels.resources.datasets.sources import Listed, Range, Tensors
from tenfold_kernels.resources.datasets.transforms import Repeat


def repeated(n: Any) -> Any:
    if n == 5:
        raise errors.InvalidArgumentError(None, None, "no five")
    return Repeat(Tensors(INT, SCALAR, (np.asarray(n),)), int(n)).as_array()


def turns(fails_in: str, block: int = 1) -> Machine:
    """Of 4 fours, a five that fails, and 6 sixes; two are open at once."""
    source = Range(INT, SCALAR, 4, 7, 1)
    numbered = mapped(source, failing(5)) if fails_in == "the input" else source
    return Interleave(
        INT, SCALAR, numbered, Called(repeated), (), cycle=2, block=block, ahead=1, fills_at_once=True
    ).iterate(Run())


@pytest.mark.parametrize(("fails_in", "message"), [("the input", "no 5"), ("the function", "no five")])
def test_an_error_is_one_element_in_its_turn(fails_in: str, message: str) -> None:
    assert told(turns(fails_in)) == [4, message, 4, 4, 6, 4, 6, 6, 6, 6, 6]


def test_an_error_that_was_not_told_yet_is_saved() -> None:
    machine = turns("the function")
    assert plain(machine()) == 4
    other = turns("the function")

    other.restore(machine.save())

    assert told(other) == told(machine) == ["no five", 4, 4, 6, 4, 6, 6, 6, 6, 6]


def test_an_error_that_was_told_is_not_told_again_by_one_that_is_restored() -> None:
    machine, other = turns("the function"), turns("the function")
    assert plain(machine()) == 4
    with pytest.raises(errors.InvalidArgumentError):
        machine()

    other.restore(machine.save())

    assert told(other) == told(machine)


# -- cycles, blocks, and turns between given datasets ------------------------------------------------------------------


def interleaved(count: int, **options: int) -> Interleave:
    """Of 1 one, 2 twos, …"""
    return Interleave(INT, SCALAR, Range(INT, SCALAR, 1, count + 1, 1), Called(repeated), (), **options)


@pytest.mark.parametrize(
    ("cycle", "block", "wanted"),
    [
        (1, 1, [1, 2, 2, 3, 3, 3, 4, 4, 4, 4]),
        (2, 1, [1, 2, 2, 3, 3, 4, 3, 4, 4, 4]),
        (2, 2, [1, 2, 2, 3, 3, 3, 4, 4, 4, 4]),
        (3, 1, [1, 2, 3, 2, 3, 4, 3, 4, 4, 4]),
        (3, 2, [1, 2, 2, 3, 3, 4, 4, 3, 4, 4]),
        (9, 1, [1, 2, 3, 4, 2, 3, 4, 3, 4, 4]),
        (9, 3, [1, 2, 2, 3, 3, 3, 4, 4, 4, 4]),
    ],
)
@pytest.mark.parametrize("ahead", [0, 2])
def test_turns_are_of_a_block_each(cycle: int, block: int, wanted: list[int], ahead: int) -> None:
    """As TensorFlow 2.21 gives them."""
    assert drained(interleaved(4, cycle=cycle, block=block, ahead=ahead)) == wanted


@pytest.mark.parametrize("taken", range(11))
@pytest.mark.parametrize("cycle", [1, 2, 3])
def test_a_restored_cycle_goes_on(taken: int, cycle: int) -> None:
    dataset = interleaved(4, cycle=cycle, block=2)
    machine, other = dataset.iterate(Run()), dataset.iterate(Run())
    for _ in range(taken):
        machine()
    other()
    other.restore(machine.save())
    assert drained(other) == drained(machine)


@pytest.mark.parametrize("name", ["cycle", "block"])
@pytest.mark.parametrize("value", [0, -1])
def test_a_cycle_and_a_block_have_a_length(name: str, value: int) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=f"^`{name}_length` must be > 0$"):
        interleaved(2, **{name: value})


def test_a_function_gives_one_dataset() -> None:
    two = Interleave(INT, SCALAR, numbers(1), Called(lambda n: (n, n)), ())
    with pytest.raises(errors.InvalidArgumentError, match="`f` must return one dataset, but it returned 2 components"):
        two.iterate(Run())()
    none = Interleave(INT, SCALAR, numbers(1), Called(lambda n: n), ())
    with pytest.raises(errors.InvalidArgumentError, match="is not a dataset"):
        none.iterate(Run())()


def test_captured_values_are_handed_on() -> None:
    dataset = Interleave(
        INT, SCALAR, numbers(2), Called(lambda n, times: Repeat(numbers(1), int(n + times)).as_array()), (one(1),)
    )
    assert len(drained(dataset)) == 3
    assert (len(dataset.functions), dataset.is_slow, dataset.cardinality()) == (1, True, UNKNOWN)


class Noted:
    """An aggregator that remembers names and values of scalars."""

    def __init__(self) -> None:
        self.scalars: list[tuple[str, float]] = []

    def add_to_histogram(self, name: str, value: float, step: int) -> None:
        pass

    def add_scalar(self, name: str, value: float, step: int) -> None:
        self.scalars.append((name.partition("/")[0] + name[name.index("::") :], value))


@pytest.mark.parametrize("ahead", [0, 1])
def test_how_much_of_a_cycle_is_open_is_noted_of_one_that_works_ahead(ahead: int) -> None:
    run, noted = Run(), Noted()
    run.aggregator = noted
    machine = interleaved(3, cycle=4, ahead=ahead).iterate(run)
    for _ in range(3):
        machine()
    found = [value for name, value in noted.scalars if name == "ParallelInterleaveDatasetV2::thread_utilization"]
    assert found == ([0, 0.25, 0.5] if ahead else [])


def directed(selector: Any, *datasets: Dataset, stops: bool = False) -> Directed:
    return Directed(INT, SCALAR, selector, datasets, stops)


def chosen(*values: int) -> Listed:
    return Listed(INT, SCALAR, [(one(value),) for value in values])


def times(value: int, count: int) -> Dataset:
    return Repeat(Tensors(INT, SCALAR, (one(value),)), count)


def test_a_selector_says_which_is_next() -> None:
    dataset = directed(chosen(0, 1, 1, 0, 0, 1, 1), times(10, 2), times(20, 9))
    assert drained(dataset) == [10, 20, 20, 10, 20, 20], "the one that has ended is passed over"
    assert drained(directed(chosen(0, 1, 0, 0, 1), times(10, 2), times(20, 9), stops=True)) == [10, 20, 10]
    assert drained(directed(chosen(0, 0, 1, 1, 0), times(10, 1), times(20, 1))) == [10, 20], "all have ended"
    machine = directed(chosen(0, 0, 1), times(10, 1), times(20, 1), stops=True).iterate(Run())
    assert [machine(), machine(), machine()][1:] == [None, None]


@pytest.mark.parametrize(("number", "message"), [(2, "2 >= 2"), (-1, "-1 < 0")])
def test_a_selector_chooses_among_what_there_is(number: int, message: str) -> None:
    machine = directed(chosen(1, number, 0), times(10, 1), times(20, 1)).iterate(Run())
    assert plain(machine()) == 20
    with pytest.raises(errors.InvalidArgumentError, match=f"^Selector index out of range: {message}$"):
        machine()
    assert plain(machine()) == 10


@pytest.mark.parametrize("taken", range(7))
@pytest.mark.parametrize("stops", [True, False])
def test_restored_turns_go_on(taken: int, stops: bool) -> None:
    dataset = directed(chosen(0, 1, 1, 0, 0, 1, 1), times(10, 2), times(20, 9), stops=stops)
    machine, other = dataset.iterate(Run()), dataset.iterate(Run())
    for _ in range(taken):
        machine()
    other()
    other.restore(machine.save())
    assert drained(other) == drained(machine)


ENDLESS = Repeat(numbers(1), -1)
UNSURE = Filter(numbers(3), Called(lambda n: np.array(True)), ())


@pytest.mark.parametrize(
    ("selector", "datasets", "stops", "count"),
    [
        (numbers(3), [numbers(2), numbers(3)], False, UNKNOWN),
        (ENDLESS, [numbers(2), numbers(3)], False, 5),
        (ENDLESS, [numbers(2), numbers(3)], True, UNKNOWN),
        (ENDLESS, [numbers(2), ENDLESS], False, INFINITE),
        (ENDLESS, [numbers(2), ENDLESS], True, UNKNOWN),
        (ENDLESS, [ENDLESS, ENDLESS], True, INFINITE),
        (ENDLESS, [ENDLESS, UNSURE], False, UNKNOWN),
    ],
)
def test_how_many_turns_there_are(selector: Dataset, datasets: list[Dataset], stops: bool, count: int) -> None:
    assert directed(selector, *datasets, stops=stops).cardinality() == count


def test_a_cancellation_is_no_element_of_a_cycle() -> None:
    def cancelled(n: Any) -> Any:
        raise errors.CancelledError(None, None, "the step has ended")

    source = mapped(numbers(3), cancelled)
    for dataset in (
        Interleave(INT, SCALAR, source, Called(repeated), (), cycle=2, fills_at_once=True),
        Interleave(INT, SCALAR, numbers(3), Called(lambda n: source.as_array()), (), cycle=2, fills_at_once=True),
    ):
        machine = dataset.iterate(Run())
        for _ in range(3):
            with pytest.raises(errors.CancelledError, match="the step has ended"):
                machine()


def test_turns_end_with_their_run() -> None:
    run = Run()
    machines = [directed(ENDLESS, ENDLESS).iterate(run), Interleave(
        INT, SCALAR, ENDLESS, Called(lambda n: numbers(0).as_array()), ()
    ).iterate(run)]  # fmt: skip
    run.close()
    for machine in machines:
        with pytest.raises(errors.CancelledError):
            machine()


def test_the_fastest_is_the_first_of_those_that_are_alike() -> None:
    dataset = Fastest(INT, SCALAR, [UNSURE, numbers(3), mapped(numbers(3), lambda n: n)])
    assert drained(dataset) == [0, 1, 2]
    assert dataset.cardinality() == 3
    assert Fastest(INT, SCALAR, [UNSURE]).cardinality() == UNKNOWN
    assert Fastest(INT, SCALAR, [UNSURE, numbers(3)]).cardinality() == 3
    assert drained(Fastest(INT, SCALAR, [chosen(7), chosen(8)])) == [7]
    with pytest.raises(errors.InvalidArgumentError, match=r"must have the same elements; their numbers are 3, -2, 2\."):
        Fastest(INT, SCALAR, [numbers(3), UNSURE, numbers(2)])


@pytest.mark.parametrize("ahead", [0, 1, 3])
def test_elements_of_each_that_is_open_are_made_ahead(ahead: int, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []

    class Noted(Prefetch):
        def __init__(self, dataset: Dataset, size: int) -> None:
            sizes.append(size)
            super().__init__(dataset, size)

    monkeypatch.setattr(interleave, "Prefetch", Noted)
    assert drained(interleaved(3, cycle=2, ahead=ahead)) == [1, 2, 2, 3, 3, 3]
    assert sizes == [ahead] * 3


def test_a_cycle_that_is_filled_at_once_ends_with_its_run() -> None:
    """However long a program says that it is."""
    run, asked = Run(), list[int]()

    def body(n: Any) -> Any:
        asked.append(int(n))
        if len(asked) == 3:
            run.close()
        assert len(asked) < 99, "nobody looks whether the iterator is there"
        return numbers(1).as_array()

    machine = Interleave(
        INT, SCALAR, ENDLESS, Called(body), (), cycle=1 << 40, block=1, ahead=0, fills_at_once=True
    ).iterate(run)
    with pytest.raises(errors.CancelledError):
        machine()
    assert len(asked) == 3
