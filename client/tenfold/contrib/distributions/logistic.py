"""`tf.contrib.distributions.Logistic`. Follows TensorFlow 1.15's contrib/distributions/python/ops/logistic.py."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import tenfold as tf
from tenfold.distributions.distribution import FULLY_REPARAMETERIZED, ScalarDistribution, shapes_of
from tenfold.distributions.location_scale import LocationScale


class Logistic(LocationScale, ScalarDistribution):
    """The distribution whose cumulative function is sigmoid((x - loc) / scale)."""

    def __init__(
        self, loc: Any, scale: Any, validate_args: bool = False, allow_nan_stats: bool = True, name: str = "Logistic"
    ) -> None:
        """Raises TypeError for parameters of different types."""
        parameters = dict(locals())
        with tf.name_scope(name) as name:
            self._set_location_and_scale(loc, scale, validate_args)
        super().__init__(
            dtype=self._scale.dtype,
            reparameterization_type=FULLY_REPARAMETERIZED,
            validate_args=validate_args,
            allow_nan_stats=allow_nan_stats,
            parameters=parameters,
            graph_parents=[self._loc, self._scale],
            name=name,
        )

    @staticmethod
    def _param_shapes(sample_shape: Any) -> dict[str, Any]:
        return shapes_of("loc scale", sample_shape)

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        low = np.finfo(self.dtype.as_numpy_dtype).tiny
        drawn = tf.random_uniform(self._full_shape(n), minval=low, maxval=1.0, dtype=self.dtype, seed=seed)
        return (tf.log(drawn) - tf.log1p(-drawn)) * self.scale + self.loc

    def _log_prob(self, x: Any) -> Any:
        z = self._z(x)
        return -z - 2.0 * tf.nn.softplus(-z) - tf.log(self.scale)

    def _log_cdf(self, x: Any) -> Any:
        return -tf.nn.softplus(-self._z(x))

    def _cdf(self, x: Any) -> Any:
        return tf.sigmoid(self._z(x))

    def _log_survival_function(self, x: Any) -> Any:
        return -tf.nn.softplus(self._z(x))

    def _survival_function(self, x: Any) -> Any:
        return tf.sigmoid(-self._z(x))

    def _entropy(self) -> Any:
        return 2.0 + tf.log(self.scale * tf.ones_like(self.loc))

    def _mean(self) -> Any:
        return self.loc * tf.ones_like(self.scale)

    def _stddev(self) -> Any:
        return self.scale * tf.ones_like(self.loc) * math.pi / math.sqrt(3)

    def _mode(self) -> Any:
        return self._mean()
