"""`tf.keras.regularizers`: what a weight adds to the loss. Follows TensorFlow 1.15's keras/regularizers.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.conversion import convert_to_tensor
from tenfold.keras.named_objects import by_name
from tenfold.left_out import why
from tenfold.ops import math

if TYPE_CHECKING:
    from tenfold.graph.tensor import Tensor

__all__ = ["L1L2", "Regularizer", "get", "l1", "l1_l2", "l2"]


class Regularizer:
    """Base of regularizers: called with a weight, gives a loss."""

    def __call__(self, x: Any) -> Any:
        """The loss of a weight."""
        return 0.0


class L1L2(Regularizer):
    """`l1` times the sum of absolute values and `l2` times the sum of squares."""

    def __init__(self, l1: float = 0.0, l2: float = 0.0) -> None:
        self.l1, self.l2 = float(l1), float(l2)

    def __call__(self, x: Any) -> Tensor:
        value = convert_to_tensor(x)
        found = [
            factor * math.reduce_sum(norm(value))
            for factor, norm in ((self.l1, math.abs), (self.l2, math.square))
            if factor
        ]
        if not found:
            return convert_to_tensor(0.0)
        total: Tensor = found[0] if len(found) == 1 else found[0] + found[1]
        return total

    def get_config(self) -> dict[str, float]:
        """Its arguments."""
        return {"l1": self.l1, "l2": self.l2}


def l1(l: float = 0.01) -> L1L2:  # noqa: E741 - the argument's name is Keras's
    """`l` times the sum of absolute values."""
    return L1L2(l1=l)


def l2(l: float = 0.01) -> L1L2:  # noqa: E741 - the argument's name is Keras's
    """`l` times the sum of squares."""
    return L1L2(l2=l)


def l1_l2(l1: float = 0.01, l2: float = 0.01) -> L1L2:
    """Both."""
    return L1L2(l1, l2)


def get(identifier: Any) -> Any:
    """The regularizer of a name; a function or None as it is. Raises ValueError for an unknown name."""
    return by_name("regularizer", identifier, {"l1": l1, "l2": l2, "l1_l2": l1_l2, "L1L2": L1L2})


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    raise AttributeError(f"tf.keras.regularizers.{name} is not part of Tenfold: {why('keras.regularizers')}")
