"""Bodies of softmax, log-softmax and the two cross-entropies. B rows, C classes; a block takes a row at a time.

A row is read twice: once for its largest logit and Σ exp(logit − largest), which each thread corrects as it meets a
larger one (Milakov and Gimelshein, 2018), once for what is written. Sums of the threads meet in a tree, so the result
is the same each time. Half is computed as float32. `part` is shared memory, two numbers a thread. See cuda/nn_loss.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba import cuda, types

from tenfold_kernels.cuda._code.device import device, element_of, exp, log, number_of
from tenfold_kernels.cuda.narrow_text import wide

if TYPE_CHECKING:
    from collections.abc import Callable


def _statistics(dtype: np.dtype[Any]) -> Any:
    """Of logits of that type."""
    number = number_of(dtype)

    @device
    def statistics(part, logits, base, stride, classes, lowest, zero, one):  # type: ignore[no-untyped-def]
        # (the largest, Σ exp(logit − largest)) of a row, which is nan where the largest is infinite.
        t = cuda.threadIdx.x
        top = lowest
        total = zero
        for c in range(t, classes, cuda.blockDim.x):
            x = number(logits[base + c * stride])
            if x > top:
                total = total * exp(top - x) + one
                top = x
            elif x == top:
                total += one
            else:
                total += exp(x - top)
        part[2 * t] = top
        part[2 * t + 1] = total
        cuda.syncthreads()
        half = cuda.blockDim.x // 2
        while half > 0:
            if t < half:
                mine = 2 * t
                other = 2 * (t + half)
                a = part[mine]
                b = part[other]
                if a == b:
                    part[mine + 1] += part[other + 1]
                elif a > b:
                    part[mine + 1] += part[other + 1] * exp(b - a)
                else:
                    part[mine] = b
                    part[mine + 1] = part[mine + 1] * exp(a - b) + part[other + 1]
            cuda.syncthreads()
            half = half // 2
        top = part[0]
        total = part[1] + (top - top)
        cuda.syncthreads()
        return top, total

    return statistics


@device
def _sum(part, value):  # type: ignore[no-untyped-def]
    # Σ value of the block's threads, for the first one.
    t = cuda.threadIdx.x
    part[t] = value
    cuda.syncthreads()
    half = cuda.blockDim.x // 2
    while half > 0:
        if t < half:
            part[t] += part[t + half]
        cuda.syncthreads()
        half = half // 2
    total = part[0]
    cuda.syncthreads()
    return total


def _constants(dtype: np.dtype[Any]) -> tuple[Any, Any, Any, Any]:
    """(Numba's type, −∞, 0, 1) of what is computed with"""
    number = wide(dtype)
    return getattr(types, number.name), number.type(-np.inf), number.type(0), number.type(1)


def softmax(dtype: np.dtype[Any], is_log: bool) -> Callable[..., None]:
    """(B, C, logits_BC, out_BC)"""
    kind, lowest, zero, one = _constants(dtype)
    statistics, number, element = _statistics(dtype), number_of(dtype), element_of(dtype)

    def run(rows, classes, logits_BC, out_BC):  # type: ignore[no-untyped-def]
        part = cuda.shared.array(0, kind)
        for b in range(cuda.blockIdx.x, rows, cuda.gridDim.x):
            base = b * classes
            top, total = statistics(part, logits_BC, base, 1, classes, lowest, zero, one)
            log_total = log(total)
            for c in range(cuda.threadIdx.x, classes, cuda.blockDim.x):
                x = number(logits_BC[base + c]) - top
                if is_log:
                    out_BC[base + c] = element(x - log_total)
                else:
                    out_BC[base + c] = element(exp(x) / total)

    return run


def dense_xent(dtype: np.dtype[Any]) -> Callable[..., None]:
    """(B, C, strides of logits and of labels by row and by class, logits, labels, loss_B, backprop_BC)"""
    kind, lowest, zero, one = _constants(dtype)
    statistics, number, element = _statistics(dtype), number_of(dtype), element_of(dtype)

    def run(rows, classes, x_row, x_class, y_row, y_class, logits, labels, loss_B, backprop_BC):  # type: ignore[no-untyped-def]
        part = cuda.shared.array(0, kind)
        for b in range(cuda.blockIdx.x, rows, cuda.gridDim.x):
            top, total = statistics(part, logits, b * x_row, x_class, classes, lowest, zero, one)
            log_total = log(total)
            loss = zero
            for c in range(cuda.threadIdx.x, classes, cuda.blockDim.x):
                x = number(logits[b * x_row + c * x_class]) - top
                label = number(labels[b * y_row + c * y_class])
                loss += label * (log_total - x)
                backprop_BC[b * classes + c] = element(exp(x) / total - label)
            loss = _sum(part, loss)
            if cuda.threadIdx.x == 0:
                loss_B[b] = element(loss)

    return run


def sparse_xent(dtype: np.dtype[Any]) -> Callable[..., None]:
    """(B, C, logits_BC, labels_B, loss_B, backprop_BC); a row whose label is no class gets nan."""
    kind, lowest, zero, one = _constants(dtype)
    statistics, number, element = _statistics(dtype), number_of(dtype), element_of(dtype)
    nan = wide(dtype).type(np.nan)

    def run(rows, classes, logits_BC, labels_B, loss_B, backprop_BC):  # type: ignore[no-untyped-def]
        part = cuda.shared.array(0, kind)
        for b in range(cuda.blockIdx.x, rows, cuda.gridDim.x):
            base = b * classes
            top, total = statistics(part, logits_BC, base, 1, classes, lowest, zero, one)
            label = labels_B[b]
            is_class = label >= 0 and label < classes
            for c in range(cuda.threadIdx.x, classes, cuda.blockDim.x):
                share = exp(number(logits_BC[base + c]) - top) / total
                if c == label:
                    share = share - one
                backprop_BC[base + c] = element(share if is_class else nan)
            if cuda.threadIdx.x == 0:
                if is_class:
                    loss_B[b] = element(log(total) - (number(logits_BC[base + label]) - top))
                else:
                    loss_B[b] = element(nan)

    return run
