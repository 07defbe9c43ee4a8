"""Products of matrices on a GPU, by cuBLAS (Runtime.libraries): MatMul and BatchMatMul*. Outputs are fresh.

What is refused, and in which words, is cpu/math_matmul.py's. Leading dimensions that both operands have, or only one
does, are one batch to the library; where they alternate, there is a call for each element of the outer ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tenfold_kernels.cpu.math_matmul import batch_mismatch, no_matrix, size_mismatch, too_flat
from tenfold_kernels.cuda._loops import collapse
from tenfold_kernels.cuda._types import ANY_FLOATS
from tenfold_kernels.registry import Compute, KernelNode, kernel, no_kernel
from tenfold_kernels.typesets import COMPLEX

if TYPE_CHECKING:
    from tenfold_kernels.cuda._arrays import DeviceArray

_PRODUCTS = ANY_FLOATS | COMPLEX

no_kernel("BatchMatMulV3", device="GPU", why="tf.matmul makes BatchMatMulV2, which does the same for one type")
no_kernel("Cross", "SparseMatMul", device="GPU", why="no program of the op census puts them on a GPU")


@kernel("MatMul", device="GPU", T=_PRODUCTS)
def build_matmul(node: KernelNode) -> Compute:
    """a_MK, b_KN → out_MN; K may be 0, which gives zeros."""
    transpose_a, transpose_b = bool(node.attrs.get("transpose_a")), bool(node.attrs.get("transpose_b"))

    def compute(a: DeviceArray, b: DeviceArray) -> DeviceArray:
        if a.ndim != 2 or b.ndim != 2:
            raise no_matrix(a, b)
        rows, inner = a.shape[::-1] if transpose_a else a.shape
        of_b, columns = b.shape[::-1] if transpose_b else b.shape
        if inner != of_b:
            raise size_mismatch(a, b)
        out = a.runtime.empty((rows, columns), a.dtype)
        if not inner:
            a.runtime.zero(out)
        elif out.size:
            a.runtime.libraries.matmul(a, b, out, transpose_a, transpose_b)
        return out

    return compute


@kernel("BatchMatMul", "BatchMatMulV2", device="GPU", T=_PRODUCTS)
def build_batch_matmul(node: KernelNode) -> Compute:
    """Leading dimensions must be equal, and broadcast from V2 on; adj_x and adj_y take the adjoint."""
    adjoint_x, adjoint_y = bool(node.attrs.get("adj_x")), bool(node.attrs.get("adj_y"))

    def multiply(x: DeviceArray, y: DeviceArray, out: DeviceArray) -> None:
        x.runtime.libraries.matmul(x, y, out, adjoint_x, adjoint_y, conjugate=True)

    def spread(
        x: DeviceArray, y: DeviceArray, out: DeviceArray, has_x: tuple[bool, ...], has_y: tuple[bool, ...]
    ) -> None:
        if len(has_x) > 1:
            for i in range(out.shape[0]):
                row_x, row_y = _row(x, i) if has_x[0] else x, _row(y, i) if has_y[0] else y
                spread(row_x, row_y, _row(out, i), has_x[1:], has_y[1:])
        elif has_x and not has_y[0] and not adjoint_x:
            # one matrix of all the rows
            multiply(x.reshape((-1, x.shape[-1])), y, out.reshape((-1, out.shape[-1])))
        else:
            multiply(x, y, out)

    def compute(x: DeviceArray, y: DeviceArray) -> DeviceArray:
        for i, operand in enumerate((x, y)):
            if operand.ndim < 2:
                raise too_flat(i, operand)
        rows, inner = x.shape[:-3:-1] if adjoint_x else x.shape[-2:]
        of_y, columns = y.shape[:-3:-1] if adjoint_y else y.shape[-2:]
        if inner != of_y:
            raise size_mismatch(x, y)
        if node.op == "BatchMatMul" and x.shape[:-2] != y.shape[:-2]:
            raise batch_mismatch(x, y)
        try:
            batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
        except ValueError:
            raise batch_mismatch(x, y) from None
        out = x.runtime.empty((*batch, rows, columns), x.dtype)
        if not inner:
            x.runtime.zero(out)
        elif out.size:
            dims, (has_x, has_y) = collapse([x.shape[:-2], y.shape[:-2]], batch)
            spread(_with_batch(x, dims, has_x), _with_batch(y, dims, has_y), _with_batch(out, dims), has_x, has_y)
        return out

    return compute


def _with_batch(x: DeviceArray, dims: list[int], has: tuple[bool, ...] | None = None) -> DeviceArray:
    """The same matrices, with those leading dimensions that it has."""
    return x.reshape((*(size for i, size in enumerate(dims) if has is None or has[i]), *x.shape[-2:]))


def _row(x: DeviceArray, i: int) -> DeviceArray:
    return x.rows(i, i + 1).reshape(x.shape[1:])
