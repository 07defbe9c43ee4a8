"""Metrics of decisions that `tf.metrics` lacks: rates, counts and points of curves at thresholds.

Counts at thresholds are metrics/thresholds.py's. Follows TensorFlow 1.15's contrib/metrics/python/ops/metric_ops.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tenfold import metrics
from tenfold.graph.default_scopes import control_dependencies, name_scope
from tenfold.metrics.streaming import aligned, collected, metric_variable
from tenfold.metrics.thresholds import counts_at_thresholds, even_thresholds
from tenfold.named import named
from tenfold.ops import array, check_ops, control_flow, math, slicing, state_ops
from tenfold.ops.control_flow_cond import cond
from tenfold.ops.variable_scope import variable_scope
from tenfold_core import dtypes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_EPSILON = 1e-7
#: What counts are raised by under a curve's points, as in `tf.metrics.auc`.
_SMALL = 1e-6


def _rate(name_of: str, first: Any, second: Any) -> Callable[..., Any]:
    """The share of the count `first` in it and `second`."""

    def metric(
        predictions: Any,
        labels: Any,
        weights: Any = None,
        metrics_collections: Any = None,
        updates_collections: Any = None,
        name: str | None = None,
    ) -> tuple[Any, Any]:
        with variable_scope(name, name_of, (predictions, labels, weights)):
            predictions, labels, weights = aligned(
                math.cast(predictions, dtypes.bool_), math.cast(labels, dtypes.bool_), weights
            )
            part, part_update = first(labels, predictions, weights)
            rest, rest_update = second(labels, predictions, weights)

            def share(one: Any, other: Any, label: str) -> Any:
                both = one + other
                return slicing.where(math.greater(both, 0), math.div(one, both), array.zeros_like(both), name=label)

            value = collected(share(part, rest, "value"), metrics_collections)
            return value, collected(share(part_update, rest_update, "update_op"), updates_collections)

    return named(metric, f"streaming_{name_of}", f"The {name_of.replace('_', ' ')} of all batches.")


streaming_false_positive_rate = _rate("false_positive_rate", metrics.false_positives, metrics.true_negatives)
streaming_false_negative_rate = _rate("false_negative_rate", metrics.false_negatives, metrics.true_positives)


def _rate_at_thresholds(name_of: str, kind: str, rest: str, short: str) -> Callable[..., Any]:
    def metric(
        predictions: Any,
        labels: Any,
        thresholds: Sequence[float],
        weights: Any = None,
        metrics_collections: Any = None,
        updates_collections: Any = None,
        name: str | None = None,
    ) -> tuple[Any, Any]:
        with variable_scope(name, f"{name_of}_at_thresholds", (predictions, labels, weights)):
            values, updates = counts_at_thresholds(labels, predictions, thresholds, weights, (kind, rest))

            def share(counts: dict[str, Any], which: str) -> Any:
                return math.div(counts[kind], _EPSILON + counts[kind] + counts[rest], name=f"{short}_{which}")

            value = collected(share(values, "value"), metrics_collections)
            return value, collected(share(updates, "update_op"), updates_collections)

    doc = f"The {name_of.replace('_', ' ')} if what is above a threshold is positive, one each."
    return named(metric, f"streaming_{name_of}_at_thresholds", doc)


streaming_false_positive_rate_at_thresholds = _rate_at_thresholds("false_positive_rate", "fp", "tn", "fpr")
streaming_false_negative_rate_at_thresholds = _rate_at_thresholds("false_negative_rate", "fn", "tp", "fnr")


def _count_at_thresholds(kind: str, name_of: str) -> Callable[..., Any]:
    def metric(predictions: Any, labels: Any, thresholds: Sequence[float], weights: Any = None) -> tuple[Any, Any]:
        values, updates = counts_at_thresholds(labels, predictions, thresholds, weights, (kind,))
        return array.identity(values[kind]), updates[kind]

    doc = f"The {name_of.replace('_', ' ')} if what is above a threshold is positive, one each."
    return named(metric, f"streaming_{name_of}_at_thresholds", doc)


streaming_true_positives_at_thresholds = _count_at_thresholds("tp", "true_positives")
streaming_false_negatives_at_thresholds = _count_at_thresholds("fn", "false_negatives")
streaming_false_positives_at_thresholds = _count_at_thresholds("fp", "false_positives")
streaming_true_negatives_at_thresholds = _count_at_thresholds("tn", "true_negatives")


def streaming_curve_points(
    labels: Any = None,
    predictions: Any = None,
    weights: Any = None,
    num_thresholds: int = 200,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    curve: str = "ROC",
    name: str | None = None,
) -> tuple[Any, Any]:
    """Points [num_thresholds, 2] of the curve "ROC" (false positive rate, recall) or "PR" (recall, precision)."""
    if curve not in ("ROC", "PR"):
        raise ValueError(f"curve must be either ROC or PR, {curve} unknown")
    with variable_scope(name, "curve_points", (labels, predictions, weights)):
        values, updates = counts_at_thresholds(labels, predictions, even_thresholds(num_thresholds), weights)
        tp, fn, tn, fp = (array.identity(values[kind]) for kind in ("tp", "fn", "tn", "fp"))
        recall = math.div(tp + _SMALL, tp + fn + _SMALL)
        if curve == "ROC":
            x, y = math.div(fp, fp + tn + _SMALL), recall
        else:
            x, y = recall, math.div(tp + _SMALL, tp + fp + _SMALL)
        points = collected(array.stack([x, y], axis=1), metrics_collections)
        return points, collected(control_flow.group(*updates.values()), updates_collections)


def precision_at_recall(
    labels: Any,
    predictions: Any,
    target_recall: float,
    weights: Any = None,
    num_thresholds: int = 200,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> tuple[Any, Any]:
    """The precision at the highest threshold whose recall is `target_recall` at least."""
    if not 0 <= target_recall <= 1:
        raise ValueError("`target_recall` must be in the range [0, 1].")
    with variable_scope(name, "precision_at_recall", (predictions, labels, weights)):
        values, updates = counts_at_thresholds(labels, predictions, even_thresholds(num_thresholds), weights)

        def best(given: dict[str, Any], which: str) -> Any:
            tp, fp, fn = (array.identity(given[kind]) for kind in ("tp", "fp", "fn"))
            recalls = math.div(tp, tp + fn + _EPSILON)
            enough = math.cast(math.greater_equal(recalls, target_recall), dtypes.int64)
            place = math.reduce_sum(enough) - 1
            return math.div(tp[place] + _EPSILON, tp[place] + fp[place] + _EPSILON, which)

        value = collected(best(values, "value"), metrics_collections)
        return value, collected(best(updates, "update_op"), updates_collections)


def recall_at_precision(
    labels: Any,
    predictions: Any,
    precision: float,
    weights: Any = None,
    num_thresholds: int = 200,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
    strict_mode: bool = False,
) -> tuple[Any, Any]:
    """The recall where precision is nearest; in `strict_mode` the nearest above, 0 if there is none."""
    if not 0 <= precision <= 1:
        raise ValueError("`precision` must be in the range [0, 1].")
    with variable_scope(name, "recall_at_precision", (predictions, labels, weights)):
        values, updates = counts_at_thresholds(labels, predictions, even_thresholds(num_thresholds), weights)

        def best(given: dict[str, Any], which: str) -> Any:
            tp, fp, fn = (array.identity(given[kind]) for kind in ("tp", "fp", "fn"))
            found = math.div(tp, tp + fp + _EPSILON)
            if strict_mode:
                # The reciprocal is largest just above, and negative below.
                place = math.cast(math.argmax(math.div(1.0, found - precision + _EPSILON), 0), dtypes.int32)
            else:
                place = math.cast(math.argmin(math.abs(found - precision), 0), dtypes.int32)

            def recall() -> Any:
                return math.div(tp[place], tp[place] + fn[place] + _EPSILON, which)

            return cond(found[place] >= precision, recall, lambda: 0.0) if strict_mode else recall()

        value = collected(best(values, "value"), metrics_collections)
        return value, collected(best(updates, "update_op"), updates_collections)


class PrecisionRecallData(NamedTuple):
    """Counts and shares at each threshold."""

    tp: Any
    fp: Any
    tn: Any
    fn: Any
    precision: Any
    recall: Any
    thresholds: Any


def precision_recall_at_equal_thresholds(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    num_thresholds: int | None = None,
    use_locking: bool | None = None,
    name: str | None = None,
) -> tuple[PrecisionRecallData, Any]:
    """Counts, precision and recall at evenly spaced thresholds (default 201), each example counted once.

    Raises TypeError unless labels are bool; a step fails for predictions outside of [0, 1].
    """
    thresholds = 201 if num_thresholds is None else num_thresholds
    weights = 1.0 if weights is None else weights
    check_ops.assert_type(labels, dtypes.bool_)
    with variable_scope(name, "precision_recall_at_equal_thresholds", (labels, predictions, weights)):
        said = "predictions must be in [0, 1]"
        low, high = math.cast(0.0, predictions.dtype), math.cast(1.0, predictions.dtype)
        with control_dependencies(
            [
                check_ops.assert_greater_equal(predictions, low, message=said),
                check_ops.assert_less_equal(predictions, high, message=said),
            ]
        ):
            predictions, labels, weights = aligned(predictions, labels, weights)
        # Sums of many small weights need the digits.
        kind = dtypes.float64
        truth, factor = math.cast(labels, kind), math.cast(weights, kind)
        scores = array.reshape(predictions, [-1])
        positive, negative = (array.reshape(each * factor, [-1]) for each in (truth, 1.0 - truth))
        buckets = math.cast(math.floor(scores * (thresholds - 1)), dtypes.int32)
        with name_scope("variables"):
            tp_held = metric_variable([thresholds], kind, name="tp_buckets")
            fp_held = metric_variable([thresholds], kind, name="fp_buckets")
        locking = True if use_locking is None else use_locking
        with name_scope("update_op"):
            update_tp = state_ops.scatter_add(tp_held, buckets, positive, use_locking=locking)
            update_fp = state_ops.scatter_add(fp_held, buckets, negative, use_locking=locking)
        tp, fp = math.cumsum(tp_held, reverse=True, name="tp"), math.cumsum(fp_held, reverse=True, name="fp")
        tn, fn = fp[0] - fp, tp[0] - tp
        small = math.cast(_EPSILON, kind)
        precision, recall = tp / math.maximum(small, tp + fp), tp / math.maximum(small, tp + fn)
        parts = (tp, fp, tn, fn, precision, recall, math.linspace(0.0, 1.0, thresholds))
        result = PrecisionRecallData(*(math.cast(each, scores.dtype) for each in parts))
        return result, control_flow.group(update_tp, update_fp)
