"""`tf.contrib.learn.models` and `ops`: linear and logistic regression as graphs, and the losses that they end with.

Follows TensorFlow 1.15's `contrib/learn/python/learn/models.py` and `ops/losses_ops.py`.
"""

from __future__ import annotations

from typing import Any

from tenfold import losses, summary
from tenfold.graph.default_scopes import name_scope
from tenfold.graph.default_stack import get_default_graph
from tenfold.ops import array, math, nn
from tenfold.ops.init_ops import random_normal_initializer
from tenfold.ops.variable_scope import get_variable, get_variable_scope, variable_scope


def mean_squared_error_regressor(
    tensor_in: Any, labels: Any, weights: Any, biases: Any, name: str | None = None
) -> Any:
    """(predictions, loss) of tensor_in · weights + biases, by squared error."""
    with name_scope(name, "mean_squared_error_regressor", [tensor_in, labels]):
        predictions = nn.xw_plus_b(tensor_in, weights, biases)
        if len(labels.get_shape()) == 1 and len(predictions.get_shape()) == 2:
            predictions = array.squeeze(predictions, axis=[1])
        return predictions, losses.mean_squared_error(labels, predictions)


def softmax_classifier(
    tensor_in: Any, labels: Any, weights: Any, biases: Any, class_weight: Any = None, name: str | None = None
) -> Any:
    """(probabilities, loss) of tensor_in · weights + biases, by softmax against one-hot labels."""
    with name_scope(name, "softmax_classifier", [tensor_in, labels]):
        logits = nn.xw_plus_b(tensor_in, weights, biases)
        if class_weight is not None:
            logits = math.multiply(logits, class_weight)
        return nn.softmax(logits), losses.softmax_cross_entropy(labels, logits)


def _variables(x: Any, outputs: Any, init_mean: float | None, init_stddev: float) -> tuple[Any, Any]:
    dtype = x.dtype.base_dtype
    make = None if init_mean is None else random_normal_initializer(init_mean, init_stddev, dtype=dtype)
    weights = get_variable("weights", [x.get_shape()[1], outputs], initializer=make, dtype=dtype)
    return weights, get_variable("bias", [outputs], initializer=make, dtype=dtype)


def _summarized(**values: Any) -> None:
    scope = get_variable_scope().name
    for name, value in values.items():
        summary.histogram(f"{scope}.{name}", value)


def linear_regression(x: Any, y: Any, init_mean: float | None = None, init_stddev: float = 1.0) -> Any:
    """(predictions, loss) of a linear model of `x` [batch, features] for `y` [batch] or [batch, outputs]."""
    with variable_scope("linear_regression"):
        shape = y.get_shape()
        weights, bias = _variables(x, 1 if len(shape) == 1 else shape[1], init_mean, init_stddev)
        _summarized(x=x, y=y, weights=weights, bias=bias)
        return mean_squared_error_regressor(x, y, weights, bias)


def logistic_regression(
    x: Any, y: Any, class_weight: Any = None, init_mean: float | None = None, init_stddev: float = 1.0
) -> Any:
    """(probabilities, loss) of a linear model of `x` [batch, features] for one-hot `y` [batch, classes]."""
    with variable_scope("logistic_regression"):
        weights, bias = _variables(x, y.get_shape()[-1], init_mean, init_stddev)
        _summarized(x=x, y=y, weights=weights, bias=bias)
        if class_weight is None:
            try:
                class_weight = get_default_graph().get_tensor_by_name("class_weight:0")
            except KeyError:
                class_weight = None
        return softmax_classifier(x, y, weights, bias, class_weight=class_weight)


def linear_regression_zero_init(x: Any, y: Any) -> Any:
    """`linear_regression` that begins with zeros."""
    return linear_regression(x, y, init_mean=0.0, init_stddev=0.0)


def logistic_regression_zero_init(x: Any, y: Any) -> Any:
    """`logistic_regression` that begins with zeros."""
    return logistic_regression(x, y, init_mean=0.0, init_stddev=0.0)
