"""Response and batch normalisation against twins in float64, forward and backward."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold_core import errors

RNG = np.random.default_rng(6)


def sample(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return RNG.standard_normal(shape).astype(dtype)


def lrn(x: np.ndarray, radius: int, bias: float, alpha: float, beta: float) -> np.ndarray:
    out = np.empty(x.shape)
    for c in range(x.shape[-1]):
        near = x[..., max(c - radius, 0) : c + radius + 1].astype(np.float64)
        out[..., c] = x[..., c] / (bias + alpha * (near**2).sum(-1)) ** beta
    return out


@pytest.mark.parametrize("beta", [0.5, 0.75, 0.6])
@pytest.mark.parametrize("radius", [1, 3, 20])
def test_local_response(ops: Any, radius: int, beta: float) -> None:
    x, g = sample(2, 3, 4, 9), sample(2, 3, 4, 9)
    attrs = {"depth_radius": radius, "bias": 1.5, "alpha": 0.3, "beta": beta}

    y = ops.run("LRN", [x], **attrs)
    grad = ops.run("LRNGrad", [g, x, y], **attrs)

    np.testing.assert_allclose(y, lrn(x, radius, 1.5, 0.3, beta), rtol=1e-5, atol=1e-6)
    direction, step = sample(*x.shape).astype(np.float64), 1e-6
    ahead, behind = (lrn(x + sign * step * direction, radius, 1.5, 0.3, beta) for sign in (1, -1))
    slope = ((ahead - behind) * g).sum() / (2 * step)
    np.testing.assert_allclose((grad * direction).sum(), slope, rtol=1e-3, atol=1e-3)


def test_what_is_not_finite_spoils_the_channels_out_of_its_reach(ops: Any) -> None:
    """TensorFlow multiplies the squares by a matrix of ones and zeros, and 0 · inf is nan."""
    x = np.float32([[1, 2, 3, 4, 5], [np.inf, 2, 3, 4, 5], [1, 2, np.nan, 4, 5]]).reshape(3, 1, 1, 5)

    y = ops.run("LRN", [x], depth_radius=1, bias=1.0, alpha=1.0, beta=0.5).reshape(3, 5)

    np.testing.assert_allclose(y[0], lrn(x[0], 1, 1, 1, 0.5).reshape(5), rtol=1e-6)
    np.testing.assert_array_equal(y[1], [np.nan, 0, np.nan, np.nan, np.nan])
    assert np.isnan(y[2]).all()


def test_in_inference_the_gradient_does_not_depend_on_the_image(ops: Any) -> None:
    x, g = np.float32([np.nan, np.inf, 1]).reshape(1, 1, 3, 1), np.float32([1, 2, 3]).reshape(1, 1, 3, 1)
    one = np.ones(1, np.float32)

    of_x, _, of_offset, *rest = ops.run(
        "FusedBatchNormGrad", [g, x, 6 * one, one, 8.75 * one], is_training=False, epsilon=0.25
    )

    assert of_x.reshape(-1).tolist() == [2, 4, 6]
    assert of_offset.tolist() == [6]
    assert [each.shape for each in rest] == [(0,), (0,)]


@pytest.mark.parametrize("layout", [b"NHWC", b"NCHW"])
def test_batch_norm_in_training(ops: Any, layout: bytes) -> None:
    x = sample(4, 5, 6, 3) * 2 + 100
    scale, offset, nothing = sample(3), sample(3), np.empty(0, np.float32)
    axis = -1 if layout == b"NHWC" else 1

    y, mean, variance, kept_mean, kept_variance, _ = ops.run(
        "FusedBatchNormV3",
        [np.moveaxis(x, -1, axis), scale, offset, nothing, nothing],
        epsilon=0.01,
        data_format=layout,
    )

    wide = x.astype(np.float64)
    m, v = wide.mean((0, 1, 2)), wide.var((0, 1, 2))
    np.testing.assert_allclose(
        np.moveaxis(y, axis, -1), (wide - m) / np.sqrt(v + 0.01) * scale + offset, rtol=1e-3, atol=1e-4
    )
    np.testing.assert_allclose(mean, m, rtol=1e-6)
    np.testing.assert_allclose(variance, v * 120 / 119, rtol=1e-4)
    np.testing.assert_allclose(kept_mean, m, rtol=1e-6)
    np.testing.assert_allclose(kept_variance, v, rtol=1e-4)


@pytest.mark.parametrize("shape", [(7, 9, 11, 5), (16, 32, 32, 16), (3, 5, 5, 300)], ids=str)
def test_moments_of_many_pixels_far_from_zero_keep_their_digits(ops: Any, shape: tuple[int, ...]) -> None:
    x, ones, nothing = sample(*shape) + 1000, np.ones(shape[-1], np.float32), np.empty(0, np.float32)

    _, _, _, mean, variance, _ = ops.run("FusedBatchNormV3", [x, ones, ones, nothing, nothing], epsilon=0.01)

    wide = x.astype(np.float64)
    np.testing.assert_allclose(mean, wide.mean((0, 1, 2)), rtol=1e-7)
    np.testing.assert_allclose(variance, wide.var((0, 1, 2)), rtol=1e-6)


def test_batch_norm_keeps_a_moving_average(ops: Any) -> None:
    x, ones = sample(4, 5, 6, 2), np.ones(2, np.float32)

    _, mean, variance, *_ = ops.run(
        "FusedBatchNormV3", [x, ones, ones, 3 * ones, 5 * ones], exponential_avg_factor=0.25
    )

    np.testing.assert_allclose(mean, 0.75 * 3 + 0.25 * x.mean((0, 1, 2)), rtol=1e-5)
    np.testing.assert_allclose(variance, 0.75 * 5 + 0.25 * x.var((0, 1, 2), ddof=1), rtol=1e-5)


@pytest.mark.parametrize("training", [True, False])
def test_batch_norm_gradient(ops: Any, training: bool) -> None:
    x, g, scale, offset = sample(3, 4, 5, 2), sample(3, 4, 5, 2), sample(2), sample(2)
    mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))

    of_x, of_scale, of_offset, *_ = ops.run(
        "FusedBatchNormGradV2", [g, x, scale, mean, variance], epsilon=0.01, is_training=training
    )

    def loss(x: np.ndarray, scale: np.ndarray) -> float:
        m, v = (x.mean((0, 1, 2)), x.var((0, 1, 2))) if training else (mean, variance)
        return float((((x - m) / np.sqrt(v + 0.01) * scale + offset) * g).sum())

    wide, direction, step = x.astype(np.float64), sample(*x.shape).astype(np.float64), 1e-5
    slope = (loss(wide + step * direction, scale) - loss(wide - step * direction, scale)) / (2 * step)
    np.testing.assert_allclose((of_x * direction).sum(), slope, rtol=1e-3, atol=1e-3)
    way = np.array([1.0, -2.0])
    slope = (loss(wide, scale + step * way) - loss(wide, scale - step * way)) / (2 * step)
    np.testing.assert_allclose((of_scale * way).sum(), slope, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(of_offset, g.sum((0, 1, 2)), rtol=1e-4, atol=1e-4)


def test_a_scale_of_another_size_is_refused(ops: Any) -> None:
    two, three = np.ones(2, np.float32), np.ones(3, np.float32)

    with pytest.raises(errors.InvalidArgumentError, match="scale must have the same number of elements"):
        ops.run("FusedBatchNorm", [sample(1, 2, 2, 3), two, three, three, three])
