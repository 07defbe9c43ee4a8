"""Scaling and moving of images [N, H, W, C] by sampling kernels (Lanczos, Gaussian, cubic, …), and the gradient.

Rows and columns apart: for each output the inputs around it, weighted by how far away they lie. The loops are
_compiled/sampling.py's. Outputs are fresh, float. Follows scale_and_translate_op.cc and sampling_kernels.h.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tenfold_core.memory_limits import allow
from tenfold_kernels.arrays import Array, contiguous, invalid, output_type, shape_text, text_attr
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.typesets import REAL

if TYPE_CHECKING:
    from collections.abc import Callable


def _lanczos(radius: float) -> Callable[[Array], Array]:
    def weigh(x: Array) -> Array:
        made: Array = np.sinc(x) * np.sinc(x / radius)
        return np.where(x < radius, made, 0)

    return weigh


def _cubic(x: Array) -> Array:
    near, far = ((1.5 * x - 2.5) * x) * x + 1, ((-0.5 * x + 2.5) * x - 4) * x + 2
    return np.where(x >= 2, 0, np.where(x >= 1, far, near))


def _mitchell(x: Array) -> Array:
    near = ((7 / 6 * x - 2) * x) * x + 8 / 9
    far = ((-7 / 18 * x + 2) * x - 10 / 3) * x + 16 / 9
    return np.where(x >= 2, 0, np.where(x >= 1, far, near))


#: Name → (radius, the weight of a pixel so far away).
_KERNELS: dict[str, tuple[float, Callable[[Array], Array]]] = {
    "lanczos1": (1, _lanczos(1)),
    "lanczos3": (3, _lanczos(3)),
    "lanczos5": (5, _lanczos(5)),
    "gaussian": (1.5, lambda x: np.where(x < 1.5, np.exp(-2 * x * x), 0)),
    "box": (1, lambda x: np.where(x < 0.5, 1.0, np.where(x == 0.5, 0.5, 0.0))),
    "triangle": (1, lambda x: np.where(x < 1, 1 - x, 0)),
    "keyscubic": (2, _cubic),
    "mitchellcubic": (2, _mitchell),
}


class _Sampling:
    """How a node samples an axis."""

    def __init__(self, node: KernelNode) -> None:
        name = text_attr(node, "kernel_type", "lanczos3")
        if name not in _KERNELS:
            raise invalid(f"Unrecognized kernel type: {name}; there are {', '.join(_KERNELS)}")
        self._radius, self._weigh = _KERNELS[name]
        self._smooths = bool(node.attrs["antialias"])

    def spans(self, size: int, count: int, scale: np.float32, move: np.float32) -> tuple[Array, Array]:
        """For each of `count` outputs the inputs around it, of `size`, and their weights: [count, K]."""
        back = np.float32(1) / scale
        at = (np.arange(count, dtype=np.float32) + np.float32(0.5)) * back - back * move
        # An image that shrinks is smoothed: the kernel grows as the pixels that make one.
        wide = max(float(back), 1.0) if self._smooths else 1.0
        reach = np.float32(self._radius * wide)
        if not np.isfinite(at).all() or not np.isfinite(reach):
            raise invalid(f"scale {scale} and translation {move} lead nowhere")
        taps = min(2 * int(np.ceil(reach)) + 1, size)
        allow((count, taps), np.float64, 4)
        first = np.clip(np.ceil(at - reach - np.float32(0.5)), 0, size - 1).astype(np.int64)
        last = np.clip(np.floor(at + reach - np.float32(0.5)), 0, size - 1).astype(np.int64)
        places = first[:, None] + np.arange(taps)
        distance = np.abs((places + np.float32(0.5) - at[:, None]) / np.float32(wide))
        inside = (places <= last[:, None]) & ((at >= 0) & (at <= size))[:, None]
        weights = np.where(inside, self._weigh(distance.astype(np.float64)), 0).astype(np.float32)
        total = weights.sum(axis=1, keepdims=True)
        kept = np.abs(total) >= 1000 * np.finfo(np.float32).tiny
        weights = np.where(kept, weights / np.where(kept, total, 1), 0).astype(np.float32)
        return np.minimum(places, size - 1), weights


def _pair(value: Array, name: str) -> list[np.float32]:
    if value.ndim != 1:
        raise invalid(f"{name} must be 1-dimensional{shape_text(value.shape)}")
    if value.size != 2:
        raise invalid(f"{name} must have two elements{shape_text(value.shape)}")
    return [np.float32(each) for each in value]


def _scales(scale: Array) -> list[np.float32]:
    found = _pair(scale, "scale")
    if not min(found) > 0:
        raise invalid(f"Scale must be greater than zero, got {found}")
    return found


def _check_image(image: Array, name: str) -> None:
    if image.ndim != 4:
        raise invalid(f"{name} must be 4-dimensional{shape_text(image.shape)}")
    if image.shape[3] == 0:
        raise invalid(f"{name} must have at least one channel")
    if 0 in image.shape[1:3]:
        raise invalid(f"{name} must be of non-zero size")


@kernel("ScaleAndTranslate", T=REAL)
def build_scale_and_translate(node: KernelNode) -> Compute:
    """(images, size [2], scale [2], translation [2]) → [N, h, w, C]; black where there is no input."""
    from tenfold_kernels.cpu._compiled import sampling

    kind, gather = _Sampling(node), sampling.gather()

    def compute(images: Array, size: Array, scale: Array, translation: Array) -> Array:
        _check_image(images, "input image")
        if size.shape != (2,):
            raise invalid(f"output_shape_t must be 1-dimensional, of two elements{shape_text(size.shape)}")
        height, width = (int(each) for each in size)
        if height <= 0 or width <= 0:
            raise invalid("output dimensions must be positive")
        batch, rows, columns, channels = images.shape
        allow((batch, height, max(columns, width), channels), np.float32, 3)
        (scale_y, scale_x), (move_y, move_x) = _scales(scale), _pair(translation, "translation")
        between = np.empty((batch, height, columns * channels), np.float32)
        wide = contiguous(images.astype(np.float32, copy=False)).reshape(batch, rows, columns * channels)
        gather(wide, *kind.spans(rows, height, scale_y, move_y), between)
        out = np.empty((batch * height, width, channels), np.float32)
        gather(between.reshape(-1, columns, channels), *kind.spans(columns, width, scale_x, move_x), out)
        return out.reshape(batch, height, width, channels)

    return compute


@kernel("ScaleAndTranslateGrad")
def build_scale_and_translate_grad(node: KernelNode) -> Compute:
    """(gradient, the image, scale, translation) → the gradient of the image."""
    from tenfold_kernels.cpu._compiled import sampling

    kind, spread, dtype = _Sampling(node), sampling.spread(), output_type(node)

    def compute(gradient: Array, image: Array, scale: Array, translation: Array) -> Array:
        _check_image(gradient, "input_grad")
        _check_image(image, "original_image")
        if len(gradient) != len(image) or gradient.shape[3] != image.shape[3]:
            raise invalid(
                f"input_grad {shape_text(gradient.shape)} and original_image {shape_text(image.shape)} do not fit"
            )
        (scale_y, scale_x), (move_y, move_x) = _scales(scale), _pair(translation, "translation")
        batch, height, width, channels = gradient.shape
        rows, columns = image.shape[1:3]
        allow((batch, max(rows, height), columns, channels), np.float32, 2)
        between = np.empty((batch * height, columns, channels), np.float32)
        given = contiguous(gradient).reshape(batch * height, width, channels)
        spread(given, *kind.spans(columns, width, scale_x, move_x), between)
        out = np.empty((batch, rows, columns * channels), np.float32)
        spread(between.reshape(batch, height, columns * channels), *kind.spans(rows, height, scale_y, move_y), out)
        return out.reshape(batch, rows, columns, channels).astype(dtype, copy=False)

    return compute
