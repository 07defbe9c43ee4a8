"""`tf.keras.metrics`: what is averaged over the batches of an epoch, and the area under a curve.

Their state is in variables that no collection has and no Saver saves. Follows TensorFlow 1.15's keras/metrics.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import control_dependencies, name_scope
from tenfold.keras import losses
from tenfold.keras.base_layer import numbered
from tenfold.keras.named_objects import by_name
from tenfold.layers.base import _snake_case
from tenfold.left_out import why
from tenfold.ops import array, math, state_ops
from tenfold.ops.control_flow import group
from tenfold.ops.variables import Variable

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold.graph.tensor import Tensor

__all__ = ["AUC", "BinaryAccuracy", "BinaryCrossentropy", "Mean", "Metric", "binary_accuracy", "get"]


class Metric:
    """Base of metrics: `update_state` gives the operation that counts a batch, `result` the value so far.

    Calling one gives the value after the batch.
    """

    def __init__(self, name: str | None = None, dtype: Any = None) -> None:
        self.name = name or numbered(_snake_case(type(self).__name__))
        self.dtype = dtype or "float32"
        self.weights: list[Any] = []

    def add_weight(self, name: str, shape: Any = ()) -> Any:
        """A variable of zeros."""
        with name_scope(f"metrics/{self.name}/"):
            made = Variable(np.zeros(shape, self.dtype), name=name, trainable=False, collections=[], dtype=self.dtype)
        self.weights.append(made)
        return made

    def update_state(self, *args: Any, **kwargs: Any) -> Any:
        """The operation that counts what is given."""
        raise NotImplementedError(f"{type(self).__name__} does not say what it counts")

    def result(self) -> Tensor:
        """The value so far."""
        raise NotImplementedError(f"{type(self).__name__} does not say what it gives")

    def __call__(self, *args: Any, **kwargs: Any) -> Tensor:
        with control_dependencies([self.update_state(*args, **kwargs)]):
            return self.result()

    @property
    def reset_op(self) -> Any:
        """The operation that begins anew."""
        return group(*(each.initializer for each in self.weights))


class Mean(Metric):
    """The mean of all elements, weighted by `sample_weight`."""

    def __init__(self, name: str | None = "mean", dtype: Any = None) -> None:
        super().__init__(name, dtype)
        self.total, self.count = self.add_weight("total"), self.add_weight("count")

    def update_state(self, values: Any, sample_weight: Any = None) -> Any:
        values = math.cast(convert_to_tensor(values), self.dtype)
        if sample_weight is None:
            count = math.cast(array.size(values), self.dtype)
        else:
            weights = math.cast(sample_weight, self.dtype) * array.ones_like(values)
            values, count = values * weights, math.reduce_sum(weights)
        return group(state_ops.assign_add(self.total, math.reduce_sum(values)), state_ops.assign_add(self.count, count))

    def result(self) -> Tensor:
        found: Tensor = math.div_no_nan(convert_to_tensor(self.total), convert_to_tensor(self.count))
        return found


class _MeanOf(Metric):
    """The mean of a function of labels and predictions."""

    def __init__(self, function: Callable[..., Any], name: str, dtype: Any = None, **arguments: Any) -> None:
        super().__init__(name, dtype)
        self._function, self._arguments = function, arguments
        self._mean = Mean(name, dtype)
        self.weights = self._mean.weights

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        return self._mean.update_state(self._function(y_true, y_pred, **self._arguments), sample_weight)

    def result(self) -> Tensor:
        return self._mean.result()


class BinaryCrossentropy(_MeanOf):
    """The mean of `tf.keras.losses.binary_crossentropy`."""

    def __init__(
        self,
        name: str = "binary_crossentropy",
        dtype: Any = None,
        from_logits: bool = False,
        label_smoothing: float = 0,
    ) -> None:
        arguments = {"from_logits": from_logits, "label_smoothing": label_smoothing}
        super().__init__(losses.binary_crossentropy, name, dtype, **arguments)


class BinaryAccuracy(_MeanOf):
    """How many predictions are on their label's side of `threshold`."""

    def __init__(self, name: str = "binary_accuracy", dtype: Any = None, threshold: float = 0.5) -> None:
        super().__init__(binary_accuracy, name, dtype, threshold=threshold)


class AUC(Metric):
    """The area under the ROC curve, by trapezoids between `num_thresholds` thresholds.

    Raises ValueError for other curves and sums, and for fewer than two thresholds.
    """

    def __init__(
        self,
        num_thresholds: int = 200,
        curve: str = "ROC",
        summation_method: str = "interpolation",
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        if (curve, summation_method) != ("ROC", "interpolation"):
            raise ValueError(f"AUC: no curve '{curve}' by '{summation_method}' here; use tf.metrics.auc")
        if num_thresholds <= 1:
            raise ValueError("`num_thresholds` must be > 1.")
        super().__init__(name, dtype)
        between = [(number + 1) / (num_thresholds - 1) for number in range(num_thresholds - 2)]
        self.thresholds = np.array([-1e-7, *between, 1 + 1e-7], np.float32)
        #: Positive and negative examples predicted above each threshold, and all of them.
        self._above = [self.add_weight(name, (num_thresholds,)) for name in ("true_positives", "false_positives")]
        self._all = [self.add_weight(name) for name in ("positives", "negatives")]

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        predicted = array.reshape(math.cast(y_pred, self.dtype), [-1])
        label = array.reshape(math.cast(math.cast(y_true, "bool"), self.dtype), [-1])
        weight = array.ones_like(label) if sample_weight is None else math.cast(sample_weight, self.dtype)
        weight = array.reshape(weight * array.ones_like(label), [-1])
        above = math.cast(predicted > array.expand_dims(self.thresholds, 1), self.dtype)
        updates = []
        for counted, total, of in zip(self._above, self._all, (label * weight, (1 - label) * weight), strict=True):
            updates.append(state_ops.assign_add(counted, math.reduce_sum(above * of, 1)))
            updates.append(state_ops.assign_add(total, math.reduce_sum(of)))
        return group(*updates)

    def result(self) -> Tensor:
        pairs = zip(self._above, self._all, strict=True)
        y, x = (math.div_no_nan(convert_to_tensor(c), convert_to_tensor(t) * np.ones(1, "float32")) for c, t in pairs)
        area: Tensor = math.reduce_sum((x[:-1] - x[1:]) * (y[:-1] + y[1:]) / 2.0)
        return area


def binary_accuracy(y_true: Any, y_pred: Any, threshold: float = 0.5) -> Tensor:
    """How many predictions of the last dimension are on their label's side of `threshold`."""
    predicted = convert_to_tensor(y_pred)
    side = math.cast(predicted > threshold, predicted.dtype)
    mean: Tensor = math.reduce_mean(math.cast(math.equal(math.cast(y_true, side.dtype), side), "float32"), axis=-1)
    return mean


def get(identifier: Any) -> Metric:
    """The metric of a name, of a function, or as it is. Raises ValueError for an unknown name."""
    if isinstance(identifier, str) and identifier in ("binary_crossentropy", "bce", "BCE"):
        return _MeanOf(losses.binary_crossentropy, identifier)
    if isinstance(identifier, str) and identifier in ("accuracy", "acc", "binary_accuracy"):
        return _MeanOf(binary_accuracy, identifier)
    known = {"AUC": AUC, "BinaryAccuracy": BinaryAccuracy, "BinaryCrossentropy": BinaryCrossentropy, "Mean": Mean}
    found = by_name("metric", identifier, known)
    return found if isinstance(found, Metric) else _MeanOf(found, getattr(found, "__name__", "metric"))


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    raise AttributeError(f"tf.keras.metrics.{name} is not part of Tenfold: {why('keras.metrics')}")
