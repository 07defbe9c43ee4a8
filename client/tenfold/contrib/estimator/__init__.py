"""`tf.contrib.estimator`: what tf.estimator has under its older names, extenders, and models on several devices.

A table of names, each loaded at its first use. Follows TF 1.15's contrib/estimator. Recurrent estimators, boosted
trees and layer annotations are left out: an error says what there is instead.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tenfold.lazy_module import make_lazy as _make_lazy

_make_lazy(__name__)

#: Module → names that tf.contrib.estimator takes from it; `public=name` where the two differ.
_MODULES = {
    "tenfold.contrib.estimator.export": "export_all_saved_models export_saved_model_for_mode",
    "tenfold.contrib.estimator.extenders": "clip_gradients_by_norm forward_features",
    "tenfold.contrib.estimator.head": """
        binary_classification_head logistic_regression_head multi_class_head multi_head multi_label_head
        poisson_regression_head regression_head
    """,
    "tenfold.contrib.estimator.towers": "TowerOptimizer replicate_model_fn",
    "tenfold.estimator.canned.dnn": "dnn_logit_fn_builder",
    "tenfold.estimator.canned.linear": "linear_logit_fn_builder",
    "tenfold.estimator.early_stopping": """
        make_early_stopping_hook read_eval_metrics stop_if_higher_hook stop_if_lower_hook stop_if_no_decrease_hook
        stop_if_no_increase_hook
    """,
    "tenfold.estimator.export.export": """
        build_raw_supervised_input_receiver_fn build_supervised_input_receiver_fn_from_input_fn
    """,
    "tenfold.estimator.extenders": "add_metrics",
    "tenfold.estimator.hooks": "InMemoryEvaluatorHook make_stop_at_checkpoint_step_hook",
    "tenfold.estimator.model_fn": "call_logit_fn",
}
_INSTEAD = "write a model function for tf.estimator.Estimator"
_LEFT_OUT = {
    **dict.fromkeys(("RNNClassifier", "RNNEstimator"), f"{_INSTEAD}, with tf.nn.dynamic_rnn"),
    **dict.fromkeys(
        ("boosted_trees_classifier_train_in_memory", "boosted_trees_regressor_train_in_memory"),
        "boosted trees are not served",
    ),
    **dict.fromkeys(
        ("DNNClassifierWithLayerAnnotations", "DNNRegressorWithLayerAnnotations"), "use tf.estimator.DNNClassifier"
    ),
    "SavedModelEstimator": f"{_INSTEAD}, which starts warm from the SavedModel (warm_start_from)",
}

_HOME = {
    public: (module, attribute or public)
    for module, names in _MODULES.items()
    for public, _, attribute in (name.partition("=") for name in names.split())
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        hint = f": {_LEFT_OUT[name]}" if name in _LEFT_OUT else ""
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}")
    module, attribute = _HOME[name]
    value = getattr(import_module(module), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
