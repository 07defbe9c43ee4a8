"""Pools on a GPU and their gradients give what they give on the CPU; equal elements share no gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tenfold_core import errors

if TYPE_CHECKING:
    from types import SimpleNamespace

#: (window, strides, padding)
WINDOWS = [
    ((2, 2), (2, 2), "VALID"),
    ((3, 3), (2, 2), "SAME"),
    ((2, 3), (1, 2), "SAME"),
    ((1, 1), (2, 2), "VALID"),
    ((2, 1), (3, 3), "VALID"),
]
SHAPES = [(2, 4, 3, 2), (1, 5, 3, 1), (0, 4, 4, 2)]


def sample(shape: tuple[int, ...], dtype: str, seed: int) -> Any:
    """Few different numbers, so that maxima are there several times."""
    return np.random.default_rng(seed).integers(-3, 3, shape).astype(dtype)


def attrs_of(window: Any, strides: Any, padding: str, first: bool = False) -> dict[str, Any]:
    def wrap(pair: Any) -> list[int]:
        return [1, 1, *pair] if first else [1, *pair, 1]

    layout = b"NCHW" if first else b"NHWC"
    return {"ksize": wrap(window), "strides": wrap(strides), "padding": padding.encode(), "data_format": layout}


def turned(shape: tuple[int, ...], first: bool) -> tuple[int, ...]:
    return (shape[0], shape[3], shape[1], shape[2]) if first else shape


@pytest.mark.parametrize("first", [False, True], ids=["NHWC", "NCHW"])
@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_max_pool_and_its_gradients_are_the_cpus(gpu: SimpleNamespace, dtype: str, window: Any, first: bool) -> None:
    for shape in SHAPES:
        x, attrs = sample(turned(shape, first), dtype, 1), attrs_of(*window, first)

        out = gpu.same("MaxPool", [x], **attrs)

        gpu.same("MaxPoolGrad", [x, out, sample(out.shape, dtype, 2)], **attrs)
        gpu.same("MaxPoolGradGrad", [x, out, sample(x.shape, dtype, 3)], **attrs)


@pytest.mark.parametrize("first", [False, True], ids=["NHWC", "NCHW"])
@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_an_average_pool_and_its_gradient_are_the_cpus(
    gpu: SimpleNamespace, dtype: str, window: Any, first: bool
) -> None:
    for shape in SHAPES:
        x, attrs = sample(turned(shape, first), dtype, 1), attrs_of(*window, first)

        out = gpu.same("AvgPool", [x], **attrs)

        gpu.same("AvgPoolGrad", [np.array(x.shape, np.int32), sample(out.shape, dtype, 2)], **attrs)


def test_the_window_may_come_with_the_step(gpu: SimpleNamespace) -> None:
    x, ksize, strides = (
        sample((1, 5, 5, 2), "float32", 1),
        np.array([1, 3, 2, 1], np.int32),
        np.array([1, 2, 1, 1], np.int32),
    )

    out = gpu.same("MaxPoolV2", [x, ksize, strides], padding=b"SAME")

    gpu.same("MaxPoolGradV2", [x, out, sample(out.shape, "float32", 2), ksize, strides], padding=b"SAME")
    gpu.same("MaxPoolGradGradV2", [x, out, sample(x.shape, "float32", 3), ksize, strides], padding=b"SAME")


@pytest.mark.parametrize("whole", [False, True], ids=["image", "batch"])
@pytest.mark.parametrize("index", ["int32", "int64"])
def test_places_of_maxima_are_the_cpus(gpu: SimpleNamespace, index: str, whole: bool) -> None:
    from tenfold_core import dtypes

    for window in WINDOWS:
        attrs = attrs_of(*window) | {"include_batch_in_index": whole}
        del attrs["data_format"]
        x = sample((2, 5, 4, 3), "float32", 1)

        out, places = gpu.same("MaxPoolWithArgmax", [x], Targmax=dtypes.as_dtype(index), **attrs)

        gpu.same("MaxPoolGradWithArgmax", [x, sample(out.shape, "float32", 2), places], **attrs)
        gpu.same("MaxPoolGradGradWithArgmax", [x, sample(x.shape, "float32", 3), places], **attrs)


def test_a_nan_is_passed_over_but_may_get_the_gradient(gpu: SimpleNamespace) -> None:
    x = sample((1, 4, 4, 2), "float32", 1)
    x[0, 0, 0, 0] = x[0, 3, 3, 1] = np.nan
    x[0, :2, 2:] = -np.inf
    attrs = attrs_of((2, 2), (2, 2), "VALID")

    out = gpu.same("MaxPool", [x], **attrs)

    gpu.same("MaxPoolGrad", [x, out, sample(out.shape, "float32", 2)], **attrs)


def test_an_average_gradient_is_the_averages_slope(gpu: SimpleNamespace) -> None:
    random, attrs = np.random.default_rng(0), attrs_of((3, 2), (2, 1), "SAME")
    x, direction = random.standard_normal((2, 1, 5, 4, 2))
    step = 1e-3
    ahead, behind = (gpu.run("AvgPool", [x + sign * step * direction], **attrs) for sign in (1, -1))
    weights = random.standard_normal(ahead.shape)

    gradient = gpu.run("AvgPoolGrad", [np.array(x.shape, np.int32), weights], **attrs)

    np.testing.assert_allclose((gradient * direction).sum(), (weights * (ahead - behind)).sum() / (2 * step), rtol=1e-8)


def test_a_pool_along_channels_is_refused_as_tensorflow_does(gpu: SimpleNamespace) -> None:
    with pytest.raises(errors.UnimplementedError, match="only implemented for CPU devices"):
        gpu.run(
            "MaxPool", [sample((1, 2, 2, 4), "float32", 1)], ksize=[1, 1, 1, 2], strides=[1, 1, 1, 2], padding=b"VALID"
        )


def test_a_gradient_of_another_shape_is_refused_as_on_the_cpu(gpu: SimpleNamespace) -> None:
    x, attrs = sample((1, 4, 4, 1), "float32", 1), attrs_of((2, 2), (2, 2), "VALID")
    for op, inputs in (
        ("MaxPoolGrad", [x, x[:, :2, :2], x]),
        ("AvgPoolGrad", [np.array(x.shape, np.int32), x]),
    ):
        with pytest.raises(
            errors.InvalidArgumentError, match=r"Expected grad shape to be \[1,2,2,1\], but got \[1,4,4,1\]"
        ):
            gpu.run(op, inputs, **attrs)
