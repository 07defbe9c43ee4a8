"""`tf.losses`: losses with weights and a reduction, kept in the collection LOSSES for `get_total_loss`.

The element-wise losses of `tf.nn` are in ops/nn_losses.py. Follows TensorFlow 1.15's ops/losses/losses_impl.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.collections import GraphKeys
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import control_dependencies, name_scope
from tenfold.graph.default_stack import get_default_graph
from tenfold.ops import array, math, nn, nn_losses, slicing
from tenfold.ops.array import _alias
from tenfold.ops.confusion_matrix import remove_squeezable_dimensions
from tenfold.ops.control_flow_cond import cond
from tenfold.ops.weights import assert_broadcastable, broadcast_weights
from tenfold_core import dtypes

if TYPE_CHECKING:
    from tenfold.graph.tensor import Tensor


class Reduction:
    """How weighted losses are reduced: not at all, summed, or summed and divided by a count."""

    NONE = "none"
    SUM = "weighted_sum"
    SUM_OVER_BATCH_SIZE = "weighted_sum_over_batch_size"
    #: Divided by the sum of the weights.
    MEAN = "weighted_mean"
    SUM_BY_NONZERO_WEIGHTS = "weighted_sum_by_nonzero_weights"
    SUM_OVER_NONZERO_WEIGHTS = SUM_BY_NONZERO_WEIGHTS

    @classmethod
    def all(cls) -> tuple[str, ...]:
        """Every key."""
        return (cls.NONE, cls.SUM, cls.MEAN, cls.SUM_OVER_BATCH_SIZE, cls.SUM_BY_NONZERO_WEIGHTS)

    @classmethod
    def validate(cls, key: str) -> None:
        """Raises ValueError for an unknown key."""
        if key not in cls.all():
            raise ValueError(f"Invalid Reduction Key {key}.")


_BY_NONZERO = Reduction.SUM_BY_NONZERO_WEIGHTS


# --- the collection ---


def add_loss(loss: Any, loss_collection: str | None = GraphKeys.LOSSES) -> None:
    """Adds a loss to the collection, for `get_total_loss`."""
    if loss_collection:
        get_default_graph().add_to_collection(loss_collection, loss)


def get_losses(scope: str | None = None, loss_collection: str = GraphKeys.LOSSES) -> list[Any]:
    """The losses added so far; with `scope`, only those of that scope."""
    return get_default_graph().get_collection(loss_collection, scope)


def get_regularization_losses(scope: str | None = None) -> list[Any]:
    """The regularization losses added so far."""
    return get_default_graph().get_collection(GraphKeys.REGULARIZATION_LOSSES, scope)


def get_regularization_loss(scope: str | None = None, name: str = "total_regularization_loss") -> Tensor:
    """The sum of the regularization losses; 0 if there are none."""
    losses = get_regularization_losses(scope)
    return math.add_n(losses, name=name) if losses else array.constant(0.0)


def get_total_loss(
    add_regularization_losses: bool = True, name: str = "total_loss", scope: str | None = None
) -> Tensor:
    """The sum of all losses. Raises ValueError if there are none."""
    losses = get_losses(scope=scope)
    if add_regularization_losses:
        losses = losses + get_regularization_losses(scope=scope)
    return math.add_n(losses, name=name)


# --- weights ---


def _num_elements(losses: Tensor) -> Tensor:
    with name_scope(None, "num_elements", [losses]) as scope:
        count: Tensor = math.cast(array.size(losses, name=scope), losses.dtype)
        return count


def _num_present(losses: Tensor, weights: Any, per_batch: bool = False) -> Tensor:
    """The number of losses with a nonzero weight."""
    if isinstance(weights, float) and weights != 0.0:
        return _num_elements(losses)
    with name_scope(None, "num_present", (losses, weights)) as scope:
        weights = math.cast(weights, dtypes.float32)
        present = slicing.where(math.equal(weights, 0.0), array.zeros_like(weights), array.ones_like(weights))
        present = broadcast_weights(present, losses)
        if per_batch:
            inner = math.range(1, array.rank(present))
            return math.reduce_sum(present, axis=inner, keepdims=True, name=scope)
        return math.reduce_sum(present, name=scope)


def _safe_mean(total: Tensor, count: Tensor) -> Tensor:
    return math.div_no_nan(math.reduce_sum(total), count, name="value")


def compute_weighted_loss(
    losses: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = _BY_NONZERO,
) -> Tensor:
    """The losses times the weights, reduced, and added to the collection.

    Raises ValueError for an unknown reduction and for weights that do not broadcast to the losses.
    """
    Reduction.validate(reduction)
    with name_scope(scope, "weighted_loss", (losses, weights)):  # noqa: SIM117 - the check is made in the scope
        with control_dependencies((assert_broadcastable(weights, losses),)):
            losses = convert_to_tensor(losses)
            kind = losses.dtype
            losses = math.cast(losses, dtypes.float32)
            weights = math.cast(weights, dtypes.float32)
            loss: Tensor = math.multiply(losses, weights)
            if reduction != Reduction.NONE:
                loss = math.reduce_sum(loss)
                if reduction == Reduction.MEAN:
                    loss = _safe_mean(loss, math.reduce_sum(array.ones_like(losses) * weights))
                elif reduction == Reduction.SUM_BY_NONZERO_WEIGHTS:
                    loss = _safe_mean(loss, _num_present(losses, weights))
                elif reduction == Reduction.SUM_OVER_BATCH_SIZE:
                    loss = _safe_mean(loss, _num_elements(losses))
            loss = math.cast(loss, kind)
            add_loss(loss, loss_collection)
            return loss


def _require(**values: Any) -> None:
    for name, value in values.items():
        if value is None:
            raise ValueError(f"{name} must not be None.")


def _floats(first: Any, labels: Any) -> tuple[Tensor, Tensor]:
    """Predictions and labels as floats of compatible shapes."""
    first = math.cast(first, dtypes.float32)
    labels = math.cast(labels, dtypes.float32)
    first.shape.assert_is_compatible_with(labels.shape)
    return first, labels


# --- losses of predictions ---


def absolute_difference(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = _BY_NONZERO,
) -> Tensor:
    """abs(predictions - labels)."""
    _require(labels=labels, predictions=predictions)
    with name_scope(scope, "absolute_difference", (predictions, labels, weights)) as scope:
        predictions, labels = _floats(predictions, labels)
        losses = math.abs(math.subtract(predictions, labels))
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def cosine_distance(
    labels: Any,
    predictions: Any,
    axis: int | None = None,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = _BY_NONZERO,
    dim: int | None = None,
) -> Tensor:
    """1 - the product of predictions and labels summed over `axis`; both are unit vectors already."""
    axis = _alias("axis", axis, "dim", dim)
    if axis is None:
        raise ValueError("You must specify 'axis'.")
    _require(labels=labels, predictions=predictions)
    with name_scope(scope, "cosine_distance_loss", (predictions, labels, weights)) as scope:
        predictions, labels = _floats(predictions, labels)
        losses = 1 - math.reduce_sum(math.multiply(predictions, labels), axis=(axis,), keepdims=True)
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def huber_loss(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    delta: float = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = _BY_NONZERO,
) -> Tensor:
    """Half the square of the error up to `delta`, linear beyond."""
    _require(labels=labels, predictions=predictions)
    with name_scope(scope, "huber_loss", (predictions, labels, weights)) as scope:
        predictions, labels = _floats(predictions, labels)
        error = math.abs(math.subtract(predictions, labels))
        quadratic = math.minimum(error, delta)
        linear = math.subtract(error, quadratic)
        half = convert_to_tensor(0.5, dtype=quadratic.dtype)
        losses = math.add(math.multiply(half, math.multiply(quadratic, quadratic)), math.multiply(delta, linear))
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def log_loss(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    epsilon: float = 1e-7,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = _BY_NONZERO,
) -> Tensor:
    """-labels * log(predictions) - (1 - labels) * log(1 - predictions)."""
    _require(labels=labels, predictions=predictions)
    with name_scope(scope, "log_loss", (predictions, labels, weights)) as scope:
        predictions, labels = _floats(predictions, labels)
        of_true = -math.multiply(labels, math.log(predictions + epsilon))
        losses = of_true - math.multiply(1 - labels, math.log(1 - predictions + epsilon))
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def mean_squared_error(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = _BY_NONZERO,
) -> Tensor:
    """(predictions - labels) squared."""
    _require(labels=labels, predictions=predictions)
    with name_scope(scope, "mean_squared_error", (predictions, labels, weights)) as scope:
        predictions, labels = _floats(predictions, labels)
        losses = math.squared_difference(predictions, labels)
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def mean_pairwise_squared_error(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
) -> Tensor:
    """The squared error of the differences between all pairs of elements of an example."""
    _require(labels=labels, predictions=predictions)
    with name_scope(scope, "mean_pairwise_squared_error", (predictions, labels, weights)):
        weights = math.cast(weights, dtypes.float32)
        labels = math.cast(labels, dtypes.float32)
        with control_dependencies((assert_broadcastable(weights, labels),)):
            predictions = math.cast(predictions, dtypes.float32)
            predictions.shape.assert_is_compatible_with(labels.shape)
            diffs = math.subtract(predictions, labels)
            axis = math.range(1, array.rank(diffs))
            squares = math.reduce_sum(math.square(diffs), axis=axis, keepdims=True)
            present = _num_present(diffs, weights, per_batch=True)
            first = 2.0 * math.div_no_nan(squares, math.maximum(present - 1, 0), name="value")
            total = math.reduce_sum(diffs, axis=axis, keepdims=True)
            total_squared = math.square(total)
            pairs = math.maximum(math.multiply(present, present - 1), 0)
            second = 2.0 * math.div_no_nan(total_squared, pairs, name="value")
            loss = math.reduce_sum(math.multiply(first - second, weights))
            any_present = math.reduce_sum(present) > 0
            mean_loss = slicing.where(any_present, loss, array.zeros_like(loss), name="value")
            add_loss(mean_loss, loss_collection)
            return mean_loss


# --- losses of logits ---


def hinge_loss(
    labels: Any,
    logits: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = _BY_NONZERO,
) -> Tensor:
    """max(0, 1 - (2 * labels - 1) * logits), with labels of 0 and 1."""
    _require(labels=labels, logits=logits)
    with name_scope(scope, "hinge_loss", (logits, labels, weights)) as scope:
        logits, labels = _floats(logits, labels)
        ones = array.ones_like(labels)
        signs = math.subtract(2 * labels, ones)
        losses = nn.relu(math.subtract(ones, math.multiply(signs, logits)))
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def sigmoid_cross_entropy(
    multi_class_labels: Any,
    logits: Any,
    weights: Any = 1.0,
    label_smoothing: float = 0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = _BY_NONZERO,
) -> Tensor:
    """The cross-entropy of independent sigmoids; smoothing moves labels towards one half."""
    _require(multi_class_labels=multi_class_labels, logits=logits)
    with name_scope(scope, "sigmoid_cross_entropy_loss", (logits, multi_class_labels, weights)) as scope:
        logits = convert_to_tensor(logits)
        labels = math.cast(multi_class_labels, logits.dtype)
        logits.shape.assert_is_compatible_with(labels.shape)
        if label_smoothing > 0:
            labels = labels * (1 - label_smoothing) + 0.5 * label_smoothing
        losses = nn_losses.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits, name="xentropy")
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def softmax_cross_entropy(
    onehot_labels: Any,
    logits: Any,
    weights: Any = 1.0,
    label_smoothing: float = 0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = _BY_NONZERO,
) -> Tensor:
    """The cross-entropy of a softmax; smoothing moves labels towards one over the number of classes."""
    _require(onehot_labels=onehot_labels, logits=logits)
    with name_scope(scope, "softmax_cross_entropy_loss", (logits, onehot_labels, weights)) as scope:
        logits = convert_to_tensor(logits)
        labels = math.cast(onehot_labels, logits.dtype)
        logits.shape.assert_is_compatible_with(labels.shape)
        if label_smoothing > 0:
            classes = math.cast(array.shape(labels)[-1], logits.dtype)
            negatives = label_smoothing / classes
            labels = labels * (1.0 - label_smoothing) + negatives
        labels = array.stop_gradient(labels, name="labels_stop_gradient")
        losses = nn_losses.softmax_cross_entropy_with_logits_v2(labels=labels, logits=logits, name="xentropy")
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def sparse_softmax_cross_entropy(
    labels: Any,
    logits: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = _BY_NONZERO,
) -> Tensor:
    """The cross-entropy of a softmax with class numbers; labels and weights may have a last dimension of 1."""
    _require(labels=labels, logits=logits)
    with name_scope(scope, "sparse_softmax_cross_entropy_loss", (logits, labels, weights)) as scope:
        labels, logits = remove_squeezable_dimensions(labels, logits, expected_rank_diff=1)
        weights = _squeezed(weights, labels)
        losses = nn_losses.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits, name="xentropy")
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def _squeezed(weights: Any, labels: Tensor) -> Any:
    """Weights without a last dimension that the labels do not have."""
    weights = convert_to_tensor(weights)
    if weights.shape.ndims is not None and labels.shape.ndims is not None:
        return array.squeeze(weights, [-1]) if weights.shape.ndims - labels.shape.ndims == 1 else weights
    difference = array.rank(weights) - array.rank(labels)
    if weights.shape.ndims is not None and not (weights.shape.ndims > 0 and weights.shape[-1].is_compatible_with(1)):
        return weights
    return cond(math.equal(1, difference), lambda: array.squeeze(weights, [-1]), lambda: weights)
