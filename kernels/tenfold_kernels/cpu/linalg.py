"""Decompositions, determinants and solvers of matrices, on NumPy's LAPACK.

Works on the last two dimensions, for every matrix of a batch; half, where TensorFlow takes it, is computed in float.
Outputs are fresh. Follows linalg_ops_common.cc and the files around it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core.memory_limits import allow
from tenfold_kernels.arrays import Array, as_array, invalid, output_type, shape_text
from tenfold_kernels.registry import Compute, KernelNode, kernel, no_kernel
from tenfold_kernels.typesets import COMPLEX, FLOATING

if TYPE_CHECKING:
    from collections.abc import Callable

_TYPES = FLOATING | COMPLEX

no_kernel("MatrixExponential", device="CPU", why="deprecated: clients compute it from other ops")


def adjoint(x: Array) -> Array:
    """The conjugate transpose of every matrix; a view where the elements are real."""
    return np.conj(x.swapaxes(-1, -2)) if x.dtype.kind == "c" else x.swapaxes(-1, -2)


def matrices(x: Array, square: bool = True) -> Array:
    """`x`, with half made float. Raises InvalidArgumentError unless it holds (square) matrices."""
    if x.ndim < 2:
        raise invalid(f"Input tensor 0 must have rank >= 2, got shape {shape_text(x.shape)}")
    if square and x.shape[-1] != x.shape[-2]:
        raise invalid(f"Input matrix must be square, got shape {shape_text(x.shape)}")
    if not x.size:
        # LAPACK walks along the other dimension, be it as long as it may
        allow([max(size, 1) for size in x.shape], x.dtype)
    return x.astype(np.float32) if x.dtype == np.float16 else x


def _finite(x: Array) -> Array:
    """Which of the matrices have neither inf nor nan. LAPACK's iterations may go on for ever with those."""
    return as_array(np.isfinite(x).all(axis=(-2, -1)))


def _check_finite(x: Array, what: str) -> Array:
    """`x`. Raises InvalidArgumentError with TensorFlow's words for a decomposition that fails."""
    if not _finite(x).all():
        raise invalid(what)
    return x


def _lapack(what: str, function: Callable[..., Any], *inputs: Any, **options: Any) -> Any:
    """`function(...)`, its failure said in TensorFlow's words."""
    try:
        return function(*inputs, **options)
    except np.linalg.LinAlgError:
        raise invalid(what) from None


@kernel("MatrixDeterminant", "BatchMatrixDeterminant", T=_TYPES)
def build_determinant(node: KernelNode) -> Compute:
    dtype = output_type(node)

    def compute(x: Array) -> Array:
        wide = matrices(x)
        # LAPACK's pivots may pass by a nan.
        broken = np.isnan(wide).any(axis=(-2, -1))
        return as_array(np.where(broken, np.nan, np.linalg.det(wide))).astype(dtype, copy=False)

    return compute


@kernel("LogMatrixDeterminant", T=_TYPES)
def build_log_determinant(node: KernelNode) -> Compute:
    """(sign, log of the absolute value)"""
    dtype = output_type(node)

    def compute(x: Array) -> tuple[Array, Array]:
        wide = matrices(x)
        sign, log = np.linalg.slogdet(wide)
        broken = np.isnan(wide).any(axis=(-2, -1))
        sign, log = np.where(broken, np.nan, sign), np.where(broken, np.nan, log)
        return as_array(sign).astype(dtype, copy=False), as_array(log).astype(dtype, copy=False)

    return compute


def _check_sides(node: KernelNode, matrix: Array, right: Array, rows: int) -> None:
    if right.ndim < 2:
        raise invalid(f"Input tensor 1 must have rank >= 2, got shape {shape_text(right.shape)}")
    if matrix.shape[rows] != right.shape[-2]:
        raise invalid(
            f"Input matrix and rhs are incompatible: {shape_text(matrix.shape)} vs. {shape_text(right.shape)}"
        )


@kernel("MatrixSolve", "BatchMatrixSolve", T=_TYPES)
def build_solve(node: KernelNode) -> Compute:
    """x of matrix · x = rhs; batches must be equal."""
    transposed, dtype = bool(node.attrs.get("adjoint")), output_type(node)

    def compute(matrix: Array, right: Array) -> Array:
        wide = matrices(matrix)
        _check_sides(node, matrix, right, -1)
        if matrix.shape[:-2] != right.shape[:-2]:
            raise invalid(
                f"All input tensors must have the same outer dimensions: {shape_text(matrix.shape)} vs. "
                f"{shape_text(right.shape)}"
            )
        if right.size == 0:
            return np.empty(right.shape, dtype)
        solved = _lapack(
            "Input matrix is not invertible.",
            np.linalg.solve,
            adjoint(wide) if transposed else wide,
            right.astype(wide.dtype, copy=False),
        )
        return as_array(solved).astype(dtype, copy=False)

    return compute


@kernel("MatrixTriangularSolve", "BatchMatrixTriangularSolve", T=_TYPES)
def build_triangular_solve(node: KernelNode) -> Compute:
    """x of triangle(matrix) · x = rhs, row by row; batches broadcast."""
    lower, transposed = bool(node.attrs.get("lower", True)), bool(node.attrs.get("adjoint"))
    dtype = output_type(node)

    def compute(matrix: Array, right: Array) -> Array:
        wide = matrices(matrix)
        _check_sides(node, matrix, right, -1)
        triangle = adjoint(wide) if transposed else wide
        forward = lower != transposed
        size = matrix.shape[-1]
        if np.any(np.diagonal(wide, axis1=-2, axis2=-1) == 0):
            raise invalid("Input matrix is not invertible.")
        try:
            batch = np.broadcast_shapes(matrix.shape[:-2], right.shape[:-2])
        except ValueError:
            raise invalid(
                f"In[0] and In[1] must have compatible batch dimensions: {shape_text(matrix.shape)} vs. "
                f"{shape_text(right.shape)}"
            ) from None
        out = np.array(np.broadcast_to(right, (*batch, *right.shape[-2:])), dtype=wide.dtype)
        for step in range(size):
            i = step if forward else size - 1 - step
            known = slice(0, i) if forward else slice(i + 1, size)
            row = triangle[..., i : i + 1, known]
            out[..., i : i + 1, :] -= np.matmul(row, out[..., known, :])
            out[..., i, :] /= triangle[..., i, i][..., None]
        return out.astype(dtype, copy=False)

    return compute


@kernel("MatrixSolveLs", "BatchMatrixSolveLs", T=FLOATING | COMPLEX)
def build_solve_least_squares(node: KernelNode) -> Compute:
    """The x that makes ‖matrix · x − rhs‖² + l2 ‖x‖² smallest."""
    fast, dtype = bool(node.attrs.get("fast", True)), output_type(node)

    def compute(matrix: Array, right: Array, regularizer: Array) -> Array:
        if regularizer.ndim:
            raise invalid(f"l2_regularizer must be scalar, got shape {shape_text(regularizer.shape)}")
        wide, l2 = matrices(matrix, square=False), float(regularizer)
        _check_sides(node, matrix, right, -2)
        if matrix.shape[:-2] != right.shape[:-2]:
            raise invalid(f"Input batches do not match: {shape_text(matrix.shape)} vs. {shape_text(right.shape)}")
        if l2 < 0:
            raise invalid("l2_regularizer must be >= 0.")
        turned, right = adjoint(wide), right.astype(wide.dtype, copy=False)
        rows, columns = wide.shape[-2:]
        if not fast:
            finite = _finite(wide)[..., None, None]
            inverse = np.linalg.pinv(np.where(finite, wide, wide.dtype.type(0)))
            return as_array(np.where(finite, np.matmul(inverse, right), np.nan)).astype(dtype, copy=False)
        what = (
            "Input matrix was rank deficient or ill-conditioned. Try setting fast=False or provide a larger "
            "l2_regularizer > 0."
        )
        if rows >= columns:
            gram = np.matmul(turned, wide) + l2 * np.eye(columns, dtype=wide.dtype)
            return as_array(_lapack(what, np.linalg.solve, gram, np.matmul(turned, right))).astype(dtype, copy=False)
        gram = np.matmul(wide, turned) + l2 * np.eye(rows, dtype=wide.dtype)
        return as_array(np.matmul(turned, _lapack(what, np.linalg.solve, gram, right))).astype(dtype, copy=False)

    return compute


@kernel("Qr", T=_TYPES)
def build_qr(node: KernelNode) -> Compute:
    mode: Any = "complete" if node.attrs.get("full_matrices") else "reduced"
    dtype = output_type(node)

    def compute(x: Array) -> tuple[Array, Array]:
        wide = matrices(x, square=False)
        q, r = np.linalg.qr(wide, mode=mode)
        finite = _finite(wide)
        if not finite.all():
            # A reflection of an infinite column makes everything after it nan; LAPACK leaves some as it was.
            lost = ~finite[..., None, None]
            q = np.where(lost, np.nan, q)
            r = np.where(lost & np.isfinite(r) & np.triu(np.ones(r.shape[-2:], bool)), np.nan, r)
        return q.astype(dtype, copy=False), r.astype(dtype, copy=False)

    return compute


@kernel("Svd", "BatchSvd", T=_TYPES)
def build_svd(node: KernelNode) -> Compute:
    """(s, u, v): x = u · diag(s) · adjoint(v), nan for a matrix with inf or nan. Without compute_uv, u, v are empty."""
    with_vectors, full = bool(node.attrs.get("compute_uv", True)), bool(node.attrs.get("full_matrices"))
    dtype = output_type(node)

    def compute(x: Array) -> tuple[Array, Array, Array]:
        wide = matrices(x, square=False)
        finite = _finite(wide)
        wide = np.where(finite[..., None, None], wide, wide.dtype.type(0))
        if not with_vectors:
            values = as_array(_lapack("SVD did not converge.", np.linalg.svd, wide, compute_uv=False)).astype(dtype)
            values[~finite] = np.nan
            return values, np.empty(0, dtype), np.empty(0, dtype)
        u, values, vh = _lapack("SVD did not converge.", np.linalg.svd, wide, full_matrices=full)
        v = np.ascontiguousarray(adjoint(vh))
        for part in (u, values, v):
            part[~finite] = np.nan
        return values.astype(dtype), u.astype(dtype, copy=False), v.astype(dtype, copy=False)

    return compute


@kernel("SelfAdjointEigV2", "BatchSelfAdjointEigV2", T=_TYPES)
def build_self_adjoint_eig(node: KernelNode) -> Compute:
    """(values, smallest first, vectors) of the lower triangle; without compute_v the vectors are empty."""
    with_vectors, dtype = bool(node.attrs.get("compute_v", True)), output_type(node)
    what = "Self-adjoint eigen decomposition was not successful. The input might not be valid."

    def compute(x: Array) -> tuple[Array, Array]:
        wide = _check_finite(np.tril(matrices(x)), what)  # nothing else is read
        if not with_vectors:
            return as_array(_lapack(what, np.linalg.eigvalsh, wide)).astype(dtype), np.empty(0, dtype)
        values, vectors = _lapack(what, np.linalg.eigh, wide)
        return values.astype(dtype), vectors.astype(dtype, copy=False)

    return compute


@kernel("SelfAdjointEig", "BatchSelfAdjointEig", T=FLOATING)
def build_self_adjoint_eig_in_one(node: KernelNode) -> Compute:
    """A row of values, smallest first, and the vectors, its columns, under it: [.., n + 1, n]."""
    both = build_self_adjoint_eig(node)

    def compute(x: Array) -> Array:
        values, vectors = both(x)
        return np.concatenate((values[..., None, :], vectors), axis=-2)

    return compute


@kernel("Eig", T=_TYPES)
def build_eig(node: KernelNode) -> Compute:
    """(values, vectors), complex."""
    with_vectors, dtype = bool(node.attrs.get("compute_v", True)), output_type(node)
    what = "Eigen decomposition was not successful. The input might not be valid."

    def compute(x: Array) -> tuple[Array, Array]:
        wide = _check_finite(matrices(x), what)
        if not with_vectors:
            return as_array(_lapack(what, np.linalg.eigvals, wide)).astype(dtype), np.empty(0, dtype)
        values, vectors = _lapack(what, np.linalg.eig, wide)
        return values.astype(dtype), vectors.astype(dtype)

    return compute


@kernel("CholeskyGrad", "BatchCholeskyGrad", T=_TYPES)
def build_cholesky_grad(node: KernelNode) -> Compute:
    """(l, the gradient of l) → the gradient of the matrix that l is the Cholesky factor of."""
    dtype = output_type(node)

    def compute(factor: Array, gradient: Array) -> Array:
        low = np.tril(matrices(factor))
        if gradient.shape != factor.shape:
            raise invalid(
                "Inputs must have the same shape: input 0 has shape "
                f"{shape_text(factor.shape)}, input 1 has shape {shape_text(gradient.shape)}"
            )
        inner = np.tril(np.matmul(adjoint(low), np.tril(gradient)))
        diagonal = np.arange(low.shape[-1])
        inner[..., diagonal, diagonal] /= 2
        inverse = _lapack("Input is not invertible.", np.linalg.inv, low)
        middle = np.matmul(np.matmul(adjoint(inverse), inner), inverse)
        return as_array((middle + adjoint(middle)) / 2).astype(dtype, copy=False)

    return compute


@kernel("Cholesky", "BatchCholesky", T=_TYPES)
def build_cholesky(node: KernelNode) -> Compute:
    """The lower factor, of the lower triangle. One of what is not positive definite is an error (decision 0048)."""
    what = "Cholesky decomposition was not successful. The input might not be valid."
    dtype = output_type(node)
    return lambda x: as_array(_lapack(what, np.linalg.cholesky, matrices(x))).astype(dtype, copy=False)


@kernel("MatrixInverse", "BatchMatrixInverse", T=_TYPES)
def build_matrix_inverse(node: KernelNode) -> Compute:
    transposed, dtype = bool(node.attrs.get("adjoint")), output_type(node)

    def compute(x: Array) -> Array:
        wide = matrices(x)
        inverse = _lapack("Input is not invertible.", np.linalg.inv, adjoint(wide) if transposed else wide)
        return as_array(inverse).astype(dtype, copy=False)

    return compute
