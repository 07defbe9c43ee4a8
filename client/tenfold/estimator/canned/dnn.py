"""`tf.estimator.DNNClassifier`, `DNNRegressor` and `DNNEstimator`: dense layers over feature columns.

Variables are `dnn/input_from_feature_columns/input_layer/<column>/…`, `dnn/hiddenlayer_<i>/kernel` and `bias`,
`dnn/hiddenlayer_<i>/batchnorm_<i>/…` and `dnn/logits/…`, as in TensorFlow 1.15's `estimator/canned/dnn.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold import losses
from tenfold.estimator.canned import head as heads
from tenfold.estimator.canned.model_parts import (
    check_features,
    input_partitioner_of,
    partitioner_of,
    summarize_layer,
)
from tenfold.estimator.canned.optimizers import get_optimizer_instance
from tenfold.estimator.estimator import Estimator
from tenfold.estimator.mode_keys import ModeKeys
from tenfold.feature_column.model import input_layer
from tenfold.layers.core import Dense, Dropout
from tenfold.layers.normalization import BatchNormalization
from tenfold.ops import nn
from tenfold.ops.init_ops import glorot_uniform_initializer
from tenfold.ops.variable_scope import variable_scope

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_LEARNING_RATE = 0.05


def dnn_logit_fn_builder(
    units: int,
    hidden_units: Sequence[int],
    feature_columns: Any,
    activation_fn: Any,
    dropout: float | None,
    input_layer_partitioner: Any,
    batch_norm: bool,
) -> Callable[..., Any]:
    """A function from features and a mode to logits [batch, units]. Raises ValueError unless `units` is an int.

    As TensorFlow 1.15's `tf.estimator.experimental.dnn_logit_fn_builder`.
    """
    if not isinstance(units, int):
        raise ValueError(f"units must be an int.  Given type: {type(units)}")

    def dnn_logit_fn(features: Any, mode: str) -> Any:
        training = mode == ModeKeys.TRAIN
        with variable_scope("input_from_feature_columns", partitioner=input_layer_partitioner):
            net = input_layer(features, feature_columns)
        for number, size in enumerate(hidden_units):
            with variable_scope(f"hiddenlayer_{number}") as scope:
                net = _dense(size, activation_fn, scope)(net)
                if dropout is not None and training:
                    net = Dropout(rate=dropout)(net, training=True)
                if batch_norm:
                    name = f"batchnorm_{number}"
                    net = BatchNormalization(momentum=0.999, name=name, _scope=name)(net, training=training)
            summarize_layer(net, scope.name)
        with variable_scope("logits") as scope:
            logits = _dense(units, None, scope)(net)
        summarize_layer(logits, scope.name)
        return logits

    return dnn_logit_fn


def _dense(units: int, activation: Any, scope: Any) -> Dense:
    return Dense(
        units, activation=activation, kernel_initializer=glorot_uniform_initializer(), name=scope, _scope=scope
    )


def _dnn_model_fn(
    features: Any,
    labels: Any,
    mode: str,
    head: Any,
    hidden_units: Any,
    feature_columns: Any,
    optimizer: Any = "Adagrad",
    activation_fn: Any = nn.relu,
    dropout: float | None = None,
    input_layer_partitioner: Any = None,
    config: Any = None,
    use_tpu: bool = False,
    batch_norm: bool = False,
) -> Any:
    optimizer = get_optimizer_instance(optimizer, learning_rate=_LEARNING_RATE)
    check_features(features)
    with variable_scope("dnn", values=tuple(features.values()), partitioner=partitioner_of(config)):
        logit_fn = dnn_logit_fn_builder(
            head.logits_dimension,
            hidden_units,
            feature_columns,
            activation_fn,
            dropout,
            input_layer_partitioner or input_partitioner_of(config),
            batch_norm,
        )
        logits = logit_fn(features=features, mode=mode)
        return head.create_estimator_spec(
            features=features, mode=mode, labels=labels, optimizer=optimizer, logits=logits
        )


class DNNEstimator(Estimator):
    """Dense layers with a given head. As TensorFlow 1.15's `tf.estimator.DNNEstimator`."""

    def __init__(
        self,
        head: Any,
        hidden_units: Any,
        feature_columns: Any,
        model_dir: Any = None,
        optimizer: Any = "Adagrad",
        activation_fn: Any = nn.relu,
        dropout: float | None = None,
        input_layer_partitioner: Any = None,
        config: Any = None,
        warm_start_from: Any = None,
        batch_norm: bool = False,
    ) -> None:
        def model_fn(features: Any, labels: Any, mode: str, config: Any) -> Any:
            return _dnn_model_fn(
                features,
                labels,
                mode,
                head,
                hidden_units,
                tuple(feature_columns or ()),
                optimizer,
                activation_fn,
                dropout,
                input_layer_partitioner,
                config,
                batch_norm=batch_norm,
            )

        super().__init__(model_fn=model_fn, model_dir=model_dir, config=config, warm_start_from=warm_start_from)


class DNNClassifier(DNNEstimator):
    """Two or `n_classes` classes. Blocks and raises as `Estimator`. As TensorFlow 1.15's class of this name."""

    def __init__(
        self,
        hidden_units: Any,
        feature_columns: Any,
        model_dir: Any = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Any = None,
        optimizer: Any = "Adagrad",
        activation_fn: Any = nn.relu,
        dropout: float | None = None,
        input_layer_partitioner: Any = None,
        config: Any = None,
        warm_start_from: Any = None,
        loss_reduction: str = losses.Reduction.SUM,
        batch_norm: bool = False,
    ) -> None:
        head = heads._binary_logistic_or_multi_class_head(n_classes, weight_column, label_vocabulary, loss_reduction)
        super().__init__(
            head,
            hidden_units,
            feature_columns,
            model_dir,
            optimizer,
            activation_fn,
            dropout,
            input_layer_partitioner,
            config,
            warm_start_from,
            batch_norm,
        )


class DNNRegressor(DNNEstimator):
    """`label_dimension` numbers. Blocks and raises as `Estimator`. As TensorFlow 1.15's class of this name."""

    def __init__(
        self,
        hidden_units: Any,
        feature_columns: Any,
        model_dir: Any = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        optimizer: Any = "Adagrad",
        activation_fn: Any = nn.relu,
        dropout: float | None = None,
        input_layer_partitioner: Any = None,
        config: Any = None,
        warm_start_from: Any = None,
        loss_reduction: str = losses.Reduction.SUM,
        batch_norm: bool = False,
    ) -> None:
        head = heads._regression_head(weight_column, label_dimension, loss_reduction)
        super().__init__(
            head,
            hidden_units,
            feature_columns,
            model_dir,
            optimizer,
            activation_fn,
            dropout,
            input_layer_partitioner,
            config,
            warm_start_from,
            batch_norm,
        )
