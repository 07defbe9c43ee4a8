"""`tf.estimator.LinearClassifier`, `LinearRegressor` and `LinearEstimator`: a weighted sum of feature columns.

Variables are `linear/linear_model/<column>/weights` and `linear/linear_model/bias_weights`, as in TensorFlow 1.15's
`estimator/canned/linear.py`, so that checkpoints are exchanged. sdca.py trains without an optimizer.
"""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, Any

from tenfold import losses, summary
from tenfold.estimator.canned import head as heads
from tenfold.estimator.canned import sdca
from tenfold.estimator.canned.model_parts import check_features, input_partitioner_of
from tenfold.estimator.canned.model_parts import fraction_of_zeros as _compute_fraction_of_zero
from tenfold.estimator.canned.optimizers import get_optimizer_instance
from tenfold.estimator.estimator import Estimator
from tenfold.feature_column.model import linear_model
from tenfold.ops.variable_scope import variable_scope
from tenfold.train.ftrl import FtrlOptimizer

if TYPE_CHECKING:
    from collections.abc import Callable

_LEARNING_RATE = 0.2


def _default_optimizer(feature_columns: Any) -> FtrlOptimizer:
    """FTRL, slower the more columns there are."""
    return FtrlOptimizer(learning_rate=min(_LEARNING_RATE, 1.0 / sqrt(len(feature_columns))))


def linear_logit_fn_builder(units: int, feature_columns: Any, sparse_combiner: str = "sum") -> Callable[..., Any]:
    """A function from features to logits [batch, units]. As `tf.estimator.experimental.linear_logit_fn_builder`."""

    def linear_logit_fn(features: Any) -> Any:
        made: dict[Any, Any] = {}
        logits = linear_model(
            features, feature_columns, units=units, sparse_combiner=sparse_combiner, cols_to_vars=made
        )
        bias = made.pop("bias")
        if units > 1:
            summary.histogram("bias", bias)
        else:
            summary.scalar("bias", bias[0][0])
        summary.scalar("fraction_of_zero_weights", _compute_fraction_of_zero(list(made.values())))
        return logits

    return linear_logit_fn


def _linear_model_fn(
    features: Any,
    labels: Any,
    mode: str,
    head: Any,
    feature_columns: Any,
    optimizer: Any,
    partitioner: Any,
    config: Any,
    sparse_combiner: str = "sum",
) -> Any:
    check_features(features)
    partitioner = partitioner or input_partitioner_of(config)
    with variable_scope("linear", values=tuple(features.values()), partitioner=partitioner):
        if isinstance(optimizer, sdca.LinearSDCA):
            sdca.check_optimizer(optimizer, sparse_combiner)
            return sdca.sdca_model_fn(features, labels, mode, head, feature_columns, optimizer)
        logit_fn = linear_logit_fn_builder(head.logits_dimension, feature_columns, sparse_combiner)
        logits = logit_fn(features=features)
        optimizer = get_optimizer_instance(optimizer or _default_optimizer(feature_columns), _LEARNING_RATE)
        return head.create_estimator_spec(
            features=features, mode=mode, labels=labels, optimizer=optimizer, logits=logits
        )


class LinearEstimator(Estimator):
    """A linear model with a given head. As TensorFlow 1.15's `tf.estimator.LinearEstimator`."""

    def __init__(
        self,
        head: Any,
        feature_columns: Any,
        model_dir: Any = None,
        optimizer: Any = "Ftrl",
        config: Any = None,
        partitioner: Any = None,
        sparse_combiner: str = "sum",
        *,
        warm_start_from: Any = None,
    ) -> None:
        def model_fn(features: Any, labels: Any, mode: str, config: Any) -> Any:
            columns = tuple(feature_columns or ())
            return _linear_model_fn(
                features, labels, mode, head, columns, optimizer, partitioner, config, sparse_combiner
            )

        super().__init__(model_fn=model_fn, model_dir=model_dir, config=config, warm_start_from=warm_start_from)


class LinearClassifier(LinearEstimator):
    """Two or `n_classes` classes. Blocks and raises as `Estimator`. As TensorFlow 1.15's class of this name."""

    def __init__(
        self,
        feature_columns: Any,
        model_dir: Any = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Any = None,
        optimizer: Any = "Ftrl",
        config: Any = None,
        partitioner: Any = None,
        warm_start_from: Any = None,
        loss_reduction: str = losses.Reduction.SUM,
        sparse_combiner: str = "sum",
    ) -> None:
        sdca.check_optimizer(optimizer, sparse_combiner, n_classes)
        head = heads._binary_logistic_or_multi_class_head(n_classes, weight_column, label_vocabulary, loss_reduction)
        super().__init__(
            head,
            feature_columns,
            model_dir,
            optimizer,
            config,
            partitioner,
            sparse_combiner,
            warm_start_from=warm_start_from,
        )


class LinearRegressor(LinearEstimator):
    """`label_dimension` numbers. Blocks and raises as `Estimator`. As TensorFlow 1.15's class of this name."""

    def __init__(
        self,
        feature_columns: Any,
        model_dir: Any = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        optimizer: Any = "Ftrl",
        config: Any = None,
        partitioner: Any = None,
        warm_start_from: Any = None,
        loss_reduction: str = losses.Reduction.SUM,
        sparse_combiner: str = "sum",
    ) -> None:
        sdca.check_optimizer(optimizer, sparse_combiner, label_dimension=label_dimension)
        head = heads._regression_head(weight_column, label_dimension, loss_reduction)
        super().__init__(
            head,
            feature_columns,
            model_dir,
            optimizer,
            config,
            partitioner,
            sparse_combiner,
            warm_start_from=warm_start_from,
        )
