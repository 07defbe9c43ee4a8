"""`tf.contrib.rnn.FusedRNNCell`: what runs over a whole sequence at once, and a cell made into one.

# T time steps, B batch, D input size; inputs (T, B, D) or a list of T tensors (B, D)
LSTMBlockFusedCell is in blocks.py. Follows TensorFlow 1.15's contrib/rnn/python/ops/fused_rnn_cell.py.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import tenfold as tf


class FusedRNNCell(ABC):
    """Base: `outputs, last_state = cell(inputs, …)`; outputs are a list if the inputs are one."""

    @abstractmethod
    def __call__(
        self,
        inputs: Any,
        initial_state: Any = None,
        dtype: Any = None,
        sequence_length: Any = None,
        scope: Any = None,
    ) -> Any:
        """`(outputs, last state)`."""


class FusedRNNCellAdaptor(FusedRNNCell):
    """A cell run over the sequence, unrolled or, with `use_dynamic_rnn`, in a loop."""

    def __init__(self, cell: Any, use_dynamic_rnn: bool = False) -> None:
        self._cell = cell
        self._use_dynamic_rnn = use_dynamic_rnn

    def __call__(
        self,
        inputs: Any,
        initial_state: Any = None,
        dtype: Any = None,
        sequence_length: Any = None,
        scope: Any = None,
    ) -> Any:
        """`(outputs, last state)`."""
        is_list = isinstance(inputs, list)
        common = {
            "initial_state": initial_state,
            "dtype": dtype,
            "sequence_length": sequence_length,
            "scope": scope,
        }
        if self._use_dynamic_rnn:
            whole = tf.stack(inputs) if is_list else inputs
            outputs, state = tf.nn.dynamic_rnn(self._cell, whole, time_major=True, **common)
            return tf.unstack(outputs) if is_list else outputs, state
        steps = inputs if is_list else tf.unstack(inputs)
        outputs, state = tf.nn.static_rnn(self._cell, steps, **common)
        return outputs if is_list else tf.stack(outputs), state


class TimeReversedFusedRNN(FusedRNNCell):
    """A fused cell run backwards in time."""

    def __init__(self, cell: Any) -> None:
        self._cell = cell

    def _reverse(self, value: Any, lengths: Any) -> Any:
        if isinstance(value, list):
            return value[::-1]
        return tf.reverse(value, [0]) if lengths is None else tf.reverse_sequence(value, lengths, 0, 1)

    def __call__(
        self,
        inputs: Any,
        initial_state: Any = None,
        dtype: Any = None,
        sequence_length: Any = None,
        scope: Any = None,
    ) -> Any:
        """`(outputs, last state)`; the last state is that after the first time step."""
        outputs, state = self._cell(
            self._reverse(inputs, sequence_length),
            initial_state=initial_state,
            dtype=dtype,
            sequence_length=sequence_length,
            scope=scope,
        )
        return self._reverse(outputs, sequence_length), state
