"""The heads of `tf.estimator`: `BinaryClassHead`, `MultiClassHead`, `RegressionHead`, … and `MultiHead`.

They reduce by mean where those of head.py sum, and give their loss, predictions and metrics one by one, too. Follows
TensorFlow 1.15's `estimator/head/*.py` with two differences, since Keras is no part of Tenfold: the optimizer is one of
`tf.train`, and metrics are pairs of a value and its update, made by `update_metrics`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from tenfold import losses
from tenfold.estimator.canned.base_head import LogitsHead, Metric, spec_of_other_name, trained, with_updates
from tenfold.estimator.canned.class_heads import Binary, MultiClass, MultiLabel
from tenfold.estimator.canned.head_checks import OF_HEADS
from tenfold.estimator.canned.regression_heads import Regression, logistic_loss, poisson_loss
from tenfold.graph.default_scopes import name_scope
from tenfold.ops import math

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tenfold.estimator.model_fn import EstimatorSpec

#: Keras' names of reductions → those of `tf.losses`.
_REDUCTIONS = {
    "sum": losses.Reduction.SUM,
    "sum_over_batch_size": losses.Reduction.SUM_OVER_BATCH_SIZE,
    "auto": losses.Reduction.SUM_OVER_BATCH_SIZE,
}
_MEAN = "sum_over_batch_size"


def _reduction(name: str) -> str:
    return _REDUCTIONS.get(name, name)


def check_updates(update_ops: Any) -> None:
    """Raises ValueError unless None or a list."""
    if update_ops is not None and not isinstance(update_ops, (list, tuple)):
        raise ValueError(f"update_ops should be a list or a tuple. Given type: {type(update_ops)}.")


def train_op_of(loss: Any, optimizer: Any, variables: Any, train_op_fn: Any, update_ops: Any) -> Any:
    """As `trained`, for the variables that are given. Raises ValueError."""
    check_updates(update_ops)
    if optimizer is not None and train_op_fn is None:
        from tenfold.train.training_util import get_global_step

        if variables is not None and not isinstance(variables, (list, tuple)):
            raise ValueError(f"trainable_variables should be a list or a tuple. Given type: {type(variables)}.")
        # An optimizer that a program wrote may take no list.
        named = {} if variables is None else {"var_list": variables}
        op = optimizer.minimize(loss, global_step=get_global_step(), **named)
    else:
        op = trained(loss, optimizer, train_op_fn)
    return with_updates(op, update_ops)


class Head(ABC):
    """Base of the heads that programs write. As TensorFlow 1.15's `tf.estimator.Head`, but for the metrics' kind.

    A subclass gives `create_estimator_spec` besides what is abstract here, or `_create_tpu_estimator_spec`.
    """

    @property
    @abstractmethod
    def name(self) -> Any:
        """Follows the keys of metrics and summaries; None for none."""

    @property
    @abstractmethod
    def logits_dimension(self) -> Any:
        """The size of the last dimension of the logits."""

    @property
    @abstractmethod
    def loss_reduction(self) -> Any:
        """How the losses of a batch become one."""

    @abstractmethod
    def loss(
        self, labels: Any, logits: Any, features: Any = None, mode: Any = None, regularization_losses: Any = None
    ) -> Any:
        """The regularized loss, a scalar."""

    @abstractmethod
    def predictions(self, logits: Any, keys: Sequence[str] | None = None) -> dict[str, Any]:
        """Key → prediction, or those of some keys."""

    @abstractmethod
    def metrics(self, regularization_losses: Any = None) -> dict[str, Any]:
        """A dictionary for `update_metrics` to fill."""

    @abstractmethod
    def update_metrics(
        self,
        eval_metrics: dict[str, Any],
        features: Any,
        logits: Any,
        labels: Any,
        mode: Any = None,
        regularization_losses: Any = None,
    ) -> dict[str, Any]:
        """`eval_metrics` with the head's metrics of these labels."""

    def create_estimator_spec(
        self,
        features: Any,
        mode: Any,
        logits: Any,
        labels: Any = None,
        optimizer: Any = None,
        trainable_variables: Any = None,
        train_op_fn: Any = None,
        update_ops: Any = None,
        regularization_losses: Any = None,
    ) -> Any:
        """What a model function returns. Raises NotImplementedError where the subclass has nothing that gives it."""
        return spec_of_other_name(
            self,
            "Head",
            features=features,
            mode=mode,
            logits=logits,
            labels=labels,
            optimizer=optimizer,
            trainable_variables=trainable_variables,
            train_op_fn=train_op_fn,
            update_ops=update_ops,
            regularization_losses=regularization_losses,
        )

    def _create_tpu_estimator_spec(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("TPUEstimatorSpec not available for this model head.")


class _Parts(LogitsHead, Head):
    """The methods of the public heads that give each part of the specification alone."""

    _summarizes_mean = False
    _texts = OF_HEADS
    #: That of Keras' AUC, by which TensorFlow's heads of this kind measure.
    _pr_summation = "careful_interpolation"

    @property
    def loss_reduction(self) -> str:
        """How the losses of a batch become one."""
        return self._loss_reduction

    def loss(
        self,
        labels: Any,
        logits: Any,
        features: Mapping[str, Any] | None = None,
        mode: str | None = None,
        regularization_losses: Sequence[Any] | None = None,
    ) -> Any:
        """The regularized loss, a scalar."""
        with name_scope(None, "losses"):
            logits, _ = self._predicted(logits)
            loss = self.create_loss(features or {}, mode, logits, labels).training_loss
            return loss + math.add_n(regularization_losses) if regularization_losses is not None else loss

    def predictions(self, logits: Any, keys: Sequence[str] | None = None) -> dict[str, Any]:
        """The predictions, or those of some keys. Raises ValueError for another key."""
        _, found = self._predicted(logits)
        for key in keys or ():
            if key not in found:
                raise ValueError(
                    f"Prediction key must be in PredictionKeys, given: {key}."
                    f"Valid prediction keys include {list(found)}."
                )
        return {key: value for key, value in found.items() if keys is None or key in keys}

    def metrics(self, regularization_losses: Sequence[Any] | None = None) -> dict[str, Metric]:
        """A dictionary for `update_metrics` to fill."""
        return {}

    def update_metrics(
        self,
        eval_metrics: dict[str, Metric],
        features: Mapping[str, Any],
        logits: Any,
        labels: Any,
        mode: str | None = None,
        regularization_losses: Sequence[Any] | None = None,
    ) -> dict[str, Metric]:
        """`eval_metrics` with the head's metrics of these labels."""
        logits, predictions = self._predicted(logits)
        loss = self.create_loss(features, mode, logits, labels)
        penalty = math.add_n(regularization_losses) if regularization_losses is not None else None
        eval_metrics.update(self._evaluated(labels, loss, predictions, penalty))
        return eval_metrics

    def create_estimator_spec(  # type: ignore[override]  # TensorFlow's heads of tf.estimator take two arguments more.
        self,
        features: Mapping[str, Any],
        mode: str,
        logits: Any,
        labels: Any = None,
        optimizer: Any = None,
        trainable_variables: Any = None,
        train_op_fn: Any = None,
        update_ops: Any = None,
        regularization_losses: Sequence[Any] | None = None,
    ) -> EstimatorSpec:
        """As `_Head.create_estimator_spec`; `update_ops` run with the train op."""

        def train_op(loss: Any) -> Any:
            return train_op_of(loss, optimizer, trainable_variables, train_op_fn, update_ops)

        return super().create_estimator_spec(
            features, mode, logits, labels, train_op_fn=train_op, regularization_losses=regularization_losses
        )


class BinaryClassHead(_Parts, Binary):
    """Two classes. As TensorFlow 1.15's `tf.estimator.BinaryClassHead`."""

    def __init__(
        self,
        weight_column: Any = None,
        thresholds: Any = None,
        label_vocabulary: Any = None,
        loss_reduction: str = _MEAN,
        loss_fn: Any = None,
        name: str | None = None,
    ) -> None:
        Binary.__init__(self, weight_column, thresholds, label_vocabulary, _reduction(loss_reduction), loss_fn, name)


class MultiClassHead(_Parts, MultiClass):
    """One class of several. As TensorFlow 1.15's `tf.estimator.MultiClassHead`."""

    def __init__(
        self,
        n_classes: Any,
        weight_column: Any = None,
        label_vocabulary: Any = None,
        loss_reduction: str = _MEAN,
        loss_fn: Any = None,
        name: str | None = None,
    ) -> None:
        if isinstance(label_vocabulary, (list, tuple)) and n_classes is not None and len(label_vocabulary) != n_classes:
            raise ValueError(
                f'"label_vocabulary" does not have "n_classes" items. len(label_vocabulary)={len(label_vocabulary)}, '
                f"n_classes={n_classes}, label_vocabulary={label_vocabulary}"
            )
        MultiClass.__init__(self, n_classes, weight_column, label_vocabulary, _reduction(loss_reduction), loss_fn, name)


class MultiLabelHead(_Parts, MultiLabel):
    """Any of several classes at once. As TensorFlow 1.15's `tf.estimator.MultiLabelHead`."""

    def __init__(
        self,
        n_classes: int,
        weight_column: Any = None,
        thresholds: Any = None,
        label_vocabulary: Any = None,
        loss_reduction: str = _MEAN,
        loss_fn: Any = None,
        classes_for_class_based_metrics: Any = None,
        name: str | None = None,
    ) -> None:
        reduction = _reduction(loss_reduction)
        MultiLabel.__init__(
            self,
            n_classes,
            weight_column,
            thresholds,
            label_vocabulary,
            reduction,
            loss_fn,
            classes_for_class_based_metrics,
            name,
        )


class RegressionHead(_Parts, Regression):
    """Numbers. As TensorFlow 1.15's `tf.estimator.RegressionHead`."""

    def __init__(
        self,
        label_dimension: int = 1,
        weight_column: Any = None,
        loss_reduction: str = _MEAN,
        loss_fn: Any = None,
        inverse_link_fn: Any = None,
        name: str | None = None,
    ) -> None:
        reduction = _reduction(loss_reduction)
        Regression.__init__(self, label_dimension, weight_column, reduction, loss_fn, inverse_link_fn, name)


class PoissonRegressionHead(RegressionHead):
    """Counts. As TensorFlow 1.15's `tf.estimator.PoissonRegressionHead`."""

    def __init__(
        self,
        label_dimension: int = 1,
        weight_column: Any = None,
        loss_reduction: str = _MEAN,
        compute_full_loss: bool = True,
        name: str | None = None,
    ) -> None:
        loss = poisson_loss(compute_full_loss)
        super().__init__(label_dimension, weight_column, loss_reduction, loss, math.exp, name)


class LogisticRegressionHead(RegressionHead):
    """Probabilities. As TensorFlow 1.15's `tf.estimator.LogisticRegressionHead`."""

    def __init__(self, weight_column: Any = None, loss_reduction: str = _MEAN, name: str | None = None) -> None:
        super().__init__(1, weight_column, loss_reduction, logistic_loss, math.sigmoid, name)
