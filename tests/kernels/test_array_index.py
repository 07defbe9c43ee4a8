"""Where, OneHot, LowerBound and UpperBound against NumPy: every axis, ties and nan, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.op_values import ints, refused
from support.room import assert_wants
from tenfold_core import dtypes

F = np.float32


@pytest.mark.parametrize(
    "x",
    [
        F([0, 1, np.nan, -0.0, 2]),
        np.array([[True, False, True], [False, False, True]]),
        np.array([[[0, 5], [0, 0]], [[7, 0], [8, 9]]], np.int64),
        np.array([0, 1j], np.complex64),
        np.zeros((2, 3), F),
        np.ones((2, 0), F),
    ],
)
def test_places_of_what_is_not_zero(ops: Any, x: np.ndarray) -> None:
    wanted = [list(place) for place in np.ndindex(x.shape) if x[place]]
    found = ops.run("Where", [x])
    assert (found.tolist(), found.shape) == (wanted, (len(wanted), x.ndim))


@pytest.mark.parametrize(("x", "count"), [(F(0), 0), (F(2), 1), (np.bool_(False), 0), (np.bool_(True), 1)])
def test_a_scalar_has_one_place_of_no_numbers(ops: Any, x: Any, count: int) -> None:
    assert ops.run("Where", [x]).shape == (count, 0)


@pytest.mark.parametrize("kind", [np.int32, np.int64, np.uint8])
@pytest.mark.parametrize("shape", [(), (3,), (2, 2), (0,)])
@pytest.mark.parametrize("depth", [0, 1, 3])
def test_one_is_hot_along_any_axis(ops: Any, kind: Any, shape: tuple[int, ...], depth: int) -> None:
    indices = (np.arange(int(np.prod(shape))) * 3 % 5).reshape(shape).astype(kind)
    for axis in range(-1, len(shape) + 1):
        at = len(shape) if axis == -1 else axis
        wanted = np.full((*shape[:at], depth, *shape[at:]), 5, F)
        for place in np.ndindex(shape):
            if indices[place] < depth:
                wanted[(*place[:at], int(indices[place]), *place[at:])] = 7

        found = ops.run("OneHot", [indices, depth, F(7), F(5)], axis=axis)

        assert (found.shape, found.tolist()) == (wanted.shape, wanted.tolist())
        assert found.flags.c_contiguous


def test_numbers_outside_mark_nothing_and_texts_may(ops: Any) -> None:
    assert ops.run("OneHot", [ints(-1, 2, 1), 2, 1, 0]).tolist() == [[0, 0], [0, 0], [0, 1]]
    on, off = (np.array(text, object) for text in (b"on", b"off"))
    assert ops.run("OneHot", [ints(1), 2, on, off]).tolist() == [[b"off", b"on"]]


@pytest.mark.parametrize(
    ("depth", "on", "off", "axis", "text"),
    [
        ([2], 1, 0, -1, "depth must be a scalar, but got: [1]"),
        (2, [1], 0, -1, "on_value must be a scalar, but got: [1]"),
        (2, 1, [0, 0], -1, "off_value must be a scalar, but got: [2]"),
        (-1, 1, 0, -1, "depth must be non-negative, got: -1"),
        (2, 1, 0, -2, "Expected axis to be -1 or between [0, 1).  But received: -2"),
        (2, 1, 0, 2, "Expected axis to be -1 or between [0, 1).  But received: 2"),
    ],
)
def test_what_cannot_be_hot(ops: Any, depth: Any, on: Any, off: Any, axis: int, text: str) -> None:
    inputs = [ints(0, 1), np.array(depth, np.int32), np.array(on, np.int32), np.array(off, np.int32)]
    refused(ops, "OneHot", inputs, text, axis=axis)


def test_what_it_takes_is_asked_for(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_wants(monkeypatch, 2 * 3 * 5 * 8, lambda: ops.run("OneHot", [ints([0, 1, 2]), 5, np.int64(1), np.int64(0)]))


@pytest.mark.parametrize(("op", "side"), [("LowerBound", "left"), ("UpperBound", "right")])
@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, object])
def test_where_values_belong(ops: Any, op: str, side: Any, kind: Any, dtype: Any) -> None:
    rows, values = [[1, 3, 3, 5], [2, 2, 2, 2]], [[0, 1, 3, 4, 6], [2, 1, 3, 2, 2]]
    if dtype is object:
        rows, values = ([[b"%d" % v for v in row] for row in each] for each in (rows, values))
    wanted = [np.searchsorted(r, v, side).tolist() for r, v in zip(rows, values, strict=True)]
    out_type = dtypes.as_dtype(kind)
    found = ops.run(op, [np.array(rows, dtype), np.array(values, dtype)], out_type=out_type)
    assert (found.tolist(), found.dtype) == (wanted, kind)
    nothing = ops.run(op, [np.array(rows, dtype), np.array(values, dtype)[:, :0]], out_type=out_type)
    assert nothing.shape == (2, 0)
    nowhere = ops.run(op, [np.array(rows, dtype)[:0], np.array(values, dtype)[:0]], out_type=out_type)
    assert nowhere.shape == (0, 5)


def test_nothing_is_less_than_nan(ops: Any) -> None:
    rows, values = F([[1, 2, np.nan]]), F([[np.nan, 3]])
    assert ops.run("LowerBound", [rows, values]).tolist() == [[0, 2]]
    assert ops.run("UpperBound", [rows, values]).tolist() == [[3, 2]]


@pytest.mark.parametrize("op", ["LowerBound", "UpperBound"])
@pytest.mark.parametrize(("rows", "values"), [((2, 3), (1, 3)), ((3,), (1, 3)), ((1, 3), (3,)), ((1, 1, 3), (1, 3))])
def test_there_is_a_row_for_each_row(ops: Any, op: str, rows: Any, values: Any) -> None:
    texts = [f"[{','.join(map(str, shape))}]" for shape in (rows, values)]
    text = f"Leading dim_size of both tensors must match: sorted_inputs {texts[0]}, values {texts[1]}"
    refused(ops, op, [np.ones(rows, F), np.ones(values, F)], text)
