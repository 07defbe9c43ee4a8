"""Shape functions of decompositions, solvers and sparse tensors; the others are in shape_fns.py.

A matrix op works on the last two dimensions; those before them are a batch. Follows linalg_ops.cc and sparse_ops.cc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold_core.opdefs.shape_fns import _less, _merge, _vector_constant, broadcast_shapes, unchanged
from tenfold_core.tensor_shape import TensorShape, from_dims

if TYPE_CHECKING:
    from tenfold_core.shape_inference import ShapeContext

    Shapes = list[TensorShape]

__all__ = ["unchanged"]

_UNKNOWN = TensorShape(None)


def _matrix(c: ShapeContext, index: int = 0) -> tuple[list[int | None], int | None, int | None] | None:
    """Batch, rows and columns of an input; None where its rank is not known."""
    shape = c.input(index)
    if shape.ndims is None:
        return None
    dims = shape.with_rank_at_least(2).as_list()
    return dims[:-2], dims[-2], dims[-1]


def determinant(c: ShapeContext) -> Shapes:
    found = _square(c)
    return [_UNKNOWN if found is None else from_dims(found[0])]


def log_determinant(c: ShapeContext) -> Shapes:
    return determinant(c) * 2


def solve(c: ShapeContext) -> Shapes:
    """Square matrices [.., n, n] and right sides [.., n, k] → as the right sides; of one batch, or broadcast."""
    square, right = _square(c), _matrix(c, 1)
    if c.op_def.name == "MatrixTriangularSolve":
        if square is None or right is None:
            return [_UNKNOWN]
        batch = broadcast_shapes(from_dims(square[0]), from_dims(right[0]))
    elif square is None and right is None:
        return [_UNKNOWN]
    else:
        batch = _UNKNOWN.merge_with(_UNKNOWN if square is None else from_dims(square[0]))
        batch = batch.merge_with(_UNKNOWN if right is None else from_dims(right[0]))
    rows = _merge(square and square[1], right and right[1], f" for a solution of {c.op_def.name}")
    return [batch.concatenate([rows, right and right[2]])]


def eigen(c: ShapeContext) -> Shapes:
    """Values [.., n] and vectors [.., n, n], which are empty when they are not computed."""
    found = _square(c)
    if found is None:
        return [_UNKNOWN, _UNKNOWN if c.attrs["compute_v"] else from_dims([0])]
    batch, size = found
    vectors = from_dims([*batch, size, size]) if c.attrs["compute_v"] else from_dims([0])
    return [from_dims([*batch, size]), vectors]


def eigen_in_one(c: ShapeContext) -> Shapes:
    """[.., n + 1, n]: a row of values, and the vectors under it."""
    found = _square(c)
    if found is None:
        return [_UNKNOWN]
    batch, size = found
    return [from_dims([*batch, None if size is None else size + 1, size])]


def svd(c: ShapeContext) -> Shapes:
    found = _matrix(c)
    if found is None:
        return [_UNKNOWN, *[_UNKNOWN if c.attrs["compute_uv"] else from_dims([0])] * 2]
    batch, rows, columns = found
    less = _less(rows, columns)
    if not c.attrs["compute_uv"]:
        return [from_dims([*batch, less]), from_dims([0]), from_dims([0])]
    full = c.attrs["full_matrices"]
    u = from_dims([*batch, rows, rows if full else less])
    return [from_dims([*batch, less]), u, from_dims([*batch, columns, columns if full else less])]


def qr(c: ShapeContext) -> Shapes:
    found = _matrix(c)
    if found is None:
        return [_UNKNOWN] * 2
    batch, rows, columns = found
    less = _less(rows, columns)
    if c.attrs["full_matrices"]:
        return [from_dims([*batch, rows, rows]), from_dims([*batch, rows, columns])]
    return [from_dims([*batch, rows, less]), from_dims([*batch, less, columns])]


def _square(c: ShapeContext, index: int = 0) -> tuple[list[int | None], int | None] | None:
    """Batch and size of square matrices. Raises ValueError for others."""
    found = _matrix(c, index)
    if found is None:
        return None
    batch, rows, columns = found
    if rows is not None and columns is not None and rows != columns:
        raise ValueError(f"Dimensions must be equal, but are {rows} and {columns} for a square matrix")
    return batch, columns if rows is None else rows


def square(c: ShapeContext) -> Shapes:
    found = _square(c)
    return [_UNKNOWN if found is None else from_dims([*found[0], found[1], found[1]])]


def lu(c: ShapeContext) -> Shapes:
    found = _square(c)
    if found is None:
        return [_UNKNOWN] * 2
    return [from_dims([*found[0], found[1], found[1]]), from_dims([*found[0], found[1]])]


def least_squares(c: ShapeContext) -> Shapes:
    """Matrices [.., m, n] and right sides [.., m, k] → [.., n, k]."""
    matrix, right = c.input(0).with_rank_at_least(2), c.input(1).with_rank_at_least(2)
    if matrix.ndims is None and right.ndims is None:
        return [_UNKNOWN]
    batch = (TensorShape(None) if matrix.ndims is None else matrix[:-2]).merge_with(
        TensorShape(None) if right.ndims is None else right[:-2]
    )
    columns = None if matrix.ndims is None else matrix.as_list()[-1]
    sides = None if right.ndims is None else right.as_list()[-1]
    return [batch.concatenate([columns, sides])]


def as_right_side(c: ShapeContext) -> Shapes:
    """A tridiagonal system's solution, or its product: as the last input."""
    return [c.inputs[-1]]


def sparse_matmul(c: ShapeContext) -> Shapes:
    shape, dense = _vector_constant(c, 2, 2), c.input(3)
    rows = None if shape is None else int(shape[1 if c.attrs["adjoint_a"] else 0])
    if dense.ndims is None:
        return [from_dims([rows, None])]
    columns = dense.with_rank(2).as_list()[0 if c.attrs["adjoint_b"] else 1]
    return [from_dims([rows, columns])]
