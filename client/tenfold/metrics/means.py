"""Metrics that are means: of values, of errors, of correct predictions. All use `mean`.

Part of `tf.metrics`; the shared helpers are in metrics/streaming.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.default_scopes import control_dependencies
from tenfold.metrics.streaming import aligned, collected, metric_variable
from tenfold.ops import array, generated_ops, math, slicing, state_ops
from tenfold.ops.confusion_matrix import confusion_matrix, remove_squeezable_dimensions
from tenfold.ops.variable_scope import variable_scope
from tenfold.ops.weights import broadcast_weights
from tenfold_core import dtypes

if TYPE_CHECKING:
    from tenfold.graph.tensor import Tensor


def mean(
    values: Any, weights: Any = None, metrics_collections: Any = None, updates_collections: Any = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The (weighted) mean of the values of all batches."""
    with variable_scope(name, "mean", (values, weights)):
        values = math.cast(values, dtypes.float32)
        total = metric_variable([], dtypes.float32, name="total")
        count = metric_variable([], dtypes.float32, name="count")
        if weights is None:
            number = math.cast(array.size(values), dtypes.float32)
        else:
            values, _, weights = aligned(values, None, weights)
            weights = broadcast_weights(math.cast(weights, dtypes.float32), values)
            values = math.multiply(values, weights)
            number = math.reduce_sum(weights)
        return _ratio(total, count, math.reduce_sum(values), number, values, metrics_collections, updates_collections)


def _ratio(
    total: Any, count: Any, more: Any, number: Any, after: Any, metrics_collections: Any, updates_collections: Any
) -> tuple[Any, Any]:
    """total / count, read before and after the update."""
    total_update = state_ops.assign_add(total, more)
    with control_dependencies([after]):
        count_update = state_ops.assign_add(count, number)
    value = math.div_no_nan(total, math.maximum(count, 0), name="value")
    collected(value, metrics_collections)
    update = math.div_no_nan(total_update, math.maximum(count_update, 0), name="update_op")
    return value, collected(update, updates_collections)


def mean_tensor(
    values: Any, weights: Any = None, metrics_collections: Any = None, updates_collections: Any = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The (weighted) mean of each element over all batches."""
    with variable_scope(name, "mean", (values, weights)):
        values = math.cast(values, dtypes.float32)
        total = metric_variable(values.shape, dtypes.float32, name="total_tensor")
        count = metric_variable(values.shape, dtypes.float32, name="count_tensor")
        number = array.ones_like(values)
        if weights is not None:
            values, _, weights = aligned(values, None, weights)
            weights = broadcast_weights(math.cast(weights, dtypes.float32), values)
            values = math.multiply(values, weights)
            number = math.multiply(number, weights)
        return _ratio(total, count, values, number, values, metrics_collections, updates_collections)


def accuracy(
    labels: Any, predictions: Any, weights: Any = None, metrics_collections: Any = None,
    updates_collections: Any = None, name: str | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The fraction of predictions that equal the labels."""
    predictions, labels, weights = aligned(predictions, labels, weights)
    predictions.shape.assert_is_compatible_with(labels.shape)
    if labels.dtype.base_dtype != predictions.dtype.base_dtype:
        predictions = math.cast(predictions, labels.dtype)
    right = math.cast(math.equal(predictions, labels), dtypes.float32)
    return mean(right, weights, metrics_collections, updates_collections, name or "accuracy")


def percentage_below(
    values: Any, threshold: Any, weights: Any = None, metrics_collections: Any = None,
    updates_collections: Any = None, name: str | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The fraction of values below the threshold."""
    below = math.cast(math.less(values, threshold), dtypes.float32)
    return mean(below, weights, metrics_collections, updates_collections, name or "percentage_below_threshold")


# --- errors ---


def mean_absolute_error(
    labels: Any, predictions: Any, weights: Any = None, metrics_collections: Any = None,
    updates_collections: Any = None, name: str | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The mean of abs(predictions - labels)."""
    predictions, labels, weights = aligned(predictions, labels, weights)
    errors = math.abs(predictions - labels)
    return mean(errors, weights, metrics_collections, updates_collections, name or "mean_absolute_error")


def mean_squared_error(
    labels: Any, predictions: Any, weights: Any = None, metrics_collections: Any = None,
    updates_collections: Any = None, name: str | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The mean of (predictions - labels) squared."""
    predictions, labels, weights = aligned(predictions, labels, weights)
    errors = math.squared_difference(labels, predictions)
    return mean(errors, weights, metrics_collections, updates_collections, name or "mean_squared_error")


def root_mean_squared_error(
    labels: Any, predictions: Any, weights: Any = None, metrics_collections: Any = None,
    updates_collections: Any = None, name: str | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The square root of the mean squared error."""
    predictions, labels, weights = aligned(predictions, labels, weights)
    value, update = mean_squared_error(labels, predictions, weights, None, None, name or "root_mean_squared_error")
    return collected(math.sqrt(value), metrics_collections), collected(math.sqrt(update), updates_collections)


def mean_relative_error(
    labels: Any, predictions: Any, normalizer: Any, weights: Any = None, metrics_collections: Any = None,
    updates_collections: Any = None, name: str | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The mean of abs(labels - predictions) / normalizer, 0 where that is 0."""
    predictions, labels, weights = aligned(predictions, labels, weights)
    predictions, normalizer = remove_squeezable_dimensions(predictions, normalizer)
    predictions.shape.assert_is_compatible_with(normalizer.shape)
    errors = slicing.where(
        math.equal(normalizer, 0.0),
        array.zeros_like(labels),
        math.div(math.abs(labels - predictions), normalizer),
    )
    return mean(errors, weights, metrics_collections, updates_collections, name or "mean_relative_error")


def mean_cosine_distance(
    labels: Any, predictions: Any, dim: int, weights: Any = None, metrics_collections: Any = None,
    updates_collections: Any = None, name: str | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """1 - the mean of the products of unit vectors along `dim`."""
    predictions, labels, weights = aligned(predictions, labels, weights)
    products = math.reduce_sum(math.multiply(predictions, labels), axis=[dim], keepdims=True)
    value, update = mean(products, weights, None, None, name or "mean_cosine_distance")
    value, update = math.subtract(1.0, value), math.subtract(1.0, update)
    return collected(value, metrics_collections), collected(update, updates_collections)


# --- classes ---


def _flat(tensor: Any) -> Any:
    return array.reshape(tensor, [-1]) if (tensor.shape.ndims or 2) > 1 else tensor


def mean_per_class_accuracy(
    labels: Any, predictions: Any, num_classes: int, weights: Any = None, metrics_collections: Any = None,
    updates_collections: Any = None, name: str | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The mean over the classes of each class's accuracy; the update gives the accuracy per class."""
    with variable_scope(name, "mean_accuracy", (predictions, labels, weights)):
        labels = _flat(math.cast(labels, dtypes.int64))
        predictions = _flat(predictions)
        predictions.shape.assert_is_compatible_with(labels.shape)
        total = metric_variable([num_classes], dtypes.float32, name="total")
        count = metric_variable([num_classes], dtypes.float32, name="count")
        ones = array.ones([array.size(labels)], dtypes.float32)
        if labels.dtype.base_dtype != predictions.dtype.base_dtype:
            predictions = math.cast(predictions, labels.dtype)
        right = math.cast(math.equal(predictions, labels), dtypes.float32)
        if weights is not None:
            weights = math.cast(_flat(weights), dtypes.float32)
            right, ones = right * weights, ones * weights
        total_update = state_ops.scatter_add(total, labels, ones)
        count_update = state_ops.scatter_add(count, labels, right)
        by_class = math.div_no_nan(count, math.maximum(total, 0))
        value = collected(math.reduce_mean(by_class, name="mean_accuracy"), metrics_collections)
        update = math.div_no_nan(count_update, math.maximum(total_update, 0), name="update_op")
        return value, collected(update, updates_collections)


def mean_iou(
    labels: Any, predictions: Any, num_classes: int, weights: Any = None, metrics_collections: Any = None,
    updates_collections: Any = None, name: str | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The mean over the classes of intersection over union; the update gives the confusion matrix."""
    with variable_scope(name, "mean_iou", (predictions, labels, weights)):
        predictions.shape.assert_is_compatible_with(labels.shape)
        matrix = metric_variable([num_classes, num_classes], dtypes.float64, name="total_confusion_matrix")
        current = confusion_matrix(
            _flat(math.cast(labels, dtypes.int64)),
            _flat(math.cast(predictions, dtypes.int64)),
            num_classes,
            weights=None if weights is None else _flat(weights),
            dtype=dtypes.float64,
        )
        update = state_ops.assign_add(matrix, current)
        rows: Tensor = math.cast(math.reduce_sum(matrix, 0), dtypes.float32)
        columns: Tensor = math.cast(math.reduce_sum(matrix, 1), dtypes.float32)
        diagonal: Tensor = math.cast(generated_ops.diag_part(matrix), dtypes.float32)
        union = rows + columns - diagonal
        present = math.reduce_sum(math.cast(math.not_equal(union, 0), dtypes.float32))
        union = slicing.where(math.greater(union, 0), union, array.ones_like(union))
        shares = math.div(diagonal, union)
        value = slicing.where(math.greater(present, 0), math.reduce_sum(shares, name="mean_iou") / present, 0)
        return collected(value, metrics_collections), collected(update, updates_collections)
