"""Sums over the alignments of labels with steps, and the gradient of their logarithm: the loops of CTC losses.

T steps, B batch, L classes, U labels with blanks between them. Sums are kept as logarithms. Used by cpu/nn_ctc.py,
whose `_alignments_in_numpy` does the same for all of a batch at once until these loops are loaded. Follows the Graves
thesis, sections 7.3 and 7.4.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_kernels.cpu._compiled.compiling import compile_loop, inline

if TYPE_CHECKING:
    from collections.abc import Callable

_NOTHING = -math.inf


@inline
def _sum_of_three(a, b, c):  # type: ignore[no-untyped-def]
    # log(exp(a) + exp(b) + exp(c)); an exponential of nothing is not computed.
    top = max(a, max(b, c))
    if top == _NOTHING or top != top:
        return top
    total = 0.0
    if a != _NOTHING:
        total += math.exp(a - top)
    if b != _NOTHING:
        total += math.exp(b - top)
    if c != _NOTHING:
        total += math.exp(c - top)
    return top + math.log(total)


def _alignments(log_y, said, ends, lengths, merges, forward, backward, log_p, gradient):  # type: ignore[no-untyped-def]
    # gradient comes in as exp(log_y). forward and backward [T, U] are scratch.
    blank = log_y.shape[2] - 1
    for b in range(said.shape[0]):
        end, steps = ends[b], lengths[b]
        for t in range(steps):
            for u in range(end):
                if t == 0:
                    total = 0.0 if u < 2 else _NOTHING
                else:
                    is_label = said[b, u] != blank
                    stays = forward[t - 1, u] if merges or not is_label else _NOTHING
                    moves = forward[t - 1, u - 1] if u > 0 else _NOTHING
                    skips = _NOTHING
                    if is_label and u > 1 and (not merges or said[b, u] != said[b, u - 2]):
                        skips = forward[t - 1, u - 2]
                    total = _sum_of_three(stays, moves, skips)
                forward[t, u] = total + log_y[t, b, said[b, u]]
        for t in range(steps - 1, -1, -1):
            for u in range(end):
                if t == steps - 1:
                    backward[t, u] = 0.0 if u >= end - 2 else _NOTHING
                    continue
                is_label = said[b, u] != blank
                stays = moves = skips = _NOTHING
                if merges or not is_label:
                    stays = backward[t + 1, u] + log_y[t + 1, b, said[b, u]]
                if u + 1 < end:
                    moves = backward[t + 1, u + 1] + log_y[t + 1, b, said[b, u + 1]]
                if is_label and u + 2 < end and (not merges or said[b, u] != said[b, u + 2]):
                    skips = backward[t + 1, u + 2] + log_y[t + 1, b, said[b, u + 2]]
                backward[t, u] = _sum_of_three(stays, moves, skips)
        whole = _NOTHING
        for u in range(end):
            whole = _sum_of_three(whole, forward[0, u] + backward[0, u], _NOTHING)
        log_p[b] = whole
        for t in range(gradient.shape[0]):
            if t >= steps:
                for c in range(gradient.shape[2]):
                    gradient[t, b, c] = 0.0
            elif math.isfinite(whole):
                for u in range(end):
                    gradient[t, b, said[b, u]] -= math.exp(forward[t, u] + backward[t, u] - whole)


def alignments(stand_in: Callable[..., Any]) -> Callable[..., Any]:
    """(log_y [T, B, L], said [B, U], ends [B], lengths [B], merges, forward [T, U], backward [T, U], log_p [B],
    gradient [T, B, L]): log_p is filled in, and gradient, exp(log_y), becomes the loss's.

    U is `ends` of a row at least, which counts its labels and the blanks around them; 1 ≤ lengths ≤ T.
    """
    return compile_loop(_alignments, "r3 i2 i1 i1 b w2 w2 w1 w3", np.float64, stand_in=stand_in)
