"""`tf.contrib.rnn.PhasedLSTMCell`: an LSTM whose units open at times of their own.

# B batch, D input size, H units; inputs (time (B, 1), x (B, D)), state LSTMStateTuple of (B, H) each
Follows TensorFlow 1.15's contrib/rnn/python/ops/rnn_cell.py, names of variables included.
"""

from __future__ import annotations

from typing import Any

import tenfold as tf
from tenfold.contrib.rnn.cell_parts import Linear, SizedCell, lstm_sizes
from tenfold.ops.rnn_cell_layer import LSTMStateTuple


def _spread_in_log(low: float, high: float) -> Any:
    """Periods whose logarithms are uniform."""

    def initializer(shape: Any, dtype: Any = tf.float32, partition_info: Any = None) -> Any:
        return tf.exp(tf.random_uniform(shape, tf.log(low), tf.log(high), dtype))

    return initializer


class PhasedLSTMCell(SizedCell):
    """Each unit has a period, a phase and a share `ratio_on` of the period in which it is open; else it leaks."""

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        leak: float = 0.001,
        ratio_on: float = 0.1,
        trainable_ratio_on: bool = True,
        period_init_min: float = 1.0,
        period_init_max: float = 1000.0,
        reuse: bool | None = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        self._num_units = num_units
        self._use_peepholes = use_peepholes
        self._leak = leak
        self._ratio_on = ratio_on
        self._trainable_ratio_on = trainable_ratio_on
        self._periods = (period_init_min, period_init_max)
        self._linears: dict[str, Linear] = {}
        self._state_size, self._output_size = lstm_sizes(num_units)

    def _gates(self, scope: str, args: list[Any], size: int) -> Any:
        with tf.variable_scope(scope):
            if scope not in self._linears:
                self._linears[scope] = Linear(args, size, True)
            return self._linears[scope](args)

    def _openness(self, time: Any) -> Any:
        """How open the units are at `time`: (B, H)."""
        units = self._num_units
        period = tf.get_variable("period", [units], initializer=_spread_in_log(*self._periods))
        phase = tf.get_variable("phase", [units], initializer=tf.random_uniform_initializer(0.0, period.initial_value))
        ratio_on = tf.get_variable(
            "ratio_on",
            [units],
            initializer=tf.constant_initializer(self._ratio_on),
            trainable=self._trainable_ratio_on,
        )
        shifted, whole = time - tf.cast(phase, time.dtype), tf.cast(period, time.dtype)
        # The remainder has the gradient of what is divided.
        remainder = tf.stop_gradient(tf.mod(shifted, whole) - shifted) + shifted
        place = tf.cast(remainder / whole, tf.float32)
        rising = 2 * place / ratio_on
        openness = tf.where(place < ratio_on, 2 - rising, self._leak * place)
        return tf.where(place < 0.5 * ratio_on, rising, openness)

    def call(self, inputs: Any, state: Any) -> Any:
        """One step."""
        c, h = state
        time, x = inputs
        peephole = [c] if self._use_peepholes else []
        gates = tf.sigmoid(self._gates("mask_gates", [x, h, *peephole], 2 * self._num_units))
        input_gate, forget_gate = tf.split(gates, 2, axis=1)
        new_c = c * forget_gate + input_gate * tf.tanh(self._gates("new_input", [x, h], self._num_units))
        peephole = [new_c] if self._use_peepholes else []
        new_h = tf.tanh(new_c) * tf.sigmoid(self._gates("output_gate", [x, h, *peephole], self._num_units))
        k = self._openness(time)
        new_c = k * new_c + (1 - k) * c
        new_h = k * new_h + (1 - k) * h
        return new_h, LSTMStateTuple(new_c, new_h)
