"""`tf.contrib.distributions.Binomial`. Follows TensorFlow 1.15's contrib/distributions/python/ops/binomial.py."""

from __future__ import annotations

from typing import Any

import tenfold as tf
from tenfold.distributions.distribution import NOT_REPARAMETERIZED, ScalarDistribution
from tenfold.distributions.parameters import checked, embed_check_nonnegative_integer_form, get_logits_and_probs


class Binomial(ScalarDistribution):
    """The number of successes in `total_count` tries, each having the probability `probs`."""

    def __init__(
        self,
        total_count: Any,
        logits: Any = None,
        probs: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Binomial",
    ) -> None:
        """Raises ValueError unless one of logits and probs is given."""
        parameters = dict(locals())
        with tf.name_scope(name) as name:
            self._total_count = tf.convert_to_tensor(total_count, name="total_count")
            if validate_args:
                self._total_count = embed_check_nonnegative_integer_form(self._total_count)
            self._logits, self._probs = get_logits_and_probs(logits, probs, validate_args=validate_args, name=name)
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
        """The number of tries."""
        return self._total_count

    @property
    def logits(self) -> Any:
        """The logarithm of the odds of success."""
        return self._logits

    @property
    def probs(self) -> Any:
        """The probability of success."""
        return self._probs

    def _batch_parameters(self) -> list[Any]:
        return [self._total_count, self._probs]

    def _checked(self, counts: Any) -> Any:
        if not self.validate_args:
            return counts
        counts = embed_check_nonnegative_integer_form(counts)
        message = "counts are not less than or equal to n."
        return checked([tf.assert_less_equal(counts, self.total_count, message=message)], counts)

    def _log_prob(self, counts: Any) -> Any:
        counts, total = self._checked(counts), self.total_count
        unordered = tf.math.xlogy(counts, self.probs) + tf.math.xlogy(total - counts, 1.0 - self.probs)
        return unordered + tf.lgamma(1.0 + total) - tf.lgamma(1.0 + counts) - tf.lgamma(1.0 + total - counts)

    def _mean(self) -> Any:
        return self.total_count * self.probs

    def _variance(self) -> Any:
        return self._mean() * (1.0 - self.probs)

    def _mode(self) -> Any:
        return tf.floor((1.0 + self.total_count) * self.probs)
