"""LSTM and GRU cells of one block: `LSTMBlockCell`, `LSTMBlockFusedCell`, `GRUBlockCell`.

# T time steps, B batch, D input size, H units
Each is one op, with a gradient that is one too (kernels/cpu/nn_cells.py). Names of ops and variables are TensorFlow
1.15's, so that graphs and checkpoints go both ways. Follows its contrib/rnn/python/ops/lstm_ops.py and gru_ops.py.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import tenfold as tf
from tenfold.contrib.rnn.cell_parts import SizedLayerCell, lstm_sizes
from tenfold.layers.base import Layer
from tenfold.layers.input_spec import InputSpec
from tenfold.ops.rnn_cell_layer import LSTMStateTuple


def _bias(start: float) -> Any:
    return tf.constant_initializer(start)


class _Block:
    """The variables of an LSTM block: kernel (D + H, 4 H), bias (4 H), and of its peepholes."""

    add_weight: Any
    _num_units: int
    _forget_bias: float
    _cell_clip: float
    _use_peephole: bool

    def _make_weights(self, depth: int | None) -> None:
        if not depth:
            raise ValueError("Expecting the size of the inputs to be set")
        units = self._num_units
        self._kernel = self.add_weight("kernel", [depth + units, units * 4])
        self._bias = self.add_weight("bias", [units * 4], initializer=_bias(0.0))
        if self._use_peephole:
            self._w_i_diag = self.add_weight("w_i_diag", [units])
            self._w_f_diag = self.add_weight("w_f_diag", [units])
            self._w_o_diag = self.add_weight("w_o_diag", [units])

    def _weights(self, dtype: Any) -> dict[str, Any]:
        """What the ops take of the cell. Peepholes that it has not are zeros of `dtype`, which no kernel reads."""
        if self._use_peephole:
            wci, wcf, wco = self._w_i_diag, self._w_f_diag, self._w_o_diag
        else:
            wci = wcf = wco = tf.zeros([self._num_units], dtype=dtype)
        return {
            "w": self._kernel,
            "wci": wci,
            "wcf": wcf,
            "wco": wco,
            "b": self._bias,
            "forget_bias": self._forget_bias,
            "cell_clip": self._cell_clip,
            "use_peephole": self._use_peephole,
        }


class LSTMBlockCell(_Block, SizedLayerCell):
    """A basic LSTM, with optional peepholes and clipping; its variables are LSTMCell's."""

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        cell_clip: float | None = None,
        use_peephole: bool = False,
        dtype: Any = None,
        reuse: bool | None = None,
        name: str = "lstm_cell",
    ) -> None:
        super().__init__(_reuse=reuse, dtype=dtype, name=name)
        self._num_units = num_units
        self._forget_bias = forget_bias
        self._use_peephole = use_peephole
        self._cell_clip = -1.0 if cell_clip is None else cell_clip
        self.input_spec = InputSpec(ndim=2)
        self._state_size, self._output_size = lstm_sizes(num_units)

    def build(self, input_shape: Any) -> None:
        """Makes the variables. Raises ValueError if the input size is not known."""
        self._make_weights(input_shape[1].value)

    def call(self, inputs: Any, state: Any) -> Any:
        """One step. Raises ValueError unless the state is a pair."""
        if len(state) != 2:
            raise ValueError("Expecting state to be a tuple with length 2.")
        weights = self._weights(self.dtype)
        made = tf.raw_ops.LSTMBlockCell(x=inputs, cs_prev=state[0], h_prev=state[1], **weights)
        return made.h, LSTMStateTuple(made.cs, made.h)


class LSTMBlockWrapper(Layer):
    """Base of LSTMs that run over a sequence (T, B, D), or a list of T tensors (B, D)."""

    @property
    @abstractmethod
    def num_units(self) -> int:
        """The number of units."""

    @abstractmethod
    def _call_cell(
        self, inputs: Any, initial_cell_state: Any, initial_output: Any, dtype: Any, sequence_length: Any
    ) -> tuple[Any, Any]:
        """(cell states, outputs), (T, B, H) each."""

    def call(
        self, inputs: Any, initial_state: Any = None, dtype: Any = None, sequence_length: Any = None
    ) -> tuple[Any, Any]:
        """`(outputs, last state)`. Beyond `sequence_length` (B) outputs are zero; the state is the last one before.

        Raises ValueError without an initial state and dtype, and for an unknown input size.
        """
        is_list = isinstance(inputs, list)
        if is_list:
            inputs = tf.stack(inputs)
        shape = inputs.get_shape().with_rank(3)
        if not shape[2].value:
            raise ValueError(f"Expecting inputs_shape[2] to be set: {shape}")
        steps = shape[0].value or tf.shape(inputs)[0]
        rows = shape[1].value or tf.shape(inputs)[1]
        if initial_state is None:
            if dtype is None:
                raise ValueError("Either initial_state or dtype needs to be specified")
            zero = tf.zeros(tf.stack([rows, self.num_units]), dtype=dtype)
            initial_state = (zero, zero)
        elif len(initial_state) != 2:
            raise ValueError("Expecting initial_state to be a tuple with length 2 or None")
        first_cell, first_output = initial_state
        dtype = first_cell.dtype if dtype is None else dtype
        if sequence_length is not None:
            sequence_length = tf.convert_to_tensor(sequence_length)
        cells, outputs = self._call_cell(inputs, first_cell, first_output, dtype, sequence_length)
        if sequence_length is None:
            last = LSTMStateTuple(cells[-1], outputs[-1])
        else:
            mask = tf.transpose(tf.sequence_mask(sequence_length, steps, dtype=dtype), [1, 0])
            outputs = outputs * tf.expand_dims(mask, -1)
            # Entry t is the state after t steps.
            where = tf.stack([sequence_length, tf.cast(tf.range(rows), sequence_length.dtype)], axis=1)
            last = LSTMStateTuple(
                *(
                    tf.gather_nd(tf.concat([tf.expand_dims(first, 0), later], 0), where)
                    for first, later in ((first_cell, cells), (first_output, outputs))
                )
            )
        return tf.unstack(outputs) if is_list else outputs, last


class LSTMBlockFusedCell(_Block, LSTMBlockWrapper):
    """A basic LSTM over a sequence at once, with optional peepholes and clipping."""

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        cell_clip: float | None = None,
        use_peephole: bool = False,
        reuse: bool | None = None,
        dtype: Any = None,
        name: str = "lstm_fused_cell",
    ) -> None:
        super().__init__(_reuse=reuse, name=name, dtype=dtype)
        self._num_units = num_units
        self._forget_bias = forget_bias
        self._cell_clip = -1.0 if cell_clip is None else cell_clip
        self._use_peephole = use_peephole
        self.input_spec = InputSpec(ndim=3)

    @property
    def num_units(self) -> int:
        """The number of units."""
        return self._num_units

    def build(self, input_shape: Any) -> None:
        """Makes the variables. Raises ValueError if the input size is not known."""
        shape = input_shape if hasattr(input_shape, "ndims") else tf.TensorShape([None]).concatenate(input_shape[0])
        self._make_weights(shape[2].value)

    def _call_cell(
        self, inputs: Any, initial_cell_state: Any, initial_output: Any, dtype: Any, sequence_length: Any
    ) -> tuple[Any, Any]:
        """(cell states, outputs), (T, B, H) each."""
        steps = inputs.get_shape()[0].value or tf.shape(inputs)[0]
        weights = self._weights(dtype)
        made = tf.raw_ops.BlockLSTM(
            seq_len_max=tf.cast(steps if sequence_length is None else tf.reduce_max(sequence_length), tf.int64),
            x=inputs,
            cs_prev=initial_cell_state,
            h_prev=initial_output,
            **weights,
        )
        return made.cs, made.h


class GRUBlockCell(SizedLayerCell):
    """A gated recurrent unit with variables w_ru, b_ru, w_c, b_c."""

    _names: tuple[str, str, str, str] = ("w_ru", "b_ru", "w_c", "b_c")

    def __init__(
        self,
        num_units: int | None = None,
        cell_size: int | None = None,
        reuse: bool | None = None,
        name: str = "gru_cell",
    ) -> None:
        super().__init__(_reuse=reuse, name=name)
        if (cell_size is None) == (num_units is None):
            raise ValueError("Exactly one of num_units or cell_size must be provided.")
        self._cell_size = self._state_size = self._output_size = num_units if num_units is not None else cell_size
        self.input_spec = InputSpec(ndim=2)

    def build(self, input_shape: Any) -> None:
        """Makes the variables. Raises ValueError if the input size is not known."""
        depth, units = input_shape[1].value, self._output_size
        if depth is None:
            raise ValueError("Expecting input_size to be set.")
        gates, gates_bias, candidate, candidate_bias = self._names
        self._gate_kernel = self.add_weight(gates, [depth + units, units * 2])
        self._gate_bias = self.add_weight(gates_bias, [units * 2], initializer=_bias(1.0))
        self._candidate_kernel = self.add_weight(candidate, [depth + units, units])
        self._candidate_bias = self.add_weight(candidate_bias, [units], initializer=_bias(0.0))

    def call(self, inputs: Any, state: Any) -> Any:
        """One step. Raises ValueError for a state of another size."""
        size = state.get_shape().with_rank(2)[1]
        if size != self._cell_size:
            raise ValueError(f"Shape of h_prev[1] incorrect: cell_size {self._cell_size} vs {size}")
        new = tf.raw_ops.GRUBlockCell(
            x=inputs,
            h_prev=state,
            w_ru=self._gate_kernel,
            w_c=self._candidate_kernel,
            b_ru=self._gate_bias,
            b_c=self._candidate_bias,
        ).h
        return new, new


class GRUBlockCellV2(GRUBlockCell):
    """A GRUBlockCell whose variables have the names of GRUCell's."""

    _names = ("gates/kernel", "gates/bias", "candidate/kernel", "candidate/bias")
