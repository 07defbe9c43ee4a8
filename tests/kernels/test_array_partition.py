"""Rows split into parts and stitched together again by compiled loops, against NumPy's indexing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold_core import errors

RNG = np.random.default_rng(9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64, np.uint8, np.bool_])
@pytest.mark.parametrize("row", [(), (16,), (2, 3)])
@pytest.mark.parametrize("parts", [1, 2, 5])
def test_rows_are_split_in_order_and_stitched_again(ops: Any, dtype: Any, row: tuple[int, ...], parts: int) -> None:
    data = RNG.integers(0, 99, (60, *row)).astype(dtype)
    which = RNG.integers(0, parts, 60).astype(np.int32)

    found = ops.run("DynamicPartition", [data, which], num_partitions=parts)

    found = [found] if parts == 1 else list(found)
    for part, values in enumerate(found):
        np.testing.assert_array_equal(values, data[which == part])
    places = [np.flatnonzero(which == part).astype(np.int32) for part in range(parts)]
    np.testing.assert_array_equal(ops.run("DynamicStitch", [*places, *found], N=parts), data)


def test_partitions_of_rank_two_empty_parts_and_strides(ops: Any) -> None:
    data = RNG.standard_normal((8, 6, 4)).astype(np.float32)[::2, ::3]
    which = np.int32([[3, 0], [0, 3], [3, 3], [0, 0]])

    found = ops.run("DynamicPartition", [data, which], num_partitions=5)

    assert [len(part) for part in found] == [4, 0, 0, 4, 0]
    np.testing.assert_array_equal(found[3], data[which == 3])
    nothing = ops.run("DynamicPartition", [data[:0], which[:0]], num_partitions=2)
    assert [part.shape for part in nothing] == [(0, 4), (0, 4)]


@pytest.mark.parametrize("bad", [-1, 3])
def test_a_part_that_is_not_there_is_named(ops: Any, bad: int) -> None:
    text = rf"^partitions\[1,0\] = {bad} is not in \[0, 3\)$"
    with pytest.raises(errors.InvalidArgumentError, match=text):
        ops.run("DynamicPartition", [np.ones((2, 2, 3), np.float32), np.int32([[0, 1], [bad, 2]])], num_partitions=3)


def test_stitching_lets_the_last_row_win_and_gaps_be_zero(ops: Any) -> None:
    rows = np.float32([[1, 1], [2, 2], [3, 3]])

    result = ops.run("DynamicStitch", [np.int32([4, 1]), np.int32(1), rows[:2], rows[2]], N=2)

    assert result.tolist() == [[0, 0], [3, 3], [0, 0], [0, 0], [1, 1]]


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint16])
def test_the_remainder_by_one_number(ops: Any, dtype: Any) -> None:
    """Of the lowest number by -1, too."""
    info = np.iinfo(dtype)
    x = np.array([info.min, info.min + 1, 0, 1, 7, 8, info.max], dtype)
    for divisor in {1, 3, 7, info.max, *((-1, -3, info.min) if info.min else ())}:
        y = np.array(divisor, dtype)
        with np.errstate(all="ignore"):
            expected = np.mod(x, np.full_like(x, divisor))
        np.testing.assert_array_equal(ops.run("FloorMod", [x, y]), expected)
