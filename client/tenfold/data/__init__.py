"""`tf.data`: input pipelines. Each name is loaded at its first use.

A `Dataset` is a graph of operations that a task runs; an iterator over it lives on that task. dataset.py has the
methods, node.py the idea, functions.py how Python functions become functions of the graph. Follows TensorFlow 1.15's
`tf.data`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tenfold.lazy_module import make_lazy

make_lazy(__name__)

_HOMES = {
    "Dataset": "tenfold.data.dataset",
    "DatasetSpec": "tenfold.data.node",
    "FixedLengthRecordDataset": "tenfold.data.readers",
    "Iterator": "tenfold.data.iterators",
    "Options": "tenfold.data.options",
    "TFRecordDataset": "tenfold.data.readers",
    "TextLineDataset": "tenfold.data.readers",
    "get_output_classes": "tenfold.data.dataset",
    "get_output_shapes": "tenfold.data.dataset",
    "get_output_types": "tenfold.data.dataset",
    "make_initializable_iterator": "tenfold.data.dataset",
    "make_one_shot_iterator": "tenfold.data.dataset",
}


def __getattr__(name: str) -> Any:
    if name == "experimental":
        return import_module("tenfold.data.experimental")
    if name not in _HOMES:
        raise AttributeError(f"module 'tenfold.data' has no attribute {name!r}")
    # The ops register the conversions to tensors and the operators of tensors.
    import_module("tenfold.ops")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*_HOMES, "experimental"})
