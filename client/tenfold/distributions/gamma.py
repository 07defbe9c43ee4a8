"""`tf.distributions.Gamma` and `Exponential`. Follows TensorFlow 1.15's python/ops/distributions/gamma.py."""

from __future__ import annotations

from typing import Any

import numpy as np

import tenfold as tf
from tenfold.distributions.distribution import FULLY_REPARAMETERIZED, ScalarDistribution, shapes_of
from tenfold.distributions.kullback_leibler import RegisterKL
from tenfold.distributions.parameters import checked, nan_where_not


class Gamma(ScalarDistribution):
    """x ** (concentration - 1) exp(-rate x) rate ** concentration / Gamma(concentration), for x > 0."""

    def __init__(
        self,
        concentration: Any,
        rate: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Gamma",
    ) -> None:
        """Raises TypeError for parameters of different types."""
        parameters = dict(locals())
        with tf.name_scope(name) as name:
            checks = [tf.assert_positive(concentration), tf.assert_positive(rate)] if validate_args else []
            with tf.control_dependencies([each for each in checks if each is not None]):
                self._concentration = tf.identity(concentration, name="concentration")
                self._rate = tf.identity(rate, name="rate")
            tf.assert_same_float_dtype([self._concentration, self._rate])
        super().__init__(
            dtype=self._concentration.dtype,
            reparameterization_type=FULLY_REPARAMETERIZED,
            validate_args=validate_args,
            allow_nan_stats=allow_nan_stats,
            parameters=parameters,
            graph_parents=[self._concentration, self._rate],
            name=name,
        )

    @staticmethod
    def _param_shapes(sample_shape: Any) -> dict[str, Any]:
        return shapes_of("concentration rate", sample_shape)

    @property
    def concentration(self) -> Any:
        """The shape parameter."""
        return self._concentration

    @property
    def rate(self) -> Any:
        """The inverse of the scale."""
        return self._rate

    def _batch_parameters(self) -> list[Any]:
        return [self._concentration, self._rate]

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        return tf.random_gamma([n], self.concentration, beta=self.rate, dtype=self.dtype, seed=seed)

    def _log_prob(self, x: Any) -> Any:
        x = self._valid(x)
        unnormalized = tf.math.xlogy(self.concentration - 1.0, x) - self.rate * x
        return unnormalized - (tf.lgamma(self.concentration) - self.concentration * tf.log(self.rate))

    def _cdf(self, x: Any) -> Any:
        scaled = self.rate * self._valid(x)
        return tf.igamma(self.concentration * tf.ones_like(scaled), scaled * tf.ones_like(self.concentration))

    def _entropy(self) -> Any:
        digamma = (1.0 - self.concentration) * tf.digamma(self.concentration)
        return self.concentration - tf.log(self.rate) + tf.lgamma(self.concentration) + digamma

    def _mean(self) -> Any:
        return self.concentration / self.rate

    def _variance(self) -> Any:
        return self.concentration / tf.square(self.rate)

    def _stddev(self) -> Any:
        return tf.sqrt(self.concentration) / self.rate

    def _mode(self) -> Any:
        mode = (self.concentration - 1.0) / self.rate
        if self.allow_nan_stats:
            return nan_where_not(self.concentration > 1.0, mode, self.batch_shape_tensor())
        message = "mode not defined when any concentration <= 1"
        return checked([tf.assert_less(tf.ones([], self.dtype), self.concentration, message=message)], mode)

    def _valid(self, x: Any) -> Any:
        tf.assert_same_float_dtype(tensors=[x], dtype=self.dtype)
        return checked([tf.assert_positive(x)], x) if self.validate_args else x


class GammaWithSoftplusConcentrationRate(Gamma):
    """Gamma with softplus(concentration) and softplus(rate)."""

    def __init__(
        self,
        concentration: Any,
        rate: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "GammaWithSoftplusConcentrationRate",
    ) -> None:
        parameters = dict(locals())
        with tf.name_scope(name) as name:
            super().__init__(
                tf.nn.softplus(concentration, name="softplus_concentration"),
                tf.nn.softplus(rate, name="softplus_rate"),
                validate_args,
                allow_nan_stats,
                name,
            )
        self._parameters = parameters


class Exponential(Gamma):
    """rate exp(-rate x), for x > 0."""

    def __init__(
        self, rate: Any, validate_args: bool = False, allow_nan_stats: bool = True, name: str = "Exponential"
    ) -> None:
        parameters = dict(locals())
        with tf.name_scope(name) as name:
            rate = tf.convert_to_tensor(rate, name="rate")
            super().__init__(tf.ones([], dtype=rate.dtype), rate, validate_args, allow_nan_stats, name)
        self._parameters = parameters

    @staticmethod
    def _param_shapes(sample_shape: Any) -> dict[str, Any]:
        return shapes_of("rate", sample_shape)

    def _log_survival_function(self, value: Any) -> Any:
        return self._log_prob(value) - tf.log(self._rate)

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        # The interval does not include zero, which has no logarithm.
        low = np.finfo(self.dtype.as_numpy_dtype).tiny
        drawn = tf.random_uniform(self._full_shape(n), minval=low, maxval=1.0, seed=seed, dtype=self.dtype)
        return -tf.log(drawn) / self._rate


class ExponentialWithSoftplusRate(Exponential):
    """Exponential with softplus(rate)."""

    def __init__(
        self,
        rate: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "ExponentialWithSoftplusRate",
    ) -> None:
        parameters = dict(locals())
        with tf.name_scope(name) as name:
            super().__init__(tf.nn.softplus(rate, name="softplus_rate"), validate_args, allow_nan_stats, name)
        self._parameters = parameters


@RegisterKL(Gamma, Gamma)
def _kl_gamma_gamma(a: Gamma, b: Gamma, name: str | None = None) -> Any:
    with tf.name_scope(name, "kl_gamma_gamma"):
        return (
            (a.concentration - b.concentration) * tf.digamma(a.concentration)
            + tf.lgamma(b.concentration)
            - tf.lgamma(a.concentration)
            + b.concentration * (tf.log(a.rate) - tf.log(b.rate))
            + a.concentration * (b.rate / a.rate - 1.0)
        )
