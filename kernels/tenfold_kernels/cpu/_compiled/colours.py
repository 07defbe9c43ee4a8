"""Loops over the colours of pixels: contrast, hue and saturation. N images of P pixels, C channels; float32.

Hue in sixths of the circle, 0 is red. Follows adjust_contrast_op.h, adjust_hsv_gpu.cu.h and colorspace_op.h.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_kernels.cpu._compiled.compiling import compile_loop, inline

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_kernels.arrays import Array


def _contrast(images_NPC, factor, out_NPC):  # type: ignore[no-untyped-def]
    channels = images_NPC.shape[2]
    means, sums = np.empty(channels, np.float32), np.empty(channels, np.float64)
    for n in range(images_NPC.shape[0]):
        for c in range(channels):
            sums[c] = 0
        for p in range(images_NPC.shape[1]):
            for c in range(channels):
                sums[c] += images_NPC[n, p, c]
        for c in range(channels):
            means[c] = sums[c] / images_NPC.shape[1]
        for p in range(images_NPC.shape[1]):
            for c in range(channels):
                out_NPC[n, p, c] = (images_NPC[n, p, c] - means[c]) * factor + means[c]


def _contrast_in_numpy(images_NPC: Array, factor: Any, out_NPC: Array) -> None:
    means = images_NPC.mean(axis=1, keepdims=True, dtype=np.float64).astype(np.float32)
    out_NPC[...] = (images_NPC - means) * factor + means


@inline
def _hue_of(red, green, blue, value, spread):  # type: ignore[no-untyped-def]
    # In sixths; grey is red.
    if spread <= 0:
        return spread - spread
    if red == value:
        sixths = (green - blue) / spread
    elif green == value:
        sixths = (blue - red) / spread + np.float32(2)
    else:
        sixths = (red - green) / spread + np.float32(4)
    return sixths + np.float32(6) if sixths < 0 else sixths


@inline
def _part(distance):  # type: ignore[no-untyped-def]
    return min(max(distance, np.float32(0)), np.float32(1))


@inline
def _paint(out_P3, p, sixths, saturation, value):  # type: ignore[no-untyped-def]
    one = np.float32(1)
    red = _part(abs(sixths - np.float32(3)) - one)
    green = _part(np.float32(2) - abs(sixths - np.float32(2)))
    blue = _part(np.float32(2) - abs(sixths - np.float32(4)))
    out_P3[p, 0] = ((one - saturation) + saturation * red) * value
    out_P3[p, 1] = ((one - saturation) + saturation * green) * value
    out_P3[p, 2] = ((one - saturation) + saturation * blue) * value


def _hue(rgb_P3, delta, first, last, out_P3):  # type: ignore[no-untyped-def]
    for p in range(first, last):
        red, green, blue = rgb_P3[p, 0], rgb_P3[p, 1], rgb_P3[p, 2]
        value, least = max(red, max(green, blue)), min(red, min(green, blue))
        spread = value - least
        saturation = spread / value if value > 0 else np.float32(0)
        turns = _hue_of(red, green, blue, value, spread) / np.float32(6) + delta
        turns = turns - np.float32(math.floor(turns))
        _paint(out_P3, p, turns * np.float32(6), saturation, value)


def _saturation(rgb_P3, scale, first, last, out_P3):  # type: ignore[no-untyped-def]
    for p in range(first, last):
        red, green, blue = rgb_P3[p, 0], rgb_P3[p, 1], rgb_P3[p, 2]
        value, least = max(red, max(green, blue)), min(red, min(green, blue))
        spread = value - least
        saturation = _part(spread / value * scale) if value > 0 else np.float32(0)
        _paint(out_P3, p, _hue_of(red, green, blue, value, spread), saturation, value)


def contrast() -> Callable[..., None]:
    """(images_NPC, factor, out_NPC)"""
    return compile_loop(_contrast, "r3 s w3", np.float32, stand_in=_contrast_in_numpy)


def hue() -> Callable[..., None]:
    """(rgb_P3, turns of the circle, first, last, out_P3)"""
    return compile_loop(_hue, "r2 s n n w2", np.float32)


def saturation() -> Callable[..., None]:
    """(rgb_P3, factor, first, last, out_P3)"""
    return compile_loop(_saturation, "r2 s n n w2", np.float32)
