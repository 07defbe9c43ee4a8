"""Reductions over any axes, the place of the largest, running sums. See cpu/math_reduction.py, whose checks are used.

Axes are in the host's memory. Sums are taken in the element's type, those of half in float32, in an order that depends
on the shape alone, see reduction_text.py. Outputs are fresh.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core import dtypes
from tenfold_kernels.cpu.math_reduction import arg_axis, reduction_axes, scan_axis
from tenfold_kernels.cuda import reduction_text
from tenfold_kernels.cuda._launch import Kernel, blocks_for, pointer
from tenfold_kernels.cuda._reduce import block_count, reduce
from tenfold_kernels.cuda._types import ANY_FLOATS, ANY_NUMBERS, ON_HOST
from tenfold_kernels.cuda.narrow_text import wide
from tenfold_kernels.registry import EVERYTHING, Compute, KernelNode, kernel, no_kernel, shared_kernel
from tenfold_kernels.typesets import COMPLEX

if TYPE_CHECKING:
    from tenfold_kernels.arrays import Array
    from tenfold_kernels.cuda._arrays import DeviceArray

_AXES = ("reduction_indices",)

shared_kernel("Sum", "Prod", "Mean", "Max", "Min", "EuclideanNorm", host=(EVERYTHING,), T=ON_HOST)
shared_kernel("ArgMax", "ArgMin", "Cumsum", "Cumprod", host=(EVERYTHING,), T=ON_HOST)
no_kernel("CumulativeLogsumexp", device="GPU", why="TensorFlow 1 has none on a GPU")


@kernel(*reduction_text.COMPLEX, device="GPU", host=_AXES, T=ANY_NUMBERS | COMPLEX)
@kernel("Max", "Min", device="GPU", host=_AXES, T=ANY_NUMBERS)
@kernel("EuclideanNorm", device="GPU", host=_AXES, T=ANY_FLOATS)
@kernel("All", "Any", device="GPU", host=_AXES)
def build_reduction(node: KernelNode) -> Compute:
    op, keep = node.op, bool(node.attrs.get("keep_dims", False))
    #: (the axes' bytes, rank) → axes: they are the same in almost every step.
    seen: dict[tuple[bytes, int], tuple[int, ...]] = {}

    def compute(x: DeviceArray, indices: Array) -> DeviceArray:
        key = indices.tobytes(), x.ndim
        axes = seen.get(key)
        if axes is None:
            axes = reduction_axes(x, indices)
            if len(seen) < 16:
                seen[key] = axes
        return reduce(op, x, axes, keep)

    return compute


def _worst(is_max: bool, dtype: np.dtype[Any]) -> Any:
    """The element that none is worse than."""
    if dtype.kind == "f":
        return dtype.type(-np.inf if is_max else np.inf)
    bounds = np.iinfo(dtype)
    return dtype.type(bounds.min if is_max else bounds.max)


@functools.lru_cache(256)
def _arg_kernel(is_max: bool, by_block: bool, dtype: np.dtype[Any], out: np.dtype[Any]) -> Kernel:
    from tenfold_kernels.cuda._code import reductions

    make, sizes = (reductions.arg_by_block, 2) if by_block else (reductions.arg_by_thread, 3)
    return Kernel(make(dtype, is_max, _worst(is_max, wide(dtype))), (*("int64",) * sizes, pointer(dtype), pointer(out)))


@kernel("ArgMax", "ArgMin", device="GPU", host=("dimension",), T=ANY_NUMBERS, output_type=(dtypes.int32, dtypes.int64))
def build_arg_max(node: KernelNode) -> Compute:
    """Of equal elements the first. A nan never wins; of nothing but nan the first is named."""
    out_type = np.dtype(node.output_types[0].as_numpy_dtype)
    is_max = node.op == "ArgMax"

    def compute(x: DeviceArray, dimension: Array) -> DeviceArray:
        axis = arg_axis(x, dimension)
        reduced, inner = x.shape[axis], math.prod(x.shape[axis + 1 :])
        runtime = x.runtime
        out = runtime.empty((*x.shape[:axis], *x.shape[axis + 1 :]), out_type)
        if not out.size:
            return out
        if inner == 1 and reduced > runtime.reduce_threads // 4:
            threads = runtime.reduce_threads
            arguments = (out.size, reduced, x, out)
            run = _arg_kernel(is_max, True, x.dtype, out_type)
            runtime.launch(run, block_count(runtime, out.size), threads, arguments, threads * 8)
        else:
            threads = runtime.block_threads
            blocks = blocks_for(out.size, threads, runtime.most_threads)
            run = _arg_kernel(is_max, False, x.dtype, out_type)
            runtime.launch(run, blocks, threads, (out.size, inner, reduced, x, out))
        return out

    return compute


@functools.lru_cache(256)
def _scan_kernel(is_sum: bool, exclusive: bool, reverse: bool, dtype: np.dtype[Any]) -> Kernel:
    from tenfold_kernels.cuda._code import reductions

    neutral = wide(dtype).type(0 if is_sum else 1)
    types = ("int64", "int64", "int64", pointer(dtype), pointer(dtype))
    return Kernel(reductions.scan(dtype, is_sum, exclusive, reverse, neutral), types)


@kernel("Cumsum", "Cumprod", device="GPU", host=("axis",), T=ANY_NUMBERS)
def build_cumulative(node: KernelNode) -> Compute:
    """`exclusive` leaves the element itself out; `reverse` accumulates from the end. One thread a line."""
    exclusive, reverse = bool(node.attrs.get("exclusive")), bool(node.attrs.get("reverse"))
    is_sum = node.op == "Cumsum"

    def compute(x: DeviceArray, axis: Array) -> DeviceArray:
        where = scan_axis(x, axis)
        runtime = x.runtime
        out = runtime.empty(x.shape, x.dtype)
        if x.size:
            length, inner = x.shape[where], math.prod(x.shape[where + 1 :])
            lines, threads = x.size // length, runtime.block_threads
            run = _scan_kernel(is_sum, exclusive, reverse, x.dtype)
            blocks = blocks_for(lines, threads, runtime.most_threads)
            runtime.launch(run, blocks, threads, (lines, inner, length, x, out))
        return out

    return compute
