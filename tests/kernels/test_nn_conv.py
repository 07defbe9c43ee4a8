"""Convolutions against a loop in float64, their gradients as adjoints, and what is refused."""

from __future__ import annotations

import itertools
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from support.room import assert_wants
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


def test_conv_takes_more_batch_dimensions(ops: Any) -> None:
    x, w = sample(2, 3, 5, 6, 2), sample(3, 3, 2, 4)

    many = ops.run("Conv", [x, w], strides=[1, 1, 1, 1], padding=b"SAME", batch_dims=2)

    plain = ops.run("Conv2D", [x.reshape(6, 5, 6, 2), w], strides=[1, 1, 1, 1], padding=b"SAME")
    assert many.shape == (2, 3, 5, 6, 4)
    np.testing.assert_array_equal(many.reshape(plain.shape), plain)


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


# -- what is refused, and in which words

ONE = [1, 1, 1, 1]
VOLUME = [1, 1, 1, 1, 1]
VALID: dict[str, Any] = {"strides": ONE, "padding": b"VALID"}
DEEP: dict[str, Any] = {"strides": VOLUME, "padding": b"VALID"}


def ints(*sizes: int) -> np.ndarray:
    return np.array(sizes, np.int32)


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


IMAGE, FILTER, BACK = ones(2, 5, 6, 4), ones(3, 2, 2, 6), ones(2, 3, 5, 6)
OF_INPUT, OF_FILTER = "Conv2DBackpropInput", "Conv2DBackpropFilter"
SIZED = "Size of out_backprop doesn't match computed: actual = {}, computed = {} spatial_dim: {} input: {} filter: {} "
SIZED += "output: {} stride: {} dilation: {}"
BATCHES = "input and out_backprop must have the same batch size. Input batch: 2, outbackprop batch: 3, batch_dim: 0"
EMPTY_FILTER = "filter must not have zero elements (i.e. all dimensions must be non-zero)"

REFUSED: list[tuple[str, list[Any], dict[str, Any], str]] = [
    ("Conv2D", [IMAGE[0], FILTER], VALID, "Conv2D: input must be 4-dimensional: [5,6,4]"),
    ("Conv2D", [IMAGE[None], FILTER], VALID, "Conv2D: input must be 4-dimensional: [1,2,5,6,4]"),
    ("Conv2D", [IMAGE, FILTER[0]], VALID, "Conv2D: filter must be 4-dimensional: [2,2,6]"),
    ("Conv3D", [IMAGE, FILTER[None]], DEEP, "Conv3D: input must be 5-dimensional: [2,5,6,4]"),
    ("Conv3D", [IMAGE[None], FILTER], DEEP, "Conv3D: filter must be 5-dimensional: [3,2,2,6]"),
    *(
        ("Conv2D", [IMAGE, np.ones(shape, np.float32)], VALID, EMPTY_FILTER)
        for shape in ((0, 2, 2, 6), (3, 0, 2, 6), (3, 2, 0, 6), (3, 2, 2, 0))
    ),
    (
        "Conv2D", [IMAGE, ones(3, 2, 3, 6)], VALID,
        "Conv2D: input depth must be evenly divisible by filter depth: 4 vs 3",
    ),
    (
        "Conv2D", [IMAGE, ones(3, 2, 8, 6)], VALID,
        "Conv2D: input depth must be evenly divisible by filter depth: 4 vs 8",
    ),
    (
        "Conv2D", [IMAGE, ones(3, 2, 2, 5)], VALID,
        "Conv2D: output depth must be evenly divisible by number of groups: 5 vs 2",
    ),
    (OF_INPUT, [ints(2, 5, 6, 4), FILTER[0], BACK], VALID, f"{OF_INPUT}: filter must be 4-dimensional: [2,2,6]"),
    (OF_INPUT, [ints(2, 5, 6, 4), FILTER, BACK[0]], VALID, f"{OF_INPUT}: out_backprop must be 4-dimensional: [3,5,6]"),
    (OF_INPUT, [ints(4).reshape(()), FILTER, BACK], VALID, f"{OF_INPUT}: input_sizes input must be 1-dim, not 0"),
    (OF_INPUT, [ints(4)[None], FILTER, BACK], VALID, f"{OF_INPUT}: input_sizes input must be 1-dim, not 2"),
    *(
        (OF_INPUT, [ints(*[4] * n), FILTER, BACK], VALID, f"{OF_INPUT}: input_sizes must have 4 elements, got {n}")
        for n in (0, 1, 3, 5)
    ),
    (
        "Conv3DBackpropInputV2", [ints(2, 2), ones(1, 1, 1, 1, 1), ones(1, 1, 1, 1, 1)], DEEP,
        "Conv3DBackpropInputV2: input_sizes must have 5 elements, got 2",
    ),
    (
        OF_INPUT, [ints(2, -5, 6, 4), FILTER, BACK], VALID,
        f"{OF_INPUT}: input_sizes must not be negative, got [2,-5,6,4]",
    ),
    (
        OF_INPUT, [ints(2, 5, 6, 4), ones(3, 2, 0, 6), BACK], VALID,
        f"{OF_INPUT}: input depth must be evenly divisible by filter depth: 4 vs 0",
    ),
    (
        OF_INPUT, [ints(2, 5, 6, 5), FILTER, BACK], VALID,
        f"{OF_INPUT}: input depth must be evenly divisible by filter depth: 5 vs 2",
    ),
    (OF_INPUT, [ints(2, 5, 6, 4), FILTER, ones(3, 3, 5, 6)], VALID, f"{OF_INPUT}: {BATCHES}"),
    (
        OF_INPUT, [ints(2, 5, 6, 4), FILTER, ones(2, 3, 5, 5)], VALID,
        f"{OF_INPUT}: filter and out_backprop must have the same out_depth",
    ),
    (
        OF_INPUT, [ints(2, 5, 6, 4), FILTER, ones(2, 4, 5, 6)], VALID,
        f"{OF_INPUT}: " + SIZED.format(4, 3, 1, 5, 3, 4, 1, 1),
    ),
    (
        OF_INPUT, [ints(2, 5, 7, 4), FILTER, ones(2, 3, 3, 6)], VALID | {"strides": [1, 1, 3, 1]},
        f"{OF_INPUT}: " + SIZED.format(3, 2, 2, 7, 2, 3, 3, 1),
    ),
    (OF_FILTER, [IMAGE[0], ints(3, 2, 2, 6), BACK], VALID, f"{OF_FILTER}: input must be 4-dimensional: [5,6,4]"),
    (
        OF_FILTER, [IMAGE, ints(3, 2, 2, 6), BACK[0]], VALID,
        f"{OF_FILTER}: out_backprop must be 4-dimensional: [3,5,6]",
    ),
    (OF_FILTER, [IMAGE, ints(3)[None], BACK], VALID, f"{OF_FILTER}: filter_sizes input must be 1-dim, not 2"),
    *(
        (OF_FILTER, [IMAGE, ints(*[2] * n), BACK], VALID, f"{OF_FILTER}: filter_sizes must have 4 elements, got {n}")
        for n in (2, 3, 5)
    ),
    (
        OF_FILTER, [IMAGE, ints(3, 2, 2, -6), BACK], VALID,
        f"{OF_FILTER}: filter_sizes must not be negative, got [3,2,2,-6]",
    ),
    (
        OF_FILTER, [IMAGE, ints(3, 2, 3, 6), BACK], VALID,
        f"{OF_FILTER}: input depth must be evenly divisible by filter depth: 4 vs 3",
    ),
    (
        OF_FILTER, [IMAGE, ints(3, 2, 2, 5), BACK], VALID,
        f"{OF_FILTER}: output depth must be evenly divisible by number of groups: 5 vs 2",
    ),
    (OF_FILTER, [IMAGE, ints(3, 2, 2, 6), ones(3, 3, 5, 6)], VALID, f"{OF_FILTER}: {BATCHES}"),
    (
        OF_FILTER, [IMAGE, ints(3, 2, 2, 4), BACK], VALID,
        f"{OF_FILTER}: filter and out_backprop must have the same out_depth",
    ),
    (
        OF_FILTER, [IMAGE, ints(2, 2, 2, 6), BACK], VALID | {"dilations": [1, 3, 1, 1]},
        f"{OF_FILTER}: " + SIZED.format(3, 2, 1, 5, 2, 3, 1, 3),
    ),
    *(
        (
            "Conv", [IMAGE, FILTER], VALID | {"strides": [1] * rank},
            f"Conv needs 4 or 5 strides, for images of two or three dimensions, got {rank}",
        )
        for rank in (3, 6)
    ),
    ("Conv", [IMAGE, FILTER], VALID | {"batch_dims": 0}, "batch_dims must be greater than or equal to 1, got 0"),
    ("Conv", [IMAGE[0], FILTER], VALID, "Input tensor must have rank 4, got [5,6,4]"),
    ("Conv", [IMAGE, FILTER], VALID | {"batch_dims": 2}, "Input tensor must have rank 5, got [2,5,6,4]"),
    ("Conv", [IMAGE, FILTER], DEEP, "Input tensor must have rank 5, got [2,5,6,4]"),
]  # fmt: skip


def test_what_is_refused_in_which_words(ops: Any) -> None:
    for op, inputs, attrs, text in REFUSED:
        with pytest.raises(errors.InvalidArgumentError) as refused:
            ops.run(op, inputs, **attrs)
        assert refused.value.message == text


# -- groups, layouts and types

GROUPED: list[tuple[str, Any, Any, Any]] = [
    ("2D", (2, 5, 6, 4), (3, 2, 2, 6), (2, 3, 5, 6)),
    ("2D", (2, 5, 6, 3), (3, 2, 1, 3), (2, 3, 5, 3)),
    ("3D", (1, 4, 5, 3, 4), (2, 3, 2, 2, 6), (1, 3, 3, 2, 6)),
]


@pytest.mark.parametrize(("dims", "x_shape", "w_shape", "g_shape"), GROUPED)
def test_groups_and_their_gradients_in_both_layouts(
    ops: Any, dims: str, x_shape: Any, w_shape: Any, g_shape: Any
) -> None:
    """Each group by itself, and the same with channels first."""
    draw = np.random.default_rng(5)
    x, w, g = (draw.integers(-3, 4, shape).astype(np.float64) for shape in (x_shape, w_shape, g_shape))
    count, deep = x_shape[-1] // w_shape[-2], dims == "3D"
    attrs = {"strides": [1] * x.ndim, "padding": b"VALID"}
    of_input, of_filter = (f"Conv{dims}Backprop{of}{'V2' * deep}" for of in ("Input", "Filter"))
    apart = [np.split(each, count, -1) for each in (x, w, g)]
    each = list(zip(*apart, strict=True))
    expected = [
        np.concatenate([ops.run(f"Conv{dims}", [a, b], **attrs) for a, b, _ in each], -1),
        np.concatenate([ops.run(of_input, [ints(*a.shape), b, c], **attrs) for a, b, c in each], -1),
        np.concatenate([ops.run(of_filter, [a, ints(*b.shape), c], **attrs) for a, b, c in each], -1),
    ]

    for turned in (False, True):
        a, c = (np.moveaxis(v, -1, 1) if turned else v for v in (x, g))
        layout = attrs | ({"data_format": f"NC{'DHW' if deep else 'HW'}".encode()} if turned else {})
        back = (lambda v: np.moveaxis(v, 1, -1)) if turned else np.asarray
        y = ops.run(f"Conv{dims}", [a, w], **layout)
        dx = ops.run(of_input, [ints(*a.shape), w, c], **layout)
        dw = ops.run(of_filter, [a, ints(*w.shape), c], **layout)
        np.testing.assert_array_equal(back(y), expected[0])
        np.testing.assert_array_equal(back(dx), expected[1])
        np.testing.assert_array_equal(dw, expected[2])
    # the ops of older graphs have an image and a filter in place of their sizes
    if deep:
        np.testing.assert_array_equal(ops.run("Conv3DBackpropInput", [x, w, g], **attrs), expected[1])
        np.testing.assert_array_equal(ops.run("Conv3DBackpropFilter", [x, w, g], **attrs), expected[2])


def test_sizes_without_batch_and_channels_are_completed(ops: Any) -> None:
    g = sample(2, 3, 5, 6, dtype=np.float64)
    for w in (sample(3, 2, 4, 6, dtype=np.float64), sample(3, 2, 2, 6, dtype=np.float64)):
        long = ops.run(OF_INPUT, [ints(2, 5, 6, w.shape[2]), w, g], **VALID)
        short = ops.run(OF_INPUT, [ints(5, 6), w, g], **VALID)
        np.testing.assert_array_equal(short, long)
    first = VALID | {"data_format": b"NCHW"}
    turned = ops.run(OF_INPUT, [ints(5, 6), w, g.transpose(0, 3, 1, 2)], **first)
    np.testing.assert_array_equal(turned.transpose(0, 2, 3, 1), short)


@pytest.mark.parametrize("dtype", [np.float16, np.int32])
def test_narrow_and_whole_numbers_keep_their_type_in_gradients(ops: Any, dtype: Any) -> None:
    """Halves are added up in float: 2,049 ones are more than a half can count one by one."""
    many = 1 if dtype == np.int32 else 2052
    x, w, g = (np.ones(shape, dtype) for shape in ((1, many, 2, 1), (1, 1, 1, 1), (1, many, 2, 1)))
    of_input = ops.run(OF_INPUT, [ints(*x.shape), w, g], **VALID)
    assert (of_input.dtype, of_input.shape) == (dtype, x.shape)
    if dtype == np.float16:
        assert ops.run(OF_FILTER, [x[:, :, :1], ints(*w.shape), g[:, :, :1]], **VALID).tolist() == [[[[2052.0]]]]
        found = ops.run("Conv2D", [x[:, :, :1].reshape(1, 1, many, 1), np.ones((1, many, 1, 1), dtype)], **VALID)
        assert found.tolist() == [[[[2052.0]]]]


def test_filters_of_nothing_have_gradients(ops: Any) -> None:
    for sizes in ((0, 2, 4, 6), (3, 0, 4, 6)):
        back = ones(2, 5, 6, 6)
        same = VALID | {"padding": b"SAME"}
        assert ops.run(OF_FILTER, [IMAGE, ints(*sizes), back], **same).shape == sizes
        found = ops.run(OF_INPUT, [ints(2, 5, 6, 4), np.ones(sizes, np.float32), back], **same)
        assert found.tolist() == np.zeros((2, 5, 6, 4)).tolist()


# -- Conv, of any number of batch dimensions


def test_conv_reads_its_attributes(ops: Any) -> None:
    x, w = sample(2, 5, 6, 2), sample(3, 2, 2, 4)
    plain = ops.run("Conv2D", [x, w], strides=[1, 2, 1, 1], padding=b"VALID")
    np.testing.assert_array_equal(ops.run("Conv", [x, w], strides=[1, 2, 1, 1], padding=b"VALID"), plain)
    first = {"strides": [1, 1, 2, 1], "padding": b"VALID", "data_format": b"CHANNELS_FIRST"}
    found = ops.run("Conv", [x.transpose(0, 3, 1, 2), w], **first)
    np.testing.assert_array_equal(found.transpose(0, 2, 3, 1), plain)
    wide = ops.run("Conv", [x, w], strides=ONE, padding=b"VALID", dilations=[1, 2, 1, 1])
    np.testing.assert_array_equal(
        wide, ops.run("Conv2D", [x, w], strides=ONE, padding=b"VALID", dilations=[1, 2, 1, 1])
    )

    x, w = sample(1, 3, 4, 5, 2), sample(2, 2, 3, 2, 4)
    deep = ops.run("Conv3D", [x, w], strides=[1, 1, 2, 1, 1], padding=b"SAME")
    np.testing.assert_array_equal(ops.run("Conv", [x, w], strides=[1, 1, 2, 1, 1], padding=b"SAME"), deep)
    first = {"strides": [1, 1, 1, 2, 1], "padding": b"SAME", "data_format": b"CHANNELS_FIRST"}
    found = ops.run("Conv", [np.moveaxis(x, -1, 1), w], **first)
    np.testing.assert_array_equal(np.moveaxis(found, 1, -1), deep)


# -- memory


def test_room_is_asked_for_before_it_is_taken(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """For a gradient twice what it takes, as it is computed: halves as floats."""
    for dtype, each in ((np.float16, 4), (np.float32, 4), (np.float64, 8)):
        w, g = np.ones((1, 1, 2, 3), dtype), np.ones((2, 3, 4, 3), dtype)
        x = np.ones((2, 3, 4, 2), dtype)
        of_input, _ = ops.build(OF_INPUT, [ints(2, 3, 4, 2), w, g], VALID)
        of_filter, _ = ops.build(OF_FILTER, [x, ints(1, 1, 2, 3), g], VALID)
        assert_wants(monkeypatch, 48 * each * 2, partial(of_input, ints(2, 3, 4, 2), w, g))
        assert_wants(monkeypatch, 6 * each * 2, partial(of_filter, x, ints(1, 1, 2, 3), g))
    none = np.ones((2, 3, 4, 0), np.float16)
    forward, _ = ops.build("Conv2D", [none, np.ones((1, 1, 2, 3), np.float16)], VALID)
    assert_wants(monkeypatch, 72 * 2, partial(forward, none, np.ones((1, 1, 2, 3), np.float16)))
