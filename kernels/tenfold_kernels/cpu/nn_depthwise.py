"""Depthwise convolutions, two-dimensional, and their gradients: compiled sums (_depthwise.py), no matrix product.

Channel c of the image and place (…, c, m) of the filter give output channel c · M + m. Layouts and checks as in
nn_conv.py. Follows depthwise_conv_op.cc and depthwise_conv_grad_op.cc.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from tenfold_core.memory_limits import allow
from tenfold_kernels.arrays import Array, input_type, invalid, shape_text
from tenfold_kernels.cpu._depthwise import Depthwise
from tenfold_kernels.cpu._windows import Place, Sliding, sliding
from tenfold_kernels.cpu.nn_conv import wide_type
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.typesets import FLOATING


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


def _wide(place: Place, times: int) -> Place:
    """The place of an image each of whose channels stands `times` times."""
    if times == 1:
        return place
    geometry = place.geometry.copy()
    geometry[18] *= times
    return dataclasses.replace(place, channels=place.channels * times, geometry=geometry)


def _repeated(x: Array, times: int) -> Array:
    """`x` with each of its channels, the last axis, so many times."""
    if times == 1:
        return x
    allow((*x.shape, times), x.dtype)
    return np.repeat(x, times, axis=-1)


@kernel("DepthwiseConv2dNative", T=FLOATING)
def build_depthwise(node: KernelNode) -> Compute:
    """input [N, H, W, C], filter [kh, kw, C, M] → [N, OH, OW, C·M]."""
    slide, dtype = sliding(node, 2), input_type(node)
    wide = wide_type(dtype)
    sums = Depthwise(wide)

    def compute(x: Array, kernel_: Array) -> Array:
        last = channels_last(slide, x.astype(wide, copy=False))
        place, times = place_of(node, slide, last.shape, kernel_.shape), kernel_.shape[-1]
        weights = np.ascontiguousarray(kernel_, dtype=wide)
        return slide.back(sums.forward(_repeated(last, times), weights, _wide(place, times))).astype(dtype, copy=False)

    return compute


@kernel("DepthwiseConv2dNativeBackpropInput", T=FLOATING)
def build_depthwise_input(node: KernelNode) -> Compute:
    slide, dtype = sliding(node, 2), input_type(node, 1)
    wide = wide_type(dtype)
    sums = Depthwise(wide)

    def compute(sizes: Array, kernel_: Array, gradient: Array) -> Array:
        shape, times = input_shape(slide, sizes), kernel_.shape[-1] if kernel_.ndim else 0
        place = place_of(node, slide, shape, kernel_.shape)
        last = channels_last(slide, gradient.astype(wide, copy=False))
        check_gradient(node, place, last.shape, place.channels * times)
        # what is returned, and the gradients of all copies of a channel
        allow(shape, wide, 1 + max(times, 1))
        made = sums.input_gradient(last, np.ascontiguousarray(kernel_, dtype=wide), _wide(place, times))
        if times != 1:
            made = made.reshape(*shape, times).sum(-1)
        return slide.back(made).astype(dtype, copy=False)

    return compute


@kernel("DepthwiseConv2dNativeBackpropFilter", T=FLOATING)
def build_depthwise_filter(node: KernelNode) -> Compute:
    slide, dtype = sliding(node, 2), input_type(node)
    wide = wide_type(dtype)
    sums = Depthwise(wide, of_filter=True)

    def compute(x: Array, sizes: Array, gradient: Array) -> Array:
        dims = tuple(int(d) for d in sizes.reshape(-1).tolist())
        image, last = (channels_last(slide, each.astype(wide, copy=False)) for each in (x, gradient))
        place = place_of(node, slide, image.shape, dims)
        check_gradient(node, place, last.shape, place.channels * dims[3])
        allow(dims, wide, 2)
        made = sums.filter_gradient(_repeated(image, dims[3]), last, _wide(place, dims[3]))
        return made.reshape(dims).astype(dtype, copy=False)

    return compute
