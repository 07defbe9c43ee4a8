"""Picks classes by their weights: what a multinomial draws, for calls of few logits. Used by random.py.

B rows, C classes, S draws a row
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_kernels.cpu._compiled.compiling import compile_loop
from tenfold_kernels.cpu._compiled.philox import block, to_double

if TYPE_CHECKING:
    from collections.abc import Callable


def _pick(key, low, high, logits_BC, out_BS):  # type: ignore[no-untyped-def]
    # Logits become sums of weights in place; one that is not finite has none. A block is two draws.
    drawn = 0
    first = np.uint64(0)
    second = np.uint64(0)
    classes = logits_BC.shape[1]
    for b in range(logits_BC.shape[0]):
        top = -math.inf
        for c in range(classes):
            if math.isfinite(logits_BC[b, c]) and logits_BC[b, c] > top:
                top = logits_BC[b, c]
        total = 0.0
        for c in range(classes):
            if math.isfinite(logits_BC[b, c]):
                total += math.exp(logits_BC[b, c] - top)
            logits_BC[b, c] = total
        for s in range(out_BS.shape[1]):
            if drawn % 2 == 0:
                first, second = block(key, low, high, drawn // 2)
            else:
                first = second
            drawn += 1
            wanted = to_double(first) * total
            begin = 0
            end = classes
            while begin < end:
                middle = (begin + end) // 2
                if logits_BC[b, middle] <= wanted:
                    begin = middle + 1
                else:
                    end = middle
            out_BS[b, s] = begin


def pick(stand_in: Callable[..., Any]) -> Callable[..., None]:
    """(key, low, high, logits_BC float64, out_BS int64): classes, in proportion to exp(logit), drawn by the blocks from
    counter `high`·2⁶⁴ + `low` on; each number a signed int64. Changes logits.
    """
    return compile_loop(_pick, "n n n w2 x2", np.float64, np.int64, stand_in=stand_in)
