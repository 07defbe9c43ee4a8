"""Takes the filters off the rows of a PNG file: each byte is a difference from its neighbours.

H rows, S bytes a row; a row of the file has one byte more in front, the number of its filter. Follows the PNG
specification, section 9.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_kernels.cpu._compiled.compiling import compile_loop

if TYPE_CHECKING:
    from collections.abc import Callable


def _unfilter(rows_HS1, out_HS, apart):  # type: ignore[no-untyped-def]
    # Sums wrap: the outputs are bytes. Left of the first pixel and above the first row, everything is zero. The first
    # `apart` bytes of a row have loops of their own, so that the others need no test.
    S = out_HS.shape[1]
    first = min(apart, S)
    above_S = np.zeros(S, np.uint8)
    for r in range(out_HS.shape[0]):
        kind, line_S, out_S = rows_HS1[r, 0], rows_HS1[r, 1:], out_HS[r]
        if kind == 0:
            for i in range(S):
                out_S[i] = line_S[i]
        elif kind == 1:
            for i in range(first):
                out_S[i] = line_S[i]
            for i in range(apart, S):
                out_S[i] = line_S[i] + out_S[i - apart]
        elif kind == 2:
            for i in range(S):
                out_S[i] = line_S[i] + above_S[i]
        elif kind == 3:
            for i in range(first):
                out_S[i] = line_S[i] + (above_S[i] >> 1)
            for i in range(apart, S):
                out_S[i] = line_S[i] + ((np.int32(out_S[i - apart]) + np.int32(above_S[i])) >> 1)
        elif kind == 4:
            for i in range(first):
                out_S[i] = line_S[i] + above_S[i]
            for i in range(apart, S):
                left, up, corner = np.int32(out_S[i - apart]), np.int32(above_S[i]), np.int32(above_S[i - apart])
                to_left, to_up, to_corner = abs(up - corner), abs(left - corner), abs(left + up - corner - corner)
                guess = left if to_left <= to_up and to_left <= to_corner else up if to_up <= to_corner else corner
                out_S[i] = line_S[i] + guess
        else:
            return r
        above_S = out_S
    return -1


def unfilter() -> Callable[..., Any]:
    """(rows_HS1 uint8, out_HS uint8, apart) → first row with an unknown filter, −1 if there is none.

    `apart`: bytes between a byte and the same one of the pixel to the left.
    """
    return compile_loop(_unfilter, "r2 w2 n", np.uint8, result="n")
