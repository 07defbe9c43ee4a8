"""What the cells of `tf.contrib.rnn` share: sizes kept as attributes, linear maps, layer normalization, shards.

# B batch, D input size, N output size
Neighbours: the cells in lstm.py, gated.py, wrappers.py, …. Follows TensorFlow 1.15's contrib/rnn/python/ops/
core_rnn_cell.py and rnn_cell.py for the names of variables.
"""

from __future__ import annotations

from typing import Any

import tenfold as tf
from tenfold.ops.rnn_cell_layer import LayerRNNCell, LSTMStateTuple, RNNCell

#: The collection of sharded weights that were joined, by their full name.
_CONCATENATED = tf.GraphKeys.CONCATENATED_VARIABLES


class SizedCell(RNNCell):
    """A cell that keeps its two sizes as `_state_size` and `_output_size`; it makes its variables in `call`."""

    _state_size: Any
    _output_size: Any

    @property
    def state_size(self) -> Any:
        """The size of the state, or a structure of sizes."""
        return self._state_size

    @property
    def output_size(self) -> Any:
        """The size of the output."""
        return self._output_size


class SizedLayerCell(LayerRNNCell, SizedCell):
    """As SizedCell; it makes its variables in `build`."""


def lstm_sizes(num_units: int, num_proj: int | None = None) -> tuple[Any, int]:
    """State and output size of an LSTM with or without projection."""
    out = num_proj or num_units
    return LSTMStateTuple(num_units, out), out


def known_depth(inputs: Any) -> int:
    """The size of the last dimension of (B, D). Raises ValueError if it is not known."""
    depth: int | None = inputs.get_shape().with_rank(2)[1].value
    if depth is None:
        raise ValueError("Could not infer input size from inputs.get_shape()[-1]")
    return depth


def zeros(dtype: Any = None) -> Any:
    """The initializer of biases."""
    return tf.zeros_initializer() if dtype is None else tf.constant_initializer(0.0, dtype=dtype)


def _checked(args: Any) -> list[Any]:
    """The list of tensors (B, D). Raises ValueError for none, another rank or an unknown D."""
    if args is None or (tf.nest.is_nested(args) and not args):
        raise ValueError("`args` must be specified")
    tensors = list(args) if tf.nest.is_nested(args) else [args]
    shapes = [each.get_shape() for each in tensors]
    for shape in shapes:
        if shape.ndims != 2:
            raise ValueError(f"linear is expecting 2D arguments: {shapes}")
        if shape[1].value is None:
            raise ValueError(f"linear expects shape[1] to be provided for shape {shape}, but saw {shape[1]}")
    return tensors


def joined(args: Any) -> Any:
    """The tensors side by side."""
    tensors = list(args) if tf.nest.is_nested(args) else [args]
    return tensors[0] if len(tensors) == 1 else tf.concat(tensors, 1)


class Linear:
    """The map args · kernel + bias: (B, D) each → (B, N); its variables are made in the current scope."""

    def __init__(
        self,
        args: Any,
        output_size: int,
        build_bias: bool,
        bias_initializer: Any = None,
        kernel_initializer: Any = None,
    ) -> None:
        tensors = _checked(args)
        depth = sum(each.get_shape()[1].value for each in tensors)
        dtype = tensors[0].dtype
        with tf.variable_scope(tf.get_variable_scope()) as outer:
            self._weights = tf.get_variable("kernel", [depth, output_size], dtype, kernel_initializer)
            self._biases = None
            if build_bias:
                with tf.variable_scope(outer) as inner:
                    # A bias is never cut into parts.
                    inner.set_partitioner(None)
                    self._biases = tf.get_variable("bias", [output_size], dtype, bias_initializer or zeros(dtype))

    def __call__(self, args: Any) -> Any:
        product = tf.matmul(joined(args), self._weights)
        return product if self._biases is None else tf.nn.bias_add(product, self._biases)


def linear(
    args: Any, output_size: int, bias: bool, bias_initializer: Any = None, kernel_initializer: Any = None
) -> Any:
    """args · kernel + bias, with variables of the current scope. Programs import it as `_linear`."""
    return Linear(args, output_size, bias, bias_initializer, kernel_initializer)(args)


def normalized(inputs: Any, gain: float, shift: float, scope: str, dtype: Any = tf.float32) -> Any:
    """Layer normalization over the last axis, with variables scope/gamma and scope/beta."""
    shape = inputs.get_shape()[-1:]
    with tf.variable_scope(scope):
        gamma = tf.get_variable("gamma", shape=shape, initializer=tf.constant_initializer(gain), dtype=dtype)
        beta = tf.get_variable("beta", shape=shape, initializer=tf.constant_initializer(shift), dtype=dtype)
        axes = list(range(1, inputs.get_shape().ndims))
        mean, variance = tf.nn.moments(inputs, axes, keep_dims=True)
        # The epsilon of contrib.layers.layer_norm.
        epsilon = 1e-3 if inputs.dtype == tf.float16 else 1e-12
        return tf.nn.batch_normalization(inputs, mean, variance, beta, gamma, epsilon)


def sharded_variable(name: str, shape: list[int], dtype: Any, num_shards: int) -> Any:
    """A variable cut by rows into name_0, name_1, …, joined once for each graph."""
    if num_shards > shape[0]:
        raise ValueError(f"Too many shards: shape={shape}, num_shards={num_shards}")
    rows, more = divmod(shape[0], num_shards)
    shards = [
        tf.get_variable(f"{name}_{number}", [rows + (number < more), *shape[1:]], dtype=dtype)
        for number in range(num_shards)
    ]
    if num_shards == 1:
        return shards[0]
    full_name = f"{tf.get_variable_scope().name}/{name}/concat:0"
    for known in tf.get_collection(_CONCATENATED):
        if known.name == full_name:
            return known
    whole = tf.concat(shards, 0, name=f"{name}/concat")
    tf.add_to_collection(_CONCATENATED, whole)
    return whole


def clipped(value: Any, bound: float | None) -> Any:
    """The value between -bound and bound; unchanged without a bound."""
    return value if bound is None else tf.clip_by_value(value, -bound, bound)
