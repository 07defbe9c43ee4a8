"""map_and_batch: an element that fails takes its batch with it, and no other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.dataset_machines import ANY, INT, SCALAR, AtOnce, Called, failing, mapped, numbers, told
from tenfold_core import errors
from tenfold_kernels.resources.datasets.core import Dataset, Machine, Run
from tenfold_kernels.resources.datasets.functional import Map
from tenfold_kernels.resources.datasets.mapped_batches import MapAndBatch
from tenfold_kernels.resources.datasets.parallel import ParallelMap


def batches(source: Dataset, size: int = 3, drop_remainder: bool = False) -> MapAndBatch:
    return MapAndBatch(INT, ANY, source, size, drop_remainder)


@pytest.mark.parametrize("calls", [1, 4])
def test_an_error_takes_its_whole_batch_of_map_and_batch(calls: int) -> None:
    source = ParallelMap(INT, ANY, numbers(11), Called(failing(3, 5)), (), True, calls, True)

    assert told(batches(source).iterate(Run())) == [[0, 1, 2], "no 3", [6, 7, 8], [9, 10]]


def test_an_error_of_the_last_elements_is_the_last_batch() -> None:
    source = mapped(numbers(7), failing(6))

    assert told(batches(source).iterate(Run())) == [[0, 1, 2], [3, 4, 5], "no 6"]
    assert told(batches(source, drop_remainder=True).iterate(Run())) == [[0, 1, 2], [3, 4, 5], "no 6"]


def test_an_error_of_the_input_is_one_element_of_the_batch_also_where_blocks_are_made() -> None:
    function = AtOnce(lambda n: n * 10, lambda rows: rows * 10)
    source = Map(INT, SCALAR, mapped(numbers(8), failing(4)), function, ())

    assert told(batches(source).iterate(Run())) == [[0, 10, 20], "no 4", [60, 70]]


def test_a_batch_of_map_and_batch_tells_of_other_shapes_in_tensorflows_words() -> None:
    source = mapped(numbers(4), lambda n: np.full((1, 3) if n == 2 else (1,), n))

    machine = batches(source).iterate(Run())

    with pytest.raises(errors.InvalidArgumentError, match=r"number of elements does not match.* \[1,3\],.* \[1\]"):
        machine()
    assert told(machine) == [[[3]]]


class Blocked(Dataset):
    """Numbers in blocks of at most two; the source of each pass is kept, and fails at these."""

    def __init__(self, count: int, *fails: int) -> None:
        super().__init__(INT, SCALAR)
        self._count, self._fails = count, fails
        self.asked: list[int] = []

    def iterate(self, run: Run) -> Machine:
        at = 0

        def following() -> Any:
            nonlocal at
            if at >= self._count:
                return None
            at += 1
            if at - 1 in self._fails:
                raise errors.InvalidArgumentError(None, None, f"no {at - 1}")
            return (np.asarray(at - 1),)

        def block(most: int) -> Any:
            nonlocal at
            self.asked.append(most)
            if at in self._fails:
                at += 1
                raise errors.InvalidArgumentError(None, None, f"no {at - 1}")
            whole = range(at, min(at + min(most, 2), self._count))
            end = next((n for n in whole if n in self._fails), whole.stop)
            rows, at = np.arange(at, end), end
            return (rows,) if len(rows) else None

        return Machine(following, block=block)


def test_blocks_fill_a_batch_and_are_counted_by_their_elements() -> None:
    source = Blocked(8)
    assert told(batches(source, 5).iterate(Run())) == [[0, 1, 2, 3, 4], [5, 6, 7]]
    assert source.asked[:3] == [5, 3, 1]


@pytest.mark.parametrize(
    ("fails", "wanted"),
    [
        (2, ["no 2", [5, 6, 7, 8, 9], [10, 11]]),
        (5, [[0, 1, 2, 3, 4], "no 5", [10, 11]]),
        (9, [[0, 1, 2, 3, 4], "no 9", [10, 11]]),
    ],
)
def test_a_block_that_fails_takes_the_rest_of_its_batch(fails: int, wanted: list[Any]) -> None:
    assert told(batches(Blocked(12, fails), 5).iterate(Run())) == wanted


def test_further_errors_of_a_batch_that_failed_are_left_with_it() -> None:
    assert told(batches(Blocked(12, 1, 3, 4, 7), 5).iterate(Run())) == ["no 1", "no 7", [10, 11]]


@pytest.mark.parametrize("fails", [0, 1])
def test_a_cancellation_leaves_the_batch(fails: int) -> None:
    """In the batch itself, and while what is left of one that failed is taken."""

    def body(n: Any) -> Any:
        if n == fails:
            raise errors.CancelledError(None, None, "ended")
        if n == 0:
            raise errors.InvalidArgumentError(None, None, "no 0")
        return n

    machine = batches(mapped(numbers(6), body)).iterate(Run())
    with pytest.raises(errors.CancelledError, match="ended"):
        machine()


def test_a_run_that_is_closed_takes_no_more_of_a_batch_that_failed() -> None:
    run = Run()

    def body(n: Any) -> Any:
        assert n == 0
        run.close()
        raise errors.InvalidArgumentError(None, None, "no 0")

    with pytest.raises(errors.CancelledError):
        batches(mapped(numbers(6), body)).iterate(run)()


def test_a_restored_one_goes_on() -> None:
    dataset = batches(mapped(numbers(11), failing(4)))
    machine, other = dataset.iterate(Run()), dataset.iterate(Run())
    assert told(machine, most=2) == [[0, 1, 2], "no 4"]
    other()
    other.restore(machine.save())
    assert told(other) == told(machine) == [[6, 7, 8], [9, 10]]
    assert other() is None
