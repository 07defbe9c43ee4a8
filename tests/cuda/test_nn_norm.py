"""Batch and local response normalisation on a GPU: values as the CPU's, gradients against finite differences too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tenfold_core import errors

if TYPE_CHECKING:
    from types import SimpleNamespace

#: N, H, W, C; NCHW takes them as N, C, H, W.
SHAPES = ((2, 2, 3, 4), (1, 1, 1, 3), (3, 1, 1, 1), (1, 23, 3, 2), (2, 3, 5, 7), (0, 2, 2, 3))
FORMATS = (b"NHWC", b"NCHW")


def values(shape: tuple[int, ...], seed: int = 0, dtype: str = "float32") -> Any:
    return np.random.default_rng(seed).normal(2, 3, shape).astype(dtype)


def vectors(shape: tuple[int, ...], data_format: bytes, count: int) -> list[Any]:
    channels = shape[1] if data_format.startswith(b"NC") else shape[-1]
    return [np.abs(values((channels,), seed)) for seed in range(1, count + 1)]


@pytest.mark.parametrize("data_format", FORMATS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_batch_normalisation(gpu: SimpleNamespace, shape: tuple[int, ...], data_format: bytes) -> None:
    scale, offset, mean, variance = vectors(shape, data_format, 4)
    nothing = np.empty(0, np.float32)
    x = values(shape)
    attrs = {"data_format": data_format, "epsilon": 0.01}

    gpu.same("FusedBatchNorm", [x, scale, offset, nothing, nothing], is_training=True, rtol=1e-4, atol=1e-5, **attrs)
    gpu.same("FusedBatchNormV2", [x, scale, offset, mean, variance], is_training=False, rtol=1e-4, atol=1e-5, **attrs)


@pytest.mark.parametrize("data_format", FORMATS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_its_gradients(gpu: SimpleNamespace, shape: tuple[int, ...], data_format: bytes) -> None:
    scale, mean, variance = vectors(shape, data_format, 3)
    x, gradient = values(shape), values(shape, 7)
    attrs = {"data_format": data_format, "epsilon": 0.01, "rtol": 1e-4, "atol": 1e-4}

    gpu.same("FusedBatchNormGrad", [gradient, x, scale, mean, variance], is_training=True, **attrs)
    gpu.same("FusedBatchNormGradV2", [gradient, x, scale, mean, variance], is_training=False, **attrs)


def test_version_3_of_volumes_with_a_moving_average(gpu: SimpleNamespace) -> None:
    x = values((2, 2, 1, 3, 2))
    scale, offset, mean, variance = vectors(x.shape, b"NDHWC", 4)
    gpu.same(
        "FusedBatchNormV3",
        [x, scale, offset, mean, variance],
        data_format=b"NDHWC",
        exponential_avg_factor=0.25,
        rtol=1e-4,
        atol=1e-5,
    )
    spaces = [mean, variance, np.zeros((), np.float32)]
    gpu.same(
        "FusedBatchNormGradV3", [values(x.shape, 8), x, scale, *spaces], data_format=b"NDHWC", rtol=1e-4, atol=1e-4
    )


def test_a_large_mean_does_not_spoil_the_variance(gpu: SimpleNamespace) -> None:
    x = values((2, 4, 4, 2)) + np.float32(3000)
    scale, offset, *_ = vectors(x.shape, b"NHWC", 4)
    nothing = np.empty(0, np.float32)

    _, _, variance, *_ = gpu.run("FusedBatchNorm", [x, scale, offset, nothing, nothing])

    np.testing.assert_allclose(variance, x.astype(np.float64).var(axis=(0, 1, 2), ddof=1), rtol=1e-4)


def test_the_gradient_is_the_slope(gpu: SimpleNamespace) -> None:
    x, weights = values((2, 2, 2, 3)), values((2, 2, 2, 3), 5)
    scale, offset, *_ = vectors(x.shape, b"NHWC", 4)
    nothing = np.empty(0, np.float32)
    step = np.float32(1e-2) * values(x.shape, 6)

    def loss(at: Any) -> Any:
        y = gpu.run("FusedBatchNorm", [at, scale, offset, nothing, nothing])[0]
        return (y.astype(np.float64) * weights).sum()

    _, _, _, *spaces = gpu.run("FusedBatchNorm", [x, scale, offset, nothing, nothing])
    back = gpu.run("FusedBatchNormGrad", [weights, x, scale, *spaces])[0]

    np.testing.assert_allclose((loss(x + step) - loss(x - step)) / 2, (back * step).sum(), rtol=2e-2, atol=1e-3)


def test_shapes_are_checked_as_on_the_cpu(gpu: SimpleNamespace) -> None:
    x, three = values((1, 2, 2, 3)), np.ones(3, np.float32)
    with pytest.raises(
        errors.InvalidArgumentError, match=r"scale must have the same number of elements .* got 2 and 3"
    ):
        gpu.run("FusedBatchNorm", [x, three[:2], three, three, three])
    with pytest.raises(errors.InvalidArgumentError, match="input must be 4 or 5-dimensional"):
        gpu.run("FusedBatchNorm", [x[0], three, three, three, three])
    with pytest.raises(errors.InvalidArgumentError, match="in must be 4-dimensional"):
        gpu.run("LRN", [x[0]])


@pytest.mark.parametrize("beta", [0.5, 0.75, 0.3])
@pytest.mark.parametrize("shape", [(1, 2, 2, 7), (2, 1, 1, 1), (0, 2, 2, 3)], ids=str)
def test_local_response_normalisation(gpu: SimpleNamespace, shape: tuple[int, ...], beta: float) -> None:
    x, gradient = values(shape), values(shape, 1)
    for radius in (0, 2, 9):
        attrs = {"depth_radius": radius, "bias": 1.5, "alpha": 0.3, "beta": beta, "rtol": 1e-4}
        y = gpu.same("LRN", [x], **attrs)
        gpu.same("LRNGrad", [gradient, x, y], atol=1e-5, **attrs)
