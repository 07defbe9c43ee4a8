"""Unpacks the pixels of a GIF: LZW codes, of one bit more whenever the table of strings is as long as they can count.

N bytes, P pixels. A string is its last byte and the string before it. Follows the GIF89a specification, appendix F.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_kernels.cpu._compiled.compiling import compile_loop

if TYPE_CHECKING:
    from collections.abc import Callable


def _unpack(data_N: Any, least_bits: Any, out_P: Any) -> Any:
    before, last = np.zeros(4096, np.int32), np.zeros(4096, np.uint8)
    length = np.ones(4096, np.int32)
    clear = 1 << least_bits
    for i in range(clear):
        last[i] = i
    count, bits, previous = clear + 2, least_bits + 1, -1
    held: Any = 0
    have, at = 0, 0
    for n in range(data_N.size):
        held |= np.int64(data_N[n]) << have
        have += 8
        while have >= bits:
            code = held & ((1 << bits) - 1)
            held >>= bits
            have -= bits
            if code == clear:
                count, bits, previous = clear + 2, least_bits + 1, -1
                continue
            if code == clear + 1 or at >= out_P.size:
                return at
            if code > count or (code == count and previous < 0) or (previous < 0 and code > clear):
                return -1
            # The string of a code that is about to be made: the one before, and its first byte again.
            source = previous if code == count else code
            end = at + length[source]
            k = source
            for place in range(end - 1, at - 1, -1):
                if place < out_P.size:
                    out_P[place] = last[k]
                first = last[k]
                k = before[k]
            if code == count:
                if end < out_P.size:
                    out_P[end] = first
                end += 1
            if previous >= 0 and count < 4096:
                before[count], last[count], length[count] = previous, first, length[previous] + 1
                count += 1
                if count == 1 << bits and bits < 12:
                    bits += 1
            previous = code
            at = min(end, out_P.size)
    return at


def unpack() -> Callable[..., Any]:
    """(data_N uint8, bits of the smallest codes, out_P uint8) → pixels written, −1 for a code without a string."""
    return compile_loop(_unpack, "r1 n w1", np.uint8, result="n")
