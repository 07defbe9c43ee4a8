"""Picks classes by their weights: what a multinomial draws, for calls of few logits. Used by random.py.

B rows, C classes, S draws a row
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tenfold_kernels.cpu._compiled.compiling import compile_loop
from tenfold_kernels.cpu._compiled.philox import block
from tenfold_kernels.philox import Philox, to_doubles

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_kernels.arrays import Array


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
            bits = (first & np.uint64(0xFFFFF)) << np.uint64(32) | first >> np.uint64(32)
            wanted = np.float64(bits) / 4503599627370496.0 * total
            begin = 0
            end = classes
            while begin < end:
                middle = (begin + end) // 2
                if logits_BC[b, middle] <= wanted:
                    begin = middle + 1
                else:
                    end = middle
            out_BS[b, s] = begin


def _pick_in_numpy(key: int, low: int, high: int, logits_BC: Array, out_BS: Array) -> None:
    made = Philox.of_signed(key, low, high).blocks(np.arange((out_BS.size + 1) // 2, dtype=np.uint64))
    draws_BS = to_doubles(made).reshape(-1)[: out_BS.size].reshape(out_BS.shape)
    finite_BC = np.isfinite(logits_BC)
    top_B1 = np.where(finite_BC, logits_BC, -np.inf).max(1, keepdims=True, initial=-np.inf)
    weights_BC = np.where(finite_BC, np.exp(logits_BC - np.where(np.isfinite(top_B1), top_B1, 0.0)), 0.0)
    np.cumsum(weights_BC, axis=1, out=logits_BC)
    for b, sums_C in enumerate(logits_BC):
        wanted_S = draws_BS[b] * (sums_C[-1] if sums_C.size else 0.0)
        out_BS[b] = np.searchsorted(sums_C, wanted_S, side="right")


def pick() -> Callable[..., None]:
    """(key, low, high, logits_BC float64, out_BS int64): classes, in proportion to exp(logit), drawn by the blocks from
    counter `high`·2⁶⁴ + `low` on; each number a signed int64. Changes logits.
    """
    return compile_loop(_pick, "n n n w2 x2", np.float64, np.int64, stand_in=_pick_in_numpy)
