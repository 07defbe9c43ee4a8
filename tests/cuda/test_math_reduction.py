"""Reductions, the largest's place and running sums on a GPU: every axis and type, one launch and two."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tenfold_kernels.cuda import _reduce

if TYPE_CHECKING:
    from types import SimpleNamespace

#: (shape, axes)
CASES: tuple[tuple[tuple[int, ...], list[int]], ...] = (
    ((), []),
    ((1,), [0]),
    ((7,), [0]),
    ((7,), []),
    ((0,), [0]),
    ((3, 0), [1]),
    ((0, 3), [1]),
    ((2, 0, 3), [0, 2]),
    ((5, 3), [0]),
    ((5, 3), [-1]),
    ((2, 3, 4), [1]),
    ((2, 3, 4), [0, 2]),
    ((2, 1, 3, 2), [0, 1, 3]),
)
#: One block a result, parts of a dimension with a second launch: rows and columns.
LARGE = (((131,), [0]), ((2, 67), [1]), ((131, 3), [0]), ((2, 67, 2), [1]), ((2, 3, 67), [0, 2]))


def values(shape: tuple[int, ...], dtype: str, seed: int = 0) -> Any:
    random = np.random.default_rng(seed)
    if dtype == "bool":
        return random.integers(0, 4, shape) > 0
    if dtype.startswith("float"):
        return random.normal(0.5, 1, shape).astype(dtype)
    return random.integers(0 if dtype.startswith("u") else -5, 6, shape).astype(dtype)


def axes_of(axes: list[int]) -> Any:
    return np.array(axes, np.int32)


@pytest.mark.parametrize(("shape", "axes"), CASES + LARGE, ids=str)
@pytest.mark.parametrize("op", ["Sum", "Max"])
def test_a_reduction_over_any_axes(gpu: SimpleNamespace, op: str, shape: tuple[int, ...], axes: list[int]) -> None:
    for keep in (False, True) if len(shape) < 3 else (False,):
        gpu.same(op, [values(shape, "float32"), axes_of(axes)], keep_dims=keep, rtol=3e-5)


TYPED = [
    *((op, dtype) for op in ("Sum", "Prod", "Mean", "Max", "Min") for dtype in ("float64", "int8", "int64", "uint8")),
    *((op, "float32") for op in ("Prod", "Mean", "Min", "EuclideanNorm")),
    ("EuclideanNorm", "float64"),
    ("All", "bool"),
    ("Any", "bool"),
]


@pytest.mark.parametrize(("op", "dtype"), TYPED)
def test_every_reduction_of_every_type(gpu: SimpleNamespace, op: str, dtype: str) -> None:
    for shape, axes in (((), []), ((3, 0), [1]), ((5, 3), [0]), ((3, 9), [1]), ((2, 3, 4), [0, 2]), ((70, 2), [0])):
        gpu.same(op, [values(shape, dtype), axes_of(axes)], rtol=1e-4)


@pytest.mark.parametrize("op", ["Sum", "Max", "Min", "Prod"])
def test_a_nan_is_not_lost(gpu: SimpleNamespace, op: str) -> None:
    x = values((3, 9), "float32")
    x[1, 4] = np.nan
    x[2, 0] = np.inf

    gpu.same(op, [x, axes_of([1])])
    gpu.same(op, [x, axes_of([0])])


def test_a_result_is_the_same_each_time(gpu: SimpleNamespace) -> None:
    x = values((2, 131), "float32")

    first, again = (gpu.run("Sum", [x, axes_of([1])]) for _ in range(2))

    np.testing.assert_array_equal(first, again)


def test_axes_are_checked_as_on_the_cpu(gpu: SimpleNamespace) -> None:
    from tenfold_core import errors

    with pytest.raises(errors.InvalidArgumentError, match=r"Invalid reduction dimension \(2 for input with 2"):
        gpu.run("Sum", [values((2, 2), "float32"), axes_of([2])])
    with pytest.raises(errors.InvalidArgumentError, match="duplicate dimension: 1"):
        gpu.run("Sum", [values((2, 2), "float32"), axes_of([1, -1])])


def test_a_reduction_of_int32_stays_on_the_host(gpu: SimpleNamespace) -> None:
    gpu.same("Sum", [values((3, 4), "int32"), axes_of([0])])


def test_runs_of_axes_are_taken_from_the_last() -> None:
    assert _reduce.runs((2, 3, 4, 5), (1, 2)) == [(2, 12, 5)]
    assert _reduce.runs((2, 3, 4, 5), (0, 2)) == [(6, 4, 5), (1, 2, 15)]
    assert _reduce.runs((2, 1, 3), (0, 2)) == [(1, 6, 1)]
    assert _reduce.runs((2, 3), ()) == [(6, 1, 1)]
    assert _reduce.runs((), ()) == [(1, 1, 1)]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int64", "uint8", "int32"])
@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
def test_the_place_of_the_largest(gpu: SimpleNamespace, op: str, dtype: str) -> None:
    from tenfold_core import dtypes

    for shape, axis in (((1,), 0), ((23,), 0), ((3, 5), 0), ((3, 5), 1), ((2, 3, 2), 1), ((0, 3), 1)):
        gpu.same(op, [values(shape, dtype), np.int32(axis)], output_type=dtypes.int64)
    gpu.same(op, [values((3, 5), dtype), np.int32(-1)], output_type=dtypes.int32)


@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
def test_a_nan_is_never_the_largest(gpu: SimpleNamespace, op: str) -> None:
    nan, inf = np.nan, np.inf
    x = np.array([[nan, 1, 2, 1, 2, nan], [nan] * 6, [-inf, nan, -inf, nan, -inf, nan], [inf] * 5 + [nan]], np.float32)

    gpu.same(op, [x, np.int32(1)])
    gpu.same(op, [x.T.copy(), np.int32(0)])


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int32"])
@pytest.mark.parametrize("op", ["Cumsum", "Cumprod"])
def test_running_sums(gpu: SimpleNamespace, op: str, dtype: str) -> None:
    for exclusive in (False, True):
        for reverse in (False, True):
            for shape, axis in (((7,), 0), ((2, 3, 2), 1), ((0,), 0)):
                x = values(shape, dtype)
                gpu.same(op, [x, np.int32(axis)], exclusive=exclusive, reverse=reverse, rtol=1e-5)
