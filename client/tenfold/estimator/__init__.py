"""`tf.estimator`: a model function and what runs it: training, evaluation, prediction, export. Loaded on first use.

One table from public name to the module that has it. Names and behaviour are those of TF 1.15's tf.estimator; that of
TPUs is not served, and an error says so.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tenfold.lazy_module import make_lazy as _make_lazy
from tenfold.left_out import hint as _hint

_make_lazy(__name__)

#: Module → names that tf.estimator takes from it.
_MODULES: dict[str, str] = {
    "tenfold.estimator.canned.baseline": "BaselineClassifier BaselineEstimator BaselineRegressor",
    "tenfold.estimator.canned.dnn": "DNNClassifier DNNEstimator DNNRegressor",
    "tenfold.estimator.canned.dnn_linear_combined": """
        DNNLinearCombinedClassifier DNNLinearCombinedEstimator DNNLinearCombinedRegressor
    """,
    "tenfold.estimator.canned.linear": "LinearClassifier LinearEstimator LinearRegressor",
    "tenfold.estimator.canned.multi_head": "MultiHead",
    "tenfold.estimator.canned.public_heads": """
        BinaryClassHead Head LogisticRegressionHead MultiClassHead MultiLabelHead PoissonRegressionHead RegressionHead
    """,
    "tenfold.estimator.estimator": "Estimator",
    "tenfold.estimator.exporter": "BestExporter Exporter FinalExporter LatestExporter",
    "tenfold.estimator.extenders": "add_metrics",
    "tenfold.estimator.mode_keys": "ModeKeys",
    "tenfold.estimator.model_fn": "EstimatorSpec",
    "tenfold.estimator.run_config": "RunConfig",
    "tenfold.estimator.train_specs": "EvalSpec TrainSpec",
    "tenfold.estimator.training": "train_and_evaluate",
    "tenfold.estimator.warm_start_settings": "WarmStartSettings",
    "tenfold.train.warm_starting": "VocabInfo",
    "tenfold.train.hooks": """
        CheckpointSaverHook CheckpointSaverListener FeedFnHook FinalOpsHook GlobalStepWaiterHook LoggingTensorHook
        NanLossDuringTrainingError NanTensorHook ProfilerHook SecondOrStepTimer StepCounterHook StopAtStepHook
        SummarySaverHook
    """,
    "tenfold.train.session_run_hook": "SessionRunArgs SessionRunContext SessionRunHook SessionRunValues",
    "tenfold.estimator.parsing_utils": "classifier_parse_example_spec regressor_parse_example_spec",
}
#: Namespaces below tf.estimator.
_NAMESPACES = ("experimental", "export", "inputs")

_HOME = {name: module for module, names in _MODULES.items() for name in names.split()}

__all__ = sorted([*_HOME, *_NAMESPACES])


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
    elif name in _NAMESPACES:
        value = import_module(f"{__name__}.{name}")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{_hint(f'estimator.{name}')}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
