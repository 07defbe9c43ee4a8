"""LSTM cells that only contrib has: coupled gates, layer normalization, weight normalization, groups.

# B batch, D input size, H units, P projection; state LSTMStateTuple of (B, H) and (B, P or H)
Shared parts are in cell_parts.py; the plain LSTM cells in tenfold/ops/rnn_cell.py. Follows TensorFlow 1.15's
contrib/rnn/python/ops/rnn_cell.py, names of variables included.
"""

from __future__ import annotations

from typing import Any

import tenfold as tf
from tenfold.contrib.rnn.cell_parts import (
    Linear,
    SizedCell,
    clipped,
    joined,
    known_depth,
    linear,
    lstm_sizes,
    normalized,
    sharded_variable,
    zeros,
)
from tenfold.ops.rnn_cell_layer import LSTMStateTuple


def _peepholes(names: str, num_units: int, dtype: Any) -> list[Any]:
    return [tf.get_variable(name, shape=[num_units], dtype=dtype) for name in names.split()]


class CoupledInputForgetGateLSTMCell(SizedCell):
    """An LSTM whose input gate is one minus its forget gate; optional peepholes, projection, layer normalization."""

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        initializer: Any = None,
        num_proj: int | None = None,
        proj_clip: float | None = None,
        num_unit_shards: int = 1,
        num_proj_shards: int = 1,
        forget_bias: float = 1.0,
        state_is_tuple: bool = True,
        activation: Any = tf.tanh,
        reuse: bool | None = None,
        layer_norm: bool = False,
        norm_gain: float = 1.0,
        norm_shift: float = 0.0,
    ) -> None:
        super().__init__(_reuse=reuse)
        if not state_is_tuple:
            tf.logging.warn("%s: a concatenated state is slower; use state_is_tuple=True.", self)
        self._num_units = num_units
        self._use_peepholes = use_peepholes
        self._initializer = initializer
        self._num_proj = num_proj
        self._proj_clip = proj_clip
        self._num_unit_shards = num_unit_shards
        self._num_proj_shards = num_proj_shards
        self._forget_bias = forget_bias
        self._state_is_tuple = state_is_tuple
        self._activation = activation
        self._layer_norm = layer_norm
        self._norm_gain = norm_gain
        self._norm_shift = norm_shift
        sizes, self._output_size = lstm_sizes(num_units, num_proj)
        self._state_size = sizes if state_is_tuple else sum(sizes)

    def _norm(self, value: Any, scope: str) -> Any:
        return normalized(value, self._norm_gain, self._norm_shift, scope) if self._layer_norm else value

    def call(self, inputs: Any, state: Any) -> Any:
        """One step. Raises ValueError if the input size is not known."""
        units, act, dtype = self._num_units, self._activation, inputs.dtype
        before = state if self._state_is_tuple else tf.split(state, [units, self._output_size], 1)
        c_before, m_before = before
        rows = known_depth(inputs) + (units if self._num_proj is None else self._num_proj)
        weights = sharded_variable("W", [rows, 3 * units], dtype, self._num_unit_shards)
        bias = tf.get_variable("B", shape=[3 * units], initializer=zeros(), dtype=dtype)
        product = tf.matmul(tf.concat([inputs, m_before], 1), weights)
        if not self._layer_norm:
            product = tf.nn.bias_add(product, bias)
        j, f, o = tf.split(product, 3, axis=1)
        j, f, o = self._norm(j, "transform"), self._norm(f, "forget"), self._norm(o, "output")
        forget = f + self._forget_bias
        if self._use_peepholes:
            w_f_diag, w_o_diag = _peepholes("W_F_diag W_O_diag", units, dtype)
            forget = forget + w_f_diag * c_before
        kept = tf.sigmoid(forget)
        c = self._norm(kept * c_before + (1 - kept) * act(j), "state")
        m = tf.sigmoid(o + w_o_diag * c if self._use_peepholes else o) * act(c)
        if self._num_proj is not None:
            projection = sharded_variable("W_P", [units, self._num_proj], dtype, self._num_proj_shards)
            m = clipped(tf.matmul(m, projection), self._proj_clip)
        return m, LSTMStateTuple(c, m) if self._state_is_tuple else tf.concat([c, m], 1)


class LayerNormBasicLSTMCell(SizedCell):
    """A basic LSTM with layer normalization of the gates and the state, and dropout of the new input."""

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        input_size: Any = None,
        activation: Any = tf.tanh,
        layer_norm: bool = True,
        norm_gain: float = 1.0,
        norm_shift: float = 0.0,
        dropout_keep_prob: Any = 1.0,
        dropout_prob_seed: int | None = None,
        reuse: bool | None = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        if input_size is not None:
            tf.logging.warn("%s: The input_size parameter is deprecated.", self)
        self._num_units = num_units
        self._activation = activation
        self._forget_bias = forget_bias
        self._keep_prob = dropout_keep_prob
        self._seed = dropout_prob_seed
        self._layer_norm = layer_norm
        self._norm_gain = norm_gain
        self._norm_shift = norm_shift
        self._state_size, self._output_size = lstm_sizes(num_units)

    def _norm(self, value: Any, scope: str) -> Any:
        if not self._layer_norm:
            return value
        return normalized(value, self._norm_gain, self._norm_shift, scope, value.dtype)

    def _linear(self, args: Any) -> Any:
        size, dtype = 4 * self._num_units, args.dtype
        product = tf.matmul(args, tf.get_variable("kernel", [args.get_shape()[-1], size], dtype=dtype))
        if self._layer_norm:
            return product
        return tf.nn.bias_add(product, tf.get_variable("bias", [size], dtype=dtype))

    def call(self, inputs: Any, state: Any) -> Any:
        """One step."""
        c, h = state
        gates = tf.split(self._linear(tf.concat([inputs, h], 1)), 4, axis=1)
        scopes = ("input", "transform", "forget", "output")
        i, j, f, o = (self._norm(gate, scope) for gate, scope in zip(gates, scopes, strict=True))
        new = self._activation(j)
        if not isinstance(self._keep_prob, float) or self._keep_prob < 1:
            new = tf.nn.dropout(new, self._keep_prob, seed=self._seed)
        c = self._norm(c * tf.sigmoid(f + self._forget_bias) + tf.sigmoid(i) * new, "state")
        h = self._activation(c) * tf.sigmoid(o)
        return h, LSTMStateTuple(c, h)


class LayerNormLSTMCell(SizedCell):
    """An LSTM with optional peepholes, clipping, projection and layer normalization."""

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        cell_clip: float | None = None,
        initializer: Any = None,
        num_proj: int | None = None,
        proj_clip: float | None = None,
        forget_bias: float = 1.0,
        activation: Any = None,
        layer_norm: bool = False,
        norm_gain: float = 1.0,
        norm_shift: float = 0.0,
        reuse: bool | None = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        self._num_units = num_units
        self._use_peepholes = use_peepholes
        self._cell_clip = cell_clip
        self._initializer = initializer
        self._num_proj = num_proj
        self._proj_clip = proj_clip
        self._forget_bias = forget_bias
        self._activation = activation or tf.tanh
        self._layer_norm = layer_norm
        self._norm_gain = norm_gain
        self._norm_shift = norm_shift
        self._state_size, self._output_size = lstm_sizes(num_units, num_proj)

    def _norm(self, value: Any, scope: str) -> Any:
        return normalized(value, self._norm_gain, self._norm_shift, scope) if self._layer_norm else value

    def call(self, inputs: Any, state: Any) -> Any:
        """One step. Raises ValueError if the input size is not known."""
        c, m = state
        units, act = self._num_units, self._activation
        known_depth(inputs)
        with tf.variable_scope(tf.get_variable_scope(), initializer=self._initializer) as scope:
            affine = Linear([inputs, m], 4 * units, True)
            # With layer normalization the bias is made, for checkpoints, and not added: beta replaces it.
            product = tf.matmul(joined([inputs, m]), affine._weights) if self._layer_norm else affine([inputs, m])
            gates = tf.split(product, 4, axis=1)
            scopes = ("input", "transform", "forget", "output")
            i, j, f, o = (self._norm(gate, name) for gate, name in zip(gates, scopes, strict=True))
            forget = f + self._forget_bias
            if self._use_peepholes:
                with tf.variable_scope(scope):
                    w_f, w_i, w_o = _peepholes("w_f_diag w_i_diag w_o_diag", units, inputs.dtype)
                forget, i = forget + w_f * c, i + w_i * c
            c = clipped(self._norm(tf.sigmoid(forget) * c + tf.sigmoid(i) * act(j), "state"), self._cell_clip)
            m = tf.sigmoid(o + w_o * c if self._use_peepholes else o) * act(c)
            if self._num_proj is not None:
                with tf.variable_scope("projection"):
                    m = linear(m, self._num_proj, bias=False)
                m = clipped(m, self._proj_clip)
        return m, LSTMStateTuple(c, m)


class WeightNormLSTMCell(SizedCell):
    """An LSTM whose kernels have columns of a learned length."""

    def __init__(
        self,
        num_units: int,
        norm: bool = True,
        use_peepholes: bool = False,
        cell_clip: float | None = None,
        initializer: Any = None,
        num_proj: int | None = None,
        proj_clip: float | None = None,
        forget_bias: float = 1,
        activation: Any = None,
        reuse: bool | None = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        self._num_units = num_units
        self._norm = norm
        self._initializer = initializer
        self._use_peepholes = use_peepholes
        self._cell_clip = cell_clip
        self._num_proj = num_proj
        self._proj_clip = proj_clip
        self._activation = activation or tf.tanh
        self._forget_bias = forget_bias
        self._state_size, self._output_size = lstm_sizes(num_units, num_proj)

    def _linear(self, args: list[Any], output_size: int, bias: bool) -> Any:
        affine = Linear(args, output_size, bias)
        if self._norm:
            depths = [each.get_shape()[1].value for each in args]
            with tf.control_dependencies(None):
                parts = []
                for number, part in enumerate(tf.split(affine._weights, depths, 0)):
                    length = tf.get_variable(f"norm_{number}", [output_size], dtype=part.dtype.base_dtype)
                    parts.append(tf.nn.l2_normalize(part, axis=0) * length)
                affine._weights = tf.concat(parts, axis=0)
        return affine(args)

    def call(self, inputs: Any, state: Any) -> Any:
        """One step. Raises ValueError if the input size is not known."""
        c, h = state
        units, act = self._num_units, self._activation
        known_depth(inputs)
        with tf.variable_scope("wn_lstm_cell", initializer=self._initializer):
            i, j, f, o = tf.split(self._linear([inputs, h], 4 * units, bias=True), 4, axis=1)
            forget = f + self._forget_bias
            if self._use_peepholes:
                w_f, w_i, w_o = _peepholes("w_f_diag w_i_diag w_o_diag", units, inputs.dtype)
                forget, i = forget + w_f * c, i + w_i * c
            c = clipped(c * tf.sigmoid(forget) + tf.sigmoid(i) * act(j), self._cell_clip)
            h = tf.sigmoid(o + w_o * c if self._use_peepholes else o) * act(c)
            if self._num_proj is not None:
                with tf.variable_scope("projection"):
                    h = self._linear([h], self._num_proj, bias=False)
                h = clipped(h, self._proj_clip)
        return h, LSTMStateTuple(c, h)


class GLSTMCell(SizedCell):
    """An LSTM of `number_of_groups` parts, each of which sees its share of input and state."""

    def __init__(
        self,
        num_units: int,
        initializer: Any = None,
        num_proj: int | None = None,
        number_of_groups: int = 1,
        forget_bias: float = 1.0,
        activation: Any = tf.tanh,
        reuse: bool | None = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        if num_units % number_of_groups != 0:
            raise ValueError("num_units must be divisible by number_of_groups")
        if num_proj and num_proj % number_of_groups != 0:
            raise ValueError("num_proj must be divisible by number_of_groups")
        self._num_units = num_units
        self._initializer = initializer
        self._num_proj = num_proj
        self._forget_bias = forget_bias
        self._activation = activation
        self._number_of_groups = number_of_groups
        self._state_size, self._output_size = lstm_sizes(num_units, num_proj)
        self._linear1: list[Linear | None] = [None] * number_of_groups
        self._linear2: Linear | None = None

    def _group(self, inputs: Any, group_id: int, group_size: int) -> Any:
        rows = inputs.shape[0].value or tf.shape(inputs)[0]
        return tf.slice(inputs, [0, group_id * group_size], [rows, group_size], name=f"GLSTM_group{group_id}_input")

    def call(self, inputs: Any, state: Any) -> Any:
        """One step. Raises ValueError for an input size that is unknown or not a multiple of the groups."""
        c, m = state
        groups, units, dtype = self._number_of_groups, self._num_units, inputs.dtype
        depth = inputs.shape[1].value
        if depth is None:
            raise ValueError("input size must be statically known")
        if depth % groups != 0:
            raise ValueError(f"input size ({depth}) must be divisible by number_of_groups ({groups})")
        with tf.variable_scope(tf.get_variable_scope(), initializer=self._initializer):
            parts = []
            for number in range(groups):
                with tf.variable_scope(f"group{number}"):
                    own = self._group(inputs, number, depth // groups)
                    x = tf.concat([own, self._group(m, number, self._output_size // groups)], axis=1)
                    affine = self._linear1[number] or Linear(x, 4 * (units // groups), False)
                    self._linear1[number] = affine
                    parts.append(tf.split(affine(x), 4, 1))
            i, j, f, o = (
                tf.nn.bias_add(
                    tf.concat(list(gate), axis=1), tf.get_variable(f"bias_{name}", [units], dtype, zeros(dtype))
                )
                for name, gate in zip("ijfo", zip(*parts, strict=True), strict=True)
            )
        c = tf.sigmoid(f + self._forget_bias) * c + tf.sigmoid(i) * tf.tanh(j)
        m = tf.sigmoid(o) * self._activation(c)
        if self._num_proj is not None:
            with tf.variable_scope("projection"):
                if self._linear2 is None:
                    self._linear2 = Linear(m, self._num_proj, False)
                m = self._linear2(m)
        return m, LSTMStateTuple(c, m)
