"""Elements by keys: windows that are full or left at the end, reductions, functions that give wrong things."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.dataset_machines import ANY, INT, SCALAR, Called, drained, numbers, one, plain
from tenfold_core import errors
from tenfold_kernels.resources.datasets.batches import Batch
from tenfold_kernels.resources.datasets.core import INFINITE, UNKNOWN, Dataset, Run, dataset_of
from tenfold_kernels.resources.datasets.grouping import Bound, GroupByReducer, GroupByWindow
from tenfold_kernels.resources.datasets.transforms import Repeat


def bound(body: Any, *captured: Any) -> Bound:
    return Bound(Called(body), tuple(captured))


def batch(key: Any, window: Any) -> Any:
    return Batch(INT, ANY, dataset_of(window), 10, False).as_array()


def windows(
    source: Dataset, key: Any = lambda n: n % 3, reduce: Any = batch, size: Any = lambda key: one(2)
) -> GroupByWindow:
    return GroupByWindow(INT, ANY, source, bound(key), bound(reduce), bound(size))


def test_a_window_comes_when_it_is_full_and_the_rest_in_the_order_of_keys() -> None:
    found = windows(numbers(8), lambda n: -(n % 3), size=lambda key: one(2 - key))
    assert drained(found) == [[0, 3], [1, 4, 7], [2, 5], [6]]
    assert drained(windows(numbers(5), lambda n: -(n % 3), size=lambda key: one(9))) == [[2], [1, 4], [0, 3]]


def test_a_size_is_asked_for_with_the_first_element_of_each_window() -> None:
    asked: list[int] = []

    def size(key: Any) -> Any:
        asked.append(int(key))
        return one(2)

    assert drained(windows(numbers(7), size=size)) == [[0, 3], [1, 4], [2, 5], [6]]
    assert asked == [0, 1, 2, 0]


def test_functions_know_what_they_captured() -> None:
    dataset = GroupByWindow(
        INT,
        ANY,
        numbers(4),
        bound(lambda n, by: n % by, one(2)),
        bound(lambda key, window, times: Repeat(dataset_of(window), int(times)).as_array(), one(2)),
        bound(lambda key, size: size, one(2)),
    )
    assert drained(dataset) == [0, 2, 0, 2, 1, 3, 1, 3]


@pytest.mark.parametrize(
    "wrong",
    [lambda n: (one(1), one(1)), lambda n: np.array([1]), lambda n: np.array(1, np.int32)],
    ids=["two", "vector", "int32"],
)
def test_keys_and_sizes_are_whole_numbers(wrong: Any) -> None:
    with pytest.raises(errors.InvalidArgumentError, match="`key_func` must return a scalar int64"):
        windows(numbers(1), wrong).iterate(Run())()
    with pytest.raises(errors.InvalidArgumentError, match="`window_size_func` must return a scalar int64"):
        windows(numbers(1), size=wrong).iterate(Run())()
    with pytest.raises(errors.InvalidArgumentError, match="`key_func` must return a scalar int64"):
        sums(numbers(1), wrong).iterate(Run())()


@pytest.mark.parametrize("size", [0, -1])
def test_a_window_has_room(size: int) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=f"Window size must be greater than zero, but got {size}"):
        windows(numbers(1), size=lambda key: one(size)).iterate(Run())()
    assert drained(windows(numbers(2), size=lambda key: one(1))) == [[0], [1]]


def test_a_window_becomes_one_dataset() -> None:
    with pytest.raises(errors.InvalidArgumentError, match="`reduce_func` must return 1 components, but it returned 2"):
        windows(numbers(2), size=lambda key: one(1), reduce=lambda key, window: (window, window)).iterate(Run())()
    with pytest.raises(errors.InvalidArgumentError, match="is not a dataset"):
        windows(numbers(2), size=lambda key: one(1), reduce=lambda key, window: key).iterate(Run())()


def test_how_many_windows_there_are() -> None:
    assert windows(numbers(0)).cardinality() == 0
    assert windows(Repeat(numbers(1), -1)).cardinality() == INFINITE
    assert windows(numbers(3)).cardinality() == UNKNOWN


def sums(source: Dataset, key: Any = lambda n: n % 3, first: Any = lambda key: key * 100) -> GroupByReducer:
    return GroupByReducer(
        INT, SCALAR, source, bound(key), bound(first), bound(lambda s, n: s + n), bound(lambda s: s * 2)
    )


def test_each_key_has_a_state_that_saw_all_its_elements() -> None:
    dataset = sums(numbers(7), lambda n: 2 - n % 3)
    assert drained(dataset) == [2 * (200 + 9), 2 * (100 + 5), 2 * 7]
    assert dataset.cardinality() == UNKNOWN
    assert drained(sums(numbers(0))) == []


@pytest.mark.parametrize("taken", range(5))
@pytest.mark.parametrize("make", [windows, sums])
def test_a_restored_one_goes_on_where_the_saved_one_was(make: Any, taken: int) -> None:
    dataset = make(numbers(10))
    machine, other = dataset.iterate(Run()), dataset.iterate(Run())
    for _ in range(taken):
        machine()
    for _ in range(2):
        other()
    other.restore(machine.save())
    assert [plain(e) for e in iter(other, None)] == [plain(e) for e in iter(machine, None)]
    assert other() is None


def test_both_say_what_they_call() -> None:
    grouped, reduced = windows(numbers(1)), sums(numbers(1))
    assert [len(grouped.functions), len(reduced.functions)] == [3, 4]
    assert grouped.is_slow
    assert reduced.is_slow
    stateful = Bound(Called(lambda key: key, "Counter"), ())
    plain_one = bound(lambda n: n)
    assert GroupByReducer(INT, SCALAR, numbers(1), plain_one, plain_one, plain_one, stateful).stateful_op() == "Counter"
    assert GroupByWindow(INT, SCALAR, numbers(1), plain_one, plain_one, stateful).stateful_op() == "Counter"


@pytest.mark.parametrize("make", [lambda source: windows(source, size=lambda key: one(1 << 40)), sums])
def test_a_run_that_is_closed_ends_them(make: Any) -> None:
    run = Run()
    machine = make(Repeat(numbers(1), -1)).iterate(run)
    run.close()
    with pytest.raises(errors.CancelledError):
        machine()
