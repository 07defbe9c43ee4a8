"""Depthwise convolutions in every type and layout, their gradients as adjoints, and each wrong shape by itself."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from tenfold_core import dtypes, errors
from tenfold_kernels.cpu import nn_depthwise

FORWARD = "DepthwiseConv2dNative"
OF_INPUT, OF_FILTER = f"{FORWARD}BackpropInput", f"{FORWARD}BackpropFilter"
TYPES = {np.float16: dtypes.float16, np.float32: dtypes.float32, np.float64: dtypes.float64}
TOLERANCE = {np.float16: 2e-2, np.float32: 2e-5, np.float64: 1e-11}


def sample(*shape: int, dtype: Any = np.float64) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


def sizes(*shape: int) -> Any:
    return np.array(shape, np.int32)


def expected(x: Any, w: Any, strides: tuple[int, int]) -> Any:
    """No padding: one product a place, a channel and a multiplier."""
    x, w = x.astype(np.float64), w.astype(np.float64)
    rows, columns = ((x.shape[1 + i] - w.shape[i]) // strides[i] + 1 for i in range(2))
    out = np.zeros((len(x), rows, columns, w.shape[2], w.shape[3]))
    for i, j in itertools.product(range(rows), range(columns)):
        top, left = i * strides[0], j * strides[1]
        at = x[:, top : top + w.shape[0], left : left + w.shape[1]]
        out[:, i, j] = np.einsum("nhwc,hwcm->ncm", at, w)
    return out.reshape(len(x), rows, columns, -1)


def turned(x: Any) -> Any:
    return np.ascontiguousarray(x.transpose(0, 3, 1, 2))


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("dtype", TYPES)
def test_each_channel_has_filters_of_its_own_and_gradients_are_adjoint(ops: Any, dtype: Any, first: bool) -> None:
    x, w = sample(2, 7, 6, 3, dtype=dtype), sample(3, 2, 3, 2, dtype=dtype)
    g = sample(2, 3, 5, 6, dtype=dtype)
    attrs: dict[str, Any] = {"strides": [1, 2, 1, 1], "padding": b"VALID", "T": TYPES[dtype]}
    one = turned if first else np.asarray
    if first:
        attrs |= {"data_format": b"NCHW", "strides": [1, 1, 2, 1]}

    y = ops.run(FORWARD, [one(x), w], **attrs)
    of_input = ops.run(OF_INPUT, [sizes(*one(x).shape), w, one(g)], **attrs)
    of_filter = ops.run(OF_FILTER, [one(x), sizes(*w.shape), one(g)], **attrs)

    assert (y.dtype, of_input.dtype, of_filter.dtype) == (np.dtype(dtype),) * 3
    assert (of_input.shape, of_filter.shape) == (one(x).shape, w.shape)
    near = {"rtol": TOLERANCE[dtype], "atol": TOLERANCE[dtype] * 4}
    np.testing.assert_allclose(y, one(expected(x, w, (2, 1))), **near)
    # the gradient of a sum of products: by each input, the other one where it was used
    wide_w, wide_x = np.zeros(w.shape), np.zeros(x.shape)
    for i, j in itertools.product(range(3), range(5)):
        part = x[:, 2 * i : 2 * i + 3, j : j + 2].astype(np.float64)
        at = g[:, i, j].reshape(2, 3, 2).astype(np.float64)
        wide_w += np.einsum("nhwc,ncm->hwcm", part, at)
        wide_x[:, 2 * i : 2 * i + 3, j : j + 2] += np.einsum("hwcm,ncm->nhwc", w.astype(np.float64), at)
    np.testing.assert_allclose(of_input, one(wide_x), **near)
    np.testing.assert_allclose(of_filter, wide_w, **near)


@pytest.mark.parametrize("shape", [(0, 5, 5, 2), (2, 5, 5, 0)])
def test_no_images_and_no_channels(ops: Any, shape: tuple[int, ...]) -> None:
    attrs: dict[str, Any] = {"strides": [1, 1, 1, 1], "padding": b"SAME"}
    x, w = np.zeros(shape, np.float32), np.ones((2, 2, shape[3], 3), np.float32)

    y = ops.run(FORWARD, [x, w], **attrs)

    assert y.shape == (*shape[:3], shape[3] * 3)
    assert ops.run(OF_INPUT, [sizes(*shape), w, y], T=dtypes.float32, **attrs).shape == shape
    of_filter = ops.run(OF_FILTER, [x, sizes(*w.shape), y], T=dtypes.float32, **attrs)
    assert of_filter.shape == w.shape
    assert not of_filter.any()


def test_no_multiplier_has_a_gradient_of_zeros(ops: Any) -> None:
    attrs: dict[str, Any] = {"strides": [1, 1, 1, 1], "padding": b"SAME", "T": dtypes.float32}

    w, g = np.ones((2, 2, 2, 0), np.float32), np.ones((1, 4, 4, 0), np.float32)

    found = ops.run(OF_INPUT, [sizes(1, 4, 4, 2), w, g], **attrs)

    assert found.shape == (1, 4, 4, 2)
    assert not found.any()


@pytest.mark.parametrize(
    ("x", "w", "text"),
    [
        ((5, 5, 2), (2, 2, 2, 1), "input must be 4-dimensional"),
        ((1, 5, 5, 2), (2, 2, 2), "filter must be 4-dimensional"),
        ((1, 5, 5, 2), (2, 2, 3, 1), "input and filter must have the same depth: 2 vs 3"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(ops: Any, x: Any, w: Any, text: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=text):
        ops.run(FORWARD, [sample(*x), sample(*w)], strides=[1, 1, 1, 1], padding=b"SAME")


def test_the_shape_of_a_gradient_must_be_that_of_the_output_and_sizes_must_not_be_negative(ops: Any) -> None:
    attrs: dict[str, Any] = {"strides": [1, 1, 1, 1], "padding": b"SAME", "T": dtypes.float64}
    x, w = sample(1, 5, 5, 2), sample(2, 2, 2, 3)
    for shape in ((1, 5, 5, 5), (1, 4, 5, 6), (2, 5, 5, 6)):
        text = r"must have shape \[1,5,5,6\] \(channels last\), got"
        with pytest.raises(errors.InvalidArgumentError, match=text):
            ops.run(OF_INPUT, [sizes(1, 5, 5, 2), w, sample(*shape)], **attrs)
        with pytest.raises(errors.InvalidArgumentError, match=text):
            ops.run(OF_FILTER, [x, sizes(2, 2, 2, 3), sample(*shape)], **attrs)
    for of_input, of_filter in (((-1, 5, 5, 2), (-2, 2, 2, 3)), ((1, 5, -5, 2), (2, 2, 2, -3))):
        with pytest.raises(errors.InvalidArgumentError, match="sizes must not be negative"):
            ops.run(OF_INPUT, [sizes(*of_input), w, sample(1, 5, 5, 6)], **attrs)
        with pytest.raises(errors.InvalidArgumentError, match="sizes must not be negative"):
            ops.run(OF_FILTER, [x, sizes(*of_filter), sample(1, 5, 5, 6)], **attrs)


def test_lines_and_images_are_shared_out_where_there_is_much_to_do(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    shared: list[tuple[int, int]] = []

    def in_parts(run: Any, count: int, least: int) -> None:
        shared.append((count, least))
        for at in range(count):
            run(at, at + 1)

    attrs: dict[str, Any] = {"strides": [1, 1, 1, 1], "padding": b"VALID", "T": dtypes.float64}
    x, w, g = sample(3, 6, 5, 2), sample(3, 2, 2, 2), sample(3, 4, 4, 4)
    whole = ops.run(FORWARD, [x, w], **attrs), ops.run(OF_INPUT, [sizes(*x.shape), w, g], **attrs)
    monkeypatch.setattr(nn_depthwise, "in_parts", in_parts)

    parts = ops.run(FORWARD, [x, w], **attrs), ops.run(OF_INPUT, [sizes(*x.shape), w, g], **attrs)

    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_array_equal(one, other)
    # a line is 4 places of 6 products for each of 2 channels; an image is 4 lines
    lines = (1 << 18) // 48 + 1
    assert shared == [(3 * 4, lines), (3, lines // 4 + 1)]
