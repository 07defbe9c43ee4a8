"""`tf.contrib.seq2seq.Decoder` and `dynamic_decode`, which runs one in a loop.

# B batch, T time steps
basic_decoder.py and beam_search_decoder.py have decoders. The loop is one `tf.while_loop` over TensorArrays, so it is
compiled like any other. Follows TensorFlow 1.15's contrib/seq2seq/python/ops/decoder.py.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress
from typing import Any

import tenfold as tf
from tenfold.ops.functional import device_of
from tenfold.ops.rnn import transpose_batch_time
from tenfold.ops.rnn_cell_layer import zero_tensors
from tenfold.ops.tensor_array import TensorArray
from tenfold_core.tensor_shape import TensorShape


class Decoder(ABC):
    """A step of decoding, and how it starts. `initialize` gives (finished, first inputs, first state).

    `step(time, inputs, state)` gives (outputs, next state, next inputs, finished).
    """

    @property
    def batch_size(self) -> Any:
        """The batch size of the inputs, a number or a scalar."""
        raise NotImplementedError

    @property
    def output_size(self) -> Any:
        """The sizes of the outputs, a structure of shapes without the batch."""
        raise NotImplementedError

    @property
    def output_dtype(self) -> Any:
        """The types of the outputs."""
        raise NotImplementedError

    @abstractmethod
    def initialize(self, name: str | None = None) -> Any:
        """(finished (B), first inputs, first state)."""

    @abstractmethod
    def step(self, time: Any, inputs: Any, state: Any, name: str | None = None) -> Any:
        """(outputs, next state, next inputs, finished (B))."""

    def finalize(self, outputs: Any, final_state: Any, sequence_lengths: Any) -> Any:
        """(outputs, state) from all outputs and the last state; optional."""
        raise NotImplementedError

    @property
    def tracks_own_finished(self) -> bool:
        """Whether `step` may say that a row is not finished any more, as beam search does when it sorts its rows."""
        return False


def rnn_output_size(cell: Any, output_layer: Any) -> Any:
    """The size of the cell's output after the layer: shapes without the batch."""
    if output_layer is None:
        return cell.output_size

    def after(size: Any) -> Any:
        rows = TensorShape([None]).concatenate(size)
        return output_layer.compute_output_shape(rows)[1:]

    return tf.nest.map_structure(after, cell.output_size)


def _element_shape(batch_size: Any, size: Any) -> TensorShape | None:
    if not isinstance(size, TensorShape) or size.ndims == 0:
        return None
    known = tf.get_static_value(tf.convert_to_tensor(batch_size, name="batch_size"))
    return TensorShape([None if known is None else int(known)]).concatenate(size)


def dynamic_decode(
    decoder: Any,
    output_time_major: bool = False,
    impute_finished: bool = False,
    maximum_iterations: Any = None,
    parallel_iterations: int = 32,
    swap_memory: bool = False,
    scope: Any = None,
    **kwargs: Any,
) -> tuple[Any, Any, Any]:
    """`(outputs, last state, lengths (B))` of a decoder that runs until all rows are finished.

    Outputs are (B, T, …), or (T, B, …) if `output_time_major`. `impute_finished` gives zeros and keeps the state of
    rows that have finished, which costs time but makes the last state that of each row's last step. Raises TypeError
    for what is not a Decoder, ValueError for `maximum_iterations` that are not a scalar.
    """
    if not isinstance(decoder, Decoder):
        raise TypeError(f"Expected decoder to be type Decoder, but saw: {type(decoder)}")
    if kwargs:
        raise TypeError(f"dynamic_decode() takes no arguments {sorted(kwargs)}; they are those of Keras' decoders")
    with tf.variable_scope(scope, "decoder") as varscope:
        context = tf.get_default_graph()._get_control_flow_context()
        # Inside another loop the variables cannot be cached outside of it.
        if (context is None or context.while_context() is None) and varscope.caching_device is None:
            varscope.set_caching_device(device_of)
        if maximum_iterations is not None:
            maximum_iterations = tf.convert_to_tensor(maximum_iterations, tf.int32, name="maximum_iterations")
            if maximum_iterations.get_shape().ndims != 0:
                raise ValueError("maximum_iterations must be a scalar")
        first_finished, first_inputs, first_state = decoder.initialize()
        sizes, types, rows = decoder.output_size, decoder.output_dtype, decoder.batch_size
        zero_outputs = tf.nest.map_structure(lambda size, kind: zero_tensors(size, rows, kind), sizes, types)
        if maximum_iterations is not None:
            first_finished = tf.logical_or(first_finished, maximum_iterations <= 0)
        arrays = tf.nest.map_structure(
            lambda size, kind: TensorArray(
                dtype=kind, size=0, dynamic_size=True, element_shape=_element_shape(rows, size)
            ),
            sizes,
            types,
        )

        def body(time: Any, arrays: Any, state: Any, inputs: Any, finished: Any, lengths: Any) -> Any:
            outputs, new_state, next_inputs, now_finished = decoder.step(time, inputs, state)
            if not decoder.tracks_own_finished:
                now_finished = tf.logical_or(now_finished, finished)
            lengths = tf.where(tf.logical_not(finished), tf.fill(tf.shape(lengths), time + 1), lengths)
            tf.nest.assert_same_structure(state, new_state)
            tf.nest.assert_same_structure(arrays, outputs)
            tf.nest.assert_same_structure(inputs, next_inputs)

            def kept(new: Any, old: Any) -> Any:
                if isinstance(old, TensorArray):
                    return new
                new.set_shape(old.shape)
                return new if new.shape.ndims == 0 else tf.where(finished, old, new)

            if impute_finished:
                outputs = tf.nest.map_structure(lambda out, zero: tf.where(finished, zero, out), outputs, zero_outputs)
                new_state = tf.nest.map_structure(kept, new_state, state)
            arrays = tf.nest.map_structure(lambda array, out: array.write(time, out), arrays, outputs)
            return time + 1, arrays, new_state, next_inputs, now_finished, lengths

        result: Any = tf.while_loop(
            lambda time, arrays, state, inputs, finished, lengths: tf.logical_not(tf.reduce_all(finished)),
            body,
            (
                tf.constant(0, dtype=tf.int32),
                arrays,
                first_state,
                first_inputs,
                first_finished,
                tf.zeros_like(first_finished, dtype=tf.int32),
            ),
            parallel_iterations=parallel_iterations,
            maximum_iterations=maximum_iterations,
            swap_memory=swap_memory,
        )
        final_state, final_lengths = result[2], result[5]
        final_outputs = tf.nest.map_structure(lambda array: array.stack(), result[1])
        # A decoder need not have anything to finalize.
        with suppress(NotImplementedError):
            final_outputs, final_state = decoder.finalize(final_outputs, final_state, final_lengths)
        if not output_time_major:
            final_outputs = tf.nest.map_structure(transpose_batch_time, final_outputs)
    return final_outputs, final_state, final_lengths
