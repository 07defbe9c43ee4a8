"""`tf.distributions.Normal`. Follows TensorFlow 1.15's python/ops/distributions/normal.py."""

from __future__ import annotations

import math
from typing import Any

import tenfold as tf
from tenfold.distributions import special
from tenfold.distributions.distribution import FULLY_REPARAMETERIZED, ScalarDistribution, shapes_of
from tenfold.distributions.kullback_leibler import RegisterKL
from tenfold.distributions.location_scale import LocationScale


class Normal(LocationScale, ScalarDistribution):
    """exp(-z ** 2 / 2) / (sqrt(2 pi) scale) with z = (x - loc) / scale."""

    def __init__(
        self, loc: Any, scale: Any, validate_args: bool = False, allow_nan_stats: bool = True, name: str = "Normal"
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
        drawn = tf.random_normal(self._full_shape(n), mean=0.0, stddev=1.0, dtype=self.loc.dtype, seed=seed)
        return drawn * self.scale + self.loc

    def _log_prob(self, x: Any) -> Any:
        return -0.5 * tf.square(self._z(x)) - (0.5 * math.log(2.0 * math.pi) + tf.log(self.scale))

    def _log_cdf(self, x: Any) -> Any:
        return special.log_ndtr(self._z(x))

    def _cdf(self, x: Any) -> Any:
        return special.ndtr(self._z(x))

    def _log_survival_function(self, x: Any) -> Any:
        return special.log_ndtr(-self._z(x))

    def _survival_function(self, x: Any) -> Any:
        return special.ndtr(-self._z(x))

    def _entropy(self) -> Any:
        return 0.5 * math.log(2.0 * math.pi * math.e) + tf.log(self._stddev())

    def _mean(self) -> Any:
        return self.loc * tf.ones_like(self.scale)

    def _quantile(self, p: Any) -> Any:
        return special.ndtri(p) * self.scale + self.loc

    def _stddev(self) -> Any:
        return self.scale * tf.ones_like(self.loc)

    def _mode(self) -> Any:
        return self._mean()


class NormalWithSoftplusScale(Normal):
    """Normal whose scale is softplus(scale)."""

    def __init__(
        self,
        loc: Any,
        scale: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "NormalWithSoftplusScale",
    ) -> None:
        parameters = dict(locals())
        with tf.name_scope(name) as name:
            positive = tf.nn.softplus(scale, name="softplus_scale")
            super().__init__(loc, positive, validate_args, allow_nan_stats, name)
        self._parameters = parameters


@RegisterKL(Normal, Normal)
def _kl_normal_normal(a: Normal, b: Normal, name: str | None = None) -> Any:
    with tf.name_scope(name, "kl_normal_normal"):
        variance = tf.square(b.scale)
        ratio = tf.square(a.scale) / variance
        return tf.squared_difference(a.loc, b.loc) / (2.0 * variance) + 0.5 * (ratio - 1.0 - tf.log(ratio))
