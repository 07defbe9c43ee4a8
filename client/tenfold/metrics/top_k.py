"""Metrics of the k best predictions: precision and recall at k, average precision at k.

Labels are class numbers, dense (…, number of labels) or a SparseTensor where examples have different numbers of them.
Part of `tf.metrics`; the shared helpers are in metrics/streaming.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.default_scopes import control_dependencies, name_scope
from tenfold.graph.sparse_tensor import SparseTensor, convert_to_tensor_or_sparse_tensor
from tenfold.metrics.streaming import collected, metric_variable
from tenfold.ops import array, math, nn, sets, slicing, sparse, state_ops
from tenfold.ops.weights import assert_broadcastable, broadcast_weights
from tenfold_core import dtypes

if TYPE_CHECKING:
    from tenfold.graph.tensor import Tensor


def _name_at(kind: str, k: int | None, class_id: int | None = None) -> str:
    name = f"{kind}_at_k" if k is None else f"{kind}_at_{k}"
    return name if class_id is None else f"{name}_class{class_id}"


def _expanded(labels: Any, predictions: Any) -> Any:
    """Labels with a last dimension for the numbers of one example. Raises ValueError for other ranks."""
    labels = convert_to_tensor_or_sparse_tensor(labels)
    if isinstance(labels, SparseTensor):
        if labels.shape.ndims is not None and labels.shape.ndims + 1 == predictions.shape.ndims:
            return sparse.sparse_reshape(labels, array.concat((labels.dense_shape, [1]), 0))
        return labels
    given, wanted = labels.shape.ndims, predictions.shape.ndims
    if given is None or wanted is None or given == wanted:
        return labels
    if wanted == given + 1:
        return array.expand_dims(labels, -1)
    raise ValueError(f"Unexpected labels shape {labels.shape} for predictions shape {predictions.shape}.")


def _only(ids: Any, class_id: int | None) -> Any:
    """The ids that are `class_id`, all of them for None."""
    if class_id is None:
        return ids
    if isinstance(ids, SparseTensor):
        return sparse.sparse_retain(ids, math.equal(ids.values, class_id))
    shape = array.shape(ids, out_type=dtypes.int64)
    one = array.concat([shape[:-1], array.constant([1], dtypes.int64)], 0)
    chosen = sets.set_intersection(array.fill(one, array.constant(class_id, dtypes.int64)), ids)
    return SparseTensor(chosen.indices, chosen.values, shape)


def _hits(kind: str, labels: Any, predicted: Any, class_id: int | None, weights: Any) -> Tensor:
    """Per example: how many of the predicted ids are labels ("true_positive"), are not, or are missing."""
    labels, predicted = _only(labels, class_id), _only(predicted, class_id)
    if kind == "true_positive":
        found = sets.set_intersection(predicted, labels)
    else:
        found = sets.set_difference(predicted, labels, aminusb=kind == "false_positive")
    counts: Tensor = math.cast(sets.set_size(found), dtypes.float64)
    if weights is None:
        return counts
    with control_dependencies((assert_broadcastable(weights, counts),)):
        return math.multiply(counts, math.cast(weights, dtypes.float64))


def _streamed(
    kind: str, labels: Any, predicted: Any, k: int | None, class_id: int | None, weights: Any
) -> tuple[Any, Any]:
    with name_scope(None, _name_at(kind, k, class_id), (predicted, labels, weights)) as scope:
        batch = math.reduce_sum(_hits(kind, labels, predicted, class_id, weights))
        variable = metric_variable([], dtypes.float64, name=scope)
        return variable, state_ops.assign_add(variable, batch, name="update")


def _ratio_at_top_k(
    kind: str, rest: str, labels: Any, predictions_idx: Any, k: int | None, class_id: int | None, weights: Any,
    metrics_collections: Any, updates_collections: Any, name: str | None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    with name_scope(name, _name_at(kind, k, class_id), (predictions_idx, weights)) as scope:
        labels = _expanded(labels, predictions_idx)
        predicted = math.cast(predictions_idx, dtypes.int64)
        hits, hits_update = _streamed("true_positive", labels, predicted, k, class_id, weights)
        others, others_update = _streamed(rest, labels, predicted, k, class_id, weights)
        value = collected(math.div(hits, math.add(hits, others), name=scope), metrics_collections)
        update = math.div(hits_update, math.add(hits_update, others_update), name="update")
        return value, collected(update, updates_collections)


def recall_at_top_k(
    labels: Any, predictions_idx: Any, k: int | None = None, class_id: int | None = None, weights: Any = None,
    metrics_collections: Any = None, updates_collections: Any = None, name: str | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The fraction of labels that are among the predicted ids."""
    return _ratio_at_top_k(
        "recall", "false_negative", labels, predictions_idx, k, class_id, weights, metrics_collections,
        updates_collections, name,
    )  # fmt: skip


def precision_at_top_k(
    labels: Any, predictions_idx: Any, k: int | None = None, class_id: int | None = None, weights: Any = None,
    metrics_collections: Any = None, updates_collections: Any = None, name: str | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The fraction of predicted ids that are labels."""
    return _ratio_at_top_k(
        "precision", "false_positive", labels, predictions_idx, k, class_id, weights, metrics_collections,
        updates_collections, name,
    )  # fmt: skip


def recall_at_k(
    labels: Any, predictions: Any, k: int, class_id: int | None = None, weights: Any = None,
    metrics_collections: Any = None, updates_collections: Any = None, name: str | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The fraction of labels that are among the k largest predictions."""
    with name_scope(name, _name_at("recall", k, class_id), (predictions, weights)) as scope:
        best = nn.top_k(predictions, k)[1]
        return recall_at_top_k(labels, best, k, class_id, weights, metrics_collections, updates_collections, scope)


def precision_at_k(
    labels: Any, predictions: Any, k: int, class_id: int | None = None, weights: Any = None,
    metrics_collections: Any = None, updates_collections: Any = None, name: str | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The fraction of the k largest predictions that are labels."""
    with name_scope(name, _name_at("precision", k, class_id), (predictions, weights)) as scope:
        best = nn.top_k(predictions, k)[1]
        return precision_at_top_k(labels, best, k, class_id, weights, metrics_collections, updates_collections, scope)


sparse_precision_at_k = precision_at_k


def average_precision_at_top_k(
    labels: Any, predictions_idx: Any, weights: Any = None, metrics_collections: Any = None,
    updates_collections: Any = None, name: str | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """`average_precision_at_k` of the classes that were predicted, best first: (…, k). Dense labels only.

    Raises NotImplementedError for sparse labels.
    """
    best = math.cast(predictions_idx, dtypes.int64)
    k = best.shape.as_list()[-1]
    with name_scope(name, _name_at("average_precision", k), (best, weights)) as scope:
        labels = _expanded(labels, best)
        if isinstance(labels, SparseTensor):
            raise NotImplementedError("average_precision_at_k takes dense labels; pad them with -1")
        labels = math.cast(labels, dtypes.int64)
        # (…, k, labels): which of the best are labels.
        same = math.equal(array.expand_dims(best, -1), array.expand_dims(labels, -2))
        relevant = math.cast(math.reduce_any(same, axis=-1), dtypes.float64)
        precision = math.cumsum(relevant, axis=-1) / math.cumsum(array.ones_like(relevant), axis=-1)
        known = math.reduce_sum(math.cast(math.greater_equal(labels, 0), dtypes.int64), axis=-1)
        count = math.cast(math.minimum(known, array.constant(k, dtypes.int64)), dtypes.float64)
        average = math.div(math.reduce_sum(precision * relevant, axis=-1), count)
        if weights is None:
            batch: Any = math.cast(array.size(average), dtypes.float64)
        else:
            weights = broadcast_weights(math.cast(weights, dtypes.float64), average)
            average, batch = math.multiply(average, weights), math.reduce_sum(weights)
        most = metric_variable([], dtypes.float64, name="max")
        total = metric_variable([], dtypes.float64, name="total")
        most_update = state_ops.assign_add(most, batch)
        total_update = state_ops.assign_add(total, math.reduce_sum(average))
        value = collected(math.div_no_nan(total, most, name="mean"), metrics_collections)
        return value, collected(math.div_no_nan(total_update, most_update, name=scope), updates_collections)


def average_precision_at_k(
    labels: Any, predictions: Any, k: int, weights: Any = None, metrics_collections: Any = None,
    updates_collections: Any = None, name: str | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The mean over the examples of the mean precision at the ranks of the labels. Dense labels only.

    Raises ValueError for k below 1, NotImplementedError for sparse labels.
    """
    if k < 1:
        raise ValueError(f"Invalid k={k}.")
    with name_scope(name, _name_at("average_precision", k), (predictions, weights)) as scope:
        best = nn.top_k(predictions, k)[1]
        if not isinstance(labels, SparseTensor):
            classes = math.cast(array.shape(predictions)[-1], dtypes.int64)
            labels = math.cast(labels, dtypes.int64)
            labels = slicing.where(math.greater_equal(labels, classes), -array.ones_like(labels), labels)
        return average_precision_at_top_k(labels, best, weights, metrics_collections, updates_collections, scope)


sparse_average_precision_at_k = average_precision_at_k
