"""Gradient rows of triangular solving and of factorizations; definitions in tenfold_core/opdefs/linalg.py.

Follows TensorFlow's ops/linalg_grad.py. Matrices are the last two dimensions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.gradients.broadcast import undo_batch_broadcast
from tenfold.gradients.registry import gradient
from tenfold.graph.op_builder import apply_op
from tenfold.ops import array as array_ops
from tenfold.ops.array_diag import matrix_transpose
from tenfold.ops.math import matmul

if TYPE_CHECKING:
    from tenfold.graph.operation import Operation
    from tenfold.graph.tensor import Tensor


def _adjoint(x: Tensor) -> Tensor:
    return matrix_transpose(x, conjugate=True)


def _band(x: Tensor, lower: int, upper: int) -> Tensor:
    result: Tensor = apply_op("MatrixBandPart", input=x, num_lower=lower, num_upper=upper)
    return result


def _diagonal(x: Tensor) -> Tensor:
    result: Tensor = apply_op("MatrixDiag", diagonal=x)
    return result


@gradient("MatrixTriangularSolve")
def _matrix_triangular_solve(op: Operation, g: Tensor) -> Any:
    matrix, solution = op.inputs[0], op.outputs[0]
    adjoint, lower = op.get_attr("adjoint"), op.get_attr("lower")
    of_rhs = apply_op("MatrixTriangularSolve", matrix=matrix, rhs=g, lower=lower, adjoint=not adjoint)
    pair = (solution, of_rhs) if adjoint else (of_rhs, solution)
    of_matrix = apply_op("Neg", x=matmul(pair[0], pair[1], adjoint_b=True))
    return undo_batch_broadcast(op, _band(of_matrix, -1, 0) if lower else _band(of_matrix, 0, -1), of_rhs)


@gradient("SelfAdjointEigV2")
def _self_adjoint_eig(op: Operation, g_values: Tensor | None, g_vectors: Tensor | None) -> Any:
    matrix = op.inputs[0]
    if op.get_attr("compute_v"):
        values, vectors = op.outputs
    else:
        values, vectors = apply_op("SelfAdjointEigV2", input=matrix, compute_v=True)
    inner: Any = None
    if g_values is not None:
        inner = _diagonal(g_values)
    if g_vectors is not None and op.get_attr("compute_v"):
        gaps = apply_op("ExpandDims", input=values, dim=-2) - apply_op("ExpandDims", input=values, dim=-1)
        inverse = apply_op("MatrixSetDiag", input=apply_op("Reciprocal", x=gaps), diagonal=array_ops.zeros_like(values))
        turned = inverse * matmul(vectors, g_vectors, adjoint_a=True)
        inner = turned if inner is None else inner + turned
    whole = matmul(vectors, matmul(inner, vectors, adjoint_b=True))
    # The op reads only the lower triangle, so the gradient of the upper one is added to it.
    folded = _band(whole + _adjoint(whole), -1, 0)
    halves = apply_op("MatrixDiagPart", input=folded) * 0.5
    return apply_op("MatrixSetDiag", input=folded, diagonal=halves)


@gradient("Qr")
def _qr(op: Operation, g_q: Tensor | None, g_r: Tensor | None) -> Any:
    q, r = op.outputs
    known = r.get_shape()
    rows, columns = known[-2:].as_list() if known.ndims is not None else (None, None)
    if rows is None or columns is None:
        raise NotImplementedError(f"QrGrad not implemented with dynamic shapes: {op.name!r}")
    if op.get_attr("full_matrices") and rows > columns:
        raise NotImplementedError(
            f"QrGrad not implemented when nrows > ncols and full_matrices is true: {op.name!r} has r of "
            f"[{rows}, {columns}]"
        )
    g_q = array_ops.zeros_like(q) if g_q is None else g_q
    g_r = array_ops.zeros_like(r) if g_r is None else g_r
    if rows >= columns:
        return _of_tall(q, r, g_q, g_r)
    # the first columns have all of q; what follows them, in the matrix and in r, is q times the rest of r
    rest, g_rest = op.inputs[0][..., rows:], g_r[..., rows:]
    of_first = _of_tall(q, r[..., :rows], g_q + matmul(rest, g_rest, adjoint_b=True), g_r[..., :rows])
    return array_ops.concat([of_first, matmul(q, g_rest)], -1)


def _of_tall(q: Tensor, r: Tensor, g_q: Tensor, g_r: Tensor) -> Tensor:
    """The gradient of a matrix with no more columns than rows: q (M, N), r (N, N), M >= N."""
    of_q, of_r = matmul(q, g_q, adjoint_a=True), matmul(r, g_r, adjoint_b=True)
    skew_q, skew_r = of_q - _adjoint(of_q), of_r - _adjoint(of_r)
    lower = _band(skew_q + skew_r, -1, 0)
    if q.dtype.is_complex:
        # r's diagonal is real: it takes no part of what would turn its phase
        lower -= _diagonal(apply_op("MatrixDiagPart", input=skew_q + skew_r) * 0.5)

    def divided(x: Tensor) -> Tensor:
        """x r^-H."""
        return _adjoint(apply_op("MatrixTriangularSolve", matrix=r, rhs=_adjoint(x), lower=False, adjoint=False))

    return matmul(q, g_r + divided(lower)) + divided(g_q - matmul(q, of_q))
