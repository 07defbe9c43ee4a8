"""In which order elements leave each kind of queue, what comes back in its place, and how a batch is made of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold_core import dtypes
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.resources.queue_stores import FifoStore, PriorityStore, ShuffleStore, Store, batch

#: Seeds → the order in which TensorFlow 2.21's RandomShuffleQueue gives 0 to 11.
SHUFFLED = {
    (1, 2): [11, 5, 2, 8, 3, 10, 1, 7, 6, 4, 0, 9],
    (0, 5): [0, 9, 5, 10, 6, 3, 11, 8, 2, 4, 1, 7],
    (5, 0): [1, 0, 3, 5, 10, 2, 7, 4, 6, 8, 11, 9],
    (-1, 3): [1, 2, 0, 4, 6, 5, 9, 8, 11, 3, 7, 10],
    (3, -1): [9, 8, 4, 6, 3, 0, 2, 5, 1, 10, 11, 7],
    (1 << 40, 7): [3, 10, 4, 11, 0, 9, 2, 1, 6, 5, 7, 8],
}


def of(*values: Any) -> tuple[Any, ...]:
    return tuple(np.array(value) for value in values)


def filled(store: Any, *values: int) -> Any:
    for value in values:
        store.put(of(value))
    return store


def taken(store: Store, count: int) -> list[int]:
    return [int(store.take()[0]) for _ in range(count)]


@pytest.mark.parametrize("seeds", SHUFFLED)
def test_a_shuffle_of_seeds_is_tensorflow_s(seeds: tuple[int, int]) -> None:
    store = filled(ShuffleStore(0, *seeds), *range(12))
    assert store.seeds == seeds
    assert taken(store, 12) == SHUFFLED[seeds]


def test_a_shuffle_without_seeds_is_another_one_each_time() -> None:
    orders = {tuple(taken(filled(ShuffleStore(0, 0, 0), *range(64)), 64)) for _ in range(2)}
    assert len(orders) == 2
    assert all(sorted(order) == list(range(64)) for order in orders)


def test_a_shuffle_leaves_some_behind_until_it_is_closed() -> None:
    store = filled(ShuffleStore(2, 1, 2), 1, 2, 3)
    assert (len(store), store.available(closed=False), store.available(closed=True)) == (3, 1, 3)
    assert store.min_after_dequeue == 2


@pytest.mark.parametrize(
    "store", [FifoStore(), PriorityStore(), ShuffleStore(0, 1, 2)], ids=["fifo", "priority", "shuffle"]
)
def test_all_are_available(store: Any) -> None:
    filled(store, 5, 6)
    assert (len(store), store.available(closed=False), store.available(closed=True)) == (2, 2, 2)


def test_only_priorities_are_taken_in_whole_batches() -> None:
    assert [kind.takes_whole_batches for kind in (FifoStore, PriorityStore, ShuffleStore)] == [False, True, False]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_what_goes_back_to_a_fifo_is_first_again(count: int) -> None:
    store = filled(FifoStore(), 1, 2, 3, 4)
    store.put_back([store.take() for _ in range(count)])
    assert taken(store, 4) == [1, 2, 3, 4]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_what_goes_back_to_a_priority_queue_keeps_its_place_among_equals(count: int) -> None:
    store = PriorityStore()
    for priority, name in ((1, 10), (1, 11), (0, 12), (1, 13)):
        store.put(of(priority, name))
    for _ in range(2):
        store.put_back([store.take() for _ in range(count)])
    store.put(of(1, 14))
    assert [int(store.take()[1]) for _ in range(5)] == [12, 10, 11, 13, 14]


def test_what_goes_back_to_a_shuffle_is_there_again() -> None:
    store = filled(ShuffleStore(0, 1, 2), *range(6))
    gone = [store.take() for _ in range(3)]
    store.put_back(gone)
    assert [int(element[0]) for element in store._elements[-3:]] == [int(element[0]) for element in reversed(gone)]
    assert sorted(taken(store, 6)) == list(range(6))


def texts(*values: bytes) -> Any:
    array = np.empty(len(values), object)
    array[:] = values
    return array


@pytest.mark.parametrize(
    ("elements", "dtype", "shape", "wanted"),
    [
        ([], dtypes.float32, [2, 3], np.zeros((0, 2, 3))),
        ([], dtypes.float32, [None, 3], np.zeros((0, 0, 3))),
        ([], dtypes.string, [], texts()),
        ([np.int32(1), np.int32(2)], dtypes.int32, [], [1, 2]),
        ([np.ones((1, 2)), np.zeros((1, 2))], dtypes.float64, [1, 2], [[[1, 1]], [[0, 0]]]),
        ([np.array([1]), np.array([2, 3])], dtypes.int64, [None], [[1, 0], [2, 3]]),
        ([np.array([[1]]), np.array([[2], [3]])], dtypes.int64, [None, 1], [[[1], [0]], [[2], [3]]]),
        ([np.zeros((0,)), np.ones((1,))], dtypes.float32, [None], [[0], [1]]),
        ([texts(b"a"), texts()], dtypes.string, [None], [[b"a"], [b""]]),
        ([texts(b"a"), texts(b"b")], dtypes.string, [1], [[b"a"], [b"b"]]),
        ([texts(b"a").reshape(()), texts(b"b").reshape(())], dtypes.string, [], [b"a", b"b"]),
    ],
)
def test_a_batch_has_a_row_for_each_element(elements: list[Any], dtype: Any, shape: list[Any], wanted: Any) -> None:
    (found,) = batch([(np.asarray(element),) for element in elements], [dtype], [TensorShape(shape)])
    assert found.shape == np.asarray(wanted).shape
    assert found.dtype == np.dtype(dtype.as_numpy_dtype)
    assert found.tolist() == np.asarray(wanted).tolist()


def test_a_batch_has_an_array_for_each_component() -> None:
    elements = [(np.array([number]), texts(b"%d" % number)) for number in range(2)]
    shapes = [TensorShape([1]), TensorShape([None])]
    numbers, names = batch(elements, [dtypes.int64, dtypes.string], shapes)
    assert numbers.tolist() == [[0], [1]]
    assert names.tolist() == [[b"0"], [b"1"]]
