"""Depthwise convolutions and their gradients on a GPU, by own loops (_code/depthwise.py): a product of matrices has
nothing to win there. NCHW is transposed on the way in and out. What is refused is cpu/nn_depthwise.py's.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_kernels.arrays import input_type
from tenfold_kernels.cpu._windows import Place, Sliding, sliding
from tenfold_kernels.cpu.nn_depthwise import check_gradient, input_shape, place_of
from tenfold_kernels.cuda import _images
from tenfold_kernels.cuda._launch import Kernel, launch_over, pointer
from tenfold_kernels.cuda._runtime import runtime_of
from tenfold_kernels.cuda._types import ANY_FLOATS
from tenfold_kernels.cuda.narrow_text import wide
from tenfold_kernels.registry import Compute, KernelNode, kernel

if TYPE_CHECKING:
    from tenfold_kernels.arrays import Array
    from tenfold_kernels.cuda._arrays import DeviceArray

#: height, width, channels, times, out_height, out_width, rows, columns, down, across, apart down and across, top, left.
_GEOMETRY = 14


def _last(slide: Sliding, x: DeviceArray) -> DeviceArray:
    return _images.channels_last(x) if slide.channels_first and x.ndim == 4 else x


def _back(slide: Sliding, x: DeviceArray) -> DeviceArray:
    return _images.channels_first(x) if slide.channels_first else x


def _numbers(slide: Sliding, place: Place, times: int) -> tuple[int, ...]:
    """The arguments of the loops that say where the filter goes."""
    top, left = (int(number) for number in place.geometry[16:18])
    sizes = (*place.sizes, place.channels, times, *place.out, *place.window)
    return (*sizes, *slide.strides, *slide.dilations, top, left)


@functools.lru_cache
def _kernel(name: str, made_for: tuple[np.dtype[Any], ...], more: int, *arrays: np.dtype[Any]) -> Kernel:
    """A loop of _code/depthwise.py, made for those types of elements, with so many numbers besides, and arrays."""
    from tenfold_kernels.cuda._code import depthwise

    return Kernel(getattr(depthwise, name)(*made_for), (*("int64",) * (1 + more), *map(pointer, arrays)))


@kernel("DepthwiseConv2dNative", device="GPU", T=ANY_FLOATS)
def build_depthwise(node: KernelNode) -> Compute:
    """input [N, H, W, C], filter [kh, kw, C, M] → [N, OH, OW, C·M]."""
    slide, runtime, dtype = sliding(node, 2), runtime_of(node.device), np.dtype(input_type(node))
    run = _kernel("forward", (dtype,), _GEOMETRY, dtype, dtype, dtype)

    def compute(x: DeviceArray, filters: DeviceArray) -> DeviceArray:
        last = _last(slide, x)
        place = place_of(node, slide, last.shape, filters.shape)
        out = runtime.empty((place.batch, *place.out, place.channels * filters.shape[3]), dtype)
        launch_over(run, out.size, _numbers(slide, place, filters.shape[3]), (last, filters, out))
        return _back(slide, out)

    return compute


@kernel("DepthwiseConv2dNativeBackpropInput", device="GPU", host=("input_sizes",), T=ANY_FLOATS)
def build_depthwise_input(node: KernelNode) -> Compute:
    """(input_sizes, filter, out_backprop) → the gradient of the input."""
    slide, runtime, dtype = sliding(node, 2), runtime_of(node.device), np.dtype(input_type(node, 1))
    run = _kernel("input_gradient", (dtype,), _GEOMETRY, dtype, dtype, dtype)

    def compute(sizes: Array, filters: DeviceArray, gradient: DeviceArray) -> DeviceArray:
        shape = input_shape(slide, sizes)
        place = place_of(node, slide, shape, filters.shape)
        last = _last(slide, gradient)
        check_gradient(node, place, last.shape, place.channels * filters.shape[3])
        out = runtime.empty(shape, dtype)
        launch_over(run, out.size, _numbers(slide, place, filters.shape[3]), (last, filters, out))
        return _back(slide, out)

    return compute


@kernel("DepthwiseConv2dNativeBackpropFilter", device="GPU", host=("filter_sizes",), T=ANY_FLOATS)
def build_depthwise_filter(node: KernelNode) -> Compute:
    """(input, filter_sizes, out_backprop) → the gradient of the filter: first sums of chunks of pixels, then theirs."""
    slide, runtime, dtype = sliding(node, 2), runtime_of(node.device), np.dtype(input_type(node))
    number = wide(dtype)
    add_up = _kernel("summed", (dtype,), 1, number, dtype)

    def compute(x: DeviceArray, sizes: Array, gradient: DeviceArray) -> DeviceArray:
        dims = tuple(int(d) for d in sizes.reshape(-1).tolist())
        image, last = _last(slide, x), _last(slide, gradient)
        place = place_of(node, slide, image.shape, dims)
        check_gradient(node, place, last.shape, place.channels * dims[3])
        out = runtime.empty(dims, dtype)
        if not out.size:
            return out
        pixels = place.batch * place.out[0] * place.out[1]
        chunks = max(1, min(pixels, runtime.most_threads // out.size))
        step = -(-pixels // chunks)
        parts = runtime.empty((chunks, out.size), number) if chunks > 1 else out
        numbers = (*_numbers(slide, place, dims[3]), pixels, step)
        run = _kernel("filter_gradient", (dtype, parts.dtype), _GEOMETRY + 2, dtype, dtype, parts.dtype)
        launch_over(run, parts.size, numbers, (image, last, parts))
        if chunks > 1:
            launch_over(add_up, out.size, (chunks,), (parts, out))
        return out

    return compute
