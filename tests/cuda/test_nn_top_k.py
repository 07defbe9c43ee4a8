"""TopK and InTopK on a GPU give what they give on the CPU, equal elements and nan included."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tenfold_core import errors

if TYPE_CHECKING:
    from types import SimpleNamespace


def values(shape: tuple[int, ...], dtype: str = "float32") -> Any:
    """Few different ones, so that many are equal."""
    random = np.random.default_rng(0)
    return random.integers(0 if dtype.startswith("u") else -4, 5, shape).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int64", "uint8", "int32"])
def test_the_largest_come_first(gpu: SimpleNamespace, dtype: str) -> None:
    for shape, k in (((1,), 1), ((7,), 7), ((9,), 0), ((3, 11), 2), ((2, 2, 5), 3), ((0, 3), 2)):
        gpu.same("TopKV2", [values(shape, dtype), np.int32(k)])
    gpu.same("TopK", [values((3, 11), dtype)], k=3)


def test_a_nan_is_as_small_as_minus_infinity(gpu: SimpleNamespace) -> None:
    nan, inf = np.nan, np.inf
    x = np.array([[1, nan, inf, nan, -inf, 0], [nan] * 6, [-inf] * 6], np.float32)

    gpu.same("TopKV2", [x, np.int32(6)])


def test_k_is_checked_as_on_the_cpu(gpu: SimpleNamespace) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=r"at least k columns. Had 3, needed 4"):
        gpu.run("TopKV2", [values((2, 3)), np.int32(4)])


@pytest.mark.parametrize("target", ["int32", "int64"])
def test_whether_a_class_is_among_the_best(gpu: SimpleNamespace, target: str) -> None:
    predictions = values((9, 6))
    predictions[1, 2] = np.nan
    predictions[2, 3] = np.inf
    targets = np.array([0, 1, 3, 2, 5, 6, -1, 4, 0], target)
    for k in (-1, 0, 1, 3, 6, 100):
        gpu.same("InTopKV2", [predictions, targets, np.array(k, target)])
        gpu.same("InTopK", [predictions, targets], k=k)
    gpu.same("InTopK", [values((0, 6)), targets[:0]], k=2)
    gpu.same("InTopK", [values((2, 0)), targets[:2]], k=2)
