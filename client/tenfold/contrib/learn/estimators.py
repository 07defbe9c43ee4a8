"""`tf.contrib.learn.estimators`: the estimators and their modules again, under the name of TensorFlow's package."""

from __future__ import annotations

from importlib import import_module
from typing import Any

#: TensorFlow's module of this package → ours.
_MODULES = {
    **{
        name: name
        for name in ("dnn", "dnn_linear_combined", "estimator", "head", "linear", "logistic_regressor", "model_fn")
    },
    **dict.fromkeys(("constants", "metric_key", "prediction_key"), "keys"),
    "_sklearn": "estimator_parts",
    "run_config": "run_config",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"tenfold.contrib.learn.{_MODULES[name]}")
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("tenfold.contrib.learn"), name)
