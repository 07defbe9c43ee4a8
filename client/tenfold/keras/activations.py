"""`tf.keras.activations`: those of tf.nn, by Keras's names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.layers.activations import activation_of
from tenfold.left_out import why
from tenfold.ops import math, nn

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["elu", "exponential", "get", "linear", "selu", "sigmoid", "softplus", "softsign", "tanh"]

elu, selu, softplus, softsign = nn.elu, nn.selu, nn.softplus, nn.softsign
exponential, sigmoid, tanh = math.exp, math.sigmoid, math.tanh


def linear(x: Any) -> Any:
    """What it is given."""
    return x


def get(identifier: Any) -> Callable[..., Any]:
    """The function of a name, `linear` for None; a function as it is. Raises ValueError for an unknown name."""
    found: Callable[..., Any] = activation_of(identifier) or linear
    return found


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    raise AttributeError(f"tf.keras.activations.{name} is not part of Tenfold: {why('keras.activations')}")
