"""Softmax, log-softmax and the two cross-entropies, each with its gradient in the same pass.

B rows, C classes. float32 and float64 run compiled around NumPy's exp (_compiled/losses.py); half computes in float.
Many rows are taken a cacheful at a time, and shared among threads; no sum goes over two rows. Outputs are fresh and
C-contiguous. Follows softmax_op_functor.h, xent_op.cc, sparse_xent_op.cc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_kernels.arrays import Array, Shaped, contiguous, input_type, invalid, shape_text
from tenfold_kernels.parallel import in_parts
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.typesets import FLOATING

if TYPE_CHECKING:
    from collections.abc import Callable

#: Elements of a block of rows, which stay in the second cache from one pass to the next, and of a part for one thread.
_BLOCK, _PART = 1 << 15, 1 << 17


def _by_rows(shape: tuple[int, ...], compute: Callable[[int, int], None]) -> None:
    """Calls `compute(first, last)` for all rows of a matrix of this shape, in blocks; large ones on several threads."""
    rows, classes = shape
    if rows * classes <= 2 * _BLOCK:
        compute(0, rows)
        return
    step = max(1, _BLOCK // classes)

    def part(first: int, last: int) -> None:
        # NumPy's settings belong to a thread
        with np.errstate(all="ignore"):
            for start in range(first, last, step):
                compute(start, min(start + step, last))

    in_parts(part, rows, -(-_PART // classes))


def _exponentials(shift: Callable[..., object], x: Array, out: Array, *, in_place: bool = False) -> Array:
    """Writes exp(x − max of the row) to `out`. Gives the differences; `in_place` there are none any more."""
    shifted = out if in_place else np.empty_like(x)
    shift(x, shifted)
    np.exp(shifted, out=out)
    return shifted


def _working_type(node: KernelNode) -> Any:
    dtype = input_type(node)
    return np.float32 if dtype == np.float16 else dtype


def check_softmax(logits: Shaped) -> None:
    """Raises InvalidArgumentError for logits without classes to sum over."""
    if logits.ndim < 1:
        raise invalid(f"logits must have >= 1 dimension, got {shape_text(logits.shape)}")


@kernel("Softmax", "LogSoftmax", T=FLOATING)
def build_softmax(node: KernelNode) -> Compute:
    """Over the last dimension."""
    from tenfold_kernels.cpu._compiled import losses

    dtype, work = input_type(node), _working_type(node)
    shift = losses.shift(work)
    log = node.op == "LogSoftmax"
    finish = losses.log_normalize(work) if log else losses.normalize(work)

    def compute(logits: Array) -> Array:
        check_softmax(logits)
        if logits.size == 0:
            return np.empty(logits.shape, dtype=dtype)
        x_BC = contiguous(logits.astype(work, copy=False)).reshape(-1, logits.shape[-1])
        out_BC = np.empty_like(x_BC)

        def rows(first: int, last: int) -> None:
            out = out_BC[first:last]
            shifted = _exponentials(shift, x_BC[first:last], out, in_place=not log)
            if log:
                finish(shifted, out)
            else:
                finish(out)

        _by_rows(x_BC.shape, rows)
        return out_BC.reshape(logits.shape).astype(dtype, copy=False)

    return compute


@kernel("SoftmaxCrossEntropyWithLogits", T=FLOATING)
def build_dense_xent(node: KernelNode) -> Compute:
    """(logits_BC, labels_BC) → (loss_B, backprop_BC); the two inputs broadcast to one 2-D shape."""
    from tenfold_kernels.cpu._compiled import losses

    dtype, work = input_type(node), _working_type(node)
    shift, finish = losses.shift(work), losses.dense_xent(work)

    def compute(logits: Array, labels: Array) -> tuple[Array, Array]:
        shape = dense_xent_shape(logits, labels)
        if logits.shape != labels.shape:
            logits, labels = np.broadcast_to(logits, shape), np.broadcast_to(labels, shape)
        loss_B = np.zeros(logits.shape[0], dtype=work)
        backprop_BC = np.empty(logits.shape, dtype=work)
        if logits.size:
            x_BC = contiguous(logits.astype(work, copy=False))
            labels_BC = contiguous(labels.astype(work, copy=False))

            def rows(first: int, last: int) -> None:
                out = backprop_BC[first:last]
                shifted = _exponentials(shift, x_BC[first:last], out)
                finish(shifted, labels_BC[first:last], loss_B[first:last], out)

            _by_rows(shape, rows)
        return loss_B.astype(dtype, copy=False), backprop_BC.astype(dtype, copy=False)

    return compute


def dense_xent_shape(logits: Shaped, labels: Shaped) -> tuple[int, ...]:
    """[B, C], what logits and labels are broadcast to. Raises InvalidArgumentError where that is no matrix."""
    shape = logits.shape
    try:
        if labels.shape != shape:
            shape = np.broadcast_shapes(shape, labels.shape)
    except ValueError:
        raise invalid(
            "logits and labels must be broadcastable: "
            f"logits_size={shape_text(logits.shape)} labels_size={shape_text(labels.shape)}"
        ) from None
    if len(shape) != 2:
        raise invalid("logits and labels must be either 2-dimensional, or broadcasted to be 2-dimensional")
    return shape


def check_sparse_xent(logits: Shaped, labels: Shaped) -> None:
    """Raises InvalidArgumentError unless they are [B, C] and [B] with a class at least."""
    if logits.ndim != 2:
        raise invalid(f"logits must be 2-D, but got shape {shape_text(logits.shape)}")
    if labels.ndim != 1:
        raise invalid(f"labels must be 1-D, but got shape {shape_text(labels.shape)}")
    if logits.shape[0] != labels.shape[0]:
        raise invalid(
            "logits and labels must have the same first dimension, got logits shape "
            f"{shape_text(logits.shape)} and labels shape {shape_text(labels.shape)}"
        )
    if logits.shape[1] < 1:
        raise invalid(f"Must have at least one class, but got logits shape {shape_text(logits.shape)}")


@kernel("SparseSoftmaxCrossEntropyWithLogits", T=FLOATING)
def build_sparse_xent(node: KernelNode) -> Compute:
    """(logits_BC, labels_B of class numbers) → (loss_B, backprop_BC)."""
    from tenfold_kernels.cpu._compiled import losses

    dtype, work, label_type = input_type(node), _working_type(node), input_type(node, 1)
    shift, finish = losses.shift(work), losses.sparse_xent(work, label_type)
    same = work is dtype

    def compute(logits: Array, labels: Array) -> tuple[Array, Array]:
        check_sparse_xent(logits, labels)
        loss_B = np.empty(logits.shape[0], dtype=work)
        backprop_BC = np.empty(logits.shape, dtype=work)
        if logits.size:
            x_BC, labels_B = contiguous(logits if same else logits.astype(work)), contiguous(labels)
            wrong: list[int] = []

            def rows(first: int, last: int) -> None:
                out = backprop_BC[first:last]
                shifted = _exponentials(shift, x_BC[first:last], out)
                if finish(shifted, labels_B[first:last], loss_B[first:last], out) >= 0:
                    wrong.append(first)

            _by_rows(x_BC.shape, rows)
            if wrong:
                raise _wrong_label(labels, logits.shape[1])
        if same:
            return loss_B, backprop_BC
        return loss_B.astype(dtype), backprop_BC.astype(dtype)

    return compute


def _wrong_label(labels: Array, classes: int) -> Exception:
    low, high = labels.min(), labels.max()
    bad = low if low < 0 else high
    values = " ".join(str(v) for v in labels.tolist())
    return invalid(
        f"Received a label value of {bad} which is outside the valid range of [0, {classes}).  Label values: {values}"
    )
