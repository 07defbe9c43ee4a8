"""`tf.distributions.StudentT`. Follows TensorFlow 1.15's python/ops/distributions/student_t.py."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import tenfold as tf
from tenfold.distributions.distribution import FULLY_REPARAMETERIZED, ScalarDistribution, shapes_of
from tenfold.distributions.location_scale import LocationScale
from tenfold.distributions.parameters import checked, gen_new_seed, nan_where_not


class StudentT(LocationScale, ScalarDistribution):
    """Student's t with `df` degrees of freedom, moved by `loc` and spread by `scale`."""

    def __init__(
        self,
        df: Any,
        loc: Any,
        scale: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "StudentT",
    ) -> None:
        """Raises TypeError for parameters of different types."""
        parameters = dict(locals())
        with tf.name_scope(name) as name:
            with tf.control_dependencies([tf.assert_positive(df)] if validate_args else []):
                self._df = tf.identity(df, name="df")
            self._set_location_and_scale(loc, scale, False)
            tf.assert_same_float_dtype((self._df, self._loc, self._scale))
        super().__init__(
            dtype=self._scale.dtype,
            reparameterization_type=FULLY_REPARAMETERIZED,
            validate_args=validate_args,
            allow_nan_stats=allow_nan_stats,
            parameters=parameters,
            graph_parents=[self._df, self._loc, self._scale],
            name=name,
        )

    @staticmethod
    def _param_shapes(sample_shape: Any) -> dict[str, Any]:
        return shapes_of("df loc scale", sample_shape)

    @property
    def df(self) -> Any:
        """The degrees of freedom."""
        return self._df

    def _ones(self) -> Any:
        return tf.ones(self.batch_shape_tensor(), dtype=self.dtype)

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        normal = tf.random_normal(self._full_shape(n), dtype=self.dtype, seed=seed)
        df = self.df * self._ones()
        gamma = tf.random_gamma([n], 0.5 * df, beta=0.5, dtype=self.dtype, seed=gen_new_seed(seed, "student_t"))
        return normal * tf.rsqrt(gamma / df) * self.scale + self.loc

    def _log_prob(self, x: Any) -> Any:
        unnormalized = -0.5 * (self.df + 1.0) * tf.log1p(((x - self.loc) / self.scale) ** 2.0 / self.df)
        return unnormalized - self._log_normalization()

    def _log_normalization(self) -> Any:
        half = 0.5 * self.df
        return (
            tf.log(tf.abs(self.scale))
            + 0.5 * tf.log(self.df)
            + 0.5 * math.log(math.pi)
            + tf.lgamma(half)
            - tf.lgamma(0.5 * (self.df + 1.0))
        )

    def _cdf(self, x: Any) -> Any:
        y = (x - self.loc) / tf.abs(self.scale)
        tail = 0.5 * tf.betainc(0.5 * self.df * tf.ones_like(y), 0.5 * tf.ones_like(y), self.df / (y**2.0 + self.df))
        return tf.where_v2(tf.less(y, 0.0), tail, 1.0 - tail)

    def _entropy(self) -> Any:
        half, more = 0.5 * self.df * self._ones(), 0.5 * (self.df + 1.0)
        beta = tf.lgamma(half) + math.log(math.pi) / 2 - tf.lgamma(half + 0.5)
        scaled = tf.log(tf.abs(self.scale)) + 0.5 * tf.log(self.df)
        return scaled + beta + more * (tf.digamma(more) - tf.digamma(0.5 * self.df))

    def _defined(self, value: Any, what: str) -> Any:
        """The value where df > 1; elsewhere NaN or an error."""
        if self.allow_nan_stats:
            return nan_where_not(tf.greater(self.df, self._ones()), value, self.batch_shape_tensor())
        message = f"{what} not defined for components of df <= 1"
        return checked([tf.assert_less(tf.ones([], dtype=self.dtype), self.df, message=message)], value)

    def _mean(self) -> Any:
        return self._defined(self.loc * self._ones(), "mean")

    def _variance(self) -> Any:
        finite = tf.greater(self.df, 2.0)
        rest = tf.where_v2(finite, self.df - 2.0, tf.ones_like(self.df))
        variance = self._ones() * tf.square(self.scale) * self.df / rest
        endless = tf.fill(self.batch_shape_tensor(), np.array(np.inf, self.dtype.as_numpy_dtype), name="inf")
        return self._defined(tf.where_v2(finite, variance, endless), "variance")

    def _mode(self) -> Any:
        return tf.identity(self.loc)


class StudentTWithAbsDfSoftplusScale(StudentT):
    """StudentT with floor(abs(df)) and softplus(scale)."""

    def __init__(
        self,
        df: Any,
        loc: Any,
        scale: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "StudentTWithAbsDfSoftplusScale",
    ) -> None:
        parameters = dict(locals())
        with tf.name_scope(name) as name:
            positive = tf.nn.softplus(scale, name="softplus_scale")
            super().__init__(tf.floor(tf.abs(df)), loc, positive, validate_args, allow_nan_stats, name)
        self._parameters = parameters
