"""`tf.distributions.Categorical`. Follows TensorFlow 1.15's python/ops/distributions/categorical.py."""

from __future__ import annotations

from typing import Any

import tenfold as tf
from tenfold.distributions.distribution import NOT_REPARAMETERIZED, Distribution
from tenfold.distributions.kullback_leibler import RegisterKL
from tenfold.distributions.over_classes import OverClasses
from tenfold.distributions.parameters import (
    embed_check_categorical_event_shape,
    embed_check_integer_casting_closed,
    get_logits_and_probs,
)
from tenfold_core.tensor_shape import TensorShape


class Categorical(OverClasses, Distribution):
    """One of K classes, with probabilities `probs` (B, K), which are softmax(logits)."""

    def __init__(
        self,
        logits: Any = None,
        probs: Any = None,
        dtype: Any = tf.int32,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Categorical",
    ) -> None:
        """Raises ValueError unless one of logits and probs is given."""
        parameters = dict(locals())
        with tf.name_scope(name) as name:
            self._logits, self._probs = get_logits_and_probs(
                logits, probs, multidimensional=True, validate_args=validate_args, name=name
            )
            if validate_args:
                self._logits = embed_check_categorical_event_shape(self._logits)
            known = self._logits.get_shape().with_rank_at_least(1)
            size = None if known.ndims is None else known[-1].value
            self._event_size = (
                tf.shape(self._logits)[-1] if size is None else tf.constant(size, tf.int32, name="event_size")
            )
        super().__init__(
            dtype=dtype,
            reparameterization_type=NOT_REPARAMETERIZED,
            validate_args=validate_args,
            allow_nan_stats=allow_nan_stats,
            parameters=parameters,
            graph_parents=[self._logits, self._probs],
            name=name,
        )

    def _event_shape_tensor(self) -> Any:
        return tf.constant([], dtype=tf.int32)

    def _event_shape(self) -> Any:
        return TensorShape([])

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        rows = self.logits if self.logits.get_shape().ndims == 2 else tf.reshape(self.logits, [-1, self.event_size])
        kind = tf.int64 if self.dtype.size > 4 else tf.int32
        drawn = tf.multinomial(rows, n, seed=seed, output_dtype=kind)
        drawn = tf.reshape(tf.transpose(drawn), tf.concat([[n], self.batch_shape_tensor()], 0))
        return tf.cast(drawn, self.dtype)

    def _checked_event(self, k: Any) -> Any:
        k = tf.convert_to_tensor(k, name="k")
        return embed_check_integer_casting_closed(k, target_dtype=tf.int32) if self.validate_args else k

    def _cdf(self, k: Any) -> Any:
        k, probs = self._broadcast(self._checked_event(k), self.probs)
        rows, flat = tf.reshape(probs, (-1, self._event_size)), tf.reshape(k, [-1])
        below = tf.where(tf.sequence_mask(flat, self._event_size), rows, tf.zeros_like(rows))
        return tf.reshape(tf.reduce_sum(below, axis=-1), tf.shape(k))

    def _log_prob(self, k: Any) -> Any:
        k, logits = self._broadcast(self._checked_event(k), self.logits)
        return -tf.nn.sparse_softmax_cross_entropy_with_logits(labels=k, logits=logits)

    def _broadcast(self, event: Any, parameters: Any) -> tuple[Any, Any]:
        """The event, of integer type, and the parameters, of one batch shape."""
        if not event.dtype.is_integer:
            if not event.dtype.is_floating:
                raise TypeError(f"`value` should have integer `dtype` or `self.dtype` ({self.dtype.base_dtype})")
            event = tf.cast(event, dtype=tf.int32)
        known = parameters.shape.ndims is not None and parameters.shape[:-1].is_fully_defined()
        if not known or not event.shape.is_fully_defined() or parameters.shape[:-1] != event.shape:
            parameters *= tf.ones_like(event[..., tf.newaxis], dtype=parameters.dtype)
            event *= tf.ones(tf.shape(parameters)[:-1], dtype=event.dtype)
            if parameters.shape.ndims is not None:
                event.set_shape(parameters.shape[:-1])
        return event, parameters

    def _entropy(self) -> Any:
        return -tf.reduce_sum(tf.nn.log_softmax(self.logits) * self.probs, axis=-1)

    def _mode(self) -> Any:
        mode = tf.cast(tf.argmax(self.logits, axis=-1), self.dtype)
        mode.set_shape(self.batch_shape)
        return mode


@RegisterKL(Categorical, Categorical)
def _kl_categorical_categorical(a: Categorical, b: Categorical, name: str | None = None) -> Any:
    with tf.name_scope(name, "kl_categorical_categorical"):
        difference = tf.nn.log_softmax(a.logits) - tf.nn.log_softmax(b.logits)
        return tf.reduce_sum(tf.nn.softmax(a.logits) * difference, axis=-1)
