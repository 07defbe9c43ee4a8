"""Saved iterators: whatever was taken before, one that is restored gives what the first one would have given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from support.dataset_machines import ANY, INT, SCALAR, Called, ints, mapped, numbers, one, plain, result
from tenfold_core import dtypes, errors
from tenfold_kernels.resources import messages
from tenfold_kernels.resources.datasets import states
from tenfold_kernels.resources.datasets.batches import Batch, PaddedBatch, SparseBatch, Window
from tenfold_kernels.resources.datasets.caches import Cache, MemoryCache
from tenfold_kernels.resources.datasets.choosing import Sampling, Unique
from tenfold_kernels.resources.datasets.core import Dataset, Run
from tenfold_kernels.resources.datasets.functional import Filter, LastIsTrue, Map, Scan, TakeWhile
from tenfold_kernels.resources.datasets.grouping import Bound, GroupByReducer, GroupByWindow
from tenfold_kernels.resources.datasets.interleave import Directed, Interleave
from tenfold_kernels.resources.datasets.iterators import DatasetIterator
from tenfold_kernels.resources.datasets.parallel import ParallelMap
from tenfold_kernels.resources.datasets.prefetch import Prefetch
from tenfold_kernels.resources.datasets.shuffle import SeedGenerator, Shuffle
from tenfold_kernels.resources.datasets.sources import (
    Generated,
    Listed,
    RandomNumbers,
    Range,
    Records,
    Slices,
    SparseSlices,
    Tensors,
)
from tenfold_kernels.resources.datasets.transforms import (
    Concatenate,
    Expected,
    IgnoreErrors,
    Rebatch,
    Repeat,
    Shard,
    Skip,
    Split,
    Take,
    Unbatch,
    Zip,
)
from tenfold_kernels.resources.tensor_variants import vector_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def bound(body: Callable[..., Any]) -> Bound:
    return Bound(Called(body), ())


def batched(size: int) -> Callable[[Any, Any], Any]:
    return lambda key, window: Batch(INT, ANY, window[()], size, False).as_array()


def repeated(n: Any) -> Any:
    return Repeat(Tensors(INT, SCALAR, (np.asarray(n),)), int(n)).as_array()


def records(name: bytes) -> Iterator[bytes]:
    yield from (name + str(n).encode() for n in range(3))


def seeds(reshuffle: bool = True) -> SeedGenerator:
    return SeedGenerator(7, 5, reshuffle)


def fails_at_two(n: Any) -> Any:
    if n == 2:
        raise errors.InvalidArgumentError(None, None, "two")
    return n


ROWS = np.arange(12, dtype=np.int64).reshape(6, 2)
#: Made anew for each use: a dataset may hold a generator of seeds or a cache.
KINDS: dict[str, Callable[[], Dataset]] = {
    "tensors": lambda: Tensors(INT, SCALAR, (ints(1, 2),)),
    "slices": lambda: Slices(INT, SCALAR, (ROWS,)),
    "listed": lambda: Listed(INT, ANY, [(ints(1),), (ints(2, 3),)]),
    "sparse slices": lambda: SparseSlices(dtypes.int64, np.array([[0, 1], [2, 0]], np.int64), ints(5, 6), ints(3, 4)),
    "range": lambda: Range(INT, SCALAR, 2, 14, 3),
    "random": lambda: Take(RandomNumbers(INT, SCALAR, lambda: (3, 4)), 5),
    "records": lambda: Records([b"a", b"b"], records),
    "repeat": lambda: Repeat(numbers(3), 3),
    "take": lambda: Take(numbers(9), 4),
    "skip": lambda: Skip(numbers(6), 2),
    "shard": lambda: Shard(numbers(9), 3, 1),
    "zip": lambda: Zip(INT * 2, SCALAR * 2, numbers(4), numbers(5)),
    "concatenate": lambda: Concatenate(INT, SCALAR, numbers(2), numbers(3)),
    "batch": lambda: Batch(INT, ANY, numbers(7), 2, False),
    "padded batch": lambda: PaddedBatch(
        INT, ANY, mapped(numbers(5), lambda n: np.full(int(n), n)), 2, [[-1]], (one(0),), False
    ),
    "sparse batch": lambda: SparseBatch(INT, ANY, Slices(INT, SCALAR, (ROWS,)), 4, [3]),
    "unbatch": lambda: Unbatch(INT, SCALAR, Slices(INT, SCALAR, (ROWS,))),
    "rebatch": lambda: Rebatch(INT, ANY, Batch(INT, ANY, numbers(11), 4, False), [3, 2], False),
    "split": lambda: Split(INT, ANY, Batch(INT, ANY, numbers(11), 4, False), 3),
    "map": lambda: mapped(numbers(4), lambda n: n * 2),
    "parallel map": lambda: ParallelMap(INT, ANY, numbers(9), Called(lambda n: n * 2), (), True, 3, True),
    "filter": lambda: Filter(numbers(9), Called(lambda n: n % 2 == 0), ()),
    "take while": lambda: TakeWhile(numbers(9), Called(lambda n: n < 4), ()),
    "last is true": lambda: LastIsTrue(
        INT, SCALAR, Slices((dtypes.int64, dtypes.bool_), SCALAR * 2, (ints(1, 2, 3), np.array([True, False, True])))
    ),
    "scan": lambda: Scan(INT, SCALAR, numbers(6), Called(lambda s, n: (s + n, s * 10)), (one(1),), ()),
    "interleave": lambda: Interleave(INT, SCALAR, Range(INT, SCALAR, 1, 5, 1), Called(repeated), (), 2, 2),
    "parallel interleave": lambda: Interleave(
        INT, SCALAR, Range(INT, SCALAR, 1, 5, 1), Called(repeated), (), 2, 1, 2, True
    ),
    "directed": lambda: Directed(
        INT, SCALAR, Slices(INT, SCALAR, (ints(0, 1, 1, 0, 1, 0, 0),)), [numbers(3), numbers(2)], False
    ),
    "window": lambda: Unwindowed(),
    "group by window": lambda: GroupByWindow(
        INT, ANY, numbers(11), bound(lambda n: n % 3), bound(batched(2)), bound(lambda key: one(3))
    ),
    "group by reducer": lambda: GroupByReducer(
        INT, SCALAR, numbers(7), bound(lambda n: n % 3), bound(lambda key: one(0)), bound(lambda s, n: s + n),
        bound(lambda s: s * 2),
    ),
    "unique": lambda: Unique(Slices(INT, SCALAR, (ints(1, 2, 1, 3, 2, 4),))),
    "sampling": lambda: Sampling(numbers(30), 0.5, 1, 2),
    "shuffle": lambda: Shuffle(numbers(12), 4, seeds()),
    "shuffle of epochs": lambda: Repeat(Shuffle(numbers(5), 3, seeds()), 3),
    "repeated in the buffer": lambda: Shuffle(numbers(5), 3, seeds(), count=3),
    "shuffle of all": lambda: Shuffle(numbers(8), -2, seeds()),
    "prefetch": lambda: Prefetch(mapped(numbers(9), lambda n: n), 3),
    "cache": lambda: Repeat(Cache(numbers(4), MemoryCache()), 2),
    "ignored errors": lambda: IgnoreErrors(mapped(numbers(5), fails_at_two)),
    "expected": lambda: Expected(numbers(4), 4),
    "strings": lambda: Slices((dtypes.string,), SCALAR, (np.array([b"a", b"\xff", b""], object),)),
    "a pipeline": lambda: Prefetch(
        Batch(INT, ANY, mapped(Repeat(Shuffle(numbers(7), 4, seeds()), 2), lambda n: n * 3), 3, False), 2
    ),
}  # fmt: skip


class Unwindowed(Dataset):
    """Windows of numbers, read out as batches: a window itself is nothing that a test can compare."""

    def __init__(self) -> None:
        self._windows = Window((dtypes.variant,), SCALAR, numbers(9), 3, 2, 1, drop_remainder=False)
        super().__init__(INT, ANY, self._windows)

    def iterate(self, run: Run) -> Any:
        machine = self._windows.iterate(run)
        inner = machine.following

        def following() -> Any:
            element = inner()
            if element is None:
                return None
            window = element[0][()].iterate(run)
            return (np.array([row[0] for row in iter(window.following, None)]),)

        machine.following = following
        return machine


def rest(machine: Any) -> list[Any]:
    return [plain(element) for element in iter(machine.following, None)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_restored_iterator_goes_on_where_the_saved_one_was(kind: str) -> None:
    make = KINDS[kind]
    whole = rest(make().iterate(Run()))
    assert whole, "a kind without elements shows nothing"
    for taken in range(len(whole) + 1):
        machine = make().iterate(Run())
        for _ in range(taken):
            machine.following()

        data = states.to_bytes(machine.save())
        other = make().iterate(Run())
        other.restore(states.from_bytes(data))

        assert rest(other) == whole[taken:], taken
        assert rest(machine) == whole[taken:], "to be saved moves nothing"


@pytest.mark.parametrize("kind", ["repeat", "concatenate"])
def test_an_iterator_that_gave_nothing_yet_is_saved_with_what_it_will_draw(kind: str) -> None:
    shuffled = Shuffle(numbers(50), 50, SeedGenerator(0, 0, reshuffle=True))
    make = {"repeat": lambda: Repeat(shuffled, 2), "concatenate": lambda: Concatenate(INT, SCALAR, shuffled, shuffled)}
    dataset = make[kind]()
    machine = dataset.iterate(Run())
    saved = machine.save()
    expected = rest(machine)

    again = dataset.iterate(Run())
    again.restore(saved)

    assert rest(again) == expected


def test_an_error_that_waits_in_a_buffer_is_saved_with_it() -> None:
    dataset = Prefetch(mapped(numbers(4), fails_at_two), 4)
    iterator = DatasetIterator(INT, ANY)
    iterator.start(dataset)
    assert [result(iterator.get_next(lambda e: e[0].item())) for _ in range(2)] == [0, 1]

    saved = result(iterator.save(lambda state: states.to_bytes(state)))
    other = DatasetIterator(INT, ANY)
    other.start(dataset)
    other.restore(states.from_bytes(saved))

    with pytest.raises(errors.InvalidArgumentError, match="two"):
        result(other.get_next(lambda e: e[0].item()))
    assert result(other.get_next(lambda e: e[0].item())) == 3


def test_an_iterator_that_was_not_started_can_neither_be_saved_nor_restored() -> None:
    iterator = DatasetIterator(INT, SCALAR)
    with pytest.raises(errors.FailedPreconditionError, match="has not been initialized"):
        iterator.save(lambda state: state)
    with pytest.raises(errors.FailedPreconditionError, match="Restore failed because the iterator"):
        iterator.restore({})


def changing(body: Callable[..., Any]) -> Called:
    return Called(body, stateful_op="RandomUniform")


STATEFUL: dict[str, Callable[[], Dataset]] = {
    "map": lambda: Map(INT, ANY, numbers(4), changing(lambda n: n), ()),
    "below a batch": lambda: Batch(INT, ANY, Map(INT, ANY, numbers(4), changing(lambda n: n), ()), 2, False),
    "parallel map": lambda: ParallelMap(INT, ANY, numbers(9), changing(lambda n: n), (), True, 3, True),
    "filter": lambda: Filter(numbers(9), changing(lambda n: n % 2 == 0), ()),
    "take while": lambda: TakeWhile(numbers(9), changing(lambda n: n < 4), ()),
    "scan": lambda: Scan(INT, SCALAR, numbers(6), changing(lambda s, n: (s + n, s)), (one(1),), ()),
    "interleave": lambda: Interleave(INT, SCALAR, numbers(5), changing(repeated), (), 2, 2),
    "group by window": lambda: GroupByWindow(
        INT, ANY, numbers(5), bound(lambda n: n), bound(batched(2)), Bound(changing(lambda key: one(3)), ())
    ),
    "group by reducer": lambda: GroupByReducer(
        INT, SCALAR, numbers(7), bound(lambda n: n), bound(lambda key: one(0)), Bound(changing(lambda s, n: s), ()),
        bound(lambda s: s),
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", STATEFUL)
def test_an_iterator_whose_functions_have_a_state_is_not_saved_where_all_must_be(kind: str) -> None:
    iterator = DatasetIterator((), ())
    iterator.start(STATEFUL[kind]())

    with pytest.raises(errors.FailedPreconditionError, match=r"^RandomUniform is stateful\.$"):
        iterator.save(lambda state: state, is_all=True)
    assert result(iterator.save(lambda state: "saved")) == "saved", "where what there is will do"


def test_the_state_of_another_dataset_is_refused() -> None:
    first, second = DatasetIterator((), ()), DatasetIterator((), ())
    first.start(numbers(3))
    second.start(Zip(INT * 2, SCALAR * 2, numbers(3), numbers(3)))
    saved = result(first.save(lambda state: state))

    with pytest.raises(errors.DataLossError, match="not that of an iterator over this dataset"):
        second.restore(saved)


def test_what_cannot_be_saved_says_so() -> None:
    begin = bound(lambda: one(0))
    generated = Generated(INT, SCALAR, begin, bound(lambda state: state), bound(lambda state: state))
    with pytest.raises(errors.UnimplementedError, match="cannot be saved"):
        generated.iterate(Run()).save()
    with pytest.raises(errors.UnimplementedError, match="holds a Range cannot be saved"):
        states.to_proto([numbers(3).as_array()])


@pytest.mark.parametrize("data", [b"\xff\xff", b"", b"\x12\x02{}x", b'\x12\x07{"a":5}'])
def test_bytes_that_are_no_state_are_refused(data: bytes) -> None:
    with pytest.raises(errors.DataLossError, match="not the state of an iterator"):
        states.from_bytes(data)


def test_a_state_travels_as_a_variant_and_through_a_file() -> None:
    state = states.IteratorState([1, b"\x00\xff", {"a": ints(1, 2)}, vector_of(ints(3))]).as_array()

    for got in (
        messages.decode(messages.encode(state), "state"),
        messages.variants_from_bytes(messages.variants_to_bytes(state), "state"),
    ):
        number, text, named, variants = got.item().state
        assert (number, text, named["a"].tolist(), variants[0].value.tolist()) == (1, b"\x00\xff", [1, 2], [3])


def test_bytes_that_are_no_message_say_so() -> None:
    with pytest.raises(errors.DataLossError, match="not the state of an iterator: no message"):
        states.from_bytes(b"\xff\xff")


def test_arrays_of_a_state_are_not_written_to() -> None:
    numbers_, texts, variants = states.from_bytes(
        states.to_bytes([ints(1, 2), np.array([b"a", b"\xff"], object), vector_of(ints(3), ints(4))])
    )

    assert (numbers_.tolist(), texts.tolist(), [each.value.tolist() for each in variants]) == (
        [1, 2], [b"a", b"\xff"], [[3], [4]],
    )  # fmt: skip
    for array in (numbers_, texts, variants):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = array[1]


PLAIN = [None, True, 7, 1 << 70, 0.1, "text", b"\x00\xff", [], [[1], [b"2"]], {}, {"a": {1: [2.5]}, b"k": None}]


@pytest.mark.parametrize("value", PLAIN)
def test_plain_values_come_back_as_they_were(value: Any) -> None:
    found = states.from_bytes(states.to_bytes(value))

    assert found == value
    assert type(found) is type(value)


def test_numbers_of_numpy_come_back_as_plain_ones_and_tuples_as_lists() -> None:
    assert states.from_bytes(states.to_bytes((np.int64(3), np.float32(0.5), np.bool_(True)))) == [3, 0.5, True]


def test_what_no_state_holds_is_refused() -> None:
    with pytest.raises(TypeError, match="a state cannot hold a set"):
        states.to_bytes([{1}])
