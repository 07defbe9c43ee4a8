"""`tf.contrib.distributions.MixtureSameFamily`. Follows TensorFlow 1.15's contrib/distributions/python/ops."""

from __future__ import annotations

from typing import Any

import tenfold as tf
from tenfold.distributions.distribution import NOT_REPARAMETERIZED, Distribution
from tenfold.distributions.parameters import gen_new_seed


class MixtureSameFamily(Distribution):
    """A mixture whose components are the last batch dimension of one distribution."""

    def __init__(
        self,
        mixture_distribution: Any,
        components_distribution: Distribution,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "MixtureSameFamily",
    ) -> None:
        """Raises ValueError for draws of another type, an unknown event rank, or other numbers of components."""
        parameters = dict(locals())
        if not mixture_distribution.dtype.is_integer:
            raise ValueError(f"`mixture_distribution.dtype` ({mixture_distribution.dtype.name}) is not over integers")
        if components_distribution.event_shape.ndims is None:
            raise ValueError("The rank of the components' event shape must be known")
        drawn = mixture_distribution.logits.shape[-1].value
        there = components_distribution.batch_shape.with_rank_at_least(1)[-1].value
        if drawn is not None and there is not None and drawn != there:
            raise ValueError(
                f"`mixture_distribution components` ({drawn}) does not equal "
                f"`components_distribution.batch_shape[-1]` ({there})"
            )
        self._mixture_distribution = mixture_distribution
        self._components_distribution = components_distribution
        self._event_ndims = components_distribution.event_shape.ndims
        super().__init__(
            dtype=components_distribution.dtype,
            reparameterization_type=NOT_REPARAMETERIZED,
            validate_args=validate_args,
            allow_nan_stats=allow_nan_stats,
            parameters=parameters,
            graph_parents=mixture_distribution._graph_parents + components_distribution._graph_parents,
            name=name,
        )

    @property
    def mixture_distribution(self) -> Any:
        """What draws a component."""
        return self._mixture_distribution

    @property
    def components_distribution(self) -> Distribution:
        """The components."""
        return self._components_distribution

    def _batch_shape_tensor(self) -> Any:
        return self.components_distribution.batch_shape_tensor()[:-1]

    def _batch_shape(self) -> Any:
        return self.components_distribution.batch_shape[:-1]

    def _event_shape_tensor(self) -> Any:
        return self.components_distribution.event_shape_tensor()

    def _event_shape(self) -> Any:
        return self.components_distribution.event_shape

    def _weighted(self, weights: Any, values: Any) -> Any:
        """The sum of values (…, C, E) with weights (…, C) over the components."""
        for _ in range(self._event_ndims):
            weights = weights[..., tf.newaxis]
        return tf.reduce_sum(weights * values, axis=-1 - self._event_ndims)

    def _components_last(self, x: Any) -> Any:
        return tf.expand_dims(x, -1 - self._event_ndims)

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        values = self.components_distribution.sample(n, seed=seed)
        chosen = self.mixture_distribution.sample(n, seed=gen_new_seed(seed, "MixtureSameFamily"))
        count = tf.shape(self.mixture_distribution.logits)[-1]
        mask = tf.one_hot(chosen, depth=count, dtype=values.dtype) * tf.ones(
            tf.concat([[n], self.components_distribution.batch_shape_tensor()], 0), dtype=values.dtype
        )
        return self._weighted(mask, values)

    def _log_weights(self) -> Any:
        return tf.nn.log_softmax(self.mixture_distribution.logits)

    def _log_prob(self, x: Any) -> Any:
        found = self.components_distribution.log_prob(self._components_last(x))
        return tf.reduce_logsumexp(found + self._log_weights(), axis=-1)

    def _log_cdf(self, x: Any) -> Any:
        found = self.components_distribution.log_cdf(self._components_last(x))
        return tf.reduce_logsumexp(found + self._log_weights(), axis=-1)

    def _mean(self) -> Any:
        return self._weighted(self.mixture_distribution.probs, self.components_distribution.mean())

    def _variance(self) -> Any:
        probs, parts = self.mixture_distribution.probs, self.components_distribution
        apart = tf.squared_difference(parts.mean(), self._components_last(self._mean()))
        return self._weighted(probs, parts.variance()) + self._weighted(probs, apart)

    def _covariance(self) -> Any:
        """Raises ValueError unless events are vectors."""
        if self._event_ndims != 1:
            raise ValueError("covariance is defined for vectors")
        probs, parts = self.mixture_distribution.probs, self.components_distribution
        apart = parts.mean() - self._components_last(self._mean())
        outer = apart[..., tf.newaxis] * apart[..., tf.newaxis, :]
        return tf.reduce_sum(probs[..., tf.newaxis, tf.newaxis] * (parts.covariance() + outer), axis=-3)
