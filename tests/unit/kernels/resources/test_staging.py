"""Staging areas as machines: elements in line, peeks that take nothing, room that is waited for, steps that end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold_core import errors
from tenfold_kernels.resources.staging import StagingArea
from tenfold_kernels.resources.waiting import Waiting


def one(value: float, size: int = 1) -> tuple[np.ndarray]:
    return (np.full(size, value, np.float32),)


def told(waiting: Any) -> list[Any]:
    assert isinstance(waiting, Waiting)
    results: list[Any] = []
    waiting.listen(lambda outputs, error: results.append(outputs if error is None else error))
    return results


def test_first_in_first_out_and_a_peek_takes_nothing() -> None:
    area = StagingArea("a", 0, 0)
    for value in (1, 2):
        assert area.put(one(value)) is None

    assert area.peek(1, 1).tolist() == [2]
    assert area.size() == 2
    assert [area.get(1).tolist(), area.get(1).tolist()] == [[1], [2]]


def test_several_tensors_stay_together() -> None:
    area = StagingArea("a", 0, 0)
    area.put((*one(1), *one(2)))

    assert [part.tolist() for part in area.get(2)] == [[1], [2]]


def test_a_take_waits_for_an_element() -> None:
    area = StagingArea("a", 0, 0)
    first, second = told(area.get(1)), told(area.get(1))

    area.put(one(7))

    assert [part.tolist() for part in first] == [[7]]
    assert not second


def test_a_step_that_ends_takes_nothing() -> None:
    area = StagingArea("a", 0, 0)
    given_up = area.get(1)
    results = told(given_up)
    given_up.cancel()

    area.put(one(7))

    assert not results
    assert area.get(1).tolist() == [7]


def test_a_put_waits_for_room() -> None:
    area = StagingArea("a", 1, 0)
    area.put(one(1))
    waiting = told(area.put(one(2)))

    assert area.get(1).tolist() == [1]

    assert waiting == [None]
    assert area.get(1).tolist() == [2]


def test_bytes_count_too() -> None:
    area = StagingArea("a", 0, 10)
    area.put(one(1, 2))
    waiting = told(area.put(one(2)))
    with pytest.raises(errors.ResourceExhaustedError, match="combined size of '12' bytes"):
        area.put(one(3, 3))

    area.clear()

    assert waiting == [None]
    assert area.size() == 1


def test_an_index_below_zero_is_refused() -> None:
    with pytest.raises(errors.InvalidArgumentError, match="no element -1"):
        StagingArea("a", 0, 0).peek(-1, 1)


def test_a_tuple_of_another_length_is_named_and_gone() -> None:
    area = StagingArea("a", 0, 0)
    area.put((*one(1), *one(2)))
    waiting = told(area.peek(1, 1))

    with pytest.raises(errors.InvalidArgumentError, match=r"Mismatch stage/unstage: 2 vs\. 1"):
        area.get(1)
    area.put(one(3))
    area.put((*one(4), *one(5)))

    # The steps that waited are told, not the step that put what did not fit.
    assert [type(found) for found in waiting] == [errors.InvalidArgumentError]
    assert area.size() == 2


def test_strings_count_by_number() -> None:
    area = StagingArea("a", 0, 47)
    strings = np.array([b"x" * 1000, b""], object)
    area.put((strings[:1],))
    with pytest.raises(errors.ResourceExhaustedError, match="combined size of '48' bytes"):
        area.put((strings,))
