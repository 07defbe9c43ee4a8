"""Tridiagonal matrices, given by their three diagonals: products and solutions, for every matrix of a batch.

Outputs are fresh. Follows tridiagonal_matmul_op.cc and tridiagonal_solve_op.cc.
"""

from __future__ import annotations

import math

import numpy as np

from tenfold_core import dtypes
from tenfold_kernels.arrays import Array, contiguous, invalid, output_type, shape_text
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.typesets import COMPLEX

_TYPES = COMPLEX | {dtypes.float32, dtypes.float64}


def _check(inputs: tuple[Array, ...]) -> None:
    """Raises InvalidArgumentError unless all are matrices of one batch."""
    for i, x in enumerate(inputs):
        if x.ndim < 2:
            raise invalid(f"Input tensor {i} must have rank >= 2, got shape {shape_text(x.shape)}")
        if x.shape[:-2] != inputs[0].shape[:-2]:
            raise invalid(
                f"All input tensors must have the same outer dimensions: {shape_text(inputs[0].shape)} vs. "
                f"{shape_text(x.shape)}"
            )


@kernel("TridiagonalMatMul", T=_TYPES)
def build_tridiagonal_matmul(node: KernelNode) -> Compute:
    """(above, diagonal, below: each [.., 1, M]; [.., M, K]) → [.., M, K]"""

    def compute(above: Array, diagonal: Array, below: Array, right: Array) -> Array:
        _check((above, diagonal, below, right))
        for what, x in (("superdiagonal", above), ("main diagonal", diagonal), ("subdiagonal", below)):
            if x.shape[-2:] != (1, right.shape[-2]):
                raise invalid(f"Invalid {what} shape: [1,{right.shape[-2]}] is expected, got {shape_text(x.shape)}.")
        above, diagonal, below = (x.swapaxes(-1, -2) for x in (above, diagonal, below))
        out: Array = diagonal * right
        out[..., :-1, :] += above[..., :-1, :] * right[..., 1:, :]
        out[..., 1:, :] += below[..., 1:, :] * right[..., :-1, :]
        return out

    return compute


@kernel("TridiagonalSolve", T=_TYPES)
def build_tridiagonal_solve(node: KernelNode) -> Compute:
    """x of the matrix with these diagonals · x = right side."""
    from tenfold_kernels.cpu._compiled import tridiagonal

    pivoting, dtype = bool(node.attrs.get("partial_pivoting", True)), output_type(node)
    run = tridiagonal.solve(dtype, pivoting)
    what = "The matrix is not invertible."
    if not pivoting:
        what = "The matrix is either not invertible, or requires pivoting. Try setting partial_pivoting = True."

    def compute(diagonals: Array, right: Array) -> Array:
        _check((diagonals, right))
        rows, count = diagonals.shape[-2:]
        if rows != 3:
            raise invalid(f"Expected diagonals to be provided as a matrix with 3 rows, got {rows} rows.")
        if count != right.shape[-2]:
            raise invalid(
                f"Expected the same number of left-hand sides and right-hand sides, got {count} and {right.shape[-2]}."
            )
        out = np.empty(right.shape, dtype)
        if not out.size:
            return out
        systems = math.prod(right.shape[:-2])
        sides = contiguous(right).reshape(systems, *right.shape[-2:])
        scratch = np.empty((count, 3), dtype)
        for lines, side, to in zip(
            contiguous(diagonals).reshape(systems, 3, count), sides, out.reshape(sides.shape), strict=True
        ):
            if run(lines, side, scratch, to):
                raise invalid(what)
        return out

    return compute
