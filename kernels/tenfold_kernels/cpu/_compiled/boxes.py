"""Loops over boxes (y1, x1, y2, x2): which of them overlap no better one by too much. Used by image_suppression.py.

N boxes, M candidates, best first, K chosen ones. Follows non_max_suppression_op.cc: corners in any order, and a box
without an area overlaps none.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tenfold_kernels.cpu._compiled.compiling import compile_loop, inline

if TYPE_CHECKING:
    from collections.abc import Callable


@inline
def _overlap(boxes_N4, i, j):  # type: ignore[no-untyped-def]
    # Intersection over union.
    top_i, bottom_i = min(boxes_N4[i, 0], boxes_N4[i, 2]), max(boxes_N4[i, 0], boxes_N4[i, 2])
    left_i, right_i = min(boxes_N4[i, 1], boxes_N4[i, 3]), max(boxes_N4[i, 1], boxes_N4[i, 3])
    top_j, bottom_j = min(boxes_N4[j, 0], boxes_N4[j, 2]), max(boxes_N4[j, 0], boxes_N4[j, 2])
    left_j, right_j = min(boxes_N4[j, 1], boxes_N4[j, 3]), max(boxes_N4[j, 1], boxes_N4[j, 3])
    area_i = (bottom_i - top_i) * (right_i - left_i)
    area_j = (bottom_j - top_j) * (right_j - left_j)
    none = area_i - area_i
    if area_i <= 0 or area_j <= 0:
        return none
    high = max(min(bottom_i, bottom_j) - max(top_i, top_j), none)
    wide = max(min(right_i, right_j) - max(left_i, left_j), none)
    return high * wide / (area_i + area_j - high * wide)


def _suppress(boxes_N4, order_M, limit, chosen_K):  # type: ignore[no-untyped-def]
    # Scores that are alike are often those of neighbours: what was chosen last is asked first.
    count = 0
    for m in range(order_M.size):
        if count == chosen_K.size:
            break
        good = True
        for k in range(count - 1, -1, -1):
            if _overlap(boxes_N4, order_M[m], chosen_K[k]) > limit:
                good = False
                break
        if good:
            chosen_K[count] = order_M[m]
            count += 1
    return count


def _suppress_by_table(overlaps_NN, order_M, limit, chosen_K):  # type: ignore[no-untyped-def]
    count = 0
    for m in range(order_M.size):
        if count == chosen_K.size:
            break
        good = True
        for k in range(count - 1, -1, -1):
            if overlaps_NN[order_M[m], chosen_K[k]] > limit:
                good = False
                break
        if good:
            chosen_K[count] = order_M[m]
            count += 1
    return count


def _suppress_softly(boxes_N4, scores_N, least, scale, chosen_K, found_K):  # type: ignore[no-untyped-def]
    # A score that a better box lowers goes back among the others; it is looked at again when it is the best there.
    seen_N = np.zeros(scores_N.size, np.int64)
    waits_N = np.zeros(scores_N.size, np.bool_)
    for i in range(scores_N.size):
        waits_N[i] = scores_N[i] > least
    count = 0
    while count < chosen_K.size:
        best = -1
        for i in range(scores_N.size):
            if waits_N[i] and (best < 0 or scores_N[i] > scores_N[best]):
                best = i
        if best < 0:
            break
        before = scores_N[best]
        for k in range(count - 1, seen_N[best] - 1, -1):
            shared = _overlap(boxes_N4, best, chosen_K[k])
            scores_N[best] *= math.exp(scale * shared * shared)
            if scores_N[best] <= least:
                break
        seen_N[best] = count
        if scores_N[best] == before:
            chosen_K[count], found_K[count] = best, before
            count += 1
            waits_N[best] = False
        elif not scores_N[best] > least:
            waits_N[best] = False
    return count


def suppress() -> Callable[..., int]:
    """(boxes_N4 float32, order_M int64, most overlap, chosen_K int64) → how many were chosen."""
    return compile_loop(_suppress, "r2 i1 s x1", np.float32, result="n")


def suppress_by_table() -> Callable[..., int]:
    """(overlaps_NN float32, order_M int64, most overlap, chosen_K int64) → how many were chosen."""
    return compile_loop(_suppress_by_table, "r2 i1 s x1", np.float32, result="n")


def suppress_softly() -> Callable[..., int]:
    """(boxes_N4, scores_N, least score, −½ / sigma, chosen_K int64, found_K) → how many.

    float32. The scores are changed.
    """
    return compile_loop(_suppress_softly, "r2 w1 s s x1 w1", np.float32, result="n")
