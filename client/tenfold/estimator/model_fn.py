"""`tf.estimator.EstimatorSpec`: what a model function returns, checked; and how model functions are called.

Used by estimator.py and by heads. Follows TF 1.15's estimator/model_fn.py, with its error messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tenfold import logging, nest
from tenfold.estimator.export.export_output import get_export_outputs
from tenfold.estimator.mode_keys import ModeKeys
from tenfold.estimator.util import call_with_known, check_names, fn_args
from tenfold.graph import Operation, Tensor, get_default_graph
from tenfold.ops import array
from tenfold.ops.variables import Variable
from tenfold.train.scaffold import Scaffold
from tenfold.train.session_run_hook import SessionRunHook
from tenfold_core.tensor_shape import TensorShape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

#: Metrics that an evaluation has by itself.
LOSS_METRIC_KEY = "loss"
AVERAGE_LOSS_METRIC_KEY = "average_loss"

#: What a model function may take.
_MODEL_FN_ARGS = ("features", "labels", "mode", "params", "self", "config")


class _EstimatorSpec(NamedTuple):
    mode: str
    predictions: Any
    loss: Any
    train_op: Any
    eval_metric_ops: dict[str, Any]
    export_outputs: Any
    training_chief_hooks: tuple[SessionRunHook, ...]
    training_hooks: tuple[SessionRunHook, ...]
    scaffold: Scaffold
    evaluation_hooks: tuple[SessionRunHook, ...]
    prediction_hooks: tuple[SessionRunHook, ...]


class EstimatorSpec(_EstimatorSpec):
    """The ops and objects of a model in one mode.

    Training needs `loss` (one number) and `train_op`, evaluation `loss`, prediction `predictions` (a tensor or a
    dictionary of tensors). `eval_metric_ops` has a (value, update) pair for each name, as functions of tf.metrics
    return; `export_outputs` an ExportOutput for each signature. Everything must be of the default graph. Raises
    ValueError for what is missing or of another graph, TypeError for what is of another kind. As TensorFlow 1.15's
    `tf.estimator.EstimatorSpec`.
    """

    __slots__ = ()

    def __new__(
        cls,
        mode: str,
        predictions: Any = None,
        loss: Any = None,
        train_op: Any = None,
        eval_metric_ops: Mapping[str, Any] | None = None,
        export_outputs: Any = None,
        training_chief_hooks: Iterable[SessionRunHook] | None = None,
        training_hooks: Iterable[SessionRunHook] | None = None,
        scaffold: Scaffold | None = None,
        evaluation_hooks: Iterable[SessionRunHook] | None = None,
        prediction_hooks: Iterable[SessionRunHook] | None = None,
    ) -> EstimatorSpec:
        train_op = _checked_train_op(train_op, mode)
        loss = _checked_loss(loss, mode)
        predictions = _checked_predictions(predictions, mode)
        if mode == ModeKeys.PREDICT:
            export_outputs = get_export_outputs(export_outputs, predictions)
        hooks = [
            _checked_hooks(each) for each in (training_chief_hooks, training_hooks, evaluation_hooks, prediction_hooks)
        ]
        return super().__new__(
            cls,
            mode=mode,
            predictions=predictions,
            loss=loss,
            train_op=train_op,
            eval_metric_ops=_checked_metrics(eval_metric_ops),
            export_outputs=export_outputs,
            training_chief_hooks=hooks[0],
            training_hooks=hooks[1],
            scaffold=_checked_scaffold(scaffold),
            evaluation_hooks=hooks[2],
            prediction_hooks=hooks[3],
        )

    def _replace(self, **kwds: Any) -> EstimatorSpec:
        """A spec with other values, checked again. Raises ValueError for another mode or a field that there is not."""
        if kwds.get("mode", self.mode) != self.mode:
            raise ValueError("mode of EstimatorSpec cannot be changed.")
        unknown = sorted(set(kwds) - set(self._fields))
        if unknown:
            raise ValueError(f"Got unexpected field names: {unknown}")
        return EstimatorSpec(**{**self._asdict(), **kwds})


def _checked_train_op(train_op: Any, mode: str) -> Any:
    if train_op is None:
        if mode == ModeKeys.TRAIN:
            raise ValueError("Missing train_op.")
        return None
    if not isinstance(train_op, (Operation, Tensor, Variable)):
        raise TypeError(f"train_op must be Operation or Tensor, given: {train_op}")
    if isinstance(train_op, Variable):
        train_op = train_op.op
    _check_graph(train_op, "train_op", train_op.name)
    return train_op


def _checked_loss(loss: Any, mode: str) -> Any:
    if loss is None:
        if mode in (ModeKeys.TRAIN, ModeKeys.EVAL):
            raise ValueError("Missing loss.")
        return None
    _check_tensor(loss, "loss")
    shape = loss.get_shape()
    if shape.num_elements() not in (None, 1):
        raise ValueError(f"Loss must be scalar, given: {loss}")
    _check_graph(loss, "loss", loss.name)
    return loss if shape.is_compatible_with(TensorShape([])) else array.reshape(loss, [])


def _checked_predictions(predictions: Any, mode: str) -> Any:
    if predictions is None:
        if mode == ModeKeys.PREDICT:
            raise ValueError("Missing predictions.")
        return {}
    if not isinstance(predictions, dict):
        _check_tensor(predictions, "predictions")
        _check_graph(predictions, "prediction values", predictions.name)
        return predictions
    for key, value in predictions.items():
        _check_tensor(value, f"predictions[{key}]")
    for key, value in predictions.items():
        _check_graph(value, "prediction values", f"{key}: {value.name}")
    return dict(predictions)


def _checked_hooks(hooks: Iterable[Any] | None) -> tuple[SessionRunHook, ...]:
    given = tuple(hooks or ())
    for hook in given:
        if not isinstance(hook, SessionRunHook):
            raise TypeError(f"All hooks must be SessionRunHook instances, given: {hook}")
    return given


def _checked_metrics(metrics: Any) -> dict[str, Any]:
    if metrics is None:
        return {}
    if not isinstance(metrics, dict):
        raise TypeError(f"eval_metric_ops must be a dict, given: {metrics}")
    for key, value in metrics.items():
        if not isinstance(value, tuple) or len(value) != 2:
            raise TypeError(
                f"Values of eval_metric_ops must be (metric_value, update_op) tuples, given: {value} for key: {key}"
            )
        for part in nest.flatten(value):
            if not isinstance(part, (Operation, Tensor, Variable)):
                raise TypeError(f"eval_metric_ops[{key}] must be Operation or Tensor, given: {part}")
            _check_graph(part, "eval_metric_ops", f"{key}: {part.name}")
    return metrics


def _checked_scaffold(scaffold: Any) -> Scaffold:
    scaffold = scaffold or Scaffold()
    if not isinstance(scaffold, Scaffold):
        raise TypeError(f"scaffold must be tf.train.Scaffold. Given: {scaffold}")
    return scaffold


def _check_tensor(value: Any, name: str) -> None:
    if not isinstance(value, (Tensor, Variable)):
        raise TypeError(f"{name} must be Tensor, given: {value}")


def _check_graph(value: Any, what: str, name: str) -> None:
    if value.graph is not get_default_graph():
        raise ValueError(
            f'{what} with "{name}" must be from the default graph. Possible causes of this error include: \n\n'
            f"1) {what} was created outside the context of the default graph.\n\n"
            '2) The object passed through to EstimatorSpec was not created in the most recent call to "model_fn".'
        )


def verify_model_fn_args(model_fn: Callable[..., Any], params: Any) -> None:
    """Raises ValueError if the function does not take `features`, or `params` though there are some, or takes more."""
    names = fn_args(model_fn)
    if "features" not in names:
        raise ValueError(f"model_fn ({model_fn}) must include features argument.")
    if params is not None and "params" not in names:
        raise ValueError(
            f"model_fn ({model_fn}) does not include params argument, but params ({params}) is passed to Estimator."
        )
    if params is None and "params" in names:
        logging.warning(
            "Estimator's model_fn (%s) includes params argument, but params are not passed to Estimator.", model_fn
        )
    check_names(model_fn, _MODEL_FN_ARGS, "model_fn")


def call_logit_fn(logit_fn: Callable[..., Any], features: Any, mode: str, params: Any, config: Any) -> Any:
    """The logits of `logit_fn`, which gets those of the arguments that it takes.

    Raises ValueError unless it returns a tensor or a dictionary from strings to tensors. As TensorFlow 1.15's
    `tf.estimator.experimental.call_logit_fn`.
    """
    made = call_with_known(logit_fn, {"mode": mode, "params": params, "config": config}, features=features)
    parts = made.items() if isinstance(made, dict) else [("", made)]
    if not all(isinstance(key, str) and isinstance(value, Tensor) for key, value in parts):
        raise ValueError(
            f"logit_fn should return a Tensor or a dictionary mapping strings to Tensors.  logit_fn returned: {made}"
        )
    return made
