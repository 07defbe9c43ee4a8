"""Max and average pooling in two and three dimensions, with their gradients.

Compiled loops over channels-last images (_compiled/pooling.py); half is computed in float. Pooling over channels alone
(ksize [1, 1, 1, k]) is a reduction of a reshaped image, as in TensorFlow. Outputs are fresh. Follows
pooling_ops_common.cc, maxpooling_op.cc, avgpooling_op.cc and pooling_ops_3d.cc: a gradient at equal elements goes to
the first of them in two dimensions, and to all of them in three. Places of maxima are nn_pool_argmax.py's.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core.memory_limits import allow
from tenfold_kernels.arrays import Array, Shaped, input_type, invalid, output_type, shape_text, text_attr
from tenfold_kernels.cpu._windows import Place, Sliding, sliding
from tenfold_kernels.cpu.math_reduction import lowest_finite
from tenfold_kernels.cpu.nn_conv import wide_type
from tenfold_kernels.parallel import in_parts
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.typesets import FLOATING, REAL

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

#: Ops whose window may lie along the channels. MaxPoolWithArgmax gives every channel back, as TensorFlow's does.
_DEPTHWISE = ("MaxPool", "MaxPoolV2", "MaxPoolWithArgmax")

#: What an error calls the ends of the dimensions that have explicit padding.
_SIDES = (("Top", "Bottom"), ("Left", "Right"))

#: Elements read below which the work is not shared among threads.
_SHARE = 1 << 18


class Pool:
    """The window of a pooling node; `ksize` and `strides`, all dimensions, come with each step in the V2 ops."""

    def __init__(self, node: KernelNode, ksize: Sequence[int], strides: Sequence[int]) -> None:
        spatial = 3 if "3D" in node.op else 2
        rank = spatial + 2
        self.slide: Sliding = sliding(node, spatial, strides=strides)
        if len(ksize) != rank:
            raise invalid(f"Sliding window ksize field must specify {rank} dimensions")
        if min(ksize) <= 0:
            raise invalid(f"Sliding window ksize must be positive, got {list(ksize)}")
        first = self.slide.channels_first
        self.depth = ksize[1 if first else -1]
        depth_stride = strides[1 if first else -1]
        if ksize[0] != 1 or strides[0] != 1:
            raise _unimplemented("Pooling is not yet supported on the batch dimension.")
        self.window = tuple(ksize[2:] if first else ksize[1:-1])
        self._check_depth(node.op, depth_stride)
        for (before, after), size, sides in zip(self.slide.explicit, self.window, _SIDES, strict=False):
            for pad, side in zip((before, after), sides, strict=True):
                if pad >= size:
                    raise invalid(f"{side} padding {pad} needs to be smaller than the window size {size}")

    def _check_depth(self, op: str, stride: int) -> None:
        """Raises UnimplementedError. The stride along the channels counts where TensorFlow's kernel looks at it."""
        if self.depth == 1 and (stride == 1 or op.startswith("AvgPool") or op in _DEPTHWISE):
            return
        if "3D" in op:
            raise _unimplemented("Pooling is not yet supported on the depth dimension.")
        if op.startswith("MaxPoolGrad") and "Argmax" not in op:
            raise _unimplemented("MaxPoolingGrad is not yet supported on the depth dimension.")
        if op.startswith("AvgPool"):
            raise _unimplemented("Non-spatial pooling is not yet supported: the window has one channel.")
        if any(k != 1 for k in self.window):
            raise _unimplemented(
                "MaxPooling supports exactly one of pooling across depth or pooling across width/height."
            )
        if self.depth != stride:
            raise _unimplemented("Depthwise max pooling requires the depth window to equal the depth stride")

    def of_depth(self, last: Array) -> Array:
        """The largest of each `depth` channels. Raises where they do not divide evenly."""
        if last.shape[-1] % self.depth:
            raise _unimplemented("Depthwise max pooling requires the depth window to evenly divide the input depth")
        groups = last.reshape(*last.shape[:-1], last.shape[-1] // self.depth, self.depth)
        return np.ascontiguousarray(groups.max(axis=-1))

    def shaped(self, last: tuple[int, ...]) -> tuple[int, ...]:
        """A shape with channels last, in the node's layout."""
        return self.slide.back_shape(last)

    def place_of(self, x: Shaped) -> Place:
        """Where the window goes over `x`. Raises InvalidArgumentError unless that is images."""
        if x.ndim != self.slide.rank:
            raise invalid(f"tensor_in must be {self.slide.rank}-dimensional, got shape {shape_text(x.shape)}")
        return self.slide.place(self.slide.last_shape(x.shape), self.window)

    def images(self, x: Array, wide: Any) -> tuple[Array, Place]:
        """`x` channels last in the type of the loops, and where the window goes."""
        place = self.place_of(x)
        return self.slide.last(x.astype(wide, copy=False)), place


def _unimplemented(message: str) -> Exception:
    from tenfold_core import errors

    return errors.unimplemented(message)


def pool_of_step(node: KernelNode) -> Callable[[Sequence[Array]], Pool]:
    """Gives the step's window: fixed by attrs, or held by the last two inputs."""
    if "ksize" in node.attrs:
        fixed = Pool(node, node.attrs["ksize"], node.attrs["strides"])
        return lambda _: fixed
    return lambda inputs: Pool(node, inputs[0].reshape(-1).tolist(), inputs[1].reshape(-1).tolist())


def least_lines(place: Place) -> int:
    """How many lines are worth a thread, of outputs that there are."""
    reads = place.out[-1] * place.channels * math.prod(place.window)
    return _SHARE // max(reads, 1) + 1


def _over_images(place: Place, run: Callable[[int, int], None]) -> None:
    """Calls `run(first line, last line)` for whole images: windows of one image may write to the same pixels."""
    per_image = place.lines // place.batch
    in_parts(lambda a, b: run(a * per_image, b * per_image), place.batch, least_lines(place) // per_image + 1)


def _empty(place: Place, dtype: Any) -> Array:
    return np.empty((place.batch, *place.out, place.channels), dtype)


def _least(node: KernelNode, dtype: Any) -> Any:
    """What a window's maximum begins with, as in TensorFlow: the least finite number, in three dimensions -inf."""
    if "3D" in node.op and np.dtype(dtype).kind in "fV":
        return -np.inf
    return lowest_finite(dtype)


@kernel("MaxPool", "MaxPoolV2", "MaxPool3D", T=REAL)
def build_max_pool(node: KernelNode) -> Compute:
    """The largest of each window. A nan is passed over, as by TensorFlow's kernel."""
    from tenfold_kernels.cpu._compiled import pooling

    pool_of, dtype = pool_of_step(node), input_type(node)
    wide = wide_type(dtype)
    run, least = pooling.largest(wide), wide(_least(node, dtype))

    def compute(x: Array, *sizes: Array) -> Array:
        pool = pool_of(sizes)
        last, place = pool.images(x, wide)
        if pool.depth > 1:
            return pool.slide.back(pool.of_depth(last)).astype(dtype, copy=False)
        out = _empty(place, wide)
        if out.size:
            image, flat = last.reshape(-1), out.reshape(-1)

            def part(first: int, end: int) -> None:
                row = np.empty(place.sizes[-1] * place.channels, wide)
                run(image, place.geometry, first, end, least, row, flat)

            in_parts(part, place.lines, least_lines(place))
        return pool.slide.back(out).astype(dtype, copy=False)

    return compute


@kernel("MaxPoolGrad", "MaxPoolGradV2", "MaxPool3DGrad", T=REAL)
def build_max_pool_grad(node: KernelNode) -> Compute:
    """(orig_input, orig_output, grad) → the gradient of the input."""
    from tenfold_kernels.cpu._compiled import intrinsics, pooling

    pool_of, dtype = pool_of_step(node), output_type(node)
    wide, deep = wide_type(dtype), "3D" in node.op
    run = pooling.largest_gradient_3d(wide) if deep else pooling.largest_gradient(wide)
    floats = not deep and np.dtype(wide) in (np.float32, np.float64)
    in_vectors = pooling.largest_gradient_wide(wide) if floats else None
    lanes = intrinsics.lanes(np.dtype(wide))

    def compute(x: Array, y: Array, gradient: Array, *sizes: Array) -> Array:
        pool = pool_of(sizes)
        last, place = pool.images(x, wide)
        expected = (place.batch, *place.out, place.channels)
        expect_shape(node, "orig_output", y, pool.shaped(expected))
        expect_shape(node, "grad", gradient, pool.shaped(expected))
        given = pool.slide.last(gradient.astype(wide, copy=False))
        # In two dimensions the loops begin with zeros themselves.
        out = np.zeros(last.shape, wide) if deep or not given.size else np.empty(last.shape, wide)
        if out.size and given.size:
            image, gs, flat = last.reshape(-1), given.reshape(-1), out.reshape(-1)
            if deep:
                ys = pool.slide.last(y.astype(wide, copy=False)).reshape(-1)
                _over_images(place, lambda a, b: run(image, ys, gs, place.geometry, a, b, flat))
            elif in_vectors is not None and place.channels % lanes == 0:
                _over_images(place, lambda a, b: in_vectors(image, gs, place.geometry, a, b, lanes, flat))
            else:
                _over_images(place, lambda a, b: run(image, gs, place.geometry, a, b, *scratch_line(place, wide), flat))
        return pool.slide.back(out).astype(dtype, copy=False)

    return compute


def scratch_line(place: Place, wide: Any) -> tuple[Array, Array]:
    """The scratch of one thread: an element and a place for each channel."""
    return np.empty(place.channels, wide), np.empty(place.channels, np.int64)


def expect_shape(node: KernelNode, name: str, x: Shaped, shape: tuple[int, ...]) -> None:
    """Raises InvalidArgumentError unless `x` has the shape."""
    if x.shape != shape:
        raise invalid(f"Expected {name} shape to be {shape_text(shape)}, but got {shape_text(x.shape)}")


@kernel("AvgPool", "AvgPool3D", T=FLOATING)
def build_avg_pool(node: KernelNode) -> Compute:
    """The mean of the places that lie within the image."""
    from tenfold_kernels.cpu._compiled import pooling

    pool_of, dtype = pool_of_step(node), input_type(node)
    wide = wide_type(dtype)
    run = pooling.average(wide)

    def compute(x: Array) -> Array:
        pool = pool_of(())
        last, place = pool.images(x, wide)
        out = _empty(place, wide)
        if out.size:
            image, flat = last.reshape(-1), out.reshape(-1)
            in_parts(lambda a, b: run(image, place.geometry, a, b, flat), place.lines, least_lines(place))
        return pool.slide.back(out).astype(dtype, copy=False)

    return compute


def average_gradient_place(
    node: KernelNode, pool: Pool, shape: Array, gradient: Shaped
) -> tuple[tuple[int, ...], Place]:
    """(the shape of the input, where the window goes over it). Raises InvalidArgumentError."""
    dims = tuple(int(d) for d in shape.reshape(-1).tolist())
    if len(dims) != pool.slide.rank or min(dims) < 0:
        layout = text_attr(node, "data_format", "NHWC")
        raise invalid(f"orig_input_shape must hold {pool.slide.rank} sizes ({layout}), got {shape_text(dims)}")
    place = pool.slide.place(pool.slide.last_shape(dims), pool.window)
    expect_shape(node, "grad", gradient, pool.shaped((place.batch, *place.out, place.channels)))
    return dims, place


@kernel("AvgPoolGrad", "AvgPool3DGrad", T=FLOATING)
def build_avg_pool_grad(node: KernelNode) -> Compute:
    """(orig_input_shape, grad) → the gradient of the input."""
    from tenfold_kernels.cpu._compiled import pooling

    pool_of, dtype = pool_of_step(node), output_type(node)
    wide = wide_type(dtype)
    run = pooling.average_gradient(wide)

    def compute(shape: Array, gradient: Array) -> Array:
        pool = pool_of(())
        dims, place = average_gradient_place(node, pool, shape, gradient)
        allow(dims, wide, 2)
        given = pool.slide.last(gradient.astype(wide, copy=False))
        out = np.zeros((place.batch, *place.sizes, place.channels), wide)
        if out.size and given.size:
            source, flat = given.reshape(-1), out.reshape(-1)
            _over_images(place, lambda a, b: run(source, place.geometry, a, b, flat))
        return pool.slide.back(out).astype(dtype, copy=False)

    return compute
