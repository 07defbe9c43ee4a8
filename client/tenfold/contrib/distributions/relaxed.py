"""Relaxed distributions of `tf.contrib.distributions`: what comes near to classes and has gradients.

# B batch, K classes
Follows TensorFlow 1.15's contrib/distributions/python/ops/relaxed_onehot_categorical.py and relaxed_bernoulli.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import tenfold as tf
from tenfold.contrib.distributions.bijectors.elementwise import Exp, Sigmoid
from tenfold.contrib.distributions.logistic import Logistic
from tenfold.contrib.distributions.transformed import TransformedDistribution
from tenfold.distributions.distribution import FULLY_REPARAMETERIZED, Distribution
from tenfold.distributions.over_classes import VectorOverClasses
from tenfold.distributions.parameters import checked, get_logits_and_probs


def _temperature(value: Any, dtype: Any, validate_args: bool) -> Any:
    temperature = tf.convert_to_tensor(value, name="temperature", dtype=dtype)
    return checked([tf.assert_positive(temperature)], temperature) if validate_args else temperature


class ExpRelaxedOneHotCategorical(VectorOverClasses, Distribution):
    """The logarithm of RelaxedOneHotCategorical: log softmax((logits + Gumbel noise) / temperature), (B, K)."""

    def __init__(
        self,
        temperature: Any,
        logits: Any = None,
        probs: Any = None,
        dtype: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "ExpRelaxedOneHotCategorical",
    ) -> None:
        """Raises ValueError unless one of logits and probs is given."""
        parameters = dict(locals())
        with tf.name_scope(name) as name:
            self._logits, self._probs = get_logits_and_probs(
                logits, probs, multidimensional=True, validate_args=validate_args, name=name, dtype=dtype
            )
            self._temperature = _temperature(temperature, self._logits.dtype, validate_args)
            self._event_size = tf.shape(self._logits)[-1]
        super().__init__(
            dtype=self._logits.dtype,
            reparameterization_type=FULLY_REPARAMETERIZED,
            validate_args=validate_args,
            allow_nan_stats=allow_nan_stats,
            parameters=parameters,
            graph_parents=[self._logits, self._probs, self._temperature],
            name=name,
        )

    @property
    def temperature(self) -> Any:
        """The lower, the nearer to classes."""
        return self._temperature

    def _scale(self) -> Any:
        """The temperature, shaped to go with (B, K)."""
        return self._temperature if self._temperature.shape.ndims == 0 else self._temperature[..., tf.newaxis]

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        shape = tf.concat([[n], tf.shape(self.logits)], 0)
        low = np.finfo(self.dtype.as_numpy_dtype).tiny
        drawn = tf.random_uniform(shape, minval=low, maxval=1.0, dtype=self.dtype, seed=seed)
        gumbel = -tf.log(-tf.log(drawn))
        return tf.nn.log_softmax((gumbel + self.logits) / self._scale())

    def _log_prob(self, x: Any) -> Any:
        size = tf.cast(self._event_size, self.dtype)
        constant = tf.lgamma(size) + (size - 1.0) * tf.log(self._temperature)
        return constant + tf.reduce_sum(tf.nn.log_softmax(self.logits - x * self._scale()), -1)


class RelaxedOneHotCategorical(TransformedDistribution):
    """softmax((logits + Gumbel noise) / temperature), (B, K): nearer to one hot, the lower the temperature is."""

    def __init__(
        self,
        temperature: Any,
        logits: Any = None,
        probs: Any = None,
        dtype: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "RelaxedOneHotCategorical",
    ) -> None:
        parameters = dict(locals())
        base = ExpRelaxedOneHotCategorical(temperature, logits, probs, dtype, validate_args, allow_nan_stats)
        super().__init__(base, Exp(validate_args=validate_args), validate_args=validate_args, name=name)
        self._parameters = parameters

    @property
    def temperature(self) -> Any:
        """The lower, the nearer to classes."""
        return self.distribution.temperature

    @property
    def event_size(self) -> Any:
        """The number of classes, a scalar."""
        return self.distribution.event_size

    @property
    def logits(self) -> Any:
        """The logarithms of the probabilities, up to a constant."""
        return self.distribution.logits

    @property
    def probs(self) -> Any:
        """The probabilities."""
        return self.distribution.probs


class RelaxedBernoulli(TransformedDistribution):
    """sigmoid((logits + logistic noise) / temperature)."""

    def __init__(
        self,
        temperature: Any,
        logits: Any = None,
        probs: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "RelaxedBernoulli",
    ) -> None:
        """Raises ValueError unless one of logits and probs is given."""
        parameters = dict(locals())
        with tf.name_scope(name) as name:
            self._logits, self._probs = get_logits_and_probs(logits, probs, validate_args=validate_args)
            self._temperature = _temperature(temperature, self._logits.dtype, validate_args)
            base = Logistic(
                self._logits / self._temperature,
                1.0 / self._temperature,
                validate_args,
                allow_nan_stats,
                name=name + "Logistic",
            )
            super().__init__(base, Sigmoid(validate_args=validate_args), validate_args=validate_args, name=name)
        self._parameters = parameters

    @property
    def temperature(self) -> Any:
        """The lower, the nearer to classes."""
        return self._temperature

    @property
    def logits(self) -> Any:
        """The logarithm of the odds of 1."""
        return self._logits

    @property
    def probs(self) -> Any:
        """The probability of 1."""
        return self._probs
