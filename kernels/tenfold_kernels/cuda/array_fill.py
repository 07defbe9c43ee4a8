"""Arrays made or made larger: Fill, ZerosLike, Pad, MirrorPad, Tile, OneHot. Follows cpu/array.py in its checks."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core import dtypes
from tenfold_kernels.arrays import as_shape, invalid, output_type, shape_text, text_attr
from tenfold_kernels.cpu.array import fill_shape, mirror_widths, remembered_padded, tile_times
from tenfold_kernels.cpu.array_index import one_hot_depth
from tenfold_kernels.cuda import _moves, _picks
from tenfold_kernels.cuda._runtime import runtime_of
from tenfold_kernels.cuda._types import INDICES, MOVED, ON_HOST
from tenfold_kernels.registry import EVERYTHING, Compute, KernelNode, kernel, shared_kernel

if TYPE_CHECKING:
    from tenfold_kernels.arrays import Array
    from tenfold_kernels.cuda._arrays import DeviceArray

shared_kernel("Fill", "ZerosLike", "OnesLike", "Pad", "PadV2", "MirrorPad", host=(EVERYTHING,), T=ON_HOST)
shared_kernel("Tile", "OneHot", host=(EVERYTHING,), T=ON_HOST)
shared_kernel("Empty", host=(EVERYTHING,), dtype=ON_HOST)


@kernel("Fill", device="GPU", host=("dims",), T=MOVED)
def build_fill(node: KernelNode) -> Compute:
    dtype, runtime = np.dtype(output_type(node)), runtime_of(node.device)

    def compute(dims: Array, value: DeviceArray) -> DeviceArray:
        shape = fill_shape(dims, value, dtype)  # type: ignore[arg-type] # its rank is all that it reads
        out = runtime.empty(shape, dtype)
        _moves.fill(out, value)
        return out

    return compute


@kernel("Empty", device="GPU", host=("shape",), dtype=MOVED)
def build_empty(node: KernelNode) -> Compute:
    """Zeros, as the CPU's."""
    dtype, runtime = np.dtype(output_type(node)), runtime_of(node.device)

    def compute(shape: Array) -> DeviceArray:
        out = runtime.empty(as_shape(shape, dtype=dtype), dtype)
        runtime.zero(out)
        return out

    return compute


@kernel("ZerosLike", device="GPU", T=MOVED)
def build_zeros_like(node: KernelNode) -> Compute:
    def compute(x: DeviceArray) -> DeviceArray:
        out = x.runtime.empty(x.shape, x.dtype)
        x.runtime.zero(out)
        return out

    return compute


@kernel("OnesLike", device="GPU", T=MOVED)
def build_ones_like(node: KernelNode) -> Compute:
    one = runtime_of(node.device).to_device(np.ones((), output_type(node)))

    def compute(x: DeviceArray) -> DeviceArray:
        out = x.runtime.empty(x.shape, x.dtype)
        _moves.fill(out, one)
        return out

    return compute


@kernel("Pad", "PadV2", device="GPU", host=("paddings",), T=MOVED)
def build_pad(node: KernelNode) -> Compute:
    """The border, over everything, then what is inside."""
    padded = remembered_padded()

    def compute(x: DeviceArray, paddings: Array, constant: DeviceArray | None = None) -> DeviceArray:
        shape, slices = padded(x, paddings)  # type: ignore[arg-type] # its shape and type are all that it reads
        if constant is not None and constant.ndim:
            raise invalid(f"constant_values must be a scalar. Found: {shape_text(constant.shape)}")
        out = x.runtime.empty(tuple(shape), x.dtype)
        if constant is not None:
            _moves.fill(out, constant)
        elif out.size != x.size:
            x.runtime.zero(out)
        _moves.put(x, out, inside(out, x.shape, [each.start for each in slices]))
        return out

    return compute


def inside(out: DeviceArray, shape: tuple[int, ...], begins: list[int]) -> _moves.Place:
    """The place of a block of `out` that begins there."""
    strides = _moves.whole(out).strides
    return _moves.Place(shape, strides, sum(b * s for b, s in zip(begins, strides, strict=True)))


@kernel("MirrorPad", device="GPU", host=("paddings",), T=MOVED)
def build_mirror_pad(node: KernelNode) -> Compute:
    """What is inside, then dimension after dimension its borders from what is there already."""
    reflect = text_attr(node, "mode") == "REFLECT"

    def compute(x: DeviceArray, paddings: Array) -> DeviceArray:
        widths = mirror_widths(x, paddings, reflect)  # type: ignore[arg-type] # as above
        shape = tuple([before + size + after for size, (before, after) in zip(x.shape, widths, strict=True)])
        out = x.runtime.empty(shape, x.dtype)
        _moves.put(x, out, inside(out, x.shape, [before for before, _ in widths]))
        for source, target in mirrored(out, x.shape, widths, reflect):
            _moves.move(out, source, out, target)
        return out

    return compute


def mirrored(
    out: DeviceArray, shape: tuple[int, ...], widths: list[list[int]], reflect: bool
) -> list[tuple[_moves.Place, _moves.Place]]:
    """(what is mirrored, where it goes), in the order in which borders are filled. Both are in `out`."""
    found = []
    strides = _moves.whole(out).strides
    for axis, (before, after) in enumerate(widths):
        # dimensions before this one have their borders, those after it have none yet
        begins = [0] * axis + [each for each, _ in widths[axis:]]
        sizes = [*out.shape[:axis], *shape[axis:]]
        back = (*strides[:axis], -strides[axis], *strides[axis + 1 :])
        low, high = before, before + shape[axis]
        off = 1 if reflect else 0
        for width, nearest, source in ((before, 0, low + off + before - 1), (after, high, high - 1 - off)):
            if width:
                sizes[axis] = width
                begins[axis] = nearest
                target = inside(out, tuple(sizes), begins)
                begins[axis] = source
                begin = inside(out, tuple(sizes), begins).begin
                found.append((_moves.Place(tuple(sizes), back, begin), target))
    return found


@kernel("Tile", device="GPU", views=True, host=("multiples",), T=MOVED)
def build_tile(node: KernelNode) -> Compute:
    """out[m0, i0, m1, i1, …] = x[i0, i1, …]"""

    def compute(x: DeviceArray, multiples: Array) -> DeviceArray:
        times = tile_times(x, multiples)  # type: ignore[arg-type] # its shape and type are all that it reads
        if all(n == 1 for n in times):
            return x
        shape: list[int] = []
        strides: list[int] = []
        for n, size, stride in zip(times, x.shape, _moves.whole(x).strides, strict=True):
            shape += [n, size]
            strides += [0, stride]
        out = x.runtime.empty(tuple([n * size for n, size in zip(times, x.shape, strict=True)]), x.dtype)
        wide = out.reshape(shape)
        _moves.move(x, _moves.Place(wide.shape, tuple(strides)), wide, _moves.whole(wide))
        return out

    return compute


@kernel("OneHot", device="GPU", host=("depth",), T=MOVED, TI=INDICES | {dtypes.uint8, dtypes.int8})
def build_one_hot(node: KernelNode) -> Compute:
    """on_value at the index along the new axis, off_value elsewhere; an index out of range marks nothing."""
    axis = int(node.attrs.get("axis", -1))
    dtype: np.dtype[Any] = np.dtype(output_type(node))

    def compute(indices: DeviceArray, depth: Array, on: DeviceArray, off: DeviceArray) -> DeviceArray:
        n = one_hot_depth(indices, depth, on, off, axis, dtype)  # type: ignore[arg-type] # shapes are all that it reads
        where = indices.ndim if axis == -1 else axis
        out = indices.runtime.empty((*indices.shape[:where], n, *indices.shape[where:]), dtype)
        if out.size:
            arrays = (indices, *map(_picks.as_whole, (on, off, out)))
            _picks.launch("arrays.one_hot", out.size, (n, math.prod(indices.shape[where:])), arrays)
        return out

    return compute
