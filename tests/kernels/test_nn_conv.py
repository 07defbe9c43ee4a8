"""Convolutions against a loop in float64, their gradients as adjoints, and what is refused."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tenfold_core import dtypes, errors
from tenfold_kernels import parallel
from tenfold_kernels.cpu import _convolutions, _convolve, _windows

RNG = np.random.default_rng(3)
FLOATS = (np.float16, np.float32, np.float64)
TOLERANCE = {2: 2e-2, 4: 2e-5, 8: 1e-12}


def sample(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return RNG.standard_normal(shape).astype(dtype)


def padding_of(size: int, k: int, stride: int, dilation: int, padding: Any) -> tuple[int, int, int]:
    """Output size, and zeros before and after."""
    reach = (k - 1) * dilation + 1
    if padding == "SAME":
        out = -(-size // stride)
        total = max((out - 1) * stride + reach - size, 0)
        return out, total // 2, total - total // 2
    before, after = padding if padding != "VALID" else (0, 0)
    return (size + before + after - reach) // stride + 1, before, after


def convolution(x: np.ndarray, w: np.ndarray, strides: Any, dilations: Any, padding: Any) -> np.ndarray:
    """The twin: one product an output pixel. x [N, H, W, C], w [kh, kw, C, O]; padding a word or a pair a dimension."""
    x, w = x.astype(np.float64), w.astype(np.float64)
    pairs = [padding] * 2 if isinstance(padding, str) else padding
    rows, top, bottom = padding_of(x.shape[1], w.shape[0], strides[0], dilations[0], pairs[0])
    columns, left, right = padding_of(x.shape[2], w.shape[1], strides[1], dilations[1], pairs[1])
    padded = np.pad(x, [(0, 0), (top, bottom), (left, right), (0, 0)])
    out = np.zeros((len(x), rows, columns, w.shape[3]))
    for i, j in itertools.product(range(rows), range(columns)):
        at = padded[
            :,
            i * strides[0] : i * strides[0] + (w.shape[0] - 1) * dilations[0] + 1 : dilations[0],
            j * strides[1] : j * strides[1] + (w.shape[1] - 1) * dilations[1] + 1 : dilations[1],
        ]
        out[:, i, j] = np.tensordot(at, w, 3)
    return out


SETTINGS = [
    ((1, 1), (1, 1), "SAME"),
    ((2, 1), (1, 1), "SAME"),
    ((2, 3), (1, 1), "VALID"),
    ((1, 1), (2, 1), "VALID"),
    ((1, 1), (2, 2), "SAME"),
    ((2, 2), (1, 1), [(1, 2), (0, 3)]),
    # More padding than the window is wide: its gradient begins inside of the output.
    ((1, 1), (1, 1), [(4, 4), (3, 3)]),
]

#: (input, filter) whose rows, columns and sums fall into tiles of every size, or into several slices.
SHAPES = [
    *(((2, 4, columns, 5), (2, 2, 5, 20)) for columns in range(2, 15)),
    *(((1, 4, 4, 3), (3, 3, 3, width)) for width in (1, 15, 16, 17, 31, 48, 63, 64, 65, 113, 130)),
    ((2, 5, 5, 260), (3, 3, 260, 70)),
    ((3, 1, 1, 4), (3, 3, 4, 8)),
]


def attrs_of(strides: Any, dilations: Any, padding: Any, first: bool = False) -> dict[str, Any]:
    def wrap(pair: Any) -> list[int]:
        return [1, 1, *pair] if first else [1, *pair, 1]

    made = {"strides": wrap(strides), "dilations": wrap(dilations), "data_format": b"NCHW" if first else b"NHWC"}
    if isinstance(padding, str):
        return made | {"padding": padding.encode()}
    pads = [v for pair in padding for v in pair]
    explicit = [0, 0, 0, 0, *pads] if first else [0, 0, *pads, 0, 0]
    return made | {"padding": b"EXPLICIT", "explicit_paddings": explicit}


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
@pytest.mark.parametrize("dtype", FLOATS)
def test_convolution(ops: Any, dtype: Any, setting: Any) -> None:
    x, w = sample(2, 7, 8, 3, dtype=dtype), sample(3, 2, 3, 4, dtype=dtype)

    y = ops.run("Conv2D", [x, w], **attrs_of(*setting))

    expected = convolution(x, w, *setting)
    bound = TOLERANCE[np.dtype(dtype).itemsize]
    np.testing.assert_allclose(y, expected, rtol=bound, atol=bound * 4)


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
@pytest.mark.parametrize("first", [False, True], ids=["NHWC", "NCHW"])
def test_gradients_are_adjoint_to_the_convolution(ops: Any, setting: Any, first: bool) -> None:
    x, w = sample(2, 7, 8, 3, dtype=np.float64), sample(3, 2, 3, 4, dtype=np.float64)
    x = np.ascontiguousarray(x.transpose(0, 3, 1, 2)) if first else x
    attrs = attrs_of(*setting, first)
    y = ops.run("Conv2D", [x, w], **attrs)
    g = sample(*y.shape, dtype=np.float64)

    sizes = [np.array(v.shape, np.int32) for v in (x, w)]
    of_input = ops.run("Conv2DBackpropInput", [sizes[0], w, g], T=dtypes.float64, **attrs)
    of_filter = ops.run("Conv2DBackpropFilter", [x, sizes[1], g], T=dtypes.float64, **attrs)

    assert of_input.shape == x.shape
    assert of_filter.shape == w.shape
    np.testing.assert_allclose((y * g).sum(), (of_input * x).sum(), rtol=1e-10)
    np.testing.assert_allclose((y * g).sum(), (of_filter * w).sum(), rtol=1e-10)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("shapes", [((2, 9, 6, 1), (3, 6, 1, 4)), ((2, 5, 6, 16), (2, 5, 16, 3))], ids=str)
def test_both_ways_to_the_gradient_of_an_input_agree(
    ops: Any, dtype: Any, padding: str, shapes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, w = (sample(*shape, dtype=dtype) for shape in shapes)
    attrs = attrs_of((1, 1), (1, 1), padding)
    g = sample(*ops.run("Conv2D", [x, w], **attrs).shape, dtype=dtype)
    found = []
    for most in (0, 1 << 30):
        monkeypatch.setattr(_convolutions, "_MOST_TURNED", most)
        found.append(ops.run("Conv2DBackpropInput", [np.array(x.shape, np.int32), w, g], **attrs))
    bound = TOLERANCE[np.dtype(dtype).itemsize]
    np.testing.assert_allclose(*found, rtol=bound, atol=bound * 4)


def test_a_window_as_wide_as_the_image_is_not_turned_round() -> None:
    def place(image: Any, window: Any, padding: str) -> Any:
        node = SimpleNamespace(op="Conv2D", attrs=attrs_of((1, 1), (1, 1), padding))
        return _windows.sliding(node, 2).place(image, window)  # type: ignore[arg-type]

    # sentences of words of 64 numbers, whose gradient was computed 600 times over
    assert not _convolutions._may_turn(place((8, 40, 64, 1), (3, 64), "VALID"), np.float32)
    assert _convolutions._may_turn(place((8, 28, 28, 16), (3, 3), "SAME"), np.float32)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_tiles_of_every_size(ops: Any, dtype: Any, shapes: Any) -> None:
    x, w = (sample(*shape, dtype=dtype) for shape in shapes)
    attrs = attrs_of((1, 1), (1, 1), "SAME")

    y = ops.run("Conv2D", [x, w], **attrs)
    g = sample(*y.shape, dtype=dtype)
    of_filter = ops.run("Conv2DBackpropFilter", [x, np.array(w.shape, np.int32), g], **attrs)

    bound = TOLERANCE[np.dtype(dtype).itemsize] * np.sqrt(w[..., 0].size)
    np.testing.assert_allclose(y, convolution(x, w, (1, 1), (1, 1), "SAME"), rtol=bound, atol=bound)
    # One place of the window after the other: the input moved there, times the gradient.
    padded = np.pad(x.astype(np.float64), [(0, 0), *(((k - 1) // 2, k // 2) for k in w.shape[:2]), (0, 0)])
    for i, j in itertools.product(range(w.shape[0]), range(w.shape[1])):
        moved = padded[:, i : i + x.shape[1], j : j + x.shape[2]]
        expected = np.tensordot(moved, g.astype(np.float64), ([0, 1, 2], [0, 1, 2]))
        np.testing.assert_allclose(of_filter[i, j], expected, rtol=bound, atol=bound * 4)


def test_threads_share_a_convolution_and_give_the_same_each_time(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x, w = sample(5, 9, 9, 8), sample(3, 3, 8, 24)
    g = sample(5, 9, 9, 24)
    attrs, sizes = attrs_of((1, 1), (1, 1), "SAME"), np.array(w.shape, np.int32)
    alone = [ops.run("Conv2D", [x, w], **attrs), ops.run("Conv2DBackpropFilter", [x, sizes, g], **attrs)]
    monkeypatch.setattr(_convolve, "_SHARE", 1)
    monkeypatch.setattr(parallel, "_width", lambda: 3)

    shared = [
        [ops.run("Conv2D", [x, w], **attrs), ops.run("Conv2DBackpropFilter", [x, sizes, g], **attrs)] for _ in range(2)
    ]

    np.testing.assert_array_equal(shared[0][0], alone[0])
    np.testing.assert_allclose(shared[0][1], alone[1], rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(shared[0][1], shared[1][1])


def test_channels_first_is_the_same_transposed(ops: Any) -> None:
    x, w = sample(2, 5, 6, 3), sample(3, 3, 3, 4)

    last = ops.run("Conv2D", [x, w], strides=[1, 1, 1, 1], padding=b"SAME")
    first = ops.run("Conv2D", [x.transpose(0, 3, 1, 2), w], strides=[1, 1, 1, 1], padding=b"SAME", data_format=b"NCHW")

    np.testing.assert_allclose(first.transpose(0, 2, 3, 1), last, rtol=1e-5, atol=1e-5)


def test_groups_are_convolved_apart(ops: Any) -> None:
    x, w = sample(2, 5, 5, 6), sample(3, 3, 2, 9)

    y = ops.run("Conv2D", [x, w], strides=[1, 1, 1, 1], padding=b"SAME")

    for i in range(3):
        part = convolution(x[..., 2 * i : 2 * i + 2], w[..., 3 * i : 3 * i + 3], (1, 1), (1, 1), "SAME")
        np.testing.assert_allclose(y[..., 3 * i : 3 * i + 3], part, rtol=1e-4, atol=1e-4)


def test_many_blocks_join_without_a_seam(ops: Any) -> None:
    # Several megabytes of windows: more than one block, the last one smaller.
    x, w = sample(3, 40, 40, 8), sample(5, 5, 8, 4)

    y = ops.run("Conv2D", [x, w], strides=[1, 1, 1, 1], padding=b"SAME")

    np.testing.assert_allclose(y, convolution(x, w, (1, 1), (1, 1), "SAME"), rtol=1e-4, atol=1e-3)


def test_strided_and_integer_inputs(ops: Any) -> None:
    x, w = sample(2, 10, 6, 3)[:, ::2], sample(3, 3, 4, 3).swapaxes(2, 3)
    attrs: dict[str, Any] = {"strides": [1, 1, 1, 1], "padding": b"VALID"}

    np.testing.assert_allclose(
        ops.run("Conv2D", [x, w], **attrs), convolution(x, w, (1, 1), (1, 1), "VALID"), rtol=1e-4, atol=1e-4
    )
    whole = np.arange(32, dtype=np.int32).reshape(1, 4, 4, 2)
    kernel = np.ones((2, 2, 2, 1), np.int32)
    assert ops.run("Conv2D", [whole, kernel], **attrs)[0, 0, 0, 0] == whole[0, :2, :2].sum()


def test_empty_batches_and_windows_give_empty_results(ops: Any) -> None:
    attrs: dict[str, Any] = {"strides": [1, 1, 1, 1], "padding": b"VALID"}

    assert ops.run("Conv2D", [sample(0, 5, 5, 2), sample(3, 3, 2, 4)], **attrs).shape == (0, 3, 3, 4)
    assert ops.run("Conv2D", [sample(1, 2, 5, 2), sample(3, 3, 2, 4)], **attrs).shape == (1, 0, 3, 4)


@pytest.mark.parametrize(
    ("shapes", "attrs", "message"),
    [
        (((2, 5, 5), (3, 3, 1, 1)), {}, "input must be 4-dimensional"),
        (((1, 5, 5, 3), (3, 3, 2, 1)), {}, "evenly divisible by filter depth: 3 vs 2"),
        (((1, 1, 5, 1), (5, 3, 1, 1)), {}, "Computed output size would be negative"),
        (((1, 5, 5, 1), (3, 3, 1, 1)), {"strides": [1, 1, 1]}, "must specify 4 dimensions"),
        (((1, 5, 5, 1), (3, 3, 1, 1)), {"explicit_paddings": [1]}, "must be empty if the padding attribute"),
    ],
)
def test_refusals(ops: Any, shapes: Any, attrs: dict[str, Any], message: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=message):
        ops.run(
            "Conv2D", [sample(*shape) for shape in shapes], **({"strides": [1, 1, 1, 1], "padding": b"VALID"} | attrs)
        )


def test_strides_over_the_batch_are_refused(ops: Any) -> None:
    with pytest.raises(errors.UnimplementedError, match="strides in the batch and depth dimensions"):
        ops.run("Conv2D", [sample(1, 5, 5, 1), sample(3, 3, 1, 1)], strides=[2, 1, 1, 1], padding=b"VALID")


def test_conv_takes_more_batch_dimensions(ops: Any) -> None:
    x, w = sample(2, 3, 5, 6, 2), sample(3, 3, 2, 4)

    many = ops.run("Conv", [x, w], strides=[1, 1, 1, 1], padding=b"SAME", batch_dims=2)

    plain = ops.run("Conv2D", [x.reshape(6, 5, 6, 2), w], strides=[1, 1, 1, 1], padding=b"SAME")
    assert many.shape == (2, 3, 5, 6, 4)
    np.testing.assert_array_equal(many.reshape(plain.shape), plain)


def test_a_gradient_of_another_size_is_refused(ops: Any) -> None:
    with pytest.raises(errors.InvalidArgumentError, match="Size of out_backprop doesn't match computed"):
        ops.run(
            "Conv2DBackpropInput",
            [np.array([1, 5, 5, 1], np.int32), sample(3, 3, 1, 1), sample(1, 4, 3, 1)],
            strides=[1, 1, 1, 1],
            padding=b"VALID",
            T=dtypes.float32,
        )


@pytest.mark.parametrize("times", [1, 3])
def test_depthwise_is_a_convolution_a_channel(ops: Any, times: int) -> None:
    x, w = sample(2, 6, 7, 4, dtype=np.float64), sample(3, 2, 4, times, dtype=np.float64)
    attrs: dict[str, Any] = {"strides": [1, 2, 2, 1], "padding": b"SAME"}

    y = ops.run("DepthwiseConv2dNative", [x, w], **attrs)
    g = sample(*y.shape, dtype=np.float64)
    sizes = [np.array(v.shape, np.int32) for v in (x, w)]
    of_input = ops.run("DepthwiseConv2dNativeBackpropInput", [sizes[0], w, g], T=dtypes.float64, **attrs)
    of_filter = ops.run("DepthwiseConv2dNativeBackpropFilter", [x, sizes[1], g], T=dtypes.float64, **attrs)

    for c in range(4):
        part = convolution(x[..., c : c + 1], w[:, :, c : c + 1], (2, 2), (1, 1), "SAME")
        np.testing.assert_allclose(y[..., c * times : (c + 1) * times], part, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose((y * g).sum(), (of_input * x).sum(), rtol=1e-10)
    np.testing.assert_allclose((y * g).sum(), (of_filter * w).sum(), rtol=1e-10)


def test_three_dimensions_hold_two(ops: Any) -> None:
    x, w = sample(2, 1, 6, 7, 3), sample(1, 3, 3, 3, 4)

    deep = ops.run("Conv3D", [x, w], strides=[1, 1, 2, 1, 1], padding=b"SAME")

    flat = ops.run("Conv2D", [x[:, 0], w[0]], strides=[1, 2, 1, 1], padding=b"SAME")
    np.testing.assert_allclose(deep[:, 0], flat, rtol=1e-5, atol=1e-5)


def test_images_without_channels(ops: Any) -> None:
    """As in TensorFlow they fit any filter; what the compiled loops would read lies outside of them."""
    image, kernel = np.zeros((2, 7, 8, 0), np.float32), np.ones((3, 2, 4, 6), np.float32)
    gradient, attrs = np.ones((2, 7, 8, 6), np.float32), {"strides": [1, 1, 1, 1], "padding": b"SAME"}

    assert ops.run("Conv2D", [image, kernel], **attrs).tolist() == np.zeros((2, 7, 8, 6)).tolist()
    of_filter = ops.run("Conv2DBackpropFilter", [image, np.int32([3, 2, 4, 6]), gradient], **attrs)
    assert of_filter.tolist() == np.zeros((3, 2, 4, 6)).tolist()
    assert ops.run("Conv2DBackpropInput", [np.int32([2, 7, 8, 0]), kernel, gradient], **attrs).shape == image.shape
