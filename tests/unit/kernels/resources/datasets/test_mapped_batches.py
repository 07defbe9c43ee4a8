"""map_and_batch: an element that fails takes its batch with it, and no other."""

from __future__ import annotations

import numpy as np
import pytest

from support.dataset_machines import ANY, INT, SCALAR, AtOnce, Called, failing, mapped, numbers, told
from tenfold_core import errors
from tenfold_kernels.resources.datasets.core import Dataset, Run
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
