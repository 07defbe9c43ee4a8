"""`tf.contrib.distributions.Poisson`. Follows TensorFlow 1.15's contrib/distributions/python/ops/poisson.py."""

from __future__ import annotations

from typing import Any

import tenfold as tf
from tenfold.distributions.distribution import NOT_REPARAMETERIZED, ScalarDistribution
from tenfold.distributions.parameters import checked, embed_check_nonnegative_integer_form


class Poisson(ScalarDistribution):
    """rate ** x exp(-rate) / x! for x = 0, 1, …; between these too if `interpolate_nondiscrete`."""

    def __init__(
        self,
        rate: Any = None,
        log_rate: Any = None,
        interpolate_nondiscrete: bool = True,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Poisson",
    ) -> None:
        """Raises ValueError unless one of rate and log_rate is given, TypeError if it is not of floating type."""
        parameters = dict(locals())
        with tf.name_scope(name) as name:
            if (rate is None) == (log_rate is None):
                raise ValueError("Must specify exactly one of `rate` and `log_rate`.")
            given = tf.convert_to_tensor(
                log_rate if rate is None else rate, name="log_rate" if rate is None else "rate"
            )
            if not given.dtype.is_floating:
                raise TypeError(f"rate.dtype ({given.dtype.name}) is a not a float-type.")
            if rate is None:
                self._rate, self._log_rate = tf.exp(given, name="rate"), given
            else:
                self._rate = checked([tf.assert_positive(given)], given) if validate_args else given
                self._log_rate = tf.log(self._rate, name="log_rate")
        self._interpolate_nondiscrete = interpolate_nondiscrete
        super().__init__(
            dtype=self._rate.dtype,
            reparameterization_type=NOT_REPARAMETERIZED,
            validate_args=validate_args,
            allow_nan_stats=allow_nan_stats,
            parameters=parameters,
            graph_parents=[self._rate],
            name=name,
        )

    @property
    def rate(self) -> Any:
        """The mean."""
        return self._rate

    @property
    def log_rate(self) -> Any:
        """The logarithm of the mean."""
        return self._log_rate

    @property
    def interpolate_nondiscrete(self) -> bool:
        """Whether values between the whole numbers have probabilities."""
        return self._interpolate_nondiscrete

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        return tf.random_poisson(self.rate, [n], dtype=self.dtype, seed=seed)

    def _log_prob(self, x: Any) -> Any:
        log_prob = self.log_rate * x - tf.lgamma(1.0 + x) - self.rate
        if self.interpolate_nondiscrete:
            return log_prob
        if self.validate_args:
            x = embed_check_nonnegative_integer_form(x)
        impossible = tf.logical_or(x < 0.0, tf.not_equal(tf.floor(x), x))
        return tf.where_v2(impossible, tf.cast(float("-inf"), self.dtype), log_prob)

    def _cdf(self, x: Any) -> Any:
        positive = tf.maximum(x if self.interpolate_nondiscrete else tf.floor(x), 0.0)
        ones = tf.ones_like(positive) * tf.ones_like(self.rate)
        return tf.where_v2(x < 0.0, tf.zeros_like(ones), tf.igammac((1.0 + positive) * ones, self.rate * ones))

    def _mean(self) -> Any:
        return tf.identity(self.rate)

    def _variance(self) -> Any:
        return tf.identity(self.rate)

    def _mode(self) -> Any:
        return tf.floor(self.rate)
