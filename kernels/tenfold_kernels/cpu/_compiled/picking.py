"""Picks classes by their weights: what a multinomial draws, for calls of few logits. Used by random.py.

B rows, C classes, S draws a row
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tenfold_kernels.cpu._compiled.compiling import compile_loop

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_kernels.arrays import Array


def _pick(logits_BC, draws_BS, out_BS):  # type: ignore[no-untyped-def]
    # Logits become sums of weights in place; one that is not finite has none.
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
        for s in range(draws_BS.shape[1]):
            wanted = draws_BS[b, s] * total
            low = 0
            high = classes
            while low < high:
                middle = (low + high) // 2
                if logits_BC[b, middle] <= wanted:
                    low = middle + 1
                else:
                    high = middle
            out_BS[b, s] = low


def _pick_in_numpy(logits_BC: Array, draws_BS: Array, out_BS: Array) -> None:
    finite_BC = np.isfinite(logits_BC)
    top_B1 = np.where(finite_BC, logits_BC, -np.inf).max(1, keepdims=True, initial=-np.inf)
    weights_BC = np.where(finite_BC, np.exp(logits_BC - np.where(np.isfinite(top_B1), top_B1, 0.0)), 0.0)
    np.cumsum(weights_BC, axis=1, out=logits_BC)
    for b, sums_C in enumerate(logits_BC):
        wanted_S = draws_BS[b] * (sums_C[-1] if sums_C.size else 0.0)
        out_BS[b] = np.searchsorted(sums_C, wanted_S, side="right")


def pick() -> Callable[..., None]:
    """(logits_BC float64, draws_BS in [0, 1), out_BS int64): classes, in proportion to exp(logit). Changes logits."""
    return compile_loop(_pick, "w2 r2 x2", np.float64, np.int64, stand_in=_pick_in_numpy)
