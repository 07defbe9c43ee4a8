"""Metrics of values that `tf.metrics` lacks: counts, covariance, correlation and kappa.

Follows TensorFlow 1.15's contrib/metrics/python/ops/metric_ops.py and classification.py.
"""

from __future__ import annotations

from typing import Any

from tenfold.graph.default_scopes import control_dependencies, name_scope
from tenfold.metrics.streaming import aligned, collected, metric_variable
from tenfold.metrics.thresholds import counts_at_thresholds, even_thresholds
from tenfold.ops import array, math, slicing, state_ops
from tenfold.ops.confusion_matrix import confusion_matrix
from tenfold.ops.generated_ops import diag_part
from tenfold.ops.reductions import reduce_max, reduce_mean, reduce_sum
from tenfold.ops.variable_scope import variable_scope
from tenfold.ops.weights import broadcast_weights
from tenfold_core import dtypes

_EPSILON = 1e-7


def accuracy(predictions: Any, labels: Any, weights: Any = None, name: str | None = None) -> Any:
    """The share of predictions that equal the labels, in one batch; no variables.

    Raises ValueError for labels that are not bool, integer or string, and for another type of predictions.
    """
    if not (labels.dtype.is_integer or labels.dtype in (dtypes.bool_, dtypes.string)):
        raise ValueError(f"Labels should have bool, integer, or string dtype, not {labels.dtype!r}")
    if not labels.dtype.is_compatible_with(predictions.dtype):
        raise ValueError(
            f"Dtypes of predictions and labels should match. Given: predictions ({predictions.dtype!r}) and labels "
            f"({labels.dtype!r})"
        )
    with name_scope(name, "accuracy", values=[predictions, labels]):
        right = math.cast(math.equal(predictions, labels), dtypes.float32)
        if weights is None:
            return reduce_mean(right)
        counted = math.multiply(weights, array.ones_like(right))
        return math.div(reduce_sum(math.multiply(right, weights)), reduce_sum(counted))


def f1_score(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    num_thresholds: int = 200,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> tuple[Any, Any]:
    """The best F1 score of all thresholds."""
    with variable_scope(name, "f1", (labels, predictions, weights)):
        limits = even_thresholds(num_thresholds)
        values, updates = counts_at_thresholds(labels, predictions, limits, weights, ("tp", "fp", "fn"))

        def best(counts: dict[str, Any], which: str) -> Any:
            tp = counts["tp"]
            precision = math.div(tp, _EPSILON + tp + counts["fp"], name=f"precision_{which}")
            recall = math.div(tp, _EPSILON + tp + counts["fn"], name=f"recall_{which}")
            return reduce_max(2.0 * precision * recall / (precision + recall + _EPSILON))

        value = collected(best(values, "value"), metrics_collections)
        return value, collected(best(updates, "update"), updates_collections)


def count(
    values: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> tuple[Any, Any]:
    """How many values there were, or the sum of their weights."""
    with variable_scope(name, "count", (values, weights)):
        held = metric_variable([], dtypes.float32, name="count")
        if weights is None:
            number = math.cast(array.size(values), dtypes.float32)
        else:
            values, _, weights = aligned(math.cast(values, dtypes.float32), None, weights)
            number = reduce_sum(broadcast_weights(math.cast(weights, dtypes.float32), values))
        with control_dependencies([values]):
            update = state_ops.assign_add(held, number)
        value = collected(array.identity(held), metrics_collections)
        return value, collected(update, updates_collections)


def streaming_covariance(
    predictions: Any,
    labels: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> tuple[Any, Any]:
    """The covariance of the two over all batches, updated without keeping them; NaN of less than two values."""
    with variable_scope(name, "covariance", (predictions, labels, weights)):
        predictions, labels, weights = aligned(predictions, labels, weights)
        held = {
            short: metric_variable([], dtypes.float32, name=short)
            for short in ("count", "mean_prediction", "mean_label", "comoment")
        }
        if weights is None:
            size = math.cast(array.size(labels), dtypes.float32)
            factor = None
        else:
            factor = broadcast_weights(weights, labels)
            size = reduce_sum(factor)

        def weigh(x: Any) -> Any:
            return x if factor is None else math.multiply(x, factor)

        total = state_ops.assign_add(held["count"], size)
        before = total - size

        def moved(values: Any, mean: Any) -> tuple[Any, Any]:
            """(the batch's mean, the mean of all before it); the variable becomes the mean of all."""
            of_batch = math.div_no_nan(reduce_sum(weigh(values)), size)
            delta = math.div_no_nan((of_batch - mean) * size, total)
            return of_batch, state_ops.assign_add(mean, delta) - delta

        prediction, prediction_before = moved(predictions, held["mean_prediction"])
        label, label_before = moved(labels, held["mean_label"])
        residuals = reduce_sum(weigh((predictions - prediction) * (labels - label)))
        shift = (prediction_before - prediction) * (label_before - label) * (before * size / total)
        update = state_ops.assign_add(held["comoment"], residuals + shift)

        def covariance(which: str) -> Any:
            few = math.less_equal(held["count"], 1.0)
            value = math.truediv(held["comoment"], held["count"] - 1)
            return slicing.where(few, array.constant(float("nan")), value, name=which)

        value = covariance("covariance")
        with control_dependencies([update]):
            updated = covariance("update_op")
    return collected(value, metrics_collections), collected(updated, updates_collections)


def streaming_pearson_correlation(
    predictions: Any,
    labels: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> tuple[Any, Any]:
    """Pearson's correlation of the two over all batches."""
    with variable_scope(name, "pearson_r", (predictions, labels, weights)):
        predictions, labels, weights = aligned(predictions, labels, weights)
        if weights is not None:
            weights = broadcast_weights(weights, labels)
        both = streaming_covariance(predictions, labels, weights, name="covariance")
        one = streaming_covariance(predictions, predictions, weights, name="variance_predictions")
        other = streaming_covariance(labels, labels, weights, name="variance_labels")
        value, update = (
            math.truediv(c, math.multiply(math.sqrt(p), math.sqrt(q)), name=label)
            for c, p, q, label in zip(both, one, other, ("pearson_r", "update_op"), strict=True)
        )
    return collected(value, metrics_collections), collected(update, updates_collections)


def cohen_kappa(
    labels: Any,
    predictions_idx: Any,
    num_classes: int,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> tuple[Any, Any]:
    """Cohen's kappa: how far two raters agree beyond chance. Raises ValueError for less than two classes."""
    if num_classes < 2:
        raise ValueError(f"`num_classes` must be >= 2.Found: {num_classes}")
    with variable_scope(name, "cohen_kappa", (labels, predictions_idx, weights)):
        labels.get_shape().with_rank_at_most(2)
        if labels.get_shape().ndims == 2:
            labels = array.squeeze(labels, axis=[-1])
        predictions, labels, weights = aligned(predictions_idx, labels, weights)
        kind = dtypes.int64 if weights is None or weights.dtype.is_integer else dtypes.float32
        table = confusion_matrix(
            labels, predictions, num_classes=num_classes, weights=weights, dtype=kind, name="counts_in_table"
        )
        parts = {"po": diag_part(table), "pe_row": reduce_sum(table, axis=0), "pe_col": reduce_sum(table, axis=1)}
        held = {short: metric_variable((num_classes,), kind, name=short) for short in parts}
        updated = {short: state_ops.assign_add(held[short], part) for short, part in parts.items()}

        def kappa(given: dict[str, Any], which: str) -> Any:
            wide = dtypes.float64
            agreed, total = (math.cast(reduce_sum(given[short]), wide) for short in ("po", "pe_row"))
            products = math.cast(given["pe_row"] * given["pe_col"], wide)
            chance = reduce_sum(math.div_no_nan(products, total))
            return math.div_no_nan(agreed - chance, total - chance, name=which)

        value = collected(kappa(held, "value"), metrics_collections)
        return value, collected(kappa(updated, "update_op"), updates_collections)


def aggregate_metrics(*value_update_tuples: tuple[Any, Any]) -> tuple[list[Any], list[Any]]:
    """(values, updates) of several metrics. Raises ValueError for none."""
    if not value_update_tuples:
        raise ValueError("Expected at least one value_tensor/update_op pair")
    values, updates = zip(*value_update_tuples, strict=True)
    return list(values), list(updates)


def aggregate_metric_map(names_to_tuples: dict[str, tuple[Any, Any]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """(name → value, name → update) of {name: metric}."""
    values = {name: pair[0] for name, pair in names_to_tuples.items()}
    return values, {name: pair[1] for name, pair in names_to_tuples.items()}
