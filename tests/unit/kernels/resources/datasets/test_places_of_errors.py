"""Where an element that fails stands: in its batch, in its turn, and in what is saved."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.dataset_machines import ANY, INT, SCALAR, AtOnce, Called, mapped, numbers, plain
from tenfold_core import errors
from tenfold_kernels.resources.datasets.core import Dataset, Machine, Run
from tenfold_kernels.resources.datasets.functional import Map
from tenfold_kernels.resources.datasets.interleave import Interleave
from tenfold_kernels.resources.datasets.mapped_batches import MapAndBatch
from tenfold_kernels.resources.datasets.parallel import ParallelMap
from tenfold_kernels.resources.datasets.sources import Range, Tensors
from tenfold_kernels.resources.datasets.transforms import Repeat


def told(machine: Machine, most: int = 40) -> list[Any]:
    """Elements, and the messages of errors, until the end."""
    found: list[Any] = []
    while len(found) < most:
        try:
            element = machine()
        except errors.InvalidArgumentError as error:
            found.append(error.message)
            continue
        if element is None:
            break
        found.append(plain(element))
    return found


def failing(*at: int) -> Any:
    def body(n: Any) -> Any:
        if n in at:
            raise errors.InvalidArgumentError(None, None, f"no {n}")
        return n

    return body


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


def repeated(n: Any) -> Any:
    if n == 5:
        raise errors.InvalidArgumentError(None, None, "no five")
    return Repeat(Tensors(INT, SCALAR, (np.asarray(n),)), int(n)).as_array()


def turns(fails_in: str, block: int = 1) -> Machine:
    """Of 4 fours, a five that fails, and 6 sixes; two are open at once."""
    source = Range(INT, SCALAR, 4, 7, 1)
    numbered = mapped(source, failing(5)) if fails_in == "the input" else source
    return Interleave(
        INT, SCALAR, numbered, Called(repeated), (), cycle=2, block=block, ahead=1, fills_at_once=True
    ).iterate(Run())


@pytest.mark.parametrize(("fails_in", "message"), [("the input", "no 5"), ("the function", "no five")])
def test_an_error_is_one_element_in_its_turn(fails_in: str, message: str) -> None:
    assert told(turns(fails_in)) == [4, message, 4, 4, 6, 4, 6, 6, 6, 6, 6]


def test_an_error_that_was_not_told_yet_is_saved() -> None:
    machine = turns("the function")
    assert plain(machine()) == 4
    other = turns("the function")

    other.restore(machine.save())

    assert told(other) == told(machine) == ["no five", 4, 4, 6, 4, 6, 6, 6, 6, 6]


def test_an_error_that_was_told_is_not_told_again_by_one_that_is_restored() -> None:
    machine, other = turns("the function"), turns("the function")
    assert plain(machine()) == 4
    with pytest.raises(errors.InvalidArgumentError):
        machine()

    other.restore(machine.save())

    assert told(other) == told(machine)
