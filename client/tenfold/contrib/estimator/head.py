"""The heads of `tf.contrib.estimator`: those of the canned estimators, which reduce by mean unless told otherwise.

Follows TF 1.15's contrib/estimator/python/estimator/head.py and multi_head.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.estimator.canned import head as heads
from tenfold.estimator.canned.class_heads import MultiLabel
from tenfold.estimator.canned.multi_head import MultiHead
from tenfold.estimator.canned.regression_heads import logistic_loss, poisson_loss
from tenfold.losses import Reduction
from tenfold.ops import math

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold.estimator.canned.base_head import LogitsHead

_MEAN = Reduction.SUM_OVER_BATCH_SIZE


def multi_class_head(
    n_classes: Any,
    weight_column: Any = None,
    label_vocabulary: Any = None,
    loss_reduction: str = _MEAN,
    loss_fn: Any = None,
    name: str | None = None,
) -> LogitsHead:
    """One class of more than two. Raises ValueError."""
    return heads._multi_class_head_with_softmax_cross_entropy_loss(
        n_classes, weight_column, label_vocabulary, loss_reduction, loss_fn, name
    )


def binary_classification_head(
    weight_column: Any = None,
    thresholds: Any = None,
    label_vocabulary: Any = None,
    loss_reduction: str = _MEAN,
    loss_fn: Any = None,
    name: str | None = None,
) -> LogitsHead:
    """Yes or no. Raises ValueError."""
    return heads._binary_logistic_head_with_sigmoid_cross_entropy_loss(
        weight_column, thresholds, label_vocabulary, loss_reduction, loss_fn, name
    )


def regression_head(
    weight_column: Any = None,
    label_dimension: int = 1,
    loss_reduction: str = _MEAN,
    loss_fn: Any = None,
    inverse_link_fn: Any = None,
    name: str | None = None,
) -> LogitsHead:
    """Numbers. Raises ValueError."""
    return heads._regression_head(weight_column, label_dimension, loss_reduction, loss_fn, inverse_link_fn, name)


def poisson_regression_head(
    weight_column: Any = None,
    label_dimension: int = 1,
    loss_reduction: str = _MEAN,
    compute_full_loss: bool = True,
    name: str | None = None,
) -> LogitsHead:
    """Counts, whose logarithms are the logits. Raises ValueError."""
    loss = poisson_loss(compute_full_loss)
    return regression_head(weight_column, label_dimension, loss_reduction, loss, math.exp, name)


def logistic_regression_head(
    weight_column: Any = None, loss_reduction: str = _MEAN, name: str | None = None
) -> LogitsHead:
    """Probabilities. Raises ValueError."""
    return regression_head(weight_column, 1, loss_reduction, logistic_loss, math.sigmoid, name)


def multi_label_head(
    n_classes: int,
    weight_column: Any = None,
    thresholds: Any = None,
    label_vocabulary: Any = None,
    loss_reduction: str = _MEAN,
    loss_fn: Any = None,
    classes_for_class_based_metrics: Any = None,
    name: str | None = None,
) -> LogitsHead:
    """Any number of classes at once. Raises ValueError."""
    return MultiLabel(
        n_classes,
        weight_column,
        thresholds,
        label_vocabulary,
        loss_reduction,
        loss_fn,
        classes_for_class_based_metrics,
        name,
    )


def multi_head(heads: Sequence[Any], head_weights: Sequence[float] | None = None) -> MultiHead:
    """Several heads with names. Raises ValueError."""
    return MultiHead(heads, head_weights)
