"""Shuffles by their ops: where seeds come from, whether epochs differ, how often elements are repeated."""

from __future__ import annotations

from typing import Any

import pytest

from support.dataset_machines import drained, ints, numbers
from support.dataset_ops import DatasetSteps, refused
from tenfold_kernels.cpu._compiled import drawing
from tenfold_kernels.resources.datasets.shuffle import SeedGenerator, Shuffle


@pytest.fixture
def steps() -> DatasetSteps:
    return DatasetSteps()


def order(size: int, reshuffle: bool = False, count: int = 1) -> list[int]:
    return drained(Shuffle(numbers(9), size, SeedGenerator(3, 4, reshuffle), count))


def generator(steps: DatasetSteps, seed: int = 3, reshuffle: bool = True) -> Any:
    return steps("AnonymousSeedGenerator", seed, 4, reshuffle)[0]


#: op → its inputs behind the buffer's size: with seeds of its own.
SEEDED: dict[str, Any] = {
    "ShuffleDataset": lambda steps: (3, 4),
    "ShuffleDatasetV3": lambda steps: (3, 4, steps("DummySeedGenerator")),
    "ShuffleAndRepeatDataset": lambda steps: (3, 4, 1),
    "ShuffleAndRepeatDatasetV2": lambda steps: (3, 4, 1, steps("DummySeedGenerator")),
}


@pytest.mark.parametrize("op", SEEDED)
@pytest.mark.parametrize("reshuffle", [True, False, None])
def test_seeds_are_inputs(steps: DatasetSteps, op: str, reshuffle: bool | None) -> None:
    attrs = {} if reshuffle is None else {"reshuffle_each_iteration": reshuffle}
    made = steps.dataset(op, numbers(9), 5, *SEEDED[op](steps), **attrs)
    assert isinstance(made, Shuffle)
    differ = reshuffle is not False
    assert (made._seeds.seeds, made._seeds.reshuffles) == ((3, 4), differ)
    assert (made._size, made._count, made._is_one_sequence) == (5, 1, False)
    assert made._exchange is drawing.exchange()
    first = drained(made)
    assert first == order(5, differ)
    assert (drained(made) != first) is differ


@pytest.mark.parametrize("op", SEEDED)
def test_sizes_and_seeds_are_scalars(steps: DatasetSteps, op: str) -> None:
    rest = SEEDED[op](steps)
    with refused("buffer_size must be a scalar"):
        steps(op, numbers(9), ints(5), *rest)
    with refused("^seed must be a scalar"):
        steps(op, numbers(9), 5, ints(3), *rest[1:])
    with refused("^seed2 must be a scalar"):
        steps(op, numbers(9), 5, rest[0], ints(4), *rest[2:])
    if "Repeat" in op:
        with refused("^count must be a scalar"):
            steps(op, numbers(9), 5, *rest[:2], ints(1), *rest[3:])


@pytest.mark.parametrize("op", ["ShuffleAndRepeatDataset", "ShuffleAndRepeatDatasetV2"])
def test_epochs_of_a_shuffle_that_repeats(steps: DatasetSteps, op: str) -> None:
    _, _, _, *rest = SEEDED[op](steps)
    made = steps.dataset(op, numbers(9), 5, 3, 4, 2, *rest)
    assert (made._count, made.cardinality()) == (2, 18)
    assert drained(made) == order(5, True, 2)
    assert steps.dataset(op, numbers(9), 5, 3, 4, -1, *rest)._count == -1


@pytest.mark.parametrize(
    ("op", "seeds"), [("ShuffleDatasetV2", ()), ("ShuffleDatasetV3", (8, 9)), ("ShuffleAndRepeatDatasetV2", (8, 9, 1))]
)
@pytest.mark.parametrize("reshuffle", [True, False])
def test_seeds_come_of_a_generator(steps: DatasetSteps, op: str, seeds: Any, reshuffle: bool) -> None:
    """Which several datasets may share; it says itself whether epochs differ."""
    shared = generator(steps, reshuffle=reshuffle)
    first, second = (steps.dataset(op, numbers(9), 5, *seeds, shared) for _ in range(2))
    assert first._seeds is second._seeds
    assert (first._seeds.seeds, first._seeds.reshuffles) == ((3, 4), reshuffle)
    assert drained(first) == order(5, reshuffle)


def test_without_a_generator_a_shuffle_draws_its_seeds(steps: DatasetSteps) -> None:
    dummy = steps("DummySeedGenerator")
    first, second = (steps.dataset("ShuffleDatasetV2", numbers(9), 5, dummy) for _ in range(2))
    assert first._seeds.seeds != second._seeds.seeds
    assert first._seeds.reshuffles
    assert sorted(drained(first)) == list(range(9))
