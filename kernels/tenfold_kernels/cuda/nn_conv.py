"""Convolutions in two dimensions and their gradients on a GPU, by cuDNN (Runtime.libraries). Outputs are fresh.

    input ─► other layout ─► borders ─► library ─► other layout ─► output
    filter [R, S, C, O] ─► [O, C, R, S] ──┘

The library pads as much before as after: where SAME does not, the rest is put around the image first, and cut off its
gradient. float32 and float64 are computed with channels first, as TensorFlow does without TF32, half with channels
where they are. What is refused, and in which words, is cpu/nn_conv.py's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold_kernels.cpu._windows import Place, Sliding, sliding
from tenfold_kernels.cpu.nn_conv import filter_gradient_place, forward_place, input_gradient_place
from tenfold_kernels.cuda import _images
from tenfold_kernels.cuda._runtime import Convolution, runtime_of
from tenfold_kernels.cuda._types import ANY_FLOATS, FLOATS
from tenfold_kernels.registry import Compute, KernelNode, kernel, no_kernel

if TYPE_CHECKING:
    from tenfold_core import dtypes
    from tenfold_kernels.arrays import Array
    from tenfold_kernels.cuda._arrays import DeviceArray

no_kernel(
    "Conv3D", "Conv3DBackpropInput", "Conv3DBackpropInputV2", "Conv3DBackpropFilter", "Conv3DBackpropFilterV2", "Conv",
    device="GPU",
    why="no program of the op census convolves volumes",
)  # fmt: skip
no_kernel(
    "Dilation2D", "Dilation2DBackpropInput", "Dilation2DBackpropFilter", device="GPU",
    why="no program of the op census uses it",
)  # fmt: skip


class _Layout:
    """How a node's images and filters go to the library and come back."""

    def __init__(self, slide: Sliding, dtype: dtypes.DType) -> None:
        #: Whether the library gets channels last.
        self.last = not slide.channels_first and dtype not in FLOATS
        self._moves = not slide.channels_first and not self.last

    def given(self, image: DeviceArray) -> DeviceArray:
        return _images.channels_first(image) if self._moves else image

    def back(self, image: DeviceArray) -> DeviceArray:
        return _images.channels_last(image) if self._moves else image

    def shape(self, last: tuple[int, ...]) -> tuple[int, ...]:
        """The library's shape of an image, from one with channels last."""
        return last if self.last else (last[0], last[3], last[1], last[2])


def _fit(slide: Sliding, place: Place, groups: int, last: bool) -> tuple[Convolution, _images.Borders]:
    """(what the library is asked for, the borders of zeros that the image gets before)"""
    pads, borders = [], []
    for i, (size, window, out) in enumerate(zip(place.sizes, place.window, place.out, strict=True)):
        stride, reach = slide.strides[i], (window - 1) * slide.dilations[i] + 1
        # the geometry has three dimensions
        before = int(place.geometry[16 + i])
        if before < reach and (size + 2 * before - reach) // stride + 1 == out:
            even, border = before, (0, 0)
        else:
            after = max(0, (out - 1) * stride + reach - size - before)
            even = min(before, after) if min(before, after) < reach else 0
            border = (before - even, after - even)
        pads.append(even)
        borders.append(border)
    strides, dilations = slide.strides, slide.dilations
    how = Convolution((strides[0], strides[1]), (dilations[0], dilations[1]), (pads[0], pads[1]), groups, last)
    return how, (borders[0], borders[1])


def _without(borders: _images.Borders) -> _images.Borders:
    """What takes the borders off again."""
    (top, bottom), (left, right) = borders
    return (-top, -bottom), (-left, -right)


@kernel("Conv2D", device="GPU", T=ANY_FLOATS)
def build_forward(node: KernelNode) -> Compute:
    """(input, filter) → output; groups where the filter has fewer channels than the image."""
    slide, runtime = sliding(node, 2), runtime_of(node.device)
    layout = _Layout(slide, node.input_types[0])

    def compute(x: DeviceArray, filters: DeviceArray) -> DeviceArray:
        place, groups = forward_place(node.op, slide, x, filters)
        shape = (place.batch, *place.out, filters.shape[-1])
        out = runtime.empty(layout.shape(shape), x.dtype)
        if not x.size:
            runtime.zero(out)
        elif out.size:
            how, borders = _fit(slide, place, groups, layout.last)
            image = _images.with_borders(layout.given(x), borders, layout.last)
            weights = _images.filters_for_library(filters, layout.last)
            runtime.libraries.conv2d(image, weights, out, how)
        return layout.back(out)

    return compute


@kernel("Conv2DBackpropInput", device="GPU", host=("input_sizes",), T=ANY_FLOATS)
def build_backprop_input(node: KernelNode) -> Compute:
    """(input_sizes, filter, out_backprop) → the gradient of the input."""
    slide, runtime = sliding(node, 2), runtime_of(node.device)
    layout = _Layout(slide, node.input_types[1])

    def compute(sizes: Array, filters: DeviceArray, gradient: DeviceArray) -> DeviceArray:
        shape, place, groups = input_gradient_place(node.op, slide, sizes, filters, gradient)
        if not gradient.size or not filters.size or 0 in shape:
            out = runtime.empty(slide.back_shape(shape), gradient.dtype)
            runtime.zero(out)
            return out
        how, borders = _fit(slide, place, groups, layout.last)
        (top, bottom), (left, right) = borders
        padded = (shape[0], shape[1] + top + bottom, shape[2] + left + right, shape[3])
        out = runtime.empty(layout.shape(padded), gradient.dtype)
        weights = _images.filters_for_library(filters, layout.last)
        runtime.libraries.conv2d_input_gradient(layout.given(gradient), weights, out, how)
        return layout.back(_images.with_borders(out, _without(borders), layout.last))

    return compute


@kernel("Conv2DBackpropFilter", device="GPU", host=("filter_sizes",), T=ANY_FLOATS)
def build_backprop_filter(node: KernelNode) -> Compute:
    """(input, filter_sizes, out_backprop) → the gradient of the filter."""
    slide, runtime = sliding(node, 2), runtime_of(node.device)
    layout = _Layout(slide, node.input_types[0])

    def compute(x: DeviceArray, sizes: Array, gradient: DeviceArray) -> DeviceArray:
        dims, place, groups = filter_gradient_place(node.op, slide, x, sizes, gradient)
        if not x.size or not gradient.size or 0 in dims:
            out = runtime.empty(dims, x.dtype)
            runtime.zero(out)
            return out
        how, borders = _fit(slide, place, groups, layout.last)
        image = _images.with_borders(layout.given(x), borders, layout.last)
        rows, columns, channels, outputs = dims
        of_library = (outputs, rows, columns, channels) if layout.last else (outputs, channels, rows, columns)
        out = runtime.empty(of_library, x.dtype)
        runtime.libraries.conv2d_filter_gradient(image, layout.given(gradient), out, how)
        return _images.filters_of_library(out, layout.last)

    return compute
