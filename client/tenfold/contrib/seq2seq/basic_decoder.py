"""`tf.contrib.seq2seq.BasicDecoder`: a cell, a helper that chooses its inputs, and an optional output layer.

# B batch
decoder.py runs it; helper.py has the helpers. Follows TensorFlow 1.15's contrib/seq2seq/python/ops/basic_decoder.py.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import tenfold as tf
from tenfold.contrib.seq2seq.decoder import Decoder, rnn_output_size
from tenfold.contrib.seq2seq.helper import Helper
from tenfold.layers.base import Layer
from tenfold.ops.rnn_cell_layer import assert_like_rnncell


class BasicDecoderOutput(namedtuple("BasicDecoderOutput", ("rnn_output", "sample_id"))):
    """What a step emits: the output of the cell (after the layer) and what the helper sampled from it."""

    __slots__ = ()


class BasicDecoder(Decoder):
    """Samples from the outputs of a cell as a helper says."""

    def __init__(self, cell: Any, helper: Any, initial_state: Any, output_layer: Any = None) -> None:
        """Raises TypeError for something that is not a cell, helper or layer."""
        assert_like_rnncell("cell", cell)
        if not isinstance(helper, Helper):
            raise TypeError(f"helper must be a Helper, received: {type(helper)}")
        if output_layer is not None and not isinstance(output_layer, Layer):
            raise TypeError(f"output_layer must be a Layer, received: {type(output_layer)}")
        self._cell = cell
        self._helper = helper
        self._initial_state = initial_state
        self._output_layer = output_layer

    @property
    def batch_size(self) -> Any:
        """The helper's."""
        return self._helper.batch_size

    @property
    def output_size(self) -> BasicDecoderOutput:
        """The sizes of both outputs."""
        return BasicDecoderOutput(rnn_output_size(self._cell, self._output_layer), self._helper.sample_ids_shape)

    @property
    def output_dtype(self) -> BasicDecoderOutput:
        """The state's type for the output, the helper's for samples."""
        kind = tf.nest.flatten(self._initial_state)[0].dtype
        outputs = tf.nest.map_structure(lambda _: kind, rnn_output_size(self._cell, self._output_layer))
        return BasicDecoderOutput(outputs, self._helper.sample_ids_dtype)

    def initialize(self, name: str | None = None) -> Any:
        """(finished, first inputs, initial state)."""
        return (*self._helper.initialize(), self._initial_state)

    def step(self, time: Any, inputs: Any, state: Any, name: str | None = None) -> Any:
        """(outputs, next state, next inputs, finished)."""
        with tf.name_scope(name, "BasicDecoderStep"):
            outputs, state = self._cell(inputs, state)
            if self._output_layer is not None:
                outputs = self._output_layer(outputs)
            sample_ids = self._helper.sample(time=time, outputs=outputs, state=state)
            finished, next_inputs, next_state = self._helper.next_inputs(
                time=time, outputs=outputs, state=state, sample_ids=sample_ids
            )
        return BasicDecoderOutput(outputs, sample_ids), next_state, next_inputs, finished
