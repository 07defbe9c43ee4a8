"""Kernels remember what a constant input said: one kernel, called with other arrays, shapes and constants."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tenfold_core import errors

if TYPE_CHECKING:
    from collections.abc import Callable

X = np.arange(24, dtype=np.float32).reshape(6, 4)
Y = np.arange(40, dtype=np.float32).reshape(10, 4)


def sliced(x: np.ndarray, begin: np.ndarray, size: np.ndarray) -> np.ndarray:
    pairs = zip(begin.tolist(), size.tolist(), strict=True)
    return x[tuple(slice(at, None if count < 0 else at + count) for at, count in pairs)]


def split(x: np.ndarray, sizes: np.ndarray, axis: np.ndarray) -> tuple[np.ndarray, ...]:
    return tuple(np.split(x, [int(sizes[0])], axis=int(axis)))


#: op, constants after x, attrs, and the same in NumPy.
CASES: list[tuple[str, list[list[Any]], dict[str, Any], Callable[..., Any]]] = [
    ("Reshape", [[[2, -1]], [[-1, 4, 2]]], {}, lambda x, shape: x.reshape(shape)),
    ("Slice", [[[1, 0], [2, 3]], [[0, 1], [-1, 2]]], {}, sliced),
    ("Pad", [[[[0, 1], [2, 0]]], [[[1, 1], [0, 0]]]], {}, lambda x, widths: np.pad(x, widths)),
    ("SplitV", [[[4, -1], 0], [[1, 3], 1]], {"num_split": 2}, split),
    ("ExpandDims", [[0], [-1]], {}, lambda x, axis: np.expand_dims(x, int(axis))),
]


@pytest.mark.parametrize("read_only", [True, False])
@pytest.mark.parametrize(("op", "constants", "attrs", "plain"), CASES, ids=[case[0] for case in CASES])
def test_a_kernel_called_again(
    ops: Any, op: str, constants: list[list[Any]], attrs: dict[str, Any], plain: Any, read_only: bool
) -> None:
    sets = [[np.array(each, np.int32) for each in given] for given in constants]
    for array in itertools.chain(*sets):
        array.flags.writeable = not read_only
    kernel, _ = ops.build(op, [X, *sets[0]], attrs)

    for given in (sets[0], sets[0], sets[1], sets[0]):
        for x in (X, Y, X):
            found, wanted = kernel(x, *given), plain(x, *given)
            if not isinstance(found, tuple):
                found, wanted = (found,), (wanted,)
            for mine, other in zip(found, wanted, strict=True):
                np.testing.assert_array_equal(mine, other)


def test_an_array_that_is_written_to_is_read_again(ops: Any) -> None:
    shape = np.array([2, 12], np.int32)
    kernel, _ = ops.build("Reshape", [X, shape], {})
    assert kernel(X, shape).shape == (2, 12)

    shape[:] = 3, 8

    assert kernel(X, shape).shape == (3, 8)


def test_a_constant_that_fits_one_array_only(ops: Any) -> None:
    shape = np.array([4, 6], np.int32)
    shape.flags.writeable = False
    kernel, _ = ops.build("Reshape", [X, shape], {})
    assert kernel(X, shape).shape == (4, 6)

    with pytest.raises(errors.InvalidArgumentError, match="tensor with 40 values, but the requested shape has 24"):
        kernel(Y, shape)
