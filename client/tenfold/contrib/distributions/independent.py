"""`tf.contrib.distributions.Independent`. Follows TensorFlow 1.15's contrib/distributions/python/ops/independent.py."""

from __future__ import annotations

from typing import Any

import tenfold as tf
from tenfold.distributions.distribution import Distribution
from tenfold.distributions.kullback_leibler import RegisterKL, kl_divergence


class Independent(Distribution):
    """A distribution whose last `reinterpreted_batch_ndims` batch dimensions become dimensions of the event."""

    def __init__(
        self,
        distribution: Distribution,
        reinterpreted_batch_ndims: int | None = None,
        validate_args: bool = False,
        name: str | None = None,
    ) -> None:
        """All but the first batch dimension by default. Raises ValueError if there are not that many."""
        parameters = dict(locals())
        rank = distribution.batch_shape.ndims
        if rank is None:
            raise ValueError("The rank of the distribution's batch shape must be known")
        count = max(0, rank - 1) if reinterpreted_batch_ndims is None else int(reinterpreted_batch_ndims)
        if count > rank:
            raise ValueError(f"reinterpreted_batch_ndims({count}) cannot exceed distribution.batch_ndims({rank})")
        self._distribution = distribution
        self._count = count
        super().__init__(
            dtype=distribution.dtype,
            reparameterization_type=distribution.reparameterization_type,
            validate_args=validate_args,
            allow_nan_stats=distribution.allow_nan_stats,
            parameters=parameters,
            graph_parents=distribution._graph_parents,
            name=name or "Independent" + distribution.name.rstrip("/").split("/")[-1],
        )

    @property
    def distribution(self) -> Distribution:
        """The distribution itself."""
        return self._distribution

    @property
    def reinterpreted_batch_ndims(self) -> int:
        """How many dimensions are taken."""
        return self._count

    def _split(self) -> int:
        rank = self._distribution.batch_shape.ndims
        assert rank is not None
        return rank - self._count

    def _batch_shape_tensor(self) -> Any:
        return self._distribution.batch_shape_tensor()[: self._split()]

    def _batch_shape(self) -> Any:
        return self._distribution.batch_shape[: self._split()]

    def _event_shape_tensor(self) -> Any:
        taken = self._distribution.batch_shape_tensor()[self._split() :]
        return tf.concat([taken, self._distribution.event_shape_tensor()], 0)

    def _event_shape(self) -> Any:
        return self._distribution.batch_shape[self._split() :].concatenate(self._distribution.event_shape)

    def _total(self, value: Any) -> Any:
        return tf.reduce_sum(value, axis=list(range(-self._count, 0))) if self._count else value

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        return self._distribution.sample(n, seed=seed)

    def _log_prob(self, x: Any) -> Any:
        return self._total(self._distribution.log_prob(x))

    def _entropy(self) -> Any:
        return self._total(self._distribution.entropy())

    def _mean(self) -> Any:
        return self._distribution.mean()

    def _variance(self) -> Any:
        return self._distribution.variance()

    def _stddev(self) -> Any:
        return self._distribution.stddev()

    def _mode(self) -> Any:
        return self._distribution.mode()


@RegisterKL(Independent, Independent)
def _kl_independent(a: Independent, b: Independent, name: str | None = None) -> Any:
    with tf.name_scope(name, "kl_independent"):
        if a.event_shape.ndims != b.event_shape.ndims:
            raise NotImplementedError("KL between Independents whose distributions have different event shapes")
        return a._total(kl_divergence(a.distribution, b.distribution))
