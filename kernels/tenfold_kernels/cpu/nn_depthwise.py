"""Depthwise convolutions, two-dimensional, and their gradients: compiled loops, no matrix product.

Channel c of the image and place (…, c, m) of the filter give output channel c · M + m. Layouts and checks as in
nn_conv.py. Follows depthwise_conv_op.cc and depthwise_conv_grad_op.cc.
"""

from __future__ import annotations

import math

import numpy as np

from tenfold_core.memory_limits import allow
from tenfold_kernels.arrays import Array, input_type, invalid, shape_text
from tenfold_kernels.cpu._windows import Place, Sliding, sliding
from tenfold_kernels.cpu.nn_conv import wide_type
from tenfold_kernels.parallel import in_parts
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.typesets import FLOATING

#: Multiplications below which the work is not shared among threads.
_SHARE = 1 << 18


def _least(place: Place) -> int:
    """How many lines are worth a thread."""
    return _SHARE // max(1, place.out[-1] * place.window[0] * place.window[1] * place.channels) + 1


def channels_last(slide: Sliding, x: Array) -> Array:
    """`x` with its channels last; as it is where that is no image, which its shape says then."""
    return slide.last(x) if x.ndim == 4 else x


def input_shape(slide: Sliding, sizes: Array) -> tuple[int, ...]:
    """The shape that an input of sizes holds, channels last; as it is where that is no image's."""
    dims = tuple(int(d) for d in sizes.reshape(-1).tolist())
    return slide.last_shape(dims) if len(dims) == 4 else dims


def place_of(node: KernelNode, slide: Sliding, shape: tuple[int, ...], kernel_shape: tuple[int, ...]) -> Place:
    """Where the filter goes over an image of `shape`, channels last. Raises InvalidArgumentError."""
    if len(shape) != 4:
        raise invalid(f"input must be 4-dimensional{shape_text(shape)}")
    if len(kernel_shape) != 4:
        raise invalid(f"filter must be 4-dimensional: {shape_text(kernel_shape)}")
    if min(*shape, *kernel_shape) < 0:
        raise invalid(f"{node.op}: sizes must not be negative, got {shape_text(shape)} and {shape_text(kernel_shape)}")
    if shape[-1] != kernel_shape[2]:
        raise invalid(f"{node.op}: input and filter must have the same depth: {shape[-1]} vs {kernel_shape[2]}")
    return slide.place(shape, kernel_shape[:2])


def check_gradient(node: KernelNode, place: Place, gradient: tuple[int, ...], width: int) -> None:
    """A gradient of that shape, channels last, is what the forward op gives, of `width` channels."""
    expected = (place.batch, *place.out, width)
    if gradient != expected:
        raise invalid(
            f"{node.op}: out_backprop must have shape {shape_text(expected)} (channels last), "
            f"got {shape_text(gradient)}"
        )


@kernel("DepthwiseConv2dNative", T=FLOATING)
def build_depthwise(node: KernelNode) -> Compute:
    """input [N, H, W, C], filter [kh, kw, C, M] → [N, OH, OW, C·M]."""
    from tenfold_kernels.cpu._compiled import windows

    slide, dtype = sliding(node, 2), input_type(node)
    wide = wide_type(dtype)
    run = windows.depthwise(wide)

    def compute(x: Array, kernel_: Array) -> Array:
        last = channels_last(slide, x.astype(wide, copy=False))
        place = place_of(node, slide, last.shape, kernel_.shape)
        weights = np.ascontiguousarray(kernel_, dtype=wide).reshape(math.prod(kernel_.shape[:2]), *kernel_.shape[2:])
        out = np.empty((place.batch, *place.out, place.channels * kernel_.shape[3]), wide)
        if out.size:
            image, flat = last.reshape(-1), out.reshape(-1)
            in_parts(lambda a, b: run(image, weights, place.geometry, a, b, flat), place.lines, _least(place))
        return slide.back(out).astype(dtype, copy=False)

    return compute


@kernel("DepthwiseConv2dNativeBackpropInput", T=FLOATING)
def build_depthwise_input(node: KernelNode) -> Compute:
    from tenfold_kernels.cpu._compiled import windows

    slide, dtype = sliding(node, 2), input_type(node, 1)
    wide = wide_type(dtype)
    run = windows.depthwise_input(wide)

    def compute(sizes: Array, kernel_: Array, gradient: Array) -> Array:
        shape = input_shape(slide, sizes)
        place = place_of(node, slide, shape, kernel_.shape)
        last = channels_last(slide, gradient.astype(wide, copy=False))
        check_gradient(node, place, last.shape, place.channels * kernel_.shape[3])
        weights = np.ascontiguousarray(kernel_, dtype=wide).reshape(math.prod(kernel_.shape[:2]), *kernel_.shape[2:])
        allow(shape, wide, 2)
        out = np.zeros(shape, wide)
        if out.size and last.size:
            source, flat, per_image = last.reshape(-1), out.reshape(-1), place.out[0]

            def images(first: int, end: int) -> None:
                # Lines of one image write to the same rows: whole images are shared out.
                run(source, weights, place.geometry, first * per_image, end * per_image, flat)

            in_parts(images, place.batch, _least(place) // per_image + 1)
        return slide.back(out).astype(dtype, copy=False)

    return compute


@kernel("DepthwiseConv2dNativeBackpropFilter", T=FLOATING)
def build_depthwise_filter(node: KernelNode) -> Compute:
    from tenfold_kernels.cpu._compiled import windows

    slide, dtype = sliding(node, 2), input_type(node)
    wide = wide_type(dtype)
    run = windows.depthwise_filter(wide)

    def compute(x: Array, sizes: Array, gradient: Array) -> Array:
        dims = tuple(int(d) for d in sizes.reshape(-1).tolist())
        image, last = (channels_last(slide, each.astype(wide, copy=False)) for each in (x, gradient))
        place = place_of(node, slide, image.shape, dims)
        check_gradient(node, place, last.shape, place.channels * dims[3])
        allow(dims, wide, 2)
        out = np.zeros((dims[0] * dims[1], dims[2], dims[3]), wide)
        if out.size and last.size and image.size:
            run(image.reshape(-1), last.reshape(-1), place.geometry, 0, place.lines, out)
        return out.reshape(dims).astype(dtype, copy=False)

    return compute
