"""The values that generated code and the executors share."""

from __future__ import annotations

import numpy as np

from tenfold_compiler.values import DEAD, dead_fetch, read_only
from tenfold_core import errors


def test_an_array_that_can_be_written_to_is_seen_through_a_view_that_cannot() -> None:
    array = np.zeros(3)

    seen = read_only(array)

    assert seen is not array
    assert np.shares_memory(seen, array)
    assert (seen.flags.writeable, array.flags.writeable) == (False, True)
    assert read_only(seen) is seen


def test_what_is_no_plain_array_is_itself() -> None:
    class Sub(np.ndarray): ...  # type: ignore[type-arg]

    for value in (1.5, np.float32(2), DEAD, np.zeros(2).view(Sub)):
        assert read_only(value) is value


def test_the_dead_value_and_its_fetch_are_named() -> None:
    assert repr(DEAD) == "DEAD"
    error = dead_fetch("some;key")
    assert isinstance(error, errors.InvalidArgumentError)
    assert error.message == "The tensor returned for some;key was not valid."
