"""Reductions by segment on a GPU give what they give on the CPU; gradients agree with finite differences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tenfold_kernels.cuda import _scatter, _sorting

if TYPE_CHECKING:
    from types import SimpleNamespace

NUMBERS = ("float32", "float64", "int8", "int64", "int32")
FLOATS = ("float32", "float64")


def data(shape: tuple[int, ...], dtype: str, seed: int = 0) -> Any:
    random = np.random.default_rng(seed)
    if dtype.startswith("float"):
        return random.uniform(-2, 2, shape).astype(dtype)
    return random.integers(1, 6, shape).astype(dtype)


def i32(values: Any) -> Any:
    return np.array(values, np.int32)


@pytest.fixture(params=["few", "many"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Numbers are looked through, or sorted by several threads."""
    if request.param == "many":
        monkeypatch.setattr(_scatter, "FEW", 0)
        monkeypatch.setattr(_scatter, "PIECE", 2)
        monkeypatch.setattr(_sorting, "CHUNK", 3)
    return str(request.param)


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("op", ["SegmentSum", "SegmentProd", "SegmentMax", "SegmentMin", "SegmentMean"])
def test_sorted_segments(gpu: SimpleNamespace, op: str, dtype: str) -> None:
    if op == "SegmentMean" and dtype in ("int8", "int64"):
        return
    gpu.same(op, [data((5, 3), dtype), i32([0, 0, 2, 2, 2])])
    gpu.same(op, [data((4,), dtype), np.array([0, 1, 1, 3])])
    gpu.same(op, [data((0, 2), dtype), np.zeros(0, np.int64)])
    gpu.same(op, [data((2, 2, 2), dtype), i32([1, 1])])


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("op", [f"UnsortedSegment{name}" for name in ("Sum", "Prod", "Max", "Min")])
def test_unsorted_segments(gpu: SimpleNamespace, way: str, op: str, dtype: str) -> None:
    gpu.same(op, [data((5, 3), dtype), i32([3, 0, 3, -1, 0]), i32(4)])
    gpu.same(op, [data((2, 3, 2), dtype), np.array([[1, 1, 0], [5, 1, 0]]), i32(6)])
    gpu.same(op, [data((0, 2), dtype), np.zeros(0, np.int64), i32(2)])
    gpu.same(op, [data((3,), dtype), i32([0, 0, 0]), i32(1)])
    gpu.same(op, [data((), dtype), i32(1), i32(2)])


@pytest.mark.parametrize("op", ["SegmentSumV2", "SegmentProdV2", "SegmentMaxV2", "SegmentMinV2"])
def test_sorted_segments_of_a_number(gpu: SimpleNamespace, op: str) -> None:
    gpu.same(op, [data((4, 2), "float32"), i32([0, 0, 2, 2]), i32(4)])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op", ["SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN"])
def test_chosen_rows(gpu: SimpleNamespace, op: str, dtype: str) -> None:
    gpu.same(op, [data((4, 3), dtype), i32([2, 0, 0, 3]), i32([0, 0, 2, 2])])
    gpu.same(op, [data((4,), dtype), np.array([2, 1, 1]), np.array([0, 1, 1])])
    gpu.same(f"{op}WithNumSegments", [data((4, 3), dtype), i32([2, 0, 1]), i32([0, 0, 2]), i32(5)])
    gpu.same(op, [data((4, 3), dtype), i32([]), i32([])])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op", ["SparseSegmentSumGrad", "SparseSegmentMeanGrad", "SparseSegmentSqrtNGrad"])
def test_gradients_of_chosen_rows(gpu: SimpleNamespace, way: str, op: str, dtype: str) -> None:
    gpu.same(op, [data((3, 2), dtype), i32([2, 0, 2, 3, 1]), i32([0, 0, 2, 2, 2]), i32(4)])
    gpu.same(op, [data((2,), dtype), np.array([1, 1]), np.array([0, 1]), i32(2)])


@pytest.mark.parametrize("op", ["SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN"])
def test_the_gradient_is_that_of_finite_differences(gpu: SimpleNamespace, op: str) -> None:
    x, indices, ids = data((4, 2), "float64"), i32([2, 0, 2, 3]), i32([0, 0, 1, 1])
    upstream, direction, step = data((2, 2), "float64", 1), data((4, 2), "float64", 2), 1e-6

    gradient = gpu.run(f"{op}Grad", [upstream, indices, ids, i32(4)])
    high, low = (gpu.run(op, [x + sign * step * direction, indices, ids]) for sign in (1, -1))

    slope = ((high - low) * upstream).sum() / (2 * step)
    np.testing.assert_allclose((gradient * direction).sum(), slope, rtol=1e-6)


def test_rows_of_ids_out_of_range_are_dropped(gpu: SimpleNamespace, way: str) -> None:
    found = gpu.run("UnsortedSegmentSum", [np.float32([1, 2, 4]), i32([0, 5, 0]), i32(2)])

    np.testing.assert_array_equal(found, [5, 0])
