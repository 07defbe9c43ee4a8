"""Iterators over several devices: who gets which element, who waits for whom, and how it ends."""

from __future__ import annotations

from typing import Any

import pytest

from support.dataset_machines import INT, SCALAR, numbers, result
from tenfold_core import errors
from tenfold_kernels.resources.datasets.devices import MultiDeviceIterator
from tenfold_kernels.resources.waiting import Waiting


def value(element: Any) -> Any:
    return None if element is None else element[0].item()


def test_elements_go_round_and_the_end_is_everyones() -> None:
    iterator = MultiDeviceIterator(INT, SCALAR, 2)
    first = iterator.start(numbers(5), 2)

    assert [result(iterator.get_next(shard, first, value)) for shard in (0, 1, 1, 0, 0)] == [0, 1, 3, 2, 4]
    assert [result(iterator.get_next(shard, first, value)) for shard in (1, 0)] == [None, None]


def test_a_shard_waits_until_another_takes_what_is_its_own() -> None:
    iterator = MultiDeviceIterator(INT, SCALAR, 2)
    first = iterator.start(numbers(9), 1)
    got = [result(iterator.get_next(0, first, value)) for _ in range(2)]
    waiting = iterator.get_next(0, first, value)
    assert isinstance(waiting, Waiting)

    assert [result(iterator.get_next(1, first, value)) for _ in range(2)] == [1, 3]
    assert (got, result(waiting)) == ([0, 2], 4)


def test_a_new_pass_ends_the_old_one() -> None:
    iterator = MultiDeviceIterator(INT, SCALAR, 1)
    first = iterator.start(numbers(3), 1)
    assert result(iterator.get_next(0, first, value)) == 0
    second = iterator.start(numbers(3), 1)

    with pytest.raises(errors.InvalidArgumentError, match=r"Invalid incarnation id. Provided: 1; Expected: 2"):
        iterator.get_next(0, first, value)
    with pytest.raises(errors.InvalidArgumentError, match="Invalid shard number 1"):
        iterator.get_next(1, second, value)
    assert result(iterator.get_next(0, second, value)) == 0


def test_closing_wakes_who_waits() -> None:
    iterator = MultiDeviceIterator(INT, SCALAR, 2)
    first = iterator.start(numbers(9), 1)
    result(iterator.get_next(0, first, value))
    result(iterator.get_next(0, first, value))
    waiting = iterator.get_next(0, first, value)
    iterator.close()

    with pytest.raises(errors.CancelledError, match="Cancelled Multidevice iterator"):
        result(waiting)
