"""LSTM cells over time and frequency: `TimeFreqLSTMCell`, `GridLSTMCell`, `BidirectionalGridLSTMCell`.

# B batch, D input size, H units, F features of one filter
The input is cut into overlapping pieces along its frequencies; the cell runs over these inside each time step.
Follows TensorFlow 1.15's contrib/rnn/python/ops/rnn_cell.py, names of variables and of state fields included.
"""

from __future__ import annotations

from collections import namedtuple
from typing import TYPE_CHECKING, Any, NamedTuple

import tenfold as tf
from tenfold.contrib.rnn.cell_parts import SizedCell, clipped, sharded_variable, zeros

if TYPE_CHECKING:
    from collections.abc import Sequence


def _width(inputs: Any) -> int:
    size: int | None = inputs.get_shape().with_rank(2)[-1].value
    if size is None:
        raise ValueError("Cannot infer input_size from static shape inference.")
    return size


def _pieces(inputs: Any, start: int, count: int, skip: int, size: int) -> list[Any]:
    return [tf.slice(inputs, [0, start + number * skip], [-1, size]) for number in range(count)]


class TimeFreqLSTMCell(SizedCell):
    """An LSTM that runs over the frequencies of each time step with one set of weights."""

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        cell_clip: float | None = None,
        initializer: Any = None,
        num_unit_shards: int = 1,
        forget_bias: float = 1.0,
        feature_size: int | None = None,
        frequency_skip: int = 1,
        reuse: bool | None = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        if feature_size is None:
            raise ValueError("feature_size must be given: the width of the filter along the frequencies")
        self._num_units = num_units
        self._use_peepholes = use_peepholes
        self._cell_clip = cell_clip
        self._initializer = initializer
        self._num_unit_shards = num_unit_shards
        self._forget_bias = forget_bias
        self._feature_size = feature_size
        self._frequency_skip = frequency_skip
        self._state_size, self._output_size = 2 * num_units, num_units

    def call(self, inputs: Any, state: Any) -> Any:
        """One step: outputs (B, H * pieces), state (B, 2 H * pieces)."""
        units, size, dtype = self._num_units, self._feature_size, inputs.dtype
        count = int((_width(inputs) - size) / self._frequency_skip) + 1
        pieces = _pieces(inputs, 0, count, self._frequency_skip, size)
        depth = pieces[0].get_shape()[1].value
        weights = sharded_variable("W", [depth + 2 * units, 4 * units], dtype, self._num_unit_shards)
        bias = tf.get_variable("B", [4 * units], dtype, zeros())
        w_f = w_i = w_o = 0.0
        if self._use_peepholes:
            w_f, w_i, w_o = (tf.get_variable(f"W_{gate}_diag", [units], dtype) for gate in "FIO")
        below = tf.zeros([inputs.shape[0].value or tf.shape(inputs)[0], units], dtype)
        states, outputs = [], []
        for number, piece in enumerate(pieces):
            c = tf.slice(state, [0, 2 * number * units], [-1, units])
            m = tf.slice(state, [0, (2 * number + 1) * units], [-1, units])
            product = tf.nn.bias_add(tf.matmul(tf.concat([piece, m, below], 1), weights), bias)
            i, j, f, o = tf.split(product, 4, axis=1)
            c = clipped(
                tf.sigmoid(f + self._forget_bias + w_f * c) * c + tf.sigmoid(i + w_i * c) * tf.tanh(j), self._cell_clip
            )
            below = tf.sigmoid(o + w_o * c) * tf.tanh(c)
            states += [c, below]
            outputs.append(below)
        return tf.concat(outputs, 1), tf.concat(states, 1)


class _Peepholes(NamedTuple):
    """Diagonal weights of one gate, from the cell state along frequency and along time; zero without peepholes."""

    freq: Any
    time: Any

    def of(self, c_freq: Any, c_time: Any) -> Any:
        return self.freq * c_freq + self.time * c_time


class _Axis(NamedTuple):
    """The weights of one of the two LSTMs of a grid."""

    kernel: Any
    bias: Any
    #: "I", "F" and "O"; no "F" with coupled gates; none at all without peepholes.
    peepholes: dict[str, _Peepholes]


class GridLSTMCell(SizedCell):
    """Two LSTMs, along time and along frequency, that see each other's states. The state has a field for each piece."""

    _kind = "GridLSTMStateTuple"
    _directions: tuple[str, ...] = ("",)

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        share_time_frequency_weights: bool = False,
        cell_clip: float | None = None,
        initializer: Any = None,
        num_unit_shards: int = 1,
        forget_bias: float = 1.0,
        feature_size: int | None = None,
        frequency_skip: int | None = None,
        num_frequency_blocks: Sequence[int] | None = None,
        start_freqindex_list: Sequence[int] | None = None,
        end_freqindex_list: Sequence[int] | None = None,
        couple_input_forget_gates: bool = False,
        state_is_tuple: bool = True,
        reuse: bool | None = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        if not state_is_tuple:
            tf.logging.warn("%s: a concatenated state is slower; use state_is_tuple=True.", self)
        if num_frequency_blocks is None:
            raise ValueError("Must specify num_frequency_blocks")
        self._num_units = num_units
        self._use_peepholes = use_peepholes
        self._share_time_frequency_weights = share_time_frequency_weights
        self._couple_input_forget_gates = couple_input_forget_gates
        self._state_is_tuple = state_is_tuple
        self._cell_clip = cell_clip
        self._initializer = initializer
        self._num_unit_shards = num_unit_shards
        self._forget_bias = forget_bias
        self._feature_size: Any = feature_size
        self._frequency_skip: Any = frequency_skip
        self._start_freqindex_list = start_freqindex_list
        self._end_freqindex_list = end_freqindex_list
        self._num_frequency_blocks = num_frequency_blocks
        fields = [
            f"{direction}state_f{freq:02d}_b{block:02d}_{part}"
            for direction in self._directions
            for block, count in enumerate(num_frequency_blocks)
            for freq in range(count)
            for part in "cm"
        ]
        make: Any = namedtuple
        self._state_tuple_type: Any = make(self._kind, fields) if state_is_tuple else None
        self._output_size = num_units * len(fields)
        self._state_size = self._packed([num_units] * len(fields)) if state_is_tuple else self._output_size

    @property
    def state_tuple_type(self) -> Any:
        """The named tuple of the state; None for a concatenated state."""
        return self._state_tuple_type

    def _packed(self, parts: list[Any]) -> Any:
        return self._state_tuple_type(*parts)

    def call(self, inputs: Any, state: Any) -> Any:
        """One step."""
        outputs, states = self._over_blocks(self._blocks(inputs), state, "state")
        return tf.concat(outputs, 1), self._packed(states) if self._state_is_tuple else tf.concat(states, 1)

    def _over_blocks(self, blocks: list[list[Any]], state: Any, prefix: str) -> tuple[list[Any], list[Any]]:
        outputs, states = [], []
        for block, pieces in enumerate(blocks):
            more_outputs, more_states = self._compute(pieces, block, state, prefix)
            outputs += more_outputs
            states += more_states
        return outputs, states

    def _axis(self, depth: int, block: int, dtype: Any, letter: str, word: str) -> _Axis:
        units, coupled = self._num_units, self._couple_input_forget_gates
        columns = (3 if coupled else 4) * units
        shape = [depth + 2 * units, columns]
        kernel = sharded_variable(f"W_{letter}_{block}", shape, dtype, self._num_unit_shards)
        bias = tf.get_variable(f"B_{letter}_{block}", [columns], dtype, zeros())
        peepholes = {}
        for gate in ("IO" if coupled else "FIO") if self._use_peepholes else "":
            names = [f"W_{gate}_diag_{word}{end}_{block}" for end in "ft"]
            peepholes[gate] = _Peepholes(*(tf.get_variable(name, [units], dtype) for name in names))
        return _Axis(kernel, bias, peepholes)

    def _gates(self, product: Any, axis: _Axis, c_freq: Any, c_time: Any, own: Any) -> tuple[Any, Any]:
        """The new cell state of one of the LSTMs, and its output gate before the sigmoid."""
        peep = {gate: each.of(c_freq, c_time) for gate, each in axis.peepholes.items()}
        if self._couple_input_forget_gates:
            i, j, o = tf.split(product, 3, axis=1)
            taken = tf.sigmoid(i + peep["I"] if peep else i)
            kept = 1.0 - taken
        else:
            i, j, f, o = tf.split(product, 4, axis=1)
            taken = tf.sigmoid(i + peep["I"] if peep else i)
            kept = tf.sigmoid(f + self._forget_bias + peep["F"] if peep else f + self._forget_bias)
        return clipped(kept * own + taken * tf.tanh(j), self._cell_clip), o

    def _compute(self, pieces: list[Any], block: int, state: Any, prefix: str) -> tuple[list[Any], list[Any]]:
        units, dtype = self._num_units, pieces[0].dtype
        depth = pieces[0].get_shape()[1].value
        freq = time = self._axis(depth, block, dtype, "f", "freq")
        if not self._share_time_frequency_weights:
            time = self._axis(depth, block, dtype, "t", "time")
        rows = pieces[0].shape[0].value or tf.shape(pieces[0])[0]
        m_freq, c_freq = tf.zeros([rows, units], dtype), tf.zeros([rows, units], dtype)
        outputs, states = [], []
        for number, piece in enumerate(pieces):
            if self._state_is_tuple:
                field = f"{prefix}_f{number:02d}_b{block:02d}"
                c_time, m_time = getattr(state, field + "_c"), getattr(state, field + "_m")
            else:
                c_time = tf.slice(state, [0, 2 * number * units], [-1, units])
                m_time = tf.slice(state, [0, (2 * number + 1) * units], [-1, units])
            joined = tf.concat([piece, m_time, m_freq], 1)
            in_freq = in_time = tf.nn.bias_add(tf.matmul(joined, freq.kernel), freq.bias)
            if time is not freq:
                in_time = tf.nn.bias_add(tf.matmul(joined, time.kernel), time.bias)
            new_c_freq, o_freq = self._gates(in_freq, freq, c_freq, c_time, c_freq)
            new_c_time, o_time = self._gates(in_time, time, c_freq, c_time, c_time)
            if self._use_peepholes:
                o_freq = o_freq + freq.peepholes["O"].of(new_c_freq, new_c_time)
                o_time = o_time + time.peepholes["O"].of(new_c_freq, new_c_time)
            m_freq = tf.sigmoid(o_freq) * tf.tanh(new_c_freq)
            m_time = tf.sigmoid(o_time) * tf.tanh(new_c_time)
            c_freq = new_c_freq
            states += [new_c_time, m_time]
            outputs += [m_time, m_freq]
        return outputs, states

    def _blocks(self, inputs: Any, offset: int = 0) -> list[list[Any]]:
        """The pieces of each block. Raises ValueError if there are not as many as the cell was told."""
        width, size, skip = _width(inputs), self._feature_size, self._frequency_skip
        if offset:
            inputs = tf.pad(inputs, [[0, 0], [max(-offset, 0), max(offset, 0)]])
            offset = max(offset, 0)
        counts = self._num_frequency_blocks
        starts, ends = self._start_freqindex_list, self._end_freqindex_list
        if not starts:
            if len(counts) != 1:
                raise ValueError(f"Length of num_frequency_blocks is not 1, but instead is {len(counts)}")
            starts, ends = [0], [width]
        if ends is None or len(starts) != len(ends):
            raise ValueError(f"Length of start and end freqindex_list does not match {starts} {ends}")
        if len(counts) != len(starts):
            raise ValueError(f"Length of num_frequency_blocks is not equal to start_freqindex_list {counts} {starts}")
        blocks = []
        for count, start, end in zip(counts, starts, ends, strict=True):
            found = int((end - start - size) / skip) + 1
            if found != count:
                raise ValueError(
                    f"Invalid num_frequency_blocks, requires {count} but gets {found}, please check the input size and "
                    "filter config are correct."
                )
            blocks.append(_pieces(inputs, start + offset, count, skip, size))
        return blocks


class BidirectionalGridLSTMCell(GridLSTMCell):
    """A GridLSTMCell forwards and one backwards over the frequencies."""

    _kind = "BidirectionalGridLSTMStateTuple"
    _directions = ("fwd_", "bwd_")

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        share_time_frequency_weights: bool = False,
        cell_clip: float | None = None,
        initializer: Any = None,
        num_unit_shards: int = 1,
        forget_bias: float = 1.0,
        feature_size: int | None = None,
        frequency_skip: int | None = None,
        num_frequency_blocks: Sequence[int] | None = None,
        start_freqindex_list: Sequence[int] | None = None,
        end_freqindex_list: Sequence[int] | None = None,
        couple_input_forget_gates: bool = False,
        backward_slice_offset: int = 0,
        reuse: bool | None = None,
    ) -> None:
        super().__init__(
            num_units, use_peepholes, share_time_frequency_weights, cell_clip, initializer, num_unit_shards,
            forget_bias, feature_size, frequency_skip, num_frequency_blocks, start_freqindex_list, end_freqindex_list,
            couple_input_forget_gates, True, reuse,
        )  # fmt: skip
        self._backward_slice_offset = int(backward_slice_offset)

    def call(self, inputs: Any, state: Any) -> Any:
        """One step."""
        forwards = self._blocks(inputs)
        offset = self._backward_slice_offset
        backwards = [pieces[::-1] for pieces in (self._blocks(inputs, offset) if offset else forwards)]
        with tf.variable_scope("fwd"):
            outputs, states = self._over_blocks(forwards, state, "fwd_state")
        with tf.variable_scope("bwd"):
            more_outputs, more_states = self._over_blocks(backwards, state, "bwd_state")
        return tf.concat(outputs + more_outputs, 1), self._packed(states + more_states)
