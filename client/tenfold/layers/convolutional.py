"""Layers of convolutions in one to three dimensions, and transposed ones; their functions.

Follows TensorFlow 1.15's keras/layers/convolutional.py. Separable ones are in layers/separable.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold.layers.activations import activation_of
from tenfold.layers.base import InputSpec, Layer, functional
from tenfold.ops import array, init_ops, nn, nn_conv
from tenfold_core.tensor_shape import TensorShape, as_shape, dimension_value

if TYPE_CHECKING:
    from tenfold.graph.tensor import Tensor


def tuple_of(value: Any, count: int, name: str) -> tuple[int, ...]:
    """`count` integers from one or as many. Raises ValueError for anything else."""
    if isinstance(value, (int, np.integer)):
        return (int(value),) * count
    wrong = f"The `{name}` argument must be a tuple of {count} integers. Received: {value}"
    try:
        # A TensorShape iterates over Dimensions.
        items: Any = tuple(dimension_value(item) for item in value)
    except TypeError:
        raise ValueError(wrong) from None
    if len(items) != count or not all(isinstance(item, (int, np.integer)) for item in items):
        raise ValueError(wrong)
    return tuple(items)


def format_of(value: str | None) -> str:
    """`data_format` in lower case, "channels_last" by default. Raises ValueError for another one."""
    result = (value or "channels_last").lower()
    if result not in ("channels_first", "channels_last"):
        raise ValueError(
            f'The `data_format` argument must be one of "channels_first", "channels_last". Received: {value}'
        )
    return result


def op_format(data_format: str, rank: int) -> str:
    """The `data_format` attribute of operations, for a layer of `rank` spatial dimensions."""
    names = {1: ("NWC", "NCW"), 2: ("NHWC", "NCHW"), 3: ("NDHWC", "NCDHW")}[rank]
    return names[data_format == "channels_first"]


def padding_of(value: Any, *, causal: bool = False) -> str:
    """`padding` in lower case. Raises ValueError for another one."""
    result = str(value).lower()
    if result not in {"valid", "same"} | ({"causal"} if causal else set()):
        raise ValueError(
            f'The `padding` argument must be a list/tuple or one of "valid", "same" (or "causal", only for `Conv1D). '
            f"Received: {value}"
        )
    return result


class Conv(Layer):
    """A convolution of `rank` dimensions with bias and activation; the base class of Conv1D, Conv2D and Conv3D."""

    rank = 2
    _dilates = True

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: str = "channels_last",
        dilation_rate: Any = 1,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = None,
        bias_initializer: Any = init_ops.zeros_initializer(),  # noqa: B008 - as TensorFlow's signature says
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        trainable: bool = True,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(trainable=trainable, name=name, activity_regularizer=activity_regularizer, **kwargs)
        self.filters = filters
        self.kernel_size = tuple_of(kernel_size, self.rank, "kernel_size")
        self.strides = tuple_of(strides, self.rank, "strides")
        self.padding = padding_of(padding, causal=self.rank == 1)
        self.data_format = format_of(data_format)
        self.dilation_rate = tuple_of(dilation_rate, self.rank, "dilation_rate")
        self.activation = activation_of(activation)
        self.use_bias = use_bias
        self.kernel_initializer = kernel_initializer
        self.bias_initializer = bias_initializer
        self.kernel_regularizer = kernel_regularizer
        self.bias_regularizer = bias_regularizer
        self.kernel_constraint = kernel_constraint
        self.bias_constraint = bias_constraint
        self.input_spec = InputSpec(ndim=self.rank + 2)

    def _channels(self, input_shape: Any) -> tuple[int, int]:
        """The axis of the channels, and their number. Raises ValueError if that is unknown."""
        axis = 1 if self.data_format == "channels_first" else self.rank + 1
        channels = as_shape(input_shape).as_list()[axis]
        if channels is None:
            raise ValueError("The channel dimension of the inputs should be defined. Found `None`.")
        return axis, channels

    def _kernel_shape(self, channels: int) -> tuple[int, ...]:
        return (*self.kernel_size, channels, self.filters)

    def build(self, input_shape: Any) -> None:
        """Makes kernel and bias."""
        axis, channels = self._channels(input_shape)
        self.kernel = self.add_weight(
            "kernel",
            self._kernel_shape(channels),
            initializer=self.kernel_initializer,
            regularizer=self.kernel_regularizer,
            constraint=self.kernel_constraint,
            trainable=True,
            dtype=self._dtype,
        )
        self._build_bias()
        self.input_spec = InputSpec(ndim=self.rank + 2, axes={axis: channels})
        if self._dilates:
            self._rates = array.constant(list(self.dilation_rate), name="dilation_rate")
        self.built = True

    def _build_bias(self) -> None:
        self.bias = None
        if self.use_bias:
            self.bias = self.add_weight(
                "bias",
                (self.filters,),
                initializer=self.bias_initializer,
                regularizer=self.bias_regularizer,
                constraint=self.bias_constraint,
                trainable=True,
                dtype=self._dtype,
            )

    def call(self, inputs: Any) -> Tensor:
        """The convolution, the bias and the activation."""
        padding = "VALID" if self.padding == "causal" else self.padding.upper()
        if self.padding == "causal":
            inputs = self._padded_before(inputs)
        outputs = self._convolve(inputs, padding)
        return self._with_bias_and_activation(outputs)

    def _padded_before(self, inputs: Any) -> Tensor:
        left = self.dilation_rate[0] * (self.kernel_size[0] - 1)
        time = [left, 0]
        last = self.data_format == "channels_last"
        return array.pad(inputs, [[0, 0], time, [0, 0]] if last else [[0, 0], [0, 0], time])

    def _convolve(self, inputs: Any, padding: str) -> Tensor:
        layout = op_format(self.data_format, self.rank)
        functions: dict[int, Any] = {1: nn_conv.conv1d, 2: nn_conv.conv2d, 3: nn_conv.conv3d}
        strides = self.strides[0] if self.rank == 1 else list(self.strides)

        def op(x: Tensor, num_spatial_dims: int, padding: str) -> Tensor:
            result: Tensor = functions[self.rank](x, self.kernel, strides, padding, data_format=layout)
            return result

        return nn_conv.with_space_to_batch(inputs, self._rates, padding, op, self.kernel.shape, data_format=layout)

    def _with_bias_and_activation(self, outputs: Tensor) -> Tensor:
        if self.bias is not None:
            outputs = self._with_bias(outputs)
        if self.activation is not None:
            activated: Tensor = self.activation(outputs)
            return activated
        return outputs

    def _with_bias(self, outputs: Tensor) -> Tensor:
        if self.data_format == "channels_last":
            return nn.bias_add(outputs, self.bias)
        if self.rank == 1:
            assert self.bias is not None
            return outputs + array.reshape(self.bias, (1, self.filters, 1))
        return nn.bias_add(outputs, self.bias, data_format="NCHW")

    def compute_output_shape(self, input_shape: Any) -> TensorShape:
        """The static shape of the output."""
        sizes = as_shape(input_shape).as_list()
        first = self.data_format == "channels_first"
        spatial = sizes[2:] if first else sizes[1:-1]
        windows = zip(spatial, self.kernel_size, self.strides, self.dilation_rate, strict=True)
        out = [_length(size, window, self.padding, stride, rate) for size, window, stride, rate in windows]
        return TensorShape([sizes[0], self.filters, *out] if first else [sizes[0], *out, self.filters])


def _length(size: int | None, window: int, padding: str, stride: int, dilation: int) -> int | None:
    if size is None:
        return None
    covered = window + (window - 1) * (dilation - 1)
    length = size if padding in ("same", "causal") else size - covered + 1
    return (length + stride - 1) // stride


class Conv1D(Conv):
    """A one-dimensional convolution: (batch, time, channels)."""

    rank = 1


class Conv2D(Conv):
    """A two-dimensional convolution: (batch, height, width, channels)."""


class Conv3D(Conv):
    """A three-dimensional convolution: (batch, depth, height, width, channels)."""

    rank = 3


class _Transposed(Conv):
    """Base of Conv2DTranspose and Conv3DTranspose; they have no dilation."""

    _dilates = False

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: str = "channels_last",
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = None,
        bias_initializer: Any = init_ops.zeros_initializer(),  # noqa: B008 - as TensorFlow's signature says
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        trainable: bool = True,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            filters,
            kernel_size,
            strides,
            padding,
            data_format,
            1,
            activation,
            use_bias,
            kernel_initializer,
            bias_initializer,
            kernel_regularizer,
            bias_regularizer,
            activity_regularizer,
            kernel_constraint,
            bias_constraint,
            trainable,
            name,
            **kwargs,
        )

    def _kernel_shape(self, channels: int) -> tuple[int, ...]:
        return (*self.kernel_size, self.filters, channels)

    def _out(self, size: Any, place: int) -> Any:
        """The output size of a dimension; a number or a scalar tensor, as `size` is."""
        window, stride = self.kernel_size[place], self.strides[place]
        if size is None:
            return None
        size = size * stride
        return size + max(window - stride, 0) if self.padding == "valid" else size

    def call(self, inputs: Any) -> Tensor:
        """The transposed convolution, the bias and the activation."""
        shape = array.shape(inputs)
        first = self.data_format == "channels_first"
        batch = shape[0]
        sizes = [shape[i + (2 if first else 1)] for i in range(self.rank)]
        spatial = [self._out(size, i) for i, size in enumerate(sizes)]
        full = array.stack([batch, self.filters, *spatial] if first else [batch, *spatial, self.filters])
        layout = op_format(self.data_format, self.rank)
        strides, padding = list(self.strides), self.padding.upper()
        if self.rank == 2:
            # TensorFlow adds this second slice; node names and numbers must match.
            _ = full[0]
            outputs = nn_conv.conv2d_transpose(inputs, self.kernel, full, strides, padding, layout)
        else:
            outputs = nn_conv.conv3d_transpose(inputs, self.kernel, full, strides, padding, layout)
        outputs.set_shape(self.compute_output_shape(inputs.shape))
        return self._with_bias_and_activation(outputs)

    def compute_output_shape(self, input_shape: Any) -> TensorShape:
        """The static shape of the output."""
        sizes = as_shape(input_shape).as_list()
        first = self.data_format == "channels_first"
        spatial = [self._out(size, i) for i, size in enumerate(sizes[2:] if first else sizes[1:-1])]
        return TensorShape([sizes[0], self.filters, *spatial] if first else [sizes[0], *spatial, self.filters])


class Conv2DTranspose(_Transposed):
    """The transposed two-dimensional convolution; the kernel is (height, width, filters, channels)."""


class Conv3DTranspose(_Transposed):
    """The transposed three-dimensional convolution."""

    rank = 3


conv1d = functional(Conv1D, "conv1d", "activation(convolution over time + bias).")
conv2d = functional(Conv2D, "conv2d", "activation(convolution over height and width + bias).")
conv3d = functional(Conv3D, "conv3d", "activation(convolution over depth, height and width + bias).")
conv2d_transpose = functional(Conv2DTranspose, "conv2d_transpose", "The transposed conv2d with bias and activation.")
conv3d_transpose = functional(Conv3DTranspose, "conv3d_transpose", "The transposed conv3d with bias and activation.")
