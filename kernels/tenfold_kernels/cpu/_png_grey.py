"""Colours of a PNG file to grey, as libpng does it for TensorFlow: with the gamma that the file gives.

Where a file says its gamma (gAMA, sRGB), libpng weighs the light that the samples stand for: samples to light, the
weighted sum, and back, by tables whose exponents are whole numbers of 1/100000. Without one it weighs the samples as
they are. Used by _png.py. Follows png_do_rgb_to_gray and png_build_gamma_table of libpng, with TensorFlow's weights.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tenfold_kernels.arrays import Array, as_array

#: libpng's fixed point for 0.299, 0.587 and 0.114.
_WEIGHTS = np.array([9797, 19234, 3737], np.uint32)
#: The unit of a gamma in a file.
_ONE = 100_000
#: What an sRGB chunk says of gamma.
SRGB = 45_455
#: Exponents nearer to 1 than this count as 1.
_SIGNIFICANT = 5_000
#: The gammas that libpng believes.
_LEAST, _MOST = 16, 625_000_000


@dataclass(frozen=True, slots=True)
class Light:
    """What a file says of its samples: gamma (0: nothing) and how many bits of 16 mean something (0: all)."""

    gamma: int
    bits: int


def believed(gamma: int) -> int:
    """The gamma of a gAMA chunk, 0 for one that libpng takes no notice of."""
    return gamma if _LEAST <= gamma <= _MOST else 0


def to_grey(colours: Array, full: int, light: Light, wants_bytes: bool) -> Array:
    """uint16 [..., 3] of `full` bits, 8 or 16 → [..., 1]; `wants_bytes`: the upper byte of 16 bits is what is kept."""
    gamma = light.gamma or _ONE
    back = _reciprocal(gamma)  # the gamma of the screen, which nobody gave
    if not (_is_significant(gamma) or _is_significant(back)):
        # libpng rounds 16 bits and cuts off 8.
        return _weighed(colours, 16384 if full == 16 else 0)
    to_light, from_light = back, _reciprocal(back)
    is_grey = (colours == colours[..., :1]).all(axis=-1, keepdims=True)
    if full == 8:
        light_of, sample_of = _table_8(to_light), _table_8(from_light)
        return as_array(np.where(is_grey, colours[..., :1], sample_of[_weighed(light_of[colours], 16384)]))
    shift = max(0, 16 - light.bits) if light.bits else 0
    if wants_bytes:
        shift = max(shift, 16 - 11)  # 2,048 entries do for bytes
    shift = min(shift, 8)
    light_of, sample_of = _table_16(to_light, shift), _table_16(from_light, shift)
    mixed = sample_of[_weighed(light_of[colours >> shift], 16384) >> shift]
    same = colours[..., :1]
    if wants_bytes:
        # What the two gammas together leave of 1, which is not asked whether it matters.
        same = _nearest_bytes(same, shift, int(gamma * back / _ONE + 0.5))
    elif shift:
        same = _table_16(_ONE, shift)[same >> shift]
    return as_array(np.where(is_grey, same, mixed))


def _weighed(colours: Array, rounding: int) -> Array:
    total = (colours.astype(np.uint32) * _WEIGHTS).sum(axis=-1, keepdims=True, dtype=np.uint32) + np.uint32(rounding)
    return as_array((total >> 15).astype(np.uint16))


def _is_significant(exponent: int) -> bool:
    return abs(exponent - _ONE) > _SIGNIFICANT


def _reciprocal(value: int) -> int:
    """Of a fixed-point number, rounded: of what `believed` accepts, neither 0 nor too large for libpng."""
    return int(1e10 / value + 0.5)


def _table_8(exponent: int) -> Array:
    samples = np.arange(256, dtype=np.float64)
    if not _is_significant(exponent):
        return samples.astype(np.uint16)
    return as_array(np.floor(255 * (samples / 255) ** (exponent / _ONE) + 0.5).astype(np.uint16))


def _table_16(exponent: int, shift: int) -> Array:
    """For samples of which `shift` bits were cut off."""
    most = (1 << (16 - shift)) - 1
    samples = np.arange(most + 1, dtype=np.int64)
    if not _is_significant(exponent):
        return as_array(((samples * 65535 + (most + 1) // 2) // most).astype(np.uint16))
    return as_array(np.floor(65535 * (samples * (1 / most)) ** (exponent / _ONE) + 0.5).astype(np.uint16))


def _nearest_bytes(samples: Array, shift: int, exponent: int) -> Array:
    """Each sample as the nearest byte twice, its bits above `shift` taken."""
    most = (1 << (16 - shift)) - 1
    # The last of the table's entries that a byte gets: that of half a step above it.
    halves = np.floor(65535 * ((np.arange(255) * 257 + 128) / 65535) ** (exponent / _ONE) + 0.5).astype(np.int64)
    ends = (halves * most + 32768) // 65535
    chosen = np.searchsorted(ends, np.arange(most + 1), side="left").astype(np.uint16)
    return as_array((chosen * np.uint16(257))[samples >> shift])
