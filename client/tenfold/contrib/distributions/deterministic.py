"""`tf.contrib.distributions.Deterministic`. Follows TensorFlow 1.15's contrib/distributions/python/ops."""

from __future__ import annotations

from typing import Any

import tenfold as tf
from tenfold.distributions.distribution import FULLY_REPARAMETERIZED, ScalarDistribution


class Deterministic(ScalarDistribution):
    """Always `loc`; a value is the same if it is no further away than atol + rtol * |loc|."""

    def __init__(
        self,
        loc: Any,
        atol: Any = None,
        rtol: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Deterministic",
    ) -> None:
        parameters = dict(locals())
        with tf.name_scope(name) as name:
            self._loc = tf.convert_to_tensor(loc, name="loc")
            dtype = self._loc.dtype
            self._atol = tf.convert_to_tensor(0 if atol is None else atol, dtype=dtype, name="atol")
            self._rtol = tf.convert_to_tensor(0 if rtol is None else rtol, dtype=dtype, name="rtol")
            self._slack = self._atol + self._rtol * tf.abs(self._loc)
        super().__init__(
            dtype=dtype,
            reparameterization_type=FULLY_REPARAMETERIZED,
            validate_args=validate_args,
            allow_nan_stats=allow_nan_stats,
            parameters=parameters,
            graph_parents=[self._loc],
            name=name,
        )

    @property
    def loc(self) -> Any:
        """The value."""
        return self._loc

    @property
    def atol(self) -> Any:
        """The tolerance as a number."""
        return self._atol

    @property
    def rtol(self) -> Any:
        """The tolerance as a share."""
        return self._rtol

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        return tf.broadcast_to(self._loc, self._full_shape(n))

    def _prob(self, x: Any) -> Any:
        return tf.cast(tf.abs(x - self.loc) <= self._slack, self.dtype)

    def _cdf(self, x: Any) -> Any:
        return tf.cast(x >= self.loc - self._slack, self.dtype)

    def _entropy(self) -> Any:
        return tf.zeros(self.batch_shape_tensor(), dtype=self.dtype)

    def _mean(self) -> Any:
        return tf.identity(self.loc)

    def _variance(self) -> Any:
        return tf.zeros_like(self.loc)

    def _mode(self) -> Any:
        return self.mean()
