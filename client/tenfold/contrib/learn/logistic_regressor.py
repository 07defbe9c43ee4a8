"""`tf.contrib.learn.LogisticRegressor`: an estimator of a model of one probability, with its metrics.

Follows TensorFlow 1.15's `contrib/learn/python/learn/estimators/logistic_regressor.py`.
"""

from __future__ import annotations

from typing import Any

from tenfold import metrics
from tenfold.contrib.learn.estimator import Estimator
from tenfold.contrib.learn.keys import MetricKey, ProblemType
from tenfold.contrib.learn.model_fn import ModeKeys, ModelFnOps
from tenfold.ops import math
from tenfold_core import dtypes


def LogisticRegressor(
    model_fn: Any,
    thresholds: Any = None,
    model_dir: str | None = None,
    config: Any = None,
    feature_engineering_fn: Any = None,
) -> Estimator:
    """An estimator of `model_fn(features, labels, mode)`, which returns (probabilities, loss, train_op)."""

    def with_metrics(features: Any, labels: Any, mode: str, params: Any) -> ModelFnOps:
        predictions, loss, train_op = model_fn(features, labels, mode)
        found = None
        if mode == ModeKeys.EVAL:
            found = _metric_ops(labels, predictions, params.get("thresholds") or [0.5])
        return ModelFnOps(
            mode=mode,
            predictions=predictions,
            loss=loss,
            train_op=train_op,
            eval_metric_ops=found,
            output_alternatives={
                "head": (ProblemType.LOGISTIC_REGRESSION, {"predictions": predictions, "scores": predictions})
            },
        )

    return Estimator(with_metrics, model_dir, config, {"thresholds": thresholds}, feature_engineering_fn)


def _metric_ops(labels: Any, predictions: Any, thresholds: Any) -> dict[str, Any]:
    only = next(iter(labels.values())) if isinstance(labels, dict) and len(labels) == 1 else labels
    found = {
        MetricKey.PREDICTION_MEAN: metrics.mean(predictions),
        MetricKey.LABEL_MEAN: metrics.mean(only),
        MetricKey.ACCURACY_BASELINE: metrics.mean(only),
        MetricKey.AUC: metrics.auc(labels=only, predictions=predictions),
    }
    for threshold in thresholds:
        yes = math.cast(
            math.greater_equal(predictions, threshold), dtypes.float32, name=f"predictions_at_threshold_{threshold:f}"
        )
        found[MetricKey.ACCURACY_MEAN % threshold] = metrics.accuracy(labels=only, predictions=yes)
        found[MetricKey.PRECISION_MEAN % threshold] = metrics.precision(labels=only, predictions=yes)
        found[MetricKey.RECALL_MEAN % threshold] = metrics.recall(labels=only, predictions=yes)
    return found
