"""The two ways to solve tridiagonal systems, for M equations and K right sides at a time.

Rows of `diagonals_3M`: above the diagonal (the last counts for nothing), the diagonal, below it (the first counts for
nothing). Follows tridiagonal_solve_op.cc: Gauss with pivots among neighbours, and Thomas without. Used by
cpu/linalg_tridiagonal.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold_kernels.cpu._compiled.compiling import compile_loop

if TYPE_CHECKING:
    from collections.abc import Callable


def _pivoting(diagonals_3M, right_MK, u_M3, out_MK):  # type: ignore[no-untyped-def]
    # u: the rows of U, whose last two elements lie beside the diagonal. 0, or 1 where a pivot is zero.
    count, sides = right_MK.shape
    u_M3[0, 0], u_M3[0, 1], u_M3[0, 2] = diagonals_3M[1, 0], diagonals_3M[0, 0], 0
    for k in range(sides):
        out_MK[0, k] = right_MK[0, k]
    for i in range(count - 1):
        below, next_, beyond = diagonals_3M[2, i + 1], diagonals_3M[1, i + 1], diagonals_3M[0, i + 1]
        if i == count - 2:
            beyond *= 0
        if abs(u_M3[i, 0]) >= abs(below):
            if abs(u_M3[i, 0]) == 0:
                return 1
            factor = below / u_M3[i, 0]
            u_M3[i + 1, 0], u_M3[i + 1, 1], u_M3[i, 2] = next_ - factor * u_M3[i, 1], beyond, 0
            for k in range(sides):
                out_MK[i + 1, k] = right_MK[i + 1, k] - factor * out_MK[i, k]
        else:
            factor = u_M3[i, 0] / below
            u_M3[i + 1, 0], u_M3[i + 1, 1] = u_M3[i, 1] - factor * next_, -factor * beyond
            u_M3[i, 0], u_M3[i, 1], u_M3[i, 2] = below, next_, beyond
            for k in range(sides):
                before = out_MK[i, k]
                out_MK[i, k] = right_MK[i + 1, k]
                out_MK[i + 1, k] = before - factor * right_MK[i + 1, k]
    if abs(u_M3[count - 1, 0]) == 0:
        return 1
    for i in range(count - 1, -1, -1):
        for k in range(sides):
            value = out_MK[i, k]
            if i < count - 1:
                value -= u_M3[i, 1] * out_MK[i + 1, k]
            if i < count - 2:
                value -= u_M3[i, 2] * out_MK[i + 2, k]
            out_MK[i, k] = value / u_M3[i, 0]
    return 0


def _thomas(diagonals_3M, right_MK, u_M3, out_MK):  # type: ignore[no-untyped-def]
    # 0, or 1 where there would have to be a pivot.
    count, sides = right_MK.shape
    for i in range(count):
        divisor = diagonals_3M[1, i]
        if i:
            divisor -= diagonals_3M[2, i] * u_M3[i - 1, 0]
        if abs(divisor) == 0:
            return 1
        u_M3[i, 0] = diagonals_3M[0, i] / divisor
        for k in range(sides):
            value = right_MK[i, k]
            if i:
                value -= diagonals_3M[2, i] * out_MK[i - 1, k]
            out_MK[i, k] = value / divisor
    for i in range(count - 2, -1, -1):
        for k in range(sides):
            out_MK[i, k] -= u_M3[i, 0] * out_MK[i + 1, k]
    return 0


def solve(element: Any, pivoting: bool) -> Callable[..., int]:
    """(diagonals [3, M], right sides [M, K], scratch [M, 3], out [M, K]) → 0, or 1 where it cannot be solved so"""
    return compile_loop(_pivoting if pivoting else _thomas, "r2 r2 w2 w2", element, result="n")
