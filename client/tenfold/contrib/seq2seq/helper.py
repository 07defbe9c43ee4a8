"""Helpers of `tf.contrib.seq2seq.BasicDecoder`: they say what the next input is, and when a row has finished.

# B batch, T time steps, D input size, V vocabulary
Scheduled sampling is in scheduled_helper.py. Follows TensorFlow 1.15's contrib/seq2seq/python/ops/helper.py.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import tenfold as tf
from tenfold.graph.tensor import Tensor
from tenfold.ops.rnn import transpose_batch_time
from tenfold.ops.tensor_array import TensorArray
from tenfold_core.tensor_shape import TensorShape, as_shape

if TYPE_CHECKING:
    from collections.abc import Callable


def unstacked(inputs: Tensor) -> TensorArray:
    """A TensorArray of the time steps of (T, B, …)."""
    array = TensorArray(inputs.dtype, size=tf.shape(inputs)[0], element_shape=inputs.get_shape()[1:])
    return array.unstack(inputs)


def embedding_function(embedding: Any) -> Callable[[Any], Any]:
    """From ids to inputs: the given function, or the rows of the given table."""
    if callable(embedding):
        return embedding  # type: ignore[no-any-return]
    return lambda ids: tf.nn.embedding_lookup(embedding, ids)


def bernoulli_sample(
    probs: Any = None, logits: Any = None, dtype: Any = None, sample_shape: Any = (), seed: int | None = None
) -> Any:
    """Draws of 0 or 1 (int32, or `dtype`) for each of `probs`, or of `logits`: (*sample_shape, *probs.shape).

    `sample_shape` is a number, a vector or empty.
    """
    probs = tf.sigmoid(logits, name="probs") if probs is None else tf.convert_to_tensor(probs, name="probs")
    shape = tf.shape(probs)
    if not _is_empty(sample_shape):
        shape = tf.concat([tf.reshape(sample_shape, [-1]), shape], 0)
    drawn = tf.random_uniform(shape, seed=seed, dtype=probs.dtype)
    return tf.cast(tf.less(drawn, probs), tf.int32 if dtype is None else dtype)


def categorical_sample(logits: Any, dtype: Any = None, sample_shape: Any = (), seed: int | None = None) -> Any:
    """Ids (int32, or `dtype`) for each row of logits (…, V): (*sample_shape, …)."""
    logits = tf.convert_to_tensor(logits, name="logits")
    shape = tf.shape(logits)
    rows = logits if logits.shape.ndims == 2 else tf.reshape(logits, [-1, shape[-1]])
    one = _is_empty(sample_shape)
    count = 1 if one else tf.reduce_prod(sample_shape)
    draws = tf.multinomial(rows, count, seed=seed, output_dtype=tf.int64 if logits.dtype.size > 4 else tf.int32)
    found = shape[:-1]
    if not one:
        draws, found = tf.transpose(draws), tf.concat([tf.reshape(sample_shape, [-1]), found], 0)
    ids = tf.cast(tf.reshape(draws, found), tf.int32 if dtype is None else dtype)
    if one:
        ids.set_shape(logits.shape[:-1])
    return ids


def _is_empty(sample_shape: Any) -> bool:
    return isinstance(sample_shape, (tuple, list)) and not sample_shape


class Helper(ABC):
    """Base: `initialize` gives (finished, inputs), `sample` ids, `next_inputs` (finished, inputs, state)."""

    @property
    @abstractmethod
    def batch_size(self) -> Any:
        """The batch size, a scalar."""

    @property
    @abstractmethod
    def sample_ids_shape(self) -> Any:
        """The shape of a sample without the batch."""

    @property
    @abstractmethod
    def sample_ids_dtype(self) -> Any:
        """The type of samples."""

    @abstractmethod
    def initialize(self, name: str | None = None) -> Any:
        """(finished (B), first inputs)."""

    @abstractmethod
    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        """Samples from the outputs (B, V)."""

    @abstractmethod
    def next_inputs(self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None) -> Any:
        """(finished (B), next inputs, next state)."""


class _IdHelper(Helper):
    """A helper whose samples are ids of type int32."""

    _batch_size: Any

    @property
    def batch_size(self) -> Any:
        """The batch size, a scalar."""
        return self._batch_size

    @property
    def sample_ids_shape(self) -> TensorShape:
        """A scalar for each row."""
        return TensorShape([])

    @property
    def sample_ids_dtype(self) -> Any:
        """int32."""
        return tf.int32


class CustomHelper(Helper):
    """A helper of three functions."""

    def __init__(
        self,
        initialize_fn: Any,
        sample_fn: Any,
        next_inputs_fn: Any,
        sample_ids_shape: Any = None,
        sample_ids_dtype: Any = None,
    ) -> None:
        self._initialize_fn = initialize_fn
        self._sample_fn = sample_fn
        self._next_inputs_fn = next_inputs_fn
        self._batch_size: Any = None
        self._sample_ids_shape = as_shape([] if sample_ids_shape is None else sample_ids_shape)
        self._sample_ids_dtype = sample_ids_dtype or tf.int32

    @property
    def batch_size(self) -> Any:
        """The size of `finished`. Raises ValueError before `initialize`."""
        if self._batch_size is None:
            raise ValueError("batch_size accessed before initialize was called")
        return self._batch_size

    @property
    def sample_ids_shape(self) -> TensorShape:
        """As given."""
        return self._sample_ids_shape

    @property
    def sample_ids_dtype(self) -> Any:
        """As given."""
        return self._sample_ids_dtype

    def initialize(self, name: str | None = None) -> Any:
        """(finished, first inputs)."""
        with tf.name_scope(name, f"{type(self).__name__}Initialize"):
            finished, next_inputs = self._initialize_fn()
            if self._batch_size is None:
                self._batch_size = tf.size(finished)
        return finished, next_inputs

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        """What the function gives."""
        with tf.name_scope(name, f"{type(self).__name__}Sample"):
            return self._sample_fn(time=time, outputs=outputs, state=state)

    def next_inputs(self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None) -> Any:
        """What the function gives."""
        with tf.name_scope(name, f"{type(self).__name__}NextInputs"):
            return self._next_inputs_fn(time=time, outputs=outputs, state=state, sample_ids=sample_ids)


class TrainingHelper(_IdHelper):
    """Feeds the given inputs (B, T, D), or (T, B, D) if `time_major`, up to `sequence_length` (B)."""

    def __init__(self, inputs: Any, sequence_length: Any, time_major: bool = False, name: str | None = None) -> None:
        """Raises ValueError for lengths that are not a vector."""
        with tf.name_scope(name, "TrainingHelper"):
            inputs = tf.nest.map_structure(lambda each: tf.convert_to_tensor(each, name="inputs"), inputs)
            self._inputs = inputs
            if not time_major:
                inputs = tf.nest.map_structure(transpose_batch_time, inputs)
            self._arrays = tf.nest.map_structure(unstacked, inputs)
            self._sequence_length = tf.convert_to_tensor(sequence_length, name="sequence_length")
            if self._sequence_length.get_shape().ndims != 1:
                raise ValueError(
                    f"Expected sequence_length to be a vector, but received shape: {self._sequence_length.get_shape()}"
                )
            self._zero_inputs = tf.nest.map_structure(lambda each: tf.zeros_like(each[0, :]), inputs)
            self._batch_size = tf.size(sequence_length)

    @property
    def inputs(self) -> Any:
        """As given."""
        return self._inputs

    @property
    def sequence_length(self) -> Any:
        """As given."""
        return self._sequence_length

    def _read(self, time: Any, finished: Any) -> Any:
        """The inputs at `time`; zeros once all rows have finished, when there may be none."""
        return tf.cond(
            tf.reduce_all(finished),
            lambda: self._zero_inputs,
            lambda: tf.nest.map_structure(lambda array: array.read(time), self._arrays),
        )

    def initialize(self, name: str | None = None) -> Any:
        """(finished, first inputs)."""
        with tf.name_scope(name, "TrainingHelperInitialize"):
            finished = tf.equal(0, self._sequence_length)
            return finished, self._read(0, finished)

    def sample(self, time: Any, outputs: Any, state: Any = None, name: str | None = None, **unused: Any) -> Any:
        """The likeliest ids."""
        with tf.name_scope(name, "TrainingHelperSample"):
            return tf.cast(tf.argmax(outputs, axis=-1), tf.int32)

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any = None, name: str | None = None, **unused: Any
    ) -> Any:
        """(finished, the inputs of the next time step, the state)."""
        with tf.name_scope(name, "TrainingHelperNextInputs"):
            following = time + 1
            finished = following >= self._sequence_length
            return finished, self._read(following, finished), state


class _StartHelper(_IdHelper):
    """A helper that starts with inputs and no row finished."""

    _start_inputs: Any

    def initialize(self, name: str | None = None) -> Any:
        """(finished, first inputs)."""
        return tf.tile([False], [self._batch_size]), self._start_inputs


def check_outputs(outputs: Any) -> None:
    """Raises TypeError unless the outputs are one tensor."""
    if not isinstance(outputs, Tensor):
        raise TypeError(f"Expected outputs to be a single Tensor, got: {type(outputs)}")


class GreedyEmbeddingHelper(_StartHelper):
    """Feeds the embedding of the likeliest id, until it is `end_token`."""

    def __init__(self, embedding: Any, start_tokens: Any, end_token: Any) -> None:
        """Raises ValueError unless `start_tokens` is a vector and `end_token` a scalar."""
        self._embedding_fn = embedding_function(embedding)
        self._start_tokens = tf.convert_to_tensor(start_tokens, dtype=tf.int32, name="start_tokens")
        self._end_token = tf.convert_to_tensor(end_token, dtype=tf.int32, name="end_token")
        if self._start_tokens.get_shape().ndims != 1:
            raise ValueError("start_tokens must be a vector")
        self._batch_size = tf.size(start_tokens)
        if self._end_token.get_shape().ndims != 0:
            raise ValueError("end_token must be a scalar")
        self._start_inputs = self._embedding_fn(self._start_tokens)

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        """The likeliest ids. Raises TypeError unless the outputs are one tensor."""
        check_outputs(outputs)
        return tf.argmax(outputs, axis=-1, output_type=tf.int32)

    def next_inputs(self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None) -> Any:
        """(finished, embeddings of the samples, the state)."""
        finished = tf.equal(sample_ids, self._end_token)
        next_inputs = tf.cond(
            tf.reduce_all(finished), lambda: self._start_inputs, lambda: self._embedding_fn(sample_ids)
        )
        return finished, next_inputs, state


class SampleEmbeddingHelper(GreedyEmbeddingHelper):
    """Feeds the embedding of an id drawn from softmax(outputs / softmax_temperature)."""

    def __init__(
        self,
        embedding: Any,
        start_tokens: Any,
        end_token: Any,
        softmax_temperature: Any = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(embedding, start_tokens, end_token)
        self._softmax_temperature = softmax_temperature
        self._seed = seed

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        """Ids drawn from the outputs. Raises TypeError unless they are one tensor."""
        check_outputs(outputs)
        warm = outputs if self._softmax_temperature is None else outputs / self._softmax_temperature
        return categorical_sample(warm, seed=self._seed)


class InferenceHelper(_StartHelper):
    """Feeds what functions make of its own samples."""

    def __init__(
        self,
        sample_fn: Any,
        sample_shape: Any,
        sample_dtype: Any,
        start_inputs: Any,
        end_fn: Any,
        next_inputs_fn: Any = None,
    ) -> None:
        self._sample_fn = sample_fn
        self._end_fn = end_fn
        self._sample_shape = as_shape(sample_shape)
        self._sample_dtype = sample_dtype
        self._next_inputs_fn = next_inputs_fn
        self._batch_size = tf.shape(start_inputs)[0]
        self._start_inputs = tf.convert_to_tensor(start_inputs, name="start_inputs")

    @property
    def sample_ids_shape(self) -> TensorShape:
        """As given."""
        return self._sample_shape

    @property
    def sample_ids_dtype(self) -> Any:
        """As given."""
        return self._sample_dtype

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        """What the function gives."""
        return self._sample_fn(outputs)

    def next_inputs(self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None) -> Any:
        """(finished, next inputs, the state)."""
        next_inputs = sample_ids if self._next_inputs_fn is None else self._next_inputs_fn(sample_ids)
        return self._end_fn(sample_ids), next_inputs, state
