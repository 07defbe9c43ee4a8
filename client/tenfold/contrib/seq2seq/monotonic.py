"""Monotonic attention of `tf.contrib.seq2seq`: it moves through the memory in one direction.

# B batch, S memory steps, U units
The other mechanisms are in attention.py. Follows TensorFlow 1.15's contrib/seq2seq/python/ops/attention_wrapper.py,
names of variables included.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

import tenfold as tf
from tenfold.contrib.seq2seq.attention import (
    BaseAttentionMechanism,
    bahdanau_score,
    luong_scale,
    luong_score,
    unit_layer,
)


def safe_cumprod(x: Any, *args: Any, **kwargs: Any) -> Any:
    """The cumulative product of numbers in (0, 1], computed by logarithms so that gradients stay finite."""
    with tf.name_scope(None, "SafeCumprod"):
        x = tf.convert_to_tensor(x, name="x")
        tiny = np.finfo(x.dtype.as_numpy_dtype).tiny
        return tf.exp(tf.cumsum(tf.log(tf.clip_by_value(x, tiny, 1)), *args, **kwargs))


def monotonic_attention(p_choose_i: Any, previous_attention: Any, mode: str) -> Any:
    """The attention (B, S) from the probabilities of stopping (B, S) and the attention before.

    `mode` is "recursive" (exact), "parallel" (exact but for probabilities near 0 or 1, fast) or "hard" (for
    probabilities and attention of 0 and 1). Raises ValueError for another one.
    """
    chosen = tf.convert_to_tensor(p_choose_i, name="p_choose_i")
    before = tf.convert_to_tensor(previous_attention, name="previous_attention")
    if mode == "recursive":
        rows = chosen.shape[0].value or tf.shape(chosen)[0]
        passed = tf.concat([tf.ones((rows, 1)), 1 - chosen[:, :-1]], 1)

        def step(reached: Any, each: Any) -> Any:
            return tf.reshape(each[0] * reached + each[1], (rows,))

        reached = tf.scan(step, [tf.transpose(passed), tf.transpose(before)], tf.zeros((rows,)))
        return chosen * tf.transpose(reached)
    if mode == "parallel":
        passed = safe_cumprod(1 - chosen, axis=1, exclusive=True)
        return chosen * passed * tf.cumsum(before / tf.clip_by_value(passed, 1e-10, 1.0), axis=1)
    if mode == "hard":
        chosen *= tf.cumsum(before, axis=1)
        return chosen * tf.cumprod(1 - chosen, axis=1, exclusive=True)
    raise ValueError("mode must be 'recursive', 'parallel', or 'hard'.")


def _probability(score: Any, before: Any, sigmoid_noise: float, mode: str, seed: int | None = None) -> Any:
    if sigmoid_noise > 0:
        score += sigmoid_noise * tf.random_normal(tf.shape(score), dtype=score.dtype, seed=seed)
    chosen = tf.cast(score > 0, score.dtype) if mode == "hard" else tf.sigmoid(score)
    return monotonic_attention(chosen, before, mode)


class _MonotonicAttentionMechanism(BaseAttentionMechanism):
    """A mechanism that starts at the first step of the memory."""

    _score_bias_init: float

    def initial_alignments(self, batch_size: Any, dtype: Any) -> Any:
        """One at the first step of the memory, else zero: (B, S)."""
        return tf.one_hot(tf.zeros((batch_size,), dtype=tf.int32), self._alignments_size, dtype=dtype)

    def _bias(self, dtype: Any) -> Any:
        start = tf.constant_initializer(self._score_bias_init, dtype=dtype)
        return tf.get_variable("attention_score_bias", shape=(), dtype=dtype, initializer=start)


class BahdanauMonotonicAttention(_MonotonicAttentionMechanism):
    """Additive attention that moves in one direction; `sigmoid_noise` makes its decisions sharp in training."""

    def __init__(
        self,
        num_units: int,
        memory: Any,
        memory_sequence_length: Any = None,
        normalize: bool = False,
        score_mask_value: Any = None,
        sigmoid_noise: float = 0.0,
        sigmoid_noise_seed: int | None = None,
        score_bias_init: float = 0.0,
        mode: str = "parallel",
        dtype: Any = None,
        name: str = "BahdanauMonotonicAttention",
    ) -> None:
        kind = dtype or tf.float32
        super().__init__(
            query_layer=unit_layer(num_units, "query_layer", kind),
            memory_layer=unit_layer(num_units, "memory_layer", kind),
            memory=memory,
            probability_fn=functools.partial(
                _probability, sigmoid_noise=sigmoid_noise, mode=mode, seed=sigmoid_noise_seed
            ),
            memory_sequence_length=memory_sequence_length,
            score_mask_value=score_mask_value,
            name=name,
        )
        self._num_units = num_units
        self._normalize = normalize
        self._name = name
        self._score_bias_init = score_bias_init

    def __call__(self, query: Any, state: Any) -> tuple[Any, Any]:
        """(alignments (B, S), next state)."""
        with tf.variable_scope(None, "bahdanau_monotonic_attention", [query]):
            score = bahdanau_score(self, query)
            score += self._bias(query.dtype)
        return self._attend(score, state)


class LuongMonotonicAttention(_MonotonicAttentionMechanism):
    """Multiplicative attention that moves in one direction."""

    def __init__(
        self,
        num_units: int,
        memory: Any,
        memory_sequence_length: Any = None,
        scale: bool = False,
        score_mask_value: Any = None,
        sigmoid_noise: float = 0.0,
        sigmoid_noise_seed: int | None = None,
        score_bias_init: float = 0.0,
        mode: str = "parallel",
        dtype: Any = None,
        name: str = "LuongMonotonicAttention",
    ) -> None:
        super().__init__(
            query_layer=None,
            memory_layer=unit_layer(num_units, "memory_layer", dtype or tf.float32),
            memory=memory,
            probability_fn=functools.partial(
                _probability, sigmoid_noise=sigmoid_noise, mode=mode, seed=sigmoid_noise_seed
            ),
            memory_sequence_length=memory_sequence_length,
            score_mask_value=score_mask_value,
            name=name,
        )
        self._num_units = num_units
        self._scale = scale
        self._score_bias_init = score_bias_init
        self._name = name

    def __call__(self, query: Any, state: Any) -> tuple[Any, Any]:
        """(alignments (B, S), next state)."""
        with tf.variable_scope(None, "luong_monotonic_attention", [query]):
            score = luong_score(query, self._keys, luong_scale(self._scale, query.dtype))
            score += self._bias(query.dtype)
        return self._attend(score, state)
