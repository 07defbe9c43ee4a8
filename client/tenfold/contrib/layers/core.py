"""contrib's layers without weights, or with few: pools, dropout, shapes, softmaxes; and stacks of other layers.

Follows TensorFlow 1.15's contrib/layers/python/layers/layers.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.contrib.arg_scope import add_arg_scope
from tenfold.contrib.framework.variables import model_variable
from tenfold.contrib.layers.utils import (
    DATA_FORMATS_2D,
    DATA_FORMATS_3D,
    collect_named_outputs,
    get_variable_collections,
    last_dimension,
    layers_format,
    model_variables,
    n_positive_integers,
)
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import control_dependencies, name_scope
from tenfold.graph.sparse_tensor import SparseTensor
from tenfold.layers import core, pooling
from tenfold.ops import array, check_ops, init_ops, math, nn, nn_pool, slicing
from tenfold.ops.array_repeat import meshgrid
from tenfold.ops.custom_gradient import custom_gradient
from tenfold.ops.reductions import reduce_max, reduce_prod, reduce_sum
from tenfold.ops.sparse import sparse_reshape
from tenfold.ops.variable_scope import variable_scope
from tenfold_core import dtypes

if TYPE_CHECKING:
    from collections.abc import Callable


# --- pools ---


def _pool_of(layer_class: Any, formats: tuple[str, str], default_scope: str, name: str) -> Any:
    def pool_windows(
        inputs: Any,
        kernel_size: Any,
        stride: Any = 2,
        padding: str = "VALID",
        data_format: str = formats[1],
        outputs_collections: Any = None,
        scope: Any = None,
    ) -> Any:
        """The windows of each channel, pooled."""
        layout = layers_format(data_format, formats)
        with name_scope(scope, default_scope, [inputs]) as inner:
            inputs = convert_to_tensor(inputs)
            layer = layer_class(
                pool_size=kernel_size, strides=stride, padding=padding, data_format=layout, _scope=inner
            )
            return collect_named_outputs(outputs_collections, inner, layer(inputs))

    pool_windows.__name__ = pool_windows.__qualname__ = name
    return add_arg_scope(pool_windows)


avg_pool2d = _pool_of(pooling.AveragePooling2D, DATA_FORMATS_2D, "AvgPool2D", "avg_pool2d")
avg_pool3d = _pool_of(pooling.AveragePooling3D, DATA_FORMATS_3D, "AvgPool3D", "avg_pool3d")
max_pool2d = _pool_of(pooling.MaxPooling2D, DATA_FORMATS_2D, "MaxPool2D", "max_pool2d")
max_pool3d = _pool_of(pooling.MaxPooling3D, DATA_FORMATS_3D, "MaxPool3D", "max_pool3d")


@add_arg_scope
def pool(
    inputs: Any,
    kernel_size: Any,
    pooling_type: str,
    padding: str = "VALID",
    data_format: str | None = None,
    dilation_rate: Any = 1,
    stride: Any = 1,
    outputs_collections: Any = None,
    scope: Any = None,
) -> Any:
    """`tf.nn.pool` over all dimensions between batch and channels; `pooling_type` is "AVG" or "MAX"."""
    with name_scope(scope, f"{pooling_type.lower()}_pool", [inputs]) as inner:
        inputs = convert_to_tensor(inputs)
        rank = inputs.get_shape().ndims
        if rank is None:
            raise ValueError("Rank of inputs must be known")
        if rank < 3:
            raise ValueError("Rank of inputs must be >= 3")
        outputs = nn_pool.pool(
            input=inputs,
            window_shape=n_positive_integers(rank - 2, kernel_size),
            pooling_type=pooling_type,
            padding=padding,
            data_format=data_format,
            dilation_rate=n_positive_integers(rank - 2, dilation_rate),
            strides=n_positive_integers(rank - 2, stride),
            name=inner,
        )
        return collect_named_outputs(outputs_collections, inner, outputs)


# --- elements ---


@add_arg_scope
def dropout(
    inputs: Any,
    keep_prob: Any = 0.5,
    noise_shape: Any = None,
    is_training: Any = True,
    outputs_collections: Any = None,
    scope: Any = None,
    seed: int | None = None,
) -> Any:
    """While training, keeps each element with probability `keep_prob` and scales it up; else returns the input."""
    with variable_scope(scope, "Dropout", [inputs], custom_getter=model_variables()) as inner:
        inputs = convert_to_tensor(inputs)
        layer = core.Dropout(rate=1 - keep_prob, noise_shape=noise_shape, seed=seed, name=inner.name, _scope=inner)
        return collect_named_outputs(outputs_collections, inner.name, layer(inputs, training=is_training))


@add_arg_scope
def one_hot_encoding(
    labels: Any,
    num_classes: int,
    on_value: float = 1.0,
    off_value: float = 0.0,
    outputs_collections: Any = None,
    scope: Any = None,
) -> Any:
    """One vector of `num_classes` for each label."""
    with name_scope(scope, "OneHotEncoding", [labels, num_classes]) as inner:
        labels = convert_to_tensor(labels)
        if labels.dtype == dtypes.int32:
            labels = math.cast(labels, dtypes.int64)
        vectors = slicing.one_hot(labels, num_classes, on_value=on_value, off_value=off_value)
        return collect_named_outputs(outputs_collections, inner, vectors)


@add_arg_scope
def softmax(logits: Any, scope: Any = None) -> Any:
    """The softmax over the last dimension, which must be known."""
    with variable_scope(scope, "softmax", [logits]):
        classes = last_dimension(logits.get_shape(), min_rank=2)
        predictions = nn.softmax(array.reshape(logits, [-1, classes]))
        predictions = array.reshape(predictions, array.shape(logits))
        predictions.set_shape(logits.get_shape())
        return predictions


@add_arg_scope
def spatial_softmax(
    features: Any,
    temperature: float | None = None,
    name: Any = None,
    variables_collections: Any = None,
    trainable: bool = True,
    data_format: str = "NHWC",
) -> Any:
    """The expected x and y, in -1 … 1, of each channel's softmax over the image: (batch, 2 · channels).

    The variable `temperature` divides the features; it starts at 1 and is trained unless it is given.
    """
    with variable_scope(name, "spatial_softmax"):
        first = layers_format(data_format, DATA_FORMATS_2D) == "channels_first"
        sizes, known = array.shape(features), features.get_shape().as_list()
        height, width = (sizes[2], sizes[3]) if first else (sizes[1], sizes[2])
        channels = known[1] if first else known[3]
        if channels is None:
            raise ValueError(
                "The num_channels dimension of the inputs to `spatial_softmax` should be defined. Found `None`."
            )
        with name_scope("spatial_softmax_op", "spatial_softmax_op", [features]):
            # As in TensorFlow, x goes down the image and y across it.
            down, across = math.linspace(-1.0, 1.0, num=height), math.linspace(-1.0, 1.0, num=width)
            x, y = meshgrid(down, across, indexing="ij")
            x, y = array.reshape(x, [height * width]), array.reshape(y, [height * width])
            keys = get_variable_collections(variables_collections, "temperature") if trainable else None
            divisor = model_variable(
                "temperature",
                shape=(),
                dtype=dtypes.float32,
                initializer=init_ops.Ones() if temperature is None else init_ops.Constant(temperature),
                collections=keys,
                trainable=trainable,
            )
            flat = features if first else array.transpose(features, [0, 3, 1, 2])
            attention = nn.softmax(array.reshape(flat, [-1, height * width]) / divisor)
            points = array.concat([reduce_sum(each * attention, [1], keepdims=True) for each in (x, y)], 1)
            points = array.reshape(points, [-1, channels * 2])
            points.set_shape([None, channels * 2])
    return points


def poincare_normalize(x: Any, axis: Any = 1, epsilon: float = 1e-5, name: str | None = None) -> Any:
    """The vectors along `axis` with a norm of at least 1 - epsilon, scaled back to that."""
    with name_scope(name, "poincare_normalize", [x]) as inner:
        x = convert_to_tensor(x, name="x")
        inverse = math.rsqrt(reduce_sum(math.square(x), axis, keepdims=True))
        return math.multiply(x, math.minimum((1.0 - epsilon) * inverse, 1.0), name=inner)


def scale_gradient(inputs: Any, gradient_multiplier: Any) -> Any:
    """The inputs; their gradient is multiplied."""

    @custom_gradient
    def scaled(x: Any) -> tuple[Any, Callable[[Any], Any]]:
        return array.identity(x), lambda gradient: gradient * math.cast(gradient_multiplier, gradient.dtype)

    return scaled(convert_to_tensor(inputs))


@add_arg_scope
def maxout(inputs: Any, num_units: int, axis: int = -1, scope: Any = None) -> Any:
    """The largest of each group of channels, `num_units` groups. Raises ValueError if they do not divide them."""
    with variable_scope(scope, "MaxOut", [inputs]):
        inputs = convert_to_tensor(inputs)
        shape: list[Any] = inputs.get_shape().as_list()
        channels = shape[axis]
        if channels % num_units:
            raise ValueError(f"number of features({channels}) is not a multiple of num_units({num_units})")
        shape[axis] = num_units
        shape.append(channels // num_units)
        running = array.shape(inputs)
        shape = [running[place] if size is None else size for place, size in enumerate(shape)]
        return reduce_max(array.reshape(inputs, shape), -1)


# --- shapes ---


@add_arg_scope
def flatten(inputs: Any, outputs_collections: Any = None, scope: Any = None) -> Any:
    """Makes each example a vector."""
    with name_scope(scope, "Flatten", [inputs]) as inner:
        return collect_named_outputs(outputs_collections, inner, core.flatten(convert_to_tensor(inputs)))


@add_arg_scope
def inner_flatten(inputs: Any, new_rank: Any, output_collections: Any = None, scope: Any = None) -> Any:
    """The inputs, dense or sparse, with rank `new_rank`: the last dimensions become one."""
    with name_scope(scope, "InnerFlatten", [inputs, new_rank]) as inner:
        if isinstance(inputs, SparseTensor):
            flat = _sparse_inner_flatten(inputs, new_rank)
        else:
            flat = _dense_inner_flatten(convert_to_tensor(inputs), new_rank)
    return collect_named_outputs(output_collections, inner, flat)


_inner_flatten = inner_flatten


def _sparse_inner_flatten(inputs: SparseTensor, new_rank: Any) -> SparseTensor:
    rank = inputs.dense_shape.get_shape().as_list()[0]
    if rank < new_rank:
        raise ValueError(f"Inputs has rank less than new_rank. {inputs} must have rank at least {new_rank}.")
    outer, last = inputs.dense_shape[: new_rank - 1], inputs.dense_shape[new_rank - 1 :]
    return sparse_reshape(inputs, array.concat((outer, [reduce_prod(last)]), 0))


def _dense_inner_flatten(inputs: Any, new_rank: Any) -> Any:
    enough = check_ops.assert_rank_at_least(inputs, new_rank, message="inputs has rank less than new_rank")
    with control_dependencies([enough]):
        outer = slicing.strided_slice(array.shape(inputs), [0], [new_rank - 1])
        flat = array.reshape(inputs, array.concat((outer, [-1]), 0))
    if isinstance(new_rank, int) and inputs.get_shape().dims is not None:
        sizes = inputs.get_shape().as_list()
        count: int | None = 1
        for size in sizes[new_rank - 1 :]:
            count = None if size is None or count is None else count * size
        flat.set_shape([*sizes[: new_rank - 1], count])
    return flat


@add_arg_scope
def dense_to_sparse(tensor: Any, eos_token: Any = 0, outputs_collections: Any = None, scope: Any = None) -> Any:
    """A sparse tensor of the elements that are not `eos_token`."""
    with variable_scope(scope, "dense_to_sparse", [tensor]) as inner:
        tensor = convert_to_tensor(tensor)
        places = slicing.where(math.not_equal(tensor, array.constant(eos_token, tensor.dtype)))
        shape = array.shape(tensor, out_type=dtypes.int64)
        outputs = SparseTensor(places, slicing.gather_nd(tensor, places), shape)
        return collect_named_outputs(outputs_collections, inner.name, outputs)


@add_arg_scope
def images_to_sequence(
    inputs: Any, data_format: str = "NHWC", outputs_collections: Any = None, scope: Any = None
) -> Any:
    """(batch, height, width, depth) → (width, batch · height, depth): each row of pixels a sequence."""
    first = layers_format(data_format, DATA_FORMATS_2D) == "channels_first"
    with name_scope(scope, "ImagesToSequence", [inputs]) as inner:
        inputs = convert_to_tensor(inputs)
        if first:
            inputs = array.transpose(inputs, [0, 2, 3, 1])
        *_, width, depth = inputs.get_shape().as_list()
        sizes = array.shape(inputs)
        rows = array.transpose(inputs, [2, 0, 1, 3])
        outputs = array.reshape(rows, [width, sizes[0] * sizes[1], depth])
        return collect_named_outputs(outputs_collections, inner, outputs)


@add_arg_scope
def sequence_to_images(
    inputs: Any,
    height: int,
    output_data_format: str = "channels_last",
    outputs_collections: Any = None,
    scope: Any = None,
) -> Any:
    """The reverse of `images_to_sequence`, for images of that height."""
    with name_scope(scope, "SequenceToImages", [inputs]) as inner:
        inputs = convert_to_tensor(inputs)
        width, rows, depth = inputs.get_shape().as_list()
        images = array.reshape(inputs, [width, -1 if rows is None else rows // height, height, depth])
        order = [1, 3, 2, 0] if output_data_format == "channels_first" else [1, 2, 0, 3]
        return collect_named_outputs(outputs_collections, inner, array.transpose(images, order))


# --- several layers ---


def _scope_of(layer: Any, default: str) -> str:
    """The name of a layer's function; a partial has that of what it calls."""
    named = layer if hasattr(layer, "__name__") else getattr(layer, "func", None)
    return str(getattr(named, "__name__", default))


def repeat(inputs: Any, repetitions: int, layer: Any, *args: Any, **kwargs: Any) -> Any:
    """The layer `repetitions` times, each with the same arguments, in scopes `<scope>/<scope>_1`, `…_2`, …."""
    scope = kwargs.pop("scope", None)
    with variable_scope(scope, "Repeat", [inputs]):
        outputs = convert_to_tensor(inputs)
        within = _scope_of(layer, "repeat") if scope is None else scope
        for turn in range(repetitions):
            outputs = layer(outputs, *args, **{**kwargs, "scope": f"{within}_{turn + 1}"})
        return outputs


def stack(inputs: Any, layer: Any, stack_args: Any, **kwargs: Any) -> Any:
    """The layer once for each of `stack_args`, its positional arguments. Raises ValueError for anything but a list."""
    scope = kwargs.pop("scope", None)
    if not isinstance(stack_args, (list, tuple)):
        raise ValueError("stack_args need to be a list or tuple")
    with variable_scope(scope, "Stack", [inputs]):
        outputs = convert_to_tensor(inputs)
        within = _scope_of(layer, "stack") if scope is None else scope
        for turn, given in enumerate(stack_args, 1):
            positional = given if isinstance(given, (list, tuple)) else [given]
            outputs = layer(outputs, *positional, **{**kwargs, "scope": f"{within}_{turn}"})
        return outputs
