"""The likelihood of tag sequences in a conditional random field.

# B batch, T time steps, N tags; inputs (B, T, N), tag indices (B, T), lengths (B), transition parameters (N, N)
Sequences of one step need no branch of their own: a loop over no steps leaves the state as it is. decoding.py finds
the best sequence. Follows TensorFlow 1.15's contrib/crf/python/ops/crf.py.
"""

from __future__ import annotations

from typing import Any

import tenfold as tf
from tenfold.ops.rnn_cell_layer import RNNCell


class TagCell(RNNCell):
    """A cell without variables over the scores of tags, (B, N)."""

    def __init__(self, transition_params: Any) -> None:
        super().__init__()
        self._transition_params = tf.expand_dims(transition_params, 0)
        self._num_tags: int = transition_params.shape[0].value

    @property
    def state_size(self) -> int:
        """N."""
        return self._num_tags

    @property
    def output_size(self) -> int:
        """N."""
        return self._num_tags

    def transitions(self, state: Any) -> Any:
        """The scores of going from each tag to each, (B, N, N)."""
        return tf.expand_dims(state, 2) + self._transition_params


class CrfForwardRnnCell(TagCell):
    """The forward algorithm: the logarithm of the sum over all sequences that end in each tag."""

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        """One step."""
        alphas = inputs + tf.reduce_logsumexp(self.transitions(state), [1])
        return alphas, alphas


def less_one(lengths: Any) -> Any:
    """The lengths without the first step, which is the initial state."""
    return tf.maximum(tf.constant(0, dtype=lengths.dtype), lengths - 1)


def crf_sequence_score(inputs: Any, tag_indices: Any, sequence_lengths: Any, transition_params: Any) -> Any:
    """The unnormalized score of the sequences, (B)."""
    unary = crf_unary_score(tag_indices, sequence_lengths, inputs)
    return unary + crf_binary_score(tag_indices, sequence_lengths, transition_params)


def crf_multitag_sequence_score(inputs: Any, tag_bitmap: Any, sequence_lengths: Any, transition_params: Any) -> Any:
    """The score of all sequences of tags that the bitmap (B, T, N) allows, (B)."""
    allowed = tf.where(tag_bitmap, inputs, tf.fill(tf.shape(inputs), float("-inf")))
    return crf_log_norm(allowed, sequence_lengths, transition_params)


def crf_log_norm(inputs: Any, sequence_lengths: Any, transition_params: Any) -> Any:
    """The logarithm of the sum over all sequences, (B); 0 for those of length 0."""
    lengths = tf.convert_to_tensor(sequence_lengths)
    first = tf.squeeze(tf.slice(inputs, [0, 0, 0], [-1, 1, -1]), [1])
    rest = tf.slice(inputs, [0, 1, 0], [-1, -1, -1])
    _, alphas = tf.nn.dynamic_rnn(
        cell=CrfForwardRnnCell(transition_params),
        inputs=rest,
        sequence_length=less_one(lengths),
        initial_state=first,
        dtype=tf.float32,
    )
    log_norm = tf.reduce_logsumexp(alphas, [1])
    return tf.where(tf.less_equal(lengths, 0), tf.zeros_like(log_norm), log_norm)


def crf_log_likelihood(
    inputs: Any, tag_indices: Any, sequence_lengths: Any, transition_params: Any = None
) -> tuple[Any, Any]:
    """`(log likelihood (B), transition parameters)`; without the latter a variable `transitions` is made."""
    if transition_params is None:
        tags = inputs.shape[2].value
        transition_params = tf.get_variable("transitions", [tags, tags])
    scores = crf_sequence_score(inputs, tag_indices, sequence_lengths, transition_params)
    return scores - crf_log_norm(inputs, sequence_lengths, transition_params), transition_params


def crf_unary_score(tag_indices: Any, sequence_lengths: Any, inputs: Any) -> Any:
    """The sum of the inputs of the tags, (B)."""
    shape = tf.shape(inputs)
    rows, steps, tags = shape[0], shape[1], shape[2]
    offsets = tf.expand_dims(tf.range(rows) * steps * tags, 1) + tf.expand_dims(tf.range(steps) * tags, 0)
    places = tf.reshape(tf.cast(offsets, tag_indices.dtype) + tag_indices, [-1])
    scores = tf.reshape(tf.gather(tf.reshape(inputs, [-1]), places), [rows, steps])
    masks = tf.sequence_mask(sequence_lengths, maxlen=tf.shape(tag_indices)[1], dtype=tf.float32)
    return tf.reduce_sum(scores * masks, 1)


def crf_binary_score(tag_indices: Any, sequence_lengths: Any, transition_params: Any) -> Any:
    """The sum of the transitions between the tags, (B)."""
    tags = transition_params.get_shape()[0].value
    count = tf.shape(tag_indices)[1] - 1
    starts = tf.slice(tag_indices, [0, 0], [-1, count])
    ends = tf.slice(tag_indices, [0, 1], [-1, count])
    scores = tf.gather(tf.reshape(transition_params, [-1]), starts * tags + ends)
    masks = tf.sequence_mask(sequence_lengths, maxlen=tf.shape(tag_indices)[1], dtype=tf.float32)
    return tf.reduce_sum(scores * tf.slice(masks, [0, 1], [-1, -1]), 1)
