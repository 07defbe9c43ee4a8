"""Models of `tf.contrib.legacy_seq2seq` with attention.

# B batch, L attention length, A attention size, V symbols
models.py has those without, and what both share. Follows TensorFlow 1.15's
contrib/legacy_seq2seq/python/ops/seq2seq.py, names of variables included.
"""

from __future__ import annotations

import copy
from typing import Any

import tenfold as tf
from tenfold.contrib.legacy_seq2seq.models import argmax_and_embed, fed_by
from tenfold.contrib.rnn.cell_parts import linear
from tenfold.contrib.rnn.wrappers import EmbeddingWrapper, OutputProjectionWrapper


class _Heads:
    """The attention of several heads to the states (B, L, A), with variables AttnW_i, AttnV_i and Attention_i/…."""

    def __init__(self, states: Any, heads: int, dtype: Any) -> None:
        self._length = states.get_shape()[1].value or tf.shape(states)[1]
        self._size = states.get_shape()[2].value
        self._dtype = dtype
        self._hidden = tf.reshape(states, [-1, self._length, 1, self._size])
        self._features, self._vectors = [], []
        for number in range(heads):
            kernel = tf.get_variable(f"AttnW_{number}", [1, 1, self._size, self._size], dtype=dtype)
            self._features.append(tf.nn.conv2d(self._hidden, kernel, [1, 1, 1, 1], "SAME"))
            self._vectors.append(tf.get_variable(f"AttnV_{number}", [self._size], dtype=dtype))

    def start(self, batch_size: Any) -> list[Any]:
        """No attention yet: zeros (B, A) for each head."""
        zeros = [tf.zeros(tf.stack([batch_size, self._size]), dtype=self._dtype) for _ in self._vectors]
        for each in zeros:
            each.set_shape([None, self._size])
        return zeros

    def __call__(self, query: Any) -> list[Any]:
        """What each head attends to for a state, (B, A)."""
        if tf.nest.is_nested(query):
            query = tf.concat(tf.nest.flatten(query), 1)
        found = []
        for number, (features, vector) in enumerate(zip(self._features, self._vectors, strict=True)):
            with tf.variable_scope(f"Attention_{number}"):
                y = tf.cast(tf.reshape(linear(query, self._size, True), [-1, 1, 1, self._size]), self._dtype)
                scores = tf.reduce_sum(vector * tf.tanh(features + y), [2, 3])
                share = tf.cast(tf.nn.softmax(tf.cast(scores, tf.float32)), self._dtype)
                taken = tf.reduce_sum(tf.reshape(share, [-1, self._length, 1, 1]) * self._hidden, [1, 2])
                found.append(tf.reshape(taken, [-1, self._size]))
        return found


def attention_decoder(
    decoder_inputs: Any,
    initial_state: Any,
    attention_states: Any,
    cell: Any,
    output_size: int | None = None,
    num_heads: int = 1,
    loop_function: Any = None,
    dtype: Any = None,
    scope: Any = None,
    initial_state_attention: bool = False,
) -> tuple[list[Any], Any]:
    """`(outputs, last state)` of a decoder that attends to states (B, L, A) with its own state.

    Raises ValueError without inputs or heads, and for unknown sizes.
    """
    if not decoder_inputs:
        raise ValueError("Must provide at least 1 input to attention decoder.")
    if num_heads < 1:
        raise ValueError("With less than 1 heads, use a non-attention decoder.")
    if attention_states.get_shape()[2].value is None:
        raise ValueError(f"Shape[2] of attention_states must be known: {attention_states.get_shape()}")
    size = cell.output_size if output_size is None else output_size
    with tf.variable_scope(scope or "attention_decoder", dtype=dtype) as inner:
        dtype = inner.dtype
        attend = _Heads(attention_states, num_heads, dtype)
        state, outputs = initial_state, []
        before = None
        attention = attend.start(tf.shape(decoder_inputs[0])[0])
        if initial_state_attention:
            attention = attend(initial_state)
        for number, given in enumerate(decoder_inputs):
            if number > 0:
                tf.get_variable_scope().reuse_variables()
            if loop_function is not None and before is not None:
                with tf.variable_scope("loop_function", reuse=True):
                    given = loop_function(before, number)
            depth = given.get_shape().with_rank(2)[1].value
            if depth is None:
                raise ValueError(f"Could not infer input size from input: {given.name}")
            x = linear([tf.cast(each, dtype) for each in (given, *attention)], depth, True)
            output, state = cell(x, state)
            if number == 0 and initial_state_attention:
                with tf.variable_scope(tf.get_variable_scope(), reuse=True):
                    attention = attend(state)
            else:
                attention = attend(state)
            with tf.variable_scope("AttnOutputProjection"):
                output = linear([tf.cast(output, dtype), *attention], size, True)
            if loop_function is not None:
                before = output
            outputs.append(output)
    return outputs, state


def embedding_attention_decoder(
    decoder_inputs: Any,
    initial_state: Any,
    attention_states: Any,
    cell: Any,
    num_symbols: int,
    embedding_size: int,
    num_heads: int = 1,
    output_size: int | None = None,
    output_projection: Any = None,
    feed_previous: bool = False,
    update_embedding_for_previous: bool = True,
    dtype: Any = None,
    scope: Any = None,
    initial_state_attention: bool = False,
) -> tuple[list[Any], Any]:
    """As attention_decoder, of ids (B) each, looked up in the variable `embedding` (V, size)."""
    if output_projection is not None:
        biases = tf.convert_to_tensor(output_projection[1], dtype=dtype)
        biases.get_shape().assert_is_compatible_with([num_symbols])
    with tf.variable_scope(scope or "embedding_attention_decoder", dtype=dtype):
        embedding = tf.get_variable("embedding", [num_symbols, embedding_size])
        loop_function = None
        if feed_previous:
            loop_function = argmax_and_embed(embedding, output_projection, update_embedding_for_previous)
        return attention_decoder(
            [tf.nn.embedding_lookup(embedding, each) for each in decoder_inputs],
            initial_state,
            attention_states,
            cell,
            output_size=cell.output_size if output_size is None else output_size,
            num_heads=num_heads,
            loop_function=loop_function,
            initial_state_attention=initial_state_attention,
        )


def embedding_attention_seq2seq(
    encoder_inputs: Any,
    decoder_inputs: Any,
    cell: Any,
    num_encoder_symbols: int,
    num_decoder_symbols: int,
    embedding_size: int,
    num_heads: int = 1,
    output_projection: Any = None,
    feed_previous: Any = False,
    dtype: Any = None,
    scope: Any = None,
    initial_state_attention: bool = False,
) -> tuple[list[Any], Any]:
    """An encoder and a decoder of ids that attends to the encoder's outputs."""
    with tf.variable_scope(scope or "embedding_attention_seq2seq", dtype=dtype) as inner:
        encoder = EmbeddingWrapper(copy.deepcopy(cell), num_encoder_symbols, embedding_size)
        encoded, encoder_state = tf.nn.static_rnn(encoder, encoder_inputs, dtype=inner.dtype)
        states = tf.concat([tf.reshape(each, [-1, 1, cell.output_size]) for each in encoded], 1)
        output_size = None
        if output_projection is None:
            cell, output_size = OutputProjectionWrapper(cell, num_decoder_symbols), num_decoder_symbols

        def decoder(feeds: bool, updates: bool) -> tuple[list[Any], Any]:
            return embedding_attention_decoder(
                decoder_inputs,
                encoder_state,
                states,
                cell,
                num_decoder_symbols,
                embedding_size,
                num_heads=num_heads,
                output_size=output_size,
                output_projection=output_projection,
                feed_previous=feeds,
                update_embedding_for_previous=updates,
                initial_state_attention=initial_state_attention,
            )

        return fed_by(feed_previous, decoder, len(decoder_inputs), lambda: encoder_state)  # type: ignore[no-any-return]
