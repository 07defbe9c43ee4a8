"""`tf.estimator.add_metrics`: an estimator with further metrics. Follows TF 1.15's estimator/extenders.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.estimator.estimator import Estimator
from tenfold.estimator.mode_keys import ModeKeys
from tenfold.estimator.util import call_with_known, check_names

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold.estimator.model_fn import EstimatorSpec


def add_metrics(estimator: Estimator, metric_fn: Callable[..., Any]) -> Estimator:
    """A new estimator, on the same folder, that evaluates what `metric_fn` returns besides.

    The function takes any of `features`, `labels`, `predictions` and `config`, and returns name → (value, update); a
    name that is there already is replaced. Raises ValueError if it takes more. As TensorFlow 1.15's
    `tf.estimator.add_metrics`.
    """
    check_names(metric_fn, ("features", "labels", "predictions", "config"), "metric_fn")

    def new_model_fn(features: Any, labels: Any, mode: str, config: Any) -> EstimatorSpec:
        spec = estimator.model_fn(features, labels, mode, config)
        if mode != ModeKeys.EVAL:
            return spec
        offered = {"features": features, "labels": labels, "predictions": spec.predictions, "config": config}
        further = call_with_known(metric_fn, offered)
        return spec._replace(eval_metric_ops={**(spec.eval_metric_ops or {}), **further})

    return Estimator(
        model_fn=new_model_fn,
        model_dir=estimator.model_dir,
        config=estimator.config,
        warm_start_from=estimator._warm_start_settings,
    )
