"""contrib's convolutions over one to three dimensions, transposed, in plane and separable; bias_add.

Each is a layer of `tf.layers` whose variables are `weights` and `biases`. `conv2d` and its siblings are one function
under several names, because an arg_scope sets the arguments of each separately. Follows TensorFlow 1.15's
contrib/layers/python/layers/layers.py.
"""

from __future__ import annotations

from typing import Any

from tenfold.contrib.arg_scope import add_arg_scope
from tenfold.contrib.framework.variables import model_variable
from tenfold.contrib.layers.initializers import xavier_initializer
from tenfold.contrib.layers.utils import (
    DATA_FORMATS_2D,
    DATA_FORMATS_3D,
    add_variable_to_collections,
    channel_dimension,
    collect_named_outputs,
    finished,
    get_variable_collections,
    last_dimension,
    layers_format,
    model_variables,
    normalized,
    two_element_tuple,
)
from tenfold.graph.conversion import convert_to_tensor
from tenfold.layers import convolutional, separable
from tenfold.ops import array, init_ops, nn, nn_conv
from tenfold.ops.variable_scope import variable_scope

_XAVIER = xavier_initializer()
_ZEROS = init_ops.zeros_initializer()
_WEIGHTS_AND_BIASES = {"bias": "biases", "kernel": "weights"}
_SEPARABLE_NAMES = {
    "bias": "biases",
    "depthwise_kernel": "depthwise_weights",
    "pointwise_kernel": "pointwise_weights",
}
_BY_RANK: dict[int, Any] = {3: convolutional.Conv1D, 4: convolutional.Conv2D, 5: convolutional.Conv3D}


def _convolution_of(dims: int | None, name: str) -> Any:
    """The function `name`, for inputs of `dims` spatial dimensions, or of any number for None."""

    def convolve(
        inputs: Any,
        num_outputs: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: str = "SAME",
        data_format: str | None = None,
        rate: Any = 1,
        activation_fn: Any = nn.relu,
        normalizer_fn: Any = None,
        normalizer_params: Any = None,
        weights_initializer: Any = _XAVIER,
        weights_regularizer: Any = None,
        biases_initializer: Any = _ZEROS,
        biases_regularizer: Any = None,
        reuse: Any = None,
        variables_collections: Any = None,
        outputs_collections: Any = None,
        trainable: bool = True,
        scope: Any = None,
        conv_dims: int | None = dims,
    ) -> Any:
        """activation_fn(convolution of the inputs + biases); a normalizer replaces the biases.

        `rate` dilates; inputs (batch, spatial dimensions…, channels), or channels second for a `data_format` of "NC…".
        Raises ValueError for another data format and for inputs of another rank.
        """
        if data_format not in (None, "NWC", "NCW", "NHWC", "NCHW", "NDHWC", "NCDHW"):
            raise ValueError(f"Invalid data_format: {data_format!r}")
        getter = model_variables(_WEIGHTS_AND_BIASES)
        with variable_scope(scope, "Conv", [inputs], reuse=reuse, custom_getter=getter) as inner:
            inputs = convert_to_tensor(inputs)
            rank = inputs.get_shape().ndims
            if conv_dims is not None and conv_dims + 2 != rank:
                raise ValueError(f"Convolution expects input with rank {conv_dims + 2}, got {rank}")
            if rank not in _BY_RANK:
                raise ValueError("Convolution not supported for input with rank", rank)
            layer = _BY_RANK[rank](
                filters=num_outputs,
                kernel_size=kernel_size,
                strides=stride,
                padding=padding,
                data_format="channels_first" if data_format and data_format.startswith("NC") else "channels_last",
                dilation_rate=rate,
                use_bias=bool(not normalizer_fn and biases_initializer),
                kernel_initializer=weights_initializer,
                bias_initializer=biases_initializer,
                kernel_regularizer=weights_regularizer,
                bias_regularizer=biases_regularizer,
                trainable=trainable,
                name=inner.name,
                dtype=inputs.dtype.base_dtype,
                _scope=inner,
                _reuse=reuse,
            )
            outputs = finished(
                layer(inputs), layer, variables_collections, normalizer_fn, normalizer_params, activation_fn
            )
            return collect_named_outputs(outputs_collections, inner.name, outputs)

    convolve.__name__ = convolve.__qualname__ = name  # The key of the function in an arg_scope, and slim's scopes.
    return add_arg_scope(convolve)


convolution = _convolution_of(None, "convolution")
convolution1d = conv1d = _convolution_of(1, "convolution1d")
convolution2d = conv2d = _convolution_of(2, "convolution2d")
convolution3d = conv3d = _convolution_of(3, "convolution3d")


def _transposed_of(layer_class: Any, formats: tuple[str, str], default_scope: str, name: str) -> Any:
    def convolve_transpose(
        inputs: Any,
        num_outputs: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: str = "SAME",
        data_format: str = formats[1],
        activation_fn: Any = nn.relu,
        normalizer_fn: Any = None,
        normalizer_params: Any = None,
        weights_initializer: Any = _XAVIER,
        weights_regularizer: Any = None,
        biases_initializer: Any = _ZEROS,
        biases_regularizer: Any = None,
        reuse: Any = None,
        variables_collections: Any = None,
        outputs_collections: Any = None,
        trainable: bool = True,
        scope: Any = None,
    ) -> Any:
        """activation_fn(transposed convolution + biases); a normalizer replaces the biases."""
        getter = model_variables(_WEIGHTS_AND_BIASES)
        with variable_scope(scope, default_scope, [inputs], reuse=reuse, custom_getter=getter) as inner:
            layout = layers_format(data_format, formats)
            inputs = convert_to_tensor(inputs)
            layer = layer_class(
                filters=num_outputs,
                kernel_size=kernel_size,
                strides=stride,
                padding=padding,
                data_format=layout,
                use_bias=bool(not normalizer_fn and biases_initializer),
                kernel_initializer=weights_initializer,
                bias_initializer=biases_initializer,
                kernel_regularizer=weights_regularizer,
                bias_regularizer=biases_regularizer,
                trainable=trainable,
                name=inner.name,
                dtype=inputs.dtype.base_dtype,
                _scope=inner,
                _reuse=reuse,
            )
            outputs = finished(
                layer(inputs), layer, variables_collections, normalizer_fn, normalizer_params, activation_fn
            )
            return collect_named_outputs(outputs_collections, inner.name, outputs)

    convolve_transpose.__name__ = convolve_transpose.__qualname__ = name
    return add_arg_scope(convolve_transpose)


convolution2d_transpose = conv2d_transpose = _transposed_of(
    convolutional.Conv2DTranspose, DATA_FORMATS_2D, "Conv2d_transpose", "convolution2d_transpose"
)
convolution3d_transpose = conv3d_transpose = _transposed_of(
    convolutional.Conv3DTranspose, DATA_FORMATS_3D, "Conv3d_transpose", "convolution3d_transpose"
)


@add_arg_scope
def convolution2d_in_plane(
    inputs: Any,
    kernel_size: Any,
    stride: Any = 1,
    padding: str = "SAME",
    activation_fn: Any = nn.relu,
    normalizer_fn: Any = None,
    normalizer_params: Any = None,
    weights_initializer: Any = _XAVIER,
    weights_regularizer: Any = None,
    biases_initializer: Any = _ZEROS,
    biases_regularizer: Any = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
) -> Any:
    """The same filter of one channel for each channel."""
    with variable_scope(scope, "ConvInPlane", [inputs], reuse=reuse) as inner:
        inputs = convert_to_tensor(inputs)
        height, width = two_element_tuple(kernel_size)
        channels = last_dimension(inputs.get_shape(), min_rank=4)
        kind = inputs.dtype.base_dtype
        weights = model_variable(
            "weights",
            shape=[height, width, 1, 1],
            dtype=kind,
            initializer=weights_initializer,
            regularizer=weights_regularizer,
            collections=get_variable_collections(variables_collections, "weights"),
            trainable=trainable,
        )
        shared = array.tile(weights, [1, 1, channels, 1])
        outputs = nn_conv.depthwise_conv2d(inputs, shared, [1, *two_element_tuple(stride), 1], padding)
        if normalizer_fn is None and biases_initializer is not None:
            biases = _biases(channels, kind, biases_initializer, biases_regularizer, variables_collections, trainable)
            outputs = nn.bias_add(outputs, biases)
        outputs = normalized(outputs, normalizer_fn, normalizer_params, activation_fn)
        return collect_named_outputs(outputs_collections, inner.name, outputs)


conv2d_in_plane = convolution2d_in_plane


def _biases(size: Any, dtype: Any, initializer: Any, regularizer: Any, collections: Any, trainable: bool) -> Any:
    return model_variable(
        "biases",
        shape=[size],
        dtype=dtype,
        initializer=initializer,
        regularizer=regularizer,
        collections=get_variable_collections(collections, "biases"),
        trainable=trainable,
    )


@add_arg_scope
def separable_convolution2d(
    inputs: Any,
    num_outputs: int | None,
    kernel_size: Any,
    depth_multiplier: int = 1,
    stride: Any = 1,
    padding: str = "SAME",
    data_format: str = "NHWC",
    rate: Any = 1,
    activation_fn: Any = nn.relu,
    normalizer_fn: Any = None,
    normalizer_params: Any = None,
    weights_initializer: Any = _XAVIER,
    pointwise_initializer: Any = None,
    weights_regularizer: Any = None,
    biases_initializer: Any = _ZEROS,
    biases_regularizer: Any = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
) -> Any:
    """A depthwise convolution and a mix of the channels; without `num_outputs` only the former."""
    layout = layers_format(data_format, DATA_FORMATS_2D)
    getter = model_variables(_SEPARABLE_NAMES)
    with variable_scope(scope, "SeparableConv2d", [inputs], reuse=reuse, custom_getter=getter) as inner:
        inputs = convert_to_tensor(inputs)
        kind = inputs.dtype.base_dtype
        if num_outputs is not None:
            layer = separable.SeparableConv2D(
                filters=num_outputs,
                kernel_size=kernel_size,
                strides=stride,
                padding=padding,
                data_format=layout,
                dilation_rate=two_element_tuple(rate),
                depth_multiplier=depth_multiplier,
                use_bias=bool(not normalizer_fn and biases_initializer),
                depthwise_initializer=weights_initializer,
                pointwise_initializer=weights_initializer if pointwise_initializer is None else pointwise_initializer,
                bias_initializer=biases_initializer,
                depthwise_regularizer=weights_regularizer,
                pointwise_regularizer=weights_regularizer,
                bias_regularizer=biases_regularizer,
                trainable=trainable,
                name=inner.name,
                dtype=kind,
                _scope=inner,
                _reuse=reuse,
            )
            outputs = layer(inputs)
            add_variable_to_collections(layer.depthwise_kernel, variables_collections, "weights")
            add_variable_to_collections(layer.pointwise_kernel, variables_collections, "weights")
            if layer.bias is not None:
                add_variable_to_collections(layer.bias, variables_collections, "biases")
        else:
            channels = channel_dimension(inputs.get_shape(), layout, min_rank=4)
            weights = model_variable(
                "depthwise_weights",
                shape=[*two_element_tuple(kernel_size), channels, depth_multiplier],
                dtype=kind,
                initializer=weights_initializer,
                regularizer=weights_regularizer,
                trainable=trainable,
                collections=get_variable_collections(variables_collections, "weights"),
            )
            steps = two_element_tuple(stride)
            outputs = nn_conv.depthwise_conv2d(
                inputs,
                weights,
                [1, 1, *steps] if layout == "channels_first" else [1, *steps, 1],
                padding,
                rate=two_element_tuple(rate),
                data_format=data_format,
            )
            if normalizer_fn is None and biases_initializer is not None:
                count = depth_multiplier * channels
                biases = _biases(count, kind, biases_initializer, biases_regularizer, variables_collections, trainable)
                outputs = nn.bias_add(outputs, biases, data_format=data_format)
        outputs = normalized(outputs, normalizer_fn, normalizer_params, activation_fn)
        return collect_named_outputs(outputs_collections, inner.name, outputs)


separable_conv2d = separable_convolution2d


@add_arg_scope
def bias_add(
    inputs: Any,
    activation_fn: Any = None,
    initializer: Any = _ZEROS,
    regularizer: Any = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    data_format: str = "NHWC",
    scope: Any = None,
) -> Any:
    """activation_fn(inputs + biases), one bias for each channel."""
    layout = layers_format(data_format, DATA_FORMATS_2D)
    with variable_scope(scope, "BiasAdd", [inputs], reuse=reuse) as inner:
        inputs = convert_to_tensor(inputs)
        shape = inputs.get_shape()
        if shape.ndims is None:
            raise ValueError("Dims of shape must be known but is None")
        if shape.ndims != 4 and data_format == "NCHW":
            raise ValueError("Data format NCHW only supports 4D Tensor")
        channels = shape.dims[1 if layout == "channels_first" else -1].value
        if channels is None:
            raise ValueError("`C` dimension must be known but is None")
        biases = _biases(channels, inputs.dtype.base_dtype, initializer, regularizer, variables_collections, trainable)
        outputs = nn.bias_add(inputs, biases, data_format=data_format)
        outputs = outputs if activation_fn is None else activation_fn(outputs)
        return collect_named_outputs(outputs_collections, inner.name, outputs)
