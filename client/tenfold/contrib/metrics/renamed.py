"""The metrics of `tf.metrics` under their contrib names, predictions before labels.

A table makes them: contrib's name, that of `tf.metrics`, and contrib's order of the arguments before `weights`.
Follows TensorFlow 1.15's contrib/metrics/python/ops/metric_ops.py.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from tenfold import metrics
from tenfold.metrics import top_k

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_PAIR = "predictions labels"

#: contrib's name: (function, its arguments in contrib's order before `weights`, `contrib=ours` where they differ).
_TABLE: dict[str, tuple[Callable[..., Any], str]] = {
    "streaming_accuracy": (metrics.accuracy, _PAIR),
    "streaming_false_negatives": (metrics.false_negatives, _PAIR),
    "streaming_false_positives": (metrics.false_positives, _PAIR),
    "streaming_mean": (metrics.mean, "values"),
    "streaming_mean_absolute_error": (metrics.mean_absolute_error, _PAIR),
    "streaming_mean_cosine_distance": (metrics.mean_cosine_distance, f"{_PAIR} dim"),
    "streaming_mean_iou": (metrics.mean_iou, f"{_PAIR} num_classes"),
    "streaming_mean_relative_error": (metrics.mean_relative_error, f"{_PAIR} normalizer"),
    "streaming_mean_squared_error": (metrics.mean_squared_error, _PAIR),
    "streaming_mean_tensor": (metrics.mean_tensor, "values"),
    "streaming_percentage_less": (metrics.percentage_below, "values threshold"),
    "streaming_precision": (metrics.precision, _PAIR),
    "streaming_precision_at_thresholds": (metrics.precision_at_thresholds, f"{_PAIR} thresholds"),
    "streaming_recall": (metrics.recall, _PAIR),
    "streaming_recall_at_thresholds": (metrics.recall_at_thresholds, f"{_PAIR} thresholds"),
    "streaming_root_mean_squared_error": (metrics.root_mean_squared_error, _PAIR),
    "streaming_sparse_average_precision_at_k": (metrics.average_precision_at_k, f"{_PAIR} k"),
    "streaming_sparse_average_precision_at_top_k": (
        top_k.average_precision_at_top_k,
        "top_k_predictions=predictions_idx labels",
    ),
    "streaming_true_negatives": (metrics.true_negatives, _PAIR),
    "streaming_true_positives": (metrics.true_positives, _PAIR),
}


def _renamed(name: str, function: Callable[..., Any], leading: Sequence[str]) -> Callable[..., Any]:
    ours = {row.partition("=")[0]: row.partition("=")[2] or row for row in leading}
    ours |= {each: each for each in ("weights", "metrics_collections", "updates_collections", "name")}
    known = inspect.signature(function).parameters
    signature = inspect.Signature([known[own].replace(name=contrib) for contrib, own in ours.items()])

    def metric(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs).arguments
        return function(**{ours[key]: value for key, value in given.items()})

    metric.__name__ = metric.__qualname__ = name
    metric.__doc__ = f"`tf.metrics.{function.__name__}` with arguments in the order {', '.join(ours)}."
    # who calls a metric by the names of its arguments, as learn's MetricSpec does, asks for them
    metric.__signature__ = signature  # type: ignore[attr-defined]
    return metric


_MADE = {name: _renamed(name, function, leading.split()) for name, (function, leading) in _TABLE.items()}


def __getattr__(name: str) -> Any:
    if name in _MADE:
        return _MADE[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def streaming_auc(
    predictions: Any,
    labels: Any,
    weights: Any = None,
    num_thresholds: int = 200,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    curve: str = "ROC",
    name: str | None = None,
) -> Any:
    """`tf.metrics.auc`."""
    return metrics.auc(
        labels, predictions, weights, num_thresholds, metrics_collections, updates_collections, curve, name
    )


def streaming_specificity_at_sensitivity(
    predictions: Any,
    labels: Any,
    sensitivity: float,
    weights: Any = None,
    num_thresholds: int = 200,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Any:
    """`tf.metrics.specificity_at_sensitivity`."""
    return metrics.specificity_at_sensitivity(
        labels, predictions, sensitivity, weights, num_thresholds, metrics_collections, updates_collections, name
    )


def streaming_sensitivity_at_specificity(
    predictions: Any,
    labels: Any,
    specificity: float,
    weights: Any = None,
    num_thresholds: int = 200,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Any:
    """`tf.metrics.sensitivity_at_specificity`."""
    return metrics.sensitivity_at_specificity(
        labels, predictions, specificity, weights, num_thresholds, metrics_collections, updates_collections, name
    )


def streaming_recall_at_k(
    predictions: Any,
    labels: Any,
    k: int,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Any:
    """The share of examples whose label, one each, is among the `k` largest predictions."""
    from tenfold.ops.math import cast
    from tenfold.ops.nn import in_top_k

    hits = cast(in_top_k(predictions, labels, k), "float32")
    return metrics.mean(hits, weights, metrics_collections, updates_collections, name or f"recall_at_{k}")


def streaming_sparse_recall_at_k(
    predictions: Any,
    labels: Any,
    k: int,
    class_id: int | None = None,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Any:
    """`tf.metrics.recall_at_k`."""
    return metrics.recall_at_k(
        labels, predictions, k, class_id, weights, metrics_collections, updates_collections, name
    )


def streaming_sparse_precision_at_k(
    predictions: Any,
    labels: Any,
    k: int,
    class_id: int | None = None,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Any:
    """`tf.metrics.precision_at_k`."""
    return metrics.precision_at_k(
        labels, predictions, k, class_id, weights, metrics_collections, updates_collections, name
    )


def streaming_sparse_precision_at_top_k(
    top_k_predictions: Any,
    labels: Any,
    class_id: int | None = None,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Any:
    """`tf.metrics.precision_at_top_k`."""
    return metrics.precision_at_top_k(
        labels,
        top_k_predictions,
        class_id=class_id,
        weights=weights,
        metrics_collections=metrics_collections,
        updates_collections=updates_collections,
        name=name,
    )


def sparse_recall_at_top_k(
    labels: Any,
    top_k_predictions: Any,
    class_id: int | None = None,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Any:
    """`tf.metrics.recall_at_top_k`."""
    return metrics.recall_at_top_k(
        labels,
        top_k_predictions,
        class_id=class_id,
        weights=weights,
        metrics_collections=metrics_collections,
        updates_collections=updates_collections,
        name=name,
    )
