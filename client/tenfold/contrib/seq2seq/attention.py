"""Attention mechanisms of `tf.contrib.seq2seq`: Bahdanau's and Luong's.

# B batch, S memory steps, M memory depth, U units, Q query depth
attention_wrapper.py puts one around a cell; the monotonic forms are in monotonic.py. Follows TensorFlow 1.15's
contrib/seq2seq/python/ops/attention_wrapper.py, names of variables included.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

import tenfold as tf
from tenfold.layers.base import Layer
from tenfold.ops.rnn_cell_layer import zero_tensors

if TYPE_CHECKING:
    from collections.abc import Callable


class AttentionMechanism:
    """Base: called with (query (B, Q), state) it gives (alignments (B, S), next state)."""

    @property
    def alignments_size(self) -> Any:
        """S, a number or a scalar."""
        raise NotImplementedError

    @property
    def state_size(self) -> Any:
        """The size of the state."""
        raise NotImplementedError


def prepare_memory(memory: Any, memory_sequence_length: Any = None, check_inner_dims_defined: bool = True) -> Any:
    """The memory (B, S, …), zero beyond the lengths. Raises ValueError if its inner sizes are not known."""
    memory = tf.nest.map_structure(lambda each: tf.convert_to_tensor(each, name="memory"), memory)
    if check_inner_dims_defined:
        for each in tf.nest.flatten(memory):
            if not each.get_shape()[2:].is_fully_defined():
                raise ValueError(
                    f"Expected memory {each.name} to have fully defined inner dims, but saw shape: {each.get_shape()}"
                )
    if memory_sequence_length is None:
        return memory
    first = tf.nest.flatten(memory)[0]
    lengths = tf.convert_to_tensor(memory_sequence_length, name="memory_sequence_length")
    mask = tf.sequence_mask(lengths, maxlen=tf.shape(first)[1], dtype=first.dtype)

    def masked(each: Any) -> Any:
        rank = each.get_shape().ndims
        more = tf.ones((tf.rank(each) if rank is None else rank) - 2, dtype=tf.int32)
        return each * tf.reshape(mask, tf.concat((tf.shape(mask), more), 0))

    return tf.nest.map_structure(masked, memory)


def masked_score(score: Any, memory_sequence_length: Any, score_mask_value: Any) -> Any:
    """The score (B, S), `score_mask_value` beyond the lengths, which must be positive."""
    if memory_sequence_length is None:
        return score
    message = "All values in memory_sequence_length must be greater than zero."
    with tf.control_dependencies([tf.assert_positive(memory_sequence_length, message=message)]):
        mask = tf.sequence_mask(memory_sequence_length, maxlen=tf.shape(score)[1])
    return tf.where(mask, score, score_mask_value * tf.ones_like(score))


class BaseAttentionMechanism(AttentionMechanism):
    """A mechanism with a memory: `values` as they are (masked), and `keys`, which a layer makes of them."""

    def __init__(
        self,
        query_layer: Any,
        memory: Any,
        probability_fn: Callable[[Any, Any], Any],
        memory_sequence_length: Any = None,
        memory_layer: Any = None,
        check_inner_dims_defined: bool = True,
        score_mask_value: Any = None,
        custom_key_value_fn: Any = None,
        name: str | None = None,
    ) -> None:
        """Raises TypeError for anything but layers and functions, ValueError for a memory of unknown sizes."""
        for layer, word in ((query_layer, "query_layer"), (memory_layer, "memory_layer")):
            if layer is not None and not isinstance(layer, Layer):
                raise TypeError(f"{word} is not a Layer: {type(layer).__name__}")
        self._query_layer = query_layer
        self._memory_layer = memory_layer
        self.dtype = memory_layer.dtype
        if not callable(probability_fn):
            raise TypeError(f"probability_fn must be callable, saw type: {type(probability_fn).__name__}")
        if score_mask_value is None:
            score_mask_value = tf.as_dtype(self.dtype).as_numpy_dtype(-np.inf)
        self._probability_fn: Any = lambda score, before: probability_fn(
            masked_score(score, memory_sequence_length, score_mask_value), before
        )
        with tf.name_scope(name, "BaseAttentionMechanismInit"):
            self._values = prepare_memory(memory, memory_sequence_length, check_inner_dims_defined)
            self._keys = self._memory_layer(self._values) if self._memory_layer else self._values
            if custom_key_value_fn is not None:
                self._keys, self._values = custom_key_value_fn(self._keys, self._values)
            self._batch_size = self._keys.shape[0].value or tf.shape(self._keys)[0]
            self._alignments_size = self._keys.shape[1].value or tf.shape(self._keys)[1]

    @property
    def memory_layer(self) -> Any:
        """The layer that makes the keys."""
        return self._memory_layer

    @property
    def query_layer(self) -> Any:
        """The layer that the query passes, or None."""
        return self._query_layer

    @property
    def values(self) -> Any:
        """What is attended to, (B, S, M)."""
        return self._values

    @property
    def keys(self) -> Any:
        """What queries are compared with, (B, S, U)."""
        return self._keys

    @property
    def batch_size(self) -> Any:
        """B, a number or a scalar."""
        return self._batch_size

    @property
    def alignments_size(self) -> Any:
        """S, a number or a scalar."""
        return self._alignments_size

    @property
    def state_size(self) -> Any:
        """S: the state is the last alignments."""
        return self._alignments_size

    def initial_alignments(self, batch_size: Any, dtype: Any) -> Any:
        """Zeros (B, S)."""
        return zero_tensors(self._alignments_size, batch_size, dtype)

    def initial_state(self, batch_size: Any, dtype: Any) -> Any:
        """As the initial alignments."""
        return self.initial_alignments(batch_size, dtype)

    def _attend(self, score: Any, state: Any) -> tuple[Any, Any]:
        alignments = self._probability_fn(score, state)
        return alignments, alignments


def unit_layer(num_units: int, name: str, dtype: Any) -> Any:
    """The layer without bias that makes keys or queries of `num_units`."""
    return tf.layers.Dense(num_units, name=name, use_bias=False, dtype=dtype)


def luong_score(query: Any, keys: Any, scale: Any) -> Any:
    """query · keys, (B, S). Raises ValueError if they have different depths."""
    depth, units = query.get_shape()[-1], keys.get_shape()[-1]
    if depth != units:
        raise ValueError(
            f"Incompatible or unknown inner dimensions between query and keys.  Query ({query}) has units: {depth}.  "
            f"Keys ({keys}) have units: {units}.  Perhaps you need to set num_units to the keys' dimension ({units})?"
        )
    score = tf.squeeze(tf.matmul(tf.expand_dims(query, 1), keys, transpose_b=True), [1])
    return score if scale is None else scale * score


def luong_scale(scaled: bool, dtype: Any) -> Any:
    """The variable attention_g, or None."""
    return tf.get_variable("attention_g", dtype=dtype, initializer=tf.ones_initializer, shape=()) if scaled else None


def bahdanau_score(mechanism: Any, query: Any) -> Any:
    """v · tanh(keys + query), (B, S), with variables attention_v, and attention_g and attention_b to normalize."""
    units, dtype = mechanism._num_units, query.dtype
    processed = mechanism.query_layer(query) if mechanism.query_layer else query
    v = tf.get_variable("attention_v", [units], dtype=dtype)
    mixed = mechanism._keys + tf.expand_dims(processed, 1)
    if mechanism._normalize:
        start = tf.constant_initializer(math.sqrt(1.0 / units))
        g = tf.get_variable("attention_g", dtype=dtype, initializer=start, shape=())
        b = tf.get_variable("attention_b", [units], dtype=dtype, initializer=tf.zeros_initializer())
        v, mixed = g * v * tf.rsqrt(tf.reduce_sum(tf.square(v))), mixed + b
    return tf.reduce_sum(v * tf.tanh(mixed), [2])


def without_state(probability_fn: Any) -> Callable[[Any, Any], Any]:
    """A probability function of scores (softmax for None) as one of scores and the state before."""
    function = tf.nn.softmax if probability_fn is None else probability_fn
    return lambda score, _: function(score)


class LuongAttention(BaseAttentionMechanism):
    """Multiplicative attention: the query, of depth U, times the keys; with `scale` times a learned scalar."""

    def __init__(
        self,
        num_units: int,
        memory: Any,
        memory_sequence_length: Any = None,
        scale: bool = False,
        probability_fn: Any = None,
        score_mask_value: Any = None,
        dtype: Any = None,
        custom_key_value_fn: Any = None,
        name: str = "LuongAttention",
    ) -> None:
        super().__init__(
            query_layer=None,
            memory_layer=unit_layer(num_units, "memory_layer", dtype or tf.float32),
            memory=memory,
            probability_fn=without_state(probability_fn),
            memory_sequence_length=memory_sequence_length,
            score_mask_value=score_mask_value,
            custom_key_value_fn=custom_key_value_fn,
            name=name,
        )
        self._num_units = num_units
        self._scale = scale
        self._name = name

    def __call__(self, query: Any, state: Any) -> tuple[Any, Any]:
        """(alignments (B, S), next state)."""
        with tf.variable_scope(None, "luong_attention", [query]):
            score = luong_score(query, self._keys, luong_scale(self._scale, query.dtype))
        return self._attend(score, state)


class BahdanauAttention(BaseAttentionMechanism):
    """Additive attention: v · tanh(keys + query); `normalize` learns the length of v and a bias."""

    def __init__(
        self,
        num_units: int,
        memory: Any,
        memory_sequence_length: Any = None,
        normalize: bool = False,
        probability_fn: Any = None,
        score_mask_value: Any = None,
        dtype: Any = None,
        custom_key_value_fn: Any = None,
        name: str = "BahdanauAttention",
    ) -> None:
        kind = dtype or tf.float32
        super().__init__(
            query_layer=unit_layer(num_units, "query_layer", kind),
            memory_layer=unit_layer(num_units, "memory_layer", kind),
            memory=memory,
            probability_fn=without_state(probability_fn),
            memory_sequence_length=memory_sequence_length,
            score_mask_value=score_mask_value,
            custom_key_value_fn=custom_key_value_fn,
            name=name,
        )
        self._num_units = num_units
        self._normalize = normalize
        self._name = name

    def __call__(self, query: Any, state: Any) -> tuple[Any, Any]:
        """(alignments (B, S), next state)."""
        with tf.variable_scope(None, "bahdanau_attention", [query]):
            score = bahdanau_score(self, query)
        return self._attend(score, state)


def hardmax(logits: Any, name: str | None = None) -> Any:
    """One at the largest of the last dimension, else zero."""
    with tf.name_scope(name, "Hardmax"):
        logits = tf.convert_to_tensor(logits, name="logits")
        depth = logits.get_shape()[-1].value
        return tf.one_hot(tf.argmax(logits, -1), tf.shape(logits)[-1] if depth is None else depth, dtype=logits.dtype)
