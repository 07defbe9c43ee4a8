"""Quotients of integers are cut towards zero wherever they are made, also those of the least number."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from tenfold_core import dtypes, errors
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.arrays import truncated_quotient
from tenfold_kernels.resources.accumulators import DenseAccumulator


def quotient(x: int, y: int) -> int:
    """C++'s."""
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


def pairs(dtype: Any) -> tuple[Any, Any]:
    """Each sign with each, exact or not, the ends of the type; no quotient is beyond it."""
    limits = np.iinfo(dtype)
    numbers = {
        0,
        1,
        2,
        3,
        7,
        8,
        limits.max,
        limits.max - 1,
        limits.min,
        limits.min // 2,
        *((-1, -7, -8) * (limits.min < 0)),
    }
    found = [(x, y) for x, y in itertools.product(sorted(numbers), repeat=2) if y and (x, y) != (limits.min, -1)]
    return np.array([x for x, _ in found], dtype), np.array([y for _, y in found], dtype)


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint8, np.uint64])
def test_each_way_to_divide(ops: Any, dtype: Any) -> None:
    x, y = pairs(dtype)
    expected = [quotient(a, b) for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    places = np.arange(len(x), dtype=np.int64)

    assert truncated_quotient(x, y).tolist() == expected
    assert [int(truncated_quotient(a, b)) for a, b in zip(x, y, strict=True)] == expected
    for op in ("Div", "TruncateDiv") if dtype is not np.uint64 else ():
        assert ops.run(op, [x, y]).tolist() == expected
    sparse = ops.run("SparseDenseCwiseDiv", [places[:, np.newaxis], x, np.int64([len(x)]), y])
    assert (sparse.tolist(), sparse.dtype) == (expected, dtype)
    assert ops.run("ScatterDiv", [ops.variable(x), places, y]).value.tolist() == expected


@pytest.mark.parametrize("op", ["Div", "TruncateDiv", "FloorDiv", "SparseDenseCwiseDiv"])
def test_nothing_is_divided_by_zero(ops: Any, op: str) -> None:
    x, y = np.int32([4, 5]), np.int32([2, 0])
    inputs = [np.int64([[0], [1]]), x, np.int64([2]), y] if op.startswith("Sparse") else [x, y]

    with pytest.raises(errors.InvalidArgumentError, match="Integer division by zero"):
        ops.run(op, inputs)


def test_means_of_gradients_too() -> None:
    mean = DenseAccumulator("mean", dtypes.int64, TensorShape(None), "MEAN")
    least = np.iinfo(np.int64).min

    for gradient in ([least, -7, 7], [0, 0, 0]):
        mean.apply(0, np.array(gradient, np.int64))

    assert mean.take(2).tolist() == [least // 2, -3, 3]
