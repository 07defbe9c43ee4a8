"""`tf.contrib.learn.estimators`: the estimators again, under the name that TensorFlow's package has."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    from tenfold.contrib import learn

    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(learn, name)
