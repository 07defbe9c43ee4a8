"""contrib's parallel_interleave: an error is one element, in its turn and in what is saved."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.dataset_machines import INT, SCALAR, Called, failing, mapped, plain, told
from tenfold_core import errors
from tenfold_kernels.resources.datasets.core import Machine, Run
from tenfold_kernels.resources.datasets.interleave import Interleave
from tenfold_kernels.resources.datasets.sources import Range, Tensors
from tenfold_kernels.resources.datasets.transforms import Repeat


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
