"""`tf.contrib.rnn.ConvLSTMCell`, and its forms for one, two and three dimensions.

# B batch, S spatial sizes, C channels; inputs (B, *S, C), state LSTMStateTuple of (B, *S, output channels)
Follows TensorFlow 1.15's contrib/rnn/python/ops/rnn_cell.py, names of variables included.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tenfold as tf
from tenfold.contrib.rnn.cell_parts import SizedCell
from tenfold.ops.rnn_cell_layer import LSTMStateTuple
from tenfold_core.tensor_shape import TensorShape

if TYPE_CHECKING:
    from collections.abc import Sequence


def _convolved(args: list[Any], filter_size: list[int], features: int, bias: bool) -> Any:
    """The convolution of the inputs, side by side, with `kernel`, and `biases` added."""
    shapes = [each.get_shape().as_list() for each in args]
    for shape in shapes:
        if len(shape) not in (3, 4, 5):
            raise ValueError(f"Conv Linear expects 3D, 4D or 5D arguments: {shapes}")
        if len(shape) != len(shapes[0]):
            raise ValueError(f"Conv Linear expects all args to be of same Dimension: {shapes}")
    rank, dtype = len(shapes[0]), args[0].dtype
    convolve: Any = {3: tf.nn.conv1d, 4: tf.nn.conv2d, 5: tf.nn.conv3d}[rank]
    channels = sum(shape[-1] for shape in shapes)
    kernel = tf.get_variable("kernel", [*filter_size, channels, features], dtype=dtype)
    inputs = args[0] if len(args) == 1 else tf.concat(args, axis=rank - 1)
    result = convolve(inputs, kernel, 1 if rank == 3 else rank * [1], padding="SAME")
    if not bias:
        return result
    return result + tf.get_variable("biases", [features], dtype, tf.constant_initializer(0.0, dtype=dtype))


class ConvLSTMCell(SizedCell):
    """An LSTM whose products are convolutions; `skip_connection` joins the input to the output."""

    def __init__(
        self,
        conv_ndims: int,
        input_shape: Sequence[int],
        output_channels: int,
        kernel_shape: Sequence[int],
        use_bias: bool = True,
        skip_connection: bool = False,
        forget_bias: float = 1.0,
        initializers: Any = None,
        name: str = "conv_lstm_cell",
    ) -> None:
        super().__init__(name=name)
        if conv_ndims != len(input_shape) - 1:
            raise ValueError(f"Invalid input_shape {input_shape} for conv_ndims={conv_ndims}.")
        self._conv_ndims = conv_ndims
        self._output_channels = output_channels
        self._kernel_shape = list(kernel_shape)
        self._use_bias = use_bias
        self._forget_bias = forget_bias
        self._skip_connection = skip_connection
        *spatial, depth = list(input_shape)
        state = TensorShape([*spatial, output_channels])
        self._state_size = LSTMStateTuple(state, state)
        self._output_size = TensorShape([*spatial, output_channels + (depth if skip_connection else 0)])

    def call(self, inputs: Any, state: Any) -> Any:
        """One step."""
        c, h = state
        gates = _convolved([inputs, h], self._kernel_shape, 4 * self._output_channels, self._use_bias)
        i, j, f, o = tf.split(gates, 4, axis=self._conv_ndims + 1)
        c = tf.sigmoid(f + self._forget_bias) * c + tf.sigmoid(i) * tf.tanh(j)
        output = tf.tanh(c) * tf.sigmoid(o)
        if self._skip_connection:
            output = tf.concat([output, inputs], axis=-1)
        return output, LSTMStateTuple(c, output)


class Conv1DLSTMCell(ConvLSTMCell):
    """ConvLSTMCell over one dimension."""

    def __init__(self, name: str = "conv_1d_lstm_cell", **kwargs: Any) -> None:
        super().__init__(conv_ndims=1, name=name, **kwargs)


class Conv2DLSTMCell(ConvLSTMCell):
    """ConvLSTMCell over two dimensions."""

    def __init__(self, name: str = "conv_2d_lstm_cell", **kwargs: Any) -> None:
        super().__init__(conv_ndims=2, name=name, **kwargs)


class Conv3DLSTMCell(ConvLSTMCell):
    """ConvLSTMCell over three dimensions."""

    def __init__(self, name: str = "conv_3d_lstm_cell", **kwargs: Any) -> None:
        super().__init__(conv_ndims=3, name=name, **kwargs)
