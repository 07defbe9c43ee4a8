"""Functions of square matrices, and LU: MatrixSquareRoot, MatrixLogarithm, Lu, for every matrix of a batch.

Root and logarithm are those of the triangle of the complex Schur form (_compiled/schur.py), computed in double; the
logarithm by inverse scaling and squaring: roots are taken until the matrix is near the unit matrix, whose logarithm is
an integral. Outputs are fresh. Follows matrix_square_root_op.cc, matrix_logarithm_op.cc and lu_op.cc.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tenfold_kernels.arrays import Array, invalid, output_type
from tenfold_kernels.cpu.linalg import adjoint, matrices
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.typesets import COMPLEX, FLOATING, INDEX

if TYPE_CHECKING:
    from collections.abc import Callable

_TYPES = FLOATING | COMPLEX
#: How near to the unit matrix the logarithm is an integral of so few places, and the most roots to get there.
_NEAR, _PLACES, _MOST_ROOTS = 0.5, 16, 100
#: Of the size of the root of a real matrix: an imaginary part below it is rounding.
_ROUNDING = 1e-6


def _by_matrix(x: Array, function: Callable[[Array], Array]) -> Array:
    """`function` of each matrix, in complex128; a matrix with inf or nan gives nan."""
    size = x.shape[-1]
    out = np.full(x.shape, np.nan, np.complex128)
    flat = out.reshape(math.prod(x.shape[:-2]), size, size)
    for matrix, to in zip(x.reshape(flat.shape), flat, strict=True):
        if size and np.isfinite(matrix).all():
            to[...] = function(matrix.astype(np.complex128))
    return out


def _of_triangle(matrix: Array, function: Callable[[Array], Array]) -> Array:
    """Q f(T) Qᴴ of Q T Qᴴ."""
    from tenfold_kernels.cpu._compiled import schur

    size = len(matrix)
    triangle, q = np.ascontiguousarray(matrix), np.eye(size, dtype=np.complex128)
    if schur.schur()(triangle, q, np.empty(size, np.complex128)):
        raise invalid("Schur decomposition was not successful. The input might not be valid.")
    result: Array = q @ function(triangle) @ adjoint(q)
    return result


def _root(triangle: Array) -> Array:
    from tenfold_kernels.cpu._compiled import schur

    out = np.zeros_like(triangle)
    schur.triangular_root()(triangle, out)
    return out


def _logarithm(triangle: Array) -> Array:
    unit, roots = np.eye(len(triangle)), 0
    while np.abs(triangle - unit).sum(axis=0).max() > _NEAR and roots < _MOST_ROOTS:
        triangle = _root(triangle)
        roots += 1
    near = triangle - unit
    # log(1 + x) is the integral of x / (1 + t x) over t from 0 to 1
    points, weights = np.polynomial.legendre.leggauss(_PLACES)
    places = [(w / 2, (p + 1) / 2) for p, w in zip(points.tolist(), weights.tolist(), strict=True)]
    total: Array = np.sum([w * np.linalg.solve(unit + t * near, near) for w, t in places], axis=0)
    return total * 2.0**roots


@kernel("MatrixSquareRoot", T=_TYPES)
def build_square_root(node: KernelNode) -> Compute:
    """The principal root; nan for a real matrix whose root is not real."""
    dtype = output_type(node)

    def compute(x: Array) -> Array:
        root = _by_matrix(matrices(x), lambda matrix: _of_triangle(matrix, _root))
        if np.dtype(dtype).kind == "c":
            return root.astype(dtype)
        size = np.abs(root).max(axis=(-2, -1), keepdims=True, initial=0.0)
        real = np.abs(root.imag).max(axis=(-2, -1), keepdims=True, initial=0.0) <= _ROUNDING * size
        return np.where(real, root.real, np.nan).astype(dtype)

    return compute


@kernel("MatrixLogarithm", T=COMPLEX)
def build_logarithm(node: KernelNode) -> Compute:
    """The principal logarithm."""
    dtype = output_type(node)

    def compute(x: Array) -> Array:
        return _by_matrix(matrices(x), lambda matrix: _of_triangle(matrix, _logarithm)).astype(dtype)

    return compute


@kernel("Lu", T=_TYPES, output_idx_type=INDEX)
def build_lu(node: KernelNode) -> Compute:
    """(L under U, permutation p): rows p of the matrix are L · U, the diagonal of L being ones."""
    dtype, index = output_type(node), output_type(node, 1)

    def compute(x: Array) -> tuple[Array, Array]:
        wide = matrices(x)
        size = wide.shape[-1]
        lu = np.array(wide.reshape(math.prod(wide.shape[:-2]), size, size))
        rows = np.tile(np.arange(size), (len(lu), 1))
        every = np.arange(len(lu))
        for k in range(size):
            largest = np.abs(lu[:, k:, k]).argmax(axis=1) + k
            lu[every, largest], lu[every, k] = lu[every, k], lu[every, largest]
            rows[every, largest], rows[every, k] = rows[every, k], rows[every, largest]
            pivots = lu[:, k, k]
            if not (np.abs(pivots) > 0).all():
                raise invalid("Input is not invertible.")
            lu[:, k + 1 :, k] /= pivots[:, None]
            lu[:, k + 1 :, k + 1 :] -= lu[:, k + 1 :, k, None] * lu[:, None, k, k + 1 :]
        return lu.reshape(x.shape).astype(dtype, copy=False), rows.reshape(x.shape[:-1]).astype(index, copy=False)

    return compute
