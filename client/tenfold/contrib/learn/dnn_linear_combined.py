"""`tf.contrib.learn.DNNLinearCombinedClassifier`, `…Regressor` and `…Estimator`: wide and deep.

Follows TensorFlow 1.15's `contrib/learn/python/learn/estimators/dnn_linear_combined.py`.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

from tenfold import summary
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
    weighted_sum,
)
from tenfold.graph import get_collection
from tenfold.graph.default_scopes import control_dependencies
from tenfold.ops import nn, state_ops
from tenfold.ops.control_flow import group
from tenfold.ops.variable_scope import variable_scope
from tenfold.train.sync_replicas import SyncReplicasOptimizer
from tenfold.train.training_util import get_global_step

_DNN_LEARNING_RATE = 0.05
_LINEAR_LEARNING_RATE = 0.2


def _optimizer(given: Any) -> Any:
    optimizer = made(given)
    if isinstance(optimizer, SyncReplicasOptimizer):
        raise ValueError(
            "SyncReplicasOptimizer is not supported in DNNLinearCombined model. If you want to use this optimizer, "
            "please use either DNN or Linear model."
        )
    return optimizer


def _model_fn(features: Any, labels: Any, mode: str, params: Any, config: Any = None) -> Any:
    head = params["head"]
    linear_columns, dnn_columns = params.get("linear_feature_columns"), params.get("dnn_feature_columns")
    features = feature_dict(features)
    values = list(features.values())
    linear_optimizer = _optimizer(params.get("linear_optimizer") or "Ftrl")
    dnn_optimizer = _optimizer(params.get("dnn_optimizer") or "Adagrad")
    split = params.get("input_layer_partitioner") or partitioner(config, INPUT_SLICE_BYTES)
    found: list[Any] = []
    input_scope = ""
    if dnn_columns:
        if not params.get("dnn_hidden_units"):
            raise ValueError("dnn_hidden_units must be defined when dnn_feature_columns is specified.")
        with variable_scope("dnn", values=values, partitioner=partitioner(config)):
            logits, input_scope = dense_layers(
                features,
                dnn_columns,
                params["dnn_hidden_units"],
                head.logits_dimension,
                mode,
                activation(params.get("dnn_activation_fn") or nn.relu),
                params.get("dnn_dropout"),
                "dnn",
                split,
                "/",
            )
            found.append(logits)
    if linear_columns:
        with variable_scope("linear", values=values, partitioner=partitioner(config, INPUT_SLICE_BYTES)) as scope:
            joint = params.get("joint_linear_weights")
            logits = weighted_sum(features, linear_columns, head.logits_dimension, "linear", joint, scope)
            summary.scalar(f"{scope.name}/fraction_of_zero_values", nn.zero_fraction(logits))
            summary.histogram(f"{scope.name}/activation", logits)
            found.append(logits)
    logits = found[0] + found[1] if len(found) == 2 else found[0]
    once = params.get("fix_global_step_increment_bug", True)

    def train_op_fn(loss: Any) -> Any:
        from tenfold.contrib.layers import optimize_loss

        step = get_global_step()
        shared = {
            "loss": loss,
            "global_step": step,
            "clip_gradients": params.get("gradient_clip_norm"),
            "summaries": [],
            "increment_global_step": not once,
        }
        ops = []
        if dnn_columns:
            multipliers = gradient_multipliers(params.get("embedding_lr_multipliers"), "dnn", input_scope)
            ops.append(
                optimize_loss(
                    learning_rate=_DNN_LEARNING_RATE,
                    optimizer=dnn_optimizer,
                    gradient_multipliers=multipliers,
                    variables=get_collection("dnn"),
                    name="dnn",
                    **shared,
                )
            )
        if linear_columns:
            ops.append(
                optimize_loss(
                    learning_rate=min(_LINEAR_LEARNING_RATE, 1.0 / sqrt(len(linear_columns))),
                    optimizer=linear_optimizer,
                    variables=get_collection("linear"),
                    name="linear",
                    **shared,
                )
            )
        train_op = group(*ops)
        if not once:
            return train_op
        with control_dependencies([train_op]):
            return state_ops.assign_add(step, 1).op

    return head.create_model_fn_ops(features=features, mode=mode, labels=labels, train_op_fn=train_op_fn, logits=logits)


class DNNLinearCombinedEstimator(Estimator):
    """Wide and deep with a given head. Raises ValueError without columns."""

    def __init__(
        self,
        head: Any,
        model_dir: str | None = None,
        linear_feature_columns: Any = None,
        linear_optimizer: Any = None,
        _joint_linear_weights: bool = False,
        dnn_feature_columns: Any = None,
        dnn_optimizer: Any = None,
        dnn_hidden_units: Any = None,
        dnn_activation_fn: Any = None,
        dnn_dropout: float | None = None,
        gradient_clip_norm: float | None = None,
        config: Any = None,
        feature_engineering_fn: Any = None,
        embedding_lr_multipliers: Any = None,
        fix_global_step_increment_bug: bool = False,
        input_layer_partitioner: Any = None,
    ) -> None:
        linear_columns, dnn_columns = tuple(linear_feature_columns or ()), tuple(dnn_feature_columns or ())
        self._feature_columns = linear_columns + dnn_columns
        if not self._feature_columns:
            raise ValueError("Either linear_feature_columns or dnn_feature_columns must be defined.")
        params = {
            "head": head,
            "linear_feature_columns": linear_columns,
            "linear_optimizer": linear_optimizer,
            "joint_linear_weights": _joint_linear_weights,
            "dnn_feature_columns": dnn_columns,
            "dnn_optimizer": dnn_optimizer,
            "dnn_hidden_units": dnn_hidden_units,
            "dnn_activation_fn": dnn_activation_fn,
            "dnn_dropout": dnn_dropout,
            "gradient_clip_norm": gradient_clip_norm,
            "embedding_lr_multipliers": embedding_lr_multipliers,
            "fix_global_step_increment_bug": fix_global_step_increment_bug,
            "input_layer_partitioner": input_layer_partitioner,
        }
        super().__init__(_model_fn, model_dir, config, params, feature_engineering_fn)


def _split(config: Any, slice_bytes: int | None) -> Any:
    return None if slice_bytes is None else partitioner(config, slice_bytes)


class DNNLinearCombinedClassifier(ClassifierMethods, DNNLinearCombinedEstimator):
    """Two or `n_classes` classes. As TensorFlow 1.15's class of this name in `tf.contrib.learn`."""

    def __init__(
        self,
        model_dir: str | None = None,
        n_classes: int = 2,
        weight_column_name: str | None = None,
        linear_feature_columns: Any = None,
        linear_optimizer: Any = None,
        _joint_linear_weights: bool = False,
        dnn_feature_columns: Any = None,
        dnn_optimizer: Any = None,
        dnn_hidden_units: Any = None,
        dnn_activation_fn: Any = nn.relu,
        dnn_dropout: float | None = None,
        gradient_clip_norm: float | None = None,
        enable_centered_bias: bool = False,
        config: Any = None,
        feature_engineering_fn: Any = None,
        embedding_lr_multipliers: Any = None,
        input_layer_min_slice_size: int | None = None,
        label_keys: Any = None,
        fix_global_step_increment_bug: bool = False,
    ) -> None:
        super().__init__(
            heads.multi_class_head(
                n_classes,
                weight_column_name=weight_column_name,
                enable_centered_bias=enable_centered_bias,
                label_keys=label_keys,
            ),
            model_dir,
            linear_feature_columns,
            linear_optimizer,
            _joint_linear_weights,
            dnn_feature_columns,
            dnn_optimizer,
            dnn_hidden_units,
            dnn_activation_fn,
            dnn_dropout,
            gradient_clip_norm,
            config,
            feature_engineering_fn,
            embedding_lr_multipliers,
            fix_global_step_increment_bug,
            _split(config, input_layer_min_slice_size),
        )


class DNNLinearCombinedRegressor(RegressorMethods, DNNLinearCombinedEstimator):
    """`label_dimension` numbers. As TensorFlow 1.15's class of this name in `tf.contrib.learn`."""

    def __init__(
        self,
        model_dir: str | None = None,
        weight_column_name: str | None = None,
        linear_feature_columns: Any = None,
        linear_optimizer: Any = None,
        _joint_linear_weights: bool = False,
        dnn_feature_columns: Any = None,
        dnn_optimizer: Any = None,
        dnn_hidden_units: Any = None,
        dnn_activation_fn: Any = nn.relu,
        dnn_dropout: float | None = None,
        gradient_clip_norm: float | None = None,
        enable_centered_bias: bool = False,
        label_dimension: int = 1,
        config: Any = None,
        feature_engineering_fn: Any = None,
        embedding_lr_multipliers: Any = None,
        input_layer_min_slice_size: int | None = None,
        fix_global_step_increment_bug: bool = False,
    ) -> None:
        super().__init__(
            heads.regression_head(
                weight_column_name=weight_column_name,
                label_dimension=label_dimension,
                enable_centered_bias=enable_centered_bias,
            ),
            model_dir,
            linear_feature_columns,
            linear_optimizer,
            _joint_linear_weights,
            dnn_feature_columns,
            dnn_optimizer,
            dnn_hidden_units,
            dnn_activation_fn,
            dnn_dropout,
            gradient_clip_norm,
            config,
            feature_engineering_fn,
            embedding_lr_multipliers,
            fix_global_step_increment_bug,
            _split(config, input_layer_min_slice_size),
        )
