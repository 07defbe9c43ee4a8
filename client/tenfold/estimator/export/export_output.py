"""What a model offers to those that serve it: `tf.estimator.export.ClassificationOutput` and its siblings.

An EstimatorSpec has one for each signature. Follows TF 1.15's saved_model/model_utils/export_output.py and
export_utils.py.
"""

from __future__ import annotations

import abc
from typing import Any

from tenfold.graph import Operation, Tensor, control_dependencies
from tenfold.ops import array
from tenfold_core import dtypes

#: The signature that is served when a request names none.
_DEFAULT_KEY = "serving_default"


class ExportOutput(abc.ABC):
    """One signature's outputs. Subclasses say which form the signature has."""

    #: Between the parts of a key that is a tuple.
    _SEPARATOR_CHAR = "/"

    @abc.abstractmethod
    def as_signature_def(self, receiver_tensors: dict[str, Any]) -> Any:
        """The SignatureDef from the given inputs to these outputs. Raises ValueError for inputs that it cannot have."""

    def _check_output_key(self, key: Any, error_label: str) -> str:
        if isinstance(key, tuple):
            if not all(isinstance(part, str) for part in key):
                raise ValueError(f"{error_label} output key tuples must contain strings; got {key}.")
            return self._SEPARATOR_CHAR.join(key)
        if not isinstance(key, str):
            raise ValueError(f"{error_label} output key must be a string; got {key}.")
        return key

    def _wrap_and_check_outputs(
        self, outputs: Any, single_output_default_name: str, error_label: str | None = None
    ) -> dict[str, Any]:
        """Name → tensor; a single tensor gets the default name."""
        label = error_label or single_output_default_name
        given = outputs if isinstance(outputs, dict) else {single_output_default_name: outputs}
        checked = {}
        for key, value in given.items():
            name = self._check_output_key(key, label)
            if not isinstance(value, Tensor):
                raise ValueError(f"{label} output value must be a Tensor; got {value}.")
            checked[name] = value
        return checked


class ClassificationOutput(ExportOutput):
    """Scores [batch, classes] (float), class labels [batch, classes] (string), or both.

    Scores alone are those of all classes in order; labels alone are the best ones in descending order. Raises
    ValueError for neither, or another type.
    """

    def __init__(self, scores: Any = None, classes: Any = None) -> None:
        if scores is not None and not (isinstance(scores, Tensor) and scores.dtype.is_floating):
            raise ValueError(f"Classification scores must be a float32 Tensor; got {scores}")
        if classes is not None and not (isinstance(classes, Tensor) and classes.dtype.base_dtype == dtypes.string):
            raise ValueError(f"Classification classes must be a string Tensor; got {classes}")
        if scores is None and classes is None:
            raise ValueError("At least one of scores and classes must be set.")
        self._scores, self._classes = scores, classes

    @property
    def scores(self) -> Any:
        return self._scores

    @property
    def classes(self) -> Any:
        return self._classes

    def as_signature_def(self, receiver_tensors: dict[str, Any]) -> Any:
        from tenfold.saved_model import signature_def_utils

        examples = _examples(receiver_tensors, "Classification")
        return signature_def_utils.classification_signature_def(examples, self.classes, self.scores)


class RegressionOutput(ExportOutput):
    """Predicted values [batch, …] (float). Raises ValueError for another type."""

    def __init__(self, value: Any) -> None:
        if not (isinstance(value, Tensor) and value.dtype.is_floating):
            raise ValueError(f"Regression output value must be a float32 Tensor; got {value}")
        self._value = value

    @property
    def value(self) -> Any:
        return self._value

    def as_signature_def(self, receiver_tensors: dict[str, Any]) -> Any:
        from tenfold.saved_model import signature_def_utils

        return signature_def_utils.regression_signature_def(_examples(receiver_tensors, "Regression"), self.value)


class PredictOutput(ExportOutput):
    """Any tensors, by name. Raises ValueError for a name that is no string, or a value that is not a tensor."""

    _SINGLE_OUTPUT_DEFAULT_NAME = "output"

    def __init__(self, outputs: Any) -> None:
        self._outputs = self._wrap_and_check_outputs(outputs, self._SINGLE_OUTPUT_DEFAULT_NAME, "Prediction")

    @property
    def outputs(self) -> dict[str, Any]:
        return self._outputs

    def as_signature_def(self, receiver_tensors: dict[str, Any]) -> Any:
        from tenfold.saved_model import signature_def_utils

        return signature_def_utils.predict_signature_def(receiver_tensors, self.outputs)


class _SupervisedOutput(ExportOutput):
    """Loss, predictions and metrics of a step of training or evaluation; their names begin with what they are."""

    LOSS_NAME, PREDICTIONS_NAME, METRICS_NAME = "loss", "predictions", "metrics"
    METRIC_VALUE_SUFFIX, METRIC_UPDATE_SUFFIX = "value", "update_op"

    def __init__(self, loss: Any = None, predictions: Any = None, metrics: Any = None) -> None:
        self._loss = None if loss is None else self._prefixed(loss, self.LOSS_NAME)
        self._predictions = None if predictions is None else self._prefixed(predictions, self.PREDICTIONS_NAME)
        self._metrics = None if metrics is None else self._wrap_and_check_metrics(metrics)

    def _prefixed(self, outputs: Any, name: str) -> dict[str, Any]:
        checked = self._wrap_and_check_outputs(outputs, name)
        return {self._prefix_key(key, name): value for key, value in checked.items()}

    def _prefix_key(self, key: str, output_name: str) -> str:
        return key if key.startswith(output_name) else f"{output_name}{self._SEPARATOR_CHAR}{key}"

    def _wrap_and_check_metrics(self, metrics: Any) -> dict[str, Any]:
        """Name → tensor: two for each metric. An update that is an operation becomes a tensor that waits for it."""
        given = metrics if isinstance(metrics, dict) else {self.METRICS_NAME: metrics}
        outputs = {}
        for key, (value, update) in given.items():
            name = self._prefix_key(self._check_output_key(key, self.METRICS_NAME), self.METRICS_NAME)
            if not isinstance(value, Tensor):
                raise ValueError(f"{name} output value must be a Tensor; got {value}.")
            if not isinstance(update, (Tensor, Operation)):
                raise ValueError(f"{name} update_op must be a Tensor or Operation; got {update}.")
            if isinstance(update, Operation):
                with control_dependencies([update]):
                    update = array.constant([], name="metric_op_wrapper")
            outputs[f"{name}{self._SEPARATOR_CHAR}{self.METRIC_VALUE_SUFFIX}"] = value
            outputs[f"{name}{self._SEPARATOR_CHAR}{self.METRIC_UPDATE_SUFFIX}"] = update
        return outputs

    @property
    def loss(self) -> Any:
        return self._loss

    @property
    def predictions(self) -> Any:
        return self._predictions

    @property
    def metrics(self) -> Any:
        return self._metrics

    @abc.abstractmethod
    def _get_signature_def_fn(self) -> Any:
        """The function that makes the signature."""

    def as_signature_def(self, receiver_tensors: dict[str, Any]) -> Any:
        return self._get_signature_def_fn()(receiver_tensors, self.loss, self.predictions, self.metrics)


class TrainOutput(_SupervisedOutput):
    """Those of a training step."""

    def _get_signature_def_fn(self) -> Any:
        from tenfold.saved_model import signature_def_utils

        return signature_def_utils.supervised_train_signature_def


class EvalOutput(_SupervisedOutput):
    """Those of an evaluation step."""

    def _get_signature_def_fn(self) -> Any:
        from tenfold.saved_model import signature_def_utils

        return signature_def_utils.supervised_eval_signature_def


def _examples(receiver_tensors: dict[str, Any], kind: str) -> Any:
    """The only input, which holds serialized examples. Raises ValueError for others."""
    given = list(receiver_tensors.values())
    if len(given) != 1 or dtypes.as_dtype(given[0].dtype).base_dtype != dtypes.string:
        raise ValueError(f"{kind} input must be a single string Tensor; got {receiver_tensors}")
    return given[0]


def get_export_outputs(export_outputs: Any, predictions: Any) -> dict[str, Any]:
    """`export_outputs`, checked, with a default signature; by default a PredictOutput of `predictions`.

    Raises TypeError for what is no dictionary of ExportOutputs, ValueError for several of which none is the default.
    """
    if export_outputs is None:
        export_outputs = {_DEFAULT_KEY: PredictOutput(predictions)}
    if not isinstance(export_outputs, dict):
        raise TypeError(f"export_outputs must be dict, given: {export_outputs}")
    for output in export_outputs.values():
        if not isinstance(output, ExportOutput):
            raise TypeError(f"Values in export_outputs must be ExportOutput objects. Given: {export_outputs}")
    if len(export_outputs) == 1:
        # the caller's own dictionary gets the default, as in TensorFlow
        export_outputs.setdefault(_DEFAULT_KEY, next(iter(export_outputs.values())))
    if len(export_outputs) > 1 and _DEFAULT_KEY not in export_outputs:
        raise ValueError(
            "Multiple export_outputs were provided, but none of them is specified as the default.  Do this by naming "
            "one of them with signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY."
        )
    return export_outputs
