"""Functions of matrices (`tf.linalg.expm`) and tridiagonal systems (`tf.linalg.tridiagonal_solve`, …).

As TensorFlow 1.15's ops/linalg/linalg_impl.py. Matrices are the last two dimensions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold.graph.op_builder import tensor_op
from tenfold.ops import array, math, slicing
from tenfold.ops.array_diag import matrix_diag_part, matrix_transpose
from tenfold.ops.control_flow_while import while_loop
from tenfold.ops.linalg import _conjugate, eye
from tenfold_core import dtypes

if TYPE_CHECKING:
    from tenfold.graph.tensor import Tensor

#: Coefficients of the numerators of Padé's approximants of exp, and the norms up to which each is exact (Higham 2005).
_PADE = {
    3: (120.0, 60.0, 12.0, 1.0),
    5: (30240.0, 15120.0, 3360.0, 420.0, 30.0, 1.0),
    7: (17297280.0, 8648640.0, 1995840.0, 277200.0, 25200.0, 1512.0, 56.0, 1.0),
    9: (17643225600.0, 8821612800.0, 2075673600.0, 302702400.0, 30270240.0, 2162160.0, 110880.0, 3960.0, 90.0, 1.0),
    13: (64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0, 129060195264000.0,
         10559470521600.0, 670442572800.0, 33522128640.0, 1323241920.0, 40840800.0, 960960.0, 16380.0, 182.0, 1.0),
}  # fmt: skip
_SINGLE = ((3, 4.258730016922831e-001), (5, 1.880152677804762e000), (7, 3.925724783138660))
_DOUBLE = (
    (3, 1.495585217958292e-002),
    (5, 2.539398330063230e-001),
    (7, 9.504178996162932e-001),
    (9, 2.097847961257068e000),
    (13, 5.371920351148152),
)


def _pade(x: Tensor, order: int) -> tuple[Tensor, Tensor]:
    """The odd and the even part of the numerator; the denominator is their difference."""
    b = _PADE[order]
    unit = eye(array.shape(x)[-1], batch_shape=array.shape(x)[:-2], dtype=x.dtype)
    square = math.matmul(x, x)
    power, odd, even = unit, b[1] * unit, b[0] * unit
    for i in range(2, order, 2):
        power = math.matmul(power, square) if i > 2 else square
        odd, even = odd + b[i + 1] * power, even + b[i] * power
    return math.matmul(x, odd), even


def matrix_exponential(input: Any, name: str | None = None) -> Tensor:
    """exp of each square matrix, by scaling and squaring of Padé's approximants.

    Raises ValueError for a type that is no float and not complex.
    """
    with name_scope(name, "matrix_exponential", [input]):
        given = convert_to_tensor(input, name="input")
        if not (given.dtype.is_floating or given.dtype.is_complex):
            raise ValueError(f"tf.linalg.expm does not support matrices of type {given.dtype}")
        if given.shape.ndims is not None and given.shape.as_list()[-2:] == [0, 0]:
            return given
        sizes = array.shape(given)
        x = array.reshape(given, array.concat([[-1], sizes[-2:]], 0))
        norm = math.reduce_max(math.reduce_sum(math.abs(x), axis=-2), axis=-1)
        table = _DOUBLE if x.dtype in (dtypes.float64, dtypes.complex128) else _SINGLE
        ratio = norm / array.constant(table[-1][1], norm.dtype)
        squarings = math.maximum(math.floor(math.log(ratio) / array.constant(np.log(2.0), norm.dtype)), 0.0)
        # the largest approximant is of a matrix that is scaled down
        scale = math.cast(math.pow(array.constant(2.0, norm.dtype), squarings), x.dtype)
        scaled = x / array.expand_dims(array.expand_dims(scale, -1), -1)
        odd, even = _pade(scaled, table[-1][0])
        for order, bound in reversed(table[:-1]):
            is_small = math.less(norm, array.constant(bound, norm.dtype))
            smaller = _pade(x, order)
            odd, even = slicing.where(is_small, smaller[0], odd), slicing.where(is_small, smaller[1], even)
        result = tensor_op("MatrixSolve", None, matrix=even - odd, rhs=odd + even)
        most = math.reduce_max(squarings)

        def square(i: Tensor, r: Tensor) -> tuple[Tensor, Tensor]:
            return i + 1.0, slicing.where(math.less(i, squarings), math.matmul(r, r), r)

        start = array.constant(0.0, norm.dtype)
        _, result = while_loop(lambda i, _: math.less(i, most), square, [start, result])
        result = array.reshape(result, sizes)
        result.set_shape(given.shape)
        return result


def _size(x: Tensor, axis: int) -> int | None:
    return None if x.shape.ndims is None else x.shape.as_list()[axis]


def _known_size(matrix: Tensor) -> int:
    """Of matrices whose diagonals are wanted. Raises ValueError."""
    rows, columns = _size(matrix, -2), _size(matrix, -1)
    if rows and columns and rows != columns:
        raise ValueError(f"Expected last two dimensions of diagonals to be same, got {columns} and {rows}")
    known = rows or columns
    if not known:
        raise ValueError('The size of the matrix needs to be known for diagonals_format="matrix"')
    return known


def _of_matrix(matrix: Tensor) -> list[Tensor]:
    """The diagonals [.., M] above, on and below the main one; what they do not have is zero."""
    size = _known_size(matrix)
    rank = matrix.shape.ndims or 2
    none: list[list[int]] = [[0, 0]] * (rank - 2)
    if size == 1:
        zero = array.zeros_like(matrix[..., 0])
        return [zero, matrix[..., 0], zero]
    above = array.pad(matrix_diag_part(matrix[..., :-1, 1:]), [*none, [0, 1]])
    below = array.pad(matrix_diag_part(matrix[..., 1:, :-1]), [*none, [1, 0]])
    return [above, matrix_diag_part(matrix), below]


def _of_sequence(diagonals: Any) -> list[Tensor]:
    """Three diagonals of one length. Raises ValueError."""
    if not isinstance(diagonals, (tuple, list)) or len(diagonals) != 3:
        raise ValueError("Expected diagonals to be a sequence of length 3.")
    above, main, below = (convert_to_tensor(x) for x in diagonals)
    if not (
        below.shape[:-1].is_compatible_with(main.shape[:-1]) and above.shape[:-1].is_compatible_with(main.shape[:-1])
    ):
        raise ValueError(
            "Tensors representing the three diagonals must have the same shape,except for the last dimension, got "
            f"{below.shape}, {main.shape}, {above.shape}"
        )
    size = _size(main, -1)

    def filled(x: Tensor, what: str, edge: list[int]) -> Tensor:
        count = _size(x, -1)
        if not count or not size or count == size:
            return x
        if count == size - 1:
            return array.pad(x, [*([[0, 0]] * (len(x.shape.as_list()) - 1)), edge])
        raise ValueError(f"Expected {what} to be have length {size} or {size - 1}, got {count}.")

    return [filled(above, "superdiagonal", [0, 1]), main, filled(below, "subdiagonal", [1, 0])]


def tridiagonal_solve(
    diagonals: Any,
    rhs: Any,
    diagonals_format: str = "compact",
    transpose_rhs: bool = False,
    conjugate_rhs: bool = False,
    name: str | None = None,
    partial_pivoting: bool = True,
) -> Tensor:
    """x of T x = rhs [.., M] or [.., M, K], T being tridiagonal.

    `diagonals` are [.., 3, M] ("compact"), three tensors ("sequence") or [.., M, M] ("matrix"), in the order above, on
    and below the main one. Raises ValueError for shapes that do not fit.
    """
    if diagonals_format == "sequence":
        compact = array.stack(_of_sequence(diagonals), axis=-2)
    elif diagonals_format == "matrix":
        compact = array.stack(_of_matrix(convert_to_tensor(diagonals)), axis=-2)
    elif diagonals_format == "compact":
        compact = convert_to_tensor(diagonals)
    else:
        raise ValueError(f"Unrecognized diagonals_format: {diagonals_format}")
    right = convert_to_tensor(rhs, dtype=compact.dtype.base_dtype)
    is_vector = _check_solvable(compact, right)
    if is_vector:
        right = array.expand_dims(_conjugate(right) if conjugate_rhs else right, -1)
    elif transpose_rhs:
        right = matrix_transpose(right, conjugate=conjugate_rhs)
    elif conjugate_rhs:
        right = _conjugate(right)
    equations, sides = _size(compact, -1), _size(right, -2)
    if equations and sides and equations != sides:
        raise ValueError(
            f"Expected number of left-hand sided and right-hand sides to be equal, got {equations} and {sides}"
        )
    solved = tensor_op("TridiagonalSolve", name, diagonals=compact, rhs=right, partial_pivoting=partial_pivoting)
    if is_vector:
        return array.squeeze(solved, -1)
    return matrix_transpose(solved) if transpose_rhs else solved


def _check_solvable(compact: Tensor, right: Tensor) -> bool:
    """Whether the right side is a vector. Raises ValueError where ranks or batches do not fit."""
    rank, sides = len(compact.shape.as_list()), len(right.shape.as_list())
    if rank < 2:
        raise ValueError(f"Expected diagonals to have rank at least 2, got {rank}")
    if sides not in (rank - 1, rank):
        raise ValueError(f"Expected the rank of rhs to be {rank - 1} or {rank}, got {sides}")
    if _size(compact, -2) not in (None, 3):
        raise ValueError(f"Expected 3 diagonals got {_size(compact, -2)}")
    if not compact.shape[:-2].is_compatible_with(right.shape[: rank - 2]):
        raise ValueError(f"Batch shapes {compact.shape[:-2]} and {right.shape[: rank - 2]} are incompatible")
    return sides == rank - 1


def tridiagonal_matmul(diagonals: Any, rhs: Any, diagonals_format: str = "compact", name: str | None = None) -> Tensor:
    """The product of a tridiagonal matrix and rhs [.., M, N]; `diagonals` as `tridiagonal_solve` takes them.

    Raises ValueError for shapes that do not fit.
    """
    if diagonals_format == "compact":
        compact = convert_to_tensor(diagonals)
        parts = [compact[..., i, :] for i in range(3)]
    elif diagonals_format == "sequence":
        parts = [convert_to_tensor(x) for x in diagonals]
    elif diagonals_format == "matrix":
        parts = _of_matrix(convert_to_tensor(diagonals))
    else:
        raise ValueError(f"Unrecognized diagonals_format: {diagonals_format}")
    above, main, below = (array.expand_dims(x, -2) for x in parts)
    return tensor_op("TridiagonalMatMul", name, superdiag=above, maindiag=main, subdiag=below, rhs=rhs)
