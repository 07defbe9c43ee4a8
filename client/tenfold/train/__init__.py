"""`tf.train`: what distributed training needs beside the graph, loaded on first use.

One table from public name to the module that has it; nothing is imported with the package itself. Names are those of
TF 1.15's tf.train.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

#: Module → names that tf.train takes from it.
_MODULES: dict[str, tuple[str, ...]] = {
    "tenfold.framework.cluster": ("ClusterSpec",),
    "tenfold.train.server_lib": ("Server",),
    "tenfold.train.optimizer": ("Optimizer",),
    "tenfold.train.gradient_descent": ("GradientDescentOptimizer",),
    "tenfold.train.momentum": ("MomentumOptimizer",),
    "tenfold.train.adagrad": ("AdagradOptimizer",),
    "tenfold.train.adam": ("AdamOptimizer",),
    "tenfold.train.device_setter": ("replica_device_setter",),
    "tenfold.train.training_util": (
        "assert_global_step",
        "create_global_step",
        "get_global_step",
        "get_or_create_global_step",
        "global_step",
    ),
    "tenfold_protos.cluster_pb2": ("ClusterDef", "JobDef"),
    "tenfold_protos.tensorflow_server_pb2": ("ServerDef",),
    "tenfold_protos.saver_pb2": ("SaverDef",),
}

_HOME: dict[str, str] = {name: module for module, names in _MODULES.items() for name in names}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    module = _HOME.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
