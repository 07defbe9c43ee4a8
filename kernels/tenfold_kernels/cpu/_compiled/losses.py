"""The loops of softmax and softmax cross-entropy around NumPy's exp, which is vectorised where Numba's is not.

B rows, C classes. A kernel calls `shift`, then np.exp in place, then one of the others. Sums may be reassociated
(vectorised). Follows xent_op.h and sparse_xent_op.h.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_kernels.cpu._compiled.compiling import compile_loop
from tenfold_kernels.cpu._compiled.intrinsics import once

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_kernels.arrays import Array

_SUM = frozenset(("reassoc",))


def _shift(logits_BC, out_BC):  # type: ignore[no-untyped-def]
    # out = logits − max of the row. Four running maxima, because one would wait for itself at every element.
    classes = logits_BC.shape[1]
    for b in range(logits_BC.shape[0]):
        t0 = t1 = t2 = t3 = logits_BC[b, 0]
        c = 0
        while c + 4 <= classes:
            t0 = max(t0, logits_BC[b, c])
            t1 = max(t1, logits_BC[b, c + 1])
            t2 = max(t2, logits_BC[b, c + 2])
            t3 = max(t3, logits_BC[b, c + 3])
            c += 4
        while c < classes:
            t0 = max(t0, logits_BC[b, c])
            c += 1
        top = max(max(t0, t1), max(t2, t3))
        for c in range(classes):
            out_BC[b, c] = logits_BC[b, c] - top


def _dense(shifted_BC, labels_BC, loss_B, backprop_BC):  # type: ignore[no-untyped-def]
    # backprop comes in as exp(shifted) and goes out as softmax − labels.
    classes = shifted_BC.shape[1]
    for b in range(shifted_BC.shape[0]):
        total = backprop_BC[b, 0]
        for c in range(1, classes):
            total += backprop_BC[b, c]
        log_total = math.log(total)
        loss = total - total
        for c in range(classes):
            label = labels_BC[b, c]
            loss += label * (log_total - shifted_BC[b, c])
            backprop_BC[b, c] = backprop_BC[b, c] / total - label
        loss_B[b] = loss


def _sparse(shifted_BC, labels_B, loss_B, backprop_BC):  # type: ignore[no-untyped-def]
    # The same for labels that are class numbers. Gives the row of an invalid label, where it ends.
    classes = shifted_BC.shape[1]
    for b in range(shifted_BC.shape[0]):
        total = backprop_BC[b, 0]
        for c in range(1, classes):
            total += backprop_BC[b, c]
        label = once(labels_B, b)
        if label < 0 or label >= classes:
            return b
        loss_B[b] = math.log(total) - shifted_BC[b, label]
        for c in range(classes):
            backprop_BC[b, c] = backprop_BC[b, c] / total
        backprop_BC[b, label] -= 1
    return -1


def _normalize(out_BC):  # type: ignore[no-untyped-def]
    # exp(shifted) → softmax, in place.
    classes = out_BC.shape[1]
    for b in range(out_BC.shape[0]):
        total = out_BC[b, 0]
        for c in range(1, classes):
            total += out_BC[b, c]
        for c in range(classes):
            out_BC[b, c] = out_BC[b, c] / total


def _log_normalize(shifted_BC, exp_BC):  # type: ignore[no-untyped-def]
    # exp(shifted) → shifted − log Σ exp, in exp's place.
    classes = shifted_BC.shape[1]
    for b in range(shifted_BC.shape[0]):
        total = exp_BC[b, 0]
        for c in range(1, classes):
            total += exp_BC[b, c]
        log_total = math.log(total)
        for c in range(classes):
            exp_BC[b, c] = shifted_BC[b, c] - log_total


def _shift_in_numpy(logits_BC: Array, out_BC: Array) -> None:
    np.subtract(logits_BC, logits_BC.max(axis=1, keepdims=True), out=out_BC)


def _dense_in_numpy(shifted_BC: Array, labels_BC: Array, loss_B: Array, backprop_BC: Array) -> None:
    total_B1 = backprop_BC.sum(axis=1, keepdims=True)
    np.sum(labels_BC * (np.log(total_B1) - shifted_BC), axis=1, out=loss_B)
    np.subtract(backprop_BC / total_B1, labels_BC, out=backprop_BC)


def _sparse_in_numpy(shifted_BC: Array, labels_B: Array, loss_B: Array, backprop_BC: Array) -> int:
    bad_B = (labels_B < 0) | (labels_B >= shifted_BC.shape[1])
    if bad_B.any():
        return int(bad_B.argmax())
    total_B = backprop_BC.sum(axis=1)
    rows_B = np.arange(labels_B.size)
    np.subtract(np.log(total_B), shifted_BC[rows_B, labels_B], out=loss_B)
    backprop_BC /= total_B[:, None]
    backprop_BC[rows_B, labels_B] -= 1
    return -1


def _normalize_in_numpy(out_BC: Array) -> None:
    out_BC /= out_BC.sum(axis=1, keepdims=True)


def _log_normalize_in_numpy(shifted_BC: Array, exp_BC: Array) -> None:
    np.subtract(shifted_BC, np.log(exp_BC.sum(axis=1, keepdims=True)), out=exp_BC)


def shift(element: Any) -> Callable[..., None]:
    """(logits_BC, out_BC); C ≥ 1."""
    return compile_loop(_shift, "r2 w2", element, stand_in=_shift_in_numpy)


def dense_xent(element: Any) -> Callable[..., None]:
    """(shifted_BC, labels_BC, loss_B, exp_BC → backprop_BC)"""
    return compile_loop(_dense, "r2 r2 w1 w2", element, fastmath=_SUM, stand_in=_dense_in_numpy)


def sparse_xent(element: Any, label: Any) -> Callable[..., int]:
    """(shifted_BC, labels_B, loss_B, exp_BC → backprop_BC) → the first row with a label out of range, or −1"""
    return compile_loop(_sparse, "r2 i1 w1 w2", element, label, result="n", fastmath=_SUM, stand_in=_sparse_in_numpy)


def normalize(element: Any) -> Callable[..., None]:
    """(exp_BC → softmax_BC)"""
    return compile_loop(_normalize, "w2", element, fastmath=_SUM, stand_in=_normalize_in_numpy)


def log_normalize(element: Any) -> Callable[..., None]:
    """(shifted_BC, exp_BC → logsoftmax_BC)"""
    return compile_loop(_log_normalize, "r2 w2", element, fastmath=_SUM, stand_in=_log_normalize_in_numpy)
