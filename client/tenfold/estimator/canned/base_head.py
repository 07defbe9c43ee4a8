"""Heads: what a model does with its logits, as loss, training, metrics, predictions and serving outputs.

The base classes. class_heads.py and regression_heads.py have the heads, head.py makes those of canned estimators,
public_heads.py has the classes of `tf.estimator`. Names of nodes, summaries and metrics are those of TensorFlow 1.15's
`estimator/canned/head.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple

from tenfold import losses, metrics, summary
from tenfold.estimator.canned.head_checks import OF_ESTIMATORS, check_loss_fn, check_loss_reduction
from tenfold.estimator.canned.metric_keys import MetricKeys
from tenfold.estimator.export.export_output import PredictOutput
from tenfold.estimator.mode_keys import ModeKeys
from tenfold.estimator.model_fn import EstimatorSpec
from tenfold.graph import get_collection
from tenfold.graph.collections import GraphKeys
from tenfold.graph.default_scopes import name_scope
from tenfold.ops import array, math
from tenfold.ops.casts import to_float
from tenfold.ops.control_flow import group
from tenfold.ops.weights import broadcast_weights
from tenfold.train.training_util import get_global_step

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tenfold.graph.tensor import Tensor

#: Keys of the serving signatures that heads give.
DEFAULT_SERVING_KEY = "serving_default"
CLASSIFY_SERVING_KEY = "classification"
REGRESS_SERVING_KEY = "regression"
PREDICT_SERVING_KEY = "predict"

#: What a model function returns as a metric: its value, and the operation that adds a batch.
Metric = tuple[Any, Any]


class LossSpec(NamedTuple):
    """A loss: the scalar to minimize, the losses and weights that it sums, and the labels as ids or numbers."""

    training_loss: Any
    unreduced_loss: Any
    weights: Any
    processed_labels: Any


class _Head(ABC):
    """Base of heads: `create_estimator_spec` gives what a model function returns.

    The train op minimizes the loss with `optimizer`, or is `train_op_fn(loss)`; just one of them is given in TRAIN.
    """

    @property
    @abstractmethod
    def name(self) -> str | None:
        """Follows the keys of metrics and summaries, and is the name scope; None for none."""

    @property
    @abstractmethod
    def logits_dimension(self) -> Any:
        """The size of the last dimension of the logits."""

    @abstractmethod
    def create_loss(self, features: Mapping[str, Any], mode: str | None, logits: Any, labels: Any) -> LossSpec:
        """The loss of a batch. Raises ValueError for labels or weights that do not fit."""

    def create_estimator_spec(
        self,
        features: Mapping[str, Any],
        mode: str,
        logits: Any,
        labels: Any = None,
        optimizer: Any = None,
        train_op_fn: Any = None,
        regularization_losses: Sequence[Any] | None = None,
    ) -> EstimatorSpec:
        """The EstimatorSpec for a mode. Raises ValueError for labels, logits or an optimizer that do not fit.

        A subclass may give it by another name, as in TensorFlow: `_create_tpu_estimator_spec`, with these arguments.
        """
        return spec_of_other_name(
            self, "_Head", features, mode, logits, labels, optimizer, train_op_fn, regularization_losses
        )

    def _create_tpu_estimator_spec(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("TPUEstimatorSpec not available for this model head.")


class LogitsHead(_Head):
    """A head of one matrix of logits; a subclass says what its loss, predictions and metrics are."""

    #: Whether a weighted mean of the loss is summarized where the loss itself is a sum.
    _summarizes_mean = True
    #: What its errors say of labels.
    _texts = OF_ESTIMATORS
    #: How the area under precision over recall is summed: an argument of `tf.metrics.auc`.
    _pr_summation = "trapezoidal"

    def __init__(self, weight_column: Any, loss_reduction: str, loss_fn: Any, name: str | None) -> None:
        check_loss_reduction(loss_reduction)
        if loss_fn:
            check_loss_fn(loss_fn)
        self._weight_column = weight_column
        self._loss_reduction = loss_reduction
        self._loss_fn = loss_fn
        self._name = name

    @property
    def name(self) -> str | None:
        return self._name

    # --- for subclasses ---

    @abstractmethod
    def _predicted(self, logits: Any) -> tuple[Tensor, dict[str, Any]]:
        """The checked logits and the predictions."""

    @abstractmethod
    def _export_outputs(self, predictions: dict[str, Any]) -> dict[str, Any]:
        """Serving key → what is exported, without the key "predict"."""

    @abstractmethod
    def _metrics(self, labels: Any, loss: LossSpec, predictions: dict[str, Any]) -> dict[str, Metric]:
        """Key → metric, without the one of the regularization; `labels` are as they were given."""

    # --- shared ---

    def create_estimator_spec(
        self,
        features: Mapping[str, Any],
        mode: str,
        logits: Any,
        labels: Any = None,
        optimizer: Any = None,
        train_op_fn: Any = None,
        regularization_losses: Sequence[Any] | None = None,
    ) -> EstimatorSpec:
        with name_scope(self._name, "head"):
            logits, predictions = self._predicted(logits)
            if mode == ModeKeys.PREDICT:
                outputs = self._export_outputs(predictions)
                outputs[PREDICT_SERVING_KEY] = PredictOutput(predictions)
                return EstimatorSpec(ModeKeys.PREDICT, predictions=predictions, export_outputs=outputs)
            loss = self.create_loss(features=features, mode=mode, logits=logits, labels=labels)
            penalty = math.add_n(regularization_losses) if regularization_losses else None
            total = loss.training_loss if penalty is None else math.add_n([loss.training_loss, penalty])
            if mode == ModeKeys.EVAL:
                found = self._evaluated(labels, loss, predictions, penalty)
                return EstimatorSpec(ModeKeys.EVAL, predictions=predictions, loss=total, eval_metric_ops=found)
            train_op = with_updates(trained(total, optimizer, train_op_fn), get_collection(GraphKeys.UPDATE_OPS))
            mean = None
            if self._summarizes_mean and self._loss_reduction == losses.Reduction.SUM:
                mean = loss.training_loss / math.reduce_sum(loss.weights * array.ones_like(loss.unreduced_loss))
        self._summarize(total, mean, penalty)
        return EstimatorSpec(ModeKeys.TRAIN, predictions=predictions, loss=total, train_op=train_op)

    def _create_tpu_estimator_spec(self, *args: Any, **kwargs: Any) -> EstimatorSpec:
        """The name that TensorFlow's subclasses of heads call; there is no other form for TPUs here."""
        return self.create_estimator_spec(*args, **kwargs)

    def _evaluated(
        self, labels: Any, loss: LossSpec, predictions: dict[str, Any], penalty: Tensor | None
    ) -> dict[str, Metric]:
        found = self._metrics(labels, loss, predictions)
        if penalty is not None:
            key = MetricKeys.LOSS_REGULARIZATION
            found[self._key(key)] = metrics.mean(penalty, name=key)
        return found

    def _summarize(self, total: Any, mean: Any, penalty: Any) -> None:
        with name_scope(""):
            summary.scalar(self._key(MetricKeys.LOSS), total)
            if mean is not None:
                summary.scalar(self._key(MetricKeys.LOSS_MEAN), mean)
            if penalty is not None:
                summary.scalar(self._key(MetricKeys.LOSS_REGULARIZATION), penalty)

    def _key(self, key: str) -> str:
        return f"{key}/{self._name}" if self._name else key

    def _reduced(self, unreduced: Any, weights: Any, labels: Any) -> LossSpec:
        total = losses.compute_weighted_loss(unreduced, weights=weights, reduction=self._loss_reduction)
        return LossSpec(total, unreduced, weights, labels)


def spec_of_other_name(head: Any, base: str, *args: Any, **named: Any) -> EstimatorSpec:
    """What `_create_tpu_estimator_spec` of a subclass of `base` gives. Raises NotImplementedError if it has none."""
    try:
        made = head._create_tpu_estimator_spec(*args, **named)
    except NotImplementedError:
        raise NotImplementedError(
            f"Subclasses of {base} must implement `create_estimator_spec()` or _create_tpu_estimator_spec()."
        ) from None
    return made.as_estimator_spec() if hasattr(made, "as_estimator_spec") else made  # type: ignore[no-any-return]


def trained(loss: Any, optimizer: Any, train_op_fn: Any) -> Any:
    """The train op. Raises ValueError unless just one of optimizer and function is given."""
    if optimizer is not None:
        if train_op_fn is not None:
            raise ValueError("train_op_fn and optimizer cannot both be set.")
        return optimizer.minimize(loss, global_step=get_global_step())
    if train_op_fn is None:
        raise ValueError("train_op_fn and optimizer cannot both be None.")
    return train_op_fn(loss)


def with_updates(train_op: Any, updates: Any) -> Any:
    """The train op together with the updates of layers, if there are any."""
    return group(train_op, *updates) if updates else train_op


def mean_metric(values: Any, weights: Any, name: str) -> Metric:
    """The weighted mean of values, whose weights are broadcast."""
    values = to_float(values)
    return metrics.mean(values, None if weights is None else broadcast_weights(weights, values), name=name)


def auc_metric(
    labels: Any, predictions: Any, weights: Any, name: str, curve: str = "ROC", summation: str = "trapezoidal"
) -> Metric:
    """The area under a curve, with weights that are broadcast."""
    predictions = to_float(predictions)
    weights = None if weights is None else broadcast_weights(weights, predictions)
    return metrics.auc(
        labels=labels, predictions=predictions, weights=weights, curve=curve, name=name, summation_method=summation
    )
