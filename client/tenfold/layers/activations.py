"""Activations by their names, as `tf.layers` takes them: "relu", "softmax", …

Follows TensorFlow 1.15's keras/activations.py, whose names these are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.ops import clip, generated_ops, math, nn

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold.graph.tensor import Tensor


def _hard_sigmoid(x: Tensor) -> Any:
    return clip.clip_by_value(x * 0.2 + 0.5, 0.0, 1.0)


_BY_NAME: dict[str, Callable[[Any], Any] | None] = {
    "elu": generated_ops.elu,
    "exponential": math.exp,
    "hard_sigmoid": _hard_sigmoid,
    "linear": None,
    "relu": generated_ops.relu,
    "selu": generated_ops.selu,
    "sigmoid": math.sigmoid,
    "softmax": nn.softmax,
    "softplus": generated_ops.softplus,
    "softsign": generated_ops.softsign,
    "tanh": math.tanh,
}


def activation_of(wanted: Any) -> Any:
    """The function of a name; a function, or None for none, as it is. Raises ValueError for another name."""
    if not isinstance(wanted, str):
        return wanted
    if wanted not in _BY_NAME:
        raise ValueError(f"Unknown activation function: {wanted}; there are {', '.join(_BY_NAME)}")
    return _BY_NAME[wanted]
