"""Convolutions in two and three dimensions, their gradients, and depthwise ones.

How they are computed is _convolutions.py's. Images are taken channels last; NCHW is transposed on the way in and out.
Groups are convolutions of their own. Outputs are fresh.
Follows conv_ops.cc, conv_grad_shape_utils.cc, depthwise_conv_op.cc.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from tenfold_core import dtypes
from tenfold_core.memory_limits import allow
from tenfold_kernels.arrays import Array, Shaped, input_type, invalid, shape_text, text_attr
from tenfold_kernels.cpu._convolutions import Loops, convolve, filter_gradient, input_gradient
from tenfold_kernels.cpu._windows import Place, Sliding, sliding
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.typesets import FLOATING


def wide_type(dtype: Any) -> Any:
    """What sums are computed in: float for half."""
    return np.float32 if dtype == np.float16 else dtype


def _check_rank(op: str, what: str, x: Shaped, rank: int) -> None:
    if x.ndim != rank:
        raise invalid(f"{op}: {what} must be {rank}-dimensional: {shape_text(x.shape)}")


def _groups(op: str, channels: int, kernel_shape: tuple[int, ...]) -> int:
    """How many groups the channels fall into, none where there are no channels. Raises InvalidArgumentError."""
    per_group, width = kernel_shape[-2], kernel_shape[-1]
    if per_group <= 0 or channels % per_group:
        raise invalid(f"{op}: input depth must be evenly divisible by filter depth: {channels} vs {per_group}")
    count = channels // per_group
    if count and width % count:
        raise invalid(f"{op}: output depth must be evenly divisible by number of groups: {width} vs {count}")
    return count


def _of_group(x: Array, index: int, count: int) -> Array:
    """The channels (last axis) of one group; `x` itself where there is one."""
    if count == 1:
        return x
    size = x.shape[-1] // count
    return np.ascontiguousarray(x[..., index * size : (index + 1) * size])


def _sizes(op: str, name: str, value: Array, rank: int) -> tuple[int, ...]:
    if value.ndim != 1:
        raise invalid(f"{op}: {name} input must be 1-dim, not {value.ndim}")
    dims = tuple(int(d) for d in value.tolist())
    if len(dims) not in (rank, rank - 2):
        raise invalid(f"{op}: {name} must have {rank} elements, got {len(dims)}")
    if min(dims) < 0:
        raise invalid(f"{op}: {name} must not be negative, got {shape_text(dims)}")
    return dims


def _check_gradient(op: str, slide: Sliding, place: Place, gradient: tuple[int, ...], width: int) -> None:
    """A gradient of that shape (channels last) is what the forward convolution gives."""
    if gradient[0] != place.batch:
        raise invalid(
            f"{op}: input and out_backprop must have the same batch size. Input batch: {place.batch}, "
            f"outbackprop batch: {gradient[0]}, batch_dim: 0"
        )
    if gradient[-1] != width:
        raise invalid(f"{op}: filter and out_backprop must have the same out_depth")
    for i, computed in enumerate(place.out):
        if gradient[i + 1] != computed:
            raise invalid(
                f"{op}: Size of out_backprop doesn't match computed: actual = {gradient[i + 1]}, computed = "
                f"{computed} spatial_dim: {i + 1} input: {place.sizes[i]} filter: {place.window[i]} output: "
                f"{gradient[i + 1]} stride: {slide.strides[i]} dilation: {slide.dilations[i]}"
            )


def forward_place(op: str, slide: Sliding, x: Shaped, filters: Shaped) -> tuple[Place, int]:
    """Where the window of one group goes, and how many groups there are. Raises InvalidArgumentError."""
    _check_rank(op, "input", x, slide.rank)
    _check_rank(op, "filter", filters, slide.rank)
    if not filters.size:
        raise invalid("filter must not have zero elements (i.e. all dimensions must be non-zero)")
    last = slide.last_shape(x.shape)
    count = _groups(op, last[-1], filters.shape)
    return slide.place((*last[:-1], filters.shape[-2]), filters.shape[:-2]), count


def input_gradient_place(
    op: str, slide: Sliding, sizes: Array, filters: Shaped, gradient: Shaped
) -> tuple[tuple[int, ...], Place, int]:
    """(the shape of the input, channels last, as forward_place). Raises InvalidArgumentError."""
    _check_rank(op, "filter", filters, slide.rank)
    _check_rank(op, "out_backprop", gradient, slide.rank)
    dims, last = _sizes(op, "input_sizes", sizes, slide.rank), slide.last_shape(gradient.shape)
    # Two sizes are the spatial ones alone.
    shape = (last[0], *dims, filters.shape[-2]) if len(dims) == slide.rank - 2 else slide.last_shape(dims)
    count = _groups(op, shape[-1], filters.shape)
    place = slide.place((*shape[:-1], filters.shape[-2]), filters.shape[:-2])
    _check_gradient(op, slide, place, last, filters.shape[-1])
    return shape, place, count


def filter_gradient_place(
    op: str, slide: Sliding, x: Shaped, sizes: Array, gradient: Shaped
) -> tuple[tuple[int, ...], Place, int]:
    """(the shape of the filter, as forward_place). Raises InvalidArgumentError."""
    _check_rank(op, "input", x, slide.rank)
    _check_rank(op, "out_backprop", gradient, slide.rank)
    dims = _sizes(op, "filter_sizes", sizes, slide.rank)
    if len(dims) != slide.rank:
        raise invalid(f"{op}: filter_sizes must have {slide.rank} elements, got {len(dims)}")
    image = slide.last_shape(x.shape)
    count = _groups(op, image[-1], dims)
    place = slide.place((*image[:-1], dims[-2]), dims[:-2])
    _check_gradient(op, slide, place, slide.last_shape(gradient.shape), dims[-1])
    return dims, place, count


_CONV_TYPES = FLOATING | {dtypes.int32}


def build_forward(node: KernelNode) -> Compute:
    """(input, filter) → output; for Conv2D, Conv3D and the fused Conv2D."""
    spatial = 3 if "3D" in node.op else 2
    slide, dtype = sliding(node, spatial), input_type(node)
    wide = wide_type(dtype)
    loops = Loops(wide, slide)

    def compute(x: Array, kernel_: Array) -> Array:
        place, count = forward_place(node.op, slide, x, kernel_)
        last = slide.last(x.astype(wide, copy=False))
        weights = kernel_.astype(wide, copy=False)
        if not count:
            empty = (place.batch, *place.out, weights.shape[-1])
            allow(empty, dtype)
            return slide.back(np.zeros(empty, dtype))
        outs = []
        for i in range(count):
            outs.append(convolve(loops, _of_group(last, i, count), _of_group(weights, i, count), place))
        out = outs[0] if count == 1 else np.concatenate(outs, axis=-1)
        return slide.back(out).astype(dtype, copy=False)

    return compute


kernel("Conv2D", T=_CONV_TYPES)(build_forward)
kernel("Conv3D", T=FLOATING)(build_forward)


@kernel("Conv", T=_CONV_TYPES)
def build_any_conv(node: KernelNode) -> Compute:
    """A convolution whose input may have several batch dimensions; the filter's rank says of how many dimensions."""
    rank, batch_dims = len(node.attrs["strides"]), int(node.attrs["batch_dims"])
    if rank not in (4, 5):
        raise invalid(f"Conv needs 4 or 5 strides, for images of two or three dimensions, got {rank}")
    if batch_dims < 1:
        raise invalid(f"batch_dims must be greater than or equal to 1, got {batch_dims}")
    layouts = ("NHWC", "NCHW") if rank == 4 else ("NDHWC", "NCDHW")
    layout = layouts[text_attr(node, "data_format") == "CHANNELS_FIRST"]
    attrs = {**node.attrs, "data_format": layout, "dilations": node.attrs.get("dilations") or [1] * rank}
    inner = build_forward(dataclasses.replace(node, op=f"Conv{rank - 2}D", attrs=attrs))

    def compute(x: Array, kernel_: Array) -> Array:
        if x.ndim != rank + batch_dims - 1:
            raise invalid(f"Input tensor must have rank {rank + batch_dims - 1}, got {shape_text(x.shape)}")
        batch = x.shape[:batch_dims]
        out = inner(x.reshape(math.prod(batch), *x.shape[batch_dims:]), kernel_)
        return np.asarray(out).reshape(*batch, *out.shape[1:])

    return compute


@kernel("Conv2DBackpropInput", T=_CONV_TYPES)
@kernel("Conv3DBackpropInputV2", T=FLOATING)
def build_backprop_input(node: KernelNode) -> Compute:
    """(input_sizes, filter, out_backprop) → the gradient of the input."""
    slide, dtype = sliding(node, 3 if "3D" in node.op else 2), input_type(node, 1)
    wide = wide_type(dtype)
    loops = Loops(wide, slide)

    def compute(sizes: Array, kernel_: Array, gradient: Array) -> Array:
        shape, place, count = input_gradient_place(node.op, slide, sizes, kernel_, gradient)
        allow(shape, wide, 2)
        last, weights = slide.last(gradient.astype(wide, copy=False)), kernel_.astype(wide, copy=False)
        outs = [
            input_gradient(loops, _of_group(last, i, count), _of_group(weights, i, count), place)
            for i in range(count)
        ]
        if not count:
            return slide.back(np.zeros(shape, dtype))
        out = outs[0] if count == 1 else np.concatenate(outs, axis=-1)
        return slide.back(out).astype(dtype, copy=False)

    return compute


@kernel("Conv3DBackpropInput", T=FLOATING)
def build_backprop_input_of_volume(node: KernelNode) -> Compute:
    """(input, filter, out_backprop): of the input only the shape counts."""
    inner = build_backprop_input(node)
    return lambda x, kernel_, gradient: inner(np.array(x.shape, np.int64), kernel_, gradient)


@kernel("Conv2DBackpropFilter", "Conv3DBackpropFilterV2", T=FLOATING)
def build_backprop_filter(node: KernelNode) -> Compute:
    """(input, filter_sizes, out_backprop) → the gradient of the filter."""
    slide, dtype = sliding(node, 3 if "3D" in node.op else 2), input_type(node)
    wide = wide_type(dtype)
    loops = Loops(wide, slide)

    def compute(x: Array, sizes: Array, gradient: Array) -> Array:
        dims, place, count = filter_gradient_place(node.op, slide, x, sizes, gradient)
        allow(dims, wide, 2)
        image, last = slide.last(x.astype(wide, copy=False)), slide.last(gradient.astype(wide, copy=False))
        outs = [
            filter_gradient(loops, _of_group(image, i, count), _of_group(last, i, count), place) for i in range(count)
        ]
        if not count:
            return np.zeros(dims, dtype)
        out = outs[0] if count == 1 else np.concatenate(outs, axis=-1)
        return out.astype(dtype, copy=False)

    return compute


@kernel("Conv3DBackpropFilter", T=FLOATING)
def build_backprop_filter_of_volume(node: KernelNode) -> Compute:
    """(input, filter, out_backprop): of the filter only the shape counts."""
    inner = build_backprop_filter(node)
    return lambda x, kernel_, gradient: inner(x, np.array(kernel_.shape, np.int64), gradient)
