"""Unique*, UniqueWithCounts* and ListDiff: types with and without a loop, axes, nan, empty arrays, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.op_values import ints, refused
from support.room import assert_wants
from tenfold_core import dtypes

F = np.float32


def of(dtype: Any, values: Any) -> np.ndarray:
    if dtype is not object:
        return np.array(values, dtype)
    made = np.array(values, object)
    return np.array([b"%d" % v for v in made.reshape(-1)], object).reshape(made.shape)


VECTORS = [
    ([], [], [], []), ([5], [5], [0], [1]), ([3, 1, 3, 2, 1, 3], [3, 1, 2], [0, 1, 0, 2, 1, 0], [3, 2, 1]),
    ([1, 1, 1, 1], [1], [0, 0, 0, 0], [4]), ([4, 3, 2, 1, 0], [4, 3, 2, 1, 0], [0, 1, 2, 3, 4], [1, 1, 1, 1, 1]),
    ([0, 8, 16, 24, 8, 0], [0, 8, 16, 24], [0, 1, 2, 3, 1, 0], [2, 2, 1, 1]),
]  # fmt: skip


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32, np.int8, object])
@pytest.mark.parametrize(("x", "y", "places", "counts"), VECTORS)
def test_values_in_the_order_of_their_first_place(
    ops: Any, dtype: Any, index: Any, x: Any, y: Any, places: Any, counts: Any
) -> None:
    given, out_idx = of(dtype, x).reshape(len(x)), dtypes.as_dtype(index)
    for inputs, version in (([given], ""), ([given, np.zeros(0, np.int64)], "V2"), ([given, np.int64([0])], "V2"),
                            ([given, np.int64([-1])], "V2")):  # fmt: skip
        found = ops.run(f"Unique{version}", inputs, out_idx=out_idx)
        assert [each.tolist() for each in found] == [of(dtype, y).tolist(), places]
        assert found[1].dtype == index
        counted = ops.run(f"UniqueWithCounts{version}", inputs, out_idx=out_idx)
        assert [each.tolist() for each in counted] == [of(dtype, y).tolist(), places, counts]
        assert counted[2].dtype == index


def test_numbers_at_the_ends_of_their_type_and_strides(ops: Any) -> None:
    ends = np.iinfo(np.int64)
    x = np.array([ends.max, 0, ends.min, 0, -1, 0, ends.max, 0], np.int64)
    y, places = ops.run("Unique", [x[::2]])
    assert (y.tolist(), places.tolist()) == ([ends.max, ends.min, -1], [0, 1, 2, 0])
    assert y.base is None


def test_every_nan_is_another(ops: Any) -> None:
    y, places, counts = ops.run("UniqueWithCounts", [F([np.nan, 1, np.nan])])
    assert np.isnan(y).tolist() == [True, False, True]
    assert (places.tolist(), counts.tolist()) == ([0, 1, 2], [1, 1, 1])


@pytest.mark.parametrize("dtype", [np.int32, np.float32, object])
def test_slices_along_an_axis(ops: Any, dtype: Any) -> None:
    x = of(dtype, [[[1, 2], [1, 2], [3, 4]], [[5, 6], [5, 6], [5, 7]], [[1, 2], [1, 2], [3, 4]]])
    for axis, firsts, places, counts in (
        (0, [0, 1], [0, 1, 0], [2, 1]), (1, [0, 2], [0, 0, 1], [2, 1]), (2, [0, 1], [0, 1], [1, 1]),
    ):  # fmt: skip
        for given in (axis, axis - 3):
            found = ops.run("UniqueWithCountsV2", [x, np.int64([given])])
            assert [each.tolist() for each in found] == [np.take(x, firsts, axis).tolist(), places, counts]
            assert [each.tolist() for each in ops.run("UniqueV2", [x, ints(given)])] == [
                np.take(x, firsts, axis).tolist(), places
            ]  # fmt: skip


@pytest.mark.parametrize(
    ("shape", "axis", "wanted"), [((3, 0), 0, (1, 0)), ((3, 0), 1, (3, 0)), ((0, 2), 0, (0, 2)), ((0, 2), 1, (0, 1))]
)
def test_empty_slices_are_one(ops: Any, shape: Any, axis: int, wanted: Any) -> None:
    y, places, counts = ops.run("UniqueWithCountsV2", [np.zeros(shape, F), np.int64([axis])])
    assert y.shape == wanted
    assert places.tolist() == [0] * shape[axis]
    assert counts.tolist() == ([shape[axis]] if wanted[axis] else [])


@pytest.mark.parametrize("counts", ["", "WithCounts"])
@pytest.mark.parametrize("dtype", [np.int32, np.float32])
def test_what_has_no_distinct_values(ops: Any, counts: str, dtype: Any) -> None:
    for shape in ((), (2, 2)):
        text = f"unique expects a 1D vector, got shape [{','.join(map(str, shape))}]"
        refused(ops, f"Unique{counts}", [np.ones(shape, dtype)], text)
        refused(ops, f"Unique{counts}V2", [np.ones(shape, dtype), np.zeros(0, np.int64)], text)
    x, v2 = np.ones((2, 2), dtype), f"Unique{counts}V2"
    refused(ops, v2, [x, np.int64(0)], "axis expects a 1D vector, got shape []")
    refused(ops, v2, [x, np.int64([[0]])], "axis expects a 1D vector, got shape [1,1]")
    refused(ops, v2, [x, np.int64([0, 1])], "axis does not support input tensors larger than 1 elements")
    refused(ops, v2, [x, np.int64([2])], "axis has to be between [0, 2)")
    refused(ops, v2, [x, np.int64([-3])], "axis has to be between [0, 2)")


def test_what_slices_take_is_asked_for(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_wants(monkeypatch, 7 * 8 * 2, lambda: ops.run("UniqueV2", [np.ones((7, 2), F), np.int64([0])]))
    assert_wants(monkeypatch, 2 * 8 * 2, lambda: ops.run("UniqueV2", [np.ones((7, 2), F), np.int64([1])]))


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [np.int32, np.float32, object])
@pytest.mark.parametrize(
    ("x", "y", "out", "places"),
    [
        ([1, 2, 3, 2], [2], [1, 3], [0, 2]), ([5, 5, 1], [], [5, 5, 1], [0, 1, 2]), ([], [1], [], []),
        ([1, 2], [2, 1, 7], [], []), ([3, 1, 3], [1, 1], [3, 3], [0, 2]),
    ],
)  # fmt: skip
def test_elements_that_the_other_list_lacks(
    ops: Any, dtype: Any, index: Any, x: Any, y: Any, out: Any, places: Any
) -> None:
    found = ops.run(
        "ListDiff", [of(dtype, x).reshape(len(x)), of(dtype, y).reshape(len(y))], out_idx=dtypes.as_dtype(index)
    )
    assert [each.tolist() for each in found] == [of(dtype, out).tolist(), places]
    assert found[1].dtype == index


def test_lists_are_vectors(ops: Any) -> None:
    good = ints(1)
    for bad in (ints([1]), np.int32(1)):
        refused(ops, "ListDiff", [bad, good], "x should be a 1D vector.")
        refused(ops, "ListDiff", [good, bad], "y should be a 1D vector.")
