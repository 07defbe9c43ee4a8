"""The sum of two sparse gradients in one walk over both. Used by data_flow_accumulator.py.

The walk takes the smaller index of the two, or both where they are equal: sorted inputs give the sorted union, others
what TensorFlow's accumulator gives for them (sparse_conditional_accumulator.h).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold_kernels.cpu._compiled.compiling import compile_loop
from tenfold_kernels.cpu._compiled.intrinsics import once
from tenfold_kernels.resources.accumulators import walk_in_step

if TYPE_CHECKING:
    from collections.abc import Callable


def _walk(ours_N, sums_NW, counts_N, theirs_M, values_MW, idx_K, out_KW, times_K):  # type: ignore[no-untyped-def]
    # K is N + M at most; W elements a row.
    width = sums_NW.shape[1]
    i = j = k = 0
    while i < ours_N.size or j < theirs_M.size:
        # each is read once: two numbers that were neither less, nor greater, nor equal would never end
        first = once(ours_N, i) if i < ours_N.size else 0
        second = once(theirs_M, j) if j < theirs_M.size else 0
        mine = j >= theirs_M.size or (i < ours_N.size and first <= second)
        other = i >= ours_N.size or (j < theirs_M.size and second <= first)
        if mine and other:
            idx_K[k] = first
            times_K[k] = counts_N[i] + 1
            for w in range(width):
                out_KW[k, w] = sums_NW[i, w] + values_MW[j, w]
        elif mine:
            idx_K[k] = first
            times_K[k] = counts_N[i]
            for w in range(width):
                out_KW[k, w] = sums_NW[i, w]
        else:
            idx_K[k] = second
            times_K[k] = 1
            for w in range(width):
                out_KW[k, w] = values_MW[j, w]
        i += mine
        j += other
        k += 1
    return k


def walk(element: Any) -> Callable[..., int]:
    """As `walk_in_step` of resources/accumulators.py: how many rows the sum has."""
    return compile_loop(_walk, "i1 r2 i1 i1 r2 x1 w2 x1", element, result="n", stand_in=walk_in_step)
