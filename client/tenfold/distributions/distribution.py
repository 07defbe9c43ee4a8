"""`tf.distributions.Distribution`: the base of distributions, and what a sample's gradient means.

# S sample shape, B batch shape, E event shape; samples are (S, B, E), log probabilities (S, B)
A subclass gives the methods with an underscore; what can be derived from another one is. Parameters are tensors.
kullback_leibler.py has the divergences, parameters.py what parameters are checked for. Follows TensorFlow 1.15's
python/ops/distributions/distribution.py, names of scopes included.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

import tenfold as tf
from tenfold.distributions import kullback_leibler
from tenfold.distributions.parameters import pick_vector
from tenfold_core.tensor_shape import TensorShape, as_shape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class ReparameterizationType:
    """Whether gradients flow from samples to parameters."""

    def __init__(self, rep_type: str) -> None:
        self._rep_type = rep_type

    def __repr__(self) -> str:
        return f"<Reparameterization Type: {self._rep_type}>"


#: Samples are a differentiable function of the parameters.
FULLY_REPARAMETERIZED = ReparameterizationType("FULLY_REPARAMETERIZED")
#: Samples are not, or not fully, a differentiable function of the parameters.
NOT_REPARAMETERIZED = ReparameterizationType("NOT_REPARAMETERIZED")


class Distribution:
    """Base of distributions.

    `validate_args` checks parameters and values in each step; without `allow_nan_stats` a statistic that is not
    defined is an error and not NaN. `parameters` are the arguments, for `copy`.
    """

    def __init__(
        self,
        dtype: Any,
        reparameterization_type: ReparameterizationType,
        validate_args: bool,
        allow_nan_stats: bool,
        parameters: dict[str, Any] | None = None,
        graph_parents: list[Any] | None = None,
        name: str | None = None,
    ) -> None:
        """Raises ValueError for graph parents that are no tensors."""
        for number, parent in enumerate(graph_parents or []):
            if parent is None or not tf.is_tensor(parent):
                raise ValueError(f"Graph parent item {number} is not a Tensor; {parent}.")
        if not name or not name.endswith("/"):
            with tf.name_scope(name or type(self).__name__) as name:
                pass
        self._dtype = dtype
        self._reparameterization_type = reparameterization_type
        self._validate_args = validate_args
        self._allow_nan_stats = allow_nan_stats
        self._parameters = {} if parameters is None else parameters
        self._graph_parents = list(graph_parents or [])
        self._name = name

    # --- what a subclass gives ---

    def _missing(self, what: str) -> NoReturn:
        raise NotImplementedError(f"{what} is not implemented: {type(self).__name__}")

    @staticmethod
    def _param_shapes(sample_shape: Any) -> dict[str, Any]:
        raise NotImplementedError("_param_shapes not implemented")

    def _batch_shape_tensor(self) -> Any:
        self._missing("batch_shape_tensor")

    def _batch_shape(self) -> Any:
        return TensorShape(None)

    def _event_shape_tensor(self) -> Any:
        self._missing("event_shape_tensor")

    def _event_shape(self) -> Any:
        return TensorShape(None)

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        self._missing("sample_n")

    def _log_prob(self, value: Any) -> Any:
        self._missing("log_prob")

    def _prob(self, value: Any) -> Any:
        self._missing("prob")

    def _log_cdf(self, value: Any) -> Any:
        self._missing("log_cdf")

    def _cdf(self, value: Any) -> Any:
        self._missing("cdf")

    def _log_survival_function(self, value: Any) -> Any:
        self._missing("log_survival_function")

    def _survival_function(self, value: Any) -> Any:
        self._missing("survival_function")

    def _quantile(self, value: Any) -> Any:
        self._missing("quantile")

    def _entropy(self) -> Any:
        self._missing("entropy")

    def _mean(self) -> Any:
        self._missing("mean")

    def _variance(self) -> Any:
        self._missing("variance")

    def _stddev(self) -> Any:
        self._missing("stddev")

    def _covariance(self) -> Any:
        self._missing("covariance")

    def _mode(self) -> Any:
        self._missing("mode")

    # --- properties ---

    @property
    def _parameters(self) -> dict[str, Any]:
        return self._parameter_dict

    @_parameters.setter
    def _parameters(self, value: dict[str, Any]) -> None:
        self._parameter_dict = {key: each for key, each in value.items() if key != "self" and not key.startswith("__")}

    @property
    def name(self) -> str:
        """The name scope of the distribution."""
        return self._name

    @property
    def dtype(self) -> Any:
        """The type of samples."""
        return self._dtype

    @property
    def parameters(self) -> dict[str, Any]:
        """The arguments of the constructor."""
        return dict(self._parameters)

    @property
    def reparameterization_type(self) -> ReparameterizationType:
        """FULLY_REPARAMETERIZED or NOT_REPARAMETERIZED."""
        return self._reparameterization_type

    @property
    def allow_nan_stats(self) -> bool:
        """Whether a statistic may be NaN."""
        return self._allow_nan_stats

    @property
    def validate_args(self) -> bool:
        """Whether values are checked in each step."""
        return self._validate_args

    @property
    def batch_shape(self) -> TensorShape:
        """The shape of independent distributions, as far as known."""
        return as_shape(self._batch_shape())

    @property
    def event_shape(self) -> TensorShape:
        """The shape of one sample of one distribution, as far as known."""
        return as_shape(self._event_shape())

    def copy(self, **override_parameters_kwargs: Any) -> Distribution:
        """The distribution with other arguments."""
        return type(self)(**{**self.parameters, **override_parameters_kwargs})

    @classmethod
    def param_shapes(cls, sample_shape: Any, name: str = "DistributionParamShapes") -> dict[str, Any]:
        """The shapes that the parameters need for samples of that shape, by name."""
        with tf.name_scope(name):
            return cls._param_shapes(sample_shape)

    @classmethod
    def param_static_shapes(cls, sample_shape: Any) -> dict[str, TensorShape]:
        """As param_shapes, for a shape that is known. Raises ValueError for another one."""
        if isinstance(sample_shape, TensorShape):
            if not sample_shape.is_fully_defined():
                raise ValueError("TensorShape sample_shape must be fully defined")
            sample_shape = sample_shape.as_list()
        found = {name: tf.get_static_value(shape) for name, shape in cls.param_shapes(sample_shape).items()}
        if any(shape is None for shape in found.values()):
            raise ValueError("sample_shape must be a fully-defined TensorShape or list/tuple")
        return {name: TensorShape(shape.tolist()) for name, shape in found.items()}

    # --- shapes as tensors ---

    def batch_shape_tensor(self, name: str = "batch_shape_tensor") -> Any:
        """The batch shape, a vector of type int32."""
        with self._name_scope(name):
            known = self.batch_shape
            if known.is_fully_defined():
                return tf.convert_to_tensor(known.as_list(), dtype=tf.int32, name="batch_shape")
            return self._batch_shape_tensor()

    def event_shape_tensor(self, name: str = "event_shape_tensor") -> Any:
        """The event shape, a vector of type int32."""
        with self._name_scope(name):
            known = self.event_shape
            if known.is_fully_defined():
                return tf.convert_to_tensor(known.as_list(), dtype=tf.int32, name="event_shape")
            return self._event_shape_tensor()

    def is_scalar_event(self, name: str = "is_scalar_event") -> Any:
        """Whether the event shape is []: a bool tensor."""
        with self._name_scope(name):
            return tf.convert_to_tensor(_is_scalar(self.event_shape, self.event_shape_tensor), name="is_scalar_event")

    def is_scalar_batch(self, name: str = "is_scalar_batch") -> Any:
        """Whether the batch shape is []: a bool tensor."""
        with self._name_scope(name):
            return tf.convert_to_tensor(_is_scalar(self.batch_shape, self.batch_shape_tensor), name="is_scalar_batch")

    # --- sampling and values ---

    def sample(self, sample_shape: Any = (), seed: int | None = None, name: str = "sample") -> Any:
        """Samples (S, B, E)."""
        return self._call_sample_n(sample_shape, seed, name)

    def _call_sample_n(self, sample_shape: Any, seed: int | None, name: str, **kwargs: Any) -> Any:
        with self._name_scope(name):
            sample_shape, count = self._shape_and_count(sample_shape)
            samples = self._sample_n(count, seed, **kwargs)
            return self._shaped(samples, sample_shape)

    def _shape_and_count(self, sample_shape: Any) -> tuple[Any, Any]:
        """The sample shape as a vector, and the number of samples."""
        sample_shape = tf.convert_to_tensor(sample_shape, dtype=tf.int32, name="sample_shape")
        return self._expand_sample_shape_to_vector(sample_shape, "sample_shape")

    def _shaped(self, samples: Any, sample_shape: Any) -> Any:
        """Samples (n, B, E) as (S, B, E)."""
        samples = tf.reshape(samples, tf.concat([sample_shape, tf.shape(samples)[1:]], 0))
        return self._set_sample_static_shape(samples, sample_shape)

    def _evaluated(self, name: str, value: Any, *ways: Callable[[Any], Any]) -> Any:
        """The first of the ways that is implemented; the error of the first if none is."""
        with self._name_scope(name):
            value = tf.convert_to_tensor(value, name="value", preferred_dtype=self.dtype)
            first = None
            for way in ways:
                try:
                    return way(value)
                except NotImplementedError as error:
                    first = first or error
            assert first is not None
            raise first

    def log_prob(self, value: Any, name: str = "log_prob") -> Any:
        """The logarithm of the density or mass, (S, B)."""
        return self._evaluated(name, value, lambda x: self._log_prob(x), lambda x: tf.log(self._prob(x)))

    def prob(self, value: Any, name: str = "prob") -> Any:
        """The density or mass, (S, B)."""
        return self._evaluated(name, value, lambda x: self._prob(x), lambda x: tf.exp(self._log_prob(x)))

    def log_cdf(self, value: Any, name: str = "log_cdf") -> Any:
        """The logarithm of P[X <= value]."""
        return self._evaluated(name, value, lambda x: self._log_cdf(x), lambda x: tf.log(self._cdf(x)))

    def cdf(self, value: Any, name: str = "cdf") -> Any:
        """P[X <= value]."""
        return self._evaluated(name, value, lambda x: self._cdf(x), lambda x: tf.exp(self._log_cdf(x)))

    def log_survival_function(self, value: Any, name: str = "log_survival_function") -> Any:
        """The logarithm of P[X > value]."""
        return self._evaluated(name, value, lambda x: self._log_survival_function(x), lambda x: tf.log1p(-self.cdf(x)))

    def survival_function(self, value: Any, name: str = "survival_function") -> Any:
        """P[X > value]."""
        return self._evaluated(name, value, lambda x: self._survival_function(x), lambda x: 1.0 - self.cdf(x))

    def quantile(self, value: Any, name: str = "quantile") -> Any:
        """The x for which P[X <= x] is `value`."""
        return self._evaluated(name, value, lambda x: self._quantile(x))

    # --- statistics ---

    def entropy(self, name: str = "entropy") -> Any:
        """The entropy in nats, (B)."""
        with self._name_scope(name):
            return self._entropy()

    def mean(self, name: str = "mean") -> Any:
        """The mean, (B, E)."""
        with self._name_scope(name):
            return self._mean()

    def variance(self, name: str = "variance") -> Any:
        """The variance of each element, (B, E)."""
        with self._name_scope(name):
            return _either(lambda: self._variance(), lambda: tf.square(self._stddev()))

    def stddev(self, name: str = "stddev") -> Any:
        """The standard deviation of each element, (B, E)."""
        with self._name_scope(name):
            return _either(lambda: self._stddev(), lambda: tf.sqrt(self._variance()))

    def covariance(self, name: str = "covariance") -> Any:
        """The covariance of the elements of an event, (B, E, E)."""
        with self._name_scope(name):
            return self._covariance()

    def mode(self, name: str = "mode") -> Any:
        """The likeliest value, (B, E)."""
        with self._name_scope(name):
            return self._mode()

    def _cross_entropy(self, other: Distribution) -> Any:
        return kullback_leibler.cross_entropy(self, other, allow_nan_stats=self.allow_nan_stats)

    def cross_entropy(self, other: Distribution, name: str = "cross_entropy") -> Any:
        """The cross entropy with another distribution, (B)."""
        with self._name_scope(name):
            return self._cross_entropy(other)

    def _kl_divergence(self, other: Distribution) -> Any:
        return kullback_leibler.kl_divergence(self, other, allow_nan_stats=self.allow_nan_stats)

    def kl_divergence(self, other: Distribution, name: str = "kl_divergence") -> Any:
        """The Kullback-Leibler divergence of another distribution from this one, (B)."""
        with self._name_scope(name):
            return self._kl_divergence(other)

    # --- texts ---

    def _shapes_text(self, separator: str) -> list[str]:
        shapes = (("batch_shape", self.batch_shape), ("event_shape", self.event_shape))
        return [f"{word}={shape}" for word, shape in shapes if separator == " " or shape.ndims is not None]

    def __str__(self) -> str:
        parts = [f'"{self.name}"', *self._shapes_text(", "), f"dtype={self.dtype.name}"]
        return f"tfp.distributions.{type(self).__name__}({', '.join(parts)})"

    def __repr__(self) -> str:
        parts = [f"'{self.name}'", *self._shapes_text(" "), f"dtype={self.dtype.name}"]
        return f"<tfp.distributions.{type(self).__name__} {' '.join(parts)}>"

    # --- scopes and shapes ---

    @contextmanager
    def _name_scope(self, name: str | None = None, values: Any = None) -> Iterator[str]:
        with tf.name_scope(self.name), tf.name_scope(name) as scope:
            yield scope

    def _expand_sample_shape_to_vector(self, x: Any, name: str) -> tuple[Any, Any]:
        """(x as a vector, its product). Raises ValueError for a matrix."""
        known = tf.get_static_value(x)
        count = tf.reduce_prod(x) if known is None else np.prod(known, dtype=x.dtype.as_numpy_dtype)
        rank = x.get_shape().ndims
        if rank is None:
            x = tf.reshape(x, pick_vector(tf.equal(tf.rank(x), 0), np.array([1], np.int32), tf.shape(x)))
        elif rank == 0:
            x = tf.reshape(x, [1]) if known is None else tf.constant([int(known)], x.dtype, name=name)
        elif rank != 1:
            raise ValueError("Input is neither scalar nor vector.")
        return x, count

    def _set_sample_static_shape(self, x: Any, sample_shape: Any) -> Any:
        """The samples with what is known of their shape (S, B, E)."""
        known = tf.get_static_value(sample_shape)
        sample = TensorShape(None if known is None else known.tolist())
        batch, event = self.batch_shape, self.event_shape
        ranks = [each.ndims for each in (sample, batch, event)]
        total = x.get_shape().ndims
        if total is None and None not in ranks:
            total = sum(rank for rank in ranks if rank is not None)
        if total is None:
            return x
        if ranks.count(None) == 1:
            at = ranks.index(None)
            ranks[at] = total - sum(rank for rank in ranks if rank is not None)
        for number, part in enumerate((sample, batch, event)):
            before, after = ranks[:number], ranks[number + 1 :]
            if part.ndims is None:
                continue
            if None not in before:
                start = sum(rank for rank in before if rank is not None)
            elif None not in after:
                start = total - part.ndims - sum(rank for rank in after if rank is not None)
            else:
                continue
            rest = total - start - part.ndims
            x.set_shape(TensorShape([None] * start).concatenate(part).concatenate([None] * rest))
        return x


def _either(first: Callable[[], Any], second: Callable[[], Any]) -> Any:
    """What is implemented; the error of the first if neither is."""
    try:
        return first()
    except NotImplementedError as error:
        try:
            return second()
        except NotImplementedError:
            raise error from None


def _is_scalar(known: TensorShape, shape: Callable[[], Any]) -> Any:
    if known.ndims is not None:
        return known.ndims == 0
    return tf.equal(tf.shape(shape())[0], 0)


class ScalarDistribution(Distribution):
    """A distribution of scalars whose batch is that of its parameters, which broadcast."""

    def _batch_parameters(self) -> list[Any]:
        """The parameters that decide the batch shape."""
        return self._graph_parents

    def _batch_shape_tensor(self) -> Any:
        first, *more = (tf.shape(each) for each in self._batch_parameters())
        for shape in more:
            first = tf.broadcast_dynamic_shape(first, shape)
        return first

    def _batch_shape(self) -> Any:
        first, *more = (each.get_shape() for each in self._batch_parameters())
        for shape in more:
            first = tf.broadcast_static_shape(first, shape)
        return first

    def _event_shape_tensor(self) -> Any:
        return tf.constant([], dtype=tf.int32)

    def _event_shape(self) -> Any:
        return TensorShape([])

    def _full_shape(self, n: Any) -> Any:
        """(n, B) as a vector."""
        return tf.concat([[n], self.batch_shape_tensor()], 0)


def shapes_of(names: str, sample_shape: Any) -> dict[str, Any]:
    """The shapes of scalar parameters: that of the sample for each name."""
    return dict.fromkeys(names.split(), tf.convert_to_tensor(sample_shape, dtype=tf.int32))
