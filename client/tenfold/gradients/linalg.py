"""Gradient rows of linear algebra; the op definitions are in tenfold_core/opdefs/linalg.py.

Follows TensorFlow's ops/linalg_grad.py. Matrices are the last two dimensions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.gradients.registry import gradient, not_implemented
from tenfold.graph.op_builder import apply_op

if TYPE_CHECKING:
    from tenfold.graph.operation import Operation
    from tenfold.graph.tensor import Tensor


def _product(x: Tensor, y: Tensor, adj_x: bool = False, adj_y: bool = False) -> Any:
    return apply_op("BatchMatMulV2", x=x, y=y, adj_x=adj_x, adj_y=adj_y)


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
    return apply_op("CholeskyGrad", l=op.outputs[0], grad=g)


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
