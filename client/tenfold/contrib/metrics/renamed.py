"""The metrics of `tf.metrics` under their contrib names, predictions before labels.

A table makes them: contrib's name, that of `tf.metrics`, and contrib's order of the arguments before `weights`.
Follows TensorFlow 1.15's contrib/metrics/python/ops/metric_ops.py.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from tenfold import metrics
from tenfold.metrics import top_k
from tenfold.named import named

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_PAIR = "predictions labels"
_COLLECTIONS = "metrics_collections updates_collections"

#: contrib's name: (function, its arguments in contrib's order before `weights`, `contrib=ours` where they differ). A
#: row that names `weights` has all of them.
_TABLE: dict[str, tuple[Callable[..., Any], str]] = {
    "sparse_recall_at_top_k": (
        metrics.recall_at_top_k,
        f"labels top_k_predictions=predictions_idx class_id weights {_COLLECTIONS} name",
    ),
    "streaming_accuracy": (metrics.accuracy, _PAIR),
    "streaming_auc": (metrics.auc, f"{_PAIR} weights num_thresholds {_COLLECTIONS} curve name"),
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
    "streaming_sensitivity_at_specificity": (
        metrics.sensitivity_at_specificity,
        f"{_PAIR} specificity weights num_thresholds {_COLLECTIONS} name",
    ),
    "streaming_sparse_average_precision_at_k": (metrics.average_precision_at_k, f"{_PAIR} k"),
    "streaming_sparse_average_precision_at_top_k": (
        top_k.average_precision_at_top_k,
        "top_k_predictions=predictions_idx labels",
    ),
    "streaming_sparse_precision_at_k": (metrics.precision_at_k, f"{_PAIR} k class_id weights {_COLLECTIONS} name"),
    "streaming_sparse_precision_at_top_k": (
        metrics.precision_at_top_k,
        f"top_k_predictions=predictions_idx labels class_id weights {_COLLECTIONS} name",
    ),
    "streaming_sparse_recall_at_k": (metrics.recall_at_k, f"{_PAIR} k class_id weights {_COLLECTIONS} name"),
    "streaming_specificity_at_sensitivity": (
        metrics.specificity_at_sensitivity,
        f"{_PAIR} sensitivity weights num_thresholds {_COLLECTIONS} name",
    ),
    "streaming_true_negatives": (metrics.true_negatives, _PAIR),
    "streaming_true_positives": (metrics.true_positives, _PAIR),
}


def _renamed(name: str, function: Callable[..., Any], leading: Sequence[str]) -> Callable[..., Any]:
    ours = {row.partition("=")[0]: row.partition("=")[2] or row for row in leading}
    doc = f"`tf.metrics.{function.__name__}`."
    if "weights" not in ours:
        ours |= {each: each for each in ("weights", *_COLLECTIONS.split(), "name")}
        doc = f"{doc[:-1]} with arguments in the order {', '.join(ours)}."
    known = inspect.signature(function).parameters
    parameters = [known[own].replace(name=contrib) for contrib, own in ours.items()]
    signature = inspect.Signature(parameters, return_annotation="Any")

    def metric(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs).arguments
        return function(**{ours[key]: value for key, value in given.items()})

    # who calls a metric by the names of its arguments, as learn's MetricSpec does, asks for them
    metric.__signature__ = signature  # type: ignore[attr-defined]
    return named(metric, name, doc)


_MADE = {name: _renamed(name, function, leading.split()) for name, (function, leading) in _TABLE.items()}


def __getattr__(name: str) -> Any:
    if name in _MADE:
        return _MADE[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


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
