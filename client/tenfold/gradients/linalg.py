"""Gradient rows of linear algebra; the op definitions are in tenfold_core/opdefs/linalg.py.

Follows TensorFlow's ops/linalg_grad.py. Matrices are the last two dimensions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.gradients.registry import gradient, not_implemented
from tenfold.graph.op_builder import apply_op
from tenfold.ops.array_diag import matrix_transpose

if TYPE_CHECKING:
    from tenfold.graph.operation import Operation
    from tenfold.graph.tensor import Tensor


def _product(x: Tensor, y: Tensor, adj_x: bool = False, adj_y: bool = False) -> Any:
    return apply_op("BatchMatMulV2", x=x, y=y, adj_x=adj_x, adj_y=adj_y)


def _adjoint(x: Tensor) -> Any:
    return matrix_transpose(x, conjugate=True)


def _columns(x: Tensor) -> Any:
    """One value per matrix of a batch, as a batch of [1, 1] matrices."""
    return apply_op("ExpandDims", input=apply_op("ExpandDims", input=x, dim=-1), dim=-1)


@gradient("MatrixDeterminant", "BatchMatrixDeterminant")
def _determinant(op: Operation, g: Tensor) -> Any:
    inverse = apply_op("MatrixInverse", input=op.inputs[0], adjoint=True)
    return _columns(g * op.outputs[0]) * inverse


@gradient("LogMatrixDeterminant")
def _log_determinant(op: Operation, _: Any, g: Tensor) -> Any:
    return _columns(g) * apply_op("MatrixInverse", input=op.inputs[0], adjoint=True)


@gradient("MatrixSolve", "BatchMatrixSolve")
def _solve(op: Operation, g: Tensor) -> Any:
    matrix, adjoint = op.inputs[0], op.get_attr("adjoint")
    of_right = apply_op("MatrixSolve", matrix=matrix, rhs=g, adjoint=not adjoint)
    solved = op.outputs[0]
    product = _product(solved, of_right, adj_y=True) if adjoint else _product(of_right, solved, adj_y=True)
    return apply_op("Neg", x=product), of_right


@gradient("Cholesky", "BatchCholesky")
def _cholesky(op: Operation, g: Tensor) -> Any:
    # L⁻ᴴ · Φ(Lᴴ · g) · L⁻¹, made symmetric; Φ is the lower triangle with half the diagonal
    factor = op.outputs[0]
    inner = apply_op("MatrixBandPart", input=_product(factor, g, adj_x=True), num_lower=-1, num_upper=0)
    halves = apply_op("MatrixDiagPart", input=inner) * 0.5
    inner = apply_op("MatrixSetDiag", input=inner, diagonal=halves)
    left = apply_op("MatrixTriangularSolve", matrix=factor, rhs=inner, lower=True, adjoint=True)
    # x · L⁻¹ is the adjoint of L⁻ᴴ · xᴴ
    whole = apply_op("MatrixTriangularSolve", matrix=factor, rhs=_adjoint(left), lower=True, adjoint=True)
    return (whole + _adjoint(whole)) * 0.5


@gradient("MatrixInverse", "BatchMatrixInverse")
def _inverse(op: Operation, g: Tensor) -> Any:
    inverse, adjoint = op.outputs[0], op.get_attr("adjoint")
    inner = _product(g, inverse, adj_x=adjoint, adj_y=not adjoint)
    return apply_op("Neg", x=_product(inverse, inner, adj_x=not adjoint))


not_implemented(
    "BatchCholeskyGrad",
    "BatchMatrixSolveLs",
    "BatchMatrixTriangularSolve",
    "BatchSelfAdjointEig",
    "BatchSelfAdjointEigV2",
    "BatchSvd",
    "CholeskyGrad",
    "Lu",
    "MatrixExponential",
    "MatrixLogarithm",
    "SelfAdjointEig",
)
