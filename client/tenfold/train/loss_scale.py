"""`tf.train.experimental.LossScale` and its like: a loss is multiplied by a number, its gradients are divided by it.

It keeps gradients of half precision from becoming zero. DynamicLossScale grows while gradients are finite and shrinks
when one is not. Follows TensorFlow 1.15's training/experimental/loss_scale.py.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from tenfold import nest
from tenfold.graph import convert_to_tensor
from tenfold.graph.default_stack import get_default_graph
from tenfold.graph.indexed_slices import IndexedSlices
from tenfold.ops import control_flow, math
from tenfold.ops.control_flow_cond import cond
from tenfold.ops.variables import Variable
from tenfold_core import dtypes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tenfold.graph.graph import Graph
    from tenfold.graph.tensor import Tensor

__all__ = ["DynamicLossScale", "FixedLossScale", "LossScale", "get"]


class LossScale(ABC):
    """The base class. A call gives the scale, a float32 scalar."""

    def __init__(self) -> None:
        self._weights: dict[tuple[str, Graph], Variable] = {}

    @abstractmethod
    def __call__(self) -> Tensor:
        """The scale as it is, float32 []."""

    @abstractmethod
    def update(self, grads: Any) -> tuple[Any, Any]:
        """An operation that sets the scale after these gradients, and whether to apply them: a bool or a tensor.

        The gradients are divided by the scale already; None among them is left out.
        """

    @abstractmethod
    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal one."""

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> LossScale:
        """The loss scale of `get_config`'s arguments."""
        return cls(**config)

    def _add_weight(self, name: str, initial_value: Any, dtype: Any = None) -> Variable:
        """A variable of this loss scale. Raises RuntimeError if the graph has one of that name for it."""
        key = (name, get_default_graph())
        if key in self._weights:
            raise RuntimeError(f"Duplicate variables detected. {key}")
        variable = Variable(initial_value, name=name, dtype=dtype, trainable=False, use_resource=True)
        self._weights[key] = variable
        return variable


class FixedLossScale(LossScale):
    """A scale that stays. Raises ValueError for anything but a number of at least 1."""

    def __init__(self, loss_scale_value: float) -> None:
        super().__init__()
        if not isinstance(loss_scale_value, (int, float)):
            raise ValueError("loss_scale_value must be a Python int or float.")
        if loss_scale_value < 1:
            raise ValueError("loss_scale_value must be at least 1.")
        self._loss_scale_value = float(loss_scale_value)

    def __call__(self) -> Tensor:
        """The scale, a constant."""
        return convert_to_tensor(self._loss_scale_value)

    def update(self, grads: Any) -> tuple[Any, Any]:
        """An operation that does nothing, and True."""
        return control_flow.no_op(), True

    def get_config(self) -> dict[str, Any]:
        """As LossScale's."""
        return {"loss_scale_value": self._loss_scale_value}

    def __repr__(self) -> str:
        return f"FixedLossScale({self._loss_scale_value})"


class DynamicLossScale(LossScale):
    """A scale in a variable, times `multiplier` after `increment_period` steps with finite gradients on end.

    A gradient that is not finite divides it by `multiplier`, to no less than 1, and its step is not applied.
    """

    def __init__(
        self, initial_loss_scale: float = 2**15, increment_period: int = 2000, multiplier: float = 2.0
    ) -> None:
        super().__init__()
        self._initial_loss_scale = float(initial_loss_scale)
        self._increment_period = int(increment_period)
        self._multiplier = float(multiplier)
        self._current_loss_scale = self._add_weight("current_loss_scale", self._initial_loss_scale, dtypes.float32)
        self._num_good_steps = self._add_weight("good_steps", 0, dtypes.int64)

    @property
    def initial_loss_scale(self) -> float:
        """The scale at the start."""
        return self._initial_loss_scale

    @property
    def increment_period(self) -> int:
        """After how many good steps it grows."""
        return self._increment_period

    @property
    def multiplier(self) -> float:
        """By how much it grows and shrinks."""
        return self._multiplier

    def __call__(self) -> Tensor:
        """The variable's value."""
        return convert_to_tensor(self._current_loss_scale)

    def update(self, grads: Any) -> tuple[Any, Any]:
        """As LossScale's; the second is whether all gradients are finite."""
        is_finite = all_finite(nest.flatten(grads))
        scale, good_steps = self._current_loss_scale, self._num_good_steps

        def grow() -> Any:
            larger = scale * self._multiplier
            grown = cond(math.is_finite(larger), lambda: scale.assign(larger).op, control_flow.no_op)
            return control_flow.group(grown, good_steps.assign(0))

        def after_finite() -> Any:
            return cond(good_steps + 1 >= self._increment_period, grow, lambda: good_steps.assign_add(1).op)

        def after_others() -> Any:
            smaller = math.maximum(scale / self._multiplier, 1)
            return control_flow.group(good_steps.assign(0), scale.assign(smaller))

        return cond(is_finite, after_finite, after_others), is_finite

    def get_config(self) -> dict[str, Any]:
        """As LossScale's."""
        return {
            "initial_loss_scale": self.initial_loss_scale,
            "increment_period": self.increment_period,
            "multiplier": self.multiplier,
        }

    def __repr__(self) -> str:
        return (
            f"DynamicLossScale(initial_loss_scale={self.initial_loss_scale}, "
            f"increment_period={self.increment_period}, multiplier={self.multiplier})"
        )


def all_finite(grads: Iterable[Any]) -> Tensor:
    """Whether all gradients are finite, bool []. None among them is left out."""
    values = [each.values if isinstance(each, IndexedSlices) else each for each in grads if each is not None]
    finite: Tensor = math.reduce_all([math.reduce_all(math.is_finite(each)) for each in values])
    return finite


def get(identifier: Any) -> LossScale | None:
    """The loss scale that a number, "dynamic", a LossScale or None stands for. Raises ValueError for anything else."""
    if identifier is None or isinstance(identifier, LossScale):
        return identifier
    if isinstance(identifier, (int, float)):
        return FixedLossScale(identifier)
    if identifier == "dynamic":
        return DynamicLossScale()
    raise ValueError(f"Could not interpret loss scale identifier: {identifier}")
