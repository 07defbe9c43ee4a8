"""The complex Schur form of a matrix, and the root of a triangular one: what functions of matrices are computed of.

A = Q T Qᴴ with T upper triangular: first Hessenberg form by reflections, then QR steps with Wilkinson's shift. The root
of T comes column by column (Björck and Hammarling). Used by cpu/linalg_functions.py, in complex128.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tenfold_kernels.cpu._compiled.compiling import compile_loop, inline

if TYPE_CHECKING:
    from collections.abc import Callable

_EPSILON = 2.0**-52
#: QR steps for one eigenvalue; three are usual.
_MOST_STEPS = 60


@inline
def _hessenberg(a_NN, q_NN, v_N):  # type: ignore[no-untyped-def]
    # Reflects each column below its first subdiagonal; q takes the same reflections from the right.
    n = a_NN.shape[0]
    for k in range(n - 2):
        length = 0.0
        for i in range(k + 1, n):
            length += abs(a_NN[i, k]) ** 2
        length = np.sqrt(length)
        if length == 0:
            continue
        first = a_NN[k + 1, k]
        v_N[k + 1] = first + (first / abs(first) if abs(first) > 0 else 1) * length
        size = abs(v_N[k + 1]) ** 2
        for i in range(k + 2, n):
            v_N[i] = a_NN[i, k]
            size += abs(v_N[i]) ** 2
        for j in range(k, n):
            dot = 0j
            for i in range(k + 1, n):
                dot += np.conj(v_N[i]) * a_NN[i, j]
            dot *= 2 / size
            for i in range(k + 1, n):
                a_NN[i, j] -= v_N[i] * dot
        for m in range(2):
            target = a_NN if m == 0 else q_NN
            for i in range(n):
                dot = 0j
                for j in range(k + 1, n):
                    dot += target[i, j] * v_N[j]
                dot *= 2 / size
                for j in range(k + 1, n):
                    target[i, j] -= dot * np.conj(v_N[j])


@inline
def _shift(a_NN, last, step):  # type: ignore[no-untyped-def]
    # The eigenvalue of the last two rows and columns that is nearer to the last element; at times something else, so
    # that no matrix is its own next one.
    if step % 10 == 0:
        return a_NN[last, last] + abs(a_NN[last, last - 1])
    a, b = a_NN[last - 1, last - 1], a_NN[last - 1, last]
    c, d = a_NN[last, last - 1], a_NN[last, last]
    half = (a - d) / 2
    root = np.sqrt(half * half + b * c)
    up, down = d + half + root, d + half - root
    return up if abs(up - d) < abs(down - d) else down


@inline
def _turn(a_NN, q_NN, k, low, last, x, y):  # type: ignore[no-untyped-def]
    # A rotation of rows and columns k and k + 1 that makes y, under x, zero.
    n = a_NN.shape[0]
    size = np.sqrt(abs(x) ** 2 + abs(y) ** 2)
    if size == 0:
        return
    if abs(x) == 0:
        c, s = 0.0, np.conj(y) / size
    else:
        c, s = abs(x) / size, x / abs(x) * np.conj(y) / size
    for j in range(max(k - 1, low), n):
        up, down = a_NN[k, j], a_NN[k + 1, j]
        a_NN[k, j] = c * up + s * down
        a_NN[k + 1, j] = c * down - np.conj(s) * up
    for m in range(2):
        target, rows = (a_NN, min(k + 2, last) + 1) if m == 0 else (q_NN, n)
        for i in range(rows):
            left, right = target[i, k], target[i, k + 1]
            target[i, k] = c * left + np.conj(s) * right
            target[i, k + 1] = c * right - s * left


def _schur(a_NN, q_NN, v_N):  # type: ignore[no-untyped-def]
    # In place: a becomes T and q, the unit matrix, Q. v is scratch. 0 when done, 1 when it did not converge.
    n = a_NN.shape[0]
    _hessenberg(a_NN, q_NN, v_N)
    last, step = n - 1, 0
    while last > 0:
        low = last
        while low > 0:
            near = abs(a_NN[low, low]) + abs(a_NN[low - 1, low - 1])
            if abs(a_NN[low, low - 1]) <= _EPSILON * near:
                a_NN[low, low - 1] = 0
                break
            low -= 1
        if low == last:
            last -= 1
            step = 0
            continue
        step += 1
        if step > _MOST_STEPS:
            return 1
        shift = _shift(a_NN, last, step)
        x, y = a_NN[low, low] - shift, a_NN[low + 1, low]
        for k in range(low, last):
            _turn(a_NN, q_NN, k, low, last, x, y)
            if k > low:
                a_NN[k + 1, k - 1] = 0
            if k + 2 <= last:
                x, y = a_NN[k + 1, k], a_NN[k + 2, k]
    for i in range(n):
        for j in range(i):
            a_NN[i, j] = 0
    return 0


def _root(t_NN, out_NN):  # type: ignore[no-untyped-def]
    # out · out = t, both upper triangular; out is zero before.
    n = t_NN.shape[0]
    for j in range(n):
        out_NN[j, j] = np.sqrt(t_NN[j, j])
        for i in range(j - 1, -1, -1):
            left = t_NN[i, j]
            for k in range(i + 1, j):
                left -= out_NN[i, k] * out_NN[k, j]
            out_NN[i, j] = left / (out_NN[i, i] + out_NN[j, j]) if abs(left) > 0 else 0


def schur() -> Callable[..., int]:
    """(a [N, N] → T, q the unit matrix → Q, scratch [N]) → 0, or 1 where it did not converge"""
    return compile_loop(_schur, "w2 w2 w1", np.complex128, result="n")


def triangular_root() -> Callable[..., None]:
    """(t [N, N], out [N, N] of zeros), upper triangular"""
    return compile_loop(_root, "r2 w2", np.complex128)
