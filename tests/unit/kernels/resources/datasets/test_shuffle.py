"""Shuffles that are asked for blocks: the order, the errors and the states of one that is asked for elements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from support.dataset_machines import ANY, INT, SCALAR, Called, numbers, plain
from tenfold_core import errors
from tenfold_kernels.cpu._compiled import drawing
from tenfold_kernels.resources.datasets import shuffle, states
from tenfold_kernels.resources.datasets.core import INFINITE, UNKNOWN, Dataset, Machine, Run
from tenfold_kernels.resources.datasets.functional import Filter
from tenfold_kernels.resources.datasets.shuffle import SeedGenerator
from tenfold_kernels.resources.datasets.shuffle_buffer import Numbers, Rows, Uneven
from tenfold_kernels.resources.datasets.sources import Slices
from tenfold_kernels.resources.datasets.transforms import Repeat

if TYPE_CHECKING:
    from collections.abc import Callable


def shuffled(*arguments: Any, **more: Any) -> Dataset:
    return shuffle.Shuffle(*arguments, **more, exchange=drawing.exchange())


def seeds(reshuffle: bool = True) -> SeedGenerator:
    return SeedGenerator(7, 5, reshuffle)


ROWS = np.arange(60, dtype=np.int64).reshape(20, 3)
WORDS = np.array([str(n).encode() for n in range(20)], object)
KINDS: dict[str, Callable[[], Dataset]] = {
    "small buffer": lambda: shuffled(numbers(50), 7, seeds()),
    "large buffer": lambda: shuffled(numbers(50), 64, seeds()),
    "the whole": lambda: shuffled(numbers(50), 50, seeds()),
    "one": lambda: shuffled(numbers(9), 1, seeds()),
    "epochs in the buffer": lambda: shuffled(numbers(20), 13, seeds(), count=4),
    "one sequence": lambda: shuffled(numbers(20), 33, seeds(False), 4, is_one_sequence=True),
    "many short epochs": lambda: shuffled(numbers(2), 11, seeds(), count=9),
    "repeated": lambda: Repeat(shuffled(numbers(20), 6, seeds()), 3),
    "a repeated source": lambda: shuffled(Repeat(numbers(8), 4), 6, seeds()),
    "rows and words": lambda: shuffled(Slices((*INT, *INT), ANY * 2, (ROWS, WORDS)), 6, seeds()),
    "buffer of all": lambda: shuffled(numbers(9), -2, seeds()),
}


def by_blocks(machine: Machine, size: int) -> list[Any]:
    """As a batch takes elements: a block, else one."""
    out: list[Any] = []
    while True:
        found = None if machine.block is None else machine.block(size)
        if found is not None:
            assert 1 <= len(found[0]) <= size
            out += [_row(found, number) for number in range(len(found[0]))]
            continue
        element = machine.following()
        if element is None:
            return out
        out.append(plain(element))


def _row(block: Any, number: int) -> Any:
    return plain([np.asarray(array[number]) for array in block])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [1, 2, 5, 100])
def test_blocks_have_the_order_of_elements(kind: str, size: int) -> None:
    make = KINDS[kind]
    one_by_one = [plain(element) for element in iter(make().iterate(Run()).following, None)]

    assert by_blocks(make().iterate(Run()), size) == one_by_one


@pytest.mark.parametrize("kind", KINDS)
def test_a_state_is_saved_between_blocks(kind: str) -> None:
    make = KINDS[kind]
    whole = [plain(element) for element in iter(make().iterate(Run()).following, None)]
    for taken in (0, 3, 8):
        machine = make().iterate(Run())
        have = 0
        while have < taken:
            block = None if machine.block is None else machine.block(taken - have)
            have += len(block[0]) if block is not None else machine.following() is not None
        other = make().iterate(Run())
        other.restore(states.from_bytes(states.to_bytes(machine.save())))

        assert [plain(element) for element in iter(other.following, None)] == whole[taken:]
        assert by_blocks(machine, 4) == whole[taken:]


class Troubled(Dataset):
    """Blocks of three numbers, of which some fail, or have other shapes."""

    def __init__(self, fails: int = -1, grows: int = -1) -> None:
        super().__init__(INT, SCALAR)
        self._fails, self._grows = fails, grows

    def iterate(self, run: Run) -> Machine:
        at = 0

        def following() -> Any:
            nonlocal at
            if at >= 30:
                return None
            at += 1
            if at - 1 == self._fails:
                raise errors.DataLossError(None, None, "torn")
            return (np.full([2] if at > self._grows >= 0 else [], at - 1, np.int64),)

        def block(most: int) -> Any:
            nonlocal at
            count = min(most, 3, 30 - at)
            if count <= 0:
                return None
            if at <= self._fails < at + count:
                if at == self._fails:
                    at += 1
                    raise errors.DataLossError(None, None, "torn")
                count = self._fails - at
            if at < self._grows < at + count:
                count = self._grows - at
            values = np.arange(at, at + count)
            at += count
            return (values if at <= self._grows or self._grows < 0 else np.stack([values, values], 1),)

        return Machine(following, lambda: at, lambda state: None, block)


def test_an_error_of_the_source_comes_where_it_would_for_elements() -> None:
    def events(take: Callable[[Machine], Any]) -> list[Any]:
        machine, out = shuffled(Troubled(fails=17), 6, seeds()).iterate(Run()), list[Any]()
        while True:
            try:
                found = take(machine)
            except errors.DataLossError:
                out.append("torn")
                continue
            if not found:
                return out
            out += found

    def block(machine: Machine) -> Any:
        assert machine.block is not None
        found = machine.block(4)
        return one(machine) if found is None else found[0].tolist()

    def one(machine: Machine) -> Any:
        element = machine.following()
        return None if element is None else [plain(element)]

    assert events(block) == events(one)
    assert "torn" in events(block)


def test_elements_of_other_shapes_are_shuffled_one_by_one_from_there() -> None:
    make = lambda: shuffled(Troubled(grows=13), 6, seeds())  # noqa: E731
    whole = [plain(element) for element in iter(make().iterate(Run()).following, None)]
    assert by_blocks(make().iterate(Run()), 4) == whole


def test_rows_that_differ_are_refused_and_nothing_is_changed() -> None:
    rows = Rows(5, drawing.exchange())
    rows.put_rows(0, (np.arange(3),))
    with pytest.raises(Uneven):
        rows.put(3, (np.arange(2),))
    assert len(rows) == 3


def test_numbers_are_those_of_the_generator_however_they_are_asked_for() -> None:
    one = Numbers((7, 11))
    first = [one.one() for _ in range(500)]
    other = Numbers((7, 11))
    assert [*other.some(3).tolist(), other.one(), *other.some(300).tolist(), *other.some(196).tolist()] == first
    assert Numbers((7, 11), 137).one() == first[137]


# -- orders, seeds and epochs ------------------------------------------------------------------------------------------

#: (buffer, seeds) → the order in which TensorFlow 2.21 gives 0 to 11 where epochs are alike.
ORDERS = {
    (3, (7, 5)): [2, 1, 3, 4, 0, 7, 8, 5, 6, 10, 11, 9],
    (1, (7, 5)): [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11],
    (20, (7, 5)): [5, 8, 2, 7, 10, 9, 1, 11, 4, 6, 3, 0],
    (4, (0, 9)): [1, 2, 4, 0, 5, 7, 9, 6, 8, 10, 3, 11],
}


@pytest.mark.parametrize("how", ORDERS)
def test_the_order_is_tensorflow_s(how: tuple[int, tuple[int, int]]) -> None:
    size, pair = how
    dataset = shuffled(numbers(12), size, SeedGenerator(*pair, False))
    for _ in range(2):
        assert by_blocks(dataset.iterate(Run()), 5) == ORDERS[how], "each time"
    plainly = shuffle.Shuffle(numbers(12), size, SeedGenerator(*pair, False))
    assert [plain(element) for element in iter(plainly.iterate(Run()).following, None)] == ORDERS[how]


def test_epochs_differ_where_they_are_to() -> None:
    for reshuffle, count in ((True, 3), (False, 1)):
        dataset = shuffled(numbers(30), 30, seeds(reshuffle))
        orders = {tuple(by_blocks(dataset.iterate(Run()), 7)) for _ in range(3)}
        assert len(orders) == count
        assert all(sorted(order) == list(range(30)) for order in orders)


@pytest.mark.parametrize(("size", "count", "message"), [
    (0, 1, "buffer_size must be greater than zero or UNKNOWN_CARDINALITY"),
    (-1, 1, "buffer_size must be greater than zero"),
    (-3, 1, "buffer_size must be greater than zero"),
    (1, 0, "count must be greater than zero or equal to -1"),
    (1, -2, "count must be greater than zero or equal to -1"),
])  # fmt: skip
def test_shuffles_that_cannot_be(size: int, count: int, message: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=message):
        shuffled(numbers(3), size, seeds(), count)


def test_how_many_elements_there_are() -> None:
    assert shuffled(numbers(3), -2, seeds()).cardinality() == 3
    assert shuffled(numbers(3), 1, seeds(), 4).cardinality() == 12
    assert shuffled(numbers(3), 1, seeds(), -1).cardinality() == INFINITE
    assert shuffled(Repeat(numbers(3), -1), 1, seeds(), 2).cardinality() == INFINITE
    unsure = Filter(numbers(3), Called(lambda n: np.array(True)), ())
    assert shuffled(unsure, 1, seeds(), 2).cardinality() == UNKNOWN
    assert shuffled(unsure, 1, seeds(), -1).cardinality() == INFINITE
    assert shuffled(numbers(3), 1, seeds()).is_slow


@pytest.mark.parametrize("count", [-1, 1, 3])
def test_a_repeated_shuffle_may_be_drawn_as_one_sequence(count: int) -> None:
    made = shuffle.Shuffle(numbers(5), 4, seeds(), exchange=drawing.exchange())
    fused = made.fused(count)
    assert isinstance(fused, shuffle.Shuffle)
    assert (fused._count, fused._size, fused._is_one_sequence) == (count, 4, True)
    assert (fused._seeds.seeds, fused._seeds.reshuffles, fused._exchange) == ((7, 5), False, made._exchange)


def test_which_shuffles_are_not_fused() -> None:
    made = shuffle.Shuffle(numbers(5), 4, seeds())
    assert [made.fused(0), made.fused(-2)] == [None, None]
    assert shuffle.Shuffle(numbers(5), 4, seeds(False)).fused(2) is None
    assert shuffle.Shuffle(numbers(5), 4, seeds(), 2).fused(2) is None
    run = Run()
    run.fuses_shuffles = True
    whole = by_blocks(Repeat(made, 3).iterate(run), 4)
    fused = made.fused(3)
    assert fused is not None
    assert whole == by_blocks(fused.iterate(Run()), 4)


def test_seeds_of_epochs_are_a_sequence_that_is_saved() -> None:
    one = seeds()
    assert one.reshuffles
    drawn = [one.draw() for _ in range(4)]
    assert len(set(drawn)) == 4
    words = Numbers((7, 5))
    assert drawn[0] == (words.one(), words.one())
    assert one.save() == (7, 5, 4)
    other = SeedGenerator(1, 2, True)
    other.restore((7, 5, 3))
    assert (other.seeds, other.draw(), other.save()) == ((7, 5), drawn[3], (7, 5, 4))
    alike = seeds(False)
    assert [alike.draw(), alike.draw(), alike.reshuffles, alike.save()] == [(7, 5), (7, 5), False, (7, 5, 0)]
    alike.restore((3, 4, 0))
    assert alike.draw() == (3, 4)


def test_without_seeds_each_generator_is_another_one() -> None:
    assert len({SeedGenerator(0, 0, False).seeds for _ in range(3)}) == 3
    assert SeedGenerator(0, 1, False).seeds == (0, 1)
    assert SeedGenerator(1, 0, False).seeds == (1, 0)


def test_numbers_are_made_in_growing_pieces() -> None:
    words, made = Numbers((7, 11)), []
    blocks_of = words._words
    words._words = lambda blocks: made.append(blocks) or blocks_of(blocks)  # type: ignore[method-assign,func-returns-value]
    for _ in range(4 * (16 + 32 + 64 + 128 + 256 + 512 + 1024 + 1024)):
        words.one()
    assert made == [16, 32, 64, 128, 256, 512, 1024, 1024]
    assert words.some(0).shape == (0,)
    some = Numbers((7, 11))
    assert some.some(64).tolist() == [Numbers((7, 11), at).one() for at in range(64)]
    assert some.drawn == 64


def sizes_of_blocks(machine: Machine, most: int) -> list[int]:
    """0 for an element that had to be asked for by itself."""
    found: list[int] = []
    assert machine.block is not None
    while True:
        block = machine.block(most)
        if block is not None:
            found.append(len(block[0]))
        elif machine() is None:
            return found
        else:
            found.append(0)


def test_blocks_come_of_a_source_that_gives_them() -> None:
    """As large as they are asked for, but for the ends of the source and of what stands in the buffer."""
    assert sizes_of_blocks(shuffled(numbers(50), 7, seeds()).iterate(Run()), 5) == [5] * 8 + [4, 5, 1]
    assert sizes_of_blocks(shuffled(numbers(9), 100, seeds()).iterate(Run()), 5) == [5, 4]
    assert sizes_of_blocks(shuffled(numbers(9), 3, seeds()).iterate(Run()), 2) == [2, 2, 2, 1, 2]
    assert sizes_of_blocks(shuffled(numbers(4), 3, seeds()).iterate(Run()), 1) == [1] * 4
    plainly = shuffle.Shuffle(numbers(4), 3, seeds())
    assert sizes_of_blocks(plainly.iterate(Run()), 5) == [0] * 4, "without a loop to draw with"
    single = Filter(numbers(4), Called(lambda n: np.array(True)), ())
    assert sizes_of_blocks(shuffled(single, 3, seeds()).iterate(Run()), 5) == [0] * 4
    assert sizes_of_blocks(shuffled(numbers(4), -2, seeds()).iterate(Run()), 5) == [0] * 4


def test_seeds_that_are_drawn_are_positive_numbers_of_64_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shuffle.secrets, "randbits", lambda bits: (1 << bits) - 1)
    assert SeedGenerator(0, 0, False).seeds == ((1 << 63) - 1,) * 2
