"""Elements together: batches by elements and by blocks, padding, windows, sparse batches; memory that is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.dataset_machines import ANY, INT, SCALAR, Called, drained, ints, mapped, numbers, one, plain
from tenfold_core import dtypes, errors, memory_limits
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.resources.datasets import batches
from tenfold_kernels.resources.datasets.batches import Batch, PaddedBatch, SlidingBatch, SparseBatch, Window
from tenfold_kernels.resources.datasets.core import HEAVY, INFINITE, UNKNOWN, Dataset, Machine, Run, dataset_of
from tenfold_kernels.resources.datasets.functional import Filter
from tenfold_kernels.resources.datasets.sources import Listed, Slices
from tenfold_kernels.resources.datasets.transforms import Repeat, Zip

ENDLESS = Repeat(numbers(1), -1)
UNSURE = Filter(numbers(3), Called(lambda n: np.array(True)), ())


def lists(*rows: list[int]) -> Dataset:
    return Listed(INT, ANY, [(ints(*row),) for row in rows])


def refused(text: str) -> Any:
    return pytest.raises(errors.InvalidArgumentError, match=text)


# ---- batches ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("drop", [True, False])
@pytest.mark.parametrize("size", [1, 2, 3, 5, 6])
def test_batches_of_every_size(size: int, drop: bool) -> None:
    wanted = [list(range(5))[at : at + size] for at in range(0, 5, size)]
    wanted = [batch for batch in wanted if len(batch) == size or not drop]
    # as blocks, and of a source that has none
    for source in (numbers(5), Listed(INT, SCALAR, [(one(n),) for n in range(5)])):
        dataset = Batch(INT, ANY, source, size, drop)
        assert drained(dataset) == wanted
        assert dataset.cardinality() == len(wanted)
        assert [plain(dataset.at(number, Run())) for number in range(len(wanted))] == wanted
        for beyond in (-1, len(wanted)):
            with pytest.raises(errors.OutOfRangeError):
                dataset.at(beyond, Run())
        for taken in range(len(wanted) + 1):
            machine, other = dataset.iterate(Run()), dataset.iterate(Run())
            for _ in range(taken):
                machine()
            other()
            other.restore(machine.save())
            assert drained(other) == drained(machine) == wanted[taken:]


def test_batches_are_read_only_or_their_reader_s() -> None:
    for source in (numbers(4), Listed(INT, SCALAR, [(one(n),) for n in range(4)])):
        first = Batch(INT, ANY, source, 2, False).iterate(Run())()
        assert first is not None
        assert first[0].dtype == np.int64


def test_how_many_batches_there_are() -> None:
    assert Batch(INT, ANY, ENDLESS, 2, False).cardinality() == INFINITE
    assert Batch(INT, ANY, UNSURE, 2, True).cardinality() == UNKNOWN
    assert Batch(INT, ANY, numbers(0), 2, False).cardinality() == 0
    for size in (0, -1):
        with refused("^Batch size must be greater than zero"):
            Batch(INT, ANY, numbers(2), size, False)
    assert plain(Batch(INT, ANY, Repeat(numbers(3), -1), 2, False).at(4, Run())) == [2, 0]


def test_large_batches_are_slow() -> None:
    assert not Batch(INT, ANY, numbers(2), HEAVY, False).is_slow
    assert Batch(INT, ANY, numbers(2), HEAVY + 1, False).is_slow


class Blocks(Dataset):
    """Numbers in blocks of at most these sizes; 0 is an element by itself. Remembers what it was asked for."""

    def __init__(self, count: int, *sizes: int) -> None:
        super().__init__(INT, SCALAR)
        self._count, self._sizes = count, sizes
        self.asked: list[int] = []

    def iterate(self, run: Run) -> Machine:
        at, sizes = 0, list(self._sizes)

        def following() -> Any:
            nonlocal at
            if at >= self._count:
                return None
            at += 1
            return (one(at - 1),)

        def block(most: int) -> Any:
            nonlocal at
            self.asked.append(most)
            size = min(sizes.pop(0) if sizes else most, most, self._count - at)
            if size <= 0:
                return None
            at += size
            return (np.arange(at - size, at),)

        return Machine(following, block=block)


@pytest.mark.parametrize("sizes", [(), (2,), (0,), (1, 0), (2, 0, 9, 1), (9, 9, 9)])
@pytest.mark.parametrize("size", [1, 4, 10, 11])
@pytest.mark.parametrize("drop", [True, False])
def test_batches_of_blocks_and_elements(sizes: Any, size: int, drop: bool) -> None:
    found = drained(Batch(INT, ANY, Blocks(10, *sizes), size, drop))
    wanted = [list(range(10))[at : at + size] for at in range(0, 10, size)]
    assert found == [batch for batch in wanted if len(batch) == size or not drop]


def test_a_whole_block_is_a_batch() -> None:
    source = Blocks(10, 3, 2)
    machine = Batch(INT, ANY, source, 4, False).iterate(Run())
    assert plain(machine()) == [0, 1, 2, 3]
    assert source.asked == [4, 1]
    assert plain(machine()) == [4, 5, 6, 7]
    assert source.asked == [4, 1, 4]
    assert plain(machine()) == [8, 9]


def test_blocks_have_a_most(monkeypatch: pytest.MonkeyPatch) -> None:
    assert batches._BLOCK == 4096
    monkeypatch.setattr(batches, "_BLOCK", 3)
    source = Blocks(10)
    assert drained(Batch(INT, ANY, source, 5, False)) == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]
    assert source.asked[:4] == [3, 2, 3, 2]


class Closing(Dataset):
    """Elements, or blocks, without end; closes its run with the third."""

    def __init__(self, by_blocks: bool = False) -> None:
        super().__init__(INT, SCALAR)
        self._by_blocks = by_blocks

    def iterate(self, run: Run) -> Machine:
        given: list[int] = []

        def following() -> Any:
            given.append(1)
            if len(given) == 3:
                run.close()
            assert len(given) < 99, "nobody looks whether the iterator is there"
            return (one(1),)

        def block(most: int) -> Any:
            following()
            return (ints(1),)

        return Machine(following, block=block if self._by_blocks else None)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Batch(INT, ANY, Closing(), 1 << 40, False),
        lambda: Batch(INT, ANY, Closing(by_blocks=True), 1 << 40, False),
        lambda: Window(INT, ANY, Closing(), 1 << 40, 1, 1, False),
        lambda: SparseBatch(INT, ANY, Closing(), 1 << 40, []),
    ],
)
def test_a_batch_that_is_not_wanted_any_more_is_given_up(make: Any) -> None:
    machine = make().iterate(Run())
    with pytest.raises(errors.CancelledError):
        machine()


def test_batches_of_other_shapes() -> None:
    with refused(r"component 0. First element had shape \[1\] and element 1 had shape \[2\]"):
        Batch(INT, ANY, lists([1], [1, 2]), 2, False).iterate(Run())()
    pairs = Zip(INT * 2, ANY * 2, numbers(2), lists([1], [1, 2]))
    with refused("different shapes in component 1"):
        Batch(INT * 2, ANY * 2, pairs, 2, False).iterate(Run())()
    with refused("different shapes in component 1"):
        Batch(INT * 2, ANY * 2, pairs, 2, False).at(0, Run())


# ---- padding ---------------------------------------------------------------------------------------------------------


def padded(source: Dataset, size: int, shape: list[int], value: Any = None, drop: bool = False) -> PaddedBatch:
    return PaddedBatch(INT, ANY, source, size, [shape], (one(-7) if value is None else value,), drop)


def test_padding_to_the_largest_and_to_a_size() -> None:
    rows = lists([1], [2, 2], [], [3, 3, 3])
    assert drained(padded(rows, 2, [-1])) == [[[1, -7], [2, 2]], [[-7, -7, -7], [3, 3, 3]]]
    assert drained(padded(rows, 3, [4])) == [
        [[1, -7, -7, -7], [2, 2, -7, -7], [-7] * 4], [[3, 3, 3, -7]],
    ]  # fmt: skip
    assert drained(padded(rows, 3, [3], drop=True)) == [[[1, -7, -7], [2, 2, -7], [-7] * 3]]
    assert drained(padded(lists([], []), 2, [0])) == [[[], []]]
    assert drained(padded(numbers(3), 2, [])) == [[0, 1], [2]]
    dataset = padded(rows, 2, [-1])
    assert dataset.cardinality() == 2
    assert [plain(dataset.at(number, Run())) for number in range(2)] == drained(dataset)
    element = dataset.iterate(Run())()
    assert element is not None
    assert not element[0].flags.writeable


def test_padding_on_several_axes() -> None:
    source = Listed(INT, ANY, [(np.full((1, 2), 1),), (np.full((2, 1), 2),)])
    assert drained(padded(source, 2, [-1, 3])) == [[[[1, 1, -7], [-7] * 3], [[2, -7, -7], [2, -7, -7]]]]
    words = Listed((dtypes.string,), ANY, [(np.array([b"a"], object),), (np.array([], object),)])
    assert drained(PaddedBatch((dtypes.string,), ANY, words, 2, [[2]], (np.array(b"p", object),), False)) == [
        [[b"a", b"p"], [b"p", b"p"]]
    ]
    scalars = Listed((dtypes.string,), ANY, [(np.array(b"a", object),)] * 2)
    assert drained(PaddedBatch((dtypes.string,), ANY, scalars, 2, [[]], (np.array(b"p", object),), False)) == [
        [b"a", b"a"]
    ]


def test_padding_of_several_components() -> None:
    pairs = Zip(INT * 2, ANY * 2, lists([1], []), lists([2], [3, 4]))
    made = PaddedBatch(INT * 2, ANY * 2, pairs, 2, [[2], [-1]], (one(8), one(9)), False)
    assert drained(made) == [([[1, 8], [8, 8]], [[2, 9], [3, 4]])]
    short = PaddedBatch(INT * 2, ANY * 2, pairs, 2, [[2], [1]], (one(8), one(9)), False).iterate(Run())
    with pytest.raises(
        errors.DataLossError,
        match=r"to a smaller size than the input element: axis 0 of component 1 has 2 entries, and 1 were asked for\.$",
    ):
        short()
    wrong = PaddedBatch(INT * 2, ANY * 2, pairs, 2, [[2], [1, 1]], (one(8), one(9)), False).iterate(Run())
    with refused("component1: expected rank 2 but got element with rank 1$"):
        wrong()


@pytest.mark.parametrize("shape", [[-2], [3, -2]])
def test_sizes_of_padding(shape: list[int]) -> None:
    text = ",".join(map(str, shape))
    with refused(rf"^Padded sizes must be -1 or >= 0, got \[{text}\]$"):
        padded(numbers(2), 2, shape)
    padded(numbers(2), 2, [-1, 0])


def test_padding_is_not_by_blocks() -> None:
    assert drained(padded(Blocks(4), 2, [])) == [[0, 1], [2, 3]]
    source = Blocks(4)
    drained(padded(source, 2, []))
    assert source.asked == []


def test_memory_for_padding_is_asked_for_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_limits, "_limit", 80000 * 8)
    rows = lists([1], [2])
    assert padded(rows, 2, [40000]).iterate(Run())() is not None
    with pytest.raises(errors.ResourceExhaustedError, match=r"shape\[2,40001\] and type int64"):
        padded(rows, 2, [40001]).iterate(Run())()
    with pytest.raises(errors.ResourceExhaustedError):
        padded(rows, 2, [1 << 40]).iterate(Run())()


# ---- windows ---------------------------------------------------------------------------------------------------------


def windows(count: int, size: int, shift: int, stride: int, drop: bool) -> Window:
    return Window((dtypes.variant,), SCALAR, numbers(count), size, shift, stride, drop)


def wanted_windows(count: int, size: int, shift: int, stride: int, drop: bool) -> list[list[int]]:
    reach = (size - 1) * stride + 1
    whole = [list(range(at, min(at + reach, count), stride)) for at in range(0, count, shift)]
    return [window for at, window in zip(range(0, count, shift), whole, strict=True) if not drop or at + reach <= count]


def opened(machine: Machine) -> list[Any]:
    return [drained(dataset_of(element[0])) for element in iter(machine.following, None)]


@pytest.mark.parametrize("drop", [True, False])
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("shift", [1, 2, 3, 5, 9])
@pytest.mark.parametrize("size", [1, 2, 3, 8])
def test_windows_of_every_size(size: int, shift: int, stride: int, drop: bool) -> None:
    how = (7, size, shift, stride, drop)
    wanted = wanted_windows(*how)
    assert opened(windows(*how).iterate(Run())) == wanted
    batched = SlidingBatch(INT, ANY, numbers(7), size, shift, stride, drop)
    assert drained(batched) == wanted
    assert batched.cardinality() == UNKNOWN
    for dataset, read in ((windows(*how), opened), (batched, drained)):
        for taken in range(len(wanted) + 1):
            machine, other = dataset.iterate(Run()), dataset.iterate(Run())
            for _ in range(taken):
                machine()
            other()
            other.restore(machine.save())
            assert read(other) == read(machine) == wanted[taken:]


def test_how_many_windows_there_are() -> None:
    assert [windows(7, 1, 3, 1, drop).cardinality() for drop in (False, True)] == [3, 2]
    assert [windows(6, 1, 3, 1, drop).cardinality() for drop in (False, True)] == [2, 2]
    assert windows(0, 1, 3, 1, False).cardinality() == 0
    assert Window(INT, ANY, ENDLESS, 2, 1, 1, True).cardinality() == INFINITE
    assert Window(INT, ANY, UNSURE, 2, 1, 1, True).cardinality() == UNKNOWN


@pytest.mark.parametrize("name", ["size", "shift", "stride"])
@pytest.mark.parametrize("value", [0, -1])
@pytest.mark.parametrize("kind", [Window, SlidingBatch])
def test_sizes_of_windows(kind: Any, name: str, value: int) -> None:
    how = {"size": 1, "shift": 1, "stride": 1, name: value}
    with refused(rf"^Window {name} must be greater than zero\.$"):
        kind(INT, ANY, numbers(3), *how.values(), False)


@pytest.mark.parametrize(
    ("sizes", "weight"), [((2, 3, 4), 8), ((2, 9, 4), 9), ((HEAVY, 1, 1), HEAVY), ((1, HEAVY, 1), HEAVY)]
)
def test_windows_that_take_many_elements_are_slow(sizes: tuple[int, int, int], weight: int) -> None:
    assert Window(INT, ANY, numbers(3), *sizes, False).weight == weight


def test_windows_of_several_components() -> None:
    pairs = Zip((dtypes.int64, dtypes.int32), (*SCALAR, TensorShape([2])), numbers(3), lists([1, 2], [3, 4], [5, 6]))
    made = Window((dtypes.variant,) * 2, SCALAR * 2, pairs, 2, 2, 1, False)
    machine = made.iterate(Run())
    first = machine()
    assert first is not None
    found = [dataset_of(part) for part in first]
    assert [drained(part) for part in found] == [[0, 1], [[1, 2], [3, 4]]]
    assert [(part.types[0].name, part.shapes[0].as_list()) for part in found] == [("int64", []), ("int32", [2])]
    both = SlidingBatch(INT * 2, ANY * 2, pairs, 2, 2, 1, False)
    assert drained(both) == [([0, 1], [[1, 2], [3, 4]]), ([2], [[5, 6]])]


def test_sliding_batches_of_other_shapes() -> None:
    machine = SlidingBatch(INT, ANY, lists([1], [2, 3]), 2, 1, 1, False).iterate(Run())
    with refused("component 0. First element had shape"):
        machine()


# ---- sparse batches --------------------------------------------------------------------------------------------------


def sparse(source: Dataset, size: int, shape: list[int]) -> SparseBatch:
    return SparseBatch((dtypes.variant,), (TensorShape([3]),), source, size, shape)


@pytest.mark.parametrize(
    ("rows", "shape", "wanted"),
    [
        ([[1, 2], [3]], [4], ([[0, 0], [0, 1], [1, 0]], [1, 2, 3], [2, 4])),
        ([[1, 2], [3]], [2], ([[0, 0], [0, 1], [1, 0]], [1, 2, 3], [2, 2])),
        ([[], [3]], [-1], ([[1, 0]], [3], [2, 1])),
        ([[], []], [0], ([], [], [2, 0])),
        ([[], [], [7, 8]], [5], ([[2, 0], [2, 1]], [7, 8], [3, 5])),
    ],
)
def test_rows_as_a_sparse_tensor(rows: Any, shape: list[int], wanted: Any) -> None:
    (found,) = drained(sparse(lists(*rows), len(rows), shape))
    assert found == list(wanted)


def test_rows_of_several_axes() -> None:
    source = Listed(INT, ANY, [(np.array([[1, 2]]),), (np.array([[3], [4]]),)])
    (found,) = drained(sparse(source, 2, [-1, 3]))
    assert found == [
        [[0, 0, 0], [0, 0, 1], [1, 0, 0], [1, 1, 0]], [1, 2, 3, 4], [2, 2, 3],
    ]  # fmt: skip
    (scalars,) = drained(sparse(numbers(2), 2, []))
    assert scalars == [[[0], [1]], [0, 1], [2]]


def test_sparse_batches_end_with_what_is_left() -> None:
    dataset = sparse(lists([1], [2], [3]), 2, [1])
    found = drained(dataset)
    assert [batch[1] for batch in found] == [[1, 2], [3]]
    assert dataset.cardinality() == 2
    machine, other = dataset.iterate(Run()), dataset.iterate(Run())
    machine()
    other.restore(machine.save())
    assert drained(other) == found[1:]
    element = dataset.iterate(Run())()
    assert element is not None
    (parts,) = element
    assert parts.shape == (3,)
    assert [part.value.dtype for part in parts] == [np.int64] * 3
    assert not any(part.value.flags.writeable for part in parts)


def test_rows_that_do_not_fit() -> None:
    with refused(r"^Input element had shape \(\[1\]\) that is incompatible with the row shape \(\[1,1\]\)\.$"):
        sparse(lists([1]), 1, [1, 1]).iterate(Run())()
    with pytest.raises(errors.DataLossError, match=r"larger than the row shape \(\[1\]\): axis 0 has 2 entries\.$"):
        sparse(lists([1], [1, 2]), 2, [1]).iterate(Run())()
    square = Listed(INT, ANY, [(np.zeros((2, 3), np.int64),)])
    with pytest.raises(errors.DataLossError, match="axis 1 has 3 entries"):
        sparse(square, 1, [2, 2]).iterate(Run())()


def test_memory_for_indices_is_asked_for_first(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = Slices(INT, ANY, (np.zeros((3, 20000), np.int64),))
    monkeypatch.setattr(memory_limits, "_limit", 40000 * 2 * 8)
    assert sparse(rows, 2, [20000]).iterate(Run())() is not None
    with pytest.raises(errors.ResourceExhaustedError, match=r"shape\[60000,2\] and type int64"):
        sparse(rows, 3, [20000]).iterate(Run())()


def test_a_mapped_source_is_batched_as_a_plain_one() -> None:
    assert drained(Batch(INT, ANY, mapped(numbers(5), lambda n: n * 2), 2, False)) == [[0, 2], [4, 6], [8]]


def test_elements_of_another_number_of_components_are_not_cut_short() -> None:
    uneven = Listed(INT, ANY, [(one(1), one(2)), (one(3),)])
    for attempt in (
        lambda: Batch(INT, ANY, uneven, 2, False).iterate(Run())(),
        lambda: Batch(INT, ANY, uneven, 2, False).at(0, Run()),
        lambda: Window(INT, ANY, Listed(INT * 2, ANY, [(one(1), one(2))]), 1, 1, 1, False).iterate(Run())(),
    ):
        with pytest.raises(ValueError, match=r"zip\(\)"):
            attempt()
