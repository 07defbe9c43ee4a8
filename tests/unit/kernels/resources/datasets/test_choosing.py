"""Elements that are left out: those met before, of each type and shape, and a sample that seeds decide."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.dataset_machines import ANY, INT, SCALAR, drained, mapped, numbers, plain
from tenfold_core import dtypes, errors
from tenfold_kernels.resources.datasets import choosing
from tenfold_kernels.resources.datasets.choosing import Sampling, Unique
from tenfold_kernels.resources.datasets.core import UNKNOWN, Run
from tenfold_kernels.resources.datasets.sources import Listed
from tenfold_kernels.resources.datasets.transforms import Repeat

#: (rate, seeds) → what TensorFlow 2.21's SamplingDataset keeps of 0 to 29.
SAMPLED: dict[tuple[float, tuple[int, int]], list[int]] = {
    (0.5, (1, 2)): [0, 2, 3, 4, 5, 7, 9, 10, 11, 12, 13, 17, 20, 24, 27],
    (0.3, (7, 0)): [1, 5, 8, 13, 15, 18, 21, 23, 26],
    (0.9, (0, 5)): [1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 25, 27, 28, 29],
}


def texts(*values: bytes) -> Any:
    array = np.empty(len(values), object)
    array[:] = values
    return array


def listed(dtype: dtypes.DType, *values: Any) -> Listed:
    return Listed((dtype,), ANY, [(value,) for value in values])


def test_each_value_comes_once() -> None:
    dataset = Unique(mapped(numbers(7), lambda n: n % 3))
    assert drained(dataset) == [0, 1, 2]
    assert dataset.cardinality() == UNKNOWN


@pytest.mark.parametrize("dtype", [dtypes.int32, dtypes.int64])
def test_values_of_other_shapes_are_others(dtype: dtypes.DType) -> None:
    kind = dtype.as_numpy_dtype
    rows = [np.array([1, 2], kind), np.array([[1], [2]], kind), np.array([1, 2], kind), np.array([2, 1], kind)]
    assert drained(Unique(listed(dtype, *rows))) == [[1, 2], [[1], [2]], [2, 1]]


def test_strings_are_compared_too() -> None:
    rows = [texts(b"a", b"b"), texts(b"ab"), texts(b"a", b"b"), texts(b"a", b"b").reshape(2, 1), texts()]
    assert drained(Unique(listed(dtypes.string, *rows, texts()))) == [[b"a", b"b"], [b"ab"], [[b"a"], [b"b"]], []]


def test_types_that_can_be_compared() -> None:
    with pytest.raises(errors.InvalidArgumentError, match="only supports inputs with a single component"):
        Unique(Listed(INT * 2, SCALAR * 2, []))
    with pytest.raises(errors.InvalidArgumentError, match=r"a single `tf.int32`, .* component, got float32\."):
        Unique(listed(dtypes.float32))


def test_what_was_seen_is_saved() -> None:
    dataset = Unique(mapped(numbers(9), lambda n: n % 4))
    machine, other = dataset.iterate(Run()), dataset.iterate(Run())
    assert [plain(machine()) for _ in range(2)] == [0, 1]
    drained(other)
    other.restore(machine.save())
    assert drained(other) == drained(machine) == [2, 3]


@pytest.mark.parametrize("how", SAMPLED)
def test_a_sample_is_tensorflow_s(how: tuple[float, tuple[int, int]]) -> None:
    rate, seeds = how
    dataset = Sampling(numbers(30), rate, *seeds)
    assert drained(dataset) == SAMPLED[how]
    machine, other = dataset.iterate(Run()), dataset.iterate(Run())
    for _ in range(4):
        machine()
    other.restore(machine.save())
    assert drained(other) == drained(machine) == SAMPLED[how][4:]


def test_a_rate_is_a_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    assert drained(Sampling(numbers(20), 1.0, 1, 2)) == list(range(20))
    assert drained(Sampling(numbers(20), 0.0, 1, 2)) == []
    monkeypatch.setattr(choosing, "_uniform", lambda number: 0.25)
    assert drained(Sampling(numbers(1), 0.25, 1, 2)) == [], "a number below the rate, not at it"


@pytest.mark.parametrize("kind", [Unique, lambda dataset: Sampling(dataset, 0.0, 1, 2)], ids=["unique", "sampling"])
def test_a_run_that_is_closed_ends_the_search(kind: Any) -> None:
    run = Run()
    machine = kind(Repeat(numbers(1), -1)).iterate(run)
    if kind is Unique:
        machine()
    run.close()
    with pytest.raises(errors.CancelledError):
        machine()
