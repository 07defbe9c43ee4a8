"""The machines of datasets and iterators: elements, ends, errors, orders, and steps that give up."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from support.dataset_machines import ANY, INT, SCALAR, SOON_S, Called, drained, ints, mapped, numbers, result
from tenfold_core import dtypes, errors
from tenfold_kernels.resources.datasets.batches import Batch, PaddedBatch, Window
from tenfold_kernels.resources.datasets.caches import Cache, MemoryCache
from tenfold_kernels.resources.datasets.core import INFINITE, UNKNOWN, Dataset, Run, dataset_of
from tenfold_kernels.resources.datasets.functional import Filter, LastIsTrue
from tenfold_kernels.resources.datasets.interleave import Interleave
from tenfold_kernels.resources.datasets.iterators import DatasetIterator
from tenfold_kernels.resources.datasets.prefetch import Prefetch
from tenfold_kernels.resources.datasets.shuffle import SeedGenerator, Shuffle
from tenfold_kernels.resources.datasets.sources import Generated, Range, Records, Slices, SparseSlices, Tensors
from tenfold_kernels.resources.datasets.threads import Threads
from tenfold_kernels.resources.datasets.transforms import Concatenate, Repeat, Shard, Skip, Take, Zip
from tenfold_kernels.resources.waiting import Waiting

if TYPE_CHECKING:
    from collections.abc import Iterator

# ---- elements --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dataset", "expected", "count"),
    [
        (Tensors(INT, SCALAR, (ints(1, 2),)), [[1, 2]], 1),
        (Slices(INT, SCALAR, (ints(1, 2), ints(3, 4))), [(1, 3), (2, 4)], 2),
        (Range(INT, SCALAR, 9, 2, -3), [9, 6, 3], 3),
        (Batch(INT, ANY, numbers(5), 2, drop_remainder=False), [[0, 1], [2, 3], [4]], 3),
        (Batch(INT, ANY, numbers(5), 2, drop_remainder=True), [[0, 1], [2, 3]], 2),
        (Repeat(numbers(2), 3), [0, 1] * 3, 6),
        (Repeat(numbers(0), -1), [], 0),
        (Repeat(numbers(2), 0), [], 0),
        (Take(numbers(5), 2), [0, 1], 2),
        (Take(numbers(3), -1), [0, 1, 2], 3),
        (Take(Repeat(numbers(2), -1), 3), [0, 1, 0], 3),
        (Skip(numbers(5), 3), [3, 4], 2),
        (Skip(numbers(2), 3), [], 0),
        (Skip(numbers(2), -1), [], 0),
        (Shard(numbers(7), 3, 1), [1, 4], 2),
        (Zip(INT * 2, SCALAR * 2, numbers(2), numbers(9)), [(0, 0), (1, 1)], 2),
        (Concatenate(INT, SCALAR, numbers(2), numbers(1)), [0, 1, 0], 3),
        (Cache(numbers(3), MemoryCache()), [0, 1, 2], 3),
        (Filter(numbers(6), Called(lambda n: n % 2 == 0), ()), [0, 2, 4], UNKNOWN),
        (mapped(numbers(3), lambda n: n * 10), [0, 10, 20], 3),
        (Prefetch(mapped(numbers(50), lambda n: n), 4), list(range(50)), 50),
    ],
)
def test_elements_and_their_number(dataset: Dataset, expected: list[Any], count: int) -> None:
    assert drained(dataset) == expected
    assert drained(dataset) == expected, "a dataset can be gone through again"
    assert dataset.cardinality() == count


def test_for_ever_is_infinite() -> None:
    assert Repeat(numbers(2), -1).cardinality() == INFINITE
    assert drained(Repeat(numbers(2), -1), most=5) == [0, 1, 0, 1, 0]


def test_components_of_different_lengths_are_refused() -> None:
    with pytest.raises(errors.InvalidArgumentError, match="same size in the 0th dimension"):
        Slices(INT * 2, SCALAR * 2, (ints(1, 2), ints(3)))


def test_a_batch_of_unequal_shapes_is_refused() -> None:
    machine = Batch(INT, ANY, mapped(numbers(3), lambda n: np.zeros(int(n), np.int64)), 2, False).iterate(Run())
    with pytest.raises(errors.InvalidArgumentError, match=r"component 0. First element had shape \[0\] and element 1"):
        machine()


def test_strings_and_datasets_can_be_batched() -> None:
    words = Slices((dtypes.string,), SCALAR, (np.array([b"a", b"bc", b"d"], object),))
    assert drained(Batch((dtypes.string,), ANY, words, 2, False)) == [[b"a", b"bc"], [b"d"]]


def test_padding_goes_to_the_largest_or_to_the_given_size() -> None:
    rows = mapped(numbers(4), lambda n: np.full(int(n), n))
    assert drained(PaddedBatch(INT, ANY, rows, 2, [[-1]], (ints(-7).reshape(()),), False)) == [
        [[-7], [1]],
        [[2, 2, -7], [3, 3, 3]],
    ]
    assert drained(PaddedBatch(INT, ANY, rows, 4, [[4]], (ints(0).reshape(()),), True))[0][3] == [3, 3, 3, 0]
    with pytest.raises(errors.DataLossError, match="smaller size than the input element"):
        drained(PaddedBatch(INT, ANY, rows, 4, [[2]], (ints(0).reshape(()),), False))


def test_rows_of_a_sparse_tensor() -> None:
    sparse = SparseSlices(dtypes.int64, np.array([[0, 1], [2, 0]], np.int64), ints(5, 6), ints(3, 4))
    assert drained(sparse) == [([[1]], [5], [4]), ([], [], [4]), ([[0]], [6], [4])]


def test_windows_are_datasets() -> None:
    windows = Window((dtypes.variant,), SCALAR, numbers(7), size=2, shift=3, stride=2, drop_remainder=True).iterate(
        Run()
    )
    found = []
    while (element := windows()) is not None:
        found.append(drained(dataset_of(element[0])))
    assert found == [[0, 2], [3, 5]]


def test_interleaving_takes_blocks_in_turn() -> None:
    def inner(n: Any) -> Any:
        return Repeat(Tensors(INT, SCALAR, (np.asarray(n),)), int(n)).as_array()

    dataset = Interleave(INT, SCALAR, Range(INT, SCALAR, 1, 5, 1), Called(inner), (), cycle=2, block=2)
    assert drained(dataset) == [1, 2, 2, 3, 3, 3, 4, 4, 4, 4]
    assert drained(Interleave(INT, SCALAR, numbers(3), Called(inner), ())) == [1, 2, 2]


def test_the_last_component_can_filter() -> None:
    pairs = Slices((dtypes.int64, dtypes.bool_), SCALAR * 2, (ints(1, 2, 3), np.array([True, False, True])))
    assert drained(LastIsTrue(INT, SCALAR, pairs)) == [1, 3]


def test_a_generator_goes_on_until_it_is_out_of_range() -> None:
    left, seen = [3, 2, 1], list[int]()

    def following(state: Any, step: Any) -> Any:
        if not left:
            raise errors.OutOfRangeError(None, None, "over")
        return state * step + left.pop()

    def ended(state: Any) -> int:
        seen.append(int(state))
        return 0

    dataset = Generated(
        INT,
        SCALAR,
        (Called(lambda start: start + 4), (ints(1).reshape(()),)),
        (Called(following), (ints(10).reshape(()),)),
        (Called(ended), ()),
    )
    assert drained(dataset) == [51, 52, 53]
    assert seen == [5], "the last function is called once"


def test_records_of_files_follow_each_other_past_one_that_fails() -> None:
    def records(name: bytes) -> Iterator[bytes]:
        yield name
        if name == b"b":
            raise errors.DataLossError(None, None, "torn")
        yield name * 2

    machine = Records([b"a", b"b", b"c"], records).iterate(Run())
    assert [machine()[0].item() for _ in range(3)] == [b"a", b"aa", b"b"]  # type: ignore[index]
    with pytest.raises(errors.DataLossError, match="torn"):
        machine()
    assert drained(machine) == [b"c", b"cc"]


def test_a_cache_is_filled_by_a_whole_pass_only() -> None:
    calls: list[int] = []

    def body(n: Any) -> Any:
        calls.append(int(n))
        return n

    dataset = Cache(mapped(numbers(3), body), MemoryCache())
    first = dataset.iterate(Run())
    first()
    assert drained(dataset) == [0, 1, 2]
    assert drained(dataset) == [0, 1, 2]
    assert calls == [0, 0, 1, 2]


# ---- shuffles: TensorFlow's orders -----------------------------------------------------------------------------------


def test_a_shuffle_has_tensorflows_order() -> None:
    same = SeedGenerator(7, 11, reshuffle=False)
    order = [3, 5, 4, 1, 6, 7, 9, 10, 8, 11, 12, 15, 16, 14, 18, 0, 13, 2, 17, 19]
    assert drained(Repeat(Shuffle(numbers(20), 5, same), 2)) == order * 2


def test_epochs_differ_and_are_the_same_for_the_same_seed() -> None:
    first, second = (
        drained(Repeat(Shuffle(numbers(20), 64, SeedGenerator(7, 5, reshuffle=True)), 2)) for _ in range(2)
    )
    assert first == second
    assert first[:20] != first[20:]
    assert first[:20] == [8, 14, 15, 3, 0, 10, 11, 4, 12, 6, 7, 2, 16, 9, 5, 18, 19, 13, 1, 17]


def test_a_fused_shuffle_draws_one_sequence() -> None:
    run = Run()
    run.fuses_shuffles = True
    dataset = Repeat(Shuffle(numbers(20), 64, SeedGenerator(7, 5, reshuffle=True)), 3)
    order = drained(dataset.iterate(run))
    assert order[:20] == [13, 1, 12, 17, 10, 0, 4, 14, 7, 3, 11, 5, 16, 18, 9, 2, 8, 19, 15, 6]
    assert sorted(order) == sorted([*range(20)] * 3)


@pytest.mark.parametrize("size", [1, 3, 50, UNKNOWN])
def test_every_epoch_has_every_element(size: int) -> None:
    order = drained(Shuffle(numbers(10), size, SeedGenerator(1, 2, reshuffle=True), count=3))
    assert [sorted(order[i : i + 10]) for i in (0, 10, 20)] == [list(range(10))] * 3


def test_a_shuffle_of_nothing_for_ever_ends() -> None:
    assert drained(Shuffle(numbers(0), 3, SeedGenerator(1, 2, reshuffle=True), count=-1)) == []


# ---- prefetching -----------------------------------------------------------------------------------------------------


def test_an_error_stands_where_its_element_would() -> None:
    def body(n: Any) -> Any:
        if n == 2:
            raise errors.InvalidArgumentError(None, None, "two")
        return n

    machine = Prefetch(mapped(numbers(4), body), 2).iterate(Run())
    assert [machine()[0].item() for _ in range(2)] == [0, 1]  # type: ignore[index]
    with pytest.raises(errors.InvalidArgumentError, match="two"):
        machine()
    assert drained(machine) == [3]


# ---- iterators -------------------------------------------------------------------------------------------------------


def item(element: Any) -> Any:
    if element is None:
        raise errors.OutOfRangeError(None, None, "End of sequence")
    return element[0].item()


def test_an_iterator_must_be_started_with_what_it_was_declared_for() -> None:
    iterator = DatasetIterator(INT, SCALAR)
    with pytest.raises(errors.FailedPreconditionError, match=r"GetNext\(\) failed because the iterator has not been"):
        iterator.get_next(item)
    with pytest.raises(errors.InvalidArgumentError, match="expected int64 but got string"):
        iterator.start(Slices((dtypes.string,), SCALAR, (np.array([b"a"], object),)))
    with pytest.raises(errors.InvalidArgumentError, match="expected 1 types but got 2"):
        iterator.start(Zip(INT * 2, SCALAR * 2, numbers(1), numbers(1)))
    iterator.start(numbers(1))
    assert iterator.get_next(item) == 0


def test_the_end_stays_until_it_is_started_again() -> None:
    iterator = DatasetIterator(INT, SCALAR)
    iterator.start(numbers(1))
    assert iterator.get_next(item) == 0
    for _ in range(2):
        with pytest.raises(errors.OutOfRangeError, match="End of sequence"):
            iterator.get_next(item)
    iterator.start(numbers(1))
    assert iterator.get_next(item) == 0


def test_slow_elements_come_in_order_to_the_steps_that_wait() -> None:
    iterator = DatasetIterator(INT, ANY)
    iterator.start(mapped(numbers(20), lambda n: n))
    assert [result(answer) for answer in [iterator.get_next(item) for _ in range(20)]] == list(range(20))
    with pytest.raises(errors.OutOfRangeError):
        result(iterator.get_next(item))


def test_a_step_that_gives_up_leaves_its_element_to_the_next() -> None:
    gate, entered = threading.Event(), threading.Event()

    def body(n: Any) -> Any:
        entered.set()
        assert gate.wait(SOON_S)
        return n

    iterator = DatasetIterator(INT, ANY)
    iterator.start(mapped(numbers(3), body))
    first, second, third = (iterator.get_next(item) for _ in range(3))
    assert entered.wait(SOON_S)
    first.cancel()
    second.cancel()
    gate.set()
    assert result(third) == 0
    assert result(iterator.get_next(item)) == 1


def test_a_function_that_waits_is_given_up_with_its_step() -> None:
    left = threading.Event()
    waits: list[Waiting] = []

    def body(n: Any) -> Any:
        if n == 0 and not waits:
            waits.append(Waiting(left.set))
            asked.set()
            return waits[0]
        return n

    asked = threading.Event()
    iterator = DatasetIterator(INT, ANY)
    iterator.start(mapped(numbers(3), body))
    step = iterator.get_next(item)
    assert asked.wait(SOON_S)
    step.cancel()
    assert left.wait(SOON_S), "the function's queue still has it in its line"
    assert result(iterator.get_next(item)) == 1


@pytest.mark.parametrize(
    "endless",
    [
        Skip(numbers(1 << 62), 1 << 62),
        Batch(INT, ANY, Batch(INT, ANY, Repeat(numbers(1), -1), 1 << 12, False), 1 << 40, False),
        Filter(Repeat(numbers(1), -1), Called(lambda n: np.array(False)), ()),
        Shuffle(numbers(1 << 62), 1 << 62, SeedGenerator(1, 2, reshuffle=True)),
        Shard(numbers(1 << 62), 1 << 61, 1 << 60),
    ],
)
def test_what_would_take_for_ever_ends_with_its_step(endless: Dataset) -> None:
    iterator = DatasetIterator((), ())
    iterator.start(endless)
    step = iterator.get_next(item)
    assert isinstance(step, Waiting)
    step.cancel()
    iterator.start(numbers(1))
    assert result(iterator.get_next(item)) == 0


def test_nothing_repeated_is_nothing_at_once() -> None:
    assert drained(Repeat(numbers(0), 1 << 62)) == []


def test_a_function_that_waited_goes_on() -> None:
    waiting = Waiting()
    iterator = DatasetIterator(INT, ANY)
    iterator.start(mapped(numbers(1), lambda n: waiting))
    step = iterator.get_next(item)
    waiting.complete([ints(42).reshape(())])
    assert result(step) == 42


def test_an_iterator_that_is_gone_frees_its_threads() -> None:
    left, asked = threading.Event(), threading.Event()

    def body(n: Any) -> Any:
        asked.set()
        return Waiting(left.set)

    iterator = DatasetIterator(INT, ANY)
    iterator.start(mapped(numbers(1), body))
    step = iterator.get_next(item)
    assert asked.wait(SOON_S)
    iterator.start(numbers(1))
    with pytest.raises(errors.CancelledError):
        result(step)
    assert left.is_set()
    assert result(iterator.get_next(item)) == 0


def test_threads_are_no_more_than_the_limit_and_take_all_work() -> None:
    threads, done = Threads(limit=2), threading.Semaphore(0)
    names: set[str] = set()

    def work() -> None:
        names.add(threading.current_thread().name)
        done.release()

    for _ in range(50):
        threads.submit(work)
    assert all(done.acquire(timeout=SOON_S) for _ in range(50))
    assert 1 <= len(names) <= 2


@pytest.mark.parametrize("taken", [1, 2, 3])
def test_a_buffer_is_filled_to_the_end_whatever_was_taken(taken: int) -> None:
    made = [threading.Event() for _ in range(10)]

    def body(n: Any) -> Any:
        made[int(n)].set()
        return n

    machine = Prefetch(mapped(numbers(10), body), 4).iterate(Run())
    for _ in range(taken):
        machine()

    assert made[taken + 3].wait(SOON_S), "four elements are made ahead"
    assert not made[taken + 4].is_set()


def test_a_generator_that_is_left_before_its_end_is_ended() -> None:
    ended = threading.Event()
    dataset = Generated(
        INT,
        SCALAR,
        (Called(lambda start: start), (ints(1).reshape(()),)),
        (Called(lambda state: state), ()),
        (Called(lambda state: (ended.set(), state)[1]), ()),
    )

    assert drained(Take(dataset, 2)) == [1, 1]

    assert ended.wait(SOON_S), "nobody can ask it any more"
