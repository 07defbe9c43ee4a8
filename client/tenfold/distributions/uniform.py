"""`tf.distributions.Uniform`. Follows TensorFlow 1.15's python/ops/distributions/uniform.py."""

from __future__ import annotations

import math
from typing import Any

import tenfold as tf
from tenfold.distributions.distribution import FULLY_REPARAMETERIZED, ScalarDistribution, shapes_of


class Uniform(ScalarDistribution):
    """1 / (high - low) from low, included, to high, excluded."""

    def __init__(
        self,
        low: Any = 0.0,
        high: Any = 1.0,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Uniform",
    ) -> None:
        """Raises TypeError for parameters of different types."""
        parameters = dict(locals())
        with tf.name_scope(name) as name:
            message = "uniform not defined when low >= high."
            with tf.control_dependencies([tf.assert_less(low, high, message=message)] if validate_args else []):
                self._low = tf.identity(low, name="low")
                self._high = tf.identity(high, name="high")
            tf.assert_same_float_dtype([self._low, self._high])
        super().__init__(
            dtype=self._low.dtype,
            reparameterization_type=FULLY_REPARAMETERIZED,
            validate_args=validate_args,
            allow_nan_stats=allow_nan_stats,
            parameters=parameters,
            graph_parents=[self._low, self._high],
            name=name,
        )

    @staticmethod
    def _param_shapes(sample_shape: Any) -> dict[str, Any]:
        return shapes_of("low high", sample_shape)

    @property
    def low(self) -> Any:
        """The lower end."""
        return self._low

    @property
    def high(self) -> Any:
        """The upper end."""
        return self._high

    def range(self, name: str = "range") -> Any:
        """high - low."""
        with self._name_scope(name):
            return self.high - self.low

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        drawn = tf.random_uniform(self._full_shape(n), dtype=self.dtype, seed=seed)
        return self.low + self.range() * drawn

    def _prob(self, x: Any) -> Any:
        x = x * tf.ones(self.batch_shape_tensor(), dtype=x.dtype)
        outside = tf.logical_or(x < self.low, x >= self.high)
        inside = tf.ones_like(x) / self.range()
        return tf.where_v2(tf.is_nan(x), x, tf.where_v2(outside, tf.zeros_like(x), inside))

    def _cdf(self, x: Any) -> Any:
        shape = tf.broadcast_dynamic_shape(tf.shape(x), self.batch_shape_tensor())
        zeros, ones = tf.zeros(shape, dtype=self.dtype), tf.ones(shape, dtype=self.dtype)
        below = tf.where_v2(x < self.low, zeros, (x * ones - self.low) / self.range())
        return tf.where_v2(x >= self.high, ones, below)

    def _entropy(self) -> Any:
        return tf.log(self.range())

    def _mean(self) -> Any:
        return (self.low + self.high) / 2.0

    def _variance(self) -> Any:
        return tf.square(self.range()) / 12.0

    def _stddev(self) -> Any:
        return self.range() / math.sqrt(12.0)
