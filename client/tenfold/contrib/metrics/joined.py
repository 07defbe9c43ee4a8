"""Metrics that keep every value: all of them joined, and the area under a curve with each prediction as a threshold.

Neighbours: statistics.py has metrics that keep sums only. Follows TensorFlow 1.15's
contrib/metrics/python/ops/metric_ops.py; the area's interval is that of Sun and Xu (2014), over DeLong's placements.
"""

from __future__ import annotations

from statistics import NormalDist
from typing import Any, NamedTuple

from tenfold.graph.default_scopes import control_dependencies
from tenfold.graph.op_builder import tensor_op
from tenfold.metrics.streaming import aligned, collected, metric_variable
from tenfold.ops import array, check_ops, control_flow, math, slicing, state_ops
from tenfold.ops.control_flow_cond import cond
from tenfold.ops.nn import top_k
from tenfold.ops.reductions import reduce_max, reduce_min, reduce_sum
from tenfold.ops.variable_scope import variable_scope
from tenfold_core import dtypes

_EPSILON = 1e-7


def next_array_size(required_size: Any, growth_factor: float = 1.5) -> Any:
    """The least power of `growth_factor` that holds `required_size` elements, int32, rounded up."""
    factor = math.cast(growth_factor, dtypes.float32)
    power = math.ceil(math.log(math.cast(required_size, dtypes.float32)) / math.log(factor))
    return math.cast(math.ceil(math.pow(factor, power)), dtypes.int32)


def streaming_concat(
    values: Any,
    axis: int = 0,
    max_size: int | None = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> tuple[Any, Any]:
    """All values joined along `axis`, the first `max_size` of them; the update gives how many there are.

    The variable `array` grows by halves, so that an update costs what its values do; `size` tells how much of it is
    used. Raises ValueError for an unknown rank, another unknown size and an axis that the values do not have.
    """
    with variable_scope(name, "streaming_concat", (values,)):
        if values.get_shape().dims is None:
            raise ValueError("`values` must have known statically known rank")
        sizes = values.get_shape().as_list()
        rank = len(sizes)
        place = axis + rank if axis < 0 else axis
        if not 0 <= place < rank:
            raise ValueError(f"axis = {place!r} not in [0, {rank!r})")
        others = [size for number, size in enumerate(sizes) if number != place]
        if None in others:
            raise ValueError(
                "all dimensions of `values` other than the dimension to concatenate along must have statically known "
                "size"
            )
        # The axis comes first inside, so that values are appended to the end of the memory.
        held = metric_variable([max_size or 0, *others], values.dtype, validate_shape=False, name="array")
        size = metric_variable([], dtypes.int32, name="size")
        used = held[:size]
        used.set_shape([None, *others])
        back = [0 if n == place else n + 1 if n < place else n for n in range(rank)]
        value = array.transpose(used, back, name="concat")

        rows = array.transpose(values, [place, *(n for n in range(rank) if n != place)])
        number = array.shape(rows)[0]
        if max_size is not None:
            number = math.minimum(number, max_size - size)
            rows = rows[:number]
        new_size = size + number
        # The static shape is only what it begins with.
        capacity = tensor_op("Shape", None, input=held)[0]

        def grown() -> Any:
            more = array.zeros(array.stack([next_array_size(new_size) - capacity, *others]), values.dtype)
            return state_ops.assign(held, array.concat([held, more], 0), validate_shape=False).op

        room = cond(math.greater(new_size, capacity), grown, control_flow.no_op)
        with control_dependencies([room]):
            appended = held[size:new_size].assign(rows)
        with control_dependencies([appended]):
            update = state_ops.assign(size, new_size)
        return collected(value, metrics_collections), collected(update, updates_collections)


def _checks_of_labels(labels: Any) -> list[Any]:
    return [
        check_ops.assert_greater_equal(
            labels, array.zeros_like(labels), message="labels must be 0 or 1, at least one is <0"
        ),
        check_ops.assert_less_equal(
            labels, array.ones_like(labels), message="labels must be 0 or 1, at least one is >1"
        ),
    ]


def _flat(values: Any, dtype: Any) -> Any:
    return array.reshape(math.cast(values, dtype), [-1])


def _weights_by_prediction(labels: Any, predictions: Any, weights: Any) -> tuple[Any, Any]:
    """(of the positives, of the negatives): the weight that each different prediction has, the highest one first."""
    ordered, order = top_k(predictions, k=array.size(predictions))
    _, groups = slicing.unique(ordered)
    weights = slicing.gather(weights, order)
    positive = math.cast(slicing.gather(labels, order), weights.dtype)
    return math.segment_sum(weights * positive, groups), math.segment_sum(weights * (1 - positive), groups)


def streaming_dynamic_auc(
    labels: Any,
    predictions: Any,
    curve: str = "ROC",
    metrics_collections: Any = (),
    updates_collections: Any = (),
    name: str | None = None,
    weights: Any = None,
) -> tuple[Any, Any]:
    """The area under the curve "ROC" or "PR" with each prediction as a threshold; 0 if all labels are the same.

    Keeps every value in memory. Raises ValueError for another curve and for shapes that do not match; the update
    raises InvalidArgumentError for a label that is neither 0 nor 1.
    """
    if curve not in ("PR", "ROC"):
        raise ValueError(f"curve must be either ROC or PR, {curve} unknown")
    with variable_scope(name, "dynamic_auc"):
        labels.get_shape().assert_is_compatible_with(predictions.get_shape())
        predictions, labels = _flat(predictions, dtypes.float64), _flat(labels, dtypes.int64)
        with control_dependencies(_checks_of_labels(labels)):
            all_predictions, with_predictions = streaming_concat(predictions, name="concat_preds")
            all_labels, with_labels = streaming_concat(labels, name="concat_labels")
            updates = [with_labels, with_predictions]
            if weights is None:
                all_weights = array.ones_like(all_labels, dtypes.float64)
            else:
                all_weights, with_weights = streaming_concat(_flat(weights, dtypes.float64), name="concat_weights")
                updates.append(with_weights)
            update = control_flow.group(*updates)
            area = _area(all_labels, all_predictions, all_weights, curve)
        return collected(area, metrics_collections), collected(update, updates_collections)


def _area(labels: Any, predictions: Any, weights: Any, curve: str) -> Any:
    total = reduce_sum(weights)
    total_positive = reduce_sum(weights * math.cast(labels, weights.dtype))

    def trapezoids() -> Any:
        positives, negatives = _weights_by_prediction(labels, predictions, weights)
        true, false = math.cumsum(positives), math.cumsum(negatives)
        recall, origin = true / total_positive, array.zeros([1], weights.dtype)
        if curve == "ROC":
            widths, heights, first = negatives / (total - total_positive), recall, origin
        else:
            # Without any positive prediction the precision is 1.
            widths, heights, first = positives / total_positive, true / (true + false), origin + 1
        before = array.concat([first, heights[:-1]], 0)
        return reduce_sum(widths * (before + heights) / 2.0)

    alike = math.logical_or(math.equal(total_positive, 0.0), math.equal(total_positive, total))
    return cond(alike, lambda: array.constant(0.0, dtypes.float64), trapezoids)


class AucData(NamedTuple):
    """An area under the ROC curve with its confidence interval, scalars."""

    auc: Any
    lower: Any
    upper: Any


def auc_with_confidence_intervals(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    alpha: float = 0.95,
    logit_transformation: bool = True,
    metrics_collections: Any = (),
    updates_collections: Any = (),
    name: str | None = None,
) -> tuple[AucData, Any]:
    """The area under the ROC curve and its asymptotic interval at the level `alpha`, as AucData(auc, lower, upper).

    All are 0 where the batch has one label only or weighs less than 1. Keeps every value in memory. Raises ValueError
    for `alpha` outside of (0, 1); the update raises InvalidArgumentError for a label that is neither 0 nor 1.
    """
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must be between 0 and 1; currently {alpha:.2f}")
    if weights is None:
        weights = array.ones_like(predictions)
    with variable_scope(name, "auc_with_confidence_intervals", [labels, predictions, weights]):
        predictions, labels, weights = aligned(predictions, labels, weights)
        heavy = math.greater_equal(reduce_sum(weights), 1.0)
        weights = array.reshape(weights, [-1])
        predictions, labels = _flat(predictions, dtypes.float64), _flat(labels, dtypes.int64)
        with control_dependencies(_checks_of_labels(labels)):
            all_predictions, with_predictions = streaming_concat(predictions, name="concat_preds")
            all_labels, with_labels = streaming_concat(labels, name="concat_labels")
            all_weights, with_weights = streaming_concat(weights, name="concat_weights")
            update = control_flow.group(with_labels, with_predictions, with_weights)
            both = math.logical_and(math.equal(reduce_min(labels), 0), math.equal(reduce_max(labels), 1))
            zero = array.constant(0.0, all_weights.dtype)
            found = cond(
                math.logical_and(both, heavy),
                lambda: list(_interval(all_labels, all_predictions, all_weights, alpha, logit_transformation)),
                lambda: [zero] * 3,
            )
        data = AucData(*found)
        return collected(data, metrics_collections), collected(update, updates_collections)


def _interval(labels: Any, predictions: Any, weights: Any, alpha: float, logit_transformation: bool) -> AucData:
    """A label's placement is the share of the other labels' weight on its right side; ties count half."""
    positives, negatives = _weights_by_prediction(labels, predictions, weights)
    total_1, total_0 = reduce_sum(positives), reduce_sum(negatives)
    # Predictions fall: what comes before is higher.
    lower_negatives = total_0 - math.cumsum(negatives) + negatives / 2.0
    lower_positives = total_1 - math.cumsum(positives) + positives / 2.0
    placed_1 = lower_negatives / (total_0 + _EPSILON)
    placed_0 = 1.0 - lower_positives / (total_1 + _EPSILON)
    auc_1 = reduce_sum(positives * placed_1) / (total_1 + _EPSILON)
    auc_0 = reduce_sum(negatives * placed_0) / (total_0 + _EPSILON)
    auc = slicing.where(math.less(total_0, total_1), auc_1, auc_0)
    variance_1 = reduce_sum(positives * math.square(placed_1 - auc_1)) / (total_1 - 1.0 + _EPSILON)
    variance_0 = reduce_sum(negatives * math.square(placed_0 - auc_0)) / (total_0 - 1.0 + _EPSILON)
    error = math.sqrt(variance_0 / (total_0 + _EPSILON) + variance_1 / (total_1 + _EPSILON))
    below = NormalDist().inv_cdf((1.0 - alpha) / 2.0)
    if logit_transformation:
        middle = math.log(auc / (1.0 - auc + _EPSILON))
        reach = below * error / (auc * (1.0 - auc + _EPSILON))
        ends = [1.0 / (1.0 + math.exp(-(middle + x)) + _EPSILON) for x in (reach, -reach)]
    else:
        ends = [auc + below * error, auc - below * error]
    # An area of 0 or 1 has no variance.
    sure = math.logical_or(math.equal(auc, 1.0), math.equal(auc, 0.0))
    lower, upper = (slicing.where(sure, auc, end) for end in ends)
    return AucData(auc, lower, upper)
