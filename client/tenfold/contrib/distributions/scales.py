"""Scales of multivariate normal distributions and of the bijector Affine: diagonal, triangular, low rank.

# B batch, K elements, R rank
A scale is a matrix (B, K, K) that is never made unless asked for. Method names are those of TensorFlow's
LinearOperator. Used by multivariate_normal.py and bijectors/affine.py.
"""

from __future__ import annotations

from typing import Any

import tenfold as tf
from tenfold.distributions.parameters import checked


class Scale:
    """A matrix (B, K, K) that has an inverse."""

    dtype: Any

    def matvec(self, x: Any) -> Any:
        """scale · x for vectors (…, K)."""
        raise NotImplementedError

    def solve(self, x: Any) -> Any:
        """The inverse times matrices (…, K, N)."""
        raise NotImplementedError

    def solvevec(self, x: Any) -> Any:
        """The inverse times vectors (…, K)."""
        return tf.squeeze(self.solve(x[..., tf.newaxis]), -1)

    def log_abs_determinant(self) -> Any:
        """The logarithm of the determinant's absolute value, (B)."""
        return tf.reduce_sum(tf.log(tf.abs(self.diag_part())), -1)

    def diag_part(self) -> Any:
        """The diagonal, (B, K)."""
        raise NotImplementedError

    def to_dense(self) -> Any:
        """The matrix."""
        raise NotImplementedError

    def row_norms(self) -> Any:
        """The length of each row, (B, K): the standard deviations."""
        return tf.sqrt(tf.reduce_sum(tf.square(self.to_dense()), -1))


class DiagonalScale(Scale):
    """A diagonal (B, K)."""

    def __init__(self, diagonal: Any) -> None:
        self._diagonal = diagonal
        self.dtype = diagonal.dtype

    def matvec(self, x: Any) -> Any:
        """diagonal * x."""
        return self._diagonal * x

    def solve(self, x: Any) -> Any:
        """x / diagonal, row by row."""
        return x / self._diagonal[..., tf.newaxis]

    def solvevec(self, x: Any) -> Any:
        """x / diagonal."""
        return x / self._diagonal

    def diag_part(self) -> Any:
        """The diagonal."""
        return self._diagonal

    def to_dense(self) -> Any:
        """The matrix."""
        return tf.matrix_diag(self._diagonal)

    def row_norms(self) -> Any:
        """The absolute values."""
        return tf.abs(self._diagonal)


class TriangularScale(Scale):
    """A lower triangular matrix (B, K, K)."""

    def __init__(self, lower: Any) -> None:
        self._lower = lower
        self.dtype = lower.dtype

    def matvec(self, x: Any) -> Any:
        """lower · x."""
        # With more vectors than matrices the sum broadcasts, which a product of matrices does not in version 1.
        return tf.reduce_sum(self._lower * x[..., tf.newaxis, :], -1)

    def solve(self, x: Any) -> Any:
        """Solves lower · y = x."""
        lower = self._lower
        if lower.shape.ndims != x.shape.ndims or lower.shape[:-2] != x.shape[:-2]:
            shape = tf.broadcast_dynamic_shape(tf.shape(lower)[:-2], tf.shape(x)[:-2])
            lower = tf.broadcast_to(lower, tf.concat([shape, tf.shape(lower)[-2:]], 0))
            x = tf.broadcast_to(x, tf.concat([shape, tf.shape(x)[-2:]], 0))
        return tf.matrix_triangular_solve(lower, x)

    def diag_part(self) -> Any:
        """The diagonal."""
        return tf.matrix_diag_part(self._lower)

    def to_dense(self) -> Any:
        """The matrix."""
        return self._lower


class LowRankScale(Scale):
    """A diagonal plus factor · diag · factor', by the lemmas of Woodbury and of the determinant."""

    def __init__(self, diagonal: DiagonalScale, factor: Any, diag: Any = None) -> None:
        self._base = diagonal
        self.dtype = diagonal.dtype
        self._factor = tf.convert_to_tensor(factor, name="scale_perturb_factor", dtype=self.dtype)
        ones = tf.ones_like(self._factor[..., 0, :])
        self._diag = ones if diag is None else tf.convert_to_tensor(diag, dtype=self.dtype, name="scale_perturb_diag")

    def _capacitance(self) -> Any:
        inner = tf.matmul(self._factor, self._base.solve(self._factor), transpose_a=True)
        return tf.matrix_diag(1.0 / self._diag * tf.ones_like(inner[..., 0])) + inner

    def matvec(self, x: Any) -> Any:
        """The matrix times x."""
        inner = tf.reduce_sum(self._factor * x[..., tf.newaxis], -2) * self._diag
        return self._base.matvec(x) + tf.reduce_sum(self._factor * inner[..., tf.newaxis, :], -1)

    def solve(self, x: Any) -> Any:
        """The inverse times x."""
        dense = self.to_dense()
        shape = tf.broadcast_dynamic_shape(tf.shape(dense)[:-2], tf.shape(x)[:-2])
        dense = tf.broadcast_to(dense, tf.concat([shape, tf.shape(dense)[-2:]], 0))
        return tf.matrix_solve(dense, tf.broadcast_to(x, tf.concat([shape, tf.shape(x)[-2:]], 0)))

    def log_abs_determinant(self) -> Any:
        """The logarithm of the determinant's absolute value."""
        inner = tf.log(tf.abs(tf.matrix_determinant(self._capacitance())))
        return inner + self._base.log_abs_determinant() + tf.reduce_sum(tf.log(tf.abs(self._diag)), -1)

    def diag_part(self) -> Any:
        """The diagonal."""
        return tf.matrix_diag_part(self.to_dense())

    def to_dense(self) -> Any:
        """The matrix."""
        weighted = self._factor * self._diag[..., tf.newaxis, :]
        return self._base.to_dense() + tf.matmul(weighted, self._factor, transpose_b=True)


def diagonal_scale(like: Any, diagonal: Any, multiplier: Any, validate_args: bool) -> DiagonalScale:
    """The scale of a diagonal and a multiple of the identity; of the identity, as large as `like`, without either.

    Raises ValueError if nothing says how large it is.
    """
    if like is None and diagonal is None:
        raise ValueError("Must provide at least one of loc and scale_diag, which say how many elements there are")
    like = None if like is None else tf.convert_to_tensor(like, name="loc")
    total = None if diagonal is None else tf.convert_to_tensor(diagonal, name="scale_diag")
    if multiplier is not None:
        base = like if total is None else total
        more = tf.convert_to_tensor(multiplier, dtype=base.dtype, name="scale_identity_multiplier")
        more = more[..., tf.newaxis] * tf.ones_like(base[..., :])
        total = more if total is None else total + more
    if total is None:
        assert like is not None
        total = tf.ones_like(like)
    if validate_args:
        total = checked([tf.assert_positive(tf.abs(total), message="diagonal part must be non-zero")], total)
    return DiagonalScale(total)
