"""Philox 4x32-10, a block at a time, written once: a plain Python function of numbers, as those of scalar.py.

cpu/_compiled/philox.py compiles it for the CPU, cuda/_code/random.py for a GPU. philox.py has it for whole arrays.
"""

from __future__ import annotations

import numpy as np


def block(key, low, high, index):  # type: ignore[no-untyped-def]
    """The two 64-bit halves of a block, each with its first word below: `index` blocks on from `high`·2⁶⁴ + `low`."""
    # All numbers are 64 bits, as NumPy's twin has them.
    mask = np.uint64(0xFFFFFFFF)
    shift = np.uint64(32)
    first = np.uint64(low)
    lower = first + np.uint64(index)
    upper = np.uint64(high)
    if lower < first:
        upper += np.uint64(1)
    c0 = lower & mask
    c1 = lower >> shift
    c2 = upper & mask
    c3 = upper >> shift
    k0 = np.uint64(key) & mask
    k1 = np.uint64(key) >> shift
    for _ in range(10):
        p0 = np.uint64(0xD2511F53) * c0
        p1 = np.uint64(0xCD9E8D57) * c2
        c0 = (p1 >> shift) ^ c1 ^ k0
        c1 = p1 & mask
        c2 = (p0 >> shift) ^ c3 ^ k1
        c3 = p0 & mask
        k0 = (k0 + np.uint64(0x9E3779B9)) & mask
        k1 = (k1 + np.uint64(0xBB67AE85)) & mask
    return c0 | c1 << shift, c2 | c3 << shift
