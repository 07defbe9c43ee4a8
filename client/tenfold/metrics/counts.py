"""Metrics of binary decisions: counts of true and false positives and negatives, precision, recall.

Part of `tf.metrics`; the shared helpers are in metrics/streaming.py, metrics of scores in metrics/thresholds.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.metrics.streaming import aligned, collected, count_where
from tenfold.named import named
from tenfold.ops import math, slicing
from tenfold.ops.variable_scope import variable_scope
from tenfold_core import dtypes

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold.graph.tensor import Tensor


def _booleans(predictions: Any, labels: Any, weights: Any) -> tuple[Any, Any, Any]:
    return aligned(math.cast(predictions, dtypes.bool_), math.cast(labels, dtypes.bool_), weights)


def _count(kind: str, label: bool, prediction: bool, doc: str) -> Callable[..., Any]:
    """The metric that counts the examples with this label and this prediction."""

    def metric(
        labels: Any, predictions: Any, weights: Any = None, metrics_collections: Any = None,
        updates_collections: Any = None, name: str | None = None,
    ) -> tuple[Any, Any]:  # fmt: skip
        with variable_scope(name, kind, (predictions, labels, weights)):
            predictions, labels, weights = _booleans(predictions, labels, weights)
            chosen = math.logical_and(math.equal(labels, label), math.equal(predictions, prediction))
            return count_where(chosen, weights, metrics_collections, updates_collections)

    return named(metric, kind, doc)


true_positives = _count("true_positives", True, True, "How many positives were recognized.")
false_positives = _count("false_positives", False, True, "How many negatives were taken for positives.")
true_negatives = _count("true_negatives", False, False, "How many negatives were recognized.")
false_negatives = _count("false_negatives", True, False, "How many positives were taken for negatives.")


def _share(part: Any, rest: Any, name: str) -> Tensor:
    return slicing.where(math.greater(part + rest, 0), math.div(part, part + rest), 0, name)


def _ratio(
    kind: str, other: Callable[..., Any], labels: Any, predictions: Any, weights: Any, metrics_collections: Any,
    updates_collections: Any, name: str | None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    with variable_scope(name, kind, (predictions, labels, weights)):
        predictions, labels, weights = _booleans(predictions, labels, weights)
        hits, hits_update = true_positives(labels, predictions, weights)
        rest, rest_update = other(labels, predictions, weights)
        value = collected(_share(hits, rest, "value"), metrics_collections)
        return value, collected(_share(hits_update, rest_update, "update_op"), updates_collections)


def precision(
    labels: Any, predictions: Any, weights: Any = None, metrics_collections: Any = None,
    updates_collections: Any = None, name: str | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """True positives over predicted positives."""
    return _ratio(
        "precision", false_positives, labels, predictions, weights, metrics_collections, updates_collections, name
    )


def recall(
    labels: Any, predictions: Any, weights: Any = None, metrics_collections: Any = None,
    updates_collections: Any = None, name: str | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """True positives over actual positives."""
    return _ratio(
        "recall", false_negatives, labels, predictions, weights, metrics_collections, updates_collections, name
    )
