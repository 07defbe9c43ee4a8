"""`tf.contrib.distributions.TransformedDistribution`: a distribution whose samples pass a bijector.

# S sample shape, B batch shape, E event shape
Follows TensorFlow 1.15's python/ops/distributions/transformed_distribution.py; the shapes that replace those of a
scalar distribution must be known when the graph is built.
"""

from __future__ import annotations

from typing import Any

import tenfold as tf
from tenfold.contrib.distributions.bijectors.elementwise import Identity
from tenfold.distributions.distribution import Distribution
from tenfold_core.tensor_shape import TensorShape


class TransformedDistribution(Distribution):
    """y = bijector.forward(x); `batch_shape` and `event_shape` repeat a scalar distribution before that."""

    def __init__(
        self,
        distribution: Any,
        bijector: Any = None,
        batch_shape: Any = None,
        event_shape: Any = None,
        validate_args: bool = False,
        name: str | None = None,
    ) -> None:
        """Raises ValueError for shapes that are not known, or are given where the distribution has one."""
        parameters = dict(locals())
        bijector = Identity(validate_args=validate_args) if bijector is None else bijector
        self._distribution = distribution
        self._bijector = bijector
        self._new_batch = _override(batch_shape, distribution.batch_shape, "batch")
        self._new_event = _override(event_shape, distribution.event_shape, "event")
        super().__init__(
            dtype=distribution.dtype,
            reparameterization_type=distribution.reparameterization_type,
            validate_args=validate_args,
            allow_nan_stats=distribution.allow_nan_stats,
            parameters=parameters,
            graph_parents=distribution._graph_parents + bijector.graph_parents,
            name=name or bijector.name + distribution.name.rstrip("/").split("/")[-1],
        )

    @property
    def distribution(self) -> Any:
        """The distribution of x."""
        return self._distribution

    @property
    def bijector(self) -> Any:
        """From x to y."""
        return self._bijector

    def _event_shape_tensor(self) -> Any:
        shape = self._new_event or self.distribution.event_shape_tensor()
        return self.bijector.forward_event_shape_tensor(shape)

    def _event_shape(self) -> Any:
        return self.bijector.forward_event_shape(self._new_event or self.distribution.event_shape)

    def _batch_shape_tensor(self) -> Any:
        return tf.constant(self._new_batch) if self._new_batch else self.distribution.batch_shape_tensor()

    def _batch_shape(self) -> Any:
        return TensorShape(self._new_batch) if self._new_batch else self.distribution.batch_shape

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        """Samples of x, (n, B, E): the bijector comes after they have their shape, so that it knows them again."""
        base_batch = self.distribution.batch_shape.ndims
        if self._new_event and base_batch != 0:
            # Events come first, so they are moved behind the batch.
            drawn = self.distribution.sample([*self._new_event, n], seed=seed)
            count = len(self._new_event)
            rank = count + 1 + base_batch
            return tf.transpose(drawn, [*range(count, rank), *range(count)])
        return self.distribution.sample([n, *self._new_batch, *self._new_event], seed=seed)

    def _shaped(self, samples: Any, sample_shape: Any) -> Any:
        x = tf.reshape(samples, tf.concat([sample_shape, tf.shape(samples)[1:]], 0))
        return self._set_sample_static_shape(self.bijector.forward(x), sample_shape)

    def _event_ndims(self) -> int:
        rank = self.event_shape.ndims
        if rank is None:
            raise ValueError(f"The rank of the event shape of {self.name} must be known")
        return rank

    def _base_log_prob(self, x: Any) -> Any:
        count = len(self._new_event)
        if not count:
            return self.distribution.log_prob(x)
        base_batch = self.distribution.batch_shape.ndims or 0
        if base_batch:
            # The batch of the distribution goes behind the event for a moment.
            x = tf.transpose(
                x, tf.concat([tf.range(tf.rank(x) - base_batch - count), _moved(tf.rank(x), base_batch, count)], 0)
            )
            axes = list(range(-base_batch - count, -base_batch))
        else:
            axes = list(range(-count, 0))
        return tf.reduce_sum(self.distribution.log_prob(x), axes)

    def _log_prob(self, y: Any) -> Any:
        x = self.bijector.inverse(y)
        jacobian = self.bijector.inverse_log_det_jacobian(y, event_ndims=self._event_ndims())
        found = self._base_log_prob(x)
        return found + tf.cast(jacobian, found.dtype)

    def _of_x(self, method: str, y: Any) -> Any:
        if self._new_event:
            raise NotImplementedError(f"{method} is not implemented when overriding event_shape")
        return getattr(self.distribution, method)(self.bijector.inverse(y))

    def _log_cdf(self, y: Any) -> Any:
        return self._of_x("log_cdf", y)

    def _cdf(self, y: Any) -> Any:
        return self._of_x("cdf", y)

    def _log_survival_function(self, y: Any) -> Any:
        return self._of_x("log_survival_function", y)

    def _survival_function(self, y: Any) -> Any:
        return self._of_x("survival_function", y)

    def _quantile(self, value: Any) -> Any:
        if self._new_event:
            raise NotImplementedError("quantile is not implemented when overriding event_shape")
        return self.bijector.forward(self.distribution.quantile(value))

    def _entropy(self) -> Any:
        if not self.bijector.is_constant_jacobian:
            raise NotImplementedError("entropy is not implemented")
        entropy = self.distribution.entropy()
        for size in self._new_event:
            entropy = entropy * float(size)
        if self._new_batch:
            entropy = tf.broadcast_to(entropy, self._new_batch)
        zeros = tf.zeros(tf.concat([self.batch_shape_tensor(), self.event_shape_tensor()], 0), dtype=self.dtype)
        jacobian = self.bijector.inverse_log_det_jacobian(zeros, event_ndims=self._event_ndims())
        return entropy - tf.cast(jacobian, entropy.dtype)


def _moved(rank: Any, base_batch: int, count: int) -> Any:
    """The places of the last dimensions (batch, event) as (event, batch)."""
    batch = tf.range(rank - base_batch - count, rank - count)
    return tf.concat([tf.range(rank - count, rank), batch], 0)


def _override(given: Any, own: TensorShape, word: str) -> list[int]:
    """The shape in place of the distribution's own, [] to keep that."""
    if given is None:
        return []
    known = tf.get_static_value(tf.convert_to_tensor(given, dtype=tf.int32, name=f"{word}_shape"))
    if known is None:
        raise ValueError(f"{word}_shape must be known when the graph is built")
    if known.ndim != 1:
        raise ValueError("shape override must be a vector")
    if (known <= 0).any():
        raise ValueError("shape override must have positive elements")
    if known.size and own.ndims != 0:
        raise ValueError("base distribution not scalar")
    return [int(size) for size in known]
