"""tf.data.experimental's datasets by their ops and older names: what each makes, its defaults, what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.dataset_machines import ANY, INT, SCALAR, Called, drained, failing, ints, mapped, numbers, one, plain
from support.dataset_ops import DatasetSteps, refused
from tenfold_core import dtypes, errors
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.cpu import dataset_experimental
from tenfold_kernels.resources.datasets.batches import Batch
from tenfold_kernels.resources.datasets.core import INFINITE, UNKNOWN, Dataset, Run, dataset_of
from tenfold_kernels.resources.datasets.functional import Filter
from tenfold_kernels.resources.datasets.sources import Listed, RandomNumbers, Slices
from tenfold_kernels.resources.datasets.transforms import Repeat, Zip
from tenfold_protos.attr_value_pb2 import NameAttrList

WIDE = [TensorShape([None])]


@pytest.fixture
def steps() -> DatasetSteps:
    return DatasetSteps()


def twins(op: str) -> list[str]:
    return [op, f"Experimental{op}"]


def lists(*rows: list[int]) -> Dataset:
    return Listed(INT, ANY, [(ints(*row),) for row in rows])


# ---- rows in other elements ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", twins("UnbatchDataset"))
def test_rows_of_elements(steps: DatasetSteps, op: str) -> None:
    made = steps.dataset(op, lists([1, 2], [3]))
    assert drained(made) == [1, 2, 3]
    assert (made.types, made.shapes) == (INT, SCALAR)


@pytest.mark.parametrize("op", twins("RebatchDataset"))
def test_batches_for_replicas(steps: DatasetSteps, op: str) -> None:
    made = steps.dataset(op, lists([1, 2, 3], [4, 5]), 2, output_shapes=WIDE)
    assert drained(made) == [[1, 2], [3], [4], [5]]
    with refused("num_replicas must be a scalar"):
        steps(op, lists([1]), ints(2))


def test_batches_of_other_sizes(steps: DatasetSteps) -> None:
    source = lists([1, 2, 3], [4, 5])
    for sizes, drop, wanted in (
        (ints(2), False, [[1, 2], [3, 4], [5]]),
        (ints(2), True, [[1, 2], [3, 4]]),
        (one(4), False, [[1, 2, 3, 4], [5]]),
        (ints(1, 2), False, [[1], [2, 3], [4], [5]]),
    ):
        assert drained(steps.dataset("RebatchDatasetV2", source, sizes, drop, output_shapes=WIDE)) == wanted
    with refused(r"^batch_sizes must be a scalar or a vector, got shape \[1,2\]$"):
        steps("RebatchDatasetV2", source, ints([1, 2]), False, output_shapes=WIDE)


@pytest.mark.parametrize("op", twins("SlidingWindowDataset"))
def test_batches_that_slide(steps: DatasetSteps, op: str) -> None:
    def made(*sizes: Any, **attrs: Any) -> Any:
        return steps.dataset(op, numbers(7), *sizes, output_shapes=WIDE, **attrs)

    assert drained(made(2, 3, 2)) == [[0, 2], [3, 5]], "the rest is left out unless something else is said"
    if op == "SlidingWindowDataset":
        assert drained(made(2, 3, 2, drop_remainder=True)) == [[0, 2], [3, 5]]
        assert drained(made(2, 3, 2, drop_remainder=False)) == [[0, 2], [3, 5], [6]]
    for place, name in enumerate(("window_size", "window_shift", "window_stride")):
        values: list[Any] = [2, 3, 2]
        values[place] = ints(1)
        with refused(f"{name} must be a scalar"):
            made(*values)


@pytest.mark.parametrize("op", twins("DenseToSparseBatchDataset"))
def test_batches_of_sparse_rows(steps: DatasetSteps, op: str) -> None:
    how: dict[str, Any] = {"output_types": [dtypes.variant], "output_shapes": [TensorShape([3])]}
    made = steps.dataset(op, lists([1, 2], [3]), 2, ints(4), **how)
    assert drained(made) == [[[[0, 0], [0, 1], [1, 0]], [1, 2, 3], [2, 4]]]
    with refused("DenseToSparseDataset only supports inputs with a single component"):
        steps(op, Zip(INT * 2, ANY * 2, lists([1]), lists([1])), 2, ints(4), **how)
    with refused(r"row_shape must be a vector, got shape \[\]"):
        steps(op, lists([1]), 2, one(4), **how)
    with refused(r"row_shape must be a vector, got shape \[1,1\]"):
        steps(op, lists([1]), 2, ints([4]), **how)
    with refused("batch_size must be a scalar"):
        steps(op, lists([1]), ints(2), ints(4), **how)


# ---- shares ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", twins("AutoShardDataset"))
def test_each_worker_s_share(steps: DatasetSteps, op: str) -> None:
    for policy in ({}, {"auto_shard_policy": 0}, {"auto_shard_policy": 2}, {"auto_shard_policy": 1}):
        assert drained(steps.dataset(op, numbers(5), 2, 1, **policy)) == [1, 3]
    assert drained(steps.dataset(op, numbers(5), 2, 0)) == [0, 2, 4]
    assert drained(steps.dataset(op, numbers(3), 1, 0)) == [0, 1, 2]
    source = numbers(5)
    assert steps.dataset(op, source, 2, 1, auto_shard_policy=-1) is source
    for count in (0, -1):
        with refused(f"^num_workers must be >= 1, currently {count}$"):
            steps(op, source, count, 0)
    for at in (2, -1):
        with refused(f"^index must be >= 0 and < 2, currently {at}$"):
            steps(op, source, 2, at)
    with refused("num_workers must be a scalar"):
        steps(op, source, ints(2), 0)
    with refused("index must be a scalar"):
        steps(op, source, 2, ints(0))


# ---- functions -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", twins("ScanDataset"))
def test_scans(steps: DatasetSteps, op: str) -> None:
    def body(a: Any, b: Any, n: Any, captured: Any) -> Any:
        if n == 3:
            raise errors.OutOfRangeError(None, None, "over")
        return a + n, b * 2, a * 1000 + b * 100 + n * 10 + captured

    def made(**attrs: Any) -> Any:
        return steps.dataset(
            op, numbers(5), one(1), one(2), one(7), f=body, Tstate=list(INT * 2), Targuments=list(INT), **attrs
        )

    machine = made().iterate(Run())
    assert [plain(machine()) for _ in range(3)] == [1207, 1417, 2827]
    assert machine() is None, "ended by its function"
    assert (made().cardinality(), made(preserve_cardinality=True).cardinality()) == (UNKNOWN, 5)
    machine = made(preserve_cardinality=True).iterate(Run())
    for _ in range(3):
        machine()
    with refused("Function invocation produced OutOfRangeError"):
        machine()


@pytest.mark.parametrize("op", twins("TakeWhileDataset"))
def test_elements_before_the_first_that_is_not_wanted(steps: DatasetSteps, op: str) -> None:
    made = steps.dataset(op, numbers(5), one(2), predicate=lambda n, limit: np.array(n != limit), Targuments=list(INT))
    assert drained(made) == [0, 1]


@pytest.mark.parametrize("op", twins("GroupByWindowDataset"))
def test_windows_of_a_key(steps: DatasetSteps, op: str) -> None:
    """Each function has captured values of its own."""
    made = steps.dataset(
        op, numbers(8), one(2), one(3), one(10), one(20), one(4), output_shapes=WIDE,
        key_func=lambda n, by: n % by,
        reduce_func=lambda key, window, size, a, b: Batch(INT, ANY, dataset_of(window), int(size), False).as_array()
        if (a, b) == (10, 20) else None,
        window_size_func=lambda key, size: size,
        Tkey_func_other_arguments=list(INT), Treduce_func_other_arguments=list(INT * 3),
        Twindow_size_func_other_arguments=list(INT),
    )  # fmt: skip
    assert drained(made) == [[0, 2, 4], [6], [1, 3, 5], [7]]
    assert (made.types, made.shapes) == (INT, tuple(WIDE))


@pytest.mark.parametrize("op", twins("GroupByReducerDataset"))
def test_reductions_of_each_key(steps: DatasetSteps, op: str) -> None:
    values = [one(n) for n in (2, 5, 10, 3, 1000)]
    made = steps.dataset(
        op, numbers(4), *values,
        key_func=lambda n, by: n % by,
        init_func=lambda key, first: first + key,
        reduce_func=lambda state, n, a, b: state * a + n * b,
        finalize_func=lambda state, more: state + more,
        Tkey_func_other_arguments=list(INT), Tinit_func_other_arguments=list(INT),
        Treduce_func_other_arguments=list(INT * 2), Tfinalize_func_other_arguments=list(INT),
    )  # fmt: skip
    # 5, then ·10 + 0, ·10 + 6; 6, then ·10 + 3, ·10 + 9
    assert drained(made) == [1506, 1639]


# ---- turns and choices -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", twins("DirectedInterleaveDataset"))
def test_turns_by_a_selector(steps: DatasetSteps, op: str) -> None:
    selector = Slices(INT, SCALAR, (ints(0, 1, 1, 0, 0, 1),))
    tens = mapped(numbers(9), lambda n: n * 10)
    assert drained(steps.dataset(op, selector, numbers(2), tens)) == [0, 0, 10, 1, 20]
    if op == "DirectedInterleaveDataset":
        for stops, wanted in ((True, [0, 0, 10, 1]), (False, [0, 0, 10, 1, 20])):
            assert drained(steps.dataset(op, selector, numbers(2), tens, stop_on_empty_dataset=stops)) == wanted
    floats = Slices((dtypes.float32,), SCALAR, (np.zeros(1, np.float32),))
    for wrong in (floats, Slices((dtypes.int32,), SCALAR, (ints(0),)), Zip(INT * 2, SCALAR * 2, selector, selector)):
        with refused("The selector input must be a dataset of scalar int64 elements"):
            steps(op, wrong, numbers(2), tens)


@pytest.mark.parametrize("op", twins("ChooseFastestDataset"))
def test_one_of_the_same(steps: DatasetSteps, op: str) -> None:
    how = {"num_experiments": 1}
    assert drained(steps.dataset(op, numbers(3), numbers(3), **how)) == [0, 1, 2]
    assert drained(steps.dataset(op, mapped(numbers(3), lambda n: n * 2), numbers(3), **how)) == [0, 2, 4], "the first"
    with refused("must have the same elements; their numbers are 3, 2"):
        steps(op, numbers(3), numbers(2), **how)


def unsure(count: int) -> Dataset:
    return Filter(numbers(count), Called(lambda n: np.array(True)), ())


def test_how_many_there_are_of_the_same(steps: DatasetSteps) -> None:
    def count(*datasets: Dataset) -> int:
        return int(steps.dataset("ChooseFastestDataset", *datasets, num_experiments=1).cardinality())

    assert count(unsure(3), numbers(3)) == 3
    assert count(numbers(3), unsure(3)) == 3
    assert count(unsure(3), unsure(2)) == UNKNOWN
    assert count(Repeat(numbers(1), -1), unsure(2)) == INFINITE
    with refused("their numbers are 3, -2, 2"):
        count(numbers(3), unsure(3), numbers(2))


def test_the_first_branch(steps: DatasetSteps) -> None:
    def first(dataset: Any, a: Any, b: Any) -> Any:
        return mapped(dataset_of(dataset), lambda n: n * int(a) + int(b)).as_array()

    how: dict[str, Any] = {
        "branches": [NameAttrList(name="first"), NameAttrList(name="second")], "Targuments": list(INT * 3),
        "num_elements_per_branch": 1, "other_arguments_lengths": [2, 1],
    }  # fmt: skip
    inputs = (numbers(3), 1, 1, one(10), one(5), one(99))
    made = steps.dataset("ChooseFastestBranchDataset", *inputs, functions={"first": first}, **how)
    assert drained(made) == [5, 15, 25]
    with refused("^Function first is not defined: the graph of node 'n' has no library"):
        steps("ChooseFastestBranchDataset", *inputs, **how)


@pytest.mark.parametrize("op", twins("IgnoreErrorsDataset"))
def test_errors_that_are_ignored(steps: DatasetSteps, op: str) -> None:
    assert drained(steps.dataset(op, mapped(numbers(4), failing(1)))) == [0, 2, 3]


@pytest.mark.parametrize("op", twins("UniqueDataset"))
def test_each_value_once(steps: DatasetSteps, op: str) -> None:
    assert drained(steps.dataset(op, Slices(INT, SCALAR, (ints(1, 2, 1, 3, 2),)))) == [1, 2, 3]


# ---- chance ----------------------------------------------------------------------------------------------------------


def test_a_sample(steps: DatasetSteps) -> None:
    def made(rate: float, *seeds: Any) -> list[Any]:
        return drained(steps.dataset("SamplingDataset", numbers(50), np.array(rate, np.float32), *seeds))

    assert (made(1.0, 1, 2), made(0.0, 1, 2)) == (list(range(50)), [])
    half = made(0.5, 1, 2)
    assert 10 < len(half) < 40
    assert half == made(0.5, 1, 2)
    assert len({tuple(made(0.5, *seeds)) for seeds in ((1, 2), (1, 3), (3, 2), (2, 1))}) == 4
    assert made(0.5, 0, 0) != made(0.5, 0, 0), "seeds are drawn"
    with refused("^rate must be a scalar$"):
        steps("SamplingDataset", numbers(9), np.array([0.5], np.float32), 1, 2)
    with refused("^seed must be a scalar"):
        steps("SamplingDataset", numbers(9), np.array(0.5, np.float32), ints(1), 2)
    with refused("^seed2 must be a scalar"):
        steps("SamplingDataset", numbers(9), np.array(0.5, np.float32), 1, ints(2))


def first_of(dataset: Any) -> list[int]:
    machine = dataset.iterate(Run())
    return [plain(machine()) for _ in range(4)]


@pytest.mark.parametrize("op", [*twins("RandomDataset"), "RandomDatasetV2"])
def test_numbers_without_end(steps: DatasetSteps, op: str) -> None:
    rest = (steps("DummySeedGenerator"),) if op.endswith("V2") else ()
    wanted = first_of(RandomNumbers(INT, SCALAR, lambda: (3, 4)))
    made = steps.dataset(op, 3, 4, *rest)
    assert [first_of(made), first_of(made)] == [wanted, wanted]
    assert (made.types, made.shapes, made.cardinality()) == (INT, SCALAR, INFINITE)
    with refused("^seed must be a scalar"):
        steps(op, ints(3), 4, *rest)
    with refused("^seed2 must be a scalar"):
        steps(op, 3, ints(4), *rest)


def test_numbers_that_differ_in_each_pass(steps: DatasetSteps) -> None:
    dummy = steps("DummySeedGenerator")
    made = steps.dataset("RandomDatasetV2", 3, 4, dummy, rerandomize_each_iteration=True)
    assert first_of(made) != first_of(made)
    again = steps.dataset("RandomDatasetV2", 3, 4, dummy, rerandomize_each_iteration=False)
    assert first_of(again) == first_of(again) == first_of(RandomNumbers(INT, SCALAR, lambda: (3, 4)))


def test_numbers_of_a_generator_that_is_shared(steps: DatasetSteps) -> None:
    shared, _ = steps("AnonymousSeedGenerator", 3, 4, False)
    made = steps.dataset("RandomDatasetV2", 8, 9, shared)
    assert first_of(made) == first_of(RandomNumbers(INT, SCALAR, lambda: (3, 4)))


# ---- lists -----------------------------------------------------------------------------------------------------------


def test_elements_of_a_list(steps: DatasetSteps) -> None:
    def made(count: int, components: int) -> Any:
        return steps.dataset(
            "ListDataset", *(one(n) for n in range(count)), output_types=list(INT * components),
            output_shapes=list(SCALAR * components),
        )  # fmt: skip

    assert drained(made(4, 1)) == [0, 1, 2, 3]
    assert drained(made(4, 2)) == [(0, 1), (2, 3)]
    assert drained(made(3, 3)) == [(0, 1, 2)]
    with refused("^4 tensors do not make elements of 3 components$"):
        made(4, 3)
    whole = np.arange(3)
    kept = steps.dataset("ListDataset", whole[1:])
    whole[:] = 0
    assert drained(kept) == [[1, 2]]


# ---- checks and delays -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", [*twins("AssertNextDataset"), "AssertPrevDataset"])
def test_what_a_dataset_was_made_by(steps: DatasetSteps, op: str) -> None:
    source = Batch(INT, ANY, Repeat(numbers(4), 1), 2, False)
    for names in ([], [b"Batch"], [b"Batch", b"Repeat"], [b"Batch", b"Repeat", b"Range"]):
        assert steps.dataset(op, source, np.array(names, object)) is source
    for names, text in (
        ([b"Repeat"], "Asserted Repeat transformation at offset 0 but encountered Batch transformation instead"),
        ([b"Batch", b"Map"], "Asserted Map transformation at offset 1 but encountered Repeat transformation instead"),
        ([b"Batch", b"Repeat", b"Range", b"X"], "Asserted X transformation at offset 3 but encountered nothing"),
    ):
        with refused(text):
            steps(op, source, np.array(names, object))


@pytest.mark.parametrize("op", twins("NonSerializableDataset"))
def test_what_is_never_saved(steps: DatasetSteps, op: str) -> None:
    made = steps.dataset(op, numbers(3))
    machine = made.iterate(Run())
    assert drained(machine) == [0, 1, 2]
    assert made.cardinality() == 3
    with pytest.raises(errors.UnimplementedError, match="cannot be saved"):
        machine.save()
    with pytest.raises(errors.UnimplementedError, match="cannot be restored"):
        machine.restore(0)


@pytest.mark.parametrize("op", twins("SleepDataset"))
def test_each_element_is_so_late(steps: DatasetSteps, op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(dataset_experimental.time, "sleep", slept.append)
    made = steps.dataset(op, numbers(2), 1500)
    assert drained(made) == [0, 1]
    assert slept == [0.0015] * 4
    assert made.is_slow
    assert made.cardinality() == 2
    machine, other = made.iterate(Run()), made.iterate(Run())
    machine()
    other.restore(machine.save())
    assert plain(other()) == 1


def test_an_element_that_is_late_is_given_up(steps: DatasetSteps, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run()
    monkeypatch.setattr(dataset_experimental.time, "sleep", lambda seconds: run.close())
    machine = steps.dataset("SleepDataset", numbers(2), 1).iterate(run)
    with pytest.raises(errors.CancelledError):
        machine()


def test_how_late_an_element_may_be(steps: DatasetSteps) -> None:
    for microseconds in (0, 60_000_000):
        steps("SleepDataset", numbers(2), microseconds)
    for microseconds in (-1, 60_000_001):
        with refused("^sleep_microseconds must be >= 0 and at most 60000000$"):
            steps("SleepDataset", numbers(2), microseconds)
    with refused("sleep_microseconds must be a scalar"):
        steps("SleepDataset", numbers(2), ints(1))
