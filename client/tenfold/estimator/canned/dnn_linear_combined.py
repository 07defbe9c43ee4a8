"""`tf.estimator.DNNLinearCombinedClassifier`, `…Regressor` and `…Estimator`: wide and deep.

The logits of a linear model (scope `linear`) and of dense layers (scope `dnn`) are added, and each has an optimizer of
its own. Follows TensorFlow 1.15's `estimator/canned/dnn_linear_combined.py`.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

from tenfold import losses
from tenfold.estimator.canned import head as heads
from tenfold.estimator.canned.dnn import dnn_logit_fn_builder
from tenfold.estimator.canned.linear import linear_logit_fn_builder
from tenfold.estimator.canned.model_parts import (
    check_features,
    input_partitioner_of,
    partitioner_of,
    summarize_layer,
)
from tenfold.estimator.canned.optimizers import get_optimizer_instance
from tenfold.estimator.estimator import Estimator
from tenfold.graph import get_collection
from tenfold.graph.collections import GraphKeys
from tenfold.graph.default_scopes import control_dependencies
from tenfold.ops import nn, state_ops
from tenfold.ops.control_flow import group
from tenfold.ops.variable_scope import variable_scope
from tenfold.train.sync_replicas import SyncReplicasOptimizer
from tenfold.train.training_util import get_global_step

_DNN_LEARNING_RATE = 0.001
_LINEAR_LEARNING_RATE = 0.005


def _linear_learning_rate(columns: int) -> float:
    return min(_LINEAR_LEARNING_RATE, 1.0 / sqrt(columns))


def _optimizer(given: Any, learning_rate: float) -> Any:
    """Raises ValueError for one that synchronizes replicas, of which two would wait for each other."""
    optimizer = get_optimizer_instance(given, learning_rate=learning_rate)
    if isinstance(optimizer, SyncReplicasOptimizer):
        raise ValueError(
            "SyncReplicasOptimizer does not support multi optimizers case. Therefore, it is not supported in "
            "DNNLinearCombined model. If you want to use this optimizer, please use either DNN or Linear model."
        )
    return optimizer


def _check_columns(linear_feature_columns: Any, dnn_feature_columns: Any) -> list[Any]:
    columns = [*(linear_feature_columns or ()), *(dnn_feature_columns or ())]
    if not columns:
        raise ValueError("Either linear_feature_columns or dnn_feature_columns must be defined.")
    return columns


def _dnn_linear_combined_model_fn(
    features: Any,
    labels: Any,
    mode: str,
    head: Any,
    linear_feature_columns: Any = None,
    linear_optimizer: Any = "Ftrl",
    dnn_feature_columns: Any = None,
    dnn_optimizer: Any = "Adagrad",
    dnn_hidden_units: Any = None,
    dnn_activation_fn: Any = nn.relu,
    dnn_dropout: float | None = None,
    input_layer_partitioner: Any = None,
    config: Any = None,
    batch_norm: bool = False,
    linear_sparse_combiner: str = "sum",
) -> Any:
    check_features(features)
    _check_columns(linear_feature_columns, dnn_feature_columns)
    input_layer_partitioner = input_layer_partitioner or input_partitioner_of(config)
    values = tuple(features.values())
    #: Scope → its logits, and the optimizer of its variables.
    parts: dict[str, tuple[Any, Any]] = {}
    if dnn_feature_columns:
        optimizer = _optimizer(dnn_optimizer, _DNN_LEARNING_RATE)
        if not dnn_hidden_units:
            raise ValueError("dnn_hidden_units must be defined when dnn_feature_columns is specified.")
        with variable_scope("dnn", values=values, partitioner=partitioner_of(config)) as scope:
            dnn_logit_fn = dnn_logit_fn_builder(
                head.logits_dimension,
                dnn_hidden_units,
                dnn_feature_columns,
                dnn_activation_fn,
                dnn_dropout,
                input_layer_partitioner,
                batch_norm,
            )
            parts[scope.name] = dnn_logit_fn(features=features, mode=mode), optimizer
    if linear_feature_columns:
        optimizer = _optimizer(linear_optimizer, _linear_learning_rate(len(linear_feature_columns)))
        with variable_scope("linear", values=values, partitioner=input_layer_partitioner) as scope:
            logit_fn = linear_logit_fn_builder(head.logits_dimension, linear_feature_columns, linear_sparse_combiner)
            parts[scope.name] = logit_fn(features=features), optimizer
            summarize_layer(parts[scope.name][0], scope.name)
    found = [logits for logits, _ in parts.values()]
    logits = found[0] + found[1] if len(found) == 2 else found[0]

    def train_op_fn(loss: Any) -> Any:
        ops = [
            each.minimize(loss, var_list=get_collection(GraphKeys.TRAINABLE_VARIABLES, scope=name))
            for name, (_, each) in parts.items()
        ]
        with control_dependencies([group(*ops)]):
            return state_ops.assign_add(get_global_step(), 1).op

    return head.create_estimator_spec(
        features=features, mode=mode, labels=labels, train_op_fn=train_op_fn, logits=logits
    )


class DNNLinearCombinedEstimator(Estimator):
    """Wide and deep with a given head. As TensorFlow 1.15's `tf.estimator.DNNLinearCombinedEstimator`."""

    def __init__(
        self,
        head: Any,
        model_dir: Any = None,
        linear_feature_columns: Any = None,
        linear_optimizer: Any = "Ftrl",
        dnn_feature_columns: Any = None,
        dnn_optimizer: Any = "Adagrad",
        dnn_hidden_units: Any = None,
        dnn_activation_fn: Any = nn.relu,
        dnn_dropout: float | None = None,
        input_layer_partitioner: Any = None,
        config: Any = None,
        linear_sparse_combiner: str = "sum",
        *,
        warm_start_from: Any = None,
        batch_norm: bool = False,
    ) -> None:
        self._feature_columns = _check_columns(linear_feature_columns, dnn_feature_columns)

        def model_fn(features: Any, labels: Any, mode: str, config: Any) -> Any:
            return _dnn_linear_combined_model_fn(
                features,
                labels,
                mode,
                head,
                linear_feature_columns,
                linear_optimizer,
                dnn_feature_columns,
                dnn_optimizer,
                dnn_hidden_units,
                dnn_activation_fn,
                dnn_dropout,
                input_layer_partitioner,
                config,
                batch_norm,
                linear_sparse_combiner,
            )

        super().__init__(model_fn=model_fn, model_dir=model_dir, config=config, warm_start_from=warm_start_from)


class DNNLinearCombinedClassifier(DNNLinearCombinedEstimator):
    """Two or `n_classes` classes. Blocks and raises as `Estimator`. As TensorFlow 1.15's class of this name."""

    def __init__(
        self,
        model_dir: Any = None,
        linear_feature_columns: Any = None,
        linear_optimizer: Any = "Ftrl",
        dnn_feature_columns: Any = None,
        dnn_optimizer: Any = "Adagrad",
        dnn_hidden_units: Any = None,
        dnn_activation_fn: Any = nn.relu,
        dnn_dropout: float | None = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Any = None,
        input_layer_partitioner: Any = None,
        config: Any = None,
        warm_start_from: Any = None,
        loss_reduction: str = losses.Reduction.SUM,
        batch_norm: bool = False,
        linear_sparse_combiner: str = "sum",
    ) -> None:
        super().__init__(
            heads._binary_logistic_or_multi_class_head(n_classes, weight_column, label_vocabulary, loss_reduction),
            model_dir,
            linear_feature_columns,
            linear_optimizer,
            dnn_feature_columns,
            dnn_optimizer,
            dnn_hidden_units,
            dnn_activation_fn,
            dnn_dropout,
            input_layer_partitioner,
            config,
            linear_sparse_combiner,
            warm_start_from=warm_start_from,
            batch_norm=batch_norm,
        )


class DNNLinearCombinedRegressor(DNNLinearCombinedEstimator):
    """`label_dimension` numbers. Blocks and raises as `Estimator`. As TensorFlow 1.15's class of this name."""

    def __init__(
        self,
        model_dir: Any = None,
        linear_feature_columns: Any = None,
        linear_optimizer: Any = "Ftrl",
        dnn_feature_columns: Any = None,
        dnn_optimizer: Any = "Adagrad",
        dnn_hidden_units: Any = None,
        dnn_activation_fn: Any = nn.relu,
        dnn_dropout: float | None = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        input_layer_partitioner: Any = None,
        config: Any = None,
        warm_start_from: Any = None,
        loss_reduction: str = losses.Reduction.SUM,
        batch_norm: bool = False,
        linear_sparse_combiner: str = "sum",
    ) -> None:
        super().__init__(
            heads._regression_head(weight_column, label_dimension, loss_reduction),
            model_dir,
            linear_feature_columns,
            linear_optimizer,
            dnn_feature_columns,
            dnn_optimizer,
            dnn_hidden_units,
            dnn_activation_fn,
            dnn_dropout,
            input_layer_partitioner,
            config,
            linear_sparse_combiner,
            warm_start_from=warm_start_from,
            batch_norm=batch_norm,
        )
