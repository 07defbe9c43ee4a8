"""BMP files that are not compressed, of 8, 24 or 32 bits a pixel, to arrays. Used by image_files.py.

Follows TensorFlow's decode_bmp_op.cc: which fields are read, and what of them is refused.
"""

from __future__ import annotations

import struct

import numpy as np

from tenfold_core.memory_limits import allow
from tenfold_kernels.arrays import Array, invalid

MAGIC = b"BM"
#: As far as the number of bits.
_HEAD = 32
_MOST_PIXELS = (1 << 31) // 8


def decode_bmp(data: bytes, channels: int) -> Array:
    """uint8 [height, width, channels], grey or red first; 0 channels means those of the file.

    Grey becomes a colour where channels are wanted, opacity is complete or left out. Raises InvalidArgumentError for
    what is no such file, or one with other channels.
    """
    if len(data) < _HEAD:
        raise invalid(
            f"Incomplete bmp content, requires at least {_HEAD} bytes to find the header size, width, height, and bpp, "
            f"got {len(data)} bytes"
        )
    offset, width, height, bits = struct.unpack_from("<i4xii2xi", data, 10)
    found = bits // 8
    if channels not in (0, 3, 4, found):
        raise invalid(f"channels attribute {channels} does not match bits per pixel from file {found}")
    if found not in (1, 3, 4):
        raise invalid(f"Number of channels inherent in the image must be 1, 3 or 4, was {found}")
    if width <= 0:
        raise invalid(f"Width must be positive, got {width}")
    if height == 0:
        raise invalid("Height must be nonzero")
    if offset < 0:
        raise invalid(f"header size must be nonnegative, got {offset}")
    rows = abs(height)
    if width * rows >= _MOST_PIXELS:
        raise invalid(f"Total possible pixel bytes must be less than 2^30, got {width} x {rows} pixels")
    # Rows begin at multiples of four bytes.
    stride = (found * width + 3) // 4 * 4
    needed = offset + (rows - 1) * stride + width * found
    if needed > len(data):
        raise invalid(f"Incomplete bmp content, requires at least {needed} bytes, got {len(data)} bytes")
    wanted = channels or found
    allow((rows, width, wanted), np.uint8)
    stored = np.frombuffer(data, np.uint8, needed - offset, offset)
    pixels = np.lib.stride_tricks.as_strided(stored, (rows, width, found), (stride, found, 1))
    if height > 0:
        pixels = pixels[::-1]
    order = ([0] if wanted == 1 else [0, 0, 0]) if found == 1 else [2, 1, 0, 3][: min(found, wanted)]
    made = np.full((rows, width, wanted), 255, np.uint8)
    made[..., : len(order)] = pixels[..., order]
    return made
