"""`tf.contrib.layers`, the parts that guides use: layers with contrib's names, initializers, regularizers.

The layers use `tf.layers`. As in contrib, their variables are called `weights` and `biases`, and are in
MODEL_VARIABLES too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.contrib.arg_scope import add_arg_scope
from tenfold.graph.collections import GraphKeys
from tenfold.graph.default_scopes import name_scope
from tenfold.graph.default_stack import get_default_graph
from tenfold.layers import convolutional, core, normalization
from tenfold.ops import array, init_ops, math, nn, nn_losses, nn_pool, slicing
from tenfold.ops.init_ops import xavier_initializer
from tenfold.ops.variable_scope import variable_scope

if TYPE_CHECKING:
    from tenfold.layers.base import Layer

__all__ = [
    "apply_regularization", "avg_pool2d", "batch_norm", "conv2d", "convolution2d", "dropout", "flatten",
    "fully_connected", "l1_l2_regularizer", "l1_regularizer", "l2_regularizer", "linear", "max_pool2d",
    "one_hot_encoding", "relu", "softmax", "sum_regularizer", "summarize_activation", "summarize_activations",
    "summarize_collection", "summarize_tensor", "summarize_tensors", "variance_scaling_initializer",
    "xavier_initializer", "xavier_initializer_conv2d",
]  # fmt: skip

xavier_initializer_conv2d = xavier_initializer


def variance_scaling_initializer(
    factor: float = 2.0, mode: str = "FAN_IN", uniform: bool = False, seed: int | None = None, dtype: Any = "float32"
) -> Any:
    """Random with variance `factor / n`, where n is the fan in, the fan out or their mean (`mode`)."""
    if mode not in ("FAN_IN", "FAN_OUT", "FAN_AVG"):
        raise TypeError(f"Unknown mode {mode} [FAN_IN, FAN_OUT, FAN_AVG]")
    kind = "uniform" if uniform else "truncated_normal"
    return init_ops.VarianceScaling(factor, mode.lower(), kind, seed, dtype)


# --- regularizers ---


def _checked(scale: float) -> float:
    if isinstance(scale, int):
        raise ValueError(f"scale cannot be an integer: {scale}")
    if scale < 0.0:
        raise ValueError(f"Setting a scale less than 0 on a regularizer: {scale:g}")
    return scale


def l1_regularizer(scale: float, scope: str | None = None) -> Any:
    """scale * sum(abs(weights)). Raises ValueError for an integer or negative scale."""
    if _checked(scale) == 0.0:
        return lambda _: None

    def l1(weights: Any, name: str | None = None) -> Any:
        with name_scope(scope, "l1_regularizer", [weights]) as node:
            return math.multiply(scale, math.reduce_sum(math.abs(weights)), name=node)

    return l1


def l2_regularizer(scale: float, scope: str | None = None) -> Any:
    """scale * sum(weights ** 2) / 2. Raises ValueError for an integer or negative scale."""
    if _checked(scale) == 0.0:
        return lambda _: None

    def l2(weights: Any) -> Any:
        with name_scope(scope, "l2_regularizer", [weights]) as node:
            return math.multiply(scale, nn_losses.l2_loss(weights), name=node)

    return l2


def sum_regularizer(regularizer_list: Any, scope: str | None = None) -> Any:
    """The sum of several regularizers; None for an empty list."""
    kept = [regularizer for regularizer in regularizer_list if regularizer is not None]
    if not kept:
        return None

    def total(weights: Any) -> Any:
        with name_scope(scope, "sum_regularizer", [weights]) as node:
            parts = [part for part in (regularizer(weights) for regularizer in kept) if part is not None]
            return math.add_n(parts, name=node) if parts else None

    return total


def l1_l2_regularizer(scale_l1: float = 1.0, scale_l2: float = 1.0, scope: str | None = None) -> Any:
    """The sum of an L1 and an L2 regularizer."""
    return sum_regularizer([l1_regularizer(scale_l1), l2_regularizer(scale_l2)], scope or "l1_l2_regularizer")


def apply_regularization(regularizer: Any, weights_list: Any = None) -> Any:
    """The sum of the losses of the weights (default: the collection WEIGHTS), added to REGULARIZATION_LOSSES."""
    weights_list = get_default_graph().get_collection(GraphKeys.WEIGHTS) if weights_list is None else weights_list
    if not weights_list:
        raise ValueError("No weights to regularize.")
    with name_scope("get_regularization_penalty"):
        losses = [loss for loss in (regularizer(weights) for weights in weights_list) if loss is not None]
        total = math.add_n(losses) if losses else array.constant(0.0)
        get_default_graph().add_to_collection(GraphKeys.REGULARIZATION_LOSSES, total)
        return total


# --- layers ---

#: Variable name in `tf.layers` → name in contrib.
_NAMES = {"kernel": "weights", "bias": "biases"}


def _contrib_names(getter: Any, name: str, *args: Any, **kwargs: Any) -> Any:
    head, slash, last = name.rpartition("/")
    return getter(head + slash + _NAMES.get(last, last), *args, **kwargs)


def _collected(outputs: Any, layer: Layer | None, outputs_collections: Any, variables_collections: Any) -> Any:
    """The outputs, with them and the layer's variables added to the collections."""
    graph = get_default_graph()
    for variable in layer.variables if layer is not None else ():
        keys = [GraphKeys.MODEL_VARIABLES]
        if isinstance(variables_collections, dict):
            keys += variables_collections.get(variable.op.name.split("/")[-1], [])
        else:
            keys += variables_collections or []
        for key in keys:
            if not any(variable is other for other in graph.get_collection_ref(key)):
                graph.add_to_collection(key, variable)
    for key in [outputs_collections] if isinstance(outputs_collections, str) else outputs_collections or ():
        graph.add_to_collection(key, outputs)
    return outputs


def _normalized(outputs: Any, normalizer_fn: Any, normalizer_params: Any, activation_fn: Any) -> Any:
    if normalizer_fn is not None:
        outputs = normalizer_fn(outputs, **(normalizer_params or {}))
    return outputs if activation_fn is None else activation_fn(outputs)


@add_arg_scope
def fully_connected(
    inputs: Any,
    num_outputs: int,
    activation_fn: Any = nn.relu,
    normalizer_fn: Any = None,
    normalizer_params: Any = None,
    weights_initializer: Any = xavier_initializer(),  # noqa: B008 - as TensorFlow's signature says
    weights_regularizer: Any = None,
    biases_initializer: Any = init_ops.zeros_initializer(),  # noqa: B008
    biases_regularizer: Any = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
) -> Any:
    """activation_fn(inputs · weights + biases); a normalizer replaces the biases."""
    if not isinstance(num_outputs, int):
        raise ValueError(f"num_outputs type should be one of (int, long), got {type(num_outputs)}.")
    with variable_scope(scope, "fully_connected", [inputs], reuse=reuse, custom_getter=_contrib_names) as inner:
        layer = core.Dense(
            num_outputs,
            use_bias=normalizer_fn is None and biases_initializer is not None,
            kernel_initializer=weights_initializer,
            bias_initializer=biases_initializer,
            kernel_regularizer=weights_regularizer,
            bias_regularizer=biases_regularizer,
            trainable=trainable,
            _scope=inner,
            _reuse=reuse,
        )
        outputs = layer(inputs)
        _collected(outputs, layer, None, variables_collections)
        outputs = _normalized(outputs, normalizer_fn, normalizer_params, activation_fn)
        return _collected(outputs, None, outputs_collections, None)


def linear(*args: Any, **kwargs: Any) -> Any:
    """`fully_connected` without an activation."""
    return fully_connected(*args, **{"activation_fn": None, **kwargs})


def relu(*args: Any, **kwargs: Any) -> Any:
    """`fully_connected` with relu."""
    return fully_connected(*args, **{"activation_fn": nn.relu, **kwargs})


@add_arg_scope
def conv2d(
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
    weights_initializer: Any = xavier_initializer(),  # noqa: B008 - as TensorFlow's signature says
    weights_regularizer: Any = None,
    biases_initializer: Any = init_ops.zeros_initializer(),  # noqa: B008
    biases_regularizer: Any = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
) -> Any:
    """activation_fn(convolution + biases) over height and width; a normalizer replaces the biases."""
    if data_format not in (None, "NHWC", "NCHW"):
        raise ValueError(f"Invalid data_format: {data_format!r}")
    with variable_scope(scope, "Conv", [inputs], reuse=reuse, custom_getter=_contrib_names) as inner:
        layer = convolutional.Conv2D(
            num_outputs,
            kernel_size,
            strides=stride,
            padding=padding,
            data_format="channels_first" if data_format == "NCHW" else "channels_last",
            dilation_rate=rate,
            use_bias=normalizer_fn is None and biases_initializer is not None,
            kernel_initializer=weights_initializer,
            bias_initializer=biases_initializer,
            kernel_regularizer=weights_regularizer,
            bias_regularizer=biases_regularizer,
            trainable=trainable,
            _scope=inner,
            _reuse=reuse,
        )
        outputs = layer(inputs)
        _collected(outputs, layer, None, variables_collections)
        outputs = _normalized(outputs, normalizer_fn, normalizer_params, activation_fn)
        return _collected(outputs, None, outputs_collections, None)


convolution2d = conv2d


def _pool2d(function: Any, name: str) -> Any:
    def pool(
        inputs: Any,
        kernel_size: Any,
        stride: Any = 2,
        padding: str = "VALID",
        data_format: str = "NHWC",
        outputs_collections: Any = None,
        scope: str | None = None,
    ) -> Any:
        with name_scope(scope, name, [inputs]):
            sizes = [kernel_size] * 2 if isinstance(kernel_size, int) else list(kernel_size)
            steps = [stride] * 2 if isinstance(stride, int) else list(stride)
            return _collected(function(inputs, sizes, steps, padding, data_format), None, outputs_collections, None)

    pool.__qualname__ = name  # The key of the function in an arg_scope.
    return pool


max_pool2d = add_arg_scope(_pool2d(nn_pool.max_pool, "MaxPool2D"))
avg_pool2d = add_arg_scope(_pool2d(nn_pool.avg_pool, "AvgPool2D"))


@add_arg_scope
def batch_norm(
    inputs: Any,
    decay: float = 0.999,
    center: bool = True,
    scale: bool = False,
    epsilon: float = 0.001,
    activation_fn: Any = None,
    param_initializers: Any = None,
    param_regularizers: Any = None,
    updates_collections: Any = GraphKeys.UPDATE_OPS,
    is_training: Any = True,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    batch_weights: Any = None,
    fused: bool | None = None,
    data_format: str = "NHWC",
    zero_debias_moving_mean: bool = False,
    scope: Any = None,
    renorm: bool = False,
    renorm_clipping: Any = None,
    renorm_decay: float = 0.99,
    adjustment: Any = None,
) -> Any:
    """Batch normalization; without `updates_collections` the output depends on the updates of the averages.

    Raises ValueError for `batch_weights` and `zero_debias_moving_mean`, which Tenfold does not have.
    """
    if batch_weights is not None or zero_debias_moving_mean:
        raise ValueError("batch_norm takes neither batch_weights nor zero_debias_moving_mean in Tenfold")
    made = {f"{name}_initializer": value for name, value in (param_initializers or {}).items()}
    made |= {f"{name}_regularizer": value for name, value in (param_regularizers or {}).items()}
    graph = get_default_graph()
    with variable_scope(scope, "BatchNorm", [inputs], reuse=reuse) as inner:
        layer = normalization.BatchNormalization(
            axis=1 if data_format == "NCHW" else -1,
            momentum=decay,
            epsilon=epsilon,
            center=center,
            scale=scale,
            trainable=trainable,
            renorm=renorm,
            renorm_clipping=renorm_clipping,
            renorm_momentum=renorm_decay,
            adjustment=adjustment,
            fused=fused,
            _scope=inner,
            _reuse=reuse,
            **made,
        )
        outputs = layer(inputs, training=is_training)
        _collected(outputs, layer, None, variables_collections)
        if updates_collections != GraphKeys.UPDATE_OPS:
            held = graph.get_collection_ref(GraphKeys.UPDATE_OPS)
            held[:] = [op for op in held if not any(op is update for update in layer.updates)]
            if updates_collections is None:
                with graph.control_dependencies(layer.updates):
                    outputs = array.identity(outputs)
            else:
                for update in layer.updates:
                    graph.add_to_collection(updates_collections, update)
        outputs = outputs if activation_fn is None else activation_fn(outputs)
        return _collected(outputs, None, outputs_collections, None)


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
    with variable_scope(scope, "Dropout", [inputs], custom_getter=_contrib_names) as inner:
        layer = core.Dropout(1 - keep_prob, noise_shape=noise_shape, seed=seed, _scope=inner)
        return _collected(layer(inputs, training=is_training), None, outputs_collections, None)


@add_arg_scope
def flatten(inputs: Any, outputs_collections: Any = None, scope: str | None = None) -> Any:
    """Makes each example a vector."""
    with name_scope(scope, "Flatten", [inputs]):
        return _collected(core.flatten(inputs), None, outputs_collections, None)


@add_arg_scope
def softmax(logits: Any, scope: str | None = None) -> Any:
    """The softmax over the last dimension."""
    with name_scope(scope, "softmax", [logits]):
        return nn.softmax(logits)


@add_arg_scope
def one_hot_encoding(
    labels: Any,
    num_classes: int,
    on_value: float = 1.0,
    off_value: float = 0.0,
    outputs_collections: Any = None,
    scope: str | None = None,
) -> Any:
    """One vector of `num_classes` for each label."""
    with name_scope(scope, "OneHotEncoding", [labels]):
        vectors = slicing.one_hot(math.cast(labels, "int64"), num_classes, on_value=on_value, off_value=off_value)
        return _collected(vectors, None, outputs_collections, None)


# --- summaries ---


def summarize_tensor(tensor: Any, tag: str | None = None) -> Any:
    """A scalar summary of a scalar, a histogram of anything else, under the tensor's name."""
    from tenfold import summary

    name = tag or tensor.op.name
    return summary.scalar(name, tensor) if tensor.shape.ndims == 0 else summary.histogram(name, tensor)


def summarize_activation(op: Any) -> Any:
    """The fraction of zeros, if the last op is a relu, and a histogram of the activations."""
    from tenfold import summary

    if op.op.type in ("Relu", "Softplus", "Relu6"):
        summary.scalar(f"{op.op.name}/zeros", nn.zero_fraction(op))
    return summary.histogram(f"{op.op.name}/activation", op)


def summarize_tensors(tensors: Any, summarizer: Any = summarize_tensor) -> list[Any]:
    """One summary each."""
    return [summarizer(tensor) for tensor in tensors]


def summarize_collection(
    collection: str, name_filter: str | None = None, summarizer: Any = summarize_tensor
) -> list[Any]:
    """One summary for each tensor of a collection."""
    return summarize_tensors(get_default_graph().get_collection(collection, name_filter), summarizer)


def summarize_activations(name_filter: str | None = None, summarizer: Any = summarize_activation) -> list[Any]:
    """One summary for each tensor of ACTIVATIONS."""
    return summarize_collection(GraphKeys.ACTIVATIONS, name_filter, summarizer)
