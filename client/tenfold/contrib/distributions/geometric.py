"""`tf.contrib.distributions.Geometric`. Follows TensorFlow 1.15's contrib/distributions/python/ops/geometric.py."""

from __future__ import annotations

from typing import Any

import numpy as np

import tenfold as tf
from tenfold.distributions.distribution import NOT_REPARAMETERIZED, ScalarDistribution
from tenfold.distributions.parameters import embed_check_nonnegative_integer_form, get_logits_and_probs


class Geometric(ScalarDistribution):
    """The number of failures before the first success, each try having the probability `probs`."""

    def __init__(
        self,
        logits: Any = None,
        probs: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Geometric",
    ) -> None:
        """Raises ValueError unless one of logits and probs is given."""
        parameters = dict(locals())
        with tf.name_scope(name) as name:
            self._logits, self._probs = get_logits_and_probs(logits, probs, validate_args=validate_args, name=name)
        super().__init__(
            dtype=self._probs.dtype,
            reparameterization_type=NOT_REPARAMETERIZED,
            validate_args=validate_args,
            allow_nan_stats=allow_nan_stats,
            parameters=parameters,
            graph_parents=[self._probs, self._logits],
            name=name,
        )

    @property
    def logits(self) -> Any:
        """The logarithm of the odds of success."""
        return self._logits

    @property
    def probs(self) -> Any:
        """The probability of success."""
        return self._probs

    def _batch_parameters(self) -> list[Any]:
        return [self._probs]

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        low = np.finfo(self.dtype.as_numpy_dtype).tiny
        drawn = tf.random_uniform(self._full_shape(n), minval=low, maxval=1.0, seed=seed, dtype=self.dtype)
        return tf.floor(tf.log(drawn) / tf.log1p(-self.probs))

    def _checked(self, counts: Any) -> Any:
        return embed_check_nonnegative_integer_form(counts) if self.validate_args else counts

    def _log_prob(self, counts: Any) -> Any:
        counts = self._checked(counts) * tf.ones_like(self.probs)
        probs = self.probs * tf.ones_like(counts)
        # With a success that is sure the logarithm of failures is not finite, but there are none.
        safe = tf.where_v2(tf.equal(counts, 0.0), tf.zeros_like(probs), probs)
        return counts * tf.log1p(-safe) + tf.log(probs)

    def _cdf(self, counts: Any) -> Any:
        counts = self._checked(counts) if self.validate_args else tf.floor(counts)
        counts = counts * tf.ones_like(self.probs)
        return tf.where_v2(counts < 0.0, tf.zeros_like(counts), -tf.expm1((counts + 1) * tf.log1p(-self.probs)))

    def _entropy(self) -> Any:
        return tf.nn.sigmoid_cross_entropy_with_logits(labels=self.probs, logits=self.logits) / self.probs

    def _mean(self) -> Any:
        return tf.exp(-self.logits)

    def _variance(self) -> Any:
        return self._mean() / self.probs

    def _mode(self) -> Any:
        return tf.zeros(self.batch_shape_tensor(), dtype=self.dtype)
