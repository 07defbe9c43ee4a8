"""`tf.contrib.learn.LinearClassifier`, `LinearRegressor` and `LinearEstimator`: weighted sums of feature columns.

With an SDCAOptimizer they have the model function of svm.py. Follows TensorFlow 1.15's
`contrib/learn/python/learn/estimators/linear.py`.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

from tenfold import logging, train
from tenfold.contrib.learn import head as heads
from tenfold.contrib.learn.estimator import Estimator
from tenfold.contrib.learn.model_parts import (
    INPUT_SLICE_BYTES,
    ClassifierMethods,
    RegressorMethods,
    feature_dict,
    made,
    partitioner,
    weighted_sum,
)
from tenfold.gradients import gradients
from tenfold.graph import get_collection
from tenfold.ops.clip import clip_by_global_norm
from tenfold.ops.variable_scope import variable_scope
from tenfold.train.training_util import get_global_step

_LEARNING_RATE = 0.2
_SCOPE = "linear"


def _optimizer(given: Any, feature_columns: Any) -> Any:
    """FTRL by default, slower the more columns there are."""
    if not given:
        return train.FtrlOptimizer(learning_rate=min(_LEARNING_RATE, 1.0 / sqrt(len(feature_columns))))
    if not isinstance(given, str):
        return made(given)
    from tenfold.contrib.layers import OPTIMIZER_CLS_NAMES

    return OPTIMIZER_CLS_NAMES[given](learning_rate=_LEARNING_RATE)


def _is_sdca(optimizer: Any) -> bool:
    """Whether an SDCAOptimizer; without loading it."""
    return hasattr(optimizer, "example_id_column")


def _linear_model_fn(features: Any, labels: Any, mode: str, params: Any, config: Any = None) -> Any:
    head, columns = params["head"], params["feature_columns"]
    features = feature_dict(features)
    split = partitioner(config, INPUT_SLICE_BYTES)
    with variable_scope(_SCOPE, values=list(features.values()), partitioner=split) as scope:
        logits = weighted_sum(features, columns, head.logits_dimension, _SCOPE, params.get("joint_weights"), scope)

        def train_op_fn(loss: Any) -> Any:
            variables = get_collection(_SCOPE)
            found = gradients(loss, variables)
            if params.get("gradient_clip_norm"):
                found, _ = clip_by_global_norm(found, params["gradient_clip_norm"])
            pairs = list(zip(found, variables, strict=True))
            return _optimizer(params.get("optimizer"), columns).apply_gradients(pairs, global_step=get_global_step())

        return head.create_model_fn_ops(
            features=features, mode=mode, labels=labels, train_op_fn=train_op_fn, logits=logits
        )


class LinearEstimator(Estimator):
    """A weighted sum with a given head. Raises ValueError without columns, and for an SDCAOptimizer, which only
    LinearClassifier and LinearRegressor take.
    """

    _takes_sdca = False

    def __init__(
        self,
        feature_columns: Any,
        head: Any,
        model_dir: str | None = None,
        weight_column_name: str | None = None,
        optimizer: Any = None,
        gradient_clip_norm: float | None = None,
        _joint_weights: bool = False,
        config: Any = None,
        feature_engineering_fn: Any = None,
    ) -> None:
        self._feature_columns = tuple(feature_columns or ())
        if not self._feature_columns:
            raise ValueError("feature_columns must not be empty.")
        if _is_sdca(optimizer):
            if not self._takes_sdca:
                raise ValueError("LinearEstimator does not support SDCA optimizer.")
            if _joint_weights:
                raise ValueError("_joint_weights is incompatible with the SDCAOptimizer.")
            from tenfold.contrib.learn.svm import sdca_model_fn

            given = {"head": head, "feature_columns": self._feature_columns, "optimizer": optimizer}
            given["weight_column_name"] = weight_column_name
            super().__init__(sdca_model_fn, model_dir, config, given, feature_engineering_fn)
            return
        params = {
            "head": head,
            "feature_columns": self._feature_columns,
            "optimizer": optimizer,
            "gradient_clip_norm": gradient_clip_norm,
            "joint_weights": _joint_weights,
        }
        super().__init__(_linear_model_fn, model_dir, config, params, feature_engineering_fn)


class LinearClassifier(ClassifierMethods, LinearEstimator):
    """Two or `n_classes` classes. As TensorFlow 1.15's `tf.contrib.learn.LinearClassifier`."""

    _takes_sdca = True

    def __init__(
        self,
        feature_columns: Any,
        model_dir: str | None = None,
        n_classes: int = 2,
        weight_column_name: str | None = None,
        optimizer: Any = None,
        gradient_clip_norm: float | None = None,
        enable_centered_bias: bool = False,
        _joint_weight: bool = False,
        config: Any = None,
        feature_engineering_fn: Any = None,
        label_keys: Any = None,
    ) -> None:
        if enable_centered_bias and _is_sdca(optimizer):
            raise ValueError("enable_centered_bias is not supported with SDCA")
        head = heads.multi_class_head(
            n_classes,
            weight_column_name=weight_column_name,
            enable_centered_bias=enable_centered_bias,
            label_keys=label_keys,
        )
        super().__init__(
            feature_columns,
            head,
            model_dir,
            weight_column_name,
            optimizer=optimizer,
            gradient_clip_norm=gradient_clip_norm,
            _joint_weights=_joint_weight,
            config=config,
            feature_engineering_fn=feature_engineering_fn,
        )


class LinearRegressor(RegressorMethods, LinearEstimator):
    """`label_dimension` numbers. As TensorFlow 1.15's `tf.contrib.learn.LinearRegressor`."""

    _takes_sdca = True

    def __init__(
        self,
        feature_columns: Any,
        model_dir: str | None = None,
        weight_column_name: str | None = None,
        optimizer: Any = None,
        gradient_clip_norm: float | None = None,
        enable_centered_bias: bool = False,
        label_dimension: int = 1,
        _joint_weights: bool = False,
        config: Any = None,
        feature_engineering_fn: Any = None,
    ) -> None:
        if enable_centered_bias and _is_sdca(optimizer):
            enable_centered_bias = False
            logging.warning("centered_bias is not supported with SDCA, please disable it explicitly.")
        head = heads.regression_head(
            weight_column_name=weight_column_name,
            label_dimension=label_dimension,
            enable_centered_bias=enable_centered_bias,
        )
        super().__init__(
            feature_columns,
            head,
            model_dir,
            weight_column_name,
            optimizer=optimizer,
            gradient_clip_norm=gradient_clip_norm,
            _joint_weights=_joint_weights,
            config=config,
            feature_engineering_fn=feature_engineering_fn,
        )
