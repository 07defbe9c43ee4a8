"""Heads of one matrix of logits: numbers, two classes, several classes, several labels, margins.

head.py makes them, head_parts.py has their losses and metrics. Follows TensorFlow 1.15's
`contrib/learn/python/learn/estimators/head.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold import metrics, summary
from tenfold.contrib.learn.head_parts import (
    at_thresholds,
    centered_bias,
    centered_bias_step,
    hinge_loss,
    log_loss,
    of_class,
    sigmoid_loss,
    softmax_loss,
    streaming_auc,
    streaming_mean,
    the_labels,
    weight_tensor,
)
from tenfold.contrib.learn.keys import MetricKey, PredictionKey, ProblemType
from tenfold.contrib.learn.model_fn import ModeKeys, ModelFnOps
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold.graph.sparse_tensor import SparseTensor
from tenfold.ops import array, math, nn, slicing, string
from tenfold.ops.casts import to_int64
from tenfold.ops.control_flow import group
from tenfold.ops.sparse import sparse_to_indicator
from tenfold.ops.variable_scope import variable_scope
from tenfold_core import dtypes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class Head:
    """Base of heads: `create_model_fn_ops` gives what a model function returns."""

    head_name: str | None

    @property
    def logits_dimension(self) -> int:
        """The size of the last dimension of the logits."""
        raise NotImplementedError

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
        """The ops for a mode, from logits or from what a linear layer makes them of. Raises ValueError."""
        raise NotImplementedError


class _SingleHead(Head):
    """A head of one matrix of logits."""

    _default_scope = "head"

    def __init__(
        self,
        problem_type: int,
        logits_dimension: int,
        loss_fn: Callable[..., tuple[Any, Any]],
        label_name: str | None,
        weight_column_name: str | None,
        enable_centered_bias: bool,
        head_name: str | None,
    ) -> None:
        if logits_dimension is None or logits_dimension < 1:
            raise ValueError(f"Invalid logits_dimension {logits_dimension}.")
        self._problem_type = problem_type
        self._logits_dimension = logits_dimension
        self._loss_fn = loss_fn
        self.label_name = label_name
        self.weight_column_name = weight_column_name
        self._enable_centered_bias = enable_centered_bias
        self.head_name = head_name

    @property
    def logits_dimension(self) -> int:
        return self._logits_dimension

    def _key(self, key: str) -> str:
        return f"{key}/{self.head_name}" if self.head_name else key

    # --- for subclasses ---

    def _predictions(self, logits: Any) -> dict[str, Any]:
        raise NotImplementedError

    def _metrics(self, predictions: dict[str, Any], labels: Any, weights: Any) -> dict[str, Any]:
        raise NotImplementedError

    def _labels(self, labels: Any) -> Any:
        found = the_labels(labels, self.label_name)
        if isinstance(found, SparseTensor):
            raise ValueError("SparseTensor is not supported.")
        return found

    def _exported(self, predictions: dict[str, Any]) -> dict[str, Any]:
        """What is served: by default the probabilities and the names of all classes."""
        scores = predictions[PredictionKey.PROBABILITIES]
        rows = array.expand_dims(self._class_names(scores), axis=0)
        classes = array.tile(rows, [array.shape(scores)[0], 1], name="classes_tensor")
        return {PredictionKey.PROBABILITIES: scores, PredictionKey.CLASSES: classes}

    def _class_names(self, scores: Any) -> Any:
        return string.as_string(math.range(array.shape(scores)[1]))

    # --- shared ---

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
        if mode not in (ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.INFER):
            raise ValueError(f"mode={mode} unrecognized.")
        with variable_scope(scope, default_name=self.head_name or self._default_scope, values=list(features.values())):
            known = None if mode == ModeKeys.INFER or labels is None else self._labels(labels)
            logits = self._logits(logits, logits_input)
            bias = None
            if self._enable_centered_bias:
                bias = centered_bias(self._logits_dimension, self.head_name)
                logits = nn.bias_add(logits, bias)
            predictions = self._predictions(logits)
            loss = train_op = found = None
            if known is not None:
                weights = weight_tensor(features, self.weight_column_name)
                loss, average = self._loss_fn(known, logits, weights)
                with name_scope(""):
                    summary.scalar(self._key(MetricKey.LOSS), array.identity(average))
                if mode == ModeKeys.TRAIN:
                    train_op = self._train_op(loss, known, train_op_fn, bias, logits, weights)
                with name_scope(None, "metrics"):
                    found = {self._key(MetricKey.LOSS): metrics.mean(average)}
                    found.update(self._metrics(predictions, known, weights))
            return ModelFnOps(
                mode=mode,
                predictions=predictions,
                loss=loss,
                train_op=train_op,
                eval_metric_ops=found,
                output_alternatives={self.head_name: (self._problem_type, self._exported(predictions))},
            )

    def _logits(self, logits: Any, logits_input: Any) -> Any:
        if logits is None:
            if logits_input is None:
                raise ValueError("Neither logits nor logits_input supplied.")
            from tenfold.contrib.layers import linear

            return linear(convert_to_tensor(logits_input), self._logits_dimension, scope="logits")
        if logits_input is not None:
            raise ValueError("Both logits and logits_input supplied.")
        logits = convert_to_tensor(logits, name="logits")
        if logits.shape.ndims is not None:
            logits.shape.with_rank_at_least(1)[-1].assert_is_compatible_with(self._logits_dimension)
        return logits

    def _train_op(self, loss: Any, labels: Any, train_op_fn: Any, bias: Any, logits: Any, weights: Any) -> Any:
        if train_op_fn is None:
            raise ValueError("train_op_fn can not be None in TRAIN mode")
        step = None
        if bias is not None:
            step = centered_bias_step(bias, array.shape(logits)[0], labels, self._loss_fn, weights)
        with name_scope(None, "train_op"):
            train_op = train_op_fn(loss)
            return train_op if step is None else group(train_op, step)


class _RegressionHead(_SingleHead):
    _default_scope = "regression_head"

    def __init__(self, link_fn: Any, dimension: int, loss_fn: Any, *rest: Any) -> None:
        super().__init__(ProblemType.LINEAR_REGRESSION, dimension, loss_fn, *rest)
        self._link_fn = link_fn or array.identity

    def _predictions(self, logits: Any) -> dict[str, Any]:
        with name_scope(None, "predictions", (logits,)):
            if self._logits_dimension == 1:
                logits = array.squeeze(logits, axis=(1,), name=PredictionKey.SCORES)
            return {PredictionKey.SCORES: self._link_fn(logits)}

    def _exported(self, predictions: dict[str, Any]) -> dict[str, Any]:
        return predictions

    def _metrics(self, predictions: dict[str, Any], labels: Any, weights: Any) -> dict[str, Any]:
        return {}


class _BinaryLogisticHead(_SingleHead):
    _default_scope = "binary_logistic_head"

    def __init__(self, thresholds: Any, loss_fn: Any, *rest: Any) -> None:
        super().__init__(ProblemType.LOGISTIC_REGRESSION, 1, loss_fn or log_loss, *rest)
        self._thresholds = thresholds or (0.5,)

    def _predictions(self, logits: Any) -> dict[str, Any]:
        with name_scope(None, "predictions", (logits,)):
            both = array.concat((array.zeros_like(logits), logits), 1)
            return {
                PredictionKey.LOGITS: logits,
                PredictionKey.LOGISTIC: math.sigmoid(logits, name=PredictionKey.LOGISTIC),
                PredictionKey.PROBABILITIES: nn.softmax(both, name=PredictionKey.PROBABILITIES),
                PredictionKey.CLASSES: math.argmax(both, 1, name=PredictionKey.CLASSES),
            }

    def _metrics(self, predictions: dict[str, Any], labels: Any, weights: Any) -> dict[str, Any]:
        logistic = predictions[PredictionKey.LOGISTIC]
        found = {
            MetricKey.ACCURACY: metrics.accuracy(labels, predictions[PredictionKey.CLASSES], weights),
            MetricKey.PREDICTION_MEAN: streaming_mean(logistic, weights),
            MetricKey.LABEL_MEAN: streaming_mean(labels, weights),
            MetricKey.ACCURACY_BASELINE: streaming_mean(labels, weights),
            MetricKey.AUC: streaming_auc(logistic, labels, weights),
            MetricKey.AUC_PR: streaming_auc(logistic, labels, weights, curve="PR"),
            **at_thresholds(self._thresholds, logistic, labels, weights),
        }
        return {self._key(key): value for key, value in found.items()}


class _BinarySvmHead(_SingleHead):
    _default_scope = "binary_svm_head"

    def __init__(self, *rest: Any) -> None:
        super().__init__(ProblemType.LOGISTIC_REGRESSION, 1, hinge_loss, *rest)

    def _predictions(self, logits: Any) -> dict[str, Any]:
        with name_scope(None, "predictions", (logits,)):
            both = array.concat((array.zeros_like(logits), logits), 1)
            classes = math.argmax(both, 1, name=PredictionKey.CLASSES)
            return {PredictionKey.LOGITS: logits, PredictionKey.CLASSES: classes}

    def _exported(self, predictions: dict[str, Any]) -> dict[str, Any]:
        return predictions

    def _metrics(self, predictions: dict[str, Any], labels: Any, weights: Any) -> dict[str, Any]:
        classes = predictions[PredictionKey.CLASSES]
        return {self._key(MetricKey.ACCURACY): metrics.accuracy(labels, classes, weights)}


class _MultiClassHead(_SingleHead):
    _default_scope = "multi_class_head"

    def __init__(self, n_classes: int, metric_class_ids: Any, label_keys: Any, loss_fn: Any, *rest: Any) -> None:
        super().__init__(ProblemType.CLASSIFICATION, n_classes, loss_fn or softmax_loss, *rest)
        self._metric_class_ids = _checked_ids(metric_class_ids, n_classes)
        if label_keys and len(label_keys) != n_classes:
            raise ValueError("Length of label_keys must equal n_classes.")
        self._label_keys = label_keys

    def _labels(self, labels: Any) -> Any:
        found = super()._labels(labels)
        if not self._label_keys:
            return found
        from tenfold.ops.lookup import index_table_from_tensor

        return index_table_from_tensor(tuple(self._label_keys), name="label_id_lookup").lookup(found)

    def _class_names(self, scores: Any) -> Any:
        return self._label_keys or super()._class_names(scores)

    def _predictions(self, logits: Any) -> dict[str, Any]:
        with name_scope(None, "predictions", (logits,)):
            classes = math.argmax(logits, 1, name=PredictionKey.CLASSES)
            if self._label_keys:
                from tenfold.ops.lookup import index_to_string_table_from_tensor

                table = index_to_string_table_from_tensor(self._label_keys, name="class_string_lookup")
                classes = table.lookup(classes)
            return {
                PredictionKey.LOGITS: logits,
                PredictionKey.PROBABILITIES: nn.softmax(logits, name=PredictionKey.PROBABILITIES),
                PredictionKey.CLASSES: classes,
            }

    def _metrics(self, predictions: dict[str, Any], labels: Any, weights: Any) -> dict[str, Any]:
        logits, scores = predictions[PredictionKey.LOGITS], predictions[PredictionKey.PROBABILITIES]
        ids = math.argmax(logits, 1)
        found = {MetricKey.ACCURACY: metrics.accuracy(labels, ids, weights)}
        flat = array.reshape(labels, (-1,)) if self._metric_class_ids else labels
        for each in self._metric_class_ids:
            found[MetricKey.CLASS_PREDICTION_MEAN % each] = metrics.mean(math.equal(ids, each), weights)
            found[MetricKey.CLASS_LABEL_MEAN % each] = metrics.mean(math.equal(to_int64(flat), each), weights)
            found.update(of_class(each, scores, logits, slicing.one_hot(flat, self._logits_dimension), weights))
        return {self._key(key): value for key, value in found.items()}


class _MultiLabelHead(_SingleHead):
    _default_scope = "multi_label_head"

    def __init__(self, n_classes: int, metric_class_ids: Any, loss_fn: Any, *rest: Any) -> None:
        super().__init__(ProblemType.CLASSIFICATION, n_classes, loss_fn or sigmoid_loss, *rest)
        self._metric_class_ids = _checked_ids(metric_class_ids, n_classes)

    def _labels(self, labels: Any) -> Any:
        found = the_labels(labels, self.label_name)
        if not isinstance(found, SparseTensor):
            return found
        if self._logits_dimension < 2:
            raise ValueError("Must set num_classes >= 2 when passing labels as a SparseTensor.")
        return to_int64(sparse_to_indicator(found, self._logits_dimension))

    def _predictions(self, logits: Any) -> dict[str, Any]:
        with name_scope(None, "predictions", (logits,)):
            return {
                PredictionKey.LOGITS: logits,
                PredictionKey.PROBABILITIES: math.sigmoid(logits, name=PredictionKey.PROBABILITIES),
                PredictionKey.CLASSES: math.cast(math.greater(logits, 0), dtypes.int64, name=PredictionKey.CLASSES),
            }

    def _metrics(self, predictions: dict[str, Any], labels: Any, weights: Any) -> dict[str, Any]:
        logits, scores = predictions[PredictionKey.LOGITS], predictions[PredictionKey.PROBABILITIES]
        classes = predictions[PredictionKey.CLASSES]
        found = {
            MetricKey.ACCURACY: metrics.accuracy(labels, classes, weights),
            MetricKey.AUC: streaming_auc(scores, labels, weights),
            MetricKey.AUC_PR: streaming_auc(scores, labels, weights, curve="PR"),
        }
        for each in self._metric_class_ids:
            found[MetricKey.CLASS_PREDICTION_MEAN % each] = streaming_mean(classes, weights, each)
            found[MetricKey.CLASS_LABEL_MEAN % each] = streaming_mean(labels, weights, each)
            found.update(of_class(each, scores, logits, labels, weights))
        return {self._key(key): value for key, value in found.items()}


def _checked_ids(metric_class_ids: Any, n_classes: int) -> tuple[int, ...]:
    found = tuple(metric_class_ids or ())
    for each in found:
        if each < 0 or each >= n_classes:
            raise ValueError(f"Class ID {each} not in [0, {n_classes}).")
    return found
