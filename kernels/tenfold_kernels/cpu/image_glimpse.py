"""Glimpses: a window out of each image of a batch; what lies outside of the image is noise. Outputs are fresh.

Follows attention_ops.cc and eigen_attention.h. The noise comes from NumPy: TensorFlow's is not told by a seed, either.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold_core.memory_limits import allow
from tenfold_kernels.arrays import Array, invalid, shape_text, text_attr
from tenfold_kernels.registry import Compute, KernelNode, kernel

_GAUSSIAN = ("", "gaussian", "uniform")


@kernel("ExtractGlimpse", "ExtractGlimpseV2")
def build_extract_glimpse(node: KernelNode) -> Compute:
    """(images [N, H, W, C], size [2], offsets [N, 2] of y and x) → [N, h, w, C]."""
    uniform, noise = bool(node.attrs["uniform_noise"]), text_attr(node, "noise", "uniform")
    centred, normalized = bool(node.attrs["centered"]), bool(node.attrs["normalized"])
    if noise not in (*_GAUSSIAN, "zero"):
        raise invalid(f"noise should be uniform, gaussian or zero, got {noise!r}")
    # V1 takes each offset for the middle of the glimpse, V2 others than these for its corner.
    halves = node.op == "ExtractGlimpse" or (centred and normalized)
    chance = np.random.default_rng()

    def compute(images: Array, size: Array, offsets: Array) -> Array:
        if images.ndim != 4:
            raise invalid(f"input must be 4-dimensional (batch_size, height, width, depth){shape_text(images.shape)}")
        if size.shape != (2,):
            raise invalid(f"input must be a vector of size 2 (height, width){shape_text(size.shape)}")
        height, width = (int(each) for each in size)
        if height <= 0 or width <= 0:
            raise invalid(f"the size of a glimpse must be positive, got {height} x {width}")
        if offsets.shape != (len(images), 2):
            raise invalid(f"input must be a matrix of an offset (y, x) an image, got {shape_text(offsets.shape)}")
        rows, columns, channels = images.shape[1:]
        allow((len(images), height, width, channels), np.float32)
        if images.size == 0:
            return np.zeros((len(images), height, width, channels), np.float32)
        out = np.empty((len(images), height, width, channels), np.float32)
        sides, glimpse = np.array([rows, columns], np.float32), np.array([height, width], np.float32)
        corners: Any = offsets.astype(np.float32)
        if normalized:
            corners = corners * sides
        if centred:
            # V1 halves offsets of pixels, too
            corners = (corners / 2 if normalized or halves else corners) + sides / 2
        if halves:
            corners = corners - glimpse / 2
        limit = float(1 << 30)
        places = np.trunc(np.nan_to_num(corners, nan=limit).clip(-limit, limit)).astype(int).tolist()
        for n, (top, left) in enumerate(places):
            _cut(images[n], out[n], top, left, lambda part, image: _noise(part, image, chance, uniform, noise))
        return out

    return compute


def _cut(image: Array, out: Array, top: int, left: int, fill: Any) -> None:
    (height, width), (rows, columns) = out.shape[:2], image.shape[:2]
    first, last = max(top, 0), min(top + height, rows)
    start, end = max(left, 0), min(left + width, columns)
    if (last - first, end - start) != (height, width):
        fill(out, image)
    if last > first and end > start:
        out[first - top : last - top, start - left : end - left] = image[first:last, start:end]


def _noise(out: Array, image: Array, chance: np.random.Generator, uniform: bool, kind: str) -> None:
    """Fills `out` with noise like the image's pixels: evenly between the least and the most, or about their mean."""
    if uniform:
        low, high = image.min(), image.max()
        out[...] = low + chance.random(out.shape, np.float32) * (high - low)
    elif kind == "zero":
        out[...] = 0
    else:
        mean, deviation = image.mean(axis=(0, 1)), image.std(axis=(0, 1))
        drawn = mean + chance.standard_normal(out.shape, np.float32) * deviation
        out[...] = np.clip(drawn, image.min(axis=(0, 1)), image.max(axis=(0, 1)))
