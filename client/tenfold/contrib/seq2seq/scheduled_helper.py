"""Scheduled sampling: helpers that feed the given inputs, or, with a probability, what the decoder gave itself.

# B batch, T time steps, D input size
The other helpers are in helper.py. Follows TensorFlow 1.15's contrib/seq2seq/python/ops/helper.py.
"""

from __future__ import annotations

from typing import Any

import tenfold as tf
from tenfold.contrib.seq2seq.helper import (
    TrainingHelper,
    bernoulli_sample,
    categorical_sample,
    embedding_function,
    unstacked,
)
from tenfold.ops.rnn import transpose_batch_time


def _probability(value: Any) -> Any:
    tensor = tf.convert_to_tensor(value, name="sampling_probability")
    if tensor.get_shape().ndims not in (0, 1):
        raise ValueError(f"sampling_probability must be either a scalar or a vector. saw shape: {tensor.get_shape()}")
    return tensor


def _indices(condition: Any) -> Any:
    return tf.cast(tf.where(condition), tf.int32)


def _interleaved(base: Any, sampling: Any, sampled: Any) -> Any:
    """`base` (B, D) with the rows where `sampling` replaced by `sampled`, one row for each."""
    shape, others = tf.shape(base), _indices(tf.logical_not(sampling))
    return tf.scatter_nd(_indices(sampling), sampled, shape) + tf.scatter_nd(others, tf.gather_nd(base, others), shape)


class ScheduledEmbeddingTrainingHelper(TrainingHelper):
    """Feeds the given inputs, or with `sampling_probability` the embedding of an id drawn from the outputs."""

    def __init__(
        self,
        inputs: Any,
        sequence_length: Any,
        embedding: Any,
        sampling_probability: Any,
        time_major: bool = False,
        seed: int | None = None,
        scheduling_seed: int | None = None,
        name: str | None = None,
    ) -> None:
        """Raises ValueError for a probability that is neither a scalar nor a vector."""
        with tf.name_scope(name, "ScheduledEmbeddingSamplingWrapper"):
            self._embedding_fn = embedding_function(embedding)
            self._sampling_probability = _probability(sampling_probability)
            self._seed = seed
            self._scheduling_seed = scheduling_seed
            super().__init__(inputs, sequence_length, time_major, name)

    def sample(self, time: Any, outputs: Any, state: Any = None, name: str | None = None, **unused: Any) -> Any:
        """Ids drawn from the outputs; -1 where the given input will be fed."""
        with tf.name_scope(name, "ScheduledEmbeddingTrainingHelperSample"):
            chosen = bernoulli_sample(
                self._sampling_probability, dtype=tf.bool, sample_shape=self.batch_size, seed=self._scheduling_seed
            )
            return tf.where(chosen, categorical_sample(outputs, seed=self._seed), tf.fill([self.batch_size], -1))

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any = None, name: str | None = None, **unused: Any
    ) -> Any:
        """(finished, next inputs, the state)."""
        with tf.name_scope(name, "ScheduledEmbeddingTrainingHelperNextInputs"):
            finished, base, state = super().next_inputs(time, outputs, state, sample_ids, name)
            sampling = sample_ids > -1

            def mixed() -> Any:
                ids = tf.gather_nd(sample_ids, _indices(sampling))
                return _interleaved(base, sampling, self._embedding_fn(ids))

            return finished, tf.cond(tf.reduce_all(finished), lambda: base, mixed), state


class ScheduledOutputTrainingHelper(TrainingHelper):
    """Feeds the given inputs, or with `sampling_probability` the outputs, with `auxiliary_inputs` beside either."""

    def __init__(
        self,
        inputs: Any,
        sequence_length: Any,
        sampling_probability: Any,
        time_major: bool = False,
        seed: int | None = None,
        next_inputs_fn: Any = None,
        auxiliary_inputs: Any = None,
        name: str | None = None,
    ) -> None:
        """Raises ValueError for a probability that is neither a scalar nor a vector."""
        with tf.name_scope(name, "ScheduledOutputTrainingHelper"):
            self._sampling_probability = _probability(sampling_probability)
            self._auxiliary = None
            if auxiliary_inputs is not None:
                inputs = tf.convert_to_tensor(inputs, name="inputs")
                beside = tf.convert_to_tensor(auxiliary_inputs, name="auxiliary_inputs")
                inputs = tf.concat((inputs, beside), -1)
                self._auxiliary = unstacked(beside if time_major else transpose_batch_time(beside))
            self._seed = seed
            self._next_inputs_fn = next_inputs_fn
            super().__init__(inputs, sequence_length, time_major, name)

    def sample(self, time: Any, outputs: Any, state: Any = None, name: str | None = None, **unused: Any) -> Any:
        """1 where the outputs will be fed, else 0."""
        with tf.name_scope(name, "ScheduledOutputTrainingHelperSample"):
            return bernoulli_sample(self._sampling_probability, sample_shape=self.batch_size, seed=self._seed)

    def _with_auxiliary(self, outputs: Any, time: Any, indices: Any = None) -> Any:
        if self._auxiliary is None:
            return outputs
        beside = self._auxiliary.read(time)
        return tf.concat((outputs, beside if indices is None else tf.gather_nd(beside, indices)), -1)

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any = None, name: str | None = None, **unused: Any
    ) -> Any:
        """(finished, next inputs, the state)."""
        with tf.name_scope(name, "ScheduledOutputTrainingHelperNextInputs"):
            finished, base, state = super().next_inputs(time, outputs, state, sample_ids, name)
            sampling = tf.cast(sample_ids, tf.bool)

            def mixed() -> Any:
                if self._next_inputs_fn is None:
                    return tf.where(sampling, self._with_auxiliary(outputs, time + 1), base)
                where = _indices(sampling)
                sampled = self._with_auxiliary(self._next_inputs_fn(tf.gather_nd(outputs, where)), time + 1, where)
                return _interleaved(base, sampling, sampled)

            none_sampled = tf.logical_not(tf.reduce_any(sampling))
            as_given = tf.logical_or(tf.reduce_all(finished), none_sampled)
            return finished, tf.cond(as_given, lambda: base, mixed), state
