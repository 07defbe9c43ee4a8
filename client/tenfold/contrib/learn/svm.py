"""`tf.contrib.learn.SVM`, and the model function of linear models that dual coordinate ascent trains.

linear.py uses the model function, too. Follows TensorFlow 1.15's `contrib/learn/python/learn/estimators/svm.py` and
`linear.py`.
"""

from __future__ import annotations

from typing import Any

from tenfold.contrib.feature_columns import real_valued_column, weighted_sum_from_feature_columns
from tenfold.contrib.learn.estimator import Estimator
from tenfold.contrib.learn.head import binary_svm_head
from tenfold.contrib.learn.model_parts import ClassMethods, feature_dict
from tenfold.contrib.learn.single_heads import _BinaryLogisticHead, _BinarySvmHead, _RegressionHead
from tenfold.contrib.linear_optimizer import SDCAOptimizer
from tenfold.estimator.canned.sdca import UpdateWeightsHook
from tenfold.ops import array
from tenfold.ops.variable_scope import variable_scope
from tenfold.train.training_util import get_global_step

_LOSSES = ((_BinarySvmHead, "hinge_loss"), (_BinaryLogisticHead, "logistic_loss"), (_RegressionHead, "squared_loss"))


def sdca_model_fn(features: Any, labels: Any, mode: str, params: Any) -> Any:
    """A linear model of `params`: head, feature_columns, optimizer (an SDCAOptimizer), weight_column_name.

    Raises ValueError for another optimizer, and for a head whose loss it does not minimize.
    """
    head, columns, optimizer = params["head"], params["feature_columns"], params["optimizer"]
    if not isinstance(optimizer, SDCAOptimizer):
        raise ValueError("Optimizer must be of type SDCAOptimizer")
    loss_type = next((loss for kind, loss in _LOSSES if isinstance(head, kind)), None)
    if loss_type is None:
        raise ValueError(f"Unsupported head type: {head}")
    if head.logits_dimension != 1:
        raise ValueError("SDCA only applies for logits_dimension=1.")
    features = feature_dict(features)
    with variable_scope("linear", values=list(features.values()), partitioner=optimizer.partitioner) as scope:
        logits, variables, bias = weighted_sum_from_feature_columns(features, columns, num_outputs=1, scope=scope)
    hooks = []

    def train_op_fn(_: Any) -> Any:
        constant = real_valued_column("tf_virtual_bias_column")
        with_bias = {**features, constant: array.ones([array.shape(logits)[0], 1])}
        solver, train_op = optimizer.get_train_step(
            {**variables, constant: [bias]}, params["weight_column_name"], loss_type, with_bias, labels,
            get_global_step(),
        )  # fmt: skip
        hooks.append(UpdateWeightsHook(solver, train_op))
        return train_op

    ops = head.create_model_fn_ops(features=features, labels=labels, mode=mode, train_op_fn=train_op_fn, logits=logits)
    return ops._replace(training_chief_hooks=[*ops.training_chief_hooks, *hooks])


class SVM(ClassMethods, Estimator):
    """A linear support vector machine of two classes. As TensorFlow 1.15's `tf.contrib.learn.SVM`.

    Features name each example in `example_id_column`, a string. Raises ValueError for kernels, of which there are none.
    It gives no probabilities: `predict_proba` raises KeyError.
    """

    def __init__(
        self,
        example_id_column: str,
        feature_columns: Any,
        weight_column_name: str | None = None,
        model_dir: str | None = None,
        l1_regularization: float = 0.0,
        l2_regularization: float = 0.0,
        num_loss_partitions: int = 1,
        kernels: Any = None,
        config: Any = None,
        feature_engineering_fn: Any = None,
    ) -> None:
        if kernels is not None:
            raise ValueError("Kernel SVMs are not currently supported.")
        optimizer = SDCAOptimizer(
            example_id_column,
            num_loss_partitions,
            symmetric_l1_regularization=l1_regularization,
            symmetric_l2_regularization=l2_regularization,
        )
        params = {
            "head": binary_svm_head(weight_column_name=weight_column_name, enable_centered_bias=False),
            "feature_columns": tuple(feature_columns),
            "optimizer": optimizer,
            "weight_column_name": weight_column_name,
        }
        super().__init__(sdca_model_fn, model_dir, config, params, feature_engineering_fn)
