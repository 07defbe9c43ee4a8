"""Max and average pooling in two dimensions and their gradients on a GPU, by own loops (_code/pool.py).

Outputs are fresh. A gradient is gathered: each element of the image looks at the outputs whose windows have it, so
that results are the same in every run. NCHW images are images of one channel each. Which of equal elements gets a
gradient, and what is refused, is cpu/nn_pool.py's and cpu/nn_pool_argmax.py's.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core import errors
from tenfold_kernels.arrays import input_type, output_type
from tenfold_kernels.cpu.nn_pool import Pool, average_gradient_place, expect_shape, pool_of_step
from tenfold_kernels.cpu.nn_pool_argmax import check_argmax, place_of_argmax, refuse_empty
from tenfold_kernels.cuda._launch import Kernel, launch_over, pointer
from tenfold_kernels.cuda._runtime import runtime_of
from tenfold_kernels.cuda._types import ANY_FLOATS, INDICES
from tenfold_kernels.registry import Compute, KernelNode, kernel, no_kernel

if TYPE_CHECKING:
    from tenfold_kernels.arrays import Array
    from tenfold_kernels.cpu._windows import Place
    from tenfold_kernels.cuda._arrays import DeviceArray

#: height, width, channels, out_height, out_width, rows, columns, down, across, top, left.
_GEOMETRY = 11
_INT64 = np.dtype(np.int64)

no_kernel(
    "MaxPool3D", "MaxPool3DGrad", "MaxPool3DGradGrad", "AvgPool3D", "AvgPool3DGrad", device="GPU",
    why="no program of the op census pools volumes",
)  # fmt: skip
no_kernel(
    "FractionalMaxPool", "FractionalMaxPoolGrad", "FractionalAvgPool", "FractionalAvgPoolGrad", device="GPU",
    why="TensorFlow has none either",
)  # fmt: skip


def _numbers(pool: Pool, place: Place) -> tuple[int, ...]:
    """The arguments of the loops that say where the window goes."""
    top, left = (int(number) for number in place.geometry[16:18])
    channels = 1 if pool.slide.channels_first else place.channels
    return (*place.sizes, channels, *place.out, *place.window, *pool.slide.strides, top, left)


def _out_shape(pool: Pool, place: Place) -> tuple[int, ...]:
    """Of the output, in the node's layout."""
    return pool.shaped((place.batch, *place.out, place.channels))


def _refuse_depth(pool: Pool) -> None:
    if pool.depth > 1:
        raise errors.unimplemented("Depthwise max pooling is currently only implemented for CPU devices.")


@functools.lru_cache
def _kernel(name: str, numbers: int, dtype: np.dtype[Any], *arrays: np.dtype[Any]) -> Kernel:
    """A loop of _code/pool.py, made for elements of `dtype`: its count, so many numbers, and arrays of those types."""
    from tenfold_kernels.cuda._code import pool

    return Kernel(getattr(pool, name)(dtype), (*("int64",) * (1 + numbers), *map(pointer, arrays)))


@kernel("MaxPool", device="GPU", T=ANY_FLOATS)
@kernel("MaxPoolV2", device="GPU", host=("ksize", "strides"), T=ANY_FLOATS)
def build_max_pool(node: KernelNode) -> Compute:
    """The largest of each window. A nan is passed over, as on the CPU."""
    pool_of, runtime, dtype = pool_of_step(node), runtime_of(node.device), np.dtype(input_type(node))
    run = _kernel("largest", _GEOMETRY, dtype, dtype, dtype)

    def compute(x: DeviceArray, *sizes: Array) -> DeviceArray:
        pool = pool_of(sizes)
        _refuse_depth(pool)
        place = pool.place_of(x)
        out = runtime.empty(_out_shape(pool, place), dtype)
        launch_over(run, out.size, _numbers(pool, place), (x, out))
        return out

    return compute


@kernel("MaxPoolGrad", device="GPU", T=ANY_FLOATS)
@kernel("MaxPoolGradV2", device="GPU", host=("ksize", "strides"), T=ANY_FLOATS)
def build_max_pool_grad(node: KernelNode) -> Compute:
    """(orig_input, orig_output, grad) → the gradient of the input: at the first maximum of each window."""
    pool_of, runtime, dtype = pool_of_step(node), runtime_of(node.device), np.dtype(output_type(node))
    find = _kernel("places", _GEOMETRY + 1, dtype, dtype, _INT64)
    spread = _kernel("spread", _GEOMETRY + 1, dtype, dtype, _INT64, dtype)

    def compute(x: DeviceArray, y: DeviceArray, gradient: DeviceArray, *sizes: Array) -> DeviceArray:
        pool = pool_of(sizes)
        place = pool.place_of(x)
        expect_shape(node, "orig_output", y, _out_shape(pool, place))
        expect_shape(node, "grad", gradient, _out_shape(pool, place))
        out, found = runtime.empty(x.shape, dtype), runtime.empty(gradient.shape, _INT64)
        numbers = (*_numbers(pool, place), 0)
        launch_over(find, found.size, numbers, (x, found))
        launch_over(spread, out.size, numbers, (gradient, found, out))
        return out

    return compute


@kernel("MaxPoolGradGrad", device="GPU", T=ANY_FLOATS)
@kernel("MaxPoolGradGradV2", device="GPU", host=("ksize", "strides"), T=ANY_FLOATS)
def build_max_pool_grad_grad(node: KernelNode) -> Compute:
    """(orig_input, orig_output, grad of the input's gradient) → grad at the places of the maxima, 0 without one."""
    pool_of, runtime, dtype = pool_of_step(node), runtime_of(node.device), np.dtype(output_type(node))
    run = _kernel("at_equal", _GEOMETRY, dtype, dtype, dtype, dtype, dtype)

    def compute(x: DeviceArray, y: DeviceArray, gradient: DeviceArray, *sizes: Array) -> DeviceArray:
        pool = pool_of(sizes)
        place = pool.place_of(x)
        expect_shape(node, "orig_output", y, _out_shape(pool, place))
        expect_shape(node, "grad", gradient, x.shape)
        out = runtime.empty(y.shape, dtype)
        launch_over(run, out.size, _numbers(pool, place), (x, y, gradient, out))
        return out

    return compute


@kernel("MaxPoolWithArgmax", device="GPU", T=ANY_FLOATS, Targmax=INDICES)
def build_max_pool_with_argmax(node: KernelNode) -> Compute:
    """(output, argmax): argmax counts within an image, or within the batch where include_batch_in_index says so."""
    pool_of, runtime, dtype = pool_of_step(node), runtime_of(node.device), np.dtype(input_type(node))
    index, whole = np.dtype(output_type(node, 1)), bool(node.attrs.get("include_batch_in_index"))
    find = _kernel("places", _GEOMETRY + 1, dtype, dtype, index)
    take = _kernel("taken", 3, dtype, dtype, index, dtype)

    def compute(x: DeviceArray) -> tuple[DeviceArray, DeviceArray]:
        pool = pool_of(())
        place = pool.place_of(x)
        refuse_empty(node, x.shape)
        shape, size = _out_shape(pool, place), _size(x, whole)
        out, found = runtime.empty(shape, dtype), runtime.empty(shape, index)
        launch_over(find, found.size, (*_numbers(pool, place), size), (x, found))
        per_image = out.size // max(1, place.batch)
        launch_over(take, out.size, (per_image, size, size or x.size), (x, found, out))
        return out, found

    return compute


@kernel("MaxPoolGradWithArgmax", device="GPU", T=ANY_FLOATS, Targmax=INDICES)
def build_max_pool_grad_with_argmax(node: KernelNode) -> Compute:
    """(input, grad, argmax) → grad added at the places that argmax names, of those in the window: argmax is what
    MaxPoolWithArgmax gives. What lies elsewhere is not looked for, nor refused, which would want a copy to the host.
    """
    pool_of, runtime, dtype = pool_of_step(node), runtime_of(node.device), np.dtype(output_type(node))
    index, whole = np.dtype(input_type(node, 2)), bool(node.attrs.get("include_batch_in_index"))
    spread = _kernel("spread", _GEOMETRY + 1, dtype, dtype, index, dtype)

    def compute(x: DeviceArray, gradient: DeviceArray, argmax: DeviceArray) -> DeviceArray:
        pool = pool_of(())
        place = place_of_argmax(node, pool, x, gradient, argmax)
        out = runtime.empty(x.shape, dtype)
        launch_over(spread, out.size, (*_numbers(pool, place), _size(x, whole)), (gradient, argmax, out))
        return out

    return compute


@kernel("MaxPoolGradGradWithArgmax", device="GPU", T=ANY_FLOATS, Targmax=INDICES)
def build_max_pool_grad_grad_with_argmax(node: KernelNode) -> Compute:
    """(input, grad, argmax) → grad read at the places that argmax names; 0 where argmax names no place."""
    runtime, dtype = runtime_of(node.device), np.dtype(output_type(node))
    index, whole = np.dtype(input_type(node, 2)), bool(node.attrs.get("include_batch_in_index"))
    take = _kernel("taken", 3, dtype, dtype, index, dtype)

    def compute(x: DeviceArray, gradient: DeviceArray, argmax: DeviceArray) -> DeviceArray:
        check_argmax(node, x, gradient, argmax)
        out, size = runtime.empty(argmax.shape, dtype), _size(x, whole)
        per_image = max(1, out.size // max(1, argmax.shape[0]))
        limit = (size or x.size) if argmax.shape[0] <= x.shape[0] or whole else 0
        launch_over(take, out.size, (per_image, size, limit), (gradient, argmax, out))
        return out

    return compute


def _size(x: DeviceArray, whole_batch: bool) -> int:
    """How many elements an image has, where places count within one; else 0."""
    return 0 if whole_batch or not x.shape[0] else x.size // x.shape[0]


@kernel("AvgPool", device="GPU", T=ANY_FLOATS)
def build_avg_pool(node: KernelNode) -> Compute:
    """The mean of the places that lie within the image."""
    pool_of, runtime, dtype = pool_of_step(node), runtime_of(node.device), np.dtype(input_type(node))
    run = _kernel("average", _GEOMETRY, dtype, dtype, dtype)

    def compute(x: DeviceArray) -> DeviceArray:
        pool = pool_of(())
        place = pool.place_of(x)
        out = runtime.empty(_out_shape(pool, place), dtype)
        launch_over(run, out.size, _numbers(pool, place), (x, out))
        return out

    return compute


@kernel("AvgPoolGrad", device="GPU", host=("orig_input_shape",), T=ANY_FLOATS)
def build_avg_pool_grad(node: KernelNode) -> Compute:
    """(orig_input_shape, grad) → the gradient of the input."""
    pool_of, runtime, dtype = pool_of_step(node), runtime_of(node.device), np.dtype(output_type(node))
    run = _kernel("average_gradient", _GEOMETRY, dtype, dtype, dtype)

    def compute(shape: Array, gradient: DeviceArray) -> DeviceArray:
        pool = pool_of(())
        dims, place = average_gradient_place(node, pool, shape, gradient)
        out = runtime.empty(dims, dtype)
        launch_over(run, out.size, _numbers(pool, place), (gradient, out))
        return out

    return compute
