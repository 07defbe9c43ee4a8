"""Op definitions: decompositions and solvers of matrices.

A row each: name, inputs, outputs, attributes (TensorFlow's registry at 2.21 is the source of every name, order and
default), flags, and the function that infers static shapes. See `tenfold_core/op_def.py` for the notation.
"""

from __future__ import annotations

from tenfold_core.opdefs import shape_fns_linalg as m
from tenfold_core.opdefs.table import family

op = family("linalg")

op("BatchCholesky", "input: T", "output: T", "T: {double, float}", shape=m.square)
op("BatchCholeskyGrad", "l: T, grad: T", "output: T", "T: {float, double}", shape=m.square)
op("BatchMatrixDeterminant", "input: T", "output: T", "T: {float, double, complex64, complex128}", shape=m.determinant)
op("BatchMatrixInverse", "input: T", "output: T", "adjoint: bool = false", "T: {double, float}", shape=m.square)
op("BatchMatrixSolve", "matrix: T, rhs: T", "output: T", "adjoint: bool = false", "T: {double, float}", shape=m.solve)
op(
    "BatchMatrixSolveLs",
    "matrix: T, rhs: T, l2_regularizer: double",
    "output: T",
    "T: {double, float}",
    "fast: bool = true",
    shape=m.least_squares,
)
op(
    "BatchMatrixTriangularSolve",
    "matrix: T, rhs: T",
    "output: T",
    "lower: bool = true",
    "adjoint: bool = false",
    "T: {double, float}",
    shape=m.solve,
)
op("BatchSelfAdjointEig", "input: T", "output: T", "T: {double, float}", shape=m.eigen_in_one)
op("BatchSelfAdjointEigV2", "input: T", "e: T, v: T", "compute_v: bool = true", "T: {double, float}", shape=m.eigen)
op(
    "BatchSvd",
    "input: T",
    "s: T, u: T, v: T",
    "compute_uv: bool = true",
    "full_matrices: bool = false",
    "T: {double, float, complex64, complex128}",
    shape=m.svd,
)
op("Cholesky", "input: T", "output: T", "T: {double, float, half, complex64, complex128}", shape=m.square)
op("CholeskyGrad", "l: T, grad: T", "output: T", "T: {half, float, double}", shape=m.square)
op(
    "Eig",
    "input: T",
    "e: Tout, v: Tout",
    "compute_v: bool = true",
    "T: {float, double, complex64, complex128}",
    "Tout: {complex64, complex128}",
    shape=m.eigen,
)
op(
    "LogMatrixDeterminant",
    "input: T",
    "sign: T, log_abs_determinant: T",
    "T: {half, float, double, complex64, complex128}",
    shape=m.log_determinant,
)
op(
    "Lu",
    "input: T",
    "lu: T, p: output_idx_type",
    "T: {double, float, half, complex64, complex128}",
    "output_idx_type: {index} = int32",
    shape=m.lu,
)
op("MatrixDeterminant", "input: T", "output: T", "T: {half, float, double, complex64, complex128}", shape=m.determinant)
op("MatrixExponential", "input: T", "output: T", "T: {double, float, half, complex64, complex128}", shape=m.unchanged)
op(
    "MatrixInverse",
    "input: T",
    "output: T",
    "adjoint: bool = false",
    "T: {double, float, half, complex64, complex128}",
    shape=m.square,
)
op("MatrixLogarithm", "input: T", "output: T", "T: {complex64, complex128}", shape=m.square)
op(
    "MatrixSolve",
    "matrix: T, rhs: T",
    "output: T",
    "adjoint: bool = false",
    "T: {double, float, half, complex64, complex128}",
    shape=m.solve,
)
op(
    "MatrixSolveLs",
    "matrix: T, rhs: T, l2_regularizer: double",
    "output: T",
    "T: {double, float, half, complex64, complex128}",
    "fast: bool = true",
    shape=m.least_squares,
)
op("MatrixSquareRoot", "input: T", "output: T", "T: {double, float, half, complex64, complex128}", shape=m.square)
op(
    "MatrixTriangularSolve",
    "matrix: T, rhs: T",
    "output: T",
    "lower: bool = true",
    "adjoint: bool = false",
    "T: {bfloat16, double, float, half, complex64, complex128}",
    shape=m.solve,
)
op(
    "Qr",
    "input: T",
    "q: T, r: T",
    "full_matrices: bool = false",
    "T: {double, float, half, complex64, complex128}",
    shape=m.qr,
)
op("SelfAdjointEig", "input: T", "output: T", "T: {double, float, half}", shape=m.eigen_in_one)
op(
    "SelfAdjointEigV2",
    "input: T",
    "e: T, v: T",
    "compute_v: bool = true",
    "T: {double, float, half, complex64, complex128}",
    shape=m.eigen,
)
op(
    "Svd",
    "input: T",
    "s: T, u: T, v: T",
    "compute_uv: bool = true",
    "full_matrices: bool = false",
    "T: {double, float, half, complex64, complex128}",
    shape=m.svd,
)
op(
    "TridiagonalMatMul",
    "superdiag: T, maindiag: T, subdiag: T, rhs: T",
    "output: T",
    "T: {double, float, complex64, complex128}",
    shape=m.as_right_side,
)
op(
    "TridiagonalSolve",
    "diagonals: T, rhs: T",
    "output: T",
    "partial_pivoting: bool = true",
    "perturb_singular: bool = false",
    "T: {double, float, complex64, complex128}",
    shape=m.as_right_side,
)
