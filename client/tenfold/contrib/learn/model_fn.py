"""What model functions of `tf.contrib.learn` are called for and return: `ModeKeys`, `ModelFnOps`.

ModelFnOps becomes the EstimatorSpec of `tf.estimator` in estimator.py. Follows TensorFlow 1.15's
`contrib/learn/python/learn/estimators/model_fn.py`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tenfold import logging
from tenfold.contrib.learn.keys import MetricKey, PredictionKey, ProblemType
from tenfold.estimator.export.export_output import ClassificationOutput, PredictOutput, RegressionOutput
from tenfold.estimator.model_fn import EstimatorSpec
from tenfold.graph import Operation
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.sparse_tensor import convert_to_tensor_or_sparse_tensor
from tenfold.ops import array
from tenfold.ops.control_flow import no_op
from tenfold.train.session_run_hook import SessionRunHook
from tenfold_core import dtypes

#: The signature that is served when a request names none.
DEFAULT_SERVING_KEY = "serving_default"


class ModeKeys:
    """The three modes; their values are those of `tf.estimator.ModeKeys`."""

    TRAIN = "train"
    EVAL = "eval"
    INFER = "infer"

    @classmethod
    def validate(cls, key: Any) -> None:
        """Raises ValueError for another mode."""
        if key not in (cls.TRAIN, cls.EVAL, cls.INFER):
            raise ValueError(f"Invalid mode {key}.")


class _Fields(NamedTuple):
    predictions: Any
    loss: Any
    train_op: Any
    eval_metric_ops: dict[str, Any]
    output_alternatives: Any
    training_chief_hooks: list[Any]
    training_hooks: list[Any]
    scaffold: Any
    mode: str


class ModelFnOps(_Fields):
    """The ops of a model in one mode. Raises ValueError for what is missing, TypeError for what is no hook.

    `output_alternatives` is head → (ProblemType, predictions). As TensorFlow 1.15's `tf.contrib.learn.ModelFnOps`.
    """

    __slots__ = ()

    def __new__(
        cls,
        mode: str,
        predictions: Any = None,
        loss: Any = None,
        train_op: Any = None,
        eval_metric_ops: Any = None,
        output_alternatives: Any = None,
        training_chief_hooks: Any = None,
        training_hooks: Any = None,
        scaffold: Any = None,
    ) -> ModelFnOps:
        ModeKeys.validate(mode)
        if train_op is None:
            if mode == ModeKeys.TRAIN:
                raise ValueError("Missing train_op.")
        elif not isinstance(train_op, Operation):
            train_op = convert_to_tensor(train_op).op
        if loss is None:
            if mode != ModeKeys.INFER:
                raise ValueError("Missing loss.")
        else:
            loss = _scalar(loss)
        if predictions is None:
            if mode != ModeKeys.TRAIN:
                raise ValueError("Missing predictions.")
        elif isinstance(predictions, dict):
            predictions = {key: convert_to_tensor_or_sparse_tensor(value) for key, value in predictions.items()}
        else:
            predictions = convert_to_tensor_or_sparse_tensor(predictions)
        if eval_metric_ops is not None and not isinstance(eval_metric_ops, dict):
            raise ValueError("eval_metric_ops must be a dict.")
        chief_hooks, hooks = list(training_chief_hooks or ()), list(training_hooks or ())
        for hook in (*hooks, *chief_hooks):
            if not isinstance(hook, SessionRunHook):
                raise TypeError(
                    "All hooks returned from model_fn must be SessionRunHook instances, got instance of "
                    f"{type(hook)}: {hook}"
                )
        metrics = {} if eval_metric_ops is None else eval_metric_ops
        return super().__new__(
            cls, predictions, loss, train_op, metrics, output_alternatives, chief_hooks, hooks, scaffold, mode
        )

    def estimator_spec(self, default_serving_output_alternative_key: str | None = None) -> EstimatorSpec:
        """The same for `tf.estimator`. The metric "loss" is left to it. Raises ValueError for an unknown problem."""
        outputs = None
        if self.output_alternatives:
            alternatives = dict(self.output_alternatives)
            if len(alternatives) > 1 and DEFAULT_SERVING_KEY not in alternatives:
                alternatives[DEFAULT_SERVING_KEY] = alternatives[default_serving_output_alternative_key]
            only = len(alternatives) == 1
            outputs = {
                DEFAULT_SERVING_KEY if only and key is None else key: _export_output(*value)
                for key, value in alternatives.items()
            }
        return EstimatorSpec(
            mode=self.mode,
            predictions=self.predictions,
            loss=self.loss,
            train_op=self.train_op,
            eval_metric_ops={
                key: with_update(value) for key, value in self.eval_metric_ops.items() if key != MetricKey.LOSS
            },
            export_outputs=outputs if self.mode == ModeKeys.INFER else None,
            training_chief_hooks=self.training_chief_hooks,
            training_hooks=self.training_hooks,
            scaffold=self.scaffold,
        )


def with_update(metric: Any) -> Any:
    """(value, update) of a metric; a value alone, which this API allows, has nothing to update."""
    return metric if isinstance(metric, (tuple, list)) else (metric, no_op())


def _scalar(loss: Any) -> Any:
    loss = convert_to_tensor(loss)
    if loss.get_shape().num_elements() not in (None, 1):
        raise ValueError(f"Loss must be scalar: {loss}.")
    return loss if loss.get_shape().is_compatible_with([]) else array.reshape(loss, [])


def _export_output(problem_type: int, predictions: dict[str, Any]) -> Any:
    scores = predictions.get(PredictionKey.SCORES)
    if scores is None:
        scores = predictions.get(PredictionKey.PROBABILITIES)
    if problem_type == ProblemType.LINEAR_REGRESSION:
        return RegressionOutput(scores)
    if problem_type in (ProblemType.CLASSIFICATION, ProblemType.LOGISTIC_REGRESSION):
        classes = predictions.get(PredictionKey.CLASSES)
        if classes is None or classes.dtype != dtypes.string:
            logging.warning("classes is not string, Servo inference will not have class ids.")
            classes = None
        if scores is None and classes is None:
            # a support vector machine says which class, as a number, and nothing else
            return PredictOutput(predictions)
        return ClassificationOutput(scores=scores, classes=classes)
    if problem_type == ProblemType.UNSPECIFIED:
        return PredictOutput(predictions)
    raise ValueError(f"Unknown problem_type={problem_type}")
