"""`tf.contrib.learn`: estimators before `tf.estimator`, as thin spellings over it, loaded at their first use.

estimator.py has `fit`, `evaluate` and `predict`; dnn.py, linear.py and dnn_linear_combined.py ready models;
experiment.py and learn_runner.py train in a cluster. Names and behaviour are those of TensorFlow 1.15.
"""

from __future__ import annotations

from typing import Any

from tenfold.contrib.lazy import lazy_names

_P = "tenfold.contrib.learn"

_TABLE = {
    f"{_P}.estimator": """
        BaseEstimator Estimator GraphRewriteSpec NotFittedError infer_real_valued_columns_from_input
        infer_real_valued_columns_from_input_fn
    """,
    f"{_P}.sk_compat": "SKCompat",
    f"{_P}.dnn": "DNNClassifier DNNEstimator DNNRegressor",
    f"{_P}.linear": "LinearClassifier LinearEstimator LinearRegressor",
    f"{_P}.dnn_linear_combined": """
        DNNLinearCombinedClassifier DNNLinearCombinedEstimator DNNLinearCombinedRegressor
    """,
    f"{_P}.logistic_regressor": "LogisticRegressor",
    f"{_P}.svm": "SVM",
    f"{_P}.head": """
        Head binary_svm_head loss_only_head multi_class_head multi_head multi_label_head no_op_train_fn
        poisson_regression_head regression_head
    """,
    f"{_P}.keys": "MetricKey PredictionKey PredictionType ProblemType",
    f"{_P}.model_fn": "ModeKeys ModelFnOps",
    f"{_P}.metric_spec": "MetricSpec",
    f"{_P}.monitors": "NanLossDuringTrainingError",
    f"{_P}.run_config": "ClusterConfig Environment RunConfig TaskType",
    f"{_P}.experiment": "Experiment",
    f"{_P}.interfaces": "Evaluable Trainable",
    f"{_P}.export_strategy": "ExportStrategy",
    f"{_P}.utils.saved_model_export_utils": "make_export_strategy",
    f"{_P}.utils.input_fn_utils": "InputFnOps build_default_serving_input_fn build_parsing_serving_input_fn",
    f"{_P}.graph_io": """
        queue_parsed_features read_batch_examples read_batch_features read_batch_record_features
        read_keyed_batch_examples read_keyed_batch_features
    """,
    f"{_P}.data_feeder": "extract_pandas_data extract_pandas_labels extract_pandas_matrix",
    "tenfold.estimator.inputs": "numpy_input_fn pandas_input_fn",
}

_ACTIONS = "graph actions trained without an estimator: use tf.train.MonitoredTrainingSession"
_SHARED = "a queue that workers share is a data set of files that each worker shards: use tf.data.Dataset.shard"
_LEFT_OUT = {
    **dict.fromkeys(("graph_actions", "evaluate", "infer", "run_feeds", "run_n", "train"), _ACTIONS),
    **dict.fromkeys(("read_keyed_batch_examples_shared_queue", "read_keyed_batch_features_shared_queue"), _SHARED),
    "KMeansClustering": "use tf.contrib.factorization.KMeansClustering, whose train and predict take an input function",
    "DynamicRnnEstimator": "write a model function with tf.nn.dynamic_rnn",
    "StateSavingRnnEstimator": "write a model function with tf.nn.static_state_saving_rnn",
    "export_estimator": "it made session bundles, which nothing reads any more: use Estimator.export_savedmodel",
    **dict.fromkeys(
        ("extract_dask_data", "extract_dask_labels"), "data frames of dask are not fed: compute them first"
    ),
}

_get, _dir = lazy_names(_P, _TABLE, _LEFT_OUT)

#: Modules that programs reach through the package; `io` has its names from several.
_MODULES = frozenset(
    {
        "datasets",
        "experiment",
        "estimators",
        "io",
        "learn_runner",
        "models",
        "monitors",
        "ops",
        "preprocessing",
        "utils",
    }
)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        from importlib import import_module

        return import_module(f"{_P}.{name}")
    return _get(name)


def __dir__() -> list[str]:
    return sorted({*_dir(), *_MODULES})
