"""`tf.distributions.Multinomial`. Follows TensorFlow 1.15's python/ops/distributions/multinomial.py."""

from __future__ import annotations

from typing import Any

import tenfold as tf
from tenfold.distributions.dirichlet_multinomial import valid_counts
from tenfold.distributions.distribution import NOT_REPARAMETERIZED, Distribution
from tenfold.distributions.parameters import (
    embed_check_nonnegative_integer_form,
    get_logits_and_probs,
    log_combinations,
)


class Multinomial(Distribution):
    """Counts (B, K) of `total_count` draws with probabilities `probs`, which are softmax(logits)."""

    def __init__(
        self,
        total_count: Any,
        logits: Any = None,
        probs: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Multinomial",
    ) -> None:
        """Raises ValueError unless one of logits and probs is given."""
        parameters = dict(locals())
        with tf.name_scope(name) as name:
            self._total_count = tf.convert_to_tensor(total_count, name="total_count")
            if validate_args:
                self._total_count = embed_check_nonnegative_integer_form(self._total_count)
            self._logits, self._probs = get_logits_and_probs(
                logits, probs, multidimensional=True, validate_args=validate_args, name=name
            )
            self._mean_val = self._total_count[..., tf.newaxis] * self._probs
        super().__init__(
            dtype=self._probs.dtype,
            reparameterization_type=NOT_REPARAMETERIZED,
            validate_args=validate_args,
            allow_nan_stats=allow_nan_stats,
            parameters=parameters,
            graph_parents=[self._total_count, self._logits, self._probs],
            name=name,
        )

    @property
    def total_count(self) -> Any:
        """The number of draws."""
        return self._total_count

    @property
    def logits(self) -> Any:
        """The logarithms of the probabilities, up to a constant."""
        return self._logits

    @property
    def probs(self) -> Any:
        """The probabilities."""
        return self._probs

    def _batch_shape_tensor(self) -> Any:
        return tf.shape(self._mean_val)[:-1]

    def _batch_shape(self) -> Any:
        return self._mean_val.get_shape().with_rank_at_least(1)[:-1]

    def _event_shape_tensor(self) -> Any:
        return tf.shape(self._mean_val)[-1:]

    def _event_shape(self) -> Any:
        return self._mean_val.get_shape().with_rank_at_least(1)[-1:]

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        classes = self.event_shape_tensor()[0]
        draws = tf.ones_like(self.logits[..., 0], dtype=tf.int32) * tf.cast(self.total_count, dtype=tf.int32)
        logits = tf.ones_like(draws[..., tf.newaxis], dtype=self.logits.dtype) * self.logits

        def sample_one(of: Any) -> Any:
            row, count = of
            drawn = tf.reshape(tf.multinomial(row[tf.newaxis, ...], count, seed), [n, -1])
            return tf.reduce_sum(tf.one_hot(drawn, depth=classes, dtype=self.dtype), axis=-2)

        flat = [tf.reshape(logits, [-1, classes]), n * tf.reshape(draws, [-1])]
        counts = tf.transpose(tf.map_fn(sample_one, flat, dtype=self.dtype), perm=[1, 0, 2])
        return tf.reshape(counts, tf.concat([[n], self.batch_shape_tensor(), [classes]], 0))

    def _log_prob(self, counts: Any) -> Any:
        if self.validate_args:
            counts = valid_counts(counts, self.total_count, "counts must sum to `self.total_count`")
        unordered = tf.reduce_sum(counts * tf.nn.log_softmax(self.logits), -1)
        return unordered + log_combinations(self.total_count, counts)

    def _mean(self) -> Any:
        return tf.identity(self._mean_val)

    def _probs_of_batch(self) -> Any:
        return self.probs * tf.ones_like(self.total_count)[..., tf.newaxis]

    def _covariance(self) -> Any:
        product = tf.matmul(self._mean_val[..., tf.newaxis], self._probs_of_batch()[..., tf.newaxis, :])
        return tf.matrix_set_diag(-product, self._variance())

    def _variance(self) -> Any:
        return self._mean_val - self._mean_val * self._probs_of_batch()
