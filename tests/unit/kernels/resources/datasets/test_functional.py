"""Functions of elements: their ends and errors, predicates, states that go from element to element, one element."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.dataset_machines import ANY, INT, SCALAR, Called, drained, ints, mapped, numbers, one, plain
from tenfold_core import dtypes, errors
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.resources.datasets.core import INFINITE, UNKNOWN, Dataset, Run
from tenfold_kernels.resources.datasets.functional import (
    Computed,
    Filter,
    LastIsTrue,
    Map,
    Scan,
    TakeWhile,
    only_element,
    reduced,
)
from tenfold_kernels.resources.datasets.sources import Tensors
from tenfold_kernels.resources.datasets.transforms import Repeat, Zip


def ends_at(limit: int) -> Called:
    def body(n: Any, *captured: Any) -> Any:
        if n == limit:
            raise errors.OutOfRangeError(None, None, "over")
        return n + sum(captured)

    return Called(body)


def test_a_function_may_end_its_map() -> None:
    dataset = Map(INT, SCALAR, numbers(5), ends_at(2), (), keeps_count=False)
    machine = dataset.iterate(Run())
    assert [plain(machine()) for _ in range(2)] == [0, 1]
    assert machine() is None
    assert dataset.cardinality() == UNKNOWN


def test_a_map_that_keeps_its_number_of_elements_may_not_be_ended() -> None:
    dataset = Map(INT, SCALAR, numbers(5), ends_at(0), ())
    text = "^Function invocation produced OutOfRangeError: over$"
    with pytest.raises(errors.InvalidArgumentError, match=text):
        dataset.iterate(Run())()
    with pytest.raises(errors.InvalidArgumentError, match=text):
        Map(INT, SCALAR, numbers(5), ends_at(0), (), keeps_count=False).at(0, Run())
    assert dataset.cardinality() == 5


@pytest.mark.parametrize(
    ("keeps", "is_counted", "count"),
    [(True, None, 3), (False, None, UNKNOWN), (False, True, 3), (True, False, UNKNOWN)],
)
def test_how_many_elements_a_map_says_it_has(keeps: bool, is_counted: bool | None, count: int) -> None:
    assert Map(INT, SCALAR, numbers(3), ends_at(-1), (), keeps, is_counted).cardinality() == count


def test_captured_values_come_last() -> None:
    dataset = Map(INT, SCALAR, numbers(3), Called(lambda n, a, b: n * a + b), (one(10), one(7)))
    assert drained(dataset) == [7, 17, 27]
    assert plain(dataset.at(2, Run())) == 27
    with pytest.raises(errors.OutOfRangeError):
        dataset.at(3, Run())


class Asked(Called):
    """Remembers the ranks that it is asked for."""

    def __init__(self) -> None:
        super().__init__(lambda *values: values[0])
        self.ranks: list[Any] = []

    def by_rows(self, ranks: Any) -> None:
        self.ranks.append(list(ranks))


def test_a_function_of_rows_is_asked_for_with_the_ranks_of_elements_and_captured_values() -> None:
    asked = Asked()
    source = Zip(INT * 2, (*SCALAR, TensorShape([2, 3])), numbers(2), mapped(numbers(2), lambda n: np.zeros((2, 3))))
    machine = Map(INT, SCALAR, source, asked, (ints(1, 2),)).iterate(Run())
    assert machine.block is not None
    assert machine.block(2) is None
    assert machine.block(2) is None
    assert asked.ranks == [[(0, True), (2, True), (1, False)]]
    unknown = Asked()
    machine = Map(INT, ANY, mapped(numbers(2), lambda n: n), unknown, ()).iterate(Run())
    assert machine.block is not None
    assert machine.block(2) is None
    assert unknown.ranks == [], "a rank that is not known"


@pytest.mark.parametrize("kind", [Map, Filter, TakeWhile, Scan])
def test_each_says_what_it_calls(kind: Any) -> None:
    function = Called(lambda *values: values, "Counter")
    rest = ((), ()) if kind is Scan else ((),)
    declared = () if kind in (Filter, TakeWhile) else (INT, SCALAR)
    dataset: Dataset = kind(*declared, numbers(2), function, *rest)
    assert dataset.functions == (function,)
    assert dataset.stateful_op() == "Counter"
    assert dataset.is_slow


def test_what_is_computed_of_each_element() -> None:
    dataset = Computed(INT, ANY, numbers(3), lambda element: (np.repeat(element[0], 2),))
    machine = dataset.iterate(Run())
    first = machine()
    assert first is not None
    assert not first[0].flags.writeable
    saved = machine.save()
    other = dataset.iterate(Run())
    other.restore(saved)
    assert drained(machine) == drained(other) == [[1, 1], [2, 2]]
    assert dataset.cardinality() == 3
    assert (dataset.types, dataset.shapes, dataset.is_slow) == (INT, ANY, True)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda n: (np.array(True), np.array(True)),
        lambda n: np.array(1),
        lambda n: np.array([True, True]),
        lambda n: np.zeros(0, bool),
    ],
    ids=["two", "a number", "a vector", "none"],
)
@pytest.mark.parametrize("kind", [Filter, TakeWhile])
def test_a_predicate_says_one_truth(kind: Any, wrong: Any) -> None:
    with pytest.raises(errors.InvalidArgumentError, match="Filter predicate `f` must return a scalar bool tensor"):
        kind(numbers(1), Called(wrong), ()).iterate(Run())()
    assert drained(kind(numbers(1), Called(lambda n: np.array([True])), ())) == [0]


def test_predicates_know_captured_values() -> None:
    below = Called(lambda n, limit: np.array(n < limit))
    assert drained(Filter(numbers(5), below, (one(2),))) == [0, 1]
    assert drained(TakeWhile(numbers(5), below, (one(2),))) == [0, 1]
    assert Filter(numbers(5), below, ()).cardinality() == TakeWhile(numbers(5), below, ()).cardinality() == UNKNOWN


def test_what_was_cut_off_stays_cut_off() -> None:
    odd = TakeWhile(numbers(5), Called(lambda n: np.array(n != 1)), ())
    machine = odd.iterate(Run())
    assert plain(machine()) == 0
    assert [machine(), machine()] == [None, None]
    other = odd.iterate(Run())
    other.restore(machine.save())
    assert other() is None


def test_the_last_component_decides_and_goes() -> None:
    types, shapes = (*INT, dtypes.bool_), (*SCALAR, TensorShape(None))
    source = Map(types, shapes, numbers(6), Called(lambda n: (n, np.array([n % 3 == 0]))), ())
    dataset = LastIsTrue(INT, SCALAR, source)
    machine = dataset.iterate(Run())
    assert plain(machine()) == 0
    other = dataset.iterate(Run())
    other.restore(machine.save())
    assert drained(machine) == drained(other) == [3]
    assert dataset.is_slow


def test_a_state_goes_from_element_to_element() -> None:
    dataset = Scan(INT, SCALAR, numbers(4), Called(lambda s, n, c: (s + n + c, s * 10)), (one(1),), (one(1),))
    assert drained(dataset) == [10, 20, 40, 70]
    assert dataset.cardinality() == UNKNOWN
    kept = Scan(INT, SCALAR, numbers(4), Called(lambda s, n: (s, n)), (one(1),), (), keeps_count=True)
    assert kept.cardinality() == 4


def test_a_scan_s_function_may_end_it() -> None:
    def body(s: Any, n: Any) -> Any:
        if n == 2:
            raise errors.OutOfRangeError(None, None, "over")
        return s, n

    assert drained(Scan(INT, SCALAR, numbers(5), Called(body), (one(1),), ()), most=2) == [0, 1]
    with pytest.raises(errors.InvalidArgumentError, match="produced OutOfRangeError: over"):
        drained(Scan(INT, SCALAR, numbers(5), Called(body), (one(1),), (), keeps_count=True))


def test_a_function_gives_as_many_values_as_are_needed() -> None:
    with pytest.raises(errors.InvalidArgumentError, match="`scan_func` must return 2 components, but it returned 1"):
        Scan(INT, SCALAR, numbers(1), Called(lambda s, n: n), (one(1),), ()).iterate(Run())()
    with pytest.raises(errors.InvalidArgumentError, match="`reduce_func` must return 1 components, but it returned 2"):
        reduced(numbers(1), Run(), Called(lambda s, n: (s, n)), (one(1),), ())


def test_all_elements_are_reduced_to_a_state() -> None:
    add = Called(lambda s, n, c: s + n * c)
    assert plain(reduced(numbers(4), Run(), add, (one(100),), (one(2),))) == 112
    assert plain(reduced(numbers(0), Run(), add, (one(100),), (one(2),))) == 100


def test_a_run_that_is_closed_ends_loops() -> None:
    run = Run()
    machine = Filter(Repeat(numbers(1), -1), Called(lambda n: np.array(False)), ()).iterate(run)
    last = LastIsTrue(INT, SCALAR, Zip(INT * 2, SCALAR * 2, Repeat(numbers(1), -1), Repeat(numbers(1), -1))).iterate(
        run
    )
    run.close()
    for call in (machine, last, lambda: reduced(numbers(3), run, Called(lambda s, n: s), (one(1),), ())):
        with pytest.raises(errors.CancelledError):
            call()


def test_a_dataset_of_one_element() -> None:
    assert plain(only_element(numbers(1), Run())) == 0
    with pytest.raises(errors.InvalidArgumentError, match=r"^Dataset was empty\.$"):
        only_element(numbers(0), Run())
    with pytest.raises(errors.InvalidArgumentError, match=r"^Dataset had more than one element\.$"):
        only_element(numbers(2), Run())
    assert Repeat(Tensors(INT, SCALAR, (one(1),)), -1).cardinality() == INFINITE


def test_all_components_but_the_last_are_left() -> None:
    kinds, shapes = (*INT * 3, dtypes.bool_), SCALAR * 4
    source = Map(kinds, shapes, numbers(4), Called(lambda n: (n, n * 10, n * 100, n % 2 == 1)), ())
    assert drained(LastIsTrue(INT * 3, SCALAR * 3, source)) == [(1, 10, 100), (3, 30, 300)]
