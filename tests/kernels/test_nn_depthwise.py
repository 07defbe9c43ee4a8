"""Depthwise convolutions in every type and layout, their gradients as adjoints, and each wrong shape by itself."""

from __future__ import annotations

import itertools
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from support.dirty_memory import make_dirty
from support.room import assert_wants
from tenfold_core import dtypes, errors
from tenfold_kernels.cpu import _convolve, _depthwise, nn_depthwise
from tenfold_kernels.cpu._compiled import depthwise
from tenfold_kernels.cpu._windows import Sliding

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
        for at in reversed(range(count)):
            run(at, at + 1)

    attrs: dict[str, Any] = {"strides": [1, 2, 2, 1], "padding": b"VALID", "T": dtypes.float64}
    x, w, g = sample(3, 6, 5, 2), sample(3, 2, 2, 2), sample(3, 2, 2, 4)

    def run() -> tuple[Any, ...]:
        of_input = ops.run(OF_INPUT, [sizes(*x.shape), w, g], **attrs)
        return ops.run(FORWARD, [x, w], **attrs), of_input, ops.run(OF_FILTER, [x, sizes(*w.shape), g], **attrs)

    whole = run()
    for module in (_depthwise, _convolve):
        monkeypatch.setattr(module, "in_parts", in_parts)

    parts = run()

    for one, other in zip(whole[:2], parts[:2], strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_allclose(whole[2], parts[2], rtol=1e-12)
    # a line is 2 places of 6 products for each of 2 · 2 channels; an image is 2 lines
    lines = (1 << 20) // 48 + 1
    # of the input: rows 0, 2, 4 and 1, 3, 5 with columns 0, 2, 4 and 1, 3
    assert shared == [*[(3 * 3, lines)] * 4, (3 * 2, lines), (3, lines // 2 + 1)]


PLACES = [
    pytest.param((h, w, c), window, strides, rates, padding, id=f"{h}x{w}x{c}-{window}-{strides}-{rates}-{padding}")
    for (h, w, c), window, strides, rates, padding in (
        ((6, 17, 3), (3, 3), (1, 1), (1, 1), "SAME"),
        ((6, 17, 41), (3, 3), (2, 2), (1, 1), "SAME"),
        ((5, 5, 16), (3, 5), (1, 1), (2, 2), "SAME"),
        ((7, 30, 33), (3, 8), (2, 1), (1, 3), "SAME"),
        ((9, 9, 7), (2, 2), (4, 6), (2, 3), "VALID"),
        ((9, 8, 64), (5, 1), (3, 2), (1, 1), "VALID"),
        ((4, 3, 20), (1, 2), (3, 3), (1, 1), "VALID"),
        ((2, 3, 5), (5, 7), (1, 1), (1, 1), "SAME"),
        ((1, 40, 18), (1, 9), (1, 2), (1, 1), "SAME"),
        # a block of rows of the gradient of a filter ends inside of this image
        ((40, 30, 32), (3, 3), (1, 1), (1, 1), "SAME"),
    )
]


@pytest.mark.parametrize("in_numpy", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("shape", "window", "strides", "rates", "padding"), PLACES)
def test_wherever_a_window_goes(
    monkeypatch: pytest.MonkeyPatch,
    shape: tuple[int, ...],
    window: tuple[int, int],
    strides: tuple[int, int],
    rates: tuple[int, int],
    padding: str,
    dtype: Any,
    in_numpy: bool,
) -> None:
    """Sums and both gradients, place by place, by the loops and by what runs until they are there."""
    place = Sliding(FORWARD, False, strides, rates, padding, ()).place((2, *shape), window)
    g = place.geometry.tolist()
    x, w, given = sample(2, *shape), sample(*window, shape[-1]), sample(2, *place.out, shape[-1])
    y, of_input, of_filter = np.zeros(given.shape), np.zeros(x.shape), np.zeros(w.shape)
    for i, j, p, q in np.ndindex(*window, *place.out):
        row, column = p * g[10] - g[16] + i * g[13], q * g[11] - g[17] + j * g[14]
        if 0 <= row < shape[0] and 0 <= column < shape[1]:
            y[:, p, q] += x[:, row, column] * w[i, j]
            of_input[:, row, column] += given[:, p, q] * w[i, j]
            of_filter[i, j] += (given[:, p, q] * x[:, row, column]).sum(0)
    x, w, given = (each.astype(dtype) for each in (x, w, given))
    sums, filters = _depthwise.Depthwise(dtype), _depthwise.Depthwise(dtype, of_filter=True)
    if in_numpy:
        monkeypatch.setattr(sums, "_run", depthwise._sums_in_numpy)
        monkeypatch.setattr(filters, "_run", depthwise._of_filter_in_numpy)
    make_dirty(monkeypatch, _depthwise)
    near = {"rtol": TOLERANCE[dtype] * 10, "atol": TOLERANCE[dtype] * 20}

    np.testing.assert_allclose(sums.forward(x, w, place), y, **near)
    np.testing.assert_allclose(sums.input_gradient(given, w, place), of_input, **near)
    np.testing.assert_allclose(filters.filter_gradient(x, given, place), of_filter, **near)


def test_windows_without_places_give_zeros(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    make_dirty(monkeypatch, nn_depthwise, _depthwise)
    attrs: dict[str, Any] = {"strides": [1, 1, 1, 1], "padding": b"SAME", "T": dtypes.float32}
    x, g = np.ones((1, 4, 3, 2), np.float32), np.ones((1, 4, 3, 6), np.float32)
    for window in ((0, 2), (2, 0)):
        w = np.ones((*window, 2, 3), np.float32)
        assert ops.run(FORWARD, [x, w], **attrs).tolist() == np.zeros(g.shape).tolist()
        assert ops.run(OF_INPUT, [sizes(*x.shape), w, g], **attrs).tolist() == np.zeros(x.shape).tolist()
        assert ops.run(OF_FILTER, [x, sizes(*w.shape), g], **attrs).shape == w.shape
    for shape, out in (((1, 1, 4, 2), (1, 0, 3, 6)), ((1, 4, 1, 2), (1, 3, 0, 6))):
        valid, w = attrs | {"padding": b"VALID"}, np.ones((2, 2, 2, 3), np.float32)
        x, g = np.ones(shape, np.float32), np.ones(out, np.float32)
        assert ops.run(FORWARD, [x, w], **valid).shape == out
        assert ops.run(OF_INPUT, [sizes(*shape), w, g], **valid).tolist() == np.zeros(shape).tolist()
        assert ops.run(OF_FILTER, [x, sizes(*w.shape), g], **valid).tolist() == np.zeros(w.shape).tolist()


def test_room_is_asked_for_before_it_is_taken(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """For gradients more than they take, as they are computed: halves as floats, an input's for each output."""
    for dtype, each in ((np.float16, 4), (np.float32, 4), (np.float64, 8)):
        attrs: dict[str, Any] = {"strides": [1, 1, 1, 1], "padding": b"VALID", "T": TYPES[dtype]}
        x, w, g = sample(1, 3, 4, 2, dtype=dtype), sample(2, 1, 2, 3, dtype=dtype), sample(1, 2, 4, 6, dtype=dtype)
        of_input, of_filter = [sizes(*x.shape), w, g], [x, sizes(*w.shape), g]
        # and the input as often as it has outputs
        for op, inputs, count in ((FORWARD, [x, w], 24 * 3), (OF_INPUT, of_input, 24 * 4), (OF_FILTER, of_filter, 72)):
            compute, _ = ops.build(op, inputs, attrs)
            assert_wants(monkeypatch, count * each, partial(compute, *inputs))
        x, w = x[..., :1], sample(200, 1, 1, 1, dtype=dtype)
        attrs |= {"padding": b"SAME"}
        compute, _ = ops.build(OF_FILTER, [x, sizes(*w.shape), x], attrs)
        assert_wants(monkeypatch, 200 * each * 2, partial(compute, x, sizes(*w.shape), x))


@pytest.mark.parametrize("layout", [b"NHWC", b"NCHW"])
def test_what_is_refused_in_which_words(ops: Any, layout: bytes) -> None:
    """Wrong ranks, whatever the layout, in the words of every other wrong shape."""
    x, w, g = sample(1, 4, 4, 4), sample(1, 1, 4, 1), sample(1, 4, 4, 4)
    attrs = {"strides": [1, 1, 1, 1], "padding": b"VALID", "data_format": layout}
    back = "{}: out_backprop must have shape [1,4,4,4] (channels last), got {}"
    shape = "input must be 4-dimensional"

    def fours(count: int) -> str:
        return f"[{','.join(['4'] * count)}]"

    for op, inputs, text in (
        (FORWARD, [x[0], w], f"{shape}[4,4,4]"),
        (FORWARD, [x[0, 0, 0, 0].reshape(()), w], f"{shape}[]"),
        (FORWARD, [x, w[0]], "filter must be 4-dimensional: [1,4,1]"),
        (FORWARD, [x, sample(1, 1, 3, 4)], f"{FORWARD}: input and filter must have the same depth: 4 vs 3"),
        *((OF_INPUT, [sizes(*[4] * n), w, g], f"{shape}{fours(n)}") for n in (0, 1, 2, 3, 5)),
        (OF_INPUT, [sizes(1, 4, 4, 4), w[0], g], "filter must be 4-dimensional: [1,4,1]"),
        *((OF_INPUT, [sizes(1, 4, 4, 4), w, np.ones([4] * n)], back.format(OF_INPUT, fours(n))) for n in (0, 1, 2)),
        *((OF_FILTER, [np.ones([4] * n), sizes(1, 1, 4, 1), g], f"{shape}{fours(n)}") for n in (0, 1, 2, 3)),
        *((OF_FILTER, [x, sizes(*[4] * n), g], f"filter must be 4-dimensional: {fours(n)}") for n in (0, 1, 3, 5)),
        *((OF_FILTER, [x, sizes(1, 1, 4, 1), np.ones([4] * n)], back.format(OF_FILTER, fours(n))) for n in (0, 1, 2)),
    ):  # fmt: skip
        with pytest.raises(errors.InvalidArgumentError) as refused:
            ops.run(op, inputs, **attrs)
        assert refused.value.message == text, (op, [np.shape(each) for each in inputs])


def test_how_many_lines_are_worth_a_thread() -> None:
    for out, window, channels, each in (((9, 3), (4, 5), 2, 120), ((9, 1), (1, 1), 1, 1), ((9, 3), (0, 5), 2, 1)):
        place: Any = SimpleNamespace(out=out, window=window, channels=channels)
        assert _depthwise._least(place) == (1 << 20) // each + 1
