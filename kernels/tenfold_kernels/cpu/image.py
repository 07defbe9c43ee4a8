"""Images [N, H, W, C]: contrast, hue, saturation, colour spaces. Sizes are image_resize.py's, crops image_crop.py's.

Colours are computed in float; the loops are _compiled/colours.py's. Outputs are fresh. Follows adjust_*_op.cc and
colorspace_op.h.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tenfold_kernels.arrays import Array, contiguous, invalid, output_type, shape_text
from tenfold_kernels.parallel import in_parts
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.typesets import FLOATING

if TYPE_CHECKING:
    from collections.abc import Callable

#: Pixels below which the work is not shared among threads.
_SHARE = 1 << 14


def _checked(images: Array, amount: Array, name: str) -> Array:
    """The images as contiguous float32. Raises InvalidArgumentError for other ranks."""
    if images.ndim < 3:
        raise invalid(f"input must be at least 3-D, got shape{shape_text(images.shape)}")
    if amount.ndim:
        raise invalid(f"{name} must be scalar: {shape_text(amount.shape)}")
    return contiguous(images.astype(np.float32, copy=False))


def _with_contrast(run: Callable[..., None], images: Array, factor: Array) -> Array:
    wide = _checked(images, factor, "contrast_factor")
    out = np.empty(wide.shape, np.float32)
    if out.size:
        shape = -1, wide.shape[-3] * wide.shape[-2], wide.shape[-1]
        run(wide.reshape(shape), np.float32(factor), out.reshape(shape))
    return out


@kernel("AdjustContrastv2", T=FLOATING)
def build_adjust_contrast(node: KernelNode) -> Compute:
    """(x − mean) · factor + mean, the mean of each channel of each image."""
    from tenfold_kernels.cpu._compiled import colours

    dtype, run = output_type(node), colours.contrast()

    def compute(images: Array, factor: Array) -> Array:
        return _with_contrast(run, images, factor).astype(dtype, copy=False)

    return compute


@kernel("AdjustContrast")
def build_adjust_contrast_within(node: KernelNode) -> Compute:
    """The same for any numbers, within bounds; in TensorFlow's graphs of version 1."""
    from tenfold_kernels.cpu._compiled import colours

    run = colours.contrast()

    def compute(images: Array, factor: Array, least: Array, most: Array) -> Array:
        for name, value in (("min_value", least), ("max_value", most)):
            if value.ndim:
                raise invalid(f"{name} must be scalar: {shape_text(value.shape)}")
        return np.clip(_with_contrast(run, images, factor), least, most)

    return compute


def _channels(images: Array) -> Array:
    if images.ndim < 1 or images.shape[-1] != 3:
        raise invalid(f"input must have 3 channels but instead has {images.shape[-1] if images.ndim else 0} channels.")
    return images


def _to_hsv(rgb: Array) -> Array:
    """Hue, saturation, value, each in 0 … 1; grey has hue and saturation 0."""
    t = rgb.dtype.type
    red, green, blue = np.moveaxis(rgb, -1, 0)
    value = rgb.max(axis=-1)
    spread = value - rgb.min(axis=-1)
    saturation = np.where(value > 0, spread / value, t(0))
    scale = t(1) / (t(6) * spread)
    hue = np.where(
        red == value,
        scale * (green - blue),
        np.where(green == value, scale * (blue - red) + t(2 / 6), scale * (red - green) + t(4 / 6)),
    )
    hue = np.where(spread <= 0, t(0), hue)
    return np.stack([np.where(hue < 0, hue + t(1), hue), saturation, value], axis=-1)


def _to_rgb(hsv: Array) -> Array:
    hue, saturation, value = np.moveaxis(hsv, -1, 0)
    sixths = hue * hsv.dtype.type(6)
    parts = [np.abs(sixths - 3) - 1, 2 - np.abs(sixths - 2), 2 - np.abs(sixths - 4)]
    return np.stack([((1 - saturation) + saturation * np.clip(p, 0, 1)) * value for p in parts], axis=-1)


@kernel("RGBToHSV", "HSVToRGB", T=FLOATING)
def build_colour_space(node: KernelNode) -> Compute:
    convert = _to_hsv if node.op == "RGBToHSV" else _to_rgb
    dtype = output_type(node)
    wide = np.float32 if dtype == np.float16 else dtype
    return lambda images: convert(_channels(images).astype(wide, copy=False)).astype(dtype, copy=False)


@kernel("AdjustHue", "AdjustSaturation", T=FLOATING)
def build_adjust_colour(node: KernelNode) -> Compute:
    """Hue moved round the circle by delta, or saturation times scale, kept within 0 … 1."""
    from tenfold_kernels.cpu._compiled import colours

    hue, dtype = node.op == "AdjustHue", output_type(node)
    run = colours.hue() if hue else colours.saturation()

    def compute(images: Array, amount: Array) -> Array:
        wide = _channels(_checked(images, amount, "delta" if hue else "scale"))
        out = np.empty(wide.shape, np.float32)
        flat, target, value = wide.reshape(-1, 3), out.reshape(-1, 3), np.float32(amount)
        in_parts(lambda a, b: run(flat, value, a, b, target), len(flat), _SHARE)
        return out.astype(dtype, copy=False)

    return compute
