"""Heads of regressors: numbers, counts (Poisson), and probabilities (logistic).

Used through head.py by canned estimators and through public_heads.py by `tf.estimator`. Follows TensorFlow 1.15's
`estimator/canned/head.py` and `estimator/head/regression_head.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold import losses, metrics
from tenfold.estimator.canned.base_head import (
    DEFAULT_SERVING_KEY,
    REGRESS_SERVING_KEY,
    LogitsHead,
    LossSpec,
    Metric,
    mean_metric,
)
from tenfold.estimator.canned.head_checks import called, checked_labels, checked_logits, checked_weights, in_range
from tenfold.estimator.canned.metric_keys import MetricKeys
from tenfold.estimator.canned.prediction_keys import PredictionKeys
from tenfold.estimator.export.export_output import RegressionOutput
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold.ops import nn_losses
from tenfold.ops.casts import to_float

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tenfold.graph.tensor import Tensor


class Regression(LogitsHead):
    """`label_dimension` numbers for each example, by their squared error; `inverse_link_fn` maps logits to them."""

    def __init__(
        self,
        label_dimension: int,
        weight_column: Any,
        loss_reduction: str,
        loss_fn: Any,
        inverse_link_fn: Any,
        name: str | None,
    ) -> None:
        if label_dimension < 1:
            raise ValueError(f"Invalid label_dimension {label_dimension}.")
        super().__init__(weight_column, loss_reduction, loss_fn, name)
        self._logits_dimension = label_dimension
        self._inverse_link_fn = inverse_link_fn

    @property
    def logits_dimension(self) -> int:
        return self._logits_dimension

    def create_loss(self, features: Mapping[str, Any], mode: str | None, logits: Any, labels: Any) -> LossSpec:
        logits = convert_to_tensor(logits)
        labels = to_float(checked_labels(labels, logits, self._logits_dimension, self._texts))
        if self._loss_fn:
            each = called(self._loss_fn, labels, logits, features, self._logits_dimension)
        else:
            each = losses.mean_squared_error(labels=labels, predictions=logits, reduction=losses.Reduction.NONE)
        return self._reduced(each, checked_weights(features, self._weight_column, logits, per_logit=True), labels)

    def _predicted(self, logits: Any) -> tuple[Tensor, dict[str, Any]]:
        logits = checked_logits(logits, self._logits_dimension)
        if not self._inverse_link_fn:
            return logits, {PredictionKeys.PREDICTIONS: logits}
        return logits, {PredictionKeys.PREDICTIONS: self._inverse_link_fn(logits), PredictionKeys.LOGITS: logits}

    def _export_outputs(self, predictions: dict[str, Any]) -> dict[str, Any]:
        output = RegressionOutput(value=predictions[PredictionKeys.PREDICTIONS])
        return {DEFAULT_SERVING_KEY: output, REGRESS_SERVING_KEY: output}

    def _metrics(self, labels: Any, loss: LossSpec, predictions: dict[str, Any]) -> dict[str, Metric]:
        keys, weights = MetricKeys, loss.weights
        predicted = predictions[PredictionKeys.PREDICTIONS]
        with name_scope(None, "metrics"):
            return {
                self._key(keys.LOSS_MEAN): metrics.mean(loss.unreduced_loss, weights=weights),
                self._key(keys.PREDICTION_MEAN): mean_metric(predicted, weights, keys.PREDICTION_MEAN),
                self._key(keys.LABEL_MEAN): metrics.mean(labels, weights=weights),
            }


def poisson_loss(compute_full_loss: bool) -> Callable[[Any, Any], Any]:
    """The loss of counts whose logarithms are predicted."""

    def loss(labels: Any, logits: Any) -> Any:
        return nn_losses.log_poisson_loss(targets=labels, log_input=logits, compute_full_loss=compute_full_loss)

    return loss


def logistic_loss(labels: Any, logits: Any) -> Any:
    """The loss of probabilities; the step fails for a label outside of [0, 1]."""
    message = "Labels must be in range [0, 1]"
    labels = in_range(labels, 2, (message, message))
    return nn_losses.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)
