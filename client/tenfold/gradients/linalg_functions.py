"""Gradient rows of roots of matrices and of tridiagonal systems; definitions in tenfold_core/opdefs/linalg.py.

Follows TensorFlow's ops/linalg_grad.py. Diagonals are [.., 3, M]: above the main one, on it, below it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.gradients.registry import gradient
from tenfold.graph.op_builder import apply_op
from tenfold.ops import array as array_ops
from tenfold.ops import math
from tenfold.ops.array_diag import matrix_transpose
from tenfold.ops.linalg import eye

if TYPE_CHECKING:
    from tenfold.graph.operation import Operation
    from tenfold.graph.tensor import Tensor


@gradient("MatrixSquareRoot")
def _square_root(op: Operation, g: Tensor) -> Any:
    # A = R R, so dA = R dR + dR R: a linear system for dR, one element after the other.
    root = op.outputs[0]
    shape = array_ops.shape(root)
    batch, size = shape[:-2], shape[-1]
    unit = eye(size, batch_shape=batch, dtype=root.dtype)

    def kronecker(x: Tensor, y: Tensor) -> Tensor:
        left = array_ops.reshape(x, array_ops.concat([batch, [size, 1, size, 1]], 0))
        right = array_ops.reshape(y, array_ops.concat([batch, [1, size, 1, size]], 0))
        return array_ops.reshape(left * right, array_ops.concat([batch, [size * size, size * size]], 0))

    system = kronecker(unit, matrix_transpose(root)) + kronecker(root, unit)
    given = array_ops.reshape(matrix_transpose(g), array_ops.concat([batch, [size * size, 1]], 0))
    solved = apply_op("MatrixSolve", matrix=system, rhs=given)
    return matrix_transpose(array_ops.reshape(solved, shape))


def _up(x: Tensor) -> Tensor:
    """Rows of [.., M, K] one place up, zeros last."""
    return array_ops.concat([x[..., 1:, :], array_ops.zeros_like(x[..., :1, :])], -2)


def _down(x: Tensor) -> Tensor:
    return array_ops.concat([array_ops.zeros_like(x[..., :1, :]), x[..., :-1, :]], -2)


def _conjugate(x: Tensor) -> Tensor:
    conjugate: Tensor = apply_op("Conj", input=x) if x.dtype.is_complex else x
    return conjugate


def _three(x: Tensor, y: Tensor) -> list[Tensor]:
    """The diagonals of x · adjoint(y): above, on and below the main one, [.., M] each."""
    turned = _conjugate(y)
    return [math.reduce_sum(x * side, -1) for side in (_up(turned), turned, _down(turned))]


@gradient("TridiagonalMatMul")
def _tridiagonal_matmul(op: Operation, g: Tensor) -> Any:
    above, main, below = (matrix_transpose(x, conjugate=True) for x in op.inputs[:3])
    of_right = _down(above * g) + main * g + _up(below * g)
    return (*(array_ops.expand_dims(x, -2) for x in _three(g, op.inputs[3])), of_right)


@gradient("TridiagonalSolve")
def _tridiagonal_solve(op: Operation, g: Tensor) -> Any:
    columns = matrix_transpose(op.inputs[0], conjugate=True)  # [.., M, 3]
    above, main, below = (columns[..., i : i + 1] for i in range(3))
    adjoint = matrix_transpose(array_ops.concat([_up(below), main, _down(above)], -1))
    of_right: Tensor = apply_op(
        "TridiagonalSolve", diagonals=adjoint, rhs=g, partial_pivoting=op.get_attr("partial_pivoting")
    )
    return -array_ops.stack(_three(of_right, op.outputs[0]), axis=-2), of_right
