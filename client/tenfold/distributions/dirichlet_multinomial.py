"""`tf.distributions.DirichletMultinomial`. Follows TensorFlow 1.15's python/ops/distributions."""

from __future__ import annotations

from typing import Any

import tenfold as tf
from tenfold.distributions.dirichlet import OverLastDimension
from tenfold.distributions.distribution import NOT_REPARAMETERIZED
from tenfold.distributions.parameters import (
    checked,
    embed_check_categorical_event_shape,
    embed_check_nonnegative_integer_form,
    gen_new_seed,
    log_combinations,
)


def valid_counts(counts: Any, total_count: Any, message: str) -> Any:
    """The counts, which must be integers that are not negative and sum to the total."""
    counts = embed_check_nonnegative_integer_form(counts)
    return checked([tf.assert_equal(total_count, tf.reduce_sum(counts, -1), message=message)], counts)


class DirichletMultinomial(OverLastDimension):
    """Counts (B, K) of `total_count` draws with probabilities that Dirichlet(concentration) gives."""

    def __init__(
        self,
        total_count: Any,
        concentration: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "DirichletMultinomial",
    ) -> None:
        parameters = dict(locals())
        with tf.name_scope(name) as name:
            self._total_count = tf.convert_to_tensor(total_count, name="total_count")
            self._concentration = tf.convert_to_tensor(concentration, name="concentration")
            if validate_args:
                self._total_count = embed_check_nonnegative_integer_form(self._total_count)
                value = embed_check_categorical_event_shape(self._concentration)
                message = "Concentration parameter must be positive."
                self._concentration = checked([tf.assert_positive(value, message=message)], value)
            self._total_concentration = tf.reduce_sum(self._concentration, -1)
        super().__init__(
            dtype=self._concentration.dtype,
            reparameterization_type=NOT_REPARAMETERIZED,
            validate_args=validate_args,
            allow_nan_stats=allow_nan_stats,
            parameters=parameters,
            graph_parents=[self._total_count, self._concentration],
            name=name,
        )

    @property
    def total_count(self) -> Any:
        """The number of draws."""
        return self._total_count

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        draws = tf.cast(self.total_count, dtype=tf.int32)
        classes = self.event_shape_tensor()[0]
        weights = tf.log(tf.random_gamma([n], self.concentration, dtype=self.dtype, seed=seed))
        other_seed = gen_new_seed(seed, "dirichlet_multinomial")
        drawn = tf.multinomial(tf.reshape(weights, [-1, classes]), draws, seed=other_seed)
        counts = tf.reduce_sum(tf.one_hot(drawn, depth=classes), -2)
        return tf.cast(tf.reshape(counts, tf.concat([[n], self.batch_shape_tensor(), [classes]], 0)), self.dtype)

    def _log_prob(self, counts: Any) -> Any:
        if self.validate_args:
            message = "counts last-dimension must sum to `self.total_count`"
            counts = valid_counts(counts, self.total_count, message)
        ordered = tf.lbeta(self.concentration + counts) - tf.lbeta(self.concentration)
        return ordered + log_combinations(self.total_count, counts)

    def _mean(self) -> Any:
        return self.total_count * (self.concentration / self.total_concentration[..., tf.newaxis])

    def _spread(self) -> Any:
        total = self.total_concentration[..., tf.newaxis]
        return tf.sqrt((1.0 + total / self.total_count) / (1.0 + total))

    def _covariance(self) -> Any:
        return self._outer(self._spread() * self._mean())

    def _variance(self) -> Any:
        scale = self._spread()
        x = scale * self._mean()
        return x * (self.total_count * scale - x)
