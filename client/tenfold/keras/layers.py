"""`tf.keras.layers`: the two that programs of graphs and sessions use and `tf.layers` does not have.

They are layers as those of tf.layers: called with tensors, they add operations to the graph. Follows TensorFlow 1.15's
keras/layers/normalization.py and core.py.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from tenfold.graph.default_stack import get_default_graph
from tenfold.layers.base import Layer, _snake_case
from tenfold.left_out import why
from tenfold.ops import array, init_ops, nn_norm
from tenfold_core.tensor_shape import TensorShape, as_shape

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tenfold.graph.tensor import Tensor

__all__ = ["Lambda", "Layer", "LayerNormalization"]

_COUNTS_KEY = ("__keras_layer_names",)


def _numbered(name: str) -> str:
    """`name` for a graph's first layer of this kind, then `name_1`, …, as Keras has it."""
    holder = get_default_graph().get_collection_ref(_COUNTS_KEY)
    if not holder:
        holder.append({})
    counts: dict[str, int] = holder[0]
    count = counts.get(name, 0)
    counts[name] = count + 1
    return f"{name}_{count}" if count else name


class _KerasLayer(Layer):
    """A layer whose scope has Keras's name, and whose variables are in one part."""

    def __init__(self, trainable: bool = True, name: str | None = None, dtype: Any = None, **kwargs: Any) -> None:
        super().__init__(trainable, name or _numbered(_snake_case(type(self).__name__)), dtype, **kwargs)

    def build(self, input_shape: Any) -> None:
        self._set_scope(None)
        if self._scope is not None:
            self._scope.set_partitioner(None)
        super().build(input_shape)


class LayerNormalization(_KerasLayer):
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
        self._of_beta = (_initializer(beta_initializer), beta_regularizer, beta_constraint)
        self._of_gamma = (_initializer(gamma_initializer), gamma_regularizer, gamma_constraint)
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


class Lambda(_KerasLayer):
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
            raise ValueError(f"Lambda: a mask belongs to a model of Keras. tf.keras.Model: {why('keras.Model')}")
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


def _initializer(wanted: Any) -> Any:
    """An initializer, by its name as well. Raises ValueError for a name that is none of those used here."""
    if not isinstance(wanted, str):
        return wanted
    known = {"zeros": init_ops.zeros_initializer, "ones": init_ops.ones_initializer}
    if wanted not in known:
        raise ValueError(f"Unknown initializer: {wanted}; by name there are {', '.join(known)}, or give one of tf")
    return known[wanted]()


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    raise AttributeError(f"tf.keras.layers.{name} is not part of Tenfold: {why('keras.layers')}")
