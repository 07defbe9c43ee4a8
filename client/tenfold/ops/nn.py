"""Neural networks: activations, the arithmetic of dense layers, softmax, dropout, top_k.

`tf.nn` is gathered in namespaces.py from here, nn_conv.py, nn_pool.py, nn_norm.py, nn_losses.py and others. Node names
follow TensorFlow 1.15.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.constant_value import known_value
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold.graph.op_builder import apply_op, tensor_op
from tenfold.ops import array, math, random
from tenfold.ops.array import _alias
from tenfold.ops.elementwise import sigmoid
from tenfold_core import dtypes

if TYPE_CHECKING:
    from tenfold.graph.argument_types import TensorLike
    from tenfold.graph.tensor import Tensor


# --- activations ---


def relu(features: TensorLike, name: str | None = None) -> Tensor:
    """max(features, 0)."""
    return tensor_op("Relu", name, features=features)


def relu6(features: TensorLike, name: str | None = None) -> Tensor:
    """min(max(features, 0), 6)."""
    return tensor_op("Relu6", name, features=features)


def elu(features: TensorLike, name: str | None = None) -> Tensor:
    """exp(features) - 1 where negative, features elsewhere."""
    return tensor_op("Elu", name, features=features)


def selu(features: TensorLike, name: str | None = None) -> Tensor:
    """The self-normalizing elu."""
    return tensor_op("Selu", name, features=features)


def leaky_relu(features: TensorLike, alpha: float = 0.2, name: str | None = None) -> Tensor:
    """alpha * features where negative, features elsewhere; integers become float32."""
    with name_scope(name, "LeakyRelu", [features]) as scope:
        features = convert_to_tensor(features, name="features")
        if features.dtype.is_integer:
            features = math.cast(features, dtypes.float32)
        return tensor_op("LeakyRelu", scope, features=features, alpha=alpha)


def softplus(features: TensorLike, name: str | None = None) -> Tensor:
    """log(exp(features) + 1)."""
    return tensor_op("Softplus", name, features=features)


def softsign(features: TensorLike, name: str | None = None) -> Tensor:
    """features / (abs(features) + 1)."""
    return tensor_op("Softsign", name, features=features)


def crelu(features: TensorLike, name: str | None = None, axis: int = -1) -> Tensor:
    """relu(features) and relu(-features), joined along `axis`."""
    with name_scope(name, "CRelu", [features]) as scope:
        features = convert_to_tensor(features, name="features")
        both = array.concat([features, math.negative(features)], axis, name=scope)
        return relu(both)


def swish(features: TensorLike) -> Tensor:
    """features * sigmoid(features)."""
    features = convert_to_tensor(features, name="features")
    return math.multiply(features, sigmoid(features))


def _over_last_axis(op_type: str, logits: Any, axis: int, name: str | None) -> Tensor:
    """A softmax over `axis`: for an axis other than the last, transposed before and after."""
    logits = convert_to_tensor(logits, name="logits")
    ndims = logits.shape.ndims
    if axis == -1 or (ndims is not None and axis == ndims - 1):
        return tensor_op(op_type, name, logits=logits)
    if ndims is None:
        raise ValueError(f"{op_type} over axis {axis} needs logits of known rank; got {logits!r}")
    if not -ndims <= axis < ndims:
        raise ValueError(f"axis {axis} is not in [{-ndims}, {ndims}) for logits of shape {logits.shape}")
    order = list(range(ndims))
    order[axis], order[-1] = order[-1], order[axis]
    with name_scope(name, op_type, [logits]) as scope:
        swapped = tensor_op(op_type, None, logits=array.transpose(logits, order))
        return array.transpose(swapped, order, name=scope)


def softmax(logits: TensorLike, axis: int | None = None, name: str | None = None, dim: int | None = None) -> Tensor:
    """exp(logits) / sum(exp(logits)) along `axis` (default: the last)."""
    axis = _alias("axis", axis, "dim", dim)
    return _over_last_axis("Softmax", logits, -1 if axis is None else axis, name)


def log_softmax(logits: TensorLike, axis: int | None = None, name: str | None = None, dim: int | None = None) -> Tensor:
    """logits - log(sum(exp(logits))) along `axis` (default: the last)."""
    axis = _alias("axis", axis, "dim", dim)
    return _over_last_axis("LogSoftmax", logits, -1 if axis is None else axis, name)


# --- arithmetic of layers ---


def bias_add(value: TensorLike, bias: Any, data_format: str | None = None, name: str | None = None) -> Tensor:
    """Adds a vector to the last dimension, or to the channels of "NCHW". Raises ValueError for another format."""
    formats = {None: "NHWC", "NCHW": "NCHW", "NHWC": "NHWC", "N...C": "NHWC", "NC...": "NCHW"}
    if data_format not in formats:
        raise ValueError(f"data_format must be of the form `N...C` or `NC...`, not {data_format!r}")
    with name_scope(name, "BiasAdd", [value, bias]) as scope:
        value = convert_to_tensor(value, name="input")
        bias = convert_to_tensor(bias, dtype=value.dtype.base_dtype, name="bias")
        return tensor_op("BiasAdd", scope, value=value, bias=bias, data_format=formats[data_format])


def xw_plus_b(x: TensorLike, weights: TensorLike, biases: TensorLike, name: str | None = None) -> Tensor:
    """matmul(x, weights) + biases."""
    with name_scope(name, "xw_plus_b", [x, weights, biases]) as scope:
        x = convert_to_tensor(x, name="x")
        weights = convert_to_tensor(weights, name="weights")
        biases = convert_to_tensor(biases, name="biases")
        return bias_add(math.matmul(x, weights), biases, name=scope)


def relu_layer(x: TensorLike, weights: TensorLike, biases: TensorLike, name: str | None = None) -> Tensor:
    """relu(matmul(x, weights) + biases)."""
    with name_scope(name, "relu_layer", [x, weights, biases]) as scope:
        return relu(bias_add(math.matmul(x, weights), biases), name=scope)


def dropout(
    x: TensorLike,
    keep_prob: Any = None,
    noise_shape: Any = None,
    seed: int | None = None,
    name: str | None = None,
    rate: Any = None,
) -> Tensor:
    """Zeroes each element with probability `rate` (or 1 - `keep_prob`) and scales the others up by 1 / (1 - rate)."""
    if (rate is None) == (keep_prob is None):
        raise ValueError("dropout takes one of rate and keep_prob")
    with name_scope(name, "dropout", [x]):
        features = convert_to_tensor(x, name="x")
        if not features.dtype.is_floating:
            raise ValueError(
                "x has to be a floating point tensor since it's going to be scaled. "
                f"Got a {features.dtype} tensor instead."
            )
        dropped: Any = rate
        if rate is None:
            dropped = 1.0 - keep_prob
        if isinstance(dropped, (int, float)) and not 0 <= dropped < 1:
            raise ValueError(f"rate must be a scalar tensor or a float in the range [0, 1), got {dropped:g}")
        if not hasattr(dropped, "dtype") and dropped == 0:
            return features
        dropped = convert_to_tensor(dropped, dtype=features.dtype.base_dtype, name="rate")
        if known_value(dropped) == 0:
            return features
        sizes = array.shape(features) if noise_shape is None else noise_shape
        drawn = random.random_uniform(sizes, seed=seed, dtype=features.dtype)
        scale = 1.0 / (1.0 - dropped)
        kept = drawn >= dropped
        result: Tensor = features * scale * math.cast(kept, features.dtype)
        result.set_shape(features.shape)
        return result


def compute_average_loss(per_example_loss: Any, sample_weight: Any = None, global_batch_size: Any = None) -> Tensor:
    """The sum of the (weighted) losses of the examples over `global_batch_size`, by default their number."""
    losses = convert_to_tensor(per_example_loss)
    if sample_weight is not None:
        losses = math.multiply(losses, math.cast(convert_to_tensor(sample_weight), losses.dtype))
    count = array.shape(losses)[0] if global_batch_size is None else global_batch_size
    return math.truediv(math.reduce_sum(losses), math.cast(count, losses.dtype))


def scale_regularization_loss(regularization_loss: Any) -> Tensor:
    """The sum of the regularization losses; there is one replica, so nothing is scaled."""
    return math.reduce_sum(regularization_loss)


# --- evaluation ---


def top_k(input: TensorLike, k: Any = 1, sorted: bool = True, name: str | None = None) -> Any:
    """`(values, indices)` of the k largest elements of each row."""
    return apply_op("TopKV2", name, input=input, k=k, sorted=sorted)


def in_top_k(predictions: Any, targets: TensorLike, k: Any, name: str | None = None) -> Tensor:
    """True for each row whose target is among its k largest predictions."""
    with name_scope(name, "in_top_k"):
        targets = convert_to_tensor(targets, preferred_dtype=dtypes.int32)
        return tensor_op(
            "InTopKV2", None, predictions=predictions, targets=targets, k=convert_to_tensor(k, targets.dtype)
        )


def zero_fraction(value: TensorLike, name: str | None = None) -> Tensor:
    """The fraction of zeros in `value`."""
    with name_scope(name, "zero_fraction", [value]):
        value = convert_to_tensor(value, name="value")
        zero = array.constant(0, dtype=value.dtype.base_dtype, name="zero")
        return math.reduce_mean(math.cast(math.equal(value, zero), dtypes.float32))
