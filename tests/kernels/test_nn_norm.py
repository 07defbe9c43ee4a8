"""Response and batch normalisation against twins in float64, forward and backward."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.kernel_net.loops import StandIns
from tenfold_core import errors
from tenfold_kernels.cpu import nn_norm
from tenfold_kernels.cpu._compiled import compiling, response
from tenfold_kernels.parallel import in_parts

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


@pytest.mark.parametrize("far", [1.0, np.inf, np.nan])
def test_one_pass_tells_whether_all_is_finite(far: float) -> None:
    x, out = np.full((2, 3), far, np.float32), np.empty((2, 3), np.float32)
    odd = response.forward(np.float32)(x, 1, np.float32(1), np.float32(1), True, 0, 2, out)
    assert (odd == 0) == np.isfinite(far)


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


def in_fives(work: Any, total: int, least: int) -> None:
    """Parts in another order than that of the pixels, as if threads had run them so."""
    for first in reversed(range(0, total, 5)):
        work(first, min(first + 5, total))


@pytest.mark.parametrize("shape", [(3, 2, 4, 3), (1, 1, 13, 40), (2, 2, 3, 300), (1, 1, 1, 1)], ids=str)
def test_threads_share_the_work_and_make_the_same_of_it(
    ops: Any, shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    x, g, scale, mean = sample(*shape) + 3, sample(*shape), sample(shape[-1]), sample(shape[-1])
    none, positive = np.empty(0, np.float32), np.abs(mean) + 1
    cases: list[tuple[str, list[Any], dict[str, Any]]] = [
        ("FusedBatchNorm", [x, scale, mean, none, none], {}),
        ("FusedBatchNorm", [x, scale, mean, mean, positive], {"is_training": False}),
        ("FusedBatchNormGrad", [g, x, scale, mean, positive], {}),
    ]
    for beta in (0.5, 0.75, 0.6):
        cases.append(("LRN", [x], {"beta": beta, "depth_radius": 2}))
        cases.append(
            ("LRNGrad", [g, x, ops.run("LRN", [x], beta=beta, depth_radius=2)], {"beta": beta, "depth_radius": 2})
        )
    for op, inputs, attrs in cases:
        monkeypatch.setattr(nn_norm, "in_parts", in_parts)
        whole = ops.run(op, inputs, **attrs)
        monkeypatch.setattr(nn_norm, "in_parts", in_fives)
        parts = ops.run(op, inputs, **attrs)
        for found, expected in zip(parts if len(cases) and isinstance(parts, tuple) else [parts],
                                   whole if isinstance(whole, tuple) else [whole], strict=True):  # fmt: skip
            np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-5, err_msg=f"{op} {attrs}")


def test_how_much_is_a_thread_worth() -> None:
    for channels, pixels in ((0, (1 << 17) + 1), (1, (1 << 17) + 1), (3, 43691), (1 << 17, 2), (1 << 18, 1)):
        assert nn_norm._pixels(np.empty((2, channels), np.float32)) == pixels
    for rows, channels, times in ((24, 3, 8), (7, 3, 1), (64, 4, 64), (128, 4, 64), (256, 2, 128), (256, 128, 2),
                                  (256, 129, 1), (256, 256, 1), (0, 3, 1), (0, 0, 1)):  # fmt: skip
        assert nn_norm._times(np.empty((rows, channels), np.float32)) == times


def normalized(x: Any, mean: Any, variance: Any, epsilon: float) -> Any:
    return (x - mean) / np.sqrt(variance + epsilon)


NORMS = {"": 5, "V2": 5, "V3": 6}
IMAGES = [(2, 3, 4, 5), (1, 1, 1, 3), (1, 1, 2, 1), (3, 5, 1, 300), (2, 2, 3, 2, 3), (1, 4, 4, 1)]


def images(shape: tuple[int, ...], layout: str, dtype: Any) -> tuple[Any, Any, Any, int]:
    """Two of them with their channels at the axis that is given, and as one of doubles [pixels, channels]."""
    axis = 1 if layout.startswith("NC") else -1
    first, second = (np.moveaxis(sample(*shape, dtype=dtype), -1, axis).copy() for _ in range(2))
    return first, second, [np.moveaxis(each, axis, -1).reshape(-1, shape[-1]).astype(np.float64)
                           for each in (first, second)], axis  # fmt: skip


def layouts(shape: tuple[int, ...]) -> tuple[str, str]:
    return ("NHWC", "NCHW") if len(shape) == 4 else ("NDHWC", "NCDHW")


def back_in_shape(rows: Any, like: Any, axis: int) -> Any:
    return np.moveaxis(rows.reshape(np.moveaxis(like, axis, -1).shape), -1, axis)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_batch_norm_forth_and_back(ops: Any, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "loops", StandIns())
    wide = np.float32 if dtype == np.float16 else dtype
    bound = {2: 2e-2, 4: 2e-4, 8: 1e-10}[np.dtype(dtype).itemsize]
    versions = [name for name in NORMS if name or dtype == np.float32]
    if dtype == np.float64:
        versions = ["V2"]

    def close(found: Any, expected: Any, kind: Any = wide) -> None:
        assert found.dtype == kind
        np.testing.assert_allclose(found, expected, rtol=bound, atol=bound)

    for shape in IMAGES:
        for layout, version in zip(layouts(shape), (versions[0], versions[-1]), strict=True):
            x, g, (rows, slopes), axis = images(shape, layout, dtype)
            scale, offset, mean = (sample(shape[-1], dtype=wide) for _ in range(3))
            variance, none = np.abs(sample(shape[-1], dtype=wide)) + 1, np.empty(0, wide)
            attrs = {"epsilon": 0.5, "data_format": layout.encode()}
            m, v = rows.mean(0), rows.var(0)
            unbiased = v * len(rows) / max(len(rows) - 1, 1)
            y, *vectors = ops.run(f"FusedBatchNorm{version}", [x, scale, offset, none, none], **attrs)
            close(y, back_in_shape(normalized(rows, m, v, 0.5) * scale + offset, x, axis), dtype)
            for found, expected in zip(vectors, (m, unbiased, m, v, 0)[: NORMS[version] - 1], strict=True):
                close(found, expected)
            inputs = [x, scale, offset, mean, variance]
            y, *vectors = ops.run(f"FusedBatchNorm{version}", inputs, is_training=False, **attrs)
            close(y, back_in_shape(normalized(rows, mean, variance, 0.5) * scale + offset, x, axis), dtype)
            for found, expected in zip(vectors, (mean, variance, mean, variance, 0), strict=version == "V3"):
                close(found, expected)
            of_y = normalized(rows, m, v, 0.5)
            inputs = [g, x, scale, m.astype(wide), v.astype(wide), *([none] if version == "V3" else [])]
            for training in (True, False):
                of_x, of_scale, of_offset, *rest = ops.run(
                    f"FusedBatchNormGrad{version}", inputs, is_training=training, **attrs
                )
                less = slopes.mean(0) + of_y * (slopes * of_y).mean(0) if training else 0
                close(of_x, back_in_shape((slopes - less) * scale / np.sqrt(v + 0.5), x, axis), dtype)
                close(of_scale, (slopes * of_y).sum(0))
                close(of_offset, slopes.sum(0))
                assert [each.tolist() for each in rest] == [[], []]


@pytest.mark.parametrize("shape", [(0, 2, 2, 3), (2, 0, 2, 3), (1, 2, 2, 0), (0, 2, 2, 0)], ids=str)
def test_batch_norm_of_nothing(ops: Any, shape: tuple[int, ...]) -> None:
    x, channels = np.zeros(shape, np.float32), shape[-1]
    ones, none = np.ones(channels, np.float32), np.empty(0, np.float32)
    y, *vectors = ops.run("FusedBatchNorm", [x, ones, ones, none, none])
    assert y.shape == shape
    assert all(each.shape == (channels,) and np.isnan(each).all() for each in vectors)
    found = ops.run("FusedBatchNormGrad", [x, x, ones, ones, ones])
    assert found[0].shape == shape
    assert [each.tolist() for each in found[1:]] == [[0] * channels] * 2 + [[], []]
    moved = np.moveaxis(x, -1, 1)
    assert ops.run("FusedBatchNorm", [moved, ones, ones, none, none], data_format=b"NCHW")[0].shape == moved.shape


def test_a_moving_average_of_one_pixel(ops: Any) -> None:
    x, ones = np.float32([3, 5]).reshape(1, 1, 1, 2), np.ones(2, np.float32)
    _, mean, variance, *_ = ops.run("FusedBatchNormV2", [x, ones, ones, 2 * ones, 4 * ones], exponential_avg_factor=0.5)
    assert (mean.tolist(), variance.tolist()) == ([2.5, 3.5], [2, 2])


def refused(text: str, run: Any, *inputs: Any, **attrs: Any) -> None:
    with pytest.raises(errors.InvalidArgumentError) as error:
        run(*inputs, **attrs)
    assert error.value.message == text


def of(*shape: int) -> Any:
    return np.ones(shape, np.float32)


def changed(values: list[Any], place: int, value: Any) -> list[Any]:
    return [*values[:place], value, *values[place + 1 :]]


def test_what_does_not_fit_a_batch_norm(ops: Any) -> None:
    x = of(2, 3, 4, 5)
    good, count = [x, of(5), of(5), of(5), of(5)], "must have the same number of elements as the channels of x, got"
    for place, value, text in (
        (0, of(2, 3, 5), "input must be 4 or 5-dimensional: x has shape [2,3,5]"),
        (0, of(1, 1, 1, 1, 1, 5), "input must be 4 or 5-dimensional: x has shape [1,1,1,1,1,5]"),
        (1, of(1, 5), "scale must be 1-dimensional: [1,5]"),
        (1, of(4), f"scale {count} 4 and 5"),
        (2, of(1, 5), "offset must be 1-dimensional: [1,5]"),
        (2, of(6), f"offset {count} 6 and 5"),
        (3, of(1, 5), "estimated_mean must be 1-dimensional: [1,5]"),
        (4, of(), "estimated_variance must be 1-dimensional: []"),
    ):
        for attrs in ({}, {"is_training": False}, {"exponential_avg_factor": 0.5}):
            refused(text, ops.run, "FusedBatchNorm", changed(good, place, value), **attrs)
    for place, name in ((3, "mean"), (4, "variance")):
        for attrs in ({"is_training": False}, {"exponential_avg_factor": 0.5}):
            refused(f"{name} {count} 0 and 5", ops.run, "FusedBatchNorm", changed(good, place, of(0)), **attrs)
    good = [x, x, of(5), of(5), of(5)]
    for place, value, text in (
        (0, of(2, 3, 5), "input must be 4 or 5-dimensional: y_backprop has shape [2,3,5]"),
        (1, of(2, 3, 5), "input must be 4 or 5-dimensional: x has shape [2,3,5]"),
        (0, of(2, 3, 3, 5),
         "x and y_backprop must have same shape, but x has shape [2,3,4,5] and y_backprop has shape [2,3,3,5]"),
        (2, of(4), f"scale {count} 4 and 5"),
        (3, of(4), f"reserve_space_1 {count} 4 and 5"),
        (4, of(4), f"reserve_space_2 {count} 4 and 5"),
        (4, of(5, 1), "reserve_space_2 must be 1-dimensional: [5,1]"),
    ):  # fmt: skip
        refused(text, ops.run, "FusedBatchNormGrad", changed(good, place, value))


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_what_follows_a_batch_norm_in_one_operation(ops: Any, layout: str) -> None:
    x, side, (rows, sides), axis = images((2, 3, 4, 5), layout, np.float32)
    scale, offset, none = sample(5), sample(5), np.empty(0, np.float32)
    plain = normalized(rows, rows.mean(0), rows.var(0), 1e-4) * scale + offset
    for activation in ("Identity", "Relu", "Elu"):
        for given in ([], [side]):
            attrs = {
                "activation_mode": activation.encode(),
                "num_side_inputs": len(given),
                "data_format": layout.encode(),
            }
            inputs = [x, scale, offset, none, none, *given]
            if activation == "Elu":
                refused("Unsupported activation mode: Elu", ops.run, "_FusedBatchNormEx", inputs, **attrs)
                continue
            expected = plain + sides if given else plain
            expected = np.maximum(expected, 0) if activation == "Relu" else expected
            found = ops.run("_FusedBatchNormEx", inputs, **attrs)
            np.testing.assert_allclose(found[0], back_in_shape(expected, x, axis), rtol=1e-3, atol=1e-3)
            assert len(found) == 6


@pytest.mark.parametrize("beta", [0.5, 0.75, 0.6])
def test_response_of_few_channels_and_of_none(ops: Any, beta: float) -> None:
    for shape, radius in (
        ((1, 2, 2, 1), 5),
        ((1, 2, 2, 1), 0),
        ((1, 1, 3, 4), 0),
        ((1, 1, 3, 2), 1),
        ((1, 1, 1, 3), 9),
    ):
        x, g = sample(*shape), sample(*shape)
        attrs = {"depth_radius": radius, "bias": 1.5, "alpha": 0.3, "beta": beta}
        y = ops.run("LRN", [x], **attrs)
        np.testing.assert_allclose(y, lrn(x, radius, 1.5, 0.3, beta), rtol=1e-5)
        near = [slice(max(c - radius, 0), c + radius + 1) for c in range(shape[-1])]
        wide = x.astype(np.float64)
        norms = np.stack([1.5 + 0.3 * (wide[..., cut] ** 2).sum(-1) for cut in near], -1)
        shares = g * lrn(x, radius, 1.5, 0.3, beta) / norms
        expected = g * norms**-beta - 0.6 * beta * x * np.stack([shares[..., cut].sum(-1) for cut in near], -1)
        np.testing.assert_allclose(ops.run("LRNGrad", [g, x, y], **attrs), expected, rtol=1e-4, atol=1e-5)
        half = ops.run("LRN", [x.astype(np.float16)], **attrs)
        np.testing.assert_allclose(half, lrn(x, radius, 1.5, 0.3, beta), rtol=1e-2)
    for shape in ((0, 2, 2, 3), (2, 2, 2, 0)):
        x = np.zeros(shape, np.float32)
        assert ops.run("LRN", [x], beta=beta).shape == ops.run("LRNGrad", [x, x, x], beta=beta).shape == shape


@pytest.mark.parametrize(("channels", "spoilt"), [(384, True), (385, False)])
def test_of_many_channels_what_is_not_finite_spoils_those_in_its_reach(ops: Any, channels: int, spoilt: bool) -> None:
    """TensorFlow sums so many in another way, without a matrix."""
    x = np.ones((1, 1, 3, channels), np.float32)
    x[0, 0, 1, 200] = np.inf
    x[0, 0, 2, 0] = 1e38  # whose square is not finite either
    for beta in (0.5, 0.6):
        y = ops.run("LRN", [x], depth_radius=2, bias=1.0, alpha=1.0, beta=beta)[0, 0]
        np.testing.assert_allclose(y[0, 2:-2], 6**-beta, rtol=1e-6)
        assert np.isnan(y[1, 200])
        assert y[1, [198, 199, 201, 202]].tolist() == [0] * 4
        assert y[2, :3].tolist() == [0] * 3
        far = np.concatenate([y[1, :198], y[1, 203:], y[2, 3:]])
        assert np.isnan(far).all() if spoilt else np.isfinite(far).all()


def test_what_does_not_fit_a_response(ops: Any) -> None:
    x = of(1, 2, 2, 3)
    refused("in must be 4-dimensional, got shape [2,3]", ops.run, "LRN", [of(2, 3)])
    refused("in must be 4-dimensional, got shape [1,1,1,2,3]", ops.run, "LRN", [of(1, 1, 1, 2, 3)])
    refused("input_grads must be 4-dimensional, got shape [3]", ops.run, "LRNGrad", [of(3)] * 3)
    for op, inputs in (("LRN", [x]), ("LRNGrad", [x, x, x])):
        refused("depth_radius must not be negative, got -1", ops.run, op, inputs, depth_radius=-1)
    text = "input_grads, input_image, and out_image should have the same shape: "
    refused(f"{text}[1,2,1,3], [1,2,2,3], [1,2,2,3]", ops.run, "LRNGrad", [x[:, :, :1], x, x])
    refused(f"{text}[1,2,2,3], [1,2,2,3], [1,2,1,3]", ops.run, "LRNGrad", [x, x, x[:, :, :1]])


def test_normalization_with_given_moments(ops: Any) -> None:
    for dtype, bound in ((np.float32, 1e-5), (np.float64, 1e-12), (np.float16, 2e-2)):
        x, (m, beta, gamma) = sample(1, 2, 3, 4, dtype=dtype), sample(3, 4, dtype=dtype)
        v = np.abs(sample(4, dtype=dtype)) + np.asarray(1, dtype)
        plain = normalized(x.astype(np.float64), m, v, 0.25)
        for scaled in (False, True):
            attrs = {"variance_epsilon": 0.25, "scale_after_normalization": scaled}
            found = ops.run("BatchNormWithGlobalNormalization", [x, m, v, beta, gamma], **attrs)
            np.testing.assert_allclose(found, (plain * gamma if scaled else plain) + beta, rtol=bound, atol=bound)


def test_what_does_not_fit_given_moments(ops: Any) -> None:
    x = of(1, 2, 2, 3)
    forth, back = [x, *[of(3)] * 4], [x, *[of(3)] * 3, x]
    for scaled in (False, True):
        attrs = {"variance_epsilon": 0.25, "scale_after_normalization": scaled}
        for op, good, names in (
            ("", forth, ("mean", "var", "beta", "gamma")),
            ("Grad", back, ("mean", "var", "gamma")),
        ):
            op = f"BatchNormWithGlobalNormalization{op}"
            refused("input must be 4-dimensional [2,3]", ops.run, op, changed(good, 0, of(2, 3)), **attrs)
            for place, name in enumerate(names, 1):
                wrong = changed(good, place, of(3, 1))
                if name == "gamma" and good is forth and not scaled:
                    assert ops.run(op, wrong, **attrs).shape == x.shape
                    continue
                text = f"{name} must be a vector of 3 channels, got shape [3,1]"
                refused(text, ops.run, op, wrong, **attrs)
        found = ops.run("BatchNormWithGlobalNormalizationGrad", [2 * x, *back[1:]], **attrs)
        assert found[4].tolist() == ([pytest.approx(4 / np.sqrt(1.25))] * 3 if scaled else [0] * 3)
