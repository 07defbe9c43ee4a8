"""Softmax, log-softmax and the two cross-entropies, each with its gradient in the same launch. See cpu/nn_loss.py.

B rows, C classes; a block a row, which it reads twice (_code/losses.py). A label that is no class cannot be an error
here, because the host does not wait for a kernel: its row's loss and gradient are nan, as on a GPU of TensorFlow's.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from tenfold_kernels.cpu.nn_loss import check_softmax, check_sparse_xent, dense_xent_shape
from tenfold_kernels.cuda._launch import Kernel, pointer
from tenfold_kernels.cuda._reduce import block_count, row_threads
from tenfold_kernels.cuda._types import ANY_FLOATS
from tenfold_kernels.cuda.narrow_text import wide
from tenfold_kernels.registry import Compute, KernelNode, kernel

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from tenfold_kernels.cuda._arrays import DeviceArray


@functools.lru_cache(16)
def _softmax_kernel(dtype: np.dtype[Any], is_log: bool) -> Kernel:
    from tenfold_kernels.cuda._code import losses

    return Kernel(losses.softmax(dtype, is_log), ("int64", "int64", pointer(dtype), pointer(dtype)))


@functools.lru_cache(16)
def _dense_kernel(dtype: np.dtype[Any]) -> Kernel:
    from tenfold_kernels.cuda._code import losses

    return Kernel(losses.dense_xent(dtype), (*("int64",) * 6, *(pointer(dtype),) * 4))


@functools.lru_cache(16)
def _sparse_kernel(dtype: np.dtype[Any], label: np.dtype[Any]) -> Kernel:
    from tenfold_kernels.cuda._code import losses

    real = pointer(dtype)
    return Kernel(losses.sparse_xent(dtype), ("int64", "int64", real, pointer(label), real, real))


def _launch(run: Kernel, x: DeviceArray, rows: int, classes: int, *more: Any) -> None:
    """A block a row, with two numbers a thread in shared memory."""
    if rows:
        threads = row_threads(x.runtime, classes)
        arguments = (rows, classes, *more)
        x.runtime.launch(run, block_count(x.runtime, rows), threads, arguments, 2 * threads * wide(x.dtype).itemsize)


@kernel("Softmax", "LogSoftmax", device="GPU", T=ANY_FLOATS)
def build_softmax(node: KernelNode) -> Compute:
    """Over the last dimension."""
    is_log = node.op == "LogSoftmax"

    def compute(logits: DeviceArray) -> DeviceArray:
        check_softmax(logits)
        out = logits.runtime.empty(logits.shape, logits.dtype)
        if out.size:
            classes = logits.shape[-1]
            run = _softmax_kernel(logits.dtype, is_log)
            _launch(run, logits, logits.size // classes, classes, logits, out)
        return out

    return compute


def _strides(shape: Sequence[int], out: tuple[int, ...]) -> tuple[int, int]:
    """How many elements apart rows and classes of an array are that is broadcast to [B, C]."""
    row, column = (1,) * (2 - len(shape)) + tuple(shape)
    return 0 if row != out[0] else column, 0 if column != out[1] else 1


@kernel("SoftmaxCrossEntropyWithLogits", device="GPU", T=ANY_FLOATS)
def build_dense_xent(node: KernelNode) -> Compute:
    """(logits_BC, labels_BC) → (loss_B, backprop_BC); the two inputs broadcast to one 2-D shape."""

    def compute(logits: DeviceArray, labels: DeviceArray) -> tuple[DeviceArray, DeviceArray]:
        shape = dense_xent_shape(logits, labels)
        loss_B = logits.runtime.empty(shape[:1], logits.dtype)
        backprop_BC = logits.runtime.empty(shape, logits.dtype)
        strides = (*_strides(logits.shape, shape), *_strides(labels.shape, shape))
        _launch(_dense_kernel(logits.dtype), logits, *shape, *strides, logits, labels, loss_B, backprop_BC)
        return loss_B, backprop_BC

    return compute


@kernel("SparseSoftmaxCrossEntropyWithLogits", device="GPU", T=ANY_FLOATS)
def build_sparse_xent(node: KernelNode) -> Compute:
    """(logits_BC, labels_B of class numbers) → (loss_B, backprop_BC)."""

    def compute(logits: DeviceArray, labels: DeviceArray) -> tuple[DeviceArray, DeviceArray]:
        check_sparse_xent(logits, labels)
        rows, classes = logits.shape
        loss_B = logits.runtime.empty((rows,), logits.dtype)
        backprop_BC = logits.runtime.empty(logits.shape, logits.dtype)
        run = _sparse_kernel(logits.dtype, labels.dtype)
        _launch(run, logits, rows, classes, logits, labels, loss_B, backprop_BC)
        return loss_B, backprop_BC

    return compute
