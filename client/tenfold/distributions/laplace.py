"""`tf.distributions.Laplace`. Follows TensorFlow 1.15's python/ops/distributions/laplace.py."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import tenfold as tf
from tenfold.distributions import special
from tenfold.distributions.distribution import FULLY_REPARAMETERIZED, ScalarDistribution, shapes_of
from tenfold.distributions.location_scale import LocationScale


class Laplace(LocationScale, ScalarDistribution):
    """exp(-|z|) / (2 scale) with z = (x - loc) / scale."""

    def __init__(
        self, loc: Any, scale: Any, validate_args: bool = False, allow_nan_stats: bool = True, name: str = "Laplace"
    ) -> None:
        """Raises TypeError for parameters of different types."""
        parameters = dict(locals())
        with tf.name_scope(name) as name:
            self._set_location_and_scale(loc, scale, validate_args)
        super().__init__(
            dtype=self._loc.dtype,
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
        # The interval is open, so that the logarithm is of no zero.
        number = self.dtype.as_numpy_dtype
        low = np.nextafter(number(-1.0), number(0.0))
        drawn = tf.random_uniform(self._full_shape(n), minval=low, maxval=1.0, dtype=self.dtype, seed=seed)
        return self.loc - self.scale * tf.sign(drawn) * tf.log1p(-tf.abs(drawn))

    def _log_prob(self, x: Any) -> Any:
        return -tf.abs(self._z(x)) - (math.log(2.0) + tf.log(self.scale))

    def _log_cdf(self, x: Any) -> Any:
        return special.log_cdf_laplace(self._z(x))

    def _log_survival_function(self, x: Any) -> Any:
        return special.log_cdf_laplace(-self._z(x))

    def _cdf(self, x: Any) -> Any:
        z = self._z(x)
        return 0.5 + 0.5 * tf.sign(z) * (1.0 - tf.exp(-tf.abs(z)))

    def _entropy(self) -> Any:
        return math.log(2.0) + 1.0 + tf.log(self.scale + tf.zeros_like(self.loc))

    def _mean(self) -> Any:
        return self.loc + tf.zeros_like(self.scale)

    def _stddev(self) -> Any:
        return math.sqrt(2.0) * self.scale + tf.zeros_like(self.loc)

    def _mode(self) -> Any:
        return self._mean()


class LaplaceWithSoftplusScale(Laplace):
    """Laplace whose scale is softplus(scale)."""

    def __init__(
        self,
        loc: Any,
        scale: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "LaplaceWithSoftplusScale",
    ) -> None:
        parameters = dict(locals())
        with tf.name_scope(name) as name:
            positive = tf.nn.softplus(scale, name="softplus_scale")
            super().__init__(loc, positive, validate_args, allow_nan_stats, name)
        self._parameters = parameters
