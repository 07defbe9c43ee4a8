"""CRC-32C as TensorFlow's files use it: plain, and masked so that a checksum may itself be checksummed.

Used by records.py and checkpoint/. The polynomial is Castagnoli's; google-crc32c computes it with the processor's own
instruction. The mask follows crc32c.h.
"""

from __future__ import annotations

from typing import Any

import google_crc32c
import numpy as np

_MASK_DELTA = 0xA282EAD8


def extend(crc: int, data: Any) -> int:
    """The checksum of what `crc` is of, followed by `data`: any C-contiguous buffer; nothing is copied."""
    chunk: Any = data if isinstance(data, bytes) else np.frombuffer(data, np.uint8)
    return int(google_crc32c.extend(crc, chunk)) if len(chunk) else crc


def value(data: Any) -> int:
    """The checksum of a buffer."""
    return extend(0, data)


def mask(crc: int) -> int:
    """The form in which a checksum is stored beside the data that it is of."""
    return (((crc >> 15) | (crc << 17)) + _MASK_DELTA) & 0xFFFFFFFF


def unmask(masked: int) -> int:
    """The checksum that `mask` made this of."""
    rotated = (masked - _MASK_DELTA) & 0xFFFFFFFF
    return ((rotated >> 17) | (rotated << 15)) & 0xFFFFFFFF


def masked(data: Any) -> int:
    """`mask` of the checksum of a buffer."""
    return mask(value(data))
