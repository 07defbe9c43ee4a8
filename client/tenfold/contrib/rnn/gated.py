"""Gated cells that only contrib has: update gate, intersection, NAS, simple, independent, minimal and chaos-free units.

# B batch, D input size, H units; inputs (B, D), states (B, H) unless the docstring of a cell differs
Shared parts are in cell_parts.py. Follows TensorFlow 1.15's contrib/rnn/python/ops/rnn_cell.py, names of variables
included.
"""

from __future__ import annotations

from typing import Any

import tenfold as tf
from tenfold.contrib.rnn.cell_parts import Linear, SizedCell, SizedLayerCell, known_depth, lstm_sizes, zeros
from tenfold.layers.input_spec import InputSpec
from tenfold.ops.rnn_cell import activation_of
from tenfold.ops.rnn_cell_layer import LSTMStateTuple
from tenfold_core.tensor_shape import as_shape


def _depth(inputs_shape: Any) -> int:
    size: int | None = as_shape(inputs_shape)[-1].value
    if size is None:
        raise ValueError(f"Expected inputs.shape[-1] to be known, saw shape: {inputs_shape}")
    return size


class UGRNNCell(SizedCell):
    """Update gate: new = g * state + (1 - g) * candidate; the output is the state."""

    def __init__(
        self,
        num_units: int,
        initializer: Any = None,
        forget_bias: float = 1.0,
        activation: Any = tf.tanh,
        reuse: bool | None = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        self._num_units = self._state_size = self._output_size = num_units
        self._initializer = initializer
        self._forget_bias = forget_bias
        self._activation = activation
        self._linear: Linear | None = None

    def call(self, inputs: Any, state: Any) -> Any:
        """One step. Raises ValueError if the input size is not known."""
        known_depth(inputs)
        with tf.variable_scope(tf.get_variable_scope(), initializer=self._initializer):
            joined = tf.concat([inputs, state], 1)
            if self._linear is None:
                self._linear = Linear(joined, 2 * self._num_units, True)
            gate, candidate = tf.split(self._linear(joined), 2, axis=1)
            gate = tf.sigmoid(gate + self._forget_bias)
            new = gate * state + (1.0 - gate) * self._activation(candidate)
        return new, new


class IntersectionRNNCell(SizedCell):
    """Intersection: the state and the output are each gated, the output against the input."""

    def __init__(
        self,
        num_units: int,
        num_in_proj: int | None = None,
        initializer: Any = None,
        forget_bias: float = 1.0,
        y_activation: Any = tf.nn.relu,
        reuse: bool | None = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        self._num_units = self._state_size = self._output_size = num_units
        self._initializer = initializer
        self._forget_bias = forget_bias
        self._num_input_proj = num_in_proj
        self._y_activation = y_activation
        self._linear1: Linear | None = None
        self._linear2: Linear | None = None

    def call(self, inputs: Any, state: Any) -> Any:
        """One step. Raises ValueError if the input has another size than the units, and is not projected."""
        depth = known_depth(inputs)
        with tf.variable_scope(tf.get_variable_scope(), initializer=self._initializer):
            if depth != self._num_units:
                if not self._num_input_proj:
                    raise ValueError(
                        "Must have input size == output size for Intersection RNN. To fix, num_in_proj should be set "
                        "to num_units at cell init."
                    )
                with tf.variable_scope("in_projection"):
                    if self._linear1 is None:
                        self._linear1 = Linear(inputs, self._num_units, True)
                    inputs = self._linear1(inputs)
            joined = tf.concat([inputs, state], 1)
            if self._linear2 is None:
                self._linear2 = Linear(joined, 4 * self._num_units, True)
            state_gate, h, output_gate, y = tf.split(self._linear2(joined), 4, axis=1)
            state_gate = tf.sigmoid(state_gate + self._forget_bias)
            output_gate = tf.sigmoid(output_gate + self._forget_bias)
            new_state = state_gate * state + (1.0 - state_gate) * tf.tanh(h)
            output = output_gate * inputs + (1.0 - output_gate) * self._y_activation(y)
        return output, new_state


class NASCell(SizedLayerCell):
    """The cell that neural architecture search found; the state is an LSTMStateTuple."""

    #: Kernels have a block of columns for each node of the first layer.
    _NAS_BASE = 8

    def __init__(
        self,
        num_units: int,
        num_proj: int | None = None,
        use_bias: bool = False,
        reuse: bool | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(_reuse=reuse, **kwargs)
        self._num_units = num_units
        self._num_proj = num_proj
        self._use_bias = use_bias
        self._state_size, self._output_size = lstm_sizes(num_units, num_proj)

    def build(self, input_shape: Any) -> None:
        """Makes recurrent_kernel, kernel, and, if enabled, bias and projection_weights."""
        depth = as_shape(input_shape).with_rank(2)[1].value
        if depth is None:
            raise ValueError("Could not infer input size from inputs.get_shape()[-1]")
        columns = self._NAS_BASE * self._num_units
        self.recurrent_kernel = self.add_weight("recurrent_kernel", [self._output_size, columns])
        self.kernel = self.add_weight("kernel", [depth, columns])
        if self._use_bias:
            self.bias = self.add_weight("bias", [columns], initializer=zeros())
        if self._num_proj is not None:
            self.projection_weights = self.add_weight("projection_weights", [self._num_units, self._num_proj])

    def call(self, inputs: Any, state: Any) -> Any:
        """One step."""
        c, m = state
        sigmoid, tanh, relu = tf.sigmoid, tf.tanh, tf.nn.relu
        from_state, from_inputs = tf.matmul(m, self.recurrent_kernel), tf.matmul(inputs, self.kernel)
        if self._use_bias:
            from_state = tf.nn.bias_add(from_state, self.bias)
        h = tf.split(from_state, self._NAS_BASE, axis=1)
        x = tf.split(from_inputs, self._NAS_BASE, axis=1)
        first = tanh(sigmoid(x[0] + h[0]) * relu(x[1] + h[1]))
        second = tanh(sigmoid(x[2] + h[2]) + relu(x[3] * h[3]))
        third = tanh(tanh(x[4] + h[4]) * sigmoid(x[5] + h[5]))
        fourth = sigmoid(tanh(x[6] + h[6]) + sigmoid(x[7] + h[7]))
        new_c = tanh(first + c) * second
        new_m = tanh(new_c * tanh(third + fourth))
        if self._num_proj is not None:
            new_m = tf.matmul(new_m, self.projection_weights)
        return new_m, LSTMStateTuple(new_c, new_m)


class SRUCell(SizedLayerCell):
    """Simple recurrent unit: the state does not enter the products."""

    def __init__(
        self, num_units: int, activation: Any = None, reuse: bool | None = None, name: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(_reuse=reuse, name=name, **kwargs)
        self._num_units = self._state_size = self._output_size = num_units
        self._activation = activation or tf.tanh
        self.input_spec = InputSpec(ndim=2)

    def build(self, input_shape: Any) -> None:
        """Makes kernel (D, 4 H) and bias (2 H)."""
        units = self._num_units
        self._kernel = self.add_weight("kernel", [_depth(input_shape), 4 * units])
        self._bias = self.add_weight("bias", [2 * units], initializer=zeros())

    def call(self, inputs: Any, state: Any) -> Any:
        """One step."""
        x, f, r, x_out = tf.split(tf.matmul(inputs, self._kernel), 4, axis=1)
        f, r = tf.split(tf.sigmoid(tf.nn.bias_add(tf.concat([f, r], 1), self._bias)), 2, axis=1)
        c = f * state + (1.0 - f) * x
        return r * self._activation(c) + (1.0 - r) * x_out, c


class _Independent(SizedLayerCell):
    """A cell whose units see of the state only themselves: a recurrent kernel (1, …) in place of a matrix."""

    def __init__(
        self,
        num_units: int,
        activation: Any = None,
        reuse: bool | None = None,
        kernel_initializer: Any = None,
        bias_initializer: Any = None,
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(_reuse=reuse, name=name, dtype=dtype)
        self.input_spec = InputSpec(ndim=2)
        self._num_units = self._output_size = num_units
        self._activation = activation or tf.tanh
        self._kernel_initializer = kernel_initializer
        self._bias_initializer = bias_initializer
        self._state_size = num_units

    def _weights(self, depth: int, blocks: int, names: tuple[str, str, str], bias: float = 0.0) -> tuple[Any, Any, Any]:
        """Kernel (D, blocks * H), recurrent kernel (1, blocks * H), bias."""
        size = blocks * self._num_units
        spread = tf.random_uniform_initializer(minval=-1, maxval=1, dtype=self.dtype)
        start = self._bias_initializer or tf.constant_initializer(bias, dtype=self.dtype)
        return (
            self.add_weight(names[0], [depth, size], initializer=self._kernel_initializer),
            self.add_weight(names[1], [1, size], initializer=spread),
            self.add_weight(names[2], [size], initializer=start),
        )


class IndRNNCell(_Independent):
    """output = new_state = act(W · inputs + u * state + b)."""

    def __init__(
        self,
        num_units: int,
        activation: Any = None,
        reuse: bool | None = None,
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(num_units, activation, reuse, name=name, dtype=dtype)

    def build(self, input_shape: Any) -> None:
        """Makes kernel_w, kernel_u and bias."""
        self._kernel_w, self._kernel_u, self._bias = self._weights(
            _depth(input_shape), 1, ("kernel_w", "kernel_u", "bias")
        )

    def call(self, inputs: Any, state: Any) -> Any:
        """One step."""
        new = tf.matmul(inputs, self._kernel_w) + state * self._kernel_u
        output = self._activation(tf.nn.bias_add(new, self._bias))
        return output, output


class IndyGRUCell(_Independent):
    """A GRU whose units see of the state only themselves."""

    def build(self, input_shape: Any) -> None:
        """Makes the variables of the gates and of the candidate."""
        depth = _depth(input_shape)
        self._gates = self._weights(depth, 2, ("gates/kernel_w", "gates/kernel_u", "gates/bias"), 1.0)
        self._candidate = self._weights(depth, 1, ("candidate/kernel", "candidate/kernel_u", "candidate/bias"))

    def call(self, inputs: Any, state: Any) -> Any:
        """One step."""
        w, u, b = self._gates
        gates = tf.sigmoid(tf.nn.bias_add(tf.matmul(inputs, w) + tf.tile(state, [1, 2]) * u, b))
        reset, update = tf.split(gates, 2, axis=1)
        w, u, b = self._candidate
        kept = reset * state
        candidate = self._activation(tf.nn.bias_add(tf.matmul(inputs, w) + kept * u, b))
        new = update * state + (1 - update) * candidate
        return new, new


class IndyLSTMCell(_Independent):
    """A basic LSTM whose units see of the state only themselves."""

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        activation: Any = None,
        reuse: bool | None = None,
        kernel_initializer: Any = None,
        bias_initializer: Any = None,
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(num_units, activation, reuse, kernel_initializer, bias_initializer, name, dtype)
        self._forget_bias = forget_bias
        self._state_size = LSTMStateTuple(num_units, num_units)

    def build(self, input_shape: Any) -> None:
        """Makes kernel_w, kernel_u and bias."""
        self._kernel_w, self._kernel_u, self._bias = self._weights(
            _depth(input_shape), 4, ("kernel_w", "kernel_u", "bias")
        )

    def call(self, inputs: Any, state: Any) -> Any:
        """One step."""
        c, h = state
        gates = tf.matmul(inputs, self._kernel_w) + tf.tile(h, [1, 4]) * self._kernel_u
        i, j, f, o = tf.split(tf.nn.bias_add(gates, self._bias), 4, axis=1)
        c = c * tf.sigmoid(f + self._forget_bias) + tf.sigmoid(i) * self._activation(j)
        h = self._activation(c) * tf.sigmoid(o)
        return h, LSTMStateTuple(c, h)


def _initializer(given: Any) -> Any:
    """An initializer, or the name of one as Keras spells it."""
    if not isinstance(given, str):
        return given
    return {
        "glorot_uniform": tf.glorot_uniform_initializer,
        "glorot_normal": tf.glorot_normal_initializer,
        "ones": tf.ones_initializer,
        "zeros": tf.zeros_initializer,
        "orthogonal": tf.orthogonal_initializer,
    }[given]()


class _Forgetting(SizedLayerCell):
    """What MinimalRNNCell and CFNCell take."""

    def __init__(
        self,
        units: int,
        activation: Any = "tanh",
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "ones",
        name: str | None = None,
        dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, dtype=dtype, **kwargs)
        self.input_spec = InputSpec(ndim=2)
        self.units = self._state_size = self._output_size = units
        self.activation = activation_of(activation)
        self.kernel_initializer = _initializer(kernel_initializer)
        self.bias_initializer = _initializer(bias_initializer)


class MinimalRNNCell(_Forgetting):
    """new = u * state + (1 - u) * act(W · inputs)."""

    def build(self, input_shape: Any) -> None:
        """Makes kernel (D + 2 H, H) and bias (H)."""
        self._depth = _depth(input_shape)
        shape = [self._depth + 2 * self.units, self.units]
        self.kernel = self.add_weight("kernel", shape, initializer=self.kernel_initializer)
        self.bias = self.add_weight("bias", [self.units], initializer=self.bias_initializer)

    def call(self, inputs: Any, state: Any) -> Any:
        """One step."""
        forward, gate = tf.split(self.kernel, [self._depth, 2 * self.units], axis=0)
        candidate = self.activation(tf.matmul(inputs, forward))
        update = tf.sigmoid(tf.nn.bias_add(tf.matmul(tf.concat([candidate, state], 1), gate), self.bias))
        new = update * state + (1 - update) * candidate
        return new, new


class CFNCell(_Forgetting):
    """Chaos-free network: new = theta * act(state) + (1 - eta) * act(W · inputs)."""

    def build(self, input_shape: Any) -> None:
        """Makes kernel (D, 3 H), recurrent_kernel (H, 2 H) and bias (2 H)."""
        units, start = self.units, self.kernel_initializer
        self.kernel = self.add_weight("kernel", [_depth(input_shape), 3 * units], initializer=start)
        self.recurrent_kernel = self.add_weight("recurrent_kernel", [units, 2 * units], initializer=start)
        self.bias = self.add_weight("bias", [2 * units], initializer=self.bias_initializer)

    def call(self, inputs: Any, state: Any) -> Any:
        """One step."""
        v, w = tf.split(self.kernel, [2 * self.units, self.units], axis=1)
        gates = tf.matmul(state, self.recurrent_kernel) + tf.matmul(inputs, v)
        theta, eta = tf.split(tf.sigmoid(tf.nn.bias_add(gates, self.bias)), 2, axis=1)
        new = theta * self.activation(state) + (1 - eta) * self.activation(tf.matmul(inputs, w))
        return new, new
