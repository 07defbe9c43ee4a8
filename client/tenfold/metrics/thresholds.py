"""Metrics of scores in [0, 1]: decisions at many thresholds at once, and the area under a curve of them.

Part of `tf.metrics`; the shared helpers are in metrics/streaming.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import control_dependencies
from tenfold.metrics.streaming import aligned, collected, metric_variable
from tenfold.named import named
from tenfold.ops import array, check_ops, math, slicing, state_ops
from tenfold.ops.variable_scope import variable_scope
from tenfold.ops.weights import broadcast_weights
from tenfold_core import dtypes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tenfold.graph.tensor import Tensor

#: Short name → variable, positive label, positive decision.
_KINDS = {
    "tp": ("true_positives", True, True),
    "fn": ("false_negatives", True, False),
    "tn": ("true_negatives", False, False),
    "fp": ("false_positives", False, True),
}
_EPSILON = 1e-7


def counts_at_thresholds(
    labels: Any, predictions: Any, thresholds: Sequence[float], weights: Any, includes: Sequence[str] = tuple(_KINDS)
) -> tuple[dict[str, Any], dict[str, Any]]:
    """For each kind of decision: the counts [thresholds] of all batches, and their updates."""
    predictions = convert_to_tensor(predictions)
    low, high = math.cast(0.0, predictions.dtype), math.cast(1.0, predictions.dtype)
    message = "predictions must be in [0, 1]"
    with control_dependencies(
        [
            check_ops.assert_greater_equal(predictions, low, message=message),
            check_ops.assert_less_equal(predictions, high, message=message),
        ]
    ):
        predictions, labels, weights = aligned(
            math.cast(predictions, dtypes.float32), math.cast(labels, dtypes.bool_), weights
        )
    column, row = array.reshape(predictions, [-1, 1]), array.reshape(labels, [1, -1])
    limits = array.expand_dims(array.constant(list(thresholds), dtypes.float32), 1)
    # [thresholds, examples]
    positive = math.greater(array.transpose(column), limits)
    true = array.tile(row, [len(thresholds), 1])
    factor = None
    if weights is not None:
        factor = array.reshape(broadcast_weights(math.cast(weights, dtypes.float32), predictions), [1, -1])
    sides = {(True, True): (true, positive)}
    sides[True, False] = (true, math.logical_not(positive))
    sides[False, False] = (math.logical_not(true), sides[True, False][1])
    sides[False, True] = (sides[False, False][0], positive)
    values, updates = {}, {}
    for kind in _KINDS:
        if kind in includes:
            name, label, decision = _KINDS[kind]
            values[kind] = metric_variable([len(thresholds)], dtypes.float32, name=name)
            chosen = math.cast(math.logical_and(*sides[label, decision]), dtypes.float32)
            chosen = chosen if factor is None else chosen * factor
            updates[kind] = state_ops.assign_add(values[kind], math.reduce_sum(chosen, 1))
    return values, updates


def even_thresholds(count: int, last: float = 1.0 + _EPSILON) -> list[float]:
    return [-_EPSILON, *((i + 1) * 1.0 / (count - 1) for i in range(count - 2)), last]


def _at_thresholds(kind: str) -> Callable[..., Any]:
    name_of = _KINDS[kind][0]

    def metric(
        labels: Any, predictions: Any, thresholds: Any, weights: Any = None, metrics_collections: Any = None,
        updates_collections: Any = None, name: str | None = None,
    ) -> tuple[Any, Any]:  # fmt: skip
        with variable_scope(name, name_of, (predictions, labels, weights)):
            values, updates = counts_at_thresholds(labels, predictions, thresholds, weights, (kind,))
            value = collected(array.identity(values[kind]), metrics_collections)
            return value, collected(updates[kind], updates_collections)

    doc = f"The {name_of.replace('_', ' ')} if what is above a threshold is positive, one each."
    return named(metric, f"{name_of}_at_thresholds", doc)


true_positives_at_thresholds = _at_thresholds("tp")
false_positives_at_thresholds = _at_thresholds("fp")
true_negatives_at_thresholds = _at_thresholds("tn")
false_negatives_at_thresholds = _at_thresholds("fn")


def _ratio_at_thresholds(kind: str, rest: str) -> Callable[..., Any]:
    def metric(
        labels: Any, predictions: Any, thresholds: Any, weights: Any = None, metrics_collections: Any = None,
        updates_collections: Any = None, name: str | None = None,
    ) -> tuple[Any, Any]:  # fmt: skip
        with variable_scope(name, f"{kind}_at_thresholds", (predictions, labels, weights)):
            values, updates = counts_at_thresholds(labels, predictions, thresholds, weights, ("tp", rest))

            def ratio(counts: dict[str, Any], which: str) -> Tensor:
                return math.div(counts["tp"], _EPSILON + counts["tp"] + counts[rest], name=f"{kind}_{which}")

            value = collected(ratio(values, "value"), metrics_collections)
            return value, collected(ratio(updates, "update_op"), updates_collections)

    return named(metric, f"{kind}_at_thresholds", f"The {kind} if what is above a threshold is positive, one each.")


precision_at_thresholds = _ratio_at_thresholds("precision", "fp")
recall_at_thresholds = _ratio_at_thresholds("recall", "fn")


# --- curves ---


def auc(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    num_thresholds: int = 200,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    curve: str = "ROC",
    name: str | None = None,
    summation_method: str = "trapezoidal",
    thresholds: Sequence[float] | None = None,
) -> tuple[Tensor, Tensor]:
    """The area under the curve "ROC" or "PR", from `num_thresholds` points of it.

    `summation_method` is "trapezoidal", "careful_interpolation" (for PR), "minoring" or "majoring".
    """
    if curve not in ("ROC", "PR"):
        raise ValueError(f"curve must be either ROC or PR, {curve} unknown")
    if summation_method not in ("trapezoidal", "careful_interpolation", "minoring", "majoring"):
        raise ValueError(f"Invalid summation_method: {summation_method}")
    with variable_scope(name, "auc", (labels, predictions, weights)):
        if thresholds is not None:
            limits = [-_EPSILON, *sorted(thresholds), 1.0 + _EPSILON]
        else:
            limits = even_thresholds(num_thresholds)
        values, updates = counts_at_thresholds(labels, predictions, limits, weights)

        def area(counts: dict[str, Any], which: str) -> Tensor:
            counts = {kind: convert_to_tensor(count) for kind, count in counts.items()}
            if curve == "PR" and summation_method == "careful_interpolation":
                return _interpolated(counts["tp"], counts["fp"], counts["fn"], which)
            return _summed(counts, curve, summation_method, which)

        value = collected(area(values, "value"), metrics_collections)
        return value, collected(area(updates, "update_op"), updates_collections)


def _summed(counts: dict[str, Any], curve: str, method: str, name: str) -> Tensor:
    small = 1e-6
    tp, fn, tn, fp = (counts[kind] for kind in ("tp", "fn", "tn", "fp"))
    recall = math.div(tp + small, tp + fn + small)
    if curve == "ROC":
        x, y = math.div(fp, fp + tn + small), recall
    else:
        x, y = recall, math.div(tp + small, tp + fp + small)
    before, after = y[:-1], y[1:]
    heights = {
        "minoring": lambda: math.minimum(before, after),
        "majoring": lambda: math.maximum(before, after),
    }.get(method, lambda: (before + after) / 2.0)()
    return math.reduce_sum(math.multiply(x[:-1] - x[1:], heights), name=name)


def _interpolated(tp: Tensor, fp: Tensor, fn: Tensor, name: str) -> Tensor:
    """The area under precision over recall, with true positives interpolated linearly between two thresholds."""
    steps = tp[:-1] - tp[1:]
    p = tp + fp
    slope = math.div_no_nan(steps, math.maximum(p[:-1] - p[1:], 0), name="prec_slope")
    intercept = tp[1:] - math.multiply(slope, p[1:])
    ratio = slicing.where(
        math.logical_and(p[:-1] > 0, p[1:] > 0),
        math.div_no_nan(p[:-1], math.maximum(p[1:], 0), name="recall_relative_ratio"),
        array.ones_like(p[1:]),
    )
    parts = math.div_no_nan(
        slope * (steps + intercept * math.log(ratio)), math.maximum(tp[1:] + fn[1:], 0), name="pr_auc_increment"
    )
    return math.reduce_sum(parts, name="interpolate_pr_auc")


def sensitivity_at_specificity(
    labels: Any,
    predictions: Any,
    specificity: float,
    weights: Any = None,
    num_thresholds: int = 200,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """The recall at the threshold whose specificity is nearest. Raises ValueError outside of [0, 1]."""
    if not 0 <= specificity <= 1:
        raise ValueError("`specificity` must be in the range [0, 1].")
    with variable_scope(name, "sensitivity_at_specificity", (predictions, labels, weights)):
        values, updates = counts_at_thresholds(labels, predictions, even_thresholds(num_thresholds), weights)

        def best(given: dict[str, Any], which: str) -> Tensor:
            counts = {kind: convert_to_tensor(count) for kind, count in given.items()}
            found = math.div(counts["tn"], counts["tn"] + counts["fp"] + _EPSILON)
            place = math.cast(math.argmin(math.abs(found - specificity), 0), dtypes.int32)
            hits = counts["tp"][place]
            return math.div(hits, hits + counts["fn"][place] + _EPSILON, which)

        value = collected(best(values, "value"), metrics_collections)
        return value, collected(best(updates, "update_op"), updates_collections)


def specificity_at_sensitivity(
    labels: Any,
    predictions: Any,
    sensitivity: float,
    weights: Any = None,
    num_thresholds: int = 200,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """The specificity at the last threshold whose recall is nearest. Raises ValueError outside of [0, 1]."""
    if not 0 <= sensitivity <= 1:
        raise ValueError("`sensitivity` must be in the range [0, 1].")
    with variable_scope(name, "specificity_at_sensitivity", (predictions, labels, weights)):
        limits = even_thresholds(num_thresholds, last=1.0 - _EPSILON)
        values, updates = counts_at_thresholds(labels, predictions, limits, weights)

        def best(given: dict[str, Any], which: str) -> Tensor:
            counts = {kind: convert_to_tensor(count) for kind, count in given.items()}
            found = math.div(counts["tp"], counts["tp"] + counts["fn"] + _EPSILON)
            distance = math.abs(found - sensitivity)
            nearest = math.cast(math.equal(distance, math.reduce_min(distance)), dtypes.int64)
            place = math.cast(math.argmax(math.cumsum(nearest), 0), dtypes.int32)
            passed = counts["tn"][place]
            return math.div(passed, passed + counts["fp"][place] + _EPSILON, which)

        value = collected(best(values, "value"), metrics_collections)
        return value, collected(best(updates, "update_op"), updates_collections)
