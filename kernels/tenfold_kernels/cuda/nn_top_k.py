"""TopK and InTopK: a block a row, k passes over it, which is for small k. The checks are those of cpu/nn_top_k.py."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_kernels.arrays import one_number
from tenfold_kernels.cpu.nn_top_k import check_in_top_k, check_top_k
from tenfold_kernels.cuda._launch import Kernel, pointer
from tenfold_kernels.cuda._reduce import block_count, row_threads
from tenfold_kernels.cuda._types import ANY_NUMBERS, ON_HOST
from tenfold_kernels.registry import EVERYTHING, Compute, KernelNode, kernel, no_kernel, shared_kernel

if TYPE_CHECKING:
    from tenfold_kernels.arrays import Array
    from tenfold_kernels.cuda._arrays import DeviceArray

no_kernel("NthElement", device="GPU", why="TensorFlow has none")
shared_kernel("TopK", "TopKV2", host=(EVERYTHING,), T=ON_HOST)


@functools.lru_cache(64)
def _top_k_kernel(dtype: np.dtype[Any], index: np.dtype[Any]) -> Kernel:
    from tenfold_kernels.cuda._code import top_k

    return Kernel(top_k.top_k(dtype), ("int64", "int64", "int64", pointer(dtype), pointer(dtype), pointer(index)))


@functools.lru_cache(16)
def _in_top_k_kernel(target: np.dtype[Any]) -> Kernel:
    from tenfold_kernels.cuda._code import top_k

    return Kernel(top_k.in_top_k, ("int64", "int64", "int64", "float32*", pointer(target), "boolean*"))


def _launch(run: Kernel, x: DeviceArray, rows: int, columns: int, *more: Any) -> None:
    """A block a row, with a place or a count a thread in shared memory."""
    threads = row_threads(x.runtime, columns)
    x.runtime.launch(run, block_count(x.runtime, rows), threads, (rows, columns, *more), threads * 8)


@kernel("TopK", device="GPU", T=ANY_NUMBERS)
@kernel("TopKV2", device="GPU", host=("k",), T=ANY_NUMBERS)
def build_top_k(node: KernelNode) -> Compute:
    """The k largest of the last dimension, largest first; of equal ones the lower index comes first."""
    fixed = node.attrs.get("k") if node.op == "TopK" else None
    index_type = np.dtype(node.output_types[1].as_numpy_dtype)

    def compute(x: DeviceArray, k: Array | None = None) -> tuple[DeviceArray, DeviceArray]:
        count = int(fixed) if k is None else one_number(k, "k")  # type: ignore[arg-type]
        check_top_k(x, count)
        shape = (*x.shape[:-1], count)
        values, indices = x.runtime.empty(shape, x.dtype), x.runtime.empty(shape, index_type)
        if values.size:
            columns = x.shape[-1]
            _launch(_top_k_kernel(x.dtype, index_type), x, x.size // columns, columns, count, x, values, indices)
        return values, indices

    return compute


@kernel("InTopK", device="GPU")
@kernel("InTopKV2", device="GPU", host=("k",))
def build_in_top_k(node: KernelNode) -> Compute:
    """Whether fewer than k predictions are greater than the target's; false for a target that is not finite."""
    fixed = node.attrs.get("k") if node.op == "InTopK" else None

    def compute(predictions: DeviceArray, targets: DeviceArray, k: Array | None = None) -> DeviceArray:
        count = int(fixed) if k is None else one_number(k, "k")  # type: ignore[arg-type]
        check_in_top_k(predictions, targets)
        rows, classes = predictions.shape
        out = predictions.runtime.empty((rows,), np.dtype(bool))
        if not classes:
            predictions.runtime.zero(out)
        elif rows:
            _launch(_in_top_k_kernel(targets.dtype), predictions, rows, classes, count, predictions, targets, out)
        return out

    return compute
