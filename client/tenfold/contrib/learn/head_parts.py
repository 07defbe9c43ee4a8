"""What the heads of `tf.contrib.learn` are made of: losses with weights, streaming metrics, a centered bias.

Used by head.py. A loss is a pair: what is trained with, and what is reported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold import logging, metrics, summary
from tenfold import losses as tf_losses
from tenfold.contrib.learn.keys import MetricKey
from tenfold.estimator.util import fn_args
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold.graph.sparse_tensor import SparseTensor, convert_to_tensor_or_sparse_tensor
from tenfold.ops import array, math, nn_losses
from tenfold.ops.sparse import sparse_reshape
from tenfold.ops.variables import Variable
from tenfold.ops.weights import broadcast_weights
from tenfold_core import dtypes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def the_labels(labels: Any, name: str | None) -> Any:
    """The labels of a head, of a dictionary those of its name."""
    found = labels[name] if isinstance(labels, dict) else labels
    return convert_to_tensor_or_sparse_tensor(found)


def weight_tensor(features: Mapping[str, Any], name: str | None) -> Any:
    """The examples' weights, [batch, 1]; None without a name. Raises ValueError for a missing feature."""
    if not name:
        return None
    if name not in features:
        raise ValueError(f"Weights {name} missing from features.")
    with name_scope(None, "weight_tensor"):
        weights = math.cast(features[name], dtypes.float32)
        if weights.get_shape().ndims != 1:
            return weights
        logging.warning("Weights %s has shape %s, expanding to make it 2d.", name, weights.get_shape())
        reshape = sparse_reshape if isinstance(weights, SparseTensor) else array.reshape
        return reshape(weights, (-1, 1))


# --- losses ---


def _weighted(losses: Any, weights: Any) -> tuple[Any, Any]:
    """The mean of the weighted losses, and that divided by the weights' sum."""
    with name_scope(None, "loss", (losses, weights)) as scope:
        if weights is None:
            mean = math.reduce_mean(losses, name=scope)
            return mean, mean
        weights = broadcast_weights(weights, losses)
        weighted = math.multiply(losses, weights)
        total = math.cast(math.reduce_sum(weights), dtypes.float32)
        normalized = math.div(math.reduce_sum(weighted), total, name="weighted_average_loss")
        return math.reduce_mean(weighted, name=scope), normalized


def _column(tensor: Any) -> Any:
    tensor = convert_to_tensor(tensor)
    return array.expand_dims(tensor, axis=1) if tensor.shape.ndims == 1 else tensor


def mean_squared_loss(labels: Any, logits: Any, weights: Any = None) -> tuple[Any, Any]:
    """Squared differences of numbers [batch] or [batch, n]."""
    with name_scope(None, "mean_squared_loss", (logits, labels)):
        labels, logits = _column(labels), _column(logits)
        logits.shape.assert_is_compatible_with(labels.shape)
        return _weighted(math.squared_difference(logits, math.cast(labels, dtypes.float32)), weights)


def poisson_loss(labels: Any, logits: Any, weights: Any = None) -> tuple[Any, Any]:
    """Of counts, whose logarithms are the logits."""
    with name_scope(None, "_poisson_loss", (logits, labels)):
        labels, logits = _column(labels), _column(logits)
        logits.shape.assert_is_compatible_with(labels.shape)
        return _weighted(nn_losses.log_poisson_loss(labels, logits, compute_full_loss=True), weights)


def log_loss(labels: Any, logits: Any, weights: Any = None) -> tuple[Any, Any]:
    """Of yes or no."""
    with name_scope(None, "log_loss_with_two_classes", (logits, labels)):
        labels = _column(math.cast(labels, dtypes.float32))
        return _weighted(
            nn_losses.sigmoid_cross_entropy_with_logits(labels=labels, logits=convert_to_tensor(logits)), weights
        )


def hinge_loss(labels: Any, logits: Any, weights: Any = None) -> tuple[Any, Any]:
    """Of yes or no, by the distance from the margin."""
    with name_scope(None, "hinge_loss", (logits, labels)):
        losses = tf_losses.hinge_loss(
            labels=array.reshape(labels, (-1, 1)), logits=logits, reduction=tf_losses.Reduction.NONE
        )
        return _weighted(losses, weights)


def softmax_loss(labels: Any, logits: Any, weights: Any = None) -> tuple[Any, Any]:
    """Of class ids [batch] or [batch, 1]. Raises ValueError unless integers."""
    with name_scope(None, "softmax_cross_entropy_loss", (logits, labels)):
        labels = convert_to_tensor(labels)
        if not labels.dtype.is_integer:
            raise ValueError(f"Labels dtype should be integer Instead got {labels.dtype}.")
        column = labels.shape.ndims == 2
        labels = array.squeeze(labels, axis=(1,)) if column else labels
        losses = nn_losses.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
        return _weighted(array.expand_dims(losses, axis=1) if column else losses, weights)


def sigmoid_loss(labels: Any, logits: Any, weights: Any = None) -> tuple[Any, Any]:
    """Of yes or no for each class."""
    with name_scope(None, "sigmoid_cross_entropy_loss", (logits, labels)):
        labels = math.cast(labels, dtypes.float32)
        return _weighted(nn_losses.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits), weights)


def checked_loss_fn(loss_fn: Any) -> Callable[..., tuple[Any, Any]] | None:
    """A user's loss as a pair. Raises ValueError unless it takes labels, logits and weights."""
    if not loss_fn:
        return None
    for name in ("labels", "logits", "weights"):
        if name not in fn_args(loss_fn):
            raise ValueError(f"Argument {name} not found in loss_fn.")

    def pair(labels: Any, logits: Any, weights: Any = None) -> tuple[Any, Any]:
        loss = loss_fn(labels, logits) if weights is None else loss_fn(labels, logits, weights)
        return loss, loss

    return pair


# --- the centered bias ---


def centered_bias(dimension: int, head_name: str | None) -> Any:
    """A bias of the logits, which is trained by itself."""
    bias = Variable(array.zeros(shape=(dimension,)), name="centered_bias_weight", trainable=True)
    for number in range(dimension):
        name = f"centered_bias/bias_{number}"
        summary.scalar(f"{name}/{head_name}" if head_name else name, bias[number])
    return bias


def centered_bias_step(bias: Any, batch_size: Any, labels: Any, loss_fn: Any, weights: Any) -> Any:
    """Trains the bias on the loss of predicting it alone."""
    from tenfold.train.adagrad import AdagradOptimizer

    with name_scope(None, "centered_bias_step", (labels,)) as scope:
        logits = array.reshape(array.tile(bias, (batch_size,)), (batch_size, array.shape(bias)[0]))
        loss = math.reduce_mean(loss_fn(labels, logits, weights)[0], name="training_loss")
        return AdagradOptimizer(0.1).minimize(loss, var_list=(bias,), name=scope)


# --- metrics ---


def _broadcast(values: Any, weights: Any) -> tuple[Any, Any]:
    values = math.cast(values, dtypes.float32)
    return values, None if weights is None else broadcast_weights(math.cast(weights, dtypes.float32), values)


def streaming_mean(values: Any, weights: Any = None, class_id: int | None = None) -> Any:
    """The weighted mean of values, or of those of one class."""
    values, weights = _broadcast(values, weights)
    if class_id is not None:
        values, weights = values[:, class_id], None if weights is None else weights[:, class_id]
    return metrics.mean(values, weights)


def streaming_auc(
    scores: Any, labels: Any, weights: Any = None, class_id: int | None = None, curve: str = "ROC"
) -> Any:
    """The area under a curve of all scores, or of those of one class."""
    scores, weights = _broadcast(scores, weights)
    labels = math.cast(labels, dtypes.bool_)
    if class_id is not None:
        scores, labels = scores[:, class_id], labels[:, class_id]
        weights = None if weights is None else weights[:, class_id]
    return metrics.auc(labels, scores, weights, curve=curve)


def of_class(class_id: int, scores: Any, logits: Any, labels: Any, weights: Any) -> dict[str, Any]:
    """The metrics of the scores and logits of one class."""
    return {
        MetricKey.CLASS_PROBABILITY_MEAN % class_id: streaming_mean(scores, weights, class_id),
        MetricKey.CLASS_LOGITS_MEAN % class_id: streaming_mean(logits, weights, class_id),
        MetricKey.CLASS_AUC % class_id: streaming_auc(scores, labels, weights, class_id),
        MetricKey.CLASS_AUC_PR % class_id: streaming_auc(scores, labels, weights, class_id, curve="PR"),
    }


def at_thresholds(thresholds: Any, scores: Any, labels: Any, weights: Any) -> dict[str, Any]:
    """Accuracy, precision and recall where a score is a yes from each threshold on."""
    found: dict[str, Any] = {}
    weights = None if weights is None else math.cast(weights, dtypes.float32)
    for threshold in thresholds:
        yes = math.cast(math.greater_equal(scores, threshold), dtypes.float32)
        found[MetricKey.ACCURACY_MEAN % threshold] = metrics.accuracy(labels, yes, weights)
        for key, metric in (
            (MetricKey.PRECISION_MEAN, metrics.precision_at_thresholds),
            (MetricKey.RECALL_MEAN, metrics.recall_at_thresholds),
        ):
            value, update = metric(labels, scores, (threshold,), weights)
            found[key % threshold] = (array.squeeze(value), array.squeeze(update))
    return found
