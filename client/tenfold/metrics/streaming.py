"""Helpers of all metrics: local variables that accumulate over steps, and weights in the shape of the values.

Each metric gives `(value, update_op)`: run the update for each batch, then the value. The variables are in
LOCAL_VARIABLES and METRIC_VARIABLES. Follows TensorFlow 1.15's ops/metrics_impl.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.collections import GraphKeys
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import control_dependencies
from tenfold.graph.default_stack import get_default_graph
from tenfold.ops import array, check_ops, math, state_ops
from tenfold.ops.confusion_matrix import remove_squeezable_dimensions
from tenfold.ops.control_flow_cond import cond
from tenfold.ops.variables import Variable, VariableAggregation, VariableSynchronization
from tenfold_core import dtypes

if TYPE_CHECKING:
    from tenfold.graph.tensor import Tensor


def metric_variable(shape: Any, dtype: Any, validate_shape: bool = True, name: str | None = None) -> Any:
    """A local variable of zeros for one metric."""
    return Variable(
        initial_value=lambda: array.zeros(shape, dtype),
        trainable=False,
        collections=[GraphKeys.LOCAL_VARIABLES, GraphKeys.METRIC_VARIABLES],
        validate_shape=validate_shape,
        synchronization=VariableSynchronization.ON_READ,
        aggregation=VariableAggregation.SUM,
        name=name,
    )


def collected(value: Any, collections: Any) -> Any:
    """`value`, added to the collections if there are any."""
    if collections:
        for name in [collections] if isinstance(collections, str) else collections:
            get_default_graph().add_to_collection(name, value)
    return value


def aligned(predictions: Any, labels: Any, weights: Any) -> tuple[Tensor, Any, Any]:
    """Predictions, labels and weights with matching ranks: a last dimension of 1 is dropped or added."""
    predictions = convert_to_tensor(predictions)
    if labels is not None:
        labels, predictions = remove_squeezable_dimensions(labels, predictions)
        predictions.shape.assert_is_compatible_with(labels.shape)
    if weights is None:
        return predictions, labels, None
    weights = convert_to_tensor(weights)
    rank = weights.shape.ndims
    if rank == 0:
        return predictions, labels, weights
    if rank is not None and predictions.shape.ndims is not None:
        gap = rank - predictions.shape.ndims
        if gap == 1:
            weights = array.squeeze(weights, [-1])
        elif gap == -1:
            weights = array.expand_dims(weights, -1)
        return predictions, labels, weights
    given = weights
    rank_t = array.rank(given)
    gap_t = rank_t - array.rank(predictions)
    squeezable = rank is None or given.shape[-1].is_compatible_with(1)

    def fewer() -> Any:
        return array.squeeze(given, [-1]) if squeezable else given

    def more() -> Any:
        return cond(math.equal(gap_t, -1), lambda: array.expand_dims(given, -1), lambda: given)

    weights = cond(math.equal(rank_t, 0), lambda: given, lambda: cond(math.equal(gap_t, 1), fewer, more))
    return predictions, labels, weights


def count_where(values: Tensor, weights: Any, metrics_collections: Any, updates_collections: Any) -> tuple[Any, Any]:
    """Counts (or sums the weights of) the true elements of all batches."""
    check_ops.assert_type(values, dtypes.bool_)
    count = metric_variable([], dtypes.float32, name="count")
    ones: Tensor = math.cast(values, dtypes.float32)
    if weights is not None:
        with control_dependencies((check_ops.assert_rank_in(weights, (0, array.rank(ones))),)):
            ones = math.multiply(ones, math.cast(weights, dtypes.float32))
    value = collected(array.identity(count), metrics_collections)
    update = state_ops.assign_add(count, math.reduce_sum(ones))
    return value, collected(update, updates_collections)
