"""`tf.confusion_matrix`, and the squeeze that gives labels and predictions the same rank. Used by losses and metrics.

Follows TensorFlow 1.15's ops/confusion_matrix.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold.ops import array, math, slicing
from tenfold.ops.control_flow import Assert
from tenfold.ops.control_flow_cond import cond
from tenfold.ops.control_flow_primitives import with_dependencies
from tenfold_core import dtypes
from tenfold_core.dtypes import as_dtype

if TYPE_CHECKING:
    from tenfold.graph.tensor import Tensor


def confusion_matrix(
    labels: Any,
    predictions: Any,
    num_classes: Any = None,
    dtype: Any = dtypes.int32,
    name: str | None = None,
    weights: Any = None,
) -> Tensor:
    """How often (or with which weight) class i was predicted as class j, at row i and column j.

    # labels [B], predictions [B] → [num_classes, num_classes]
    """
    with name_scope(name, "confusion_matrix", [predictions, labels, num_classes, weights]):
        predictions = convert_to_tensor(predictions, name="predictions")
        labels = convert_to_tensor(labels, name="labels")
        labels, predictions = remove_squeezable_dimensions(labels, predictions)
        predictions, labels = math.cast(predictions, dtypes.int64), math.cast(labels, dtypes.int64)
        labels = with_dependencies([_not_negative(labels, "`labels` contains negative values")], labels)
        predictions = with_dependencies(
            [_not_negative(predictions, "`predictions` contains negative values")], predictions
        )
        if num_classes is None:
            classes = math.maximum(math.reduce_max(predictions), math.reduce_max(labels)) + 1
        else:
            classes = math.cast(num_classes, dtypes.int64)
            labels = with_dependencies([_below(labels, classes, "`labels` out of bound")], labels)
            predictions = with_dependencies([_below(predictions, classes, "`predictions` out of bound")], predictions)
        kind = as_dtype(dtype)
        if weights is None:
            values = array.ones_like(predictions, kind)
        else:
            weights = convert_to_tensor(weights, name="weights")
            predictions.shape.assert_is_compatible_with(weights.shape)
            values = math.cast(weights, kind)
        shape = array.stack([classes, classes])
        return slicing.scatter_nd(array.stack([labels, predictions], axis=1), values, shape)


def _not_negative(x: Tensor, message: str) -> Any:
    return Assert(math.reduce_all(math.greater_equal(x, array.constant(0, x.dtype.base_dtype))), [message, x])


def _below(x: Tensor, limit: Tensor, message: str) -> Any:
    return Assert(math.reduce_all(math.less(x, limit)), [message, x, "should be below", limit])


def remove_squeezable_dimensions(
    labels: Any, predictions: Any, expected_rank_diff: int = 0, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Drops a last dimension of size 1 of labels or predictions if their ranks differ by one more than expected."""
    with name_scope(name, "remove_squeezable_dimensions", [labels, predictions]):
        predictions, labels = convert_to_tensor(predictions), convert_to_tensor(labels)
        if predictions.shape.ndims is not None and labels.shape.ndims is not None:
            difference = predictions.shape.ndims - labels.shape.ndims
            if difference == expected_rank_diff + 1 and predictions.shape[-1].is_compatible_with(1):
                predictions = array.squeeze(predictions, [-1])
            elif difference == expected_rank_diff - 1 and labels.shape[-1].is_compatible_with(1):
                labels = array.squeeze(labels, [-1])
            return labels, predictions
        gap = array.rank(predictions) - array.rank(labels)
        if predictions.shape.ndims is None or predictions.shape[-1].is_compatible_with(1):
            whole = predictions
            predictions = cond(
                math.equal(expected_rank_diff + 1, gap), lambda: array.squeeze(whole, [-1]), lambda: whole
            )
        if labels.shape.ndims is None or labels.shape[-1].is_compatible_with(1):
            full = labels
            labels = cond(math.equal(expected_rank_diff - 1, gap), lambda: array.squeeze(full, [-1]), lambda: full)
        return labels, predictions
