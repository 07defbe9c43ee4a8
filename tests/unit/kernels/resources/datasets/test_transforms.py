"""Datasets made of others: their elements by every way in, where they go on after they were saved, what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.dataset_machines import ANY, INT, SCALAR, Called, drained, ints, mapped, numbers, plain
from tenfold_core import errors
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.resources.datasets.core import HEAVY, INFINITE, UNKNOWN, Dataset, Like, Machine, Run
from tenfold_kernels.resources.datasets.functional import Filter
from tenfold_kernels.resources.datasets.shuffle import SeedGenerator, Shuffle
from tenfold_kernels.resources.datasets.sources import Listed, Range, Slices
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

PAIR = {"types": INT * 2, "shapes": SCALAR * 2}


def slices(*values: int) -> Dataset:
    """Elements that can be had as blocks, and by number."""
    return Slices(INT, SCALAR, (ints(*values),))


def lists(*rows: list[int]) -> Dataset:
    """An element for each list."""
    return Listed(INT, ANY, [(ints(*row),) for row in rows])


def counted(*values: int) -> Dataset:
    """The same numbers, of which nobody knows how many there are."""
    return Filter(slices(*values), Called(lambda n: True), ())


def endless(*values: int) -> Dataset:
    return Repeat(slices(*values), -1)


def rebatched(dataset: Dataset, sizes: list[int], drop: bool = False) -> Dataset:
    return Rebatch(INT, ANY, dataset, sizes, drop)


#: dataset → its elements, how many it says there are, whether they can be had by number.
CASES: dict[str, tuple[Any, list[Any], int, bool]] = {
    "repeat": (lambda: Repeat(slices(7, 8, 9), 2), [7, 8, 9] * 2, 6, True),
    "repeat once": (lambda: Repeat(slices(7, 8), 1), [7, 8], 2, True),
    "repeat of a single one": (lambda: Repeat(slices(7), 3), [7] * 3, 3, True),
    "repeat of an unknown number": (lambda: Repeat(counted(7, 8), 2), [7, 8] * 2, UNKNOWN, False),
    "repeat of nothing": (lambda: Repeat(slices(), 2), [], 0, True),
    "repeat of nothing for ever": (lambda: Repeat(slices(), -1), [], 0, True),
    "repeat never": (lambda: Repeat(slices(7, 8), 0), [], 0, True),
    "repeat of repeats": (lambda: Repeat(Repeat(slices(1, 2), 2), 2), [1, 2] * 4, 8, True),
    "take": (lambda: Take(slices(5, 6, 7), 2), [5, 6], 2, True),
    "take as many": (lambda: Take(slices(5, 6, 7), 3), [5, 6, 7], 3, True),
    "take more": (lambda: Take(slices(5, 6), 4), [5, 6], 2, True),
    "take all": (lambda: Take(slices(5, 6), -1), [5, 6], 2, True),
    "take none": (lambda: Take(slices(5, 6), 0), [], 0, True),
    "take of what is endless": (lambda: Take(endless(5, 6), 5), [5, 6, 5, 6, 5], 5, True),
    "take of an unknown number": (lambda: Take(counted(5, 6), 1), [5], UNKNOWN, False),
    "skip": (lambda: Skip(slices(5, 6, 7), 2), [7], 1, True),
    "skip none": (lambda: Skip(slices(5, 6), 0), [5, 6], 2, True),
    "skip as many": (lambda: Skip(slices(5, 6), 2), [], 0, True),
    "skip more": (lambda: Skip(slices(5, 6), 4), [], 0, True),
    "skip all": (lambda: Skip(slices(5, 6), -1), [], 0, True),
    "skip of an unknown number": (lambda: Skip(counted(5, 6, 7), 1), [6, 7], UNKNOWN, False),
    "shard, the first": (lambda: Shard(slices(0, 1, 2, 3, 4, 5, 6), 3, 0), [0, 3, 6], 3, True),
    "shard, the last": (lambda: Shard(slices(0, 1, 2, 3, 4, 5, 6), 3, 2), [2, 5], 2, True),
    "shard of one": (lambda: Shard(slices(4, 5), 1, 0), [4, 5], 2, True),
    "shard that has none": (lambda: Shard(slices(4), 3, 2), [], 0, True),
    "shard that needs one": (lambda: Shard(slices(4, 5), 2, 1, needs_one=True), [5], 1, True),
    "shard of an unknown number": (lambda: Shard(counted(4, 5, 6), 2, 0), [4, 6], UNKNOWN, False),
    "zip": (lambda: Zip(*PAIR.values(), slices(1, 2, 3), slices(5, 6)), [(1, 5), (2, 6)], 2, True),
    "zip, the first is shorter": (lambda: Zip(*PAIR.values(), slices(1), slices(5, 6)), [(1, 5)], 1, True),
    "zip with what is endless": (
        lambda: Zip(*PAIR.values(), endless(1), slices(5, 6)), [(1, 5), (1, 6)], 2, True,
    ),
    "zip of an unknown number": (lambda: Zip(*PAIR.values(), slices(1, 2), counted(5)), [(1, 5)], UNKNOWN, False),
    "concatenate": (lambda: Concatenate(INT, SCALAR, slices(1, 2), slices(3)), [1, 2, 3], 3, True),
    "concatenate nothing": (lambda: Concatenate(INT, SCALAR, slices(), slices(3, 4)), [3, 4], 2, True),
    "concatenate an unknown number": (
        lambda: Concatenate(INT, SCALAR, counted(1), slices(3)), [1, 3], UNKNOWN, False,
    ),
    "unbatch": (lambda: Unbatch(INT, SCALAR, lists([1, 2], [], [3], [4, 5, 6])), [1, 2, 3, 4, 5, 6], UNKNOWN, False),
    "unbatch of known size": (
        lambda: Unbatch(INT, SCALAR, Listed(INT, (TensorShape([2]),), [(ints(1, 2),), (ints(3, 4),)])),
        [1, 2, 3, 4], 4, False,
    ),
    "unbatch of nothing": (lambda: Unbatch(INT, SCALAR, Listed(INT, ANY, [])), [], 0, False),
    "rebatch to fewer": (
        lambda: rebatched(lists([1, 2, 3], [4, 5]), [2]), [[1, 2], [3, 4], [5]], UNKNOWN, False,
    ),
    "rebatch to more": (lambda: rebatched(lists([1], [2, 3], [], [4]), [3]), [[1, 2, 3], [4]], UNKNOWN, False),
    "rebatch, the rest left out": (
        lambda: rebatched(lists([1, 2, 3], [4, 5]), [2], drop=True), [[1, 2], [3, 4]], UNKNOWN, False,
    ),
    "rebatch, nothing to leave out": (
        lambda: rebatched(lists([1, 2], [3, 4]), [4], drop=True), [[1, 2, 3, 4]], UNKNOWN, False,
    ),
    "rebatch by turns": (
        lambda: rebatched(lists([1, 2, 3], [4, 5, 6, 7]), [1, 0, 2]),
        [[1], [], [2, 3], [4], [], [5, 6], [7]], UNKNOWN, False,
    ),
    "split": (
        lambda: Split(INT, ANY, lists([1, 2, 3], [4, 5], [], [6]), 2), [[1, 2], [3], [4], [5], [6]], UNKNOWN, False,
    ),
    "split into three": (lambda: Split(INT, ANY, lists([1, 2, 3, 4]), 3), [[1, 2], [3, 4]], UNKNOWN, False),
    "expected": (lambda: Expected(slices(4, 5, 6), 3), [4, 5, 6], 3, True),
    "no errors": (lambda: IgnoreErrors(slices(4, 5)), [4, 5], UNKNOWN, False),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_elements_their_number_and_each_by_its_number(name: str) -> None:
    make, expected, count, by_number = CASES[name]
    dataset = make()
    assert drained(dataset) == expected
    assert drained(dataset) == expected, "again"
    assert dataset.cardinality() == count
    if by_number:
        run = Run()
        assert [plain(dataset.at(i, run)) for i in range(len(expected))] == expected
        for beyond in (-1, len(expected)):
            with pytest.raises(errors.OutOfRangeError, match=rf"^Index out of range \[0, {len(expected)}\): {beyond}$"):
                dataset.at(beyond, run)


@pytest.mark.parametrize("name", CASES)
def test_a_saved_pass_goes_on_where_it_was(name: str) -> None:
    """Saved before each element and at the end, restored into a fresh machine, and into one that was elsewhere."""
    make, expected, _, _ = CASES[name]
    for taken in range(len(expected) + 1):
        machine = make().iterate(Run())
        for _ in range(taken):
            machine()
        state = machine.save()
        if taken == len(expected):
            assert machine() is None
            ended = machine.save()
            again = make().iterate(Run())
            again.restore(ended)
            assert drained(again) == []
        else:
            assert drained(machine) == expected[taken:], "saving changes nothing"
        for before in (0, 1):
            other = make().iterate(Run())
            for _ in range(before):
                other()
            other.restore(state)
            assert drained(other) == expected[taken:]


def by_blocks(machine: Machine, sizes: list[int], most: int = 60) -> list[Any]:
    """Elements by blocks where there are some, else one by one."""
    found: list[Any] = []
    turn = 0
    while len(found) < most:
        size = sizes[turn % len(sizes)]
        turn += 1
        block = None if machine.block is None or not size else machine.block(size)
        if block is not None:
            assert 1 <= len(block[0]) <= size
            found += [plain([array[i] for array in block]) for i in range(len(block[0]))]
            continue
        element = machine()
        if element is None:
            assert machine() is None
            assert machine.block is None or machine.block(3) is None
            break
        found.append(plain(element))
    return found


@pytest.mark.parametrize("sizes", [[1], [2], [5], [3, 0, 1], [0, 4]])
@pytest.mark.parametrize("name", CASES)
def test_blocks_are_the_same_elements(name: str, sizes: list[int]) -> None:
    make, expected, _, _ = CASES[name]
    assert by_blocks(make().iterate(Run()), sizes) == expected


@pytest.mark.parametrize(
    "make",
    [
        lambda: Repeat(slices(1, 2, 3), 2), lambda: Take(slices(1, 2, 3), 2), lambda: Take(slices(1, 2), -1),
        lambda: Skip(slices(1, 2, 3), 0), lambda: Unbatch(INT, SCALAR, lists([1, 2, 3])),
    ],
)  # fmt: skip
def test_blocks_where_the_input_has_them(make: Any) -> None:
    """After a first element at the latest; a block goes no further than what one element of the input gives."""
    machine = make().iterate(Run())
    machine()
    block = machine.block(2)
    assert block is not None
    assert block[0].tolist() in ([2], [2, 3])
    state = machine.save()
    machine.restore(state)
    assert machine.block is not None


def test_a_repeat_by_blocks_goes_over_the_end_of_its_input() -> None:
    machine = Repeat(slices(1, 2, 3), 3).iterate(Run())
    assert machine.block is not None
    found = []
    while (block := machine.block(2)) is not None:
        found.append(block[0].tolist())
    assert found == [[1, 2], [3], [1], [2, 3], [1], [2, 3]]


def test_endless_ones_have_every_number() -> None:
    run = Run()
    repeated = endless(5, 6, 7)
    assert repeated.cardinality() == INFINITE
    assert [plain(repeated.at(i, run)) for i in (0, 4, 302)] == [5, 6, 7]
    assert Repeat(endless(5), 2).cardinality() == INFINITE
    assert Repeat(endless(5), 0).cardinality() == 0
    assert plain(Repeat(endless(5, 6), 2).at(3, run)) == 6
    assert Take(endless(5), -1).cardinality() == INFINITE
    assert Skip(endless(5, 6), 1).cardinality() == INFINITE
    assert plain(Skip(endless(5, 6), 1).at(4, run)) == 6
    assert Shard(endless(5, 6), 2, 1).cardinality() == INFINITE
    assert Zip(*PAIR.values(), endless(1), endless(2)).cardinality() == INFINITE
    for parts in ((endless(1, 2), slices(9)), (slices(9), endless(1, 2))):
        both = Concatenate(INT, SCALAR, *parts)
        assert both.cardinality() == INFINITE
        assert [plain(both.at(i, run)) for i in range(3)] == ([1, 2, 1] if parts[0].cardinality() < 0 else [9, 1, 2])
    assert Concatenate(INT, SCALAR, counted(1), endless(1)).cardinality() == INFINITE
    assert Unbatch(INT, SCALAR, Repeat(lists([1]), -1)).cardinality() == INFINITE
    assert Expected(endless(5), INFINITE).cardinality() == INFINITE
    assert drained(Expected(endless(5), INFINITE), most=3) == [5] * 3


def test_rows_of_which_some_components_are_unknown() -> None:
    def unbatch(*sizes: int | None) -> Dataset:
        shapes = [TensorShape([size, 3]) for size in sizes]
        return Unbatch(INT * len(sizes), shapes, Listed(INT * len(sizes), shapes, [(ints(),) * len(sizes)] * 5))

    assert unbatch(4).cardinality() == 20
    assert unbatch(4, 4).cardinality() == 20
    assert unbatch(4, None).cardinality() == UNKNOWN
    assert unbatch(None).cardinality() == UNKNOWN
    assert Unbatch(INT, SCALAR, Filter(lists([1]), Called(lambda n: True), ())).cardinality() == UNKNOWN
    assert Unbatch(INT, SCALAR, Listed(INT, (TensorShape(None),), [(ints(1),)])).cardinality() == UNKNOWN


# ---- what takes long -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("make", "factor"), [(lambda n: Skip(slices(1), n), 1), (lambda n: Shard(slices(1), n, 0), 1)])
def test_elements_that_take_many_of_the_input_are_slow(make: Any, factor: int) -> None:
    assert make(HEAVY).weight == HEAVY * factor
    assert not make(HEAVY).is_slow
    assert make(HEAVY + 1).is_slow


class Closing(Dataset):
    """The same element for ever, and the iterator is closed with the third one, which it does not look at itself."""

    def __init__(self, *values: int) -> None:
        super().__init__(INT, ANY)
        self._element = (ints(*values),)

    def iterate(self, run: Run) -> Machine:
        given = 0

        def following() -> Any:
            nonlocal given
            given += 1
            if given == 3:
                run.close()
            assert given < 100, "nobody looks whether the iterator is there"
            return self._element

        return Machine(following)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Skip(Closing(1), 1 << 40),
        lambda: Shard(Closing(1), 1 << 40, (1 << 40) - 1),
        lambda: Unbatch(INT, SCALAR, Closing()),
        lambda: rebatched(Closing(), [2]),
        lambda: Split(INT, ANY, Closing(), 2),
        lambda: IgnoreErrors(Failing()),
    ],
)  # fmt: skip
def test_a_search_for_an_element_ends_with_its_iterator(make: Any) -> None:
    machine = make().iterate(Run())
    with pytest.raises(errors.CancelledError):
        machine()


class Failing(Dataset):
    """No element but errors, of which the third one closes the iterator."""

    def __init__(self) -> None:
        super().__init__(INT, ANY)

    def iterate(self, run: Run) -> Machine:
        asked = []

        def following() -> Any:
            asked.append(1)
            if len(asked) == 3:
                run.close()
            assert len(asked) < 100, "nobody looks whether the iterator is there"
            no_number(len(asked))

        return Machine(following)


def test_an_input_that_is_always_empty_is_not_asked_for_ever() -> None:
    class Empty(Like):
        is_slow = True

        def iterate(self, run: Run) -> Machine:
            passes.append(1)
            if len(passes) == 3:
                run.close()
            assert len(passes) < 100, "nobody looks whether the iterator is there"
            return Machine(lambda: None)

    passes: list[int] = []
    with pytest.raises(errors.CancelledError):
        Repeat(Empty(slices()), 1 << 40).iterate(Run())()


def no_number(n: Any) -> Any:
    raise errors.InvalidArgumentError(None, None, f"no {n}")


def test_nothing_repeated_often_is_asked_again_where_it_may_change() -> None:
    """A function may give elements the next time; a plain source does not."""
    for slow, expected in ((True, 4), (False, 1)):
        asked = []

        class Empty(Like):
            def iterate(self, run: Run) -> Machine:
                asked.append(1)  # noqa: B023
                return Machine(lambda: None)

        source = Empty(slices())
        source.is_slow = slow
        assert drained(Repeat(source, 4)) == []
        assert len(asked) == expected
        asked.clear()
        assert drained(Repeat(source, -1)) == []
        assert len(asked) == 1


def test_a_fused_shuffle_only_where_the_iterator_fuses() -> None:
    def order(fuses: bool, count: int) -> list[Any]:
        run = Run()
        run.fuses_shuffles = fuses
        return drained(Repeat(Shuffle(numbers(9), 20, SeedGenerator(7, 5, reshuffle=True)), count).iterate(run))

    assert sorted(order(True, 2)) == sorted(order(False, 2))
    assert order(True, 2) != order(False, 2)
    run = Run()
    run.fuses_shuffles = True
    assert drained(Repeat(slices(1, 2), 2).iterate(run)) == [1, 2, 1, 2]


# ---- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Shard(slices(1), 0, 0), r"^Number of shards must be greater than zero \(currently num_shards = 0\)"),
        (lambda: Shard(slices(1), 2, 2), r"^Index must be between 0 and 1 \(currently index = 2\)"),
        (lambda: Shard(slices(1), 2, -1), r"^Index must be between 0 and 1 \(currently index = -1\)"),
        (lambda: drained(Shard(slices(1, 2), 3, 0, needs_one=True)), r"only has 2 file\(s\).*the required 3 shards"),
        (lambda: drained(Unbatch(INT, SCALAR, slices(1))), "tensors of at least one dimension, got a scalar"),
        (
            lambda: drained(Unbatch(INT * 2, SCALAR * 2, Listed(INT * 2, ANY * 2, [(ints(1, 2), ints(3))]))),
            "Component 0 had size 2 but component 1 had size 1",
        ),
        (lambda: rebatched(lists(), []), r"none negative and not all 0, got \[\]"),
        (lambda: rebatched(lists(), [0, 0]), r"none negative and not all 0, got \[0,0\]"),
        (lambda: rebatched(lists(), [2, -1]), r"none negative and not all 0, got \[2,-1\]"),
        (lambda: Split(INT, ANY, lists(), 0), "num_replicas must be greater than zero, got 0"),
        (
            lambda: drained(rebatched(Listed(INT, ANY, [(np.zeros((1, 2), np.int64),), (ints(1),)]), [2])),
            "Cannot batch tensors with different shapes",
        ),
    ],
)  # fmt: skip
def test_what_is_refused(make: Any, text: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=text):
        make()


def test_a_number_that_is_expected_must_be_right() -> None:
    few = Expected(slices(1, 2), 3).iterate(Run())
    assert [plain(few()) for _ in range(2)] == [1, 2]
    with pytest.raises(errors.FailedPreconditionError, match="expected to contain 3 elements but contained only 2 el"):
        few()
    many = Expected(slices(1, 2), 1).iterate(Run())
    assert plain(many()) == 1
    with pytest.raises(errors.FailedPreconditionError, match="contain 1 elements but contained at least 2 elements"):
        many()
    assert drained(Expected(counted(1, 2), UNKNOWN)) == [1, 2]
    with pytest.raises(errors.FailedPreconditionError, match="contain 0 elements but contained at least 1"):
        Expected(slices(1), 0).iterate(Run())()
    assert drained(Expected(slices(), 0)) == []


def test_errors_that_are_ignored() -> None:
    def picky(n: Any) -> Any:
        return no_number(n) if n % 2 else n

    assert drained(IgnoreErrors(mapped(Range(INT, SCALAR, 0, 6, 1), picky))) == [0, 2, 4]

    def cancelled(n: Any) -> Any:
        raise errors.CancelledError(None, None, "given up")

    with pytest.raises(errors.CancelledError, match="given up"):
        IgnoreErrors(mapped(slices(1), cancelled)).iterate(Run())()


def test_a_state_of_another_number_of_inputs_is_refused() -> None:
    machine = Zip(INT * 2, SCALAR * 2, slices(1), slices(2)).iterate(Run())
    with pytest.raises(ValueError, match=r"zip\(\)"):
        machine.restore((False, [1]))
