"""`tf.linalg.LinearOperatorLowerTriangular`: the one LinearOperator that programs of TensorFlow 1 use.

Attention masks are written with it (`…(ones).to_dense()`). Products, solutions and determinants are those of
`tf.linalg`. The other LinearOperators are left out. Follows TensorFlow 1.15's ops/linalg/linear_operator.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold.ops import array, linalg, math
from tenfold.ops.array_diag import matrix_diag_part
from tenfold.ops.generated_ops import matrix_band_part, matrix_triangular_solve

if TYPE_CHECKING:
    from tenfold.graph.tensor import Tensor
    from tenfold_core.dtypes import DType
    from tenfold_core.tensor_shape import TensorShape

__all__ = ["LinearOperatorLowerTriangular"]


class LinearOperatorLowerTriangular:
    """The lower triangle of matrices `tril` [..., N, N], what is above it taken as zero.

    The `is_…` arguments are promises that nothing checks. Raises ValueError for `is_square=False` and for less than two
    dimensions.
    """

    def __init__(
        self,
        tril: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorLowerTriangular",
    ) -> None:
        if is_square is False:
            raise ValueError("Only square lower triangular operators supported at this time.")
        with name_scope(name, values=[tril]):
            self._tril: Tensor = convert_to_tensor(tril, name="tril")
        rank = self._tril.get_shape().ndims
        if rank is not None and rank < 2:
            raise ValueError(f"Argument tril must have at least 2 dimensions.  Found: {self._tril}")
        self.name = name
        self.is_square = True
        self.is_non_singular = is_non_singular
        self.is_self_adjoint = is_self_adjoint
        self.is_positive_definite = is_positive_definite

    @property
    def dtype(self) -> DType:
        """The type of the matrices."""
        return self._tril.dtype

    @property
    def shape(self) -> TensorShape:
        """The static shape of the matrices."""
        return self._tril.get_shape()

    def shape_tensor(self, name: str = "shape_tensor") -> Tensor:
        """The shape of the matrices, int32."""
        return array.shape(self._tril, name=name)

    def to_dense(self, name: str = "to_dense") -> Tensor:
        """The matrices, zero above the diagonal."""
        with name_scope(name):
            dense: Tensor = matrix_band_part(self._tril, -1, 0)
            return dense

    def diag_part(self, name: str = "diag_part") -> Tensor:
        """The diagonals [..., N]."""
        with name_scope(name):
            return matrix_diag_part(self._tril)

    def trace(self, name: str = "trace") -> Tensor:
        """The sums of the diagonals."""
        with name_scope(name):
            return math.reduce_sum(self.diag_part(), axis=-1)

    def determinant(self, name: str = "det") -> Tensor:
        """The determinants."""
        with name_scope(name):
            return math.reduce_prod(self.diag_part(), axis=-1)

    def log_abs_determinant(self, name: str = "log_abs_det") -> Tensor:
        """The logarithms of the determinants' absolute values."""
        with name_scope(name):
            return math.reduce_sum(math.log(math.abs(self.diag_part())), axis=-1)

    def matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str = "matmul") -> Tensor:
        """The products with matrices [..., N, R]; of the adjoints if told so."""
        with name_scope(name):
            return math.matmul(self.to_dense(), x, adjoint_a=adjoint, adjoint_b=adjoint_arg)

    def matvec(self, x: Any, adjoint: bool = False, name: str = "matvec") -> Tensor:
        """The products with vectors [..., N]."""
        with name_scope(name):
            return array.squeeze(self.matmul(array.expand_dims(x, -1), adjoint), [-1])

    def solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str = "solve") -> Tensor:
        """The X with `matmul(X) = rhs`, which is [..., N, R]."""
        with name_scope(name):
            right = linalg.adjoint(rhs) if adjoint_arg else rhs
            solved: Tensor = matrix_triangular_solve(self.to_dense(), right, lower=True, adjoint=adjoint)
            return solved

    def solvevec(self, rhs: Any, adjoint: bool = False, name: str = "solve") -> Tensor:
        """The x with `matvec(x) = rhs`, which is [..., N]."""
        with name_scope(name):
            return array.squeeze(self.solve(array.expand_dims(rhs, -1), adjoint), [-1])

    def add_to_tensor(self, x: Any, name: str = "add_to_tensor") -> Tensor:
        """The matrices plus `x`."""
        with name_scope(name):
            return math.add(self.to_dense(), x)
