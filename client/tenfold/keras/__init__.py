"""`tf.keras`: not Keras, but the few functions of it that programs use which train with graphs and sessions.

`utils` fetches a data set's file and turns labels into rows, `backend` asks what a tensor is, `initializers` are
TensorFlow's, `layers` and `losses` have a few that tf.layers and tf.losses lack. Other layers, models and optimizers
are left out; each says what to use instead.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tenfold.lazy_module import make_lazy
from tenfold.left_out import why as _why

make_lazy(__name__)

_MODULES = ("backend", "initializers", "layers", "losses", "utils")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"tenfold.keras.{name}")
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    raise AttributeError(f"tf.keras.{name} is not part of Tenfold: {_why(f'keras.{name}')}")


def __dir__() -> list[str]:
    return [*_MODULES]
