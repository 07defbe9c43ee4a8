"""Pools and their gradients against loops over windows."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

import numpy as np
import pytest

from support.dirty_memory import make_dirty
from support.room import assert_wants
from tenfold_core import errors
from tenfold_kernels.cpu import nn_pool, nn_pool_argmax
from tenfold_kernels.cpu._compiled import intrinsics, pooling

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


@pytest.mark.parametrize("window", [(1 << 62, 2, 4), (1 << 60, 16, 1), ((1 << 63) - 1, 1, 1)], ids=str)
def test_a_window_of_more_pixels_than_an_int64_counts(ops: Any, window: tuple[int, int, int]) -> None:
    """It is cut at the edges like any other; strides of the images' sizes leave one window."""
    x = sample(2, 3, 2, 2, 4)
    attrs = {"ksize": [1, *window, 1], "strides": [1, 3, 2, 2, 1], "padding": b"SAME", "data_format": b"NDHWC"}
    seen = x[:, :, : min(window[1], 2), : min(window[2], 2)]

    largest = ops.run("MaxPool3D", [x], **attrs)
    mean = ops.run("AvgPool3D", [x], **attrs)
    back = ops.run("MaxPool3DGrad", [x, largest, np.ones_like(largest)], **attrs)

    np.testing.assert_array_equal(largest, seen.max((1, 2, 3), keepdims=True))
    np.testing.assert_allclose(mean, seen.mean((1, 2, 3), keepdims=True), rtol=1e-5)
    np.testing.assert_array_equal(back, x == largest)


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


def test_strides_along_channels_are_ignored_where_tensorflow_ignores_them(ops: Any) -> None:
    x = sample(1, 2, 2, 4)
    attrs = {**attrs_of((2, 2), (2, 2), False), "strides": [1, 2, 2, 4]}

    np.testing.assert_array_equal(ops.run("MaxPool", [x], **attrs), x.max((1, 2), keepdims=True))
    np.testing.assert_allclose(ops.run("AvgPool", [x], **attrs), x.mean((1, 2), keepdims=True), rtol=1e-5)
    y, places = ops.run("MaxPoolWithArgmax", [x], ksize=[1, 1, 1, 4], strides=[1, 1, 1, 4], padding=b"VALID")
    np.testing.assert_array_equal(y, x)
    assert places.reshape(-1).tolist() == list(range(16))


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


def test_pooling_over_channels_and_the_batch(ops: Any) -> None:
    x = sample(1, 2, 2, 6)

    y = ops.run("MaxPool", [x], ksize=[1, 1, 1, 3], strides=[1, 1, 1, 3], padding=b"SAME")

    np.testing.assert_array_equal(y, x.reshape(1, 2, 2, 2, 3).max(-1))
    with pytest.raises(errors.UnimplementedError, match="batch dimension"):
        ops.run("MaxPool", [x], ksize=[2, 1, 1, 1], strides=[1, 1, 1, 1], padding=b"SAME")


def test_sizes_as_inputs_and_a_large_batch_shared_among_threads(ops: Any) -> None:
    x = sample(8, 64, 64, 16)
    k = np.array([1, 2, 2, 1], np.int32)

    y = ops.run("MaxPoolV2", [x, k, k], padding=b"VALID")

    np.testing.assert_array_equal(y, x.reshape(8, 32, 2, 32, 2, 16).max((2, 4)))


# -- every op of a window against one twin

Padding = Any


def spans(size: int, k: int, stride: int, padding: Padding) -> list[slice]:
    """The part of each window along one dimension that lies within the image."""
    if padding == "SAME":
        out = -(-size // stride)
        before = max((out - 1) * stride + k - size, 0) // 2
    else:
        before, after = padding or (0, 0)
        out = (size + before + after - k) // stride + 1
    return [slice(max(i * stride - before, 0), min(i * stride - before + k, size)) for i in range(out)]


def twins(x: Any, k: Any, strides: Any, paddings: Any, given: Any, back: Any) -> list[Any]:
    """Largest, mean, their gradients for `given`, the second gradient for `back`: of images without equal elements."""
    along = [spans(*each) for each in zip(x.shape[1:-1], k, strides, paddings, strict=True)]
    shape = (len(x), *(len(each) for each in along), x.shape[-1])
    given, space = given(shape), tuple(range(1, x.ndim - 1))
    largest, mean, second = (np.zeros(shape) for _ in range(3))
    of_largest, of_mean = (np.zeros(x.shape) for _ in range(2))
    for place in np.ndindex(*shape[1:-1]):
        at, cut = (slice(None), *place), (slice(None), *(each[i] for each, i in zip(along, place, strict=True)))
        largest[at], mean[at] = x[cut].max(space), x[cut].mean(space)
        one = given[at][(slice(None), *[None] * len(space))]
        where = x[cut] == x[cut].max(space, keepdims=True)
        of_largest[cut] += where * one
        of_mean[cut] += one / np.prod([x[cut].shape[i] for i in space])
        second[at] = (where * back[cut]).sum(space)
    return [given, largest, mean, of_largest, of_mean, second]


#: (image, window, strides, padding): rows of windows that hang over, that leave pixels out, channels that fill vectors
WINDOWS: list[tuple[Any, Any, Any, Any]] = [
    ((2, 7, 6, 3), (3, 3), (2, 2), ("SAME", "SAME")),
    ((3, 6, 7, 3), (2, 3), (1, 2), (None, None)),
    ((2, 6, 5, 3), (3, 2), (2, 1), ((1, 2), (0, 1))),
    ((2, 5, 7, 4), (1, 2), (3, 3), ("SAME", "SAME")),
    ((2, 5, 4, 16), (3, 2), (2, 1), ("SAME", "SAME")),
    ((2, 5, 4, 16), (2, 2), (2, 2), (None, None)),
    ((2, 4, 5, 3, 2), (2, 3, 2), (1, 2, 1), ("SAME",) * 3),
    ((3, 5, 3, 7, 3), (3, 1, 2), (2, 1, 3), (None,) * 3),
]


@pytest.mark.parametrize("case", WINDOWS, ids=str)
def test_each_op_of_a_window_shared_out(ops: Any, case: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    shape, k, strides, paddings = case
    deep, draw = len(shape) == 5, np.random.default_rng(1)
    x = draw.permutation(int(np.prod(shape))).reshape(shape).astype(np.float32)
    back = draw.integers(-9, 10, shape).astype(np.float32)
    given, *expected = twins(
        x, k, strides, paddings, lambda out: draw.integers(-9, 10, out).astype(np.float32), back
    )  # fmt: skip
    y, dims = expected[0].astype(np.float32), "3D" if deep else ""
    word = "SAME" if paddings[0] == "SAME" else "VALID" if paddings[0] is None else "EXPLICIT"
    shared: list[tuple[int, int]] = []

    def in_parts(run: Any, count: int, least: int) -> None:
        shared.append((count, least))
        for at in reversed(range(count)):
            run(at, at + 1)

    for module in (nn_pool, nn_pool_argmax):
        monkeypatch.setattr(module, "in_parts", in_parts)
    make_dirty(monkeypatch, nn_pool, nn_pool_argmax)
    per_image = int(np.prod(y.shape[1:-2]))
    least = (1 << 18) // (y.shape[-2] * y.shape[-1] * int(np.prod(k))) + 1
    lines, images = (len(x) * per_image, least), (len(x), least // per_image + 1)
    for first in (False, True):
        a, b, c, d = (np.moveaxis(v, -1, 1) if first else v for v in (x, y, given, back))
        sizes = np.array(a.shape, np.int32)
        layout = f"N{'C' * first}{'D' * deep}HW{'C' * (not first)}".encode()
        attrs: dict[str, Any] = {"padding": word.encode(), "data_format": layout}
        for name, values in (("ksize", k), ("strides", strides)):
            attrs[name] = [1, 1, *values] if first else [1, *values, 1]
        if word == "EXPLICIT":
            pads = [pad for pair in paddings for pad in pair]
            attrs["explicit_paddings"] = [0, 0, 0, 0, *pads] if first else [0, 0, *pads, 0, 0]
        runs = [
            (f"MaxPool{dims}", [a], expected[0], lines),
            (f"AvgPool{dims}", [a], expected[1], lines),
            (f"MaxPool{dims}Grad", [a, b, c], expected[2], images),
            (f"AvgPool{dims}Grad", [sizes, c], expected[3], images),
            (f"MaxPool{dims}GradGrad", [a, b, d], expected[4], lines),
        ]
        for op, inputs, twin, parts in runs:
            if word == "EXPLICIT" and op not in ("MaxPool", "MaxPoolGrad"):
                continue
            shared.clear()
            found = ops.run(op, inputs, **attrs)
            found = np.moveaxis(found, 1, -1) if first else found
            np.testing.assert_allclose(found, twin, rtol=1e-5, atol=1e-5, err_msg=f"{op} {first}")
            assert shared == [parts], op


@pytest.mark.parametrize("first", [False, True])
def test_sizes_that_come_with_each_step(ops: Any, first: bool) -> None:
    """… are those of the ops that have them fixed."""
    draw = np.random.default_rng(2)
    x = draw.permutation(2 * 7 * 6 * 3).reshape(2, 7, 6, 3).astype(np.float32)
    k, strides = ([1, 1, 3, 2], [1, 1, 2, 1]) if first else ([1, 3, 2, 1], [1, 2, 1, 1])
    x = np.moveaxis(x, -1, 1) if first else x
    attrs = {"padding": b"SAME", "data_format": b"NCHW" if first else b"NHWC"}
    fixed, sizes = attrs | {"ksize": k, "strides": strides}, [np.array(each, np.int32) for each in (k, strides)]
    y = ops.run("MaxPool", [x], **fixed)
    g, back = draw.integers(-9, 10, y.shape).astype(np.float32), draw.integers(-9, 10, x.shape).astype(np.float32)
    compute, _ = ops.build("MaxPoolV2", [x, *sizes], attrs)

    np.testing.assert_array_equal(compute(x, *sizes), y)
    ones = np.ones(4, np.int32)
    np.testing.assert_array_equal(compute(x, ones, ones), x)
    np.testing.assert_array_equal(
        ops.run("MaxPoolGradV2", [x, y, g, *sizes], **attrs), ops.run("MaxPoolGrad", [x, y, g], **fixed)
    )
    np.testing.assert_array_equal(
        ops.run("MaxPoolGradGradV2", [x, y, back, *sizes], **attrs), ops.run("MaxPoolGradGrad", [x, y, back], **fixed)
    )


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int32])
def test_gradients_keep_their_type(ops: Any, dtype: Any) -> None:
    """Channels that would fill vectors of floats, too."""
    attrs = attrs_of((2, 2), (2, 2), False)
    for channels in (1, 16):
        x = np.tile(np.array([[3, 1], [2, 7]]).reshape(1, 2, 2, 1), (1, 1, 1, channels)).astype(dtype)
        y, g = x[:, 1:, 1:], np.full((1, 1, 1, channels), 5, dtype)
        found = ops.run("MaxPoolGrad", [x, y, g], **attrs)
        assert found[..., 0].tolist() == [[[0, 0], [0, 5]]]
        assert (found == found[..., :1]).all()
        assert ops.run("MaxPool", [x], **attrs).tolist() == y.tolist()
        assert ops.run("MaxPoolGradGrad", [x, y, x], **attrs).tolist() == y.tolist()
        if dtype in (np.float16, np.float64):
            assert ops.run("AvgPool", [x], **attrs)[..., 0].item() == 3.25
            spread = ops.run("AvgPoolGrad", [np.array(x.shape, np.int32), g], **attrs)
            assert spread.tolist() == np.full(x.shape, 1.25).tolist()


def test_halves_are_added_up_in_float(ops: Any) -> None:
    """3,000 ones are more than a half can count one by one."""
    x = np.ones((1, 3000, 1, 1), np.float16)
    attrs = attrs_of((3000, 1), (1, 1), False)
    assert ops.run("AvgPool", [x], **attrs).item() == 1


def test_pools_of_nothing(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """No images, no channels, no windows: gradients are zeros however memory was left."""
    make_dirty(monkeypatch, nn_pool, nn_pool_argmax)
    for deep in (False, True):
        dims = "3D" if deep else ""
        for shape, out in (((0, 2, 3), (0, 1, 2)), ((2, 1, 3), (2, 0, 2)), ((2, 3, 1), (2, 2, 0))):
            for channels in (3, 16, 0):
                x, y = (np.ones((*each, *[2] * deep, channels), np.float32) for each in (shape, out))
                y = y[..., :1, :] if deep else y
                attrs = {"ksize": [1, *[2] * (2 + deep), 1], "strides": [1] * (4 + deep), "padding": b"VALID"}
                assert ops.run(f"MaxPool{dims}", [x], **attrs).shape == y.shape
                assert ops.run(f"AvgPool{dims}", [x], **attrs).shape == y.shape
                assert ops.run(f"MaxPool{dims}GradGrad", [x, y, x], **attrs).shape == y.shape
                for found in (
                    ops.run(f"MaxPool{dims}Grad", [x, y, y], **attrs),
                    ops.run(f"AvgPool{dims}Grad", [np.array(x.shape, np.int32), y], **attrs),
                ):
                    assert found.shape == x.shape
                    assert not found.any()


# -- what is refused, and in which words

INVALID, UNIMPLEMENTED = errors.InvalidArgumentError, errors.UnimplementedError


def image(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


def with_window(ksize: list[int], strides: list[int], **others: Any) -> dict[str, Any]:
    return {"ksize": ksize, "strides": strides, "padding": b"VALID"} | others


def padded(*pads: int, first: bool = False) -> dict[str, Any]:
    explicit = [0, 0, 0, 0, *pads] if first else [0, 0, *pads, 0, 0]
    ksize, layout = ([1, 1, 2, 3], b"NCHW") if first else ([1, 2, 3, 1], b"NHWC")
    return with_window(ksize, [1] * 4, data_format=layout) | {"padding": b"EXPLICIT", "explicit_paddings": explicit}


BATCH, DEPTH_3D = (
    "Pooling is not yet supported on the batch dimension.", "Pooling is not yet supported on the depth dimension."
)  # fmt: skip
OF_DEPTH = "MaxPoolingGrad is not yet supported on the depth dimension."
ONE_OF = "MaxPooling supports exactly one of pooling across depth or pooling across width/height."
EQUAL = "Depthwise max pooling requires the depth window to equal the depth stride"
EVENLY = "Depthwise max pooling requires the depth window to evenly divide the input depth"
AVERAGE = "Non-spatial pooling is not yet supported: the window has one channel."
ONES = [1, 1, 1, 1]
X, VOLUME = image(1, 4, 4, 6), image(1, 2, 4, 4, 6)
SIZES = np.array([1, 4, 4, 6], np.int32)

REFUSED: list[tuple[str, list[Any], dict[str, Any], Any, str]] = [
    ("MaxPool", [X], with_window([1, 2, 2], ONES), INVALID, "Sliding window ksize field must specify 4 dimensions"),
    ("MaxPool", [X], with_window([1] * 5, ONES), INVALID, "Sliding window ksize field must specify 4 dimensions"),
    (
        "MaxPool3D", [VOLUME], with_window(ONES, [1] * 5), INVALID,
        "Sliding window ksize field must specify 5 dimensions",
    ),
    *(
        (
            "MaxPool", [X], with_window([1, k, 2, 1], ONES), INVALID,
            f"Sliding window ksize must be positive, got [1, {k}, 2, 1]",
        )
        for k in (0, -1)
    ),
    ("AvgPool", [X], with_window([2, 1, 1, 1], ONES), UNIMPLEMENTED, BATCH),
    ("AvgPool", [X], with_window(ONES, [2, 1, 1, 1]), UNIMPLEMENTED, BATCH),
    ("MaxPool3D", [VOLUME], with_window([1, 1, 1, 1, 2], [1] * 5), UNIMPLEMENTED, DEPTH_3D),
    ("MaxPool3D", [VOLUME], with_window([1] * 5, [1, 1, 1, 1, 2]), UNIMPLEMENTED, DEPTH_3D),
    ("AvgPool3D", [VOLUME], with_window([1, 1, 1, 1, 2], [1] * 5), UNIMPLEMENTED, DEPTH_3D),
    *(
        (op, inputs, window, UNIMPLEMENTED, OF_DEPTH)
        for op, inputs in (("MaxPoolGrad", [X, X, X]), ("MaxPoolGradGrad", [X, X, X]))
        for window in (with_window([1, 1, 1, 2], [1, 1, 1, 2]), with_window(ONES, [1, 1, 1, 2]))
    ),
    ("AvgPool", [X], with_window([1, 1, 1, 2], ONES), UNIMPLEMENTED, AVERAGE),
    ("AvgPoolGrad", [SIZES, X], with_window([1, 1, 1, 2], ONES), UNIMPLEMENTED, AVERAGE),
    ("MaxPool", [X], with_window([1, 2, 1, 2], [1, 1, 1, 2]), UNIMPLEMENTED, ONE_OF),
    ("MaxPool", [X], with_window([1, 1, 2, 2], [1, 1, 1, 2]), UNIMPLEMENTED, ONE_OF),
    ("MaxPool", [X], with_window([1, 1, 1, 2], [1, 1, 1, 3]), UNIMPLEMENTED, EQUAL),
    ("MaxPool", [X], with_window([1, 2, 1, 1], [1, 1, 2, 1], data_format=b"NCHW"), UNIMPLEMENTED, EQUAL),
    ("MaxPool", [X], with_window([1, 1, 1, 4], [1, 1, 1, 4]), UNIMPLEMENTED, EVENLY),
    ("MaxPoolGradWithArgmax", [X, X, X.astype(np.int64)], with_window(ONES, [1, 1, 1, 2]), UNIMPLEMENTED, EQUAL),
    *(
        (
            "MaxPool", [X], padded(*pads, first=first), INVALID,
            f"{side} padding {pad} needs to be smaller than the window size {k}",
        )
        for first in (False, True)
        for pads, side, pad, k in (
            ((2, 0, 0, 0), "Top", 2, 2), ((1, 3, 0, 0), "Bottom", 3, 2), ((1, 1, 3, 0), "Left", 3, 3),
            ((1, 1, 2, 4), "Right", 4, 3),
        )
    ),
    ("MaxPool", [X[0]], with_window(ONES, ONES), INVALID, "tensor_in must be 4-dimensional, got shape [4,4,6]"),
    ("MaxPool3D", [X], with_window([1] * 5, [1] * 5), INVALID, "tensor_in must be 5-dimensional, got shape [1,4,4,6]"),
    (
        "MaxPoolGrad", [X, X[:, :3], X], with_window([1, 3, 2, 1], ONES), INVALID,
        "Expected orig_output shape to be [1,2,3,6], but got [1,3,4,6]",
    ),
    (
        "MaxPoolGrad", [X, X[:, :2, :3], X], with_window([1, 3, 2, 1], ONES), INVALID,
        "Expected grad shape to be [1,2,3,6], but got [1,4,4,6]",
    ),
    (
        "MaxPoolGrad", [X, X, X], with_window([1, 1, 3, 2], ONES, data_format=b"NCHW"), INVALID,
        "Expected orig_output shape to be [1,4,2,5], but got [1,4,4,6]",
    ),
    (
        "MaxPool3DGrad", [VOLUME, VOLUME, VOLUME], with_window([1, 2, 1, 1, 1], [1] * 5), INVALID,
        "Expected orig_output shape to be [1,1,4,4,6], but got [1,2,4,4,6]",
    ),
    *(
        (
            "AvgPoolGrad", [np.array(sizes, np.int32), X], with_window(ONES, ONES, data_format=layout.encode()),
            INVALID,
            f"orig_input_shape must hold 4 sizes ({layout}), got [{','.join(map(str, sizes))}]",
        )
        for sizes in ([1, 2, 3], [1, 2, 3, 4, 5], [], [1, -1, 3, 4])
        for layout in ("NHWC", "NCHW")
    ),
    (
        "AvgPool3DGrad", [SIZES, VOLUME], with_window([1] * 5, [1] * 5), INVALID,
        "orig_input_shape must hold 5 sizes (NDHWC), got [1,4,4,6]",
    ),
    (
        "AvgPoolGrad", [SIZES, X], with_window([1, 2, 1, 1], ONES), INVALID,
        "Expected grad shape to be [1,3,4,6], but got [1,4,4,6]",
    ),
    (
        "AvgPoolGrad", [SIZES, X], with_window([1, 1, 1, 2], ONES, data_format=b"NCHW"), INVALID,
        "Expected grad shape to be [1,4,4,5], but got [1,4,4,6]",
    ),
]  # fmt: skip


def test_what_is_refused_in_which_words(ops: Any) -> None:
    for op, inputs, attrs, kind, text in REFUSED:
        with pytest.raises(kind) as refused:
            ops.run(op, inputs, **attrs)
        assert refused.value.message == text, (op, attrs)


def test_what_is_just_not_refused(ops: Any) -> None:
    x = np.arange(96, dtype=np.float32).reshape(1, 4, 4, 6)
    assert ops.run("MaxPool", [x], **padded(1, 1, 2, 2)).shape == (1, 5, 6, 6)
    assert ops.run("MaxPool", [x], **padded(1, 1, 2, 2, first=True)).shape == (1, 4, 5, 8)
    # where TensorFlow's kernel does not look at the stride along the channels
    for op in ("MaxPool", "AvgPool"):
        np.testing.assert_array_equal(ops.run(op, [x], **with_window(ONES, [1, 1, 1, 2])), x)
    volume = x[:, None]
    np.testing.assert_array_equal(ops.run("AvgPool3D", [volume], **with_window([1] * 5, [1, 1, 1, 1, 2])), volume)
    # over channels, in both layouts
    found = ops.run("MaxPool", [x], **with_window([1, 2, 1, 1], [1, 2, 1, 1], data_format=b"NCHW"))
    np.testing.assert_array_equal(found, x.reshape(1, 2, 2, 4, 6).max(2))


def test_room_is_asked_for_before_it_is_taken(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for dtype, each in ((np.float16, 4), (np.float64, 8)):
        inputs = [SIZES, np.ones((1, 4, 4, 6), dtype)]
        compute, _ = ops.build("AvgPoolGrad", inputs, with_window(ONES, ONES))
        assert_wants(monkeypatch, 96 * each * 2, partial(compute, *inputs))


def test_which_loops_give_the_gradient_of_the_largest(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Vectors where the channels of floats fill them."""
    seen: list[str] = []
    for name in ("largest_gradient", "largest_gradient_wide", "largest_gradient_3d"):
        monkeypatch.setattr(pooling, name, lambda _, name=name: lambda *given: seen.append(name))
    for dtype in (np.float32, np.float64, np.float16, np.int32):
        many = intrinsics.lanes(np.dtype(np.float32 if dtype == np.float16 else dtype))
        for channels, fill in ((many, True), (2 * many, True), (many + 1, False), (1, False)):
            x = np.ones((1, 2, 2, channels), dtype)
            ops.run("MaxPoolGrad", [x, x, x], **with_window(ONES, ONES))
            assert seen.pop() == ("largest_gradient_wide" if fill and dtype != np.int32 else "largest_gradient")
    x = np.ones((1, 2, 2, 2, 16), np.float32)
    ops.run("MaxPool3DGrad", [x, x, x], **with_window([1] * 5, [1] * 5))
    assert seen == ["largest_gradient_3d"]
