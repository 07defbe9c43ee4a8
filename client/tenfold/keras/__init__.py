"""`tf.keras`: models of layers, trained over arrays in a session, and the functions of Keras that other programs use.

`layers` and `models` build them, `optimizers`, `losses` and `metrics` train and measure them, `backend` has the session
that they use, `utils` fetches a data set's file and turns labels into rows. What is left out says what to use instead.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tenfold.lazy_module import make_lazy
from tenfold.left_out import why as _why

make_lazy(__name__)

_MODULES = (
    "activations",
    "backend",
    "initializers",
    "layers",
    "losses",
    "metrics",
    "models",
    "optimizers",
    "preprocessing",
    "regularizers",
    "utils",
)
#: Name here → the module that has it.
_NAMES = {"Input": "layers", "Model": "models"}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"tenfold.keras.{name}")
    if name in _NAMES:
        return getattr(import_module(f"tenfold.keras.{_NAMES[name]}"), name)
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    raise AttributeError(f"tf.keras.{name} is not part of Tenfold: {_why(f'keras.{name}')}")


def __dir__() -> list[str]:
    return [*_MODULES, *_NAMES]
