"""Multivariate normal distributions of `tf.contrib.distributions`, by how their scale is given.

# B batch, K elements, R rank of the low rank part
x = scale · z + loc with z of independent standard normals. scales.py has the scales. Follows TensorFlow 1.15's
contrib/distributions/python/ops/mvn_*.py.
"""

from __future__ import annotations

import math
from typing import Any

import tenfold as tf
from tenfold.contrib.distributions.scales import DiagonalScale, LowRankScale, Scale, TriangularScale, diagonal_scale
from tenfold.distributions.distribution import FULLY_REPARAMETERIZED, Distribution
from tenfold.distributions.kullback_leibler import RegisterKL
from tenfold.distributions.parameters import checked


class MultivariateNormal(Distribution):
    """A normal distribution of vectors (B, K) with a `scale`; base of those below."""

    def __init__(
        self,
        loc: Any,
        scale: Scale,
        validate_args: bool,
        allow_nan_stats: bool,
        parameters: dict[str, Any],
        name: str,
    ) -> None:
        self._loc = None if loc is None else tf.convert_to_tensor(loc, name="loc", dtype=scale.dtype)
        self._scale = scale
        #: Zeros (B, K): the broadcast shape of location and scale.
        zeros = tf.zeros_like(scale.row_norms())
        self._zeros = zeros if self._loc is None else zeros + tf.zeros_like(self._loc)
        super().__init__(
            dtype=scale.dtype,
            reparameterization_type=FULLY_REPARAMETERIZED,
            validate_args=validate_args,
            allow_nan_stats=allow_nan_stats,
            parameters=parameters,
            graph_parents=[self._zeros],
            name=name,
        )

    @property
    def loc(self) -> Any:
        """The mean, or None for zero."""
        return self._loc

    @property
    def scale(self) -> Scale:
        """The scale: `to_dense()`, `diag_part()`, `log_abs_determinant()`."""
        return self._scale

    def log_det_covariance(self, name: str = "log_det_covariance") -> Any:
        """The logarithm of the determinant of the covariance, (B)."""
        with self._name_scope(name):
            return 2.0 * self.scale.log_abs_determinant()

    def det_covariance(self, name: str = "det_covariance") -> Any:
        """The determinant of the covariance, (B)."""
        with self._name_scope(name):
            return tf.exp(2.0 * self.scale.log_abs_determinant())

    def _batch_shape_tensor(self) -> Any:
        return tf.shape(self._zeros)[:-1]

    def _batch_shape(self) -> Any:
        return self._zeros.get_shape()[:-1]

    def _event_shape_tensor(self) -> Any:
        return tf.shape(self._zeros)[-1:]

    def _event_shape(self) -> Any:
        return self._zeros.get_shape()[-1:]

    def _size(self) -> Any:
        return tf.cast(tf.shape(self._zeros)[-1], self.dtype)

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        drawn = tf.random_normal(tf.concat([[n], tf.shape(self._zeros)], 0), dtype=self.dtype, seed=seed)
        moved = self.scale.matvec(drawn)
        return moved if self.loc is None else moved + self.loc

    def _log_prob(self, x: Any) -> Any:
        z = self.scale.solvevec(x if self.loc is None else x - self.loc)
        length = -0.5 * tf.reduce_sum(tf.square(z), axis=-1)
        return length - 0.5 * self._size() * math.log(2.0 * math.pi) - self.scale.log_abs_determinant()

    def _entropy(self) -> Any:
        entropy = 0.5 * self._size() * (1.0 + math.log(2.0 * math.pi)) + self.scale.log_abs_determinant()
        return entropy + tf.reduce_sum(self._zeros, axis=-1)

    def _mean(self) -> Any:
        return tf.identity(self._zeros) if self.loc is None else self.loc + self._zeros

    def _covariance(self) -> Any:
        dense = self.scale.to_dense()
        return tf.matmul(dense, dense, adjoint_b=True)

    def _variance(self) -> Any:
        return tf.square(self.scale.row_norms()) + self._zeros

    def _stddev(self) -> Any:
        return self.scale.row_norms() + self._zeros

    def _mode(self) -> Any:
        return self._mean()


class MultivariateNormalDiag(MultivariateNormal):
    """Independent elements with standard deviations `scale_diag` or `scale_identity_multiplier`, or their sum."""

    def __init__(
        self,
        loc: Any = None,
        scale_diag: Any = None,
        scale_identity_multiplier: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "MultivariateNormalDiag",
    ) -> None:
        """Raises ValueError if nothing says how many elements there are."""
        parameters = dict(locals())
        with tf.name_scope(name) as name:
            scale = diagonal_scale(loc, scale_diag, scale_identity_multiplier, validate_args)
            super().__init__(loc, scale, validate_args, allow_nan_stats, parameters, name)


class MultivariateNormalDiagWithSoftplusScale(MultivariateNormalDiag):
    """MultivariateNormalDiag with softplus(scale_diag)."""

    def __init__(
        self,
        loc: Any,
        scale_diag: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "MultivariateNormalDiagWithSoftplusScale",
    ) -> None:
        parameters = dict(locals())
        with tf.name_scope(name) as name:
            positive = tf.nn.softplus(scale_diag)
            super().__init__(loc, positive, validate_args=validate_args, allow_nan_stats=allow_nan_stats, name=name)
        self._parameters = parameters


class MultivariateNormalTriL(MultivariateNormal):
    """A scale that is lower triangular, (B, K, K); the identity without one."""

    def __init__(
        self,
        loc: Any = None,
        scale_tril: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "MultivariateNormalTriL",
    ) -> None:
        """Raises ValueError if neither is given."""
        parameters = dict(locals())
        with tf.name_scope(name) as name:
            scale: Scale
            if scale_tril is None:
                scale = diagonal_scale(loc, None, None, validate_args)
            else:
                lower = tf.convert_to_tensor(scale_tril, name="scale_tril")
                if validate_args:
                    message = "diagonal part must be non-zero"
                    diagonal = tf.abs(tf.matrix_diag_part(lower))
                    lower = checked([tf.assert_positive(diagonal, message=message)], lower)
                scale = TriangularScale(tf.matrix_band_part(lower, -1, 0))
            super().__init__(loc, scale, validate_args, allow_nan_stats, parameters, name)


class MultivariateNormalFullCovariance(MultivariateNormalTriL):
    """A covariance (B, K, K) that is symmetric and positive definite."""

    def __init__(
        self,
        loc: Any = None,
        covariance_matrix: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "MultivariateNormalFullCovariance",
    ) -> None:
        parameters = dict(locals())
        with tf.name_scope(name) as name:
            lower = None
            if covariance_matrix is not None:
                matrix = tf.convert_to_tensor(covariance_matrix, name="covariance_matrix")
                if validate_args:
                    message = "Matrix was not symmetric."
                    symmetric = tf.assert_near(matrix, tf.matrix_transpose(matrix), message=message)
                    matrix = checked([symmetric], matrix)
                lower = tf.cholesky(matrix)
            super().__init__(loc, lower, validate_args, allow_nan_stats, name)
        self._parameters = parameters


class MultivariateNormalDiagPlusLowRank(MultivariateNormal):
    """A scale that is a diagonal plus factor · diag · factor', the factor being (B, K, R)."""

    def __init__(
        self,
        loc: Any = None,
        scale_diag: Any = None,
        scale_identity_multiplier: Any = None,
        scale_perturb_factor: Any = None,
        scale_perturb_diag: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "MultivariateNormalDiagPlusLowRank",
    ) -> None:
        """Raises ValueError if nothing says how many elements there are."""
        parameters = dict(locals())
        with tf.name_scope(name) as name:
            hint = loc if loc is not None or scale_perturb_factor is None else scale_perturb_factor[..., 0]
            diagonal = diagonal_scale(hint, scale_diag, scale_identity_multiplier, validate_args)
            scale: Scale = diagonal
            if scale_perturb_factor is not None:
                scale = LowRankScale(diagonal, scale_perturb_factor, scale_perturb_diag)
            super().__init__(loc, scale, validate_args, allow_nan_stats, parameters, name)


@RegisterKL(MultivariateNormal, MultivariateNormal)
def _kl_normals(a: MultivariateNormal, b: MultivariateNormal, name: str | None = None) -> Any:
    with tf.name_scope(name, "kl_mvn"):
        if isinstance(a.scale, DiagonalScale) and isinstance(b.scale, DiagonalScale):
            ratio = tf.reduce_sum(tf.square(a.scale.diag_part() / b.scale.diag_part()), -1)
        else:
            ratio = tf.reduce_sum(tf.square(b.scale.solve(a.scale.to_dense())), [-2, -1])
        distance = tf.reduce_sum(tf.square(b.scale.solvevec(b.mean() - a.mean())), -1)
        return b.scale.log_abs_determinant() - a.scale.log_abs_determinant() + 0.5 * (ratio - a._size() + distance)
