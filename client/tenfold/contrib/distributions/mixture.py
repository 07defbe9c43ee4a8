"""`tf.contrib.distributions.Mixture`. Follows TensorFlow 1.15's contrib/distributions/python/ops/mixture.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tenfold as tf
from tenfold.distributions.categorical import Categorical
from tenfold.distributions.distribution import NOT_REPARAMETERIZED, Distribution
from tenfold.distributions.parameters import gen_new_seed

if TYPE_CHECKING:
    from collections.abc import Sequence


class Mixture(Distribution):
    """One of the `components`, as `cat` draws; all have one batch shape, that of `cat`."""

    def __init__(
        self,
        cat: Categorical,
        components: Sequence[Distribution],
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        use_static_graph: bool = False,
        name: str = "Mixture",
    ) -> None:
        """Raises TypeError for what are no distributions, ValueError for other types and shapes of components."""
        parameters = dict(locals())
        if not isinstance(cat, Categorical):
            raise TypeError(f"cat must be a Categorical distribution, but saw: {cat}")
        if not components:
            raise ValueError("components must be a non-empty list or tuple")
        if not all(isinstance(each, Distribution) for each in components):
            raise TypeError(f"all entries in components must be Distribution instances but saw: {components}")
        dtype = components[0].dtype
        if not all(each.dtype == dtype for each in components):
            types = [(each.name, each.dtype) for each in components]
            raise TypeError(f"All components must have the same dtype, but saw dtypes: {types}")
        classes = cat.logits.shape[-1].value
        if classes is not None and classes != len(components):
            raise ValueError(f"cat.num_classes != len(components): {classes} vs. {len(components)}")
        shapes = [cat.batch_shape, *(each.batch_shape for each in components)]
        batch = shapes[0]
        for shape in shapes[1:]:
            batch = batch.merge_with(shape)
        self._cat = cat
        self._components = list(components)
        self._known_batch = batch
        super().__init__(
            dtype=dtype,
            reparameterization_type=NOT_REPARAMETERIZED,
            validate_args=validate_args,
            allow_nan_stats=allow_nan_stats,
            parameters=parameters,
            graph_parents=[*cat._graph_parents, *(parent for each in components for parent in each._graph_parents)],
            name=name,
        )

    @property
    def cat(self) -> Categorical:
        """What draws a component."""
        return self._cat

    @property
    def components(self) -> list[Distribution]:
        """The components."""
        return self._components

    @property
    def num_components(self) -> int:
        """How many there are."""
        return len(self._components)

    def _batch_shape_tensor(self) -> Any:
        return self._cat.batch_shape_tensor()

    def _batch_shape(self) -> Any:
        return self._known_batch

    def _event_shape_tensor(self) -> Any:
        return self._components[0].event_shape_tensor()

    def _event_shape(self) -> Any:
        return self._components[0].event_shape

    def _probs(self) -> list[Any]:
        """The probability of each component, shaped to go with (B, E)."""
        rank = self.event_shape.ndims or 0
        parts = tf.unstack(self._cat.probs, num=self.num_components, axis=-1)
        for _ in range(rank):
            parts = [tf.expand_dims(each, -1) for each in parts]
        return parts

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        chosen = self._cat.sample(n, seed=gen_new_seed(seed, "mixture"))
        for _ in range(self.event_shape.ndims or 0):
            chosen = tf.expand_dims(chosen, -1)
        result: Any = 0
        for number, component in enumerate(self._components):
            drawn = component.sample(n, seed=gen_new_seed(seed, f"mixture_{number}"))
            mask = tf.equal(chosen, number)
            result = tf.where_v2(mask, drawn, tf.zeros_like(drawn) if number == 0 else result)
        return result

    def _over_components(self, log_probs: list[Any]) -> Any:
        weights = tf.unstack(tf.nn.log_softmax(self._cat.logits), num=self.num_components, axis=-1)
        joint = [weight + each for weight, each in zip(weights, log_probs, strict=True)]
        return tf.reduce_logsumexp(tf.stack(joint), axis=[0])

    def _log_prob(self, x: Any) -> Any:
        return self._over_components([each.log_prob(x) for each in self._components])

    def _log_cdf(self, x: Any) -> Any:
        return self._over_components([each.log_cdf(x) for each in self._components])

    def _mean(self) -> Any:
        pairs = zip(self._probs(), self._components, strict=True)
        return tf.add_n([prob * each.mean() for prob, each in pairs])

    def _variance(self) -> Any:
        probs = self._probs()
        squares = [
            prob * (tf.square(each.stddev()) + tf.square(each.mean()))
            for prob, each in zip(probs, self._components, strict=True)
        ]
        return tf.add_n(squares) - tf.square(self._mean())

    def entropy_lower_bound(self, name: str = "entropy_lower_bound") -> Any:
        """The mean entropy of the components, (B): no more than that of the mixture."""
        with self._name_scope(name):
            parts = tf.unstack(self._cat.probs, num=self.num_components, axis=-1)
            return tf.add_n([prob * each.entropy() for prob, each in zip(parts, self._components, strict=True)])
