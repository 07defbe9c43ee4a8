"""`tf.keras.layers`: the layers that dense models, and models of embeddings, are made of.

They are layers as those of tf.layers: called with tensors, they add operations to the graph; tf.keras.Model makes a
model of them. Follows TensorFlow 1.15's keras/layers/core.py, embeddings.py and normalization.py. What joins tensors is
in merging.py.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from tenfold.keras import activations, backend, initializers
from tenfold.keras.base_layer import Layer
from tenfold.keras.inputs import Input, InputLayer
from tenfold.keras.merging import Add, Average, Concatenate, Maximum, Minimum, Multiply, Subtract, add, concatenate
from tenfold.layers import core, normalization
from tenfold.layers.input_spec import InputSpec
from tenfold.left_out import why
from tenfold.ops import array, embedding, math, nn_norm
from tenfold_core.tensor_shape import TensorShape, as_shape

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tenfold.graph.tensor import Tensor

__all__ = [
    "Activation",
    "Add",
    "Average",
    "BatchNormalization",
    "Concatenate",
    "Dense",
    "Dropout",
    "Embedding",
    "Flatten",
    "Input",
    "InputLayer",
    "InputSpec",
    "Lambda",
    "Layer",
    "LayerNormalization",
    "Maximum",
    "Minimum",
    "Multiply",
    "Reshape",
    "Subtract",
    "add",
    "concatenate",
]


class Dense(core.Dense, Layer):
    """`tf.layers.Dense`, with initializers and regularizers by their names, too."""

    def __init__(
        self,
        units: int,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        **kwargs: Any,
    ) -> None:
        kernel = (kernel_initializer, bias_initializer, kernel_regularizer, bias_regularizer)
        super().__init__(
            units, activation, use_bias, *kernel, activity_regularizer, kernel_constraint, bias_constraint, **kwargs
        )


class Dropout(core.Dropout, Layer):
    """While training, zeroes a fraction `rate` of the elements and scales the others up; else returns the input."""

    def call(self, inputs: Any, training: Any = None) -> Tensor:
        """`training` is what the model does, unless it is given."""
        return super().call(inputs, backend.learning_phase() if training is None else training)


class Flatten(core.Flatten, Layer):
    """Makes each example a vector."""


class BatchNormalization(normalization.BatchNormalization, Layer):
    """`tf.layers.BatchNormalization`; its averages move when the model trains."""

    def call(self, inputs: Any, training: Any = None) -> Any:
        """`training` is what the model does, unless it is given."""
        return super().call(inputs, backend.learning_phase() if training is None else training)


class Activation(Layer):
    """A function of its input, also by its name."""

    def __init__(self, activation: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.activation = activations.get(activation)

    def call(self, inputs: Any) -> Any:
        return self.activation(inputs)


class Reshape(Layer):
    """Gives each example another shape, in which one size may be -1."""

    def __init__(self, target_shape: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.target_shape = tuple(target_shape)

    def call(self, inputs: Any) -> Tensor:
        result: Tensor = array.reshape(inputs, (array.shape(inputs)[0], *self.target_shape))
        return result


class Embedding(Layer):
    """Rows of a table by their numbers. # (…) → (…, output_dim)"""

    def __init__(
        self,
        input_dim: int,
        output_dim: int,
        embeddings_initializer: Any = "uniform",
        embeddings_regularizer: Any = None,
        activity_regularizer: Any = None,
        embeddings_constraint: Any = None,
        mask_zero: bool = False,
        input_length: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            dtype=kwargs.pop("dtype", backend.floatx()), activity_regularizer=activity_regularizer, **kwargs
        )
        if mask_zero:
            raise ValueError("Embedding: there are no masks here; use tf.sequence_mask")
        self.input_dim, self.output_dim, self.input_length = int(input_dim), int(output_dim), input_length
        self._table = (embeddings_initializer, embeddings_regularizer, embeddings_constraint)
        self.embeddings: Any = None

    def build(self, input_shape: Any) -> None:
        initializer, regularizer, constraint = self._table
        self.embeddings = self.add_weight(
            "embeddings",
            (self.input_dim, self.output_dim),
            initializer=initializer,
            regularizer=regularizer,
            constraint=constraint,
        )
        self.built = True

    def call(self, inputs: Any) -> Tensor:
        ids = inputs if inputs.dtype.name in ("int32", "int64") else math.cast(inputs, "int32")
        rows: Tensor = embedding.embedding_lookup(self.embeddings, ids)
        return rows


class LayerNormalization(Layer):
    """Each example less its mean over `axis`, divided by its deviation; times gamma, plus beta, which are learned.

    # inputs and outputs (…); gamma and beta have the sizes of `axis`, which must be known

    `epsilon` is added to the variance. Without `scale` there is no gamma, without `center` no beta. Raises ValueError
    for axes that the inputs do not have.
    """

    def __init__(
        self,
        axis: int | Sequence[int] = -1,
        epsilon: float = 0.001,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        beta_regularizer: Any = None,
        gamma_regularizer: Any = None,
        beta_constraint: Any = None,
        gamma_constraint: Any = None,
        trainable: bool = True,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(trainable=trainable, name=name, **kwargs)
        self.axis = [axis] if isinstance(axis, int) else list(axis)
        self.epsilon = epsilon
        self.center, self.scale = center, scale
        self._of_beta = (initializers.get(beta_initializer), beta_regularizer, beta_constraint)
        self._of_gamma = (initializers.get(gamma_initializer), gamma_regularizer, gamma_constraint)
        self.gamma: Any = None
        self.beta: Any = None

    def build(self, input_shape: Any) -> None:
        sizes = as_shape(input_shape).as_list()
        axes = [axis + len(sizes) if axis < 0 else axis for axis in self.axis]
        for axis in axes:
            if not 0 <= axis < len(sizes):
                raise ValueError(f"Invalid axis: {axis}; the inputs have {len(sizes)} dimensions")
            if sizes[axis] is None:
                raise ValueError(f"The size of axis {axis} must be known, and the inputs are {as_shape(input_shape)}")
        if len(set(axes)) < len(axes):
            raise ValueError(f"Duplicate axis: {tuple(axes)}")
        self.axis = axes
        super().build(input_shape)
        self.built = False
        shape = [sizes[axis] for axis in axes]
        for name, is_there, (initializer, regularizer, constraint) in (
            ("gamma", self.scale, self._of_gamma),
            ("beta", self.center, self._of_beta),
        ):
            if is_there:
                made = self.add_weight(
                    name, shape, initializer=initializer, regularizer=regularizer, constraint=constraint
                )
                setattr(self, name, made)
        self.built = True

    def call(self, inputs: Tensor) -> Tensor:
        mean, variance = nn_norm.moments(inputs, self.axis, keep_dims=True)
        sizes = inputs.shape.as_list()
        beside = [sizes[axis] if axis in self.axis else 1 for axis in range(len(sizes))]
        offset, scale = [
            weight if weight is None or self.axis == [len(sizes) - 1] else array.reshape(weight, beside)
            for weight in (self.beta, self.gamma)
        ]
        outputs: Tensor = nn_norm.batch_normalization(inputs, mean, variance, offset, scale, self.epsilon)
        outputs.set_shape(inputs.shape)
        return outputs

    def compute_output_shape(self, input_shape: Any) -> TensorShape:
        return as_shape(input_shape)


class Lambda(Layer):
    """A function of a tensor, or of a list of them, as a layer; it is called with `arguments`, too.

    `output_shape` is what `compute_output_shape` answers, without the batch, or a function from the inputs' shape.
    Raises ValueError for a mask, which belongs to Keras's models.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        output_shape: Any = None,
        mask: Any = None,
        arguments: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if mask is not None:
            raise ValueError("Lambda: there are no masks here; use tf.sequence_mask")
        self.function = function
        self.arguments = dict(arguments or {})
        self._output_shape = output_shape
        self._takes = [name for name in ("mask", "training") if name in inspect.signature(function).parameters]

    def call(self, inputs: Any, mask: Any = None, training: Any = None) -> Any:
        given = {"mask": mask, "training": training}
        return self.function(inputs, **{name: given[name] for name in self._takes}, **self.arguments)

    def compute_output_shape(self, input_shape: Any) -> Any:
        if self._output_shape is None:
            raise NotImplementedError("Lambda does not know the shape that its function gives: give it output_shape")
        if callable(self._output_shape):
            return as_shape(self._output_shape(input_shape))
        return as_shape(input_shape)[:1].concatenate(self._output_shape)


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    raise AttributeError(f"tf.keras.layers.{name} is not part of Tenfold: {why('keras.layers')}")
