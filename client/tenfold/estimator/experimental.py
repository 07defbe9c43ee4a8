"""`tf.estimator.experimental`: hooks that end a training early, evaluation in memory, parts of canned estimators."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tenfold.lazy_module import make_lazy as _make_lazy

_make_lazy(__name__)

#: Module → names that tf.estimator.experimental takes from it, `public=name` where the two differ; loaded at first use.
_MODULES = {
    "tenfold.estimator.canned.dnn": "dnn_logit_fn_builder",
    "tenfold.estimator.canned.kmeans": "KMeans=KMeansClustering",
    "tenfold.estimator.canned.linear": "linear_logit_fn_builder",
    "tenfold.estimator.canned.sdca": "LinearSDCA",
    "tenfold.estimator.early_stopping": """
        make_early_stopping_hook stop_if_higher_hook stop_if_lower_hook stop_if_no_decrease_hook
        stop_if_no_increase_hook
    """,
    "tenfold.estimator.export.export": "build_raw_supervised_input_receiver_fn",
    "tenfold.estimator.hooks": "InMemoryEvaluatorHook make_stop_at_checkpoint_step_hook",
    "tenfold.estimator.model_fn": "call_logit_fn",
}

_HOME = {
    name.partition("=")[0]: (module, name.rpartition("=")[2])
    for module, names in _MODULES.items()
    for name in names.split()
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _HOME[name]
    value = getattr(import_module(module), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
