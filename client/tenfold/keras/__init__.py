"""`tf.keras`: not Keras, but the few functions of it that programs use which train with graphs and sessions.

`utils` fetches a data set's file and turns labels into rows, `backend` asks what a tensor is, `initializers` are
TensorFlow's. Layers, models and optimizers are left out; each says what to use instead.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tenfold.lazy_module import make_lazy

make_lazy(__name__)

_MODULES = ("backend", "initializers", "utils")
_INSTEAD = {
    "Input": "tf.placeholder",
    "Model": "functions of tensors, tf.layers and tf.Session",
    "Sequential": "functions of tensors, tf.layers and tf.Session",
    "applications": "tf.contrib.slim",
    "callbacks": "hooks of tf.train.MonitoredTrainingSession",
    "datasets": "tf.keras.utils.get_file and numpy.load",
    "estimator": "tf.estimator.Estimator",
    "layers": "tf.layers",
    "losses": "tf.losses",
    "metrics": "tf.metrics",
    "models": "functions of tensors, tf.layers and tf.Session",
    "optimizers": "tf.train's optimizers",
    "preprocessing": "tf.data and tf.image",
    "regularizers": "tf.contrib.layers.l2_regularizer and its like",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"tenfold.keras.{name}")
    if name in _INSTEAD:
        raise AttributeError(
            f"tf.keras.{name} is not part of Tenfold: use {_INSTEAD[name]}, or run Keras in TensorFlow against "
            "Tenfold's servers"
        )
    raise AttributeError(f"module 'tenfold.keras' has no attribute {name!r}: only {', '.join(_MODULES)} are there")


def __dir__() -> list[str]:
    return [*_MODULES]
