"""Resizing of images [N, H, W, C]: nearest, bilinear, bicubic, by area, and the gradients.

Each resizing works along rows and columns separately. Where samples lie is computed in float, as TensorFlow does, so
that the same pixels are taken. Outputs are fresh, float unless nearest. Follows image_resizer_state.h and
resize_*_op.cc.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core.memory_limits import allow
from tenfold_kernels.arrays import Array, as_array, contiguous, invalid, output_type, shape_text
from tenfold_kernels.parallel import in_parts
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.typesets import FLOATING, REAL

if TYPE_CHECKING:
    from collections.abc import Callable

_HALF = np.float32(0.5)
#: Elements made below which the work is not shared among threads.
_SHARE = 1 << 16


@dataclass(frozen=True, slots=True)
class _Scale:
    """How output places map to input places, from a node's two flags."""

    corners: bool
    half_pixels: bool

    def factor(self, size: int, count: int) -> np.float32:
        if self.corners and count > 1:
            return np.float32((size - 1) / np.float32(count - 1))
        return np.float32(np.float32(size) / np.float32(count))

    def places(self, size: int, count: int) -> Array:
        """Where each of `count` outputs lies among `size` inputs."""
        steps = np.arange(count, dtype=np.float32)
        factor = self.factor(size, count)
        return (steps + _HALF) * factor - _HALF if self.half_pixels else steps * factor


def _scale(node: KernelNode) -> _Scale:
    corners, half = bool(node.attrs.get("align_corners")), bool(node.attrs.get("half_pixel_centers"))
    if corners and half:
        raise invalid("If half_pixel_centers is True, align_corners must be False.")
    return _Scale(corners, half)


def _sizes(images: Array, size: Array) -> tuple[int, int]:
    if images.ndim != 4:
        raise invalid(f"input must be 4-dimensional{shape_text(images.shape)}")
    if size.shape != (2,):
        raise invalid(f"shape_t must be 1-dimensional with two elements {shape_text(size.shape)}")
    height, width = (int(v) for v in size.tolist())
    if height <= 0 or width <= 0:
        raise invalid("output dimensions must be positive")
    if images.shape[1] == 0 or images.shape[2] == 0:
        raise invalid("input image must be of non-zero size")
    # what lies between input and output, too: one of the sizes at a time
    between = max(images.shape[1] * width, height * images.shape[2], height * width)
    allow((len(images), between, images.shape[3]), np.float32, 3)
    return height, width


def _neighbours(scale: _Scale, size: int, count: int) -> tuple[Array, Array, Array]:
    """For each output, the two inputs around it, and how far along it lies."""
    at = scale.places(size, count)
    low = np.floor(at)
    lower = np.maximum(low, 0).astype(np.int64)
    upper = np.minimum(np.ceil(at), size - 1).astype(np.int64)
    return lower, upper, (at - low).astype(np.float32)


@kernel("ResizeBilinear", T=REAL)
def build_resize_bilinear(node: KernelNode) -> Compute:
    from tenfold_kernels.cpu._compiled import sampling

    scale, run = _scale(node), sampling.bilinear()

    def compute(images: Array, size: Array) -> Array:
        height, width = _sizes(images, size)
        wide = contiguous(images.astype(np.float32, copy=False))
        if images.shape[1:3] == (height, width):
            return wide.copy()
        out = np.empty((len(images), height, width, images.shape[3]), np.float32)
        if out.size:
            rows, columns = _neighbours(scale, images.shape[1], height), _neighbours(scale, images.shape[2], width)
            least = _SHARE // (width * images.shape[3]) + 1
            in_parts(lambda a, b: run(wide, *rows, *columns, a, b, out), len(images) * height, least)
        return out

    return compute


@kernel("ResizeBilinearGrad", T=FLOATING)
def build_resize_bilinear_grad(node: KernelNode) -> Compute:
    def weights(scale: _Scale, size: int, count: int) -> tuple[Array, Array]:
        near, far, share = _neighbours(scale, size, count)
        return np.stack([near, far], 1), np.stack([1 - share, share], 1)

    return _resize_grad(node, weights)


def _resize_grad(node: KernelNode, weights: Callable[[_Scale, int, int], tuple[Array, Array]]) -> Compute:
    """(gradient, the image that was resized) → the gradient of the image. `weights` gives (places, shares) of an axis
    for its scale and its sizes before and after.
    """
    from tenfold_kernels.cpu._compiled import sampling

    scale, dtype, run = _scale(node), output_type(node), sampling.spread()

    def compute(gradient: Array, image: Array) -> Array:
        if gradient.ndim != 4 or image.ndim != 4:
            raise invalid(
                f"input_grad and original_image must be 4-dimensional: {shape_text(gradient.shape)}, "
                f"{shape_text(image.shape)}"
            )
        _check_sizes(image)
        out = gradient.astype(np.float32, copy=False)
        for axis in (1, 2):
            out = _spread(run, out, axis, image.shape[axis], *weights(scale, image.shape[axis], gradient.shape[axis]))
        return out.astype(dtype, copy=False)

    return compute


def _check_sizes(image: Array) -> None:
    """Raises InvalidArgumentError for an image without pixels."""
    if 0 in image.shape[1:3]:
        raise invalid(f"original_image must have pixels, got shape {shape_text(image.shape)}")


def _spread(run: Callable[..., None], x: Array, axis: int, size: int, places: Array, weights: Array) -> Array:
    """Adds weight · x at places [count, K] along an axis that becomes `size` long."""
    before, after = math.prod(x.shape[:axis]), math.prod(x.shape[axis + 1 :])
    out = np.empty((before, size, after), np.float32)
    if out.size:
        run(contiguous(x).reshape(before, -1, after), places, weights.astype(np.float32, copy=False), out)
    return out.reshape(*x.shape[:axis], size, *x.shape[axis + 1 :])


def _nearest(scale: _Scale, size: int, count: int) -> Array:
    steps, factor = np.arange(count, dtype=np.float32), scale.factor(size, count)
    at = (steps + _HALF) * factor if scale.half_pixels else steps * factor
    # With aligned corners to the nearest, else to the one before.
    whole = np.floor(at + _HALF) if scale.corners else np.floor(at)
    return as_array(np.clip(whole, 0, size - 1)).astype(np.int64)


@kernel("ResizeNearestNeighbor", T=REAL)
def build_resize_nearest(node: KernelNode) -> Compute:
    scale = _scale(node)

    def compute(images: Array, size: Array) -> Array:
        height, width = _sizes(images, size)
        rows, columns = _nearest(scale, images.shape[1], height), _nearest(scale, images.shape[2], width)
        return np.ascontiguousarray(images[:, rows][:, :, columns])

    return compute


@kernel("ResizeNearestNeighborGrad", T=REAL)
def build_resize_nearest_grad(node: KernelNode) -> Compute:
    """(gradient, size of the image) → the gradient of the image."""
    scale, dtype = _scale(node), output_type(node)
    wide = np.float32 if dtype == np.float16 else dtype

    def compute(gradient: Array, size: Array) -> Array:
        height, width = _sizes(gradient, size)
        rows, columns = _nearest(scale, height, gradient.shape[1]), _nearest(scale, width, gradient.shape[2])
        out = np.zeros((len(gradient), height, width, gradient.shape[3]), wide)
        places: Any = (slice(None), rows[:, None], columns[None, :])
        np.add.at(out, places, gradient)
        return out.astype(dtype, copy=False)

    return compute


#: Steps between two pixels for which bicubic weights are tabulated.
_STEPS = 1024


def _cubic_table(a: float) -> Array:
    """Weights of the pixel at the distance i / _STEPS, and of the one a step further: [_STEPS + 1, 2]."""
    x = np.arange(_STEPS + 1, dtype=np.float32) / np.float32(_STEPS)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = x + 1
    return np.stack([near, ((a * far - 5 * a) * far + 8 * a) * far - 4 * a], axis=1).astype(np.float32)


def _cubic(scale: _Scale, size: int, count: int) -> tuple[Array, Array]:
    """For each output four places and their weights [count, 4]."""
    table = _cubic_table(-0.5 if scale.half_pixels else -0.75)
    at = scale.places(size, count)
    low = np.floor(at)
    offset = np.rint((at - low) * np.float32(_STEPS)).astype(np.int64)
    wanted = low.astype(np.int64)[:, None] + np.arange(-1, 3)
    places = np.clip(wanted, 0, size - 1)
    weights = np.stack(
        [table[offset, 1], table[offset, 0], table[_STEPS - offset, 0], table[_STEPS - offset, 1]], axis=1
    )
    if scale.half_pixels:
        # A pixel outside counts for nothing, and the others make up for it.
        weights = np.where(places == wanted, weights, np.float32(0))
        weights /= weights.sum(axis=1, keepdims=True)
    return places, weights.astype(np.float32)


def _gathered(x: Array, axis: int, places: Array, weights: Array) -> Array:
    shape = [1] * x.ndim
    shape[axis] = -1
    out = np.take(x, places[:, 0], axis=axis) * weights[:, 0].reshape(shape)
    for i in range(1, places.shape[1]):
        out += np.take(x, places[:, i], axis=axis) * weights[:, i].reshape(shape)
    return as_array(out)


@kernel("ResizeBicubic", T=REAL)
def build_resize_bicubic(node: KernelNode) -> Compute:
    scale = _scale(node)

    def compute(images: Array, size: Array) -> Array:
        height, width = _sizes(images, size)
        if not images.shape[3]:
            raise invalid("image must have at least one channel")
        if not images.size:
            return np.empty((len(images), height, width, images.shape[3]), np.float32)
        wide = images.astype(np.float32, copy=False)
        rows = _gathered(wide, 1, *_cubic(scale, images.shape[1], height))
        return _gathered(rows, 2, *_cubic(scale, images.shape[2], width))

    return compute


@kernel("ResizeBicubicGrad", T=FLOATING)
def build_resize_bicubic_grad(node: KernelNode) -> Compute:
    return _resize_grad(node, _cubic)


def _coverage(scale: _Scale, size: int, count: int) -> Array:
    """How much of each input an output covers: [count, size]."""
    factor = scale.factor(size, count) or np.float32(1)  # of one input with aligned corners: all of it
    steps = np.arange(count, dtype=np.float32)
    first, last = steps * factor, (steps + 1) * factor
    weights = np.zeros((count, size), np.float32)
    for i, (a, b) in enumerate(zip(first.tolist(), last.tolist(), strict=True)):
        for at in range(int(np.floor(a)), int(np.ceil(b))):
            weights[i, min(max(at, 0), size - 1)] += min(b, at + 1) - max(a, at)
    return weights / factor


@kernel("ResizeArea", T=REAL)
def build_resize_area(node: KernelNode) -> Compute:
    """The mean of what each output covers."""
    scale = _scale(node)

    def compute(images: Array, size: Array) -> Array:
        height, width = _sizes(images, size)
        if not images.shape[3]:
            raise invalid("image must have at least one channel")
        rows, columns = _coverage(scale, images.shape[1], height), _coverage(scale, images.shape[2], width)

        def means(values: Array) -> Array:
            out = np.einsum("ph,nhwc->npwc", rows, values, optimize=True)
            return np.ascontiguousarray(np.einsum("qw,npwc->npqc", columns, out, optimize=True))

        wide = images.astype(np.float32, copy=False)
        finite = np.isfinite(wide)
        if finite.all():
            return means(wide)
        out = means(np.where(finite, wide, np.float32(0)))
        # What an output does not cover counts for nothing, and zero times inf would be nan.
        for value, where in ((np.nan, np.isnan(wide)), (np.inf, np.isposinf(wide)), (-np.inf, np.isneginf(wide))):
            out[means(where.astype(np.float32)) > 0] += np.float32(value)
        return out

    return compute
