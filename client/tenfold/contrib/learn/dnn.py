"""`tf.contrib.learn.DNNClassifier`, `DNNRegressor` and `DNNEstimator`: dense layers over feature columns.

Follows TensorFlow 1.15's `contrib/learn/python/learn/estimators/dnn.py`.
"""

from __future__ import annotations

from typing import Any

from tenfold.contrib.learn import head as heads
from tenfold.contrib.learn.estimator import Estimator
from tenfold.contrib.learn.model_parts import (
    INPUT_SLICE_BYTES,
    ClassifierMethods,
    RegressorMethods,
    activation,
    dense_layers,
    feature_dict,
    gradient_multipliers,
    made,
    partitioner,
)
from tenfold.ops import nn
from tenfold.ops.variable_scope import variable_scope
from tenfold.train.training_util import get_global_step

_LEARNING_RATE = 0.05
_SCOPE = "dnn"


def _dnn_model_fn(features: Any, labels: Any, mode: str, params: Any, config: Any = None) -> Any:
    head = params["head"]
    features = feature_dict(features)
    with variable_scope(_SCOPE, values=list(features.values()), partitioner=partitioner(config)):
        logits, input_scope = dense_layers(
            features,
            params["feature_columns"],
            params["hidden_units"],
            head.logits_dimension,
            mode,
            activation(params.get("activation_fn")),
            params.get("dropout"),
            _SCOPE,
            partitioner(config, params.get("input_layer_min_slice_size") or INPUT_SLICE_BYTES),
            "_",
        )

        def train_op_fn(loss: Any) -> Any:
            from tenfold.contrib.layers import optimize_loss

            return optimize_loss(
                loss=loss,
                global_step=get_global_step(),
                learning_rate=_LEARNING_RATE,
                optimizer=made(params.get("optimizer") or "Adagrad"),
                gradient_multipliers=gradient_multipliers(params.get("embedding_lr_multipliers"), _SCOPE, input_scope),
                clip_gradients=params.get("gradient_clip_norm"),
                name=_SCOPE,
                summaries=[],
            )

        return head.create_model_fn_ops(
            features=features, mode=mode, labels=labels, train_op_fn=train_op_fn, logits=logits
        )


class DNNEstimator(Estimator):
    """Dense layers with a given head."""

    def __init__(
        self,
        head: Any,
        hidden_units: Any,
        feature_columns: Any,
        model_dir: str | None = None,
        optimizer: Any = None,
        activation_fn: Any = nn.relu,
        dropout: float | None = None,
        gradient_clip_norm: float | None = None,
        config: Any = None,
        feature_engineering_fn: Any = None,
        embedding_lr_multipliers: Any = None,
        input_layer_min_slice_size: int | None = None,
    ) -> None:
        self._feature_columns = tuple(feature_columns or ())
        params = {
            "head": head,
            "hidden_units": hidden_units,
            "feature_columns": self._feature_columns,
            "optimizer": optimizer,
            "activation_fn": activation_fn,
            "dropout": dropout,
            "gradient_clip_norm": gradient_clip_norm,
            "embedding_lr_multipliers": embedding_lr_multipliers,
            "input_layer_min_slice_size": input_layer_min_slice_size,
        }
        super().__init__(_dnn_model_fn, model_dir, config, params, feature_engineering_fn)


class DNNClassifier(ClassifierMethods, DNNEstimator):
    """Two or `n_classes` classes. As TensorFlow 1.15's `tf.contrib.learn.DNNClassifier`."""

    def __init__(
        self,
        hidden_units: Any,
        feature_columns: Any,
        model_dir: str | None = None,
        n_classes: int = 2,
        weight_column_name: str | None = None,
        optimizer: Any = None,
        activation_fn: Any = nn.relu,
        dropout: float | None = None,
        gradient_clip_norm: float | None = None,
        enable_centered_bias: bool = False,
        config: Any = None,
        feature_engineering_fn: Any = None,
        embedding_lr_multipliers: Any = None,
        input_layer_min_slice_size: int | None = None,
        label_keys: Any = None,
    ) -> None:
        head = heads.multi_class_head(
            n_classes,
            weight_column_name=weight_column_name,
            enable_centered_bias=enable_centered_bias,
            label_keys=label_keys,
        )
        super().__init__(
            head,
            hidden_units,
            feature_columns,
            model_dir,
            optimizer,
            activation_fn,
            dropout,
            gradient_clip_norm,
            config,
            feature_engineering_fn,
            embedding_lr_multipliers,
            input_layer_min_slice_size,
        )


class DNNRegressor(RegressorMethods, DNNEstimator):
    """`label_dimension` numbers. As TensorFlow 1.15's `tf.contrib.learn.DNNRegressor`."""

    def __init__(
        self,
        hidden_units: Any,
        feature_columns: Any,
        model_dir: str | None = None,
        weight_column_name: str | None = None,
        optimizer: Any = None,
        activation_fn: Any = nn.relu,
        dropout: float | None = None,
        gradient_clip_norm: float | None = None,
        enable_centered_bias: bool = False,
        config: Any = None,
        feature_engineering_fn: Any = None,
        label_dimension: int = 1,
        embedding_lr_multipliers: Any = None,
        input_layer_min_slice_size: int | None = None,
    ) -> None:
        head = heads.regression_head(
            label_dimension=label_dimension,
            weight_column_name=weight_column_name,
            enable_centered_bias=enable_centered_bias,
        )
        super().__init__(
            head,
            hidden_units,
            feature_columns,
            model_dir,
            optimizer,
            activation_fn,
            dropout,
            gradient_clip_norm,
            config,
            feature_engineering_fn,
            embedding_lr_multipliers,
            input_layer_min_slice_size,
        )
