"""Convolutions and depthwise ones on a GPU, and their gradients, give what they give on the CPU."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tenfold_core import errors
from tenfold_kernels.cuda import _images, _runtime

if TYPE_CHECKING:
    from types import SimpleNamespace

TOLERANCE = {"float16": 5e-3, "float32": 2e-5, "float64": 1e-12}
#: (strides, dilations, padding): SAME pads more after than before, or as much; EXPLICIT more than a window is wide.
SETTINGS = [
    ((1, 1), (1, 1), "SAME"),
    ((2, 2), (1, 1), "SAME"),
    ((2, 1), (1, 1), "VALID"),
    ((1, 1), (2, 1), "SAME"),
    ((2, 3), (1, 2), [(1, 2), (0, 3)]),
    ((1, 1), (1, 1), [(2, 2), (1, 0)]),
]
#: (input NHWC, filter RSCO): groups where the filter has fewer channels.
SHAPES = [
    ((1, 5, 4, 2), (3, 2, 2, 3)),
    ((2, 3, 4, 2), (2, 3, 1, 2)),
    ((1, 3, 3, 1), (1, 1, 1, 2)),
    ((0, 5, 5, 2), (3, 3, 2, 1)),
]
DEPTHWISE_SHAPES = [((1, 4, 5, 2), (3, 2, 2, 2)), ((2, 3, 3, 1), (2, 1, 1, 1)), ((0, 4, 4, 2), (2, 2, 2, 2))]


def sample(shape: tuple[int, ...], dtype: str, seed: int) -> Any:
    return np.random.default_rng(seed).uniform(-1.0, 1.0, shape).astype(dtype)


def attrs_of(strides: Any, dilations: Any, padding: Any, first: bool) -> dict[str, Any]:
    def wrap(pair: Any) -> list[int]:
        return [1, 1, *pair] if first else [1, *pair, 1]

    made = {"strides": wrap(strides), "dilations": wrap(dilations), "data_format": b"NCHW" if first else b"NHWC"}
    if isinstance(padding, str):
        return made | {"padding": padding.encode()}
    pads = [v for pair in padding for v in pair]
    return made | {"padding": b"EXPLICIT", "explicit_paddings": [0, 0, 0, 0, *pads] if first else [0, 0, *pads, 0, 0]}


def check(gpu: SimpleNamespace, op: str, shapes: Any, dtype: str, attrs: dict[str, Any]) -> None:
    """The op and its two gradients against the CPU's; the gradient of the output has the output's shape."""
    image = shapes[0]
    if attrs["data_format"] == b"NCHW":
        image = (image[0], image[3], *image[1:3])
    x, filters = sample(image, dtype, 1), sample(shapes[1], dtype, 2)
    wide = {"rtol": TOLERANCE[dtype], "atol": TOLERANCE[dtype]}

    out = gpu.same(op, [x, filters], **attrs, **wide)

    gradient = sample(out.shape, dtype, 3)
    gpu.same(f"{op}BackpropInput", [np.array(x.shape, np.int32), filters, gradient], **attrs, **wide)
    gpu.same(f"{op}BackpropFilter", [x, np.array(filters.shape, np.int32), gradient], **attrs, **wide)


@pytest.mark.parametrize("first", [False, pytest.param(True, marks=pytest.mark.thorough)], ids=["NHWC", "NCHW"])
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_a_convolution_and_its_gradients_are_the_cpus(gpu: SimpleNamespace, settings: Any, first: bool) -> None:
    for shapes in SHAPES:
        check(gpu, "Conv2D", shapes, "float32", attrs_of(*settings, first))


@pytest.mark.parametrize("first", [False, pytest.param(True, marks=pytest.mark.thorough)], ids=["NHWC", "NCHW"])
@pytest.mark.parametrize("dtype", [pytest.param("float64", marks=pytest.mark.thorough), "float16"])
def test_a_convolution_of_other_types_is_the_cpus(gpu: SimpleNamespace, dtype: str, first: bool) -> None:
    for shapes in SHAPES[:2]:
        check(gpu, "Conv2D", shapes, dtype, attrs_of((2, 2), (1, 1), "SAME", first))


@pytest.mark.parametrize("first", [False, pytest.param(True, marks=pytest.mark.thorough)], ids=["NHWC", "NCHW"])
@pytest.mark.parametrize("settings", SETTINGS[:5], ids=str)
def test_a_depthwise_convolution_and_its_gradients_are_the_cpus(
    gpu: SimpleNamespace, settings: Any, first: bool
) -> None:
    for dtype, shapes in itertools.product(("float32", "float64"), DEPTHWISE_SHAPES):
        check(gpu, "DepthwiseConv2dNative", shapes, dtype, attrs_of(*settings, first))


def test_a_small_filters_gradient_is_summed_in_chunks(gpu: SimpleNamespace) -> None:
    check(
        gpu, "DepthwiseConv2dNative", ((2, 5, 7, 1), (1, 1, 1, 1)), "float32", attrs_of((1, 1), (1, 1), "SAME", False)
    )


@pytest.mark.parametrize(
    ("op", "inputs", "text"),
    [
        (
            "Conv2D",
            [np.ones((1, 3, 3, 3)), np.ones((2, 2, 2, 2))],
            "input depth must be evenly divisible by filter depth",
        ),
        ("Conv2D", [np.ones((1, 3, 3)), np.ones((2, 2, 2, 2))], "input must be 4-dimensional"),
        (
            "Conv2DBackpropInput",
            [np.array([1, 3, 3, 2], np.int32), np.ones((2, 2, 2, 2)), np.ones((1, 3, 3, 2))],
            "Size of out_backprop doesn't match computed: actual = 3, computed = 2 spatial_dim: 1",
        ),
        (
            "Conv2DBackpropFilter",
            [np.ones((1, 3, 3, 2)), np.array([2, 2, 2, 2], np.int32), np.ones((2, 2, 2, 2))],
            "input and out_backprop must have the same batch size",
        ),
        (
            "DepthwiseConv2dNativeBackpropFilter",
            [np.ones((1, 3, 3, 2)), np.array([2, 2, 2, 1], np.int32), np.ones((1, 2, 2, 3))],
            "out_backprop must have shape",
        ),
    ],
)
def test_what_does_not_fit_is_refused_as_on_the_cpu(gpu: SimpleNamespace, op: str, inputs: Any, text: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=text):
        gpu.run(op, inputs, strides=[1, 1, 1, 1], padding=b"VALID")


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "float64", "complex128"])
def test_matrices_are_transposed_in_tiles(gpu: SimpleNamespace, dtype: str) -> None:
    runtime = _runtime.runtime_of(gpu.device)
    for shape in ((1, 3, 5), (2, 4, 8), (3, 1, 6), (2, 7, 1), (0, 2, 3), (1, 9, 2)):
        x = np.arange(np.prod(shape)).reshape(shape).astype(dtype)

        out = _images.transposed(runtime.to_device(x), *shape[1:])

        np.testing.assert_array_equal(out.to_host(), x.swapaxes(1, 2))


@pytest.mark.parametrize("last", [False, True], ids=["NCHW", "NHWC"])
def test_filters_go_to_a_library_and_come_back(gpu: SimpleNamespace, last: bool) -> None:
    runtime = _runtime.runtime_of(gpu.device)
    filters = np.arange(2 * 3 * 4 * 5, dtype=np.float32).reshape(2, 3, 4, 5)

    given = _images.filters_for_library(runtime.to_device(filters), last)

    np.testing.assert_array_equal(given.to_host(), filters.transpose((3, 0, 1, 2) if last else (3, 2, 0, 1)))
    np.testing.assert_array_equal(_images.filters_of_library(given, last).to_host(), filters)
