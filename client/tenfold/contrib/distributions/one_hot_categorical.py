"""`tf.contrib.distributions.OneHotCategorical`. Follows TensorFlow 1.15's contrib/distributions/python/ops."""

from __future__ import annotations

from typing import Any

import tenfold as tf
from tenfold.distributions.distribution import NOT_REPARAMETERIZED, Distribution
from tenfold.distributions.kullback_leibler import RegisterKL
from tenfold.distributions.over_classes import VectorOverClasses
from tenfold.distributions.parameters import checked, embed_check_categorical_event_shape, get_logits_and_probs


class OneHotCategorical(VectorOverClasses, Distribution):
    """One of K classes as a vector (B, K) with a one at its place."""

    def __init__(
        self,
        logits: Any = None,
        probs: Any = None,
        dtype: Any = tf.int32,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "OneHotCategorical",
    ) -> None:
        """Raises ValueError unless one of logits and probs is given."""
        parameters = dict(locals())
        with tf.name_scope(name) as name:
            self._logits, self._probs = get_logits_and_probs(
                logits, probs, multidimensional=True, validate_args=validate_args, name=name
            )
            self._event_size = tf.shape(self._logits)[-1]
        super().__init__(
            dtype=dtype,
            reparameterization_type=NOT_REPARAMETERIZED,
            validate_args=validate_args,
            allow_nan_stats=allow_nan_stats,
            parameters=parameters,
            graph_parents=[self._logits, self._probs],
            name=name,
        )

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        rows = tf.reshape(self.logits, [-1, self._event_size])
        drawn = tf.transpose(tf.multinomial(rows, n, seed=seed))
        shape = tf.concat([[n], self.batch_shape_tensor(), [self._event_size]], 0)
        return tf.reshape(tf.one_hot(drawn, self._event_size, dtype=self.dtype), shape)

    def _log_prob(self, x: Any) -> Any:
        if self.validate_args:
            x = embed_check_categorical_event_shape(tf.cast(x, self.logits.dtype))
            whole = tf.assert_near(tf.reduce_sum(x, -1), tf.ones([], x.dtype), message="last dimension must sum to 1")
            x = checked([tf.assert_non_negative(x), whole], x)
        x = tf.cast(x, self.logits.dtype)
        logits = self.logits
        if not x.shape.is_fully_defined() or x.shape != logits.shape:
            x, logits = x * tf.ones_like(logits), logits * tf.ones_like(x)
        return -tf.nn.softmax_cross_entropy_with_logits_v2(labels=x, logits=logits)

    def _entropy(self) -> Any:
        return -tf.reduce_sum(tf.nn.log_softmax(self.logits) * self.probs, axis=-1)

    def _mean(self) -> Any:
        return tf.identity(self.probs)

    def _variance(self) -> Any:
        return self.probs * (1.0 - self.probs)

    def _covariance(self) -> Any:
        product = tf.matmul(self.probs[..., tf.newaxis], self.probs[..., tf.newaxis, :])
        return tf.matrix_set_diag(-product, self._variance())

    def _mode(self) -> Any:
        mode = tf.one_hot(tf.argmax(self.logits, axis=-1), self._event_size, dtype=self.dtype)
        mode.set_shape(self.logits.get_shape())
        return mode


@RegisterKL(OneHotCategorical, OneHotCategorical)
def _kl_one_hot(a: OneHotCategorical, b: OneHotCategorical, name: str | None = None) -> Any:
    with tf.name_scope(name, "kl_categorical_categorical"):
        difference = tf.nn.log_softmax(a.logits) - tf.nn.log_softmax(b.logits)
        return tf.reduce_sum(tf.nn.softmax(a.logits) * difference, axis=-1)
