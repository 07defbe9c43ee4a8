"""Max pooling that says where the maxima are, and the gradients that go by those places.

The window and the loops are nn_pool.py's. A place counts within its image, or within the batch where
include_batch_in_index says so. Follows maxpooling_op.cc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_kernels.arrays import Array, Shaped, input_type, invalid, output_type, shape_text
from tenfold_kernels.cpu.nn_conv import wide_type
from tenfold_kernels.cpu.nn_pool import Pool, expect_shape, least_lines, pool_of_step, scratch_line
from tenfold_kernels.parallel import in_parts
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.typesets import REAL

if TYPE_CHECKING:
    from tenfold_kernels.cpu._windows import Place


def _places(run: Any, last: Array, place: Place) -> Array:
    """Where in the batch the largest element of each window is."""
    found = np.empty((place.batch, *place.out, place.channels), np.int64)
    if found.size:
        image, flat, wide = last.reshape(-1), found.reshape(-1), last.dtype

        def part(first: int, end: int) -> None:
            run(image, place.geometry, first, end, *scratch_line(place, wide), flat)

        in_parts(part, place.lines, least_lines(place))
    return found


@kernel("MaxPoolWithArgmax", T=REAL)
def build_max_pool_with_argmax(node: KernelNode) -> Compute:
    """(output, argmax): argmax counts within an image, or within the batch where include_batch_in_index says so."""
    from tenfold_kernels.cpu._compiled import pooling

    pool_of, dtype, index = pool_of_step(node), input_type(node), output_type(node, 1)
    wide, whole = wide_type(dtype), bool(node.attrs.get("include_batch_in_index"))
    run = pooling.largest_place(wide)

    def compute(x: Array) -> tuple[Array, Array]:
        refuse_empty(node, x.shape)
        last, place = pool_of(()).images(x, wide)
        found = _places(run, last, place)
        out = last.reshape(-1)[found] if found.size else np.empty(found.shape, wide)
        if not whole:
            found -= np.arange(place.batch).reshape(-1, 1, 1, 1) * last[0].size
        return out.astype(dtype, copy=False), found.astype(index, copy=False)

    return compute


@kernel("MaxPoolGradGrad", "MaxPoolGradGradV2", "MaxPool3DGradGrad", T=REAL)
def build_max_pool_grad_grad(node: KernelNode) -> Compute:
    """(orig_input, orig_output, grad of the input's gradient) → grad at the places of the maxima, 0 without one."""
    from tenfold_kernels.cpu._compiled import pooling

    pool_of, dtype = pool_of_step(node), output_type(node)
    wide = wide_type(dtype)
    run = pooling.at_equal(wide)

    def compute(x: Array, y: Array, gradient: Array, *sizes: Array) -> Array:
        pool = pool_of(sizes)
        last, place = pool.images(x, wide)
        expected = (place.batch, *place.out, place.channels)
        expect_shape(node, "orig_output", y, pool.shaped(expected))
        expect_shape(node, "grad", gradient, x.shape)
        found = np.empty(expected, wide)
        if found.size:
            image, flat = last.reshape(-1), found.reshape(-1)
            ys, given = (pool.slide.last(each.astype(wide, copy=False)).reshape(-1) for each in (y, gradient))
            in_parts(lambda a, b: run(image, ys, given, place.geometry, a, b, flat), place.lines, least_lines(place))
        return pool.slide.back(found).astype(dtype, copy=False)

    return compute


def place_of_argmax(node: KernelNode, pool: Pool, x: Shaped, gradient: Shaped, argmax: Shaped) -> Place:
    """Where the window goes over `x`. Raises InvalidArgumentError unless the others have the shape of the output."""
    place = pool.place_of(x)
    expect_shape(node, "grad", gradient, (place.batch, *place.out, place.channels))
    if gradient.shape != argmax.shape:
        raise invalid(
            f"grad and argmax must have the same shape: {shape_text(gradient.shape)} vs {shape_text(argmax.shape)}"
        )
    return place


@kernel("MaxPoolGradWithArgmax", T=REAL)
def build_max_pool_grad_with_argmax(node: KernelNode) -> Compute:
    """(input, grad, argmax) → grad added at the places that argmax names."""
    pool_of, dtype = pool_of_step(node), output_type(node)
    whole = bool(node.attrs.get("include_batch_in_index"))

    def compute(x: Array, gradient: Array, argmax: Array) -> Array:
        pool = pool_of(())
        place_of_argmax(node, pool, x, gradient, argmax)
        out = np.zeros(x.size, dtype)
        np.add.at(out, _argmax_places(node, x, argmax, whole).reshape(-1), gradient.reshape(-1))
        return out.reshape(x.shape)

    return compute


def refuse_empty(node: KernelNode, shape: tuple[int, ...]) -> None:
    """Raises InvalidArgumentError for images without elements: there is no place to give."""
    if 0 in shape:
        raise invalid(f"{node.op}: the input must not be empty, got shape {shape_text(shape)}")


def check_argmax(node: KernelNode, x: Shaped, gradient: Shaped, argmax: Shaped) -> None:
    """Raises InvalidArgumentError unless x and argmax are images, and gradient is like x."""
    if x.ndim != 4 or argmax.ndim != 4:
        raise invalid(
            "tensor_in and argmax must be 4-dimensional, got shapes "
            f"{shape_text(x.shape)} and {shape_text(argmax.shape)}"
        )
    expect_shape(node, "grad", gradient, x.shape)


@kernel("MaxPoolGradGradWithArgmax", T=REAL)
def build_max_pool_grad_grad_with_argmax(node: KernelNode) -> Compute:
    """(input, grad, argmax) → grad read at the places that argmax names."""
    whole = bool(node.attrs.get("include_batch_in_index"))

    def compute(x: Array, gradient: Array, argmax: Array) -> Array:
        check_argmax(node, x, gradient, argmax)
        places = _argmax_places(node, x, argmax, whole)
        return gradient.reshape(-1)[places] if places.size else np.empty(argmax.shape, gradient.dtype)

    return compute


def _argmax_places(node: KernelNode, x: Array, argmax: Array, whole_batch: bool) -> Array:
    """argmax as places in all of `x`. Raises InvalidArgumentError for one outside."""
    places = argmax.astype(np.int64)
    limit = x.size
    if not whole_batch and x.shape[0]:
        limit = x.size // x.shape[0]
    if places.size and (places.min() < 0 or places.max() >= limit):
        raise invalid(f"{node.op}: found an argmax outside of [0, {limit})")
    if not whole_batch:
        if argmax.shape[0] > x.shape[0]:
            raise invalid(f"{node.op}: argmax has a batch of {argmax.shape[0]}, the input one of {x.shape[0]}")
        places += np.arange(argmax.shape[0]).reshape(-1, *(1,) * (argmax.ndim - 1)) * limit
    return places
