"""`tf.keras.losses`: the cross-entropies that programs of graphs and sessions use, as objects and as functions.

They stand on tf.nn and tf.losses, and add nothing to the collection LOSSES. Follows TensorFlow 1.15's keras/losses.py
and the cross-entropies of keras/backend.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold import losses
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold.keras.backend import epsilon
from tenfold.keras.named_objects import by_name
from tenfold.left_out import why
from tenfold.ops import array, clip, math, nn_losses

if TYPE_CHECKING:
    from tenfold.graph.tensor import Tensor

__all__ = [
    "BinaryCrossentropy",
    "CategoricalCrossentropy",
    "Loss",
    "Reduction",
    "binary_crossentropy",
    "categorical_crossentropy",
    "get",
    "mean_absolute_error",
    "mean_squared_error",
]


class Reduction:
    """What becomes of the losses of a batch: their mean (also by "auto"), their sum, or nothing."""

    AUTO = "auto"
    NONE = "none"
    SUM = "sum"
    SUM_OVER_BATCH_SIZE = "sum_over_batch_size"

    @classmethod
    def all(cls) -> tuple[str, ...]:
        """Every key."""
        return cls.AUTO, cls.NONE, cls.SUM, cls.SUM_OVER_BATCH_SIZE

    @classmethod
    def validate(cls, key: str) -> None:
        """Raises ValueError for an unknown key."""
        if key not in cls.all():
            raise ValueError(f"Invalid Reduction Key {key}; there are {', '.join(cls.all())}")


_OF_LOSSES = {
    Reduction.AUTO: losses.Reduction.SUM_OVER_BATCH_SIZE,
    Reduction.NONE: losses.Reduction.NONE,
    Reduction.SUM: losses.Reduction.SUM,
    Reduction.SUM_OVER_BATCH_SIZE: losses.Reduction.SUM_OVER_BATCH_SIZE,
}


class Loss:
    """Base of losses: `call` gives one for each example, calling the object weighs and reduces them.

    Raises ValueError for an unknown reduction.
    """

    def __init__(self, reduction: str = Reduction.AUTO, name: str | None = None) -> None:
        Reduction.validate(reduction)
        self.reduction, self.name = reduction, name

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Tensor:
        """The loss of predictions [batch, …] for labels of the same shape, in their type; a scalar unless the reduction
        is "none". `sample_weight` is broadcast to the losses of the examples."""
        with name_scope(self.name or type(self).__name__):
            found = convert_to_tensor(self.call(y_true, y_pred))
            weights = 1.0 if sample_weight is None else sample_weight
            reduction = _OF_LOSSES[self.reduction]
            total: Tensor = losses.compute_weighted_loss(found, weights, loss_collection=None, reduction=reduction)
            return total

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """The losses of the examples."""
        raise NotImplementedError(f"{type(self).__name__} does not say how far predictions are from labels")


class BinaryCrossentropy(Loss):
    """Of the labels 0 and 1, or what lies between, for probabilities, or for logits with `from_logits`.

    The loss of an example is the mean over its last dimension.
    """

    def __init__(
        self,
        from_logits: bool = False,
        label_smoothing: float = 0,
        reduction: str = Reduction.AUTO,
        name: str | None = "binary_crossentropy",
    ) -> None:
        super().__init__(reduction, name)
        self.from_logits, self.label_smoothing = from_logits, label_smoothing

    def call(self, y_true: Any, y_pred: Any) -> Tensor:
        return binary_crossentropy(y_true, y_pred, self.from_logits, self.label_smoothing)


class CategoricalCrossentropy(Loss):
    """Of a distribution over classes, the last dimension, for probabilities, or for logits with `from_logits`."""

    def __init__(
        self,
        from_logits: bool = False,
        label_smoothing: float = 0,
        reduction: str = Reduction.AUTO,
        name: str | None = "categorical_crossentropy",
    ) -> None:
        super().__init__(reduction, name)
        self.from_logits, self.label_smoothing = from_logits, label_smoothing

    def call(self, y_true: Any, y_pred: Any) -> Tensor:
        return categorical_crossentropy(y_true, y_pred, self.from_logits, self.label_smoothing)


def binary_crossentropy(y_true: Any, y_pred: Any, from_logits: bool = False, label_smoothing: float = 0) -> Tensor:
    """The mean cross-entropy over the last dimension. `label_smoothing` moves labels so far towards 0.5.

    Probabilities are taken to be at least 1e-7 from 0 and 1; for those that tf.sigmoid gave its logits are used.
    """
    predicted = convert_to_tensor(y_pred)
    labels = math.cast(y_true, predicted.dtype)
    if label_smoothing:
        labels = labels * (1.0 - label_smoothing) + 0.5 * label_smoothing
    logits = predicted if from_logits else _logits(predicted, "Sigmoid")
    if logits is None:
        p = _inside(predicted)
        entropy = -(labels * math.log(p + epsilon()) + (1 - labels) * math.log(1 - p + epsilon()))
    else:
        entropy = nn_losses.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)
    mean: Tensor = math.reduce_mean(entropy, axis=-1)
    return mean


def categorical_crossentropy(y_true: Any, y_pred: Any, from_logits: bool = False, label_smoothing: float = 0) -> Tensor:
    """The cross-entropy over the last dimension. `label_smoothing` spreads so much of the labels evenly.

    Probabilities are divided by their sum and taken to be at least 1e-7 from 0 and 1; for those that tf.nn.softmax gave
    its logits are used.
    """
    predicted = convert_to_tensor(y_pred)
    labels = math.cast(y_true, predicted.dtype)
    if label_smoothing:
        classes = math.cast(array.shape(labels)[1], predicted.dtype)
        labels = labels * (1.0 - label_smoothing) + label_smoothing / classes
    logits = predicted if from_logits else _logits(predicted, "Softmax")
    entropy: Tensor
    if logits is None:
        p = _inside(predicted / math.reduce_sum(predicted, axis=-1, keepdims=True))
        entropy = -math.reduce_sum(labels * math.log(p), axis=-1)
    else:
        entropy = nn_losses.softmax_cross_entropy_with_logits_v2(labels=labels, logits=logits)
    return entropy


def mean_squared_error(y_true: Any, y_pred: Any) -> Tensor:
    """The mean of squared differences over the last dimension."""
    predicted = convert_to_tensor(y_pred)
    mean: Tensor = math.reduce_mean(math.square(predicted - math.cast(y_true, predicted.dtype)), axis=-1)
    return mean


def mean_absolute_error(y_true: Any, y_pred: Any) -> Tensor:
    """The mean of differences over the last dimension."""
    predicted = convert_to_tensor(y_pred)
    mean: Tensor = math.reduce_mean(math.abs(predicted - math.cast(y_true, predicted.dtype)), axis=-1)
    return mean


def get(identifier: Any) -> Any:
    """The function of a name; a function or an object as it is. Raises ValueError for an unknown name or None."""
    known = {
        **dict.fromkeys(("binary_crossentropy", "bce", "BCE"), binary_crossentropy),
        "categorical_crossentropy": categorical_crossentropy,
        **dict.fromkeys(("mean_squared_error", "mse", "MSE"), mean_squared_error),
        **dict.fromkeys(("mean_absolute_error", "mae", "MAE"), mean_absolute_error),
    }
    if identifier is None:
        raise ValueError("A model trains with a loss: give compile one")
    found = by_name("loss function", identifier, known, made=False)
    return found


def _logits(predicted: Tensor, op_type: str) -> Tensor | None:
    """What an operation of that type made the probabilities of; None where another made them."""
    return predicted.op.inputs[0] if predicted.op.type == op_type else None


def _inside(predicted: Any) -> Any:
    return clip.clip_by_value(predicted, epsilon(), 1.0 - epsilon())


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    raise AttributeError(f"tf.keras.losses.{name} is not part of Tenfold: {why('keras.losses')}")
