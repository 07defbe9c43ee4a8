"""`tf.keras.preprocessing`: sequences of different lengths as one array."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tenfold.left_out import why

__all__ = ["sequence"]


def __getattr__(name: str) -> Any:
    if name == "sequence":
        return import_module("tenfold.keras.preprocessing.sequence")
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    raise AttributeError(f"tf.keras.preprocessing.{name} is not part of Tenfold: {why('keras.preprocessing')}")
