"""Bijectors of single elements: Identity, Exp, Sigmoid, Softplus.

Follows TensorFlow 1.15's contrib/distributions/python/ops/bijectors.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import tenfold as tf
from tenfold.contrib.distributions.bijectors.bijector import Bijector
from tenfold.distributions.parameters import checked


class Identity(Bijector):
    """y = x."""

    def __init__(self, validate_args: bool = False, name: str = "identity") -> None:
        super().__init__(forward_min_event_ndims=0, is_constant_jacobian=True, validate_args=validate_args, name=name)

    def _forward(self, x: Any) -> Any:
        return x

    def _inverse(self, y: Any) -> Any:
        return y

    def _inverse_log_det_jacobian(self, y: Any) -> Any:
        return tf.constant(0.0, dtype=y.dtype)

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        return tf.constant(0.0, dtype=x.dtype)


class Exp(Bijector):
    """y = exp(x)."""

    def __init__(self, validate_args: bool = False, name: str = "exp") -> None:
        super().__init__(forward_min_event_ndims=0, validate_args=validate_args, name=name)

    def _forward(self, x: Any) -> Any:
        return tf.exp(x)

    def _inverse(self, y: Any) -> Any:
        return tf.log(y)

    def _inverse_log_det_jacobian(self, y: Any) -> Any:
        return -tf.log(y)

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        return tf.identity(x)


class Sigmoid(Bijector):
    """y = 1 / (1 + exp(-x))."""

    def __init__(self, validate_args: bool = False, name: str = "sigmoid") -> None:
        super().__init__(forward_min_event_ndims=0, validate_args=validate_args, name=name)

    def _forward(self, x: Any) -> Any:
        return tf.sigmoid(x)

    def _inverse(self, y: Any) -> Any:
        return tf.log(y) - tf.log1p(-y)

    def _inverse_log_det_jacobian(self, y: Any) -> Any:
        return -tf.log(y) - tf.log1p(-y)

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        return -tf.nn.softplus(-x) - tf.nn.softplus(x)


def _softplus_inverse(x: Any) -> Any:
    """log(exp(x) - 1), which is x where exp would overflow, and log(x) where it would be 1."""
    least = np.log(np.finfo(x.dtype.as_numpy_dtype).eps) + 2.0
    small, large = tf.less(x, np.exp(least)), tf.greater(x, -least)
    inside = tf.where_v2(tf.logical_or(small, large), tf.ones_like(x), x)
    between = inside + tf.log(-tf.expm1(-inside))
    return tf.where_v2(small, tf.log(x), tf.where_v2(large, x, between))


class Softplus(Bijector):
    """y = c * log(1 + exp(x / c)) with c = hinge_softness, 1 by default."""

    def __init__(self, hinge_softness: Any = None, validate_args: bool = False, name: str = "softplus") -> None:
        with tf.name_scope(name):
            softness = None
            if hinge_softness is not None:
                softness = tf.convert_to_tensor(hinge_softness, name="hinge_softness")
                if validate_args:
                    message = "hinge_softness must be non-zero"
                    softness = checked(
                        [tf.assert_none_equal(softness, tf.zeros_like(softness), message=message)], softness
                    )
        self._hinge_softness = softness
        super().__init__(
            graph_parents=None if softness is None else [softness],
            forward_min_event_ndims=0,
            validate_args=validate_args,
            name=name,
        )

    @property
    def hinge_softness(self) -> Any:
        """The softness, or None for 1."""
        return self._hinge_softness

    def _scaled(self, x: Any) -> Any:
        return x if self._hinge_softness is None else x / tf.cast(self._hinge_softness, x.dtype)

    def _back(self, x: Any) -> Any:
        return x if self._hinge_softness is None else tf.cast(self._hinge_softness, x.dtype) * x

    def _forward(self, x: Any) -> Any:
        return self._back(tf.nn.softplus(self._scaled(x)))

    def _inverse(self, y: Any) -> Any:
        return self._back(_softplus_inverse(self._scaled(y)))

    def _inverse_log_det_jacobian(self, y: Any) -> Any:
        return -tf.log(-tf.expm1(-self._scaled(y)))

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        return -tf.nn.softplus(-self._scaled(x))
