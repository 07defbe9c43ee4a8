"""Grey-scale dilation against a twin over padded windows, its gradients by the place that won, what is refused.

The gradients against finite differences are in test_nn_fractional.py.
"""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

import numpy as np
import pytest

from support.room import assert_wants
from tenfold_core import errors

RNG = np.random.default_rng(17)


def of(strides: tuple[int, int] = (1, 1), rates: tuple[int, int] = (1, 1), padding: str = "VALID") -> dict[str, Any]:
    return {"strides": [1, *strides, 1], "rates": [1, *rates, 1], "padding": padding.encode()}


def padded(x: Any, filter_: Any, attrs: dict[str, Any]) -> tuple[Any, tuple[int, int], tuple[int, int]]:
    """The image with −∞ around it, as much as its padding asks for, how much of it is before, and the output's sizes.

    SAME gives an output for each stride that begins in the image, and puts the odd pixel of padding behind it.
    """
    befores, afters, outs = [], [], []
    for size, k, stride, rate in zip(
        x.shape[1:3], filter_.shape, attrs["strides"][1:], attrs["rates"][1:], strict=False
    ):
        reach = rate * (k - 1) + 1
        if attrs["padding"] == b"SAME":
            outs.append(len(range(0, size, stride)))
            missing = max(0, (outs[-1] - 1) * stride + reach - size)
        else:
            outs.append(len(range(0, size - reach + 1, stride)))
            missing = 0
        befores.append(missing // 2)
        afters.append(missing - missing // 2)
    around = ((0, 0), (befores[0], afters[0]), (befores[1], afters[1]), (0, 0))
    wide = np.pad(x.astype(np.float64), around, constant_values=-np.inf)
    return wide, (befores[0], befores[1]), (outs[0], outs[1])


def twins(x: Any, filter_: Any, gradient: Any, attrs: dict[str, Any]) -> tuple[Any, Any, Any]:
    """The output, and the gradients of the image and of the filter: each goes to the first place that gives it."""
    wide, before, outs = padded(x, filter_, attrs)
    (_, a, b, _), (_, p, q, _) = attrs["strides"], attrs["rates"]
    out = np.empty((len(x), *outs, x.shape[3]))
    of_image, of_filter = np.zeros(x.shape), np.zeros(filter_.shape)
    for n, r, s, c in itertools.product(*map(range, out.shape)):
        rows = slice(r * a, r * a + p * (filter_.shape[0] - 1) + 1, p)
        columns = slice(s * b, s * b + q * (filter_.shape[1] - 1) + 1, q)
        sums = wide[n, rows, columns, c] + filter_[..., c]
        i, j = np.unravel_index(sums.argmax(), sums.shape)
        out[n, r, s, c] = sums[i, j]
        if gradient is not None:
            of_filter[i, j, c] += gradient[n, r, s, c]
            of_image[n, r * a + i * p - before[0], s * b + j * q - before[1], c] += gradient[n, r, s, c]
    return out, of_image, of_filter


CASES = [
    ((7, 6), (3, 2), (1, 1), (1, 1), "VALID"),
    ((7, 6), (3, 2), (1, 1), (1, 1), "SAME"),
    ((7, 9), (2, 3), (2, 3), (3, 2), "VALID"),
    ((7, 9), (2, 3), (2, 3), (3, 2), "SAME"),
    ((8, 5), (1, 4), (3, 1), (2, 1), "SAME"),
    ((4, 5), (4, 3), (1, 2), (1, 2), "VALID"),  # one window fits exactly
    ((2, 3), (5, 1), (1, 1), (1, 1), "SAME"),  # a filter taller than the image
]


@pytest.mark.parametrize(("size", "k", "strides", "rates", "padding"), CASES)
def test_dilation_and_its_gradients(
    ops: Any, size: tuple[int, int], k: tuple[int, int], strides: tuple[int, int], rates: tuple[int, int], padding: str
) -> None:
    x, filter_ = RNG.standard_normal((2, *size, 3)), RNG.standard_normal((*k, 3))
    attrs = of(strides, rates, padding)

    out = ops.run("Dilation2D", [x, filter_], **attrs)
    gradient = RNG.standard_normal(out.shape)
    of_image = ops.run("Dilation2DBackpropInput", [x, filter_, gradient], **attrs)
    of_filter = ops.run("Dilation2DBackpropFilter", [x, filter_, gradient], **attrs)

    expected = twins(x, filter_, gradient, attrs)
    assert out.shape == expected[0].shape
    np.testing.assert_array_equal(out, expected[0])
    np.testing.assert_allclose(of_image, expected[1], rtol=1e-12)
    np.testing.assert_allclose(of_filter, expected[2], rtol=1e-12)


@pytest.mark.parametrize("dtype", [pytest.param(np.int32, marks=pytest.mark.thorough), np.float16])
def test_narrow_and_whole_numbers_keep_their_type(ops: Any, dtype: Any) -> None:
    x, filter_ = RNG.integers(-9, 9, (1, 4, 4, 1)).astype(dtype), RNG.integers(-9, 9, (2, 2, 1)).astype(dtype)
    attrs = of(padding="SAME")

    out = ops.run("Dilation2D", [x, filter_], **attrs)

    expected, of_image, _ = twins(x, filter_, np.ones((1, 4, 4, 1)), attrs)
    np.testing.assert_array_equal(out, expected.astype(dtype))
    found = ops.run("Dilation2DBackpropInput", [x, filter_, np.ones((1, 4, 4, 1), dtype)], **attrs)
    np.testing.assert_array_equal(found, of_image.astype(dtype))


def test_a_window_of_nothing_but_the_least_number_gives_it(ops: Any) -> None:
    """Then no place wins, and the gradient goes to the window's first pixel and to the filter's first element."""
    least = np.finfo(np.float64).min
    x, filter_ = np.full((1, 2, 2, 1), least), np.zeros((2, 2, 1))
    gradient = np.array([[[[1.0], [2.0]], [[4.0], [8.0]]]])
    attrs = of(padding="SAME")

    assert ops.run("Dilation2D", [x, filter_], **attrs).tolist() == np.full((1, 2, 2, 1), least).tolist()
    of_image = ops.run("Dilation2DBackpropInput", [x, filter_, gradient], **attrs)
    of_filter = ops.run("Dilation2DBackpropFilter", [x, filter_, gradient], **attrs)
    assert of_image[0, ..., 0].tolist() == [[1.0, 2.0], [4.0, 8.0]]
    assert of_filter[..., 0].tolist() == [[15.0, 0.0], [0.0, 0.0]]


def test_a_filter_that_does_not_fit_gives_nothing(ops: Any) -> None:
    x, filter_ = np.ones((1, 2, 4, 1)), np.ones((3, 2, 1))

    out = ops.run("Dilation2D", [x, filter_], **of())
    of_image = ops.run("Dilation2DBackpropInput", [x, filter_, np.ones((1, 0, 3, 1))], **of())

    assert (out.shape, of_image.tolist()) == ((1, 0, 3, 1), np.zeros(x.shape).tolist())
    assert ops.run("Dilation2D", [np.ones((1, 1, 4, 1)), np.ones((4, 2, 1))], **of()).shape == (1, 0, 3, 1)


def test_gradients_of_nothing_are_nothing(ops: Any) -> None:
    x, filter_ = np.ones((1, 2, 2, 1)), np.ones((0, 2, 1))
    out = ops.run("Dilation2D", [x, filter_], **of(padding="SAME"))

    found = ops.run("Dilation2DBackpropFilter", [x, filter_, np.ones(out.shape)], **of(padding="SAME"))

    assert (out.shape, found.shape) == ((1, 2, 2, 1), (0, 2, 1))


@pytest.mark.parametrize("name", ["strides", "rates"])
@pytest.mark.parametrize(
    ("values", "kind", "text"),
    [
        ([1, 1, 1], errors.InvalidArgumentError, "must specify 4 dimensions, got [1, 1, 1]"),
        ([1, 1, 1, 1, 1], errors.InvalidArgumentError, "must specify 4 dimensions, got [1, 1, 1, 1, 1]"),
        ([2, 1, 1, 1], errors.UnimplementedError, "is only supported across spatial dimensions, got [2, 1, 1, 1]"),
        ([1, 1, 1, 2], errors.UnimplementedError, "is only supported across spatial dimensions, got [1, 1, 1, 2]"),
        ([1, 0, 2, 1], errors.InvalidArgumentError, "must be in [1, 2^31), got [1, 0, 2, 1]"),
        ([1, 2, -1, 1], errors.InvalidArgumentError, "must be in [1, 2^31), got [1, 2, -1, 1]"),
        ([1, 1, 1 << 31, 1], errors.InvalidArgumentError, "must be in [1, 2^31), got [1, 1, 2147483648, 1]"),
    ],
)
def test_steps_that_it_cannot_take_are_named(ops: Any, name: str, values: list[int], kind: Any, text: str) -> None:
    with pytest.raises(kind) as refused:
        ops.run("Dilation2D", [np.ones((1, 4, 4, 1)), np.ones((1, 1, 1))], **{**of(), name: values})

    assert refused.value.message == f"{name} {text}"


def test_the_longest_step_is_taken(ops: Any) -> None:
    x = np.arange(4.0).reshape(1, 2, 2, 1)
    longest = (1 << 31) - 1

    out = ops.run("Dilation2D", [x, np.zeros((1, 1, 1))], **of((longest, 1)))
    far = ops.run("Dilation2D", [x, np.zeros((2, 1, 1))], **of((1, 1), (longest, 1), "SAME"))

    assert out[0, ..., 0].tolist() == [[0.0, 1.0]]
    assert far.shape == x.shape


@pytest.mark.parametrize(
    ("x", "filter_", "text"),
    [
        ((4, 4, 1), (1, 1, 1), "input must be 4-dimensional and filter 3-dimensional: [4,4,1], [1,1,1]"),
        ((1, 4, 4, 1), (1, 1), "input must be 4-dimensional and filter 3-dimensional: [1,4,4,1], [1,1]"),
        ((1, 4, 4, 2), (1, 1, 3), "input and filter must have the same depth: 2 vs 3"),
    ],
)
def test_shapes_that_do_not_go_together_are_named(
    ops: Any, x: tuple[int, ...], filter_: tuple[int, ...], text: str
) -> None:
    with pytest.raises(errors.InvalidArgumentError) as refused:
        ops.run("Dilation2D", [np.ones(x), np.ones(filter_)], **of())

    assert refused.value.message == text


@pytest.mark.parametrize("op", ["Dilation2DBackpropInput", "Dilation2DBackpropFilter"])
def test_a_gradient_of_another_shape_is_refused(ops: Any, op: str) -> None:
    with pytest.raises(errors.InvalidArgumentError) as refused:
        ops.run(op, [np.ones((1, 4, 4, 1)), np.ones((2, 2, 1)), np.ones((1, 4, 3, 1))], **of())

    assert refused.value.message == "out_backprop has incompatible size: [1,4,3,1], expected [1,3,3,1]"


def test_more_outputs_than_fit_are_refused(ops: Any) -> None:
    """A filter without rows reaches less than nothing, so that its steps make more rows of an image."""
    with pytest.raises(errors.ResourceExhaustedError):
        ops.run("Dilation2D", [np.ones((1, 1, 1, 1)), np.ones((0, 0, 1))], **of((1, 1), ((1 << 31) - 1, 1 << 20)))


def test_room_is_asked_for_before_it_is_taken(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Halves are computed as floats."""
    for dtype, each in ((np.float16, 4), (np.int16, 2), (np.float64, 8)):
        inputs = [np.ones((2, 3, 4, 5), dtype), np.ones((2, 1, 5), dtype)]
        compute, _ = ops.build("Dilation2D", inputs, of())
        assert_wants(monkeypatch, 2 * 2 * 4 * 5 * each, partial(compute, *inputs))
