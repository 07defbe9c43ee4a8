"""`tf.estimator.BaselineClassifier`, `BaselineRegressor` and `BaselineEstimator`: one bias, whatever the features are.

Follows TensorFlow 1.15's `estimator/canned/baseline.py`; the variable is `baseline/bias`.
"""

from __future__ import annotations

from typing import Any

from tenfold import losses
from tenfold.estimator.canned import head as heads
from tenfold.estimator.canned.optimizers import get_optimizer_instance
from tenfold.estimator.estimator import Estimator
from tenfold.feature_column.numeric import NumericColumn
from tenfold.graph.default_scopes import control_dependencies
from tenfold.ops import array, check_ops, math
from tenfold.ops.init_ops import zeros_initializer
from tenfold.ops.variable_scope import get_variable, variable_scope
from tenfold.train.training_util import get_global_step

_LEARNING_RATE = 0.3


def _weight_key(weight_column: Any) -> str | None:
    if weight_column is None or isinstance(weight_column, str):
        return weight_column
    if not isinstance(weight_column, NumericColumn):
        raise TypeError(f"Weight column must be either a string or _NumericColumn. Given type: {type(weight_column)}.")
    return weight_column.key


def _baseline_logit_fn_builder(num_outputs: int, weight_column: Any = None) -> Any:
    """A function from features, which agree on the size of the batch, to the bias for each example."""

    def baseline_logit_fn(features: Any) -> Any:
        key = _weight_key(weight_column)
        sizes = [array.shape(feature)[0] for name, feature in features.items() if name != key]
        checks = [check_ops.assert_equal(sizes[0], size) for size in sizes[1:]]
        with control_dependencies(checks), variable_scope("baseline"):
            bias = get_variable("bias", shape=[num_outputs], initializer=zeros_initializer())
            return math.multiply(bias, array.ones([sizes[0], num_outputs]))

    return baseline_logit_fn


def _baseline_model_fn(
    features: Any, labels: Any, mode: str, head: Any, optimizer: Any, weight_column: Any = None, config: Any = None
) -> Any:
    logits = _baseline_logit_fn_builder(head.logits_dimension, weight_column)(features)

    def train_op_fn(loss: Any) -> Any:
        made = get_optimizer_instance(optimizer, learning_rate=_LEARNING_RATE)
        return made.minimize(loss, global_step=get_global_step())

    return head.create_estimator_spec(
        features=features, mode=mode, logits=logits, labels=labels, train_op_fn=train_op_fn
    )


class BaselineEstimator(Estimator):
    """A bias with a given head. As TensorFlow 1.15's `tf.estimator.BaselineEstimator`."""

    def __init__(
        self,
        head: Any,
        model_dir: Any = None,
        optimizer: Any = "Ftrl",
        config: Any = None,
        *,
        weight_column: Any = None,
    ) -> None:
        def model_fn(features: Any, labels: Any, mode: str, config: Any) -> Any:
            return _baseline_model_fn(features, labels, mode, head, optimizer, weight_column, config)

        super().__init__(model_fn=model_fn, model_dir=model_dir, config=config)


class BaselineClassifier(BaselineEstimator):
    """The frequencies of the classes. As TensorFlow 1.15's `tf.estimator.BaselineClassifier`."""

    def __init__(
        self,
        model_dir: Any = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Any = None,
        optimizer: Any = "Ftrl",
        config: Any = None,
        loss_reduction: str = losses.Reduction.SUM,
    ) -> None:
        head = heads._binary_logistic_or_multi_class_head(n_classes, weight_column, label_vocabulary, loss_reduction)
        super().__init__(head, model_dir, optimizer, config, weight_column=weight_column)


class BaselineRegressor(BaselineEstimator):
    """The mean of the labels. As TensorFlow 1.15's `tf.estimator.BaselineRegressor`."""

    def __init__(
        self,
        model_dir: Any = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        optimizer: Any = "Ftrl",
        config: Any = None,
        loss_reduction: str = losses.Reduction.SUM,
    ) -> None:
        super().__init__(
            heads._regression_head(weight_column, label_dimension, loss_reduction), model_dir, optimizer, config
        )
