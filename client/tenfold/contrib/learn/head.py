"""The heads of `tf.contrib.learn`, by the functions that make them; heads of several heads, and of a loss alone.

Unlike those of `tf.estimator` they train with the mean of the loss, and report its weighted mean. Follows TensorFlow
1.15's `contrib/learn/python/learn/estimators/head.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold import summary
from tenfold.contrib.learn.head_parts import (
    checked_loss_fn,
    mean_squared_loss,
    poisson_loss,
)
from tenfold.contrib.learn.keys import MetricKey
from tenfold.contrib.learn.model_fn import ModeKeys, ModelFnOps
from tenfold.contrib.learn.single_heads import (
    Head,
    _BinaryLogisticHead,
    _BinarySvmHead,
    _MultiClassHead,
    _MultiLabelHead,
    _RegressionHead,
)
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold.ops import array, math
from tenfold.ops.control_flow import group, no_op
from tenfold.ops.variable_scope import variable_scope

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class _LossOnlyHead(Head):
    def __init__(self, loss_fn: Any, head_name: str | None = None) -> None:
        self._loss_fn = loss_fn
        self.head_name = head_name or "loss_only_head"

    @property
    def logits_dimension(self) -> int:
        return 0

    def create_model_fn_ops(
        self,
        features: Mapping[str, Any],
        mode: str,
        labels: Any = None,
        train_op_fn: Any = None,
        logits: Any = None,
        logits_input: Any = None,
        scope: Any = None,
    ) -> ModelFnOps:
        loss = train_op = None
        if mode != ModeKeys.INFER:
            with variable_scope(scope, default_name=self.head_name):
                loss = self._loss_fn()
                loss = math.add_n(loss) if isinstance(loss, list) else loss
                with name_scope(""):
                    summary.scalar(f"{MetricKey.LOSS}/{self.head_name}", array.identity(loss))
                if mode == ModeKeys.TRAIN:
                    if train_op_fn is None:
                        raise ValueError("train_op_fn can not be None in TRAIN mode")
                    with name_scope(None, "train_op", (loss,)):
                        train_op = train_op_fn(loss)
        return ModelFnOps(mode=mode, loss=loss, train_op=train_op, predictions={}, eval_metric_ops={})


class _MultiHead(Head):
    def __init__(self, heads: Sequence[Any], loss_weights: Sequence[float] | None) -> None:
        for head in heads:
            if not head.head_name:
                raise ValueError("Members of MultiHead must have names.")
        self._heads = heads
        self._loss_weights = loss_weights
        self.head_name = None

    @property
    def logits_dimension(self) -> int:
        return sum(head.logits_dimension for head in self._heads)

    def create_model_fn_ops(
        self,
        features: Mapping[str, Any],
        mode: str,
        labels: Any = None,
        train_op_fn: Any = None,
        logits: Any = None,
        logits_input: Any = None,
        scope: Any = None,
    ) -> ModelFnOps:
        if mode == ModeKeys.TRAIN and train_op_fn is None:
            raise ValueError("train_op_fn can not be None in TRAIN mode.")
        if logits is not None and not isinstance(logits, dict):
            logits = convert_to_tensor(logits)
        made: list[tuple[Any, ModelFnOps]] = []
        begin = 0
        for head in self._heads:
            own = logits
            if isinstance(logits, dict):
                own = logits.get(head.head_name)
            elif logits is not None:
                own = logits[:, begin : begin + head.logits_dimension]
            begin += head.logits_dimension
            ops = head.create_model_fn_ops(
                features=features,
                mode=mode,
                labels=labels,
                train_op_fn=no_op_train_fn,
                logits=own,
                logits_input=logits_input,
                scope=scope,
            )
            made.append((head, ops))
        found = {key: value for _, ops in made for key, value in ops.eval_metric_ops.items()}
        predictions: Any = {
            (head.head_name, key): value for head, ops in made for key, value in (ops.predictions or {}).items()
        }
        if mode == ModeKeys.INFER:
            outputs = {
                head.head_name: ops.output_alternatives[head.head_name] for head, ops in made if ops.output_alternatives
            }
            return ModelFnOps(mode=mode, predictions=predictions, output_alternatives=outputs)
        loss = self._merged([ops.loss for _, ops in made])
        if mode == ModeKeys.EVAL:
            return ModelFnOps(mode=mode, predictions=predictions, loss=loss, eval_metric_ops=found)
        train_op = group(train_op_fn(loss), *(ops.train_op for _, ops in made))
        return ModelFnOps(mode=mode, loss=loss, train_op=train_op, eval_metric_ops=found)

    def _merged(self, losses: Sequence[Any]) -> Any:
        if self._loss_weights:
            losses = [math.multiply(loss, w) for loss, w in zip(losses, self._loss_weights, strict=True)]
        return math.add_n(losses)


def no_op_train_fn(loss: Any) -> Any:
    """A train op that does nothing."""
    return no_op()


def regression_head(
    label_name: str | None = None,
    weight_column_name: str | None = None,
    label_dimension: int = 1,
    enable_centered_bias: bool = False,
    head_name: str | None = None,
    link_fn: Any = None,
) -> Head:
    """Numbers, by squared error."""
    rest = (label_name, weight_column_name, enable_centered_bias, head_name)
    return _RegressionHead(link_fn, label_dimension, mean_squared_loss, *rest)


def poisson_regression_head(
    label_name: str | None = None,
    weight_column_name: str | None = None,
    label_dimension: int = 1,
    enable_centered_bias: bool = False,
    head_name: str | None = None,
) -> Head:
    """Counts, whose logarithms are the logits."""
    rest = (label_name, weight_column_name, enable_centered_bias, head_name)
    return _RegressionHead(math.exp, label_dimension, poisson_loss, *rest)


def multi_class_head(
    n_classes: int,
    label_name: str | None = None,
    weight_column_name: str | None = None,
    enable_centered_bias: bool = False,
    head_name: str | None = None,
    thresholds: Any = None,
    metric_class_ids: Any = None,
    loss_fn: Any = None,
    label_keys: Any = None,
) -> Head:
    """One class of two or more. Raises ValueError for fewer, and for arguments that do not go together."""
    if n_classes is None or n_classes < 2:
        raise ValueError("n_classes must be > 1 for classification.")
    rest = (checked_loss_fn(loss_fn), label_name, weight_column_name, enable_centered_bias, head_name)
    if n_classes > 2:
        return _MultiClassHead(n_classes, metric_class_ids, label_keys, *rest)
    if metric_class_ids:
        raise ValueError("metric_class_ids invalid for n_classes==2.")
    if label_keys:
        raise ValueError("label_keys is not supported for n_classes=2.")
    return _BinaryLogisticHead(thresholds, *rest)


def binary_svm_head(
    label_name: str | None = None,
    weight_column_name: str | None = None,
    enable_centered_bias: bool = False,
    head_name: str | None = None,
    thresholds: Any = None,
) -> Head:
    """Yes or no, by hinge loss."""
    return _BinarySvmHead(label_name, weight_column_name, enable_centered_bias, head_name)


def multi_label_head(
    n_classes: int,
    label_name: str | None = None,
    weight_column_name: str | None = None,
    enable_centered_bias: bool = False,
    head_name: str | None = None,
    thresholds: Any = None,
    metric_class_ids: Any = None,
    loss_fn: Any = None,
) -> Head:
    """Any number of classes at once. Raises ValueError for fewer than 2."""
    if n_classes < 2:
        raise ValueError("n_classes must be > 1 for classification.")
    rest = (checked_loss_fn(loss_fn), label_name, weight_column_name, enable_centered_bias, head_name)
    return _MultiLabelHead(n_classes, metric_class_ids, *rest)


def loss_only_head(loss_fn: Any, head_name: str | None = None) -> Head:
    """A loss of its own, without logits and labels."""
    return _LossOnlyHead(loss_fn, head_name)


def multi_head(heads: Sequence[Any], loss_weights: Sequence[float] | None = None) -> Head:
    """Several heads with names. Raises ValueError for weights of another number."""
    if loss_weights and len(loss_weights) != len(heads):
        raise ValueError("heads and loss_weights must have same size")
    return _MultiHead(heads, loss_weights)
