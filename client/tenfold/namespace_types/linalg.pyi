# Written by `make stubs` from the table of tf.linalg in namespaces.py.

from tenfold.ops.array_diag import matrix_diag as diag
from tenfold.ops.array_diag import matrix_diag_part as diag_part
from tenfold.ops.array_diag import matrix_set_diag as set_diag
from tenfold.ops.array_diag import matrix_transpose
from tenfold.ops.array_diag import matrix_transpose as transpose
from tenfold.ops.clip import global_norm
from tenfold.ops.generated_ops import cholesky
from tenfold.ops.generated_ops import cross
from tenfold.ops.generated_ops import diag as tensor_diag
from tenfold.ops.generated_ops import diag_part as tensor_diag_part
from tenfold.ops.generated_ops import log_matrix_determinant as slogdet
from tenfold.ops.generated_ops import lu
from tenfold.ops.generated_ops import matrix_band_part as band_part
from tenfold.ops.generated_ops import matrix_determinant as det
from tenfold.ops.generated_ops import matrix_inverse as inv
from tenfold.ops.generated_ops import matrix_logarithm as logm
from tenfold.ops.generated_ops import matrix_solve as solve
from tenfold.ops.generated_ops import matrix_square_root as sqrtm
from tenfold.ops.generated_ops import matrix_triangular_solve as triangular_solve
from tenfold.ops.generated_ops import qr
from tenfold.ops.linalg import adjoint
from tenfold.ops.linalg import cholesky_solve
from tenfold.ops.linalg import eye
from tenfold.ops.linalg import logdet
from tenfold.ops.linalg import matrix_rank
from tenfold.ops.linalg import matrix_solve_ls as lstsq
from tenfold.ops.linalg import matvec
from tenfold.ops.linalg import norm
from tenfold.ops.linalg import normalize
from tenfold.ops.linalg import pinv
from tenfold.ops.linalg import self_adjoint_eig as eigh
from tenfold.ops.linalg import self_adjoint_eigvals as eigvalsh
from tenfold.ops.linalg import svd
from tenfold.ops.linalg import trace
from tenfold.ops.linalg_functions import matrix_exponential as expm
from tenfold.ops.linalg_functions import tridiagonal_matmul
from tenfold.ops.linalg_functions import tridiagonal_solve
from tenfold.ops.linear_operator import LinearOperatorLowerTriangular
from tenfold.ops.math import matmul
from tenfold.ops.nn_norm import l2_normalize
from tenfold.ops.products import einsum
from tenfold.ops.products import tensordot

__all__ = [
    "LinearOperatorLowerTriangular",
    "adjoint",
    "band_part",
    "cholesky",
    "cholesky_solve",
    "cross",
    "det",
    "diag",
    "diag_part",
    "eigh",
    "eigvalsh",
    "einsum",
    "expm",
    "eye",
    "global_norm",
    "inv",
    "l2_normalize",
    "logdet",
    "logm",
    "lstsq",
    "lu",
    "matmul",
    "matrix_rank",
    "matrix_transpose",
    "matvec",
    "norm",
    "normalize",
    "pinv",
    "qr",
    "set_diag",
    "slogdet",
    "solve",
    "sqrtm",
    "svd",
    "tensor_diag",
    "tensor_diag_part",
    "tensordot",
    "trace",
    "transpose",
    "triangular_solve",
    "tridiagonal_matmul",
    "tridiagonal_solve",
]
