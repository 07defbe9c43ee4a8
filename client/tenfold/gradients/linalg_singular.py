"""Gradient rows of singular values, of eigenvalues of any matrix, and of least squares.

With vectors the rules divide by differences of values: where two are equal, their vectors have no slope, and the
difference counts as none. Matrices are the last two dimensions. Definitions in tenfold_core/opdefs/linalg.py; follows
the formulas of TensorFlow's ops/linalg_grad.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.gradients.registry import gradient
from tenfold.graph.op_builder import apply_op
from tenfold.ops import array as array_ops
from tenfold.ops.array_diag import matrix_transpose
from tenfold.ops.linalg import cholesky_solve
from tenfold.ops.math import matmul
from tenfold_core import dtypes

if TYPE_CHECKING:
    from tenfold.graph.operation import Operation
    from tenfold.graph.tensor import Tensor


def _adjoint(x: Tensor) -> Tensor:
    return matrix_transpose(x, conjugate=True)


def _diagonal(x: Tensor) -> Any:
    return apply_op("MatrixDiag", diagonal=x)


def _is_none(g: Tensor | None) -> bool:
    return g is None or g.op.type in ("ZerosLike", "Zeros")


def _safe_reciprocal(x: Tensor) -> Any:
    """1 / x, and 0 of what is 0 but for rounding."""
    return x * apply_op("Reciprocal", x=apply_op("Square", x=x) + 1e-20)


def _over_gaps(values: Tensor) -> Any:
    """[i, j] is 1 / (values[j] − values[i]); 0 on the diagonal."""
    gaps = apply_op("ExpandDims", input=values, dim=-2) - apply_op("ExpandDims", input=values, dim=-1)
    return apply_op("MatrixSetDiag", input=_safe_reciprocal(gaps), diagonal=apply_op("ZerosLike", x=values))


@gradient("Svd")
def _svd(op: Operation, g_values: Tensor, g_u: Tensor | None, g_v: Tensor | None) -> Any:
    a = op.inputs[0]
    if not op.get_attr("compute_uv") or (_is_none(g_u) and _is_none(g_v)):
        _, u, v = apply_op("Svd", input=a, compute_uv=True, full_matrices=False)
        return matmul(u, matmul(_diagonal(_as(g_values, a)), v, adjoint_b=True))
    rows, columns = a.get_shape()[-2:].as_list() if a.get_shape().ndims is not None else (None, None)
    if rows is None or columns is None:
        raise NotImplementedError(
            f"SVD gradient has not been implemented for input with unknown inner matrix shape: {op.name!r}"
        )
    values, u, v = op.outputs
    if op.get_attr("full_matrices") and abs(rows - columns) > 1:
        raise NotImplementedError(
            f"svd gradient is not implemented for abs(m - n) > 1 when full_matrices is True: {op.name!r} is of "
            f"[{rows}, {columns}]"
        )
    g_u = apply_op("ZerosLike", x=u) if g_u is None else g_u
    g_v = apply_op("ZerosLike", x=v) if g_v is None else g_v
    if rows <= columns:
        return _of_wide(_as(values, a), u, v, _as(g_values, a), g_u, g_v, rows, columns)
    return _adjoint(_of_wide(_as(values, a), v, u, _as(g_values, a), g_v, g_u, columns, rows))


def _as(x: Tensor, like: Tensor) -> Any:
    return x if x.dtype.base_dtype == like.dtype.base_dtype else apply_op("Cast", x=x, DstT=like.dtype.base_dtype)


def _of_wide(
    values: Tensor, u: Tensor, v: Tensor, g_values: Tensor, g_u: Tensor, g_v: Tensor, rows: int, columns: int
) -> Any:
    """The gradient of a matrix with no more rows than columns, u [rows, rows] and v [columns, rows or columns]."""
    scale, v_1, g_v_1 = _diagonal(values), v[..., :rows], g_v[..., :rows]
    inverse = _diagonal(_safe_reciprocal(values))
    factors = _over_gaps(apply_op("Square", x=values))
    turned_v = matmul(v_1, g_v_1, adjoint_a=True)
    of_u, of_v = factors * matmul(u, g_u, adjoint_a=True), factors * turned_v
    inner = _diagonal(g_values) + matmul(of_u + _adjoint(of_u), scale) + matmul(scale, of_v + _adjoint(of_v))
    if values.dtype.is_complex:
        # a phase that u and v share
        phase = _diagonal(apply_op("MatrixDiagPart", input=turned_v))
        inner += matmul(inverse, _adjoint(phase) - phase) * 0.5
    total = matmul(u, matmul(inner, v_1, adjoint_b=True))
    if rows == columns:
        return total
    # what moves the first rows of v out of the space that they span
    out = _adjoint(g_v_1) - matmul(turned_v, v_1, adjoint_a=True, adjoint_b=True)
    if v.get_shape()[-1:].as_list() == [columns]:
        out -= matmul(matmul(v_1, g_v[..., rows:], adjoint_a=True), v[..., rows:], adjoint_b=True)
    return total + matmul(matmul(u, inverse), out)


@gradient("Eig")
def _eig(op: Operation, g_values: Tensor, g_vectors: Tensor | None) -> Any:
    matrix = op.inputs[0]
    if op.get_attr("compute_v"):
        values, vectors = op.outputs
    else:
        complex_type = op.outputs[0].dtype.base_dtype
        values, vectors = apply_op("Eig", input=matrix, compute_v=True, Tout=complex_type)
    turned = _adjoint(vectors)
    inner = _diagonal(g_values)
    if op.get_attr("compute_v") and not _is_none(g_vectors):
        along = matmul(turned, g_vectors)
        lengths = apply_op("Real", input=apply_op("MatrixDiagPart", input=along), Tout=_real_type(values))
        kept = matmul(matmul(turned, vectors), _diagonal(_as(lengths, values)))
        inner += apply_op("Conj", input=_over_gaps(values)) * (along - kept)
    whole = apply_op("MatrixSolve", matrix=turned, rhs=matmul(inner, turned))
    return whole if matrix.dtype.is_complex else apply_op("Real", input=whole, Tout=matrix.dtype.base_dtype)


def _real_type(x: Tensor) -> Any:
    return dtypes.float64 if x.dtype.base_dtype == dtypes.complex128 else dtypes.float32


@gradient("MatrixSolveLs")
def _matrix_solve_ls(op: Operation, g: Tensor) -> Any:
    a, b, regularizer = op.inputs
    if not op.get_attr("fast"):
        raise ValueError(f"Gradient not defined for fast=False: {op.name!r}")
    known = a.get_shape()
    rows, columns = known[-2:].as_list() if known.ndims is not None else (None, None)
    if rows is None or columns is None:
        raise ValueError(
            f"MatrixSolveLs gradient is not defined for input with unknown inner matrix shape: {op.name!r}"
        )
    is_tall = rows >= columns
    size = min(rows, columns)
    gram = matmul(a, a, adjoint_a=is_tall, adjoint_b=not is_tall)
    ridge = _as(regularizer, a) * apply_op("Diag", diagonal=array_ops.ones([size], a.dtype.base_dtype))
    factor = apply_op("Cholesky", input=gram + ridge)
    if is_tall:
        solved = cholesky_solve(factor, g)
        crossed = matmul(op.outputs[0], solved, adjoint_b=True)
        of_a = matmul(b, solved, adjoint_b=True) - matmul(a, crossed + _adjoint(crossed))
        return of_a, matmul(a, solved), None
    of_b = cholesky_solve(factor, matmul(a, g))
    weights = cholesky_solve(factor, b)
    rest = g - matmul(a, of_b, adjoint_a=True)
    of_a = matmul(weights, rest, adjoint_b=True) - matmul(of_b, matmul(weights, a, adjoint_a=True))
    return of_a, of_b, None
