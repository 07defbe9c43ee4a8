"""`tf.contrib.seq2seq.BeamSearchDecoder`: keeps the K likeliest sequences of each row.

# B batch, K beams, V vocabulary, T time steps
Inside the decoder tensors are (B, K, …), for the cell (B * K, …). A step is in beam_search_step.py; decoder.py runs
the loop. Follows TensorFlow 1.15's contrib/seq2seq/python/ops/beam_search_decoder.py.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np

import tenfold as tf
from tenfold.contrib.seq2seq.beam_search_step import (
    BeamSearchDecoderOutput,
    BeamSearchDecoderState,
    attention_probs_of,
    check_rank,
    search_step,
)
from tenfold.contrib.seq2seq.beam_tree import gather_tree, gather_tree_from_array
from tenfold.contrib.seq2seq.decoder import Decoder, rnn_output_size
from tenfold.contrib.seq2seq.helper import embedding_function
from tenfold.graph.tensor import Tensor
from tenfold.layers.base import Layer
from tenfold.ops.rnn_cell_layer import assert_like_rnncell
from tenfold.ops.tensor_array import TensorArray
from tenfold_core.tensor_shape import TensorShape, as_shape

__all__ = [
    "BeamSearchDecoder",
    "BeamSearchDecoderOutput",
    "BeamSearchDecoderState",
    "FinalBeamSearchDecoderOutput",
]

_REORDER = "Consider setting reorder_tensor_arrays to False to disable TensorArray reordering during the beam search."


class FinalBeamSearchDecoderOutput(
    namedtuple("FinalBeamDecoderOutput", ("predicted_ids", "beam_search_decoder_output"))
):
    """The ids of the beams, (B, T, K), best first, and what the steps gave."""

    __slots__ = ()


def _as_size(size: Any) -> TensorShape:
    """A size, a shape, or a tensor of one, as a shape."""
    if isinstance(size, Tensor):
        known = tf.get_static_value(size)
        return TensorShape(None) if known is None else as_shape(np.atleast_1d(known).tolist())
    return TensorShape([size]) if isinstance(size, int) else as_shape(size)


class BeamSearchDecoder(Decoder):
    """Beam search over a cell with a vocabulary of outputs.

    `embedding` is a table or a function from ids; `initial_state` is for B * K rows (`tile_batch`). Scores are
    log probabilities divided by ((5 + length) / 6) ** length_penalty_weight, plus coverage_penalty_weight times the
    coverage by attention. TensorArrays in the cell's state are sorted with the beams if `reorder_tensor_arrays`.
    """

    def __init__(
        self,
        cell: Any,
        embedding: Any,
        start_tokens: Any,
        end_token: Any,
        initial_state: Any,
        beam_width: int,
        output_layer: Any = None,
        length_penalty_weight: Any = 0.0,
        coverage_penalty_weight: Any = 0.0,
        reorder_tensor_arrays: bool = True,
    ) -> None:
        """Raises TypeError for anything but a cell or a layer, ValueError for tokens or states of other shapes."""
        assert_like_rnncell("cell", cell)
        if output_layer is not None and not isinstance(output_layer, Layer):
            raise TypeError(f"output_layer must be a Layer, received: {type(output_layer)}")
        self._cell = cell
        self._output_layer = output_layer
        self._beam_width = beam_width
        self._length_penalty_weight = length_penalty_weight
        self._coverage_penalty_weight = coverage_penalty_weight
        self._reorder_tensor_arrays = reorder_tensor_arrays
        self._embedding_fn = embedding_function(embedding)
        start = tf.convert_to_tensor(start_tokens, dtype=tf.int32, name="start_tokens")
        if start.get_shape().ndims != 1:
            raise ValueError("start_tokens must be a vector")
        self._end_token = tf.convert_to_tensor(end_token, dtype=tf.int32, name="end_token")
        if self._end_token.get_shape().ndims != 0:
            raise ValueError("end_token must be a scalar")
        self._batch_size = tf.size(start_tokens)
        self._initial_cell_state = tf.nest.map_structure(self._maybe_split, initial_state, cell.state_size)
        self._start_tokens = tf.tile(tf.expand_dims(start, 1), [1, beam_width])
        self._start_inputs = self._embedding_fn(self._start_tokens)
        self._finished = self._first_beam(False, True, tf.bool)

    def _first_beam(self, on: Any, off: Any, dtype: Any) -> Any:
        """(B, K): `on` for the first beam of each row, `off` for the others, which start as its copies."""
        first = tf.zeros([self._batch_size], dtype=tf.int32)
        return tf.one_hot(first, depth=self._beam_width, on_value=on, off_value=off, dtype=dtype)

    @property
    def _known_rows(self) -> int | None:
        known = tf.get_static_value(self._batch_size)
        return None if known is None else int(known)

    @property
    def batch_size(self) -> Any:
        """B, a scalar."""
        return self._batch_size

    @property
    def tracks_own_finished(self) -> bool:
        """Beams are sorted in each step, and what has finished with them."""
        return True

    @property
    def output_size(self) -> BeamSearchDecoderOutput:
        """(K) for each output."""
        return BeamSearchDecoderOutput(*[TensorShape([self._beam_width])] * 3)

    @property
    def output_dtype(self) -> BeamSearchDecoderOutput:
        """The state's type for scores, int32 for ids."""
        kind = tf.nest.flatten(self._initial_cell_state)[0].dtype
        scores = tf.nest.map_structure(lambda _: kind, rnn_output_size(self._cell, self._output_layer))
        return BeamSearchDecoderOutput(scores, tf.int32, tf.int32)

    def initialize(self, name: str | None = None) -> Any:
        """(finished, first inputs, first state)."""
        kind = tf.nest.flatten(self._initial_cell_state)[0].dtype
        log_probs = self._first_beam(tf.constant(0.0, dtype=kind), tf.constant(-np.inf, dtype=kind), kind)
        covered = attention_probs_of(self._initial_cell_state, self._coverage_penalty_weight)
        state = BeamSearchDecoderState(
            cell_state=self._initial_cell_state,
            log_probs=log_probs,
            finished=self._finished,
            lengths=tf.zeros([self._batch_size, self._beam_width], dtype=tf.int64),
            accumulated_attention_probs=() if covered is None else covered,
        )
        return self._finished, self._start_inputs, state

    def finalize(self, outputs: Any, final_state: Any, sequence_lengths: Any) -> Any:
        """(FinalBeamSearchDecoderOutput, last state): beams followed back to their starts."""
        longest = tf.cast(tf.reduce_max(final_state.lengths, axis=1), tf.int32)
        ids = gather_tree(outputs.predicted_ids, outputs.parent_ids, longest, self._end_token)
        if self._reorder_tensor_arrays:
            cell_state = tf.nest.map_structure(
                lambda part: self._maybe_sorted(part, outputs.parent_ids, final_state.lengths), final_state.cell_state
            )
            final_state = final_state._replace(cell_state=cell_state)
        return FinalBeamSearchDecoderOutput(ids, outputs), final_state

    def step(self, time: Any, inputs: Any, state: Any, name: str | None = None) -> Any:
        """(outputs, next state, next inputs, finished)."""
        with tf.name_scope(name, "BeamSearchDecoderStep"):
            sizes = self._cell.state_size
            flat = tf.nest.map_structure(lambda each: self._merged(each, each.shape[2:]), inputs)
            cell_state = tf.nest.map_structure(self._maybe_merge, state.cell_state, sizes)
            outputs, cell_state = self._cell(flat, cell_state)
            outputs = tf.nest.map_structure(lambda each: self._split(each, each.shape[1:]), outputs)
            cell_state = tf.nest.map_structure(self._maybe_split, cell_state, sizes)
            if self._output_layer is not None:
                outputs = self._output_layer(outputs)
            found, next_state = search_step(
                outputs,
                cell_state,
                state,
                self._batch_size,
                self._beam_width,
                self._end_token,
                self._length_penalty_weight,
                self._coverage_penalty_weight,
            )
            next_inputs = tf.cond(
                tf.reduce_all(next_state.finished),
                lambda: self._start_inputs,
                lambda: self._embedding_fn(found.predicted_ids),
            )
        return found, next_state, next_inputs, next_state.finished

    # --- between (B, K, …) and (B * K, …) ---

    def _merged(self, value: Any, size: Any) -> Any:
        rows, known = self._batch_size * self._beam_width, self._known_rows
        merged = tf.reshape(value, tf.concat(([rows], tf.shape(value)[2:]), 0))
        merged.set_shape(TensorShape([None if known is None else known * self._beam_width]).concatenate(_as_size(size)))
        return merged

    def _split(self, value: Any, size: Any) -> Any:
        split = tf.reshape(value, tf.concat(([self._batch_size, self._beam_width], tf.shape(value)[1:]), 0))
        expected = TensorShape([self._known_rows, self._beam_width]).concatenate(_as_size(size))
        if not split.shape.is_compatible_with(expected):
            raise ValueError(
                "Unexpected behavior when reshaping between beam width and batch size.  The reshaped tensor has shape: "
                f"{split.shape}.  We expected it to have shape (batch_size, beam_width, depth) == {expected}.  "
                "Perhaps you forgot to create a zero_state with batch_size=encoder_batch_size * beam_width?"
            )
        split.set_shape(expected)
        return split

    def _maybe_split(self, value: Any, size: Any) -> Any:
        if isinstance(value, TensorArray):
            return value
        check_rank(value)
        return self._split(value, size) if value.shape.ndims >= 1 else value

    def _maybe_merge(self, value: Any, size: Any) -> Any:
        if isinstance(value, TensorArray):
            return value
        check_rank(value)
        return self._merged(value, size) if value.shape.ndims >= 2 else value

    def _maybe_sorted(self, value: Any, parent_ids: Any, lengths: Any) -> Any:
        """A TensorArray stacked with its beams sorted; anything else, or one without beams, unchanged."""
        if not isinstance(value, TensorArray):
            return value
        shape, width, rows = value.element_shape, self._beam_width, self._known_rows
        if not shape.ndims:
            tf.logging.warn(
                "The TensorArray %s in the cell state is not amenable to sorting based on the beam search result. For "
                "a TensorArray to be sorted, its elements shape must be defined and have at least a rank of 1, but saw "
                "shape: %s",
                value.handle.name,
                shape,
            )
            return value
        if not _may_hold_beams(shape, rows, width):
            tf.logging.warn(
                "TensorArray reordering expects elements to be reshapable to %s which is incompatible with the current "
                "shape %s. " + _REORDER,
                TensorShape([rows, width, None]),
                shape,
            )
            return value
        stacked = value.stack()
        with tf.control_dependencies([check_beams(stacked, self._batch_size, width)]):
            return gather_tree_from_array(stacked, parent_ids, lengths)


def check_beams(stacked: Any, batch_size: Any, width: int) -> Any:
    """The operation that fails, with InvalidArgumentError, unless elements of (T, …) are (B * K, …) or (B, K, …)."""
    shape = tf.shape(stacked)
    fits = tf.equal(shape[1], batch_size * width)
    if stacked.shape.ndims != 2:
        apart = tf.logical_and(tf.equal(shape[1], batch_size), tf.equal(shape[2], width))
        fits = tf.logical_or(fits, apart)
    message = (
        "TensorArray reordering expects elements to be reshapable to [batch_size, beam_size, -1] which is "
        f"incompatible with the dynamic shape of {stacked.name} elements. " + _REORDER
    )
    return tf.Assert(fits, [message])


def _may_hold_beams(shape: TensorShape, rows: int | None, width: int) -> bool:
    """Whether elements of that shape may be (B * K, …) or (B, K, …)."""
    first = shape[0].value
    if rows is None or first is None or first == rows * width:
        return True
    second = shape[1].value if shape.ndims is not None and shape.ndims >= 2 else None
    return second is not None and first == rows and second == width
