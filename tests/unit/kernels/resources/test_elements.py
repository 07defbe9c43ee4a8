"""What a TensorArray does with elements of the host's memory: arrays stay arrays, whatever their rank and type."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold_core import dtypes, errors
from tenfold_kernels.resources.elements import HOST, zeros


def texts(*values: bytes) -> np.ndarray[Any, Any]:
    array = np.empty(len(values), object)
    array[:] = values
    return array


@pytest.mark.parametrize("make", [zeros, HOST.zeros], ids=["zeros", "HOST"])
def test_zeros_of_each_type(make: Any) -> None:
    numbers = make([2, 1], dtypes.int8)
    assert (numbers.tolist(), numbers.dtype, numbers.shape) == ([[0], [0]], np.int8, (2, 1))
    strings = make((2,), dtypes.string)
    assert (strings.tolist(), strings.dtype) == ([b"", b""], object)
    assert make((), dtypes.string).shape == ()
    with pytest.raises(errors.ResourceExhaustedError):
        make((1 << 40, 1 << 20), dtypes.string)


def test_sums() -> None:
    assert HOST.add(np.array([1, 2]), np.array([3, 5])).tolist() == [4, 7]


@pytest.mark.parametrize(
    "values",
    [
        [np.array(1.5), np.array(2.5)],
        [np.array([1, 2]), np.array([3, 4]), np.array([5, 6])],
        [np.array([[1], [2]]), np.array([[3], [4]])],
        [np.zeros((0, 2)), np.zeros((0, 2))],
        [np.zeros((2, 0)), np.zeros((2, 0))],
        [texts(b"a"), texts(b"b")],
        [texts(b"a")],
    ],
    ids=["scalars", "vectors", "matrices", "no rows", "no columns", "texts", "one"],
)
def test_a_stack_has_a_dimension_more(values: list[Any]) -> None:
    found = HOST.stack(values)
    assert found.shape == (len(values), *values[0].shape)
    assert found.dtype == values[0].dtype
    assert found.tolist() == [each.tolist() for each in values]


def test_a_stack_of_texts_without_dimensions() -> None:
    scalars = [np.array(None, object) for _ in range(2)]
    for scalar, text in zip(scalars, (b"a", b"bc"), strict=True):
        scalar[()] = text
    found = HOST.stack(scalars)
    assert (found.tolist(), found.dtype, found.shape) == ([b"a", b"bc"], object, (2,))


def test_rows_of_several_and_some_of_one() -> None:
    whole = HOST.concatenate([np.array([[1], [2]]), np.array([[3]])])
    assert whole.tolist() == [[1], [2], [3]]
    assert HOST.rows(whole, 1, 3).tolist() == [[2], [3]]
    assert HOST.rows(whole, 0, 0).shape == (0, 1)


@pytest.mark.parametrize(
    "value",
    [np.array([1, 2], np.int8), np.array([[1.0], [2.0]]), texts(b"a", b"bc"), texts(b"a").reshape(1, 1), np.zeros(0)],
    ids=["numbers", "rows", "texts", "rows of texts", "none"],
)
def test_each_row_is_an_array(value: Any) -> None:
    rows = list(HOST.each(value))
    assert len(rows) == len(value)
    for row, wanted in zip(rows, value.tolist(), strict=True):
        assert type(row) is np.ndarray
        assert (row.shape, row.dtype) == (value.shape[1:], value.dtype)
        assert row.tolist() == wanted
