"""`tf.contrib.keras`: the few functions of `tf.keras` under the name of TensorFlow 1.4."""

from __future__ import annotations

from typing import Any

from tenfold import keras


def __getattr__(name: str) -> Any:
    return getattr(keras, name)
