"""Layers of separable convolutions: each channel separately, then a mix of channels. Follows TensorFlow 1.15's
keras/layers/convolutional.py; the plain ones are in layers/convolutional.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.layers.base import InputSpec, functional
from tenfold.layers.convolutional import Conv, op_format
from tenfold.ops import array, init_ops, nn, nn_conv

if TYPE_CHECKING:
    from tenfold.graph.tensor import Tensor


class _Separable(Conv):
    """Base of SeparableConv1D and SeparableConv2D."""

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: str = "channels_last",
        dilation_rate: Any = 1,
        depth_multiplier: int = 1,
        activation: Any = None,
        use_bias: bool = True,
        depthwise_initializer: Any = None,
        pointwise_initializer: Any = None,
        bias_initializer: Any = init_ops.zeros_initializer(),  # noqa: B008 - as TensorFlow's signature says
        depthwise_regularizer: Any = None,
        pointwise_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        depthwise_constraint: Any = None,
        pointwise_constraint: Any = None,
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
            dilation_rate,
            activation,
            use_bias,
            bias_initializer=bias_initializer,
            bias_regularizer=bias_regularizer,
            activity_regularizer=activity_regularizer,
            bias_constraint=bias_constraint,
            trainable=trainable,
            name=name,
            **kwargs,
        )
        self.depth_multiplier = depth_multiplier
        self.depthwise_initializer = depthwise_initializer
        self.pointwise_initializer = pointwise_initializer
        self.depthwise_regularizer = depthwise_regularizer
        self.pointwise_regularizer = pointwise_regularizer
        self.depthwise_constraint = depthwise_constraint
        self.pointwise_constraint = pointwise_constraint

    def build(self, input_shape: Any) -> None:
        """Makes the two kernels and the bias."""
        axis, channels = self._channels(input_shape)
        self.input_spec = InputSpec(ndim=self.rank + 2, axes={axis: channels})
        self.depthwise_kernel = self.add_weight(
            "depthwise_kernel",
            (*self.kernel_size, channels, self.depth_multiplier),
            initializer=self.depthwise_initializer,
            regularizer=self.depthwise_regularizer,
            constraint=self.depthwise_constraint,
            trainable=True,
            dtype=self._dtype,
        )
        self.pointwise_kernel = self.add_weight(
            "pointwise_kernel",
            (*[1] * self.rank, self.depth_multiplier * channels, self.filters),
            initializer=self.pointwise_initializer,
            regularizer=self.pointwise_regularizer,
            constraint=self.pointwise_constraint,
            trainable=True,
            dtype=self._dtype,
        )
        self._build_bias()
        self.built = True


class SeparableConv1D(_Separable):
    """A separable one-dimensional convolution: a two-dimensional one of height 1."""

    rank = 1

    def call(self, inputs: Any) -> Tensor:
        """The two convolutions, the bias and the activation."""
        padding = self.padding.upper()
        if self.padding == "causal":
            inputs, padding = self._padded_before(inputs), "VALID"
        last = self.data_format == "channels_last"
        axis = 1 if last else 2
        both = list(self.strides) * 2
        outputs = nn_conv.separable_conv2d(
            array.expand_dims(inputs, axis),
            array.expand_dims(self.depthwise_kernel, 0),
            array.expand_dims(self.pointwise_kernel, 0),
            [1, *both, 1] if last else [1, 1, *both],
            padding,
            rate=[1, *self.dilation_rate],
            data_format=op_format(self.data_format, 2),
        )
        if self.bias is not None:
            outputs = nn.bias_add(outputs, self.bias, data_format=op_format(self.data_format, 2))
        outputs = array.squeeze(outputs, [axis])
        if self.activation is not None:
            outputs = self.activation(outputs)
        return outputs


class SeparableConv2D(_Separable):
    """A separable two-dimensional convolution."""

    def call(self, inputs: Any) -> Tensor:
        """The two convolutions, the bias and the activation."""
        last = self.data_format == "channels_last"
        layout = op_format(self.data_format, 2)
        outputs = nn_conv.separable_conv2d(
            inputs,
            self.depthwise_kernel,
            self.pointwise_kernel,
            [1, *self.strides, 1] if last else [1, 1, *self.strides],
            self.padding.upper(),
            rate=list(self.dilation_rate),
            data_format=layout,
        )
        if self.bias is not None:
            outputs = nn.bias_add(outputs, self.bias, data_format=layout)
        if self.activation is not None:
            outputs = self.activation(outputs)
        return outputs


separable_conv1d = functional(SeparableConv1D, "separable_conv1d", "A separable convolution over time.")
separable_conv2d = functional(SeparableConv2D, "separable_conv2d", "A separable convolution over height and width.")
