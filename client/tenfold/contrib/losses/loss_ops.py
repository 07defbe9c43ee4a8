"""The losses of contrib, with predictions first and weights that stand for the leading dimensions.

They differ from those of `tf.losses` in the order of the arguments and in what weights of fewer dimensions mean; both
keep to the collection LOSSES. Follows TensorFlow 1.15's contrib/losses/python/losses/loss_ops.py.
"""

from __future__ import annotations

from typing import Any

from tenfold import losses as core_losses
from tenfold.contrib.arg_scope import add_arg_scope
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold.ops import array, math, nn, nn_losses, slicing
from tenfold.ops.array import _alias
from tenfold.ops.reductions import reduce_prod, reduce_sum
from tenfold_core import dtypes

add_loss = add_arg_scope(core_losses.add_loss)


def get_total_loss(add_regularization_losses: bool = True, name: str = "total_loss") -> Any:
    """The sum of all losses. Raises ValueError if there are none."""
    found = core_losses.get_losses()
    if add_regularization_losses:
        found += core_losses.get_regularization_losses()
    return math.add_n(found, name=name)


def _scaled_sum(losses: Any, weights: Any) -> Any:
    """The sum of the losses, each times the weight of its leading dimensions."""
    axes = list(range(weights.get_shape().ndims, losses.get_shape().ndims))
    return reduce_sum(math.multiply(reduce_sum(losses, axis=axes), weights))


def _num_present(losses: Any, weights: Any, *, per_batch: bool = False) -> Any:
    """How many elements have a weight that is not zero, in all or of each example."""
    rank = weights.get_shape().ndims
    if rank == 0:
        rows = array.reshape(slicing.slice(array.shape(losses), [0], [1]), [])
        each = math.div(math.cast(array.size(losses), dtypes.float32), math.cast(rows, dtypes.float32))
        each = slicing.where(math.equal(weights, 0), array.constant(0.0), each)
        present = math.multiply(array.ones(array.reshape(rows, [1])), each)
    else:
        counted = reduce_sum(math.cast(math.not_equal(weights, 0), dtypes.float32), axis=list(range(1, rank)))
        beyond = slicing.slice(array.shape(losses), [rank], [-1])
        present = math.multiply(counted, math.cast(reduce_prod(beyond), dtypes.float32))
    return present if per_batch else reduce_sum(present)


def compute_weighted_loss(losses: Any, weights: Any = 1.0, scope: Any = None) -> Any:
    """The sum of the weighted losses over the number of those with a weight; added to LOSSES.

    Weights have the losses' leading dimensions, one or more, or are a scalar. Raises ValueError for unknown ranks.
    """
    with name_scope(scope, "weighted_loss", [losses, weights]):
        losses = convert_to_tensor(losses)
        kind = losses.dtype
        losses = math.cast(losses, dtypes.float32)
        weights = math.cast(convert_to_tensor(weights), dtypes.float32)
        _check_ranks("losses", losses, weights)
        shape = weights.get_shape()
        if shape.ndims > 1 and shape.dims[-1].is_compatible_with(1):
            weights = array.squeeze(weights, [-1])
        total = _scaled_sum(losses, weights)
        mean = math.div_no_nan(total, _num_present(losses, weights), name="value")
        mean = math.cast(mean, kind)
        add_loss(mean)
        return mean


def _check_ranks(what: str, losses: Any, weights: Any) -> None:
    for name, each in ((what, losses), ("weights", weights)):
        if each.get_shape().ndims is None:
            raise ValueError(f"{name}.get_shape().ndims cannot be None")


def _floats(predictions: Any, labels: Any) -> tuple[Any, Any]:
    predictions.get_shape().assert_is_compatible_with(labels.get_shape())
    return math.cast(predictions, dtypes.float32), math.cast(labels, dtypes.float32)


def absolute_difference(predictions: Any, labels: Any = None, weights: Any = 1.0, scope: Any = None) -> Any:
    """Mean of |predictions - labels|."""
    with name_scope(scope, "absolute_difference", [predictions, labels, weights]) as inner:
        predictions, labels = _floats(predictions, labels)
        return compute_weighted_loss(math.abs(math.subtract(predictions, labels)), weights, scope=inner)


def sigmoid_cross_entropy(
    logits: Any, multi_class_labels: Any, weights: Any = 1.0, label_smoothing: float = 0, scope: Any = None
) -> Any:
    """Mean cross entropy of independent classes; `label_smoothing` moves labels towards 1/2."""
    with name_scope(scope, "sigmoid_cross_entropy_loss", [logits, multi_class_labels, weights]) as inner:
        logits.get_shape().assert_is_compatible_with(multi_class_labels.get_shape())
        labels = math.cast(multi_class_labels, logits.dtype)
        if label_smoothing > 0:
            labels = labels * (1 - label_smoothing) + 0.5 * label_smoothing
        losses = nn_losses.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits, name="xentropy")
        return compute_weighted_loss(losses, weights, scope=inner)


def softmax_cross_entropy(
    logits: Any, onehot_labels: Any, weights: Any = 1.0, label_smoothing: float = 0, scope: Any = None
) -> Any:
    """Mean cross entropy of one class of several; `label_smoothing` moves labels towards 1/classes."""
    with name_scope(scope, "softmax_cross_entropy_loss", [logits, onehot_labels, weights]) as inner:
        logits.get_shape().assert_is_compatible_with(onehot_labels.get_shape())
        labels = math.cast(onehot_labels, logits.dtype)
        if label_smoothing > 0:
            classes = math.cast(array.shape(labels)[1], logits.dtype)
            labels = labels * (1.0 - label_smoothing) + label_smoothing / classes
        losses = nn_losses.softmax_cross_entropy_with_logits(labels=labels, logits=logits, name="xentropy")
        return compute_weighted_loss(losses, weights, scope=inner)


def sparse_softmax_cross_entropy(logits: Any, labels: Any, weights: Any = 1.0, scope: Any = None) -> Any:
    """Mean cross entropy of classes given by number; labels (batch,) or (batch, 1)."""
    with name_scope(scope, "sparse_softmax_cross_entropy_loss", [logits, labels, weights]) as inner:
        labels = array.reshape(labels, shape=[array.shape(labels)[0]])
        losses = nn_losses.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits, name="xentropy")
        return compute_weighted_loss(losses, weights, scope=inner)


def log_loss(predictions: Any, labels: Any = None, weights: Any = 1.0, epsilon: float = 1e-7, scope: Any = None) -> Any:
    """Mean of -labels · log(predictions + epsilon) - (1 - labels) · log(1 - predictions + epsilon)."""
    with name_scope(scope, "log_loss", [predictions, labels, weights]) as inner:
        predictions, labels = _floats(predictions, labels)
        positive = math.multiply(labels, math.log(predictions + epsilon))
        negative = math.multiply(1 - labels, math.log(1 - predictions + epsilon))
        return compute_weighted_loss(-positive - negative, weights, scope=inner)


def hinge_loss(logits: Any, labels: Any = None, scope: Any = None) -> Any:
    """The hinge loss of each element, neither weighted nor added to LOSSES; labels are 0 or 1."""
    with name_scope(scope, "hinge_loss", [logits, labels]):
        logits.get_shape().assert_is_compatible_with(labels.get_shape())
        labels = math.cast(labels, dtypes.float32)
        ones = array.ones_like(labels)
        signs = math.subtract(2 * labels, ones)
        return nn.relu(math.subtract(ones, math.multiply(signs, logits)))


def mean_squared_error(predictions: Any, labels: Any = None, weights: Any = 1.0, scope: Any = None) -> Any:
    """Mean of (predictions - labels)²."""
    with name_scope(scope, "mean_squared_error", [predictions, labels, weights]) as inner:
        predictions, labels = _floats(predictions, labels)
        return compute_weighted_loss(math.squared_difference(predictions, labels), weights, scope=inner)


def mean_pairwise_squared_error(predictions: Any, labels: Any = None, weights: Any = 1.0, scope: Any = None) -> Any:
    """The squared difference of the differences of all pairs of elements of an example, averaged; added to LOSSES."""
    with name_scope(scope, "mean_pairwise_squared_error", [predictions, labels, weights]):
        predictions, labels = _floats(predictions, labels)
        weights = math.cast(convert_to_tensor(weights), dtypes.float32)
        differences = math.subtract(predictions, labels)
        _check_ranks("diffs", differences, weights)
        axes = list(range(1, differences.get_shape().ndims or 0))
        present = _num_present(differences, weights, per_batch=True)
        squares = reduce_sum(math.square(differences), axis=axes)
        total = reduce_sum(differences, axis=axes)
        first = 2.0 * math.div_no_nan(squares, present, name="value")
        second = 2.0 * math.div_no_nan(math.square(total), math.square(present), name="value")
        loss = _scaled_sum(first - second, weights)
        mean = slicing.where(reduce_sum(present) > 0, loss, array.zeros_like(loss), name="value")
        add_loss(mean)
        return mean


def cosine_distance(
    predictions: Any,
    labels: Any = None,
    axis: int | None = None,
    weights: Any = 1.0,
    scope: Any = None,
    dim: int | None = None,
) -> Any:
    """Mean of 1 - predictions · labels along `axis`; both are unit vectors. Raises ValueError without an axis."""
    axis = _alias("axis", axis, "dim", dim)
    if axis is None:
        raise ValueError("You must specify 'axis'.")
    with name_scope(scope, "cosine_distance_loss", [predictions, labels, weights]) as inner:
        predictions, labels = _floats(predictions, labels)
        losses = 1 - reduce_sum(math.multiply(predictions, labels), axis=[axis])
        return compute_weighted_loss(losses, weights, scope=inner)
