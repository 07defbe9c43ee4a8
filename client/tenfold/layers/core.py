"""The layers `Dense`, `Dropout`, `Flatten`, and their functions.

Follows TensorFlow 1.15's keras/layers/core.py and layers/core.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold.layers.activations import activation_of
from tenfold.layers.base import InputSpec, Layer, functional
from tenfold.ops import array, init_ops, math, nn, products
from tenfold.ops.control_flow_cond import smart_cond
from tenfold_core.tensor_shape import TensorShape, as_shape

if TYPE_CHECKING:
    from tenfold.graph.tensor import Tensor


class Dense(Layer):
    """outputs = activation(inputs · kernel + bias), over the last dimension.

    # inputs (…, K), kernel (K, units), bias (units,) → (…, units)
    """

    def __init__(
        self,
        units: int,
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
        self.units = int(units)
        self.activation = activation_of(activation)
        self.use_bias = use_bias
        self.kernel_initializer = kernel_initializer
        self.bias_initializer = bias_initializer
        self.kernel_regularizer = kernel_regularizer
        self.bias_regularizer = bias_regularizer
        self.kernel_constraint = kernel_constraint
        self.bias_constraint = bias_constraint
        self.input_spec = InputSpec(min_ndim=2)

    def build(self, input_shape: Any) -> None:
        """Makes kernel and bias. Raises ValueError if the last dimension is unknown, TypeError for integers."""
        if self._dtype is not None and not (self._dtype.is_floating or self._dtype.is_complex):
            raise TypeError(f"Unable to build `Dense` layer with non-floating point dtype {self._dtype!r}")
        inner = as_shape(input_shape).as_list()[-1]
        if inner is None:
            raise ValueError("The last dimension of the inputs to `Dense` should be defined. Found `None`.")
        self.input_spec = InputSpec(min_ndim=2, axes={-1: inner})
        self.kernel = self.add_weight(
            "kernel",
            [inner, self.units],
            initializer=self.kernel_initializer,
            regularizer=self.kernel_regularizer,
            constraint=self.kernel_constraint,
            dtype=self._dtype,
            trainable=True,
        )
        self.bias = None
        if self.use_bias:
            self.bias = self.add_weight(
                "bias",
                [self.units],
                initializer=self.bias_initializer,
                regularizer=self.bias_regularizer,
                constraint=self.bias_constraint,
                dtype=self._dtype,
                trainable=True,
            )
        self.built = True

    def call(self, inputs: Any) -> Tensor:
        """The product, the bias and the activation."""
        rank = inputs.shape.ndims
        if rank is not None and rank > 2:
            outputs = products.tensordot(inputs, self.kernel, [[rank - 1], [0]])
            outputs.set_shape(inputs.shape[:-1].concatenate(self.units))
        else:
            outputs = math.matmul(inputs, self.kernel)
        if self.bias is not None:
            outputs = nn.bias_add(outputs, self.bias)
        if self.activation is not None:
            activated: Tensor = self.activation(outputs)
            return activated
        return outputs

    def compute_output_shape(self, input_shape: Any) -> TensorShape:
        """The shape with its last dimension replaced by `units`."""
        shape = as_shape(input_shape).with_rank_at_least(2)
        if shape.as_list()[-1] is None:
            raise ValueError(f"The innermost dimension of input_shape must be defined, but saw: {input_shape}")
        result: TensorShape = shape[:-1].concatenate(self.units)
        return result


class Dropout(Layer):
    """While training, zeroes a fraction `rate` of the elements and scales the others up; else returns the input."""

    def __init__(
        self, rate: Any = 0.5, noise_shape: Any = None, seed: int | None = None, name: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(name=name, **kwargs)
        self.rate = rate
        self.noise_shape = noise_shape
        self.seed = seed

    def call(self, inputs: Any, training: Any = False) -> Tensor:
        """`training` is a bool or a scalar bool tensor."""

        def dropped() -> Tensor:
            return nn.dropout(inputs, noise_shape=self._noise(inputs), seed=self.seed, rate=self.rate)

        result: Tensor = smart_cond(training, dropped, lambda: array.identity(inputs))
        return result

    def _noise(self, inputs: Any) -> Any:
        """The noise shape with its unknown sizes taken from the input."""
        if self.noise_shape is None or hasattr(self.noise_shape, "graph"):
            return self.noise_shape
        sizes = array.shape(inputs)
        return [sizes[i] if size is None else size for i, size in enumerate(self.noise_shape)]

    def compute_output_shape(self, input_shape: Any) -> TensorShape:
        """The same shape."""
        return as_shape(input_shape)


class Flatten(Layer):
    """Makes each example a vector: (batch, …) → (batch, n). "channels_first" first moves the channels to the end."""

    def __init__(self, data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.data_format = data_format or "channels_last"
        if self.data_format not in ("channels_first", "channels_last"):
            raise ValueError(
                f'The `data_format` argument must be one of "channels_first", "channels_last". Received: {data_format}'
            )
        self.input_spec = InputSpec(min_ndim=1)

    def call(self, inputs: Any) -> Tensor:
        """The input reshaped; its batch size is kept if it is known."""
        rank = inputs.shape.ndims
        if self.data_format == "channels_first" and rank is not None and rank > 1:
            inputs = array.transpose(inputs, [0, *range(2, rank), 1])
        sizes = array.shape(inputs)
        outputs = array.reshape(inputs, (sizes[0], -1))
        outputs.set_shape(self.compute_output_shape(inputs.shape))
        return outputs

    def compute_output_shape(self, input_shape: Any) -> TensorShape:
        """(batch, product of the other sizes)."""
        shape = as_shape(input_shape).with_rank_at_least(1).as_list()
        inner = shape[1:]
        count = None if None in inner else int(np.prod([size or 0 for size in inner])) if inner else 1
        return TensorShape([shape[0], count])


dense = functional(Dense, "dense", "activation(inputs · kernel + bias); the variables are `<name>/kernel`, `…/bias`.")


def dropout(
    inputs: Any,
    rate: Any = 0.5,
    noise_shape: Any = None,
    seed: int | None = None,
    training: Any = False,
    name: str | None = None,
) -> Tensor:
    """While `training`, zeroes a fraction `rate` of the elements and scales the others up."""
    layer = Dropout(rate, noise_shape=noise_shape, seed=seed, name=name)
    result: Tensor = layer(inputs, training=training)
    return result


def flatten(inputs: Any, name: str | None = None, data_format: str = "channels_last") -> Tensor:
    """Makes each example a vector."""
    result: Tensor = Flatten(name=name, data_format=data_format)(inputs)
    return result
