"""`tf.distributions.Dirichlet`. Follows TensorFlow 1.15's python/ops/distributions/dirichlet.py."""

from __future__ import annotations

from typing import Any

import tenfold as tf
from tenfold.distributions.distribution import FULLY_REPARAMETERIZED, Distribution
from tenfold.distributions.kullback_leibler import RegisterKL
from tenfold.distributions.parameters import checked, nan_where_not


class OverLastDimension(Distribution):
    """A distribution of vectors whose parameter `concentration` (B, K) has their shape."""

    _concentration: Any
    _total_concentration: Any

    @property
    def concentration(self) -> Any:
        """The weight of each element, (B, K)."""
        return self._concentration

    @property
    def total_concentration(self) -> Any:
        """The sum of the weights, (B)."""
        return self._total_concentration

    def _batch_shape_tensor(self) -> Any:
        return tf.shape(self.total_concentration)

    def _batch_shape(self) -> Any:
        return self.total_concentration.get_shape()

    def _event_shape_tensor(self) -> Any:
        return tf.shape(self.concentration)[-1:]

    def _event_shape(self) -> Any:
        return self.concentration.get_shape().with_rank_at_least(1)[-1:]

    def _outer(self, x: Any) -> Any:
        """The covariance with -x x' beside the diagonal and the variance on it."""
        product = tf.matmul(x[..., tf.newaxis], x[..., tf.newaxis, :])
        return tf.matrix_set_diag(-product, self._variance())


class Dirichlet(OverLastDimension):
    """prod(x ** (concentration - 1)) / B(concentration) over vectors x (B, K) of positive numbers that sum to 1."""

    def __init__(
        self, concentration: Any, validate_args: bool = False, allow_nan_stats: bool = True, name: str = "Dirichlet"
    ) -> None:
        parameters = dict(locals())
        with tf.name_scope(name) as name:
            value = tf.convert_to_tensor(concentration, name="concentration")
            if validate_args:
                most = "Concentration parameter must have event_size >= 2."
                value = checked(
                    [
                        tf.assert_positive(value, message="Concentration parameter must be positive."),
                        tf.assert_rank_at_least(value, 1, message="Concentration parameter must have >=1 dimensions."),
                        tf.assert_less(1, tf.shape(value)[-1], message=most),
                    ],
                    value,
                )
            self._concentration = value
            self._total_concentration = tf.reduce_sum(value, -1)
        super().__init__(
            dtype=self._concentration.dtype,
            reparameterization_type=FULLY_REPARAMETERIZED,
            validate_args=validate_args,
            allow_nan_stats=allow_nan_stats,
            parameters=parameters,
            graph_parents=[self._concentration, self._total_concentration],
            name=name,
        )

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        drawn = tf.random_gamma([n], self.concentration, dtype=self.dtype, seed=seed)
        return drawn / tf.reduce_sum(drawn, -1, keepdims=True)

    def _log_prob(self, x: Any) -> Any:
        if self.validate_args:
            whole = "sample last-dimension must sum to `1`"
            x = checked(
                [
                    tf.assert_positive(x, message="samples must be positive"),
                    tf.assert_near(tf.ones([], dtype=self.dtype), tf.reduce_sum(x, -1), message=whole),
                ],
                x,
            )
        return tf.reduce_sum(tf.math.xlogy(self.concentration - 1.0, x), -1) - tf.lbeta(self.concentration)

    def _classes(self) -> Any:
        return tf.cast(self.event_shape_tensor()[0], self.dtype)

    def _entropy(self) -> Any:
        parts = tf.reduce_sum((self.concentration - 1.0) * tf.digamma(self.concentration), axis=-1)
        total = (self.total_concentration - self._classes()) * tf.digamma(self.total_concentration)
        return tf.lbeta(self.concentration) + total - parts

    def _mean(self) -> Any:
        return self.concentration / self.total_concentration[..., tf.newaxis]

    def _spread(self) -> Any:
        return tf.rsqrt(1.0 + self.total_concentration[..., tf.newaxis])

    def _covariance(self) -> Any:
        return self._outer(self._spread() * self._mean())

    def _variance(self) -> Any:
        scale = self._spread()
        x = scale * self._mean()
        return x * (scale - x)

    def _mode(self) -> Any:
        mode = (self.concentration - 1.0) / (self.total_concentration[..., tf.newaxis] - self._classes())
        if self.allow_nan_stats:
            defined = tf.reduce_all(self.concentration > 1.0, axis=-1, keepdims=True)
            return nan_where_not(defined, mode, tf.shape(mode))
        message = "Mode undefined when any concentration <= 1"
        return checked([tf.assert_less(tf.ones([], self.dtype), self.concentration, message=message)], mode)


@RegisterKL(Dirichlet, Dirichlet)
def _kl_dirichlet_dirichlet(a: Dirichlet, b: Dirichlet, name: str | None = None) -> Any:
    with tf.name_scope(name, "kl_dirichlet_dirichlet"):
        total = tf.digamma(tf.reduce_sum(a.concentration, axis=-1, keepdims=True))
        parts = (a.concentration - b.concentration) * (tf.digamma(a.concentration) - total)
        return tf.reduce_sum(parts, axis=-1) - tf.lbeta(a.concentration) + tf.lbeta(b.concentration)
