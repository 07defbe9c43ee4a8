"""The best tag sequence of a conditional random field: in NumPy, and as ops for a batch.

# B batch, T time steps, N tags; potentials (B, T, N), transition parameters (N, N)
likelihood.py has the likelihood. Follows TensorFlow 1.15's contrib/crf/python/ops/crf.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import tenfold as tf
from tenfold.contrib.crf.likelihood import TagCell, less_one
from tenfold.ops.rnn_cell_layer import RNNCell


def viterbi_decode(score: Any, transition_params: Any) -> tuple[list[Any], Any]:
    """`(tags, score)` of the best sequence for scores (T, N), both NumPy's; at once, outside of any graph."""
    best = np.array(score, copy=True)
    before = np.zeros(best.shape, np.int32)
    for time in range(1, best.shape[0]):
        reached = best[time - 1][:, None] + transition_params
        best[time] = score[time] + reached.max(0)
        before[time] = reached.argmax(0)
    tags = [best[-1].argmax()]
    for row in before[:0:-1]:
        tags.append(row[tags[-1]])
    return tags[::-1], best[-1].max()


class CrfDecodeForwardRnnCell(TagCell):
    """The best score that ends in each tag, and the tag before it, which is the output."""

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        """One step: outputs (B, N) int32, state (B, N)."""
        scores = self.transitions(state)
        return tf.cast(tf.argmax(scores, 1), tf.int32), inputs + tf.reduce_max(scores, [1])


class CrfDecodeBackwardRnnCell(RNNCell):
    """Follows the tags back; inputs (B, N) int32, state and output (B, 1) int32."""

    def __init__(self, num_tags: int) -> None:
        super().__init__()
        self._num_tags = num_tags

    @property
    def state_size(self) -> int:
        """One tag."""
        return 1

    @property
    def output_size(self) -> int:
        """One tag."""
        return 1

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        """One step."""
        rows = tf.range(tf.shape(inputs)[0])
        tags = tf.gather_nd(inputs, tf.stack([rows, tf.squeeze(state, axis=[1])], axis=1))
        tags = tf.expand_dims(tags, axis=-1)
        return tags, tags


def crf_decode(potentials: Any, transition_params: Any, sequence_length: Any) -> tuple[Any, Any]:
    """`(tags (B, T) int32, scores (B))` of the best sequences; tags beyond a length are 0."""
    lengths = tf.convert_to_tensor(sequence_length)
    rest_lengths = less_one(lengths)
    first = tf.squeeze(tf.slice(potentials, [0, 0, 0], [-1, 1, -1]), axis=[1])
    before, last = tf.nn.dynamic_rnn(
        CrfDecodeForwardRnnCell(transition_params),
        inputs=tf.slice(potentials, [0, 1, 0], [-1, -1, -1]),
        sequence_length=rest_lengths,
        initial_state=first,
        dtype=tf.int32,
    )
    before = tf.reverse_sequence(before, rest_lengths, seq_axis=1)
    ends = tf.expand_dims(tf.cast(tf.argmax(last, axis=1), tf.int32), axis=-1)
    tags, _ = tf.nn.dynamic_rnn(
        CrfDecodeBackwardRnnCell(potentials.shape[2].value),
        inputs=before,
        sequence_length=rest_lengths,
        initial_state=ends,
        dtype=tf.int32,
    )
    tags = tf.concat([ends, tf.squeeze(tags, axis=[2])], axis=1)
    return tf.reverse_sequence(tags, lengths, seq_axis=1), tf.reduce_max(last, axis=1)
