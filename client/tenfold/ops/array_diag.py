"""Diagonals of matrices, and their transposes. Matrices are the last two dimensions.

Functions that are exactly one operation are in ops/generated_ops.py. Node names follow TensorFlow 1.15.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold.graph.op_builder import tensor_op
from tenfold.ops import array, math

if TYPE_CHECKING:
    from tenfold.graph.tensor import Tensor


def matrix_diag(
    diagonal: Any, name: str = "diag", k: Any = 0, num_rows: Any = -1, num_cols: Any = -1, padding_value: Any = 0
) -> Tensor:
    """Matrices with the given diagonals `k` (one number, or a pair: the lowest and the highest), zero elsewhere."""
    diagonal = convert_to_tensor(diagonal)
    if _is_main(k) and num_rows == -1 and num_cols == -1 and _is_zero(padding_value):
        return tensor_op("MatrixDiag", name, diagonal=diagonal)
    padding = convert_to_tensor(padding_value, dtype=diagonal.dtype)
    return tensor_op(
        "MatrixDiagV2", name, diagonal=diagonal, k=k, num_rows=num_rows, num_cols=num_cols, padding_value=padding
    )


def matrix_diag_part(input: Any, name: str = "diag_part", k: Any = 0, padding_value: Any = 0) -> Tensor:
    """The diagonals `k` of a batch of matrices."""
    input = convert_to_tensor(input)
    if _is_main(k) and _is_zero(padding_value):
        return tensor_op("MatrixDiagPart", name, input=input)
    if input.dtype.is_bool and _is_zero(padding_value):
        padding_value = False
    padding = convert_to_tensor(padding_value, dtype=input.dtype)
    return tensor_op("MatrixDiagPartV2", name, input=input, k=k, padding_value=padding)


def matrix_set_diag(input: Any, diagonal: Any, name: str = "set_diag", k: Any = 0) -> Tensor:
    """A batch of matrices with their diagonals `k` replaced."""
    if _is_main(k):
        return tensor_op("MatrixSetDiag", name, input=input, diagonal=diagonal)
    return tensor_op("MatrixSetDiagV2", name, input=input, diagonal=diagonal, k=k)


def _is_main(k: Any) -> bool:
    return isinstance(k, int) and k == 0


def _is_zero(value: Any) -> bool:
    return isinstance(value, (int, float)) and value == 0


def matrix_transpose(a: Any, name: str = "matrix_transpose", conjugate: bool = False) -> Tensor:
    """Each matrix of a batch transposed. Raises ValueError for fewer than two dimensions."""
    with name_scope(name, values=[a]):
        a = convert_to_tensor(a, name="a")
        ndims = a.shape.ndims
        if ndims is None:
            rank = array.rank(a)
            head = math.range(rank - 2)
            perm: Any = array.concat([head, [rank - 1, rank - 2]], 0)
        elif ndims < 2:
            raise ValueError(f"Argument 'a' should be a (batch) matrix, with rank >= 2.  Found: {a.shape}")
        else:
            perm = [*range(ndims - 2), ndims - 1, ndims - 2]
        return array.transpose(a, perm, conjugate=conjugate)
