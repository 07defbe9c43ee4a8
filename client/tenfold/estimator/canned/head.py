"""The heads of canned estimators, under the names of TensorFlow 1.15's `estimator/canned/head.py`.

They sum the loss of a batch. Called by the estimators beside it and by `tf.contrib.estimator`'s heads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold import losses
from tenfold.estimator.canned.base_head import LossSpec, _Head
from tenfold.estimator.canned.class_heads import Binary, MultiClass
from tenfold.estimator.canned.regression_heads import Regression

if TYPE_CHECKING:
    from tenfold.estimator.canned.base_head import LogitsHead

__all__ = ["LossSpec", "_Head"]


def _multi_class_head_with_softmax_cross_entropy_loss(
    n_classes: Any,
    weight_column: Any = None,
    label_vocabulary: Any = None,
    loss_reduction: str = losses.Reduction.SUM,
    loss_fn: Any = None,
    name: str | None = None,
) -> LogitsHead:
    return MultiClass(n_classes, weight_column, label_vocabulary, loss_reduction, loss_fn, name)


def _binary_logistic_head_with_sigmoid_cross_entropy_loss(
    weight_column: Any = None,
    thresholds: Any = None,
    label_vocabulary: Any = None,
    loss_reduction: str = losses.Reduction.SUM,
    loss_fn: Any = None,
    name: str | None = None,
) -> LogitsHead:
    if label_vocabulary is not None and not isinstance(label_vocabulary, (list, tuple)):
        raise TypeError(f"label_vocabulary should be a list or tuple. Given type: {type(label_vocabulary)}")
    return Binary(weight_column, thresholds, label_vocabulary, loss_reduction, loss_fn, name)


def _regression_head(
    weight_column: Any = None,
    label_dimension: int = 1,
    loss_reduction: str = losses.Reduction.SUM,
    loss_fn: Any = None,
    inverse_link_fn: Any = None,
    name: str | None = None,
) -> LogitsHead:
    return Regression(label_dimension, weight_column, loss_reduction, loss_fn, inverse_link_fn, name)


def _binary_logistic_or_multi_class_head(
    n_classes: Any, weight_column: Any, label_vocabulary: Any, loss_reduction: str
) -> LogitsHead:
    if n_classes == 2:
        return _binary_logistic_head_with_sigmoid_cross_entropy_loss(
            weight_column, label_vocabulary=label_vocabulary, loss_reduction=loss_reduction
        )
    return _multi_class_head_with_softmax_cross_entropy_loss(n_classes, weight_column, label_vocabulary, loss_reduction)
