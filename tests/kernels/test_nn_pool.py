"""Pools and their gradients against loops over windows."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from tenfold_core import dtypes, errors

RNG = np.random.default_rng(4)


def sample(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return RNG.standard_normal(shape).astype(dtype)


def windows(shape: tuple[int, ...], k: tuple[int, int], strides: tuple[int, int], same: bool) -> Any:
    """(output row, output column, rows, columns) for every window, cut at the edges."""
    spans = []
    for size, width, stride in zip(shape, k, strides, strict=True):
        out = -(-size // stride) if same else (size - width) // stride + 1
        before = max((out - 1) * stride + width - size, 0) // 2 if same else 0
        spans.append([slice(max(i * stride - before, 0), min(i * stride - before + width, size)) for i in range(out)])
    for (i, rows), (j, columns) in itertools.product(enumerate(spans[0]), enumerate(spans[1])):
        yield i, j, rows, columns


SETTINGS = [((3, 3), (2, 2), True), ((2, 3), (1, 2), True), ((2, 2), (2, 2), False), ((3, 2), (1, 1), False)]


def attrs_of(k: Any, strides: Any, same: bool) -> dict[str, Any]:
    return {"ksize": [1, *k, 1], "strides": [1, *strides, 1], "padding": b"SAME" if same else b"VALID"}


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_pools(ops: Any, dtype: Any, setting: Any) -> None:
    x = sample(2, 7, 6, 3, dtype=dtype)

    largest = ops.run("MaxPool", [x], **attrs_of(*setting))
    mean = ops.run("AvgPool", [x], **attrs_of(*setting))

    for i, j, rows, columns in windows((7, 6), *setting):
        part = x[:, rows, columns].astype(np.float64)
        np.testing.assert_array_equal(largest[:, i, j], part.max((1, 2)).astype(dtype))
        np.testing.assert_allclose(
            mean[:, i, j], part.mean((1, 2)), rtol=1e-2 if dtype == np.float16 else 1e-5, atol=1e-3
        )


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_gradients(ops: Any, setting: Any) -> None:
    x = sample(2, 7, 6, 3)
    attrs = attrs_of(*setting)
    y = ops.run("MaxPool", [x], **attrs)
    g = sample(*y.shape)

    of_max = ops.run("MaxPoolGrad", [x, y, g], **attrs)
    of_mean = ops.run("AvgPoolGrad", [np.array(x.shape, np.int32), g], T=dtypes.float32, **attrs)
    back = sample(*x.shape)
    second = ops.run("MaxPoolGradGrad", [x, y, back], **attrs)

    expected_max, expected_mean, expected_second = np.zeros(x.shape), np.zeros(x.shape), np.zeros(y.shape)
    for i, j, rows, columns in windows((7, 6), *setting):
        part = x[:, rows, columns]
        share = g[:, i, j] / (part.shape[1] * part.shape[2])
        expected_mean[:, rows, columns] += share[:, None, None, :]
        for n, c in itertools.product(range(2), range(3)):
            at = np.unravel_index(part[n, :, :, c].argmax(), part.shape[1:3])
            expected_max[n, rows.start + at[0], columns.start + at[1], c] += g[n, i, j, c]
            expected_second[n, i, j, c] = back[n, rows.start + at[0], columns.start + at[1], c]
    np.testing.assert_allclose(of_max, expected_max, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(of_mean, expected_mean, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(second, expected_second)


def test_equal_elements_give_their_gradient_to_the_first(ops: Any) -> None:
    x = np.ones((1, 2, 2, 1), np.float32)

    grad = ops.run("MaxPoolGrad", [x, x[:, :1, :1], x[:, :1, :1]], **attrs_of((2, 2), (2, 2), False))

    assert grad.reshape(-1).tolist() == [1, 0, 0, 0]


def test_equal_elements_of_a_volume_all_have_the_gradient(ops: Any) -> None:
    x = np.ones((1, 1, 2, 2, 1), np.float32)
    x[0, 0, 1, 1] = 0

    grad = ops.run(
        "MaxPool3DGrad",
        [x, x[:, :, :1, :1], 3 * x[:, :, :1, :1]],
        ksize=[1, 1, 2, 2, 1],
        strides=[1, 1, 2, 2, 1],
        padding=b"VALID",
    )

    assert grad.reshape(-1).tolist() == [3, 3, 3, 0]


def test_the_gradient_goes_past_a_nan_unless_it_comes_first(ops: Any) -> None:
    x = np.array([1, np.nan, 2, 0, np.nan, 5, 6, 7], np.float32).reshape(1, 2, 4, 1)
    y, g = np.zeros((1, 1, 2, 1), np.float32), np.array([[[[3], [4]]]], np.float32)

    grad = ops.run("MaxPoolGrad", [x, y, g], **attrs_of((2, 2), (2, 2), False))

    assert grad.reshape(-1).tolist() == [0, 0, 0, 0, 0, 3, 0, 4]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("same", [True, False])
def test_channels_that_fill_vectors_are_as_each_by_itself(ops: Any, dtype: Any, same: bool) -> None:
    # Equal elements, NaNs in any place, and pixels that no window sees.
    x = RNG.integers(0, 4, (3, 8, 7, 32)).astype(dtype)
    x[RNG.random(x.shape) < 0.1] = np.nan
    attrs = attrs_of((3, 2), (2, 2), same)
    y = ops.run("MaxPool", [x], **attrs)
    g = sample(*y.shape).astype(dtype)

    grad = ops.run("MaxPoolGrad", [x, y, g], **attrs)

    alone = []
    for c in range(32):
        one = slice(c, c + 1)
        alone.append(ops.run("MaxPoolGrad", [x[..., one], y[..., one], g[..., one]], **attrs))
    np.testing.assert_array_equal(grad, np.concatenate(alone, axis=-1))


@pytest.mark.parametrize(
    ("paddings", "message"),
    [([3, 0, 0, 0], "Top padding 3"), ([0, 2, 0, 0], "Bottom padding 2"), ([0, 0, 0, 2], "Right padding 2")],
)
def test_padding_is_smaller_than_the_window(ops: Any, paddings: list[int], message: str) -> None:
    attrs = {**attrs_of((2, 2), (2, 2), False), "padding": b"EXPLICIT", "explicit_paddings": [0, 0, *paddings, 0, 0]}

    with pytest.raises(errors.InvalidArgumentError, match=f"{message} needs to be smaller than the window size 2"):
        ops.run("MaxPool", [sample(1, 3, 3, 1)], **attrs)


def test_strides_along_channels_are_ignored_where_tensorflow_ignores_them(ops: Any) -> None:
    x = sample(1, 2, 2, 4)
    attrs = {**attrs_of((2, 2), (2, 2), False), "strides": [1, 2, 2, 4]}

    np.testing.assert_array_equal(ops.run("MaxPool", [x], **attrs), x.max((1, 2), keepdims=True))
    np.testing.assert_allclose(ops.run("AvgPool", [x], **attrs), x.mean((1, 2), keepdims=True), rtol=1e-5)
    y, places = ops.run("MaxPoolWithArgmax", [x], ksize=[1, 1, 1, 4], strides=[1, 1, 1, 4], padding=b"VALID")
    np.testing.assert_array_equal(y, x)
    assert places.reshape(-1).tolist() == list(range(16))


def test_places_of_the_maxima(ops: Any) -> None:
    x = sample(2, 6, 4, 3)
    attrs = attrs_of((2, 2), (2, 2), False)

    y, within = ops.run("MaxPoolWithArgmax", [x], **attrs)
    _, whole = ops.run("MaxPoolWithArgmax", [x], include_batch_in_index=True, **attrs)
    grad = ops.run("MaxPoolGradWithArgmax", [x, y, within], **attrs)

    np.testing.assert_array_equal(x.reshape(-1)[whole], y)
    np.testing.assert_array_equal(whole - within, np.broadcast_to([[[[0]]], [[[72]]]], y.shape))
    np.testing.assert_allclose(grad.reshape(-1)[whole], y)
    assert np.count_nonzero(grad) == y.size


def test_an_argmax_outside_is_refused(ops: Any) -> None:
    x, y = sample(1, 2, 2, 1), sample(1, 1, 1, 1)

    with pytest.raises(errors.InvalidArgumentError, match="outside of"):
        ops.run("MaxPoolGradWithArgmax", [x, y, np.array([[[[4]]]])], **attrs_of((2, 2), (2, 2), False))


def test_a_nan_is_passed_over(ops: Any) -> None:
    """As by TensorFlow's kernels, to which a window begins with the least number there is."""
    x = np.float32([np.nan, 3, 1, 2, np.nan, np.nan, np.nan, -np.inf]).reshape(2, 2, 2, 1)
    attrs = attrs_of((2, 2), (2, 2), False)
    deep = {"ksize": [1, 1, 2, 2, 1], "strides": [1, 1, 2, 2, 1], "padding": b"VALID"}

    assert ops.run("MaxPool", [x], **attrs).reshape(-1).tolist() == [3, np.finfo(np.float32).min]
    assert ops.run("MaxPool", [x.astype(np.float16)], **attrs).reshape(-1).tolist() == [3, np.finfo(np.float16).min]
    assert ops.run("MaxPool", [np.full((1, 2, 2, 1), -(2**31), np.int32)], **attrs).item() == -(2**31)
    assert ops.run("MaxPool3D", [x[:, None]], **deep).reshape(-1).tolist() == [3, -np.inf]


def test_a_second_gradient_is_that_of_the_first_place_that_equals_the_output(ops: Any) -> None:
    x = np.float32([1, 3, 3, 2, np.nan, 0, 0, 0]).reshape(2, 2, 2, 1)
    attrs, given = attrs_of((2, 2), (2, 2), False), np.arange(10, 18, dtype=np.float32).reshape(2, 2, 2, 1)
    y = np.float32([3, np.nan]).reshape(2, 1, 1, 1)

    assert ops.run("MaxPoolGradGrad", [x, y, given], **attrs).reshape(-1).tolist() == [11, 0]
    for inputs in ([x, y[0], given], [x, y[:1], given], [x, y, given[:1]]):
        with pytest.raises(errors.InvalidArgumentError, match=r"Expected (orig_output|grad) shape to be"):
            ops.run("MaxPoolGradGrad", inputs, **attrs)


def test_a_gradient_by_places_has_the_shape_of_the_output(ops: Any) -> None:
    x, places = sample(1, 4, 4, 1), np.zeros((1, 2, 3, 1), np.int64)
    text = r"Expected grad shape to be \[1,2,2,1\], but got \[1,2,3,1\]"

    with pytest.raises(errors.InvalidArgumentError, match=text):
        ops.run("MaxPoolGradWithArgmax", [x, sample(1, 2, 3, 1), places], **attrs_of((2, 2), (2, 2), False))
    with pytest.raises(errors.InvalidArgumentError, match="4-dimensional"):
        ops.run("MaxPoolGradWithArgmax", [x[0], sample(1, 2, 2, 1), places], **attrs_of((2, 2), (2, 2), False))


def test_pooling_over_channels_and_the_batch(ops: Any) -> None:
    x = sample(1, 2, 2, 6)

    y = ops.run("MaxPool", [x], ksize=[1, 1, 1, 3], strides=[1, 1, 1, 3], padding=b"SAME")

    np.testing.assert_array_equal(y, x.reshape(1, 2, 2, 2, 3).max(-1))
    with pytest.raises(errors.UnimplementedError, match="batch dimension"):
        ops.run("MaxPool", [x], ksize=[2, 1, 1, 1], strides=[1, 1, 1, 1], padding=b"SAME")


def test_channels_first(ops: Any) -> None:
    x = sample(2, 3, 6, 4)
    first = {"ksize": [1, 1, 2, 2], "strides": [1, 1, 2, 2], "padding": b"VALID", "data_format": b"NCHW"}

    y = ops.run("MaxPool", [x], **first)

    np.testing.assert_array_equal(y, x.reshape(2, 3, 3, 2, 2, 2).max((3, 5)))


def test_sizes_as_inputs_and_a_large_batch_shared_among_threads(ops: Any) -> None:
    x = sample(8, 64, 64, 16)
    k = np.array([1, 2, 2, 1], np.int32)

    y = ops.run("MaxPoolV2", [x, k, k], padding=b"VALID")

    np.testing.assert_array_equal(y, x.reshape(8, 32, 2, 32, 2, 16).max((2, 4)))
