"""Heads of classifiers: two classes, several, and any number of several at once.

Used through head.py by canned estimators and through public_heads.py by `tf.estimator`. Follows TensorFlow 1.15's
`estimator/canned/head.py` and `estimator/head/multi_label_head.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold import losses, metrics
from tenfold.estimator.canned.base_head import (
    CLASSIFY_SERVING_KEY,
    DEFAULT_SERVING_KEY,
    REGRESS_SERVING_KEY,
    LogitsHead,
    LossSpec,
    Metric,
    auc_metric,
    mean_metric,
)
from tenfold.estimator.canned.head_checks import (
    called,
    checked_labels,
    checked_logits,
    checked_n_classes,
    checked_thresholds,
    checked_weights,
    in_range,
)
from tenfold.estimator.canned.metric_keys import MetricKeys
from tenfold.estimator.canned.prediction_keys import PredictionKeys
from tenfold.estimator.export.export_output import ClassificationOutput, RegressionOutput
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import control_dependencies, name_scope
from tenfold.graph.sparse_tensor import SparseTensor
from tenfold.ops import array, lookup, math, nn, nn_losses, string
from tenfold.ops.casts import to_float, to_int64
from tenfold.ops.sparse import sparse_to_indicator
from tenfold_core import dtypes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tenfold.graph.tensor import Tensor


class _ClassHead(LogitsHead):
    """What heads of classes share: a vocabulary, and the predicted class with its text."""

    def __init__(
        self, weight_column: Any, label_vocabulary: Any, loss_reduction: str, loss_fn: Any, name: str | None
    ) -> None:
        if label_vocabulary is not None and not isinstance(label_vocabulary, (list, tuple)):
            raise ValueError(f"label_vocabulary should be a list or a tuple. Given type: {type(label_vocabulary)}")
        super().__init__(weight_column, loss_reduction, loss_fn, name)
        self._label_vocabulary: Any = label_vocabulary

    def _pr_area(self, labels: Any, scores: Any, weights: Any, name: str) -> Metric:
        """The area under precision over recall."""
        return auc_metric(labels, scores, weights, name, curve="PR", summation=self._pr_summation)

    def _looked_up(self, labels: Any) -> Any:
        table = lookup.index_table_from_tensor(tuple(self._label_vocabulary), name="class_id_lookup")
        return table.lookup(labels)

    def _classes(self, scores: Tensor, n_classes: Any) -> dict[str, Any]:
        """The class of the greatest score, and all classes: ids, and their text or number."""
        ids = array.expand_dims(math.argmax(scores, axis=-1, name=PredictionKeys.CLASS_IDS), axis=-1)
        if self._label_vocabulary:
            table = lookup.index_to_string_table_from_tensor(self._label_vocabulary, name="class_string_lookup")
            texts = table.lookup(ids)
        else:
            texts = string.as_string(ids, name="str_classes")
        return {
            PredictionKeys.CLASS_IDS: ids,
            PredictionKeys.CLASSES: texts,
            PredictionKeys.ALL_CLASS_IDS: _for_each(scores, math.range(n_classes)),
            PredictionKeys.ALL_CLASSES: self._names_for_each(scores, n_classes),
        }

    def _names_for_each(self, scores: Tensor, n_classes: Any) -> Tensor:
        return _for_each(scores, self._label_vocabulary or string.as_string(math.range(n_classes)))

    def _classified(self, scores: Tensor, n_classes: Any) -> dict[str, Any]:
        output = ClassificationOutput(scores=scores, classes=self._names_for_each(scores, n_classes))
        return {DEFAULT_SERVING_KEY: output, CLASSIFY_SERVING_KEY: output}

    def _mean_and_accuracy(self, loss: LossSpec, class_ids: Any) -> dict[str, Metric]:
        keys = MetricKeys
        return {
            self._key(keys.LOSS_MEAN): metrics.mean(loss.unreduced_loss, weights=loss.weights, name=keys.LOSS_MEAN),
            self._key(keys.ACCURACY): metrics.accuracy(
                labels=loss.processed_labels, predictions=class_ids, weights=loss.weights, name=keys.ACCURACY
            ),
        }

    def _at_thresholds(
        self, thresholds: tuple[float, ...], labels: Any, scores: Any, weights: Any
    ) -> dict[str, Metric]:
        """Accuracy, precision and recall where a score is a yes from each threshold on."""
        found: dict[str, Metric] = {}
        for threshold in thresholds:
            name = MetricKeys.ACCURACY_AT_THRESHOLD % threshold
            yes = to_float(math.greater_equal(scores, threshold))
            found[self._key(name)] = metrics.accuracy(labels=labels, predictions=yes, weights=weights, name=name)
            for key, metric in (
                (MetricKeys.PRECISION_AT_THRESHOLD, metrics.precision_at_thresholds),
                (MetricKeys.RECALL_AT_THRESHOLD, metrics.recall_at_thresholds),
            ):
                value, update = metric(
                    labels=labels, predictions=scores, thresholds=(threshold,), weights=weights, name=key % threshold
                )
                found[self._key(key % threshold)] = (array.squeeze(value), array.squeeze(update))
        return found


class MultiClass(_ClassHead):
    """One class of more than two, by softmax. Labels are class ids, or texts of the vocabulary."""

    def __init__(
        self,
        n_classes: Any,
        weight_column: Any,
        label_vocabulary: Any,
        loss_reduction: str,
        loss_fn: Any,
        name: str | None,
    ) -> None:
        super().__init__(weight_column, label_vocabulary, loss_reduction, loss_fn, name)
        self._n_classes = checked_n_classes(n_classes)

    @property
    def logits_dimension(self) -> Any:
        return self._n_classes

    def _label_ids(self, labels: Tensor) -> Tensor:
        if self._label_vocabulary is None:
            if not labels.dtype.is_integer:
                raise ValueError(f"Labels dtype should be integer. Instead got {labels.dtype}.")
            return in_range(labels, self._n_classes, self._texts.outside)
        if labels.dtype != dtypes.string:
            raise ValueError(f"Labels dtype should be string if there is a vocabulary. Instead got {labels.dtype}")
        return in_range(self._looked_up(labels), self._n_classes, self._texts.outside)

    def create_loss(self, features: Mapping[str, Any], mode: str | None, logits: Any, labels: Any) -> LossSpec:
        logits = convert_to_tensor(logits)
        ids = self._label_ids(checked_labels(labels, logits, 1, self._texts))
        if self._loss_fn:
            each = called(self._loss_fn, ids, logits, features)
        else:
            each = losses.sparse_softmax_cross_entropy(ids, logits, reduction=losses.Reduction.NONE)
            each = array.expand_dims(each, axis=-1)
        return self._reduced(each, checked_weights(features, self._weight_column, logits), ids)

    def _predicted(self, logits: Any) -> tuple[Tensor, dict[str, Any]]:
        logits = checked_logits(logits, self._n_classes)
        with name_scope(None, "predictions", (logits,)):
            return logits, {
                PredictionKeys.LOGITS: logits,
                PredictionKeys.PROBABILITIES: nn.softmax(logits, name=PredictionKeys.PROBABILITIES),
                **self._classes(logits, self._n_classes),
            }

    def _export_outputs(self, predictions: dict[str, Any]) -> dict[str, Any]:
        return self._classified(predictions[PredictionKeys.PROBABILITIES], self._n_classes)

    def _metrics(self, labels: Any, loss: LossSpec, predictions: dict[str, Any]) -> dict[str, Metric]:
        with name_scope(None, "metrics"):
            return self._mean_and_accuracy(loss, predictions[PredictionKeys.CLASS_IDS])


class Binary(_ClassHead):
    """Yes or no, by sigmoid. Labels are in [0, 1], or texts of a vocabulary of two."""

    def __init__(
        self,
        weight_column: Any,
        thresholds: Any,
        label_vocabulary: Any,
        loss_reduction: str,
        loss_fn: Any,
        name: str | None,
    ) -> None:
        self._thresholds = checked_thresholds(thresholds)
        super().__init__(weight_column, label_vocabulary, loss_reduction, loss_fn, name)

    @property
    def logits_dimension(self) -> int:
        return 1

    def create_loss(self, features: Mapping[str, Any], mode: str | None, logits: Any, labels: Any) -> LossSpec:
        logits = convert_to_tensor(logits)
        labels = checked_labels(labels, logits, 1, self._texts)
        if self._label_vocabulary is not None:
            labels = self._looked_up(labels)
        labels = in_range(to_float(labels), 2, self._texts.outside)
        if self._loss_fn:
            each = called(self._loss_fn, labels, logits, features)
        else:
            each = nn_losses.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)
        return self._reduced(each, checked_weights(features, self._weight_column, logits), labels)

    def _predicted(self, logits: Any) -> tuple[Tensor, dict[str, Any]]:
        with name_scope(None, "predictions", (logits,)):
            logits = checked_logits(logits, 1)
            both = array.concat((array.zeros_like(logits), logits), axis=-1, name="two_class_logits")
            return logits, {
                PredictionKeys.LOGITS: logits,
                PredictionKeys.LOGISTIC: math.sigmoid(logits, name=PredictionKeys.LOGISTIC),
                PredictionKeys.PROBABILITIES: nn.softmax(both, name=PredictionKeys.PROBABILITIES),
                **self._classes(both, 2),
            }

    def _export_outputs(self, predictions: dict[str, Any]) -> dict[str, Any]:
        return {
            **self._classified(predictions[PredictionKeys.PROBABILITIES], 2),
            REGRESS_SERVING_KEY: RegressionOutput(value=predictions[PredictionKeys.LOGISTIC]),
        }

    def _metrics(self, labels: Any, loss: LossSpec, predictions: dict[str, Any]) -> dict[str, Metric]:
        keys = MetricKeys
        labels, weights = loss.processed_labels, loss.weights
        logistic, class_ids = predictions[PredictionKeys.LOGISTIC], predictions[PredictionKeys.CLASS_IDS]
        with name_scope(None, "metrics"):
            found = self._mean_and_accuracy(loss, class_ids)
            for key, metric in ((keys.PRECISION, metrics.precision), (keys.RECALL, metrics.recall)):
                found[self._key(key)] = metric(labels=labels, predictions=class_ids, weights=weights, name=key)
            label_mean = mean_metric(labels, weights, keys.LABEL_MEAN)
            found[self._key(keys.PREDICTION_MEAN)] = mean_metric(logistic, weights, keys.PREDICTION_MEAN)
            found[self._key(keys.LABEL_MEAN)] = label_mean
            found[self._key(keys.ACCURACY_BASELINE)] = _baseline(label_mean)
            found[self._key(keys.AUC)] = auc_metric(labels, logistic, weights, keys.AUC)
            found[self._key(keys.AUC_PR)] = self._pr_area(labels, logistic, weights, keys.AUC_PR)
            return {**found, **self._at_thresholds(self._thresholds, labels, logistic, weights)}


class MultiLabel(_ClassHead):
    """Any number of the classes at once, by sigmoid. Labels are 0 or 1 for each class, or a SparseTensor of classes."""

    def __init__(
        self,
        n_classes: int,
        weight_column: Any,
        thresholds: Any,
        label_vocabulary: Any,
        loss_reduction: str,
        loss_fn: Any,
        classes_for_class_based_metrics: Any,
        name: str | None,
    ) -> None:
        if n_classes is None or n_classes < 2:
            raise ValueError(f"n_classes must be > 1 for multi-label classification. Given: {n_classes}")
        for threshold in thresholds or ():
            if not 0.0 < threshold < 1.0:
                raise ValueError(f"thresholds must be in (0, 1) range. Given: {threshold}")
        if label_vocabulary is not None:
            if not isinstance(label_vocabulary, (list, tuple)):
                raise ValueError(f"label_vocabulary must be a list or tuple. Given type: {type(label_vocabulary)}")
            if len(label_vocabulary) != n_classes:
                raise ValueError(
                    f"Length of label_vocabulary must be n_classes ({n_classes}). Given: {len(label_vocabulary)}"
                )
        super().__init__(weight_column, label_vocabulary, loss_reduction, loss_fn, name)
        self._thresholds = tuple(thresholds or ())
        self._n_classes = n_classes
        self._measured = self._class_ids(classes_for_class_based_metrics)

    def _class_ids(self, given: Any) -> tuple[int, ...]:
        """The ids of the classes that have metrics of their own, given as ids or texts. Raises ValueError."""
        classes: tuple[Any, ...] = tuple(given or ())
        if classes and isinstance(classes[0], str):
            if not self._label_vocabulary:
                raise ValueError("label_vocabulary must be provided when classes_for_class_based_metrics are sting.")
            return tuple(self._label_vocabulary.index(each) for each in classes)
        for each in classes:
            if not 0 <= each < self._n_classes:
                raise ValueError(
                    f"All classes_for_class_based_metrics must be in range [0, {self._n_classes - 1}]. Given: {each}"
                )
        return classes

    @property
    def logits_dimension(self) -> int:
        return self._n_classes

    def _indicators(self, labels: Any) -> Any:
        """0 or 1 for each class."""
        if not isinstance(labels, SparseTensor):
            if labels is None:
                return None
            message = "labels must be an integer indicator Tensor with values in [0, 1]"
            return in_range(convert_to_tensor(labels), 2, (message, message))
        if labels.dtype == dtypes.string:
            labels = SparseTensor(labels.indices, self._looked_up(labels.values), labels.dense_shape)
            return to_int64(sparse_to_indicator(labels, self._n_classes))
        if not labels.dtype.is_integer:
            raise ValueError(f"Labels dtype should be integer. Instead got {labels.dtype}.")
        message = f"labels must be an integer SparseTensor with values in [0, {self._n_classes})"
        with control_dependencies([in_range(labels.values, self._n_classes, (message, message))]):
            return to_int64(sparse_to_indicator(labels, self._n_classes))

    def create_loss(self, features: Mapping[str, Any], mode: str | None, logits: Any, labels: Any) -> LossSpec:
        logits = convert_to_tensor(logits)
        labels = checked_labels(self._indicators(labels), logits, self._n_classes, self._texts)
        if self._loss_fn:
            each = called(self._loss_fn, labels, logits, features)
        else:
            each = losses.sigmoid_cross_entropy(labels, logits, reduction=losses.Reduction.NONE)
            each = math.reduce_mean(each, axis=-1, keepdims=True)
        return self._reduced(each, checked_weights(features, self._weight_column, logits), labels)

    def _predicted(self, logits: Any) -> tuple[Tensor, dict[str, Any]]:
        logits = checked_logits(logits, self._n_classes)
        with name_scope(None, "predictions", (logits,)):
            probabilities = math.sigmoid(logits, name=PredictionKeys.PROBABILITIES)
        return logits, {PredictionKeys.LOGITS: logits, PredictionKeys.PROBABILITIES: probabilities}

    def _export_outputs(self, predictions: dict[str, Any]) -> dict[str, Any]:
        return self._classified(predictions[PredictionKeys.PROBABILITIES], self._n_classes)

    def _metrics(self, labels: Any, loss: LossSpec, predictions: dict[str, Any]) -> dict[str, Metric]:
        keys = MetricKeys
        labels, weights = loss.processed_labels, loss.weights
        scores = predictions[PredictionKeys.PROBABILITIES]
        with name_scope(None, "metrics"):
            found: dict[str, Metric] = {
                self._key(keys.LOSS_MEAN): metrics.mean(loss.unreduced_loss, weights=weights, name=keys.LOSS_MEAN),
                self._key(keys.AUC): auc_metric(labels, scores, weights, keys.AUC),
                self._key(keys.AUC_PR): self._pr_area(labels, scores, weights, keys.AUC_PR),
                **self._at_thresholds(self._thresholds, labels, scores, weights),
            }
            for each in self._measured:
                found.update(self._of_class(each, labels, scores, weights))
            return found

    def _of_class(self, class_id: int, labels: Tensor, scores: Tensor, weights: Any) -> dict[str, Metric]:
        keys = MetricKeys
        mean, auc, auc_pr = keys.PROBABILITY_MEAN_AT_NAME, keys.AUC_AT_NAME, keys.AUC_PR_AT_NAME
        what: Any = None if self._label_vocabulary is None else self._label_vocabulary[class_id]
        if what is None:
            mean, auc, auc_pr = keys.PROBABILITY_MEAN_AT_CLASS, keys.AUC_AT_CLASS, keys.AUC_PR_AT_CLASS
            what = class_id
        labels, scores = labels[..., class_id : class_id + 1], scores[..., class_id : class_id + 1]
        return {
            self._key(mean % what): mean_metric(scores, weights, mean % what),
            self._key(auc % what): auc_metric(labels, scores, weights, auc % what),
            self._key(auc_pr % what): self._pr_area(labels, scores, weights, auc_pr % what),
        }


def _for_each(scores: Tensor, row: Any) -> Tensor:
    """The row, repeated for each example."""
    return array.tile(array.expand_dims(row, axis=0), [array.shape(scores)[0], 1])


def _baseline(label_mean: Metric) -> Metric:
    """The accuracy of always saying the more frequent of yes and no."""
    with name_scope(None, "accuracy_baseline", label_mean):
        value, update = label_mean
        return math.maximum(value, 1.0 - value, name="value"), math.maximum(update, 1 - update, name="update_op")
