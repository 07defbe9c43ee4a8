"""`tf.distributions.Beta`. Follows TensorFlow 1.15's python/ops/distributions/beta.py."""

from __future__ import annotations

from typing import Any

import tenfold as tf
from tenfold.distributions.distribution import FULLY_REPARAMETERIZED, ScalarDistribution, shapes_of
from tenfold.distributions.kullback_leibler import RegisterKL
from tenfold.distributions.parameters import checked, gen_new_seed, nan_where_not


class Beta(ScalarDistribution):
    """x ** (concentration1 - 1) (1 - x) ** (concentration0 - 1) / B(concentration1, concentration0), 0 < x < 1."""

    def __init__(
        self,
        concentration1: Any = None,
        concentration0: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Beta",
    ) -> None:
        """Raises TypeError for parameters of different types."""
        parameters = dict(locals())
        with tf.name_scope(name) as name:
            self._concentration1 = _valid(concentration1, "concentration1", validate_args)
            self._concentration0 = _valid(concentration0, "concentration0", validate_args)
            tf.assert_same_float_dtype([self._concentration1, self._concentration0])
            self._total_concentration = self._concentration1 + self._concentration0
        super().__init__(
            dtype=self._total_concentration.dtype,
            reparameterization_type=FULLY_REPARAMETERIZED,
            validate_args=validate_args,
            allow_nan_stats=allow_nan_stats,
            parameters=parameters,
            graph_parents=[self._concentration1, self._concentration0, self._total_concentration],
            name=name,
        )

    @staticmethod
    def _param_shapes(sample_shape: Any) -> dict[str, Any]:
        return shapes_of("concentration1 concentration0", sample_shape)

    @property
    def concentration1(self) -> Any:
        """The weight of 1."""
        return self._concentration1

    @property
    def concentration0(self) -> Any:
        """The weight of 0."""
        return self._concentration0

    @property
    def total_concentration(self) -> Any:
        """The sum of both."""
        return self._total_concentration

    def _batch_parameters(self) -> list[Any]:
        return [self._total_concentration]

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        ones = tf.ones_like(self.total_concentration)
        other_seed = gen_new_seed(seed, "beta")
        first = tf.random_gamma([n], ones * self.concentration1, dtype=self.dtype, seed=seed)
        second = tf.random_gamma([n], ones * self.concentration0, dtype=self.dtype, seed=other_seed)
        return first / (first + second)

    def _log_prob(self, x: Any) -> Any:
        if self.validate_args:
            positive = tf.assert_positive(x, message="sample must be positive")
            below = tf.assert_less(x, tf.ones([], self.dtype), message="sample must be less than `1`.")
            x = checked([positive, below], x)
        unnormalized = tf.math.xlogy(self.concentration1 - 1.0, x) + (self.concentration0 - 1.0) * tf.log1p(-x)
        return unnormalized - self._log_normalization()

    def _cdf(self, x: Any) -> Any:
        ones = tf.ones_like(x) * tf.ones_like(self.total_concentration)
        return tf.betainc(self.concentration1 * ones, self.concentration0 * ones, x * ones)

    def _log_normalization(self) -> Any:
        return tf.lgamma(self.concentration1) + tf.lgamma(self.concentration0) - tf.lgamma(self.total_concentration)

    def _entropy(self) -> Any:
        return (
            self._log_normalization()
            - (self.concentration1 - 1.0) * tf.digamma(self.concentration1)
            - (self.concentration0 - 1.0) * tf.digamma(self.concentration0)
            + (self.total_concentration - 2.0) * tf.digamma(self.total_concentration)
        )

    def _mean(self) -> Any:
        return self._concentration1 / self._total_concentration

    def _variance(self) -> Any:
        return self._mean() * (1.0 - self._mean()) / (1.0 + self.total_concentration)

    def _mode(self) -> Any:
        mode = (self.concentration1 - 1.0) / (self.total_concentration - 2.0)
        parts = (self.concentration1, self.concentration0)
        if self.allow_nan_stats:
            defined = tf.logical_and(parts[0] > 1.0, parts[1] > 1.0)
            return nan_where_not(defined, mode, self.batch_shape_tensor())
        one = tf.ones([], dtype=self.dtype)
        checks = [
            tf.assert_less(one, part, message=f"Mode undefined for {name} <= 1.")
            for part, name in zip(parts, ("concentration1", "concentration0"), strict=True)
        ]
        return checked(checks, mode)


def _valid(concentration: Any, name: str, validate_args: bool) -> Any:
    value = tf.convert_to_tensor(concentration, name=name)
    if not validate_args:
        return value
    return checked([tf.assert_positive(value, message="Concentration parameter must be positive.")], value)


class BetaWithSoftplusConcentration(Beta):
    """Beta with softplus of both concentrations."""

    def __init__(
        self,
        concentration1: Any,
        concentration0: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "BetaWithSoftplusConcentration",
    ) -> None:
        parameters = dict(locals())
        with tf.name_scope(name) as name:
            super().__init__(
                tf.nn.softplus(concentration1, name="softplus_concentration1"),
                tf.nn.softplus(concentration0, name="softplus_concentration0"),
                validate_args,
                allow_nan_stats,
                name,
            )
        self._parameters = parameters


@RegisterKL(Beta, Beta)
def _kl_beta_beta(a: Beta, b: Beta, name: str | None = None) -> Any:
    with tf.name_scope(name, "kl_beta_beta"):
        return (
            b._log_normalization()
            - a._log_normalization()
            - tf.digamma(a.concentration1) * (b.concentration1 - a.concentration1)
            - tf.digamma(a.concentration0) * (b.concentration0 - a.concentration0)
            + tf.digamma(a.total_concentration) * (b.total_concentration - a.total_concentration)
        )
