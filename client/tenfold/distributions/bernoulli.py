"""`tf.distributions.Bernoulli`. Follows TensorFlow 1.15's python/ops/distributions/bernoulli.py."""

from __future__ import annotations

from typing import Any

import tenfold as tf
from tenfold.distributions.distribution import NOT_REPARAMETERIZED, ScalarDistribution, shapes_of
from tenfold.distributions.kullback_leibler import RegisterKL
from tenfold.distributions.parameters import embed_check_integer_casting_closed, get_logits_and_probs


class Bernoulli(ScalarDistribution):
    """1 with probability `probs`, which is sigmoid(logits), else 0."""

    def __init__(
        self,
        logits: Any = None,
        probs: Any = None,
        dtype: Any = tf.int32,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Bernoulli",
    ) -> None:
        """Raises ValueError unless one of logits and probs is given."""
        parameters = dict(locals())
        with tf.name_scope(name) as name:
            self._logits, self._probs = get_logits_and_probs(logits, probs, validate_args=validate_args, name=name)
        super().__init__(
            dtype=dtype,
            reparameterization_type=NOT_REPARAMETERIZED,
            validate_args=validate_args,
            allow_nan_stats=allow_nan_stats,
            parameters=parameters,
            graph_parents=[self._logits, self._probs],
            name=name,
        )

    @staticmethod
    def _param_shapes(sample_shape: Any) -> dict[str, Any]:
        return shapes_of("logits", sample_shape)

    @property
    def logits(self) -> Any:
        """The logarithm of the odds of 1."""
        return self._logits

    @property
    def probs(self) -> Any:
        """The probability of 1."""
        return self._probs

    def _batch_parameters(self) -> list[Any]:
        return [self._logits]

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        drawn = tf.random_uniform(self._full_shape(n), seed=seed, dtype=self.probs.dtype)
        return tf.cast(tf.less(drawn, self.probs), self.dtype)

    def _log_prob(self, event: Any) -> Any:
        if self.validate_args:
            event = embed_check_integer_casting_closed(event, target_dtype=tf.bool)
        event = tf.cast(event, self.logits.dtype)
        logits = self.logits
        known = event.get_shape().is_fully_defined() and logits.get_shape().is_fully_defined()
        if not known or event.get_shape() != logits.get_shape():
            logits, event = tf.ones_like(event) * logits, tf.ones_like(logits) * event
        return -tf.nn.sigmoid_cross_entropy_with_logits(labels=event, logits=logits)

    def _entropy(self) -> Any:
        return -self.logits * (tf.sigmoid(self.logits) - 1) + tf.nn.softplus(-self.logits)

    def _mean(self) -> Any:
        return tf.identity(self.probs)

    def _variance(self) -> Any:
        return self._mean() * (1.0 - self.probs)

    def _mode(self) -> Any:
        return tf.cast(self.probs > 0.5, self.dtype)


@RegisterKL(Bernoulli, Bernoulli)
def _kl_bernoulli_bernoulli(a: Bernoulli, b: Bernoulli, name: str | None = None) -> Any:
    with tf.name_scope(name, "kl_bernoulli_bernoulli"):
        zeros = tf.nn.softplus(b.logits) - tf.nn.softplus(a.logits)
        ones = tf.nn.softplus(-b.logits) - tf.nn.softplus(-a.logits)
        return tf.sigmoid(a.logits) * ones + tf.sigmoid(-a.logits) * zeros
