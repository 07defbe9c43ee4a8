"""Linear algebra (`tf.linalg`): factorizations with several results, norms, solving, products written as equations.

Functions that are exactly one operation (cholesky, …) are in ops/generated_ops.py; namespaces.py has their public
names. Node names follow TensorFlow 1.15.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold.graph.op_builder import apply_op, tensor_op
from tenfold.ops import array, math, slicing
from tenfold.ops.array import _alias
from tenfold.ops.array_diag import matrix_diag, matrix_transpose
from tenfold.ops.math_complex import real
from tenfold_core import dtypes
from tenfold_core.dtypes import as_dtype

if TYPE_CHECKING:
    from tenfold.graph.argument_types import DTypeLike, TensorLike
    from tenfold.graph.tensor import Tensor


def eye(
    num_rows: Any,
    num_columns: Any = None,
    batch_shape: Any = None,
    dtype: DTypeLike = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """The identity matrix, or a batch of them: ones on the diagonal."""
    with name_scope(name, "eye", [num_rows, num_columns, batch_shape]):
        columns = num_rows if num_columns is None else num_columns
        known = all(isinstance(n, (int, np.integer)) for n in (num_rows, columns))
        shortest = min(int(num_rows), int(columns)) if known else math.minimum(num_rows, columns)
        batch = [] if batch_shape is None else batch_shape
        ones = array.ones(_joined(batch, [shortest]), dtype)
        if num_columns is None:
            return matrix_diag(ones)
        zeros = array.zeros(_joined(batch, [num_rows, columns]), dtype)
        return tensor_op("MatrixSetDiag", None, input=zeros, diagonal=ones)


def _joined(batch: Any, sizes: list[Any]) -> Any:
    """The shape `batch` followed by `sizes`: a list if all are static."""
    if isinstance(batch, (list, tuple)):
        return [*batch, *sizes]
    return array.concat([convert_to_tensor(batch, preferred_dtype=dtypes.int32), array.stack(sizes)], 0)


# --- factorizations ---


def svd(tensor: TensorLike, full_matrices: bool = False, compute_uv: bool = True, name: str | None = None) -> Any:
    """`(s, u, v)` with tensor = u diag(s) v^H; only s unless `compute_uv`."""
    s, u, v = apply_op("Svd", name, input=tensor, compute_uv=compute_uv, full_matrices=full_matrices)
    return (s, u, v) if compute_uv else s


def self_adjoint_eig(tensor: TensorLike, name: str | None = None) -> tuple[Tensor, Tensor]:
    """The eigenvalues, in ascending order, and the eigenvectors of self-adjoint matrices."""
    values, vectors = apply_op("SelfAdjointEigV2", name, input=tensor, compute_v=True)
    return values, vectors


def self_adjoint_eigvals(tensor: TensorLike, name: str | None = None) -> Tensor:
    """The eigenvalues of self-adjoint matrices."""
    values: Tensor = apply_op("SelfAdjointEigV2", name, input=tensor, compute_v=False)[0]
    return values


# --- solving ---


def cholesky_solve(chol: Any, rhs: Any, name: str | None = None) -> Tensor:
    """Solves A X = rhs, given the Cholesky factor of A."""
    with name_scope(name, "cholesky_solve", [chol, rhs]):
        lower = tensor_op("MatrixTriangularSolve", None, matrix=chol, rhs=rhs, adjoint=False, lower=True)
        return tensor_op("MatrixTriangularSolve", None, matrix=chol, rhs=lower, adjoint=True, lower=True)


def matrix_solve_ls(
    matrix: Any, rhs: Any, l2_regularizer: float = 0.0, fast: bool = True, name: str | None = None
) -> Tensor:
    """Solves linear least squares, with an L2 penalty of the solution."""
    regularizer: Any = l2_regularizer
    if not hasattr(regularizer, "graph"):
        regularizer = array.constant(regularizer, dtypes.float64, name="l2_regularizer")
    return tensor_op("MatrixSolveLs", name, matrix=matrix, rhs=rhs, l2_regularizer=regularizer, fast=fast)


def adjoint(matrix: Any, name: str | None = None) -> Tensor:
    """Each matrix transposed and conjugated."""
    with name_scope(name, "adjoint", [matrix]):
        return matrix_transpose(convert_to_tensor(matrix, name="matrix"), conjugate=True)


def logdet(matrix: Any, name: str | None = None) -> Tensor:
    """The logarithm of the determinant of Hermitian positive definite matrices."""
    with name_scope(name, "logdet", [matrix]):
        factor = tensor_op("Cholesky", None, input=matrix)
        diagonal = tensor_op("MatrixDiagPart", None, input=factor)
        if factor.dtype.is_complex:
            diagonal = real(diagonal)
        return 2.0 * math.reduce_sum(math.log(diagonal), axis=[-1])


def matrix_rank(a: TensorLike, tol: Any = None, validate_args: bool = False, name: str | None = None) -> Tensor:
    """How many singular values of each matrix are above `tol` (default: as NumPy)."""
    with name_scope(name, "matrix_rank", [a, tol]):
        a = convert_to_tensor(a, name="a")
        s = svd(a, compute_uv=False)
        if tol is None:
            limit = np.finfo(a.dtype.as_numpy_dtype).eps
            size = math.cast(math.reduce_max(array.shape(a)[-2:]), s.dtype)
            tol = limit * size * math.reduce_max(s, axis=-1, keepdims=True)
        return math.reduce_sum(math.cast(math.greater(s, tol), dtypes.int32), axis=-1)


def pinv(a: TensorLike, rcond: Any = None, validate_args: bool = False, name: str | None = None) -> Tensor:
    """The Moore-Penrose inverse of each matrix; singular values below `rcond` times the largest count as zero."""
    with name_scope(name or "pinv"):
        a = convert_to_tensor(a, name="a")
        if not a.dtype.is_floating:
            raise TypeError(f"Input `a` must have `float`-like `dtype` (saw {a.dtype.name}).")
        if rcond is None:
            sizes = a.shape[-2:].as_list() if a.shape.ndims is not None else [None]
            longest: Any
            if None in sizes:
                longest = math.cast(math.reduce_max(array.shape(a)[-2:]), a.dtype)
            else:
                longest = max(size for size in sizes if size is not None)
            rcond = 10.0 * longest * np.finfo(a.dtype.as_numpy_dtype).eps
        rcond = convert_to_tensor(rcond, dtype=a.dtype.base_dtype, name="rcond")
        s, u, v = svd(a, full_matrices=False, compute_uv=True)
        cutoff = rcond * math.reduce_max(s, axis=-1)
        infinite = array.fill(array.shape(s), array.constant(np.inf, s.dtype))
        kept = slicing.where_v2(math.greater(s, array.expand_dims(cutoff, -1)), s, infinite)
        return math.matmul(v / array.expand_dims(kept, -2), u, adjoint_b=True)


# --- norms ---


def norm(
    tensor: Any,
    ord: Any = "euclidean",
    axis: Any = None,
    keepdims: bool | None = None,
    name: str | None = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """The norm of vectors (axis a number) or matrices (axis a pair), of the whole tensor if axis is None.

    `ord` is "euclidean", "fro", 1, 2, np.inf, or any positive number for vectors.
    """
    keep = bool(_alias("keepdims", keepdims, "keep_dims", keep_dims))
    of_matrix = isinstance(axis, (tuple, list)) and len(axis) == 2
    if of_matrix:
        axis = tuple(axis)
        if axis[0] == axis[1]:
            raise ValueError("'axis' must be None, an integer, or a tuple of 2 unique integers")
        allowed: list[Any] = ["euclidean", "fro", 1, 2, np.inf]
        if ord not in allowed:
            raise ValueError(f"'ord' must be a supported matrix norm in {allowed}, got {ord}")
    else:
        if axis is not None and not isinstance(axis, (int, np.integer)):
            if not isinstance(axis, (tuple, list)) or len(axis) != 1:
                raise ValueError("'axis' must be None, an integer, or a tuple of 2 unique integers")
            axis = axis[0]
        if isinstance(ord, str) and ord != "euclidean":
            raise ValueError(f"'ord' must be a supported vector norm, got {ord}")
        if not isinstance(ord, str) and not ord > 0:
            raise ValueError(f"'ord' must be a supported vector norm, got {ord}")
    with name_scope(name, "norm", [tensor]):
        tensor = convert_to_tensor(tensor)
        if ord in ("fro", "euclidean", 2, 2.0) and not (of_matrix and ord in (2, 2.0)):
            squares = tensor * (_conjugate(tensor))
            result = math.sqrt(math.reduce_sum(squares, axis, True))
        elif of_matrix and ord in (2, 2.0):
            order, back = _axes_last(tensor, axis)
            largest = math.reduce_max(svd(array.transpose(tensor, order), compute_uv=False), axis=-1, keepdims=True)
            result = array.transpose(array.expand_dims(largest, -1), back)
        else:
            result = math.abs(tensor)
            if ord == 1:
                result = math.reduce_sum(result, axis[0] if of_matrix else axis, keepdims=True)
                result = math.reduce_max(result, axis[1], keepdims=True) if of_matrix else result
            elif ord == np.inf:
                result = math.reduce_sum(result, axis[1], keepdims=True) if of_matrix else result
                result = math.reduce_max(result, axis[0] if of_matrix else axis, keepdims=True)
            else:
                result = math.pow(math.reduce_sum(math.pow(result, ord), axis, True), 1.0 / ord)
        if keep:
            return result
        if axis is None:
            return array.reshape(result, [])
        return array.squeeze(result, list(axis) if of_matrix else axis)


def _axes_last(tensor: Tensor, axes: tuple[int, int]) -> tuple[Any, Any]:
    """The permutation that puts `axes` last, and the way back."""
    rank = tensor.shape.ndims
    if rank is not None:
        last = [i % rank for i in axes]
        order = [i for i in range(rank) if i not in last] + last
        return order, np.argsort(order)
    size = array.rank(tensor)
    moved = math.floormod(array.constant(axes), size)
    order_t = array.concat([slicing.setdiff1d(math.range(size), moved)[0], moved], 0)
    return order_t, slicing.invert_permutation(order_t)


def _conjugate(x: Tensor) -> Tensor:
    return tensor_op("Conj", None, input=x) if x.dtype.is_complex else x


def normalize(
    tensor: TensorLike, ord: Any = "euclidean", axis: TensorLike | None = None, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """`(tensor / norm, norm)` with the norm along `axis`."""
    with name_scope(name, "normalize", [tensor]):
        tensor = convert_to_tensor(tensor)
        length = math.cast(norm(tensor, ord, axis, keepdims=True), as_dtype(tensor.dtype))
        return tensor / length, length


def trace(x: TensorLike, name: str | None = None) -> Tensor:
    """The sum of the diagonal of each matrix."""
    with name_scope(name, "Trace", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        return math.reduce_sum(tensor_op("MatrixDiagPart", "diag_part", input=x), [-1], name=scope)


def matvec(
    a: TensorLike,
    b: TensorLike,
    transpose_a: bool = False,
    adjoint_a: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: str | None = None,
) -> Tensor:
    """The product of a matrix and a vector; of more dimensions, for each pair.

    # a (…, M, K), b (…, K) → (…, M)
    """
    with name_scope(name, "MatVec", [a, b]) as scope:
        column = array.expand_dims(b, axis=-1)
        product = math.matmul(a, column, transpose_a=transpose_a, adjoint_a=adjoint_a)
        return array.squeeze(product, axis=-1, name=scope)
