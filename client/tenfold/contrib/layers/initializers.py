"""contrib's initializers: random with a variance that depends on the number of inputs or outputs.

Unlike `tf.initializers.variance_scaling`, the truncated normal's variance is scaled by 1.3, and a partition counts as
a variable of its own. Follows TensorFlow 1.15's contrib/layers/python/layers/initializers.py.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tenfold.ops import random as random_ops
from tenfold.ops.init_ops import compute_fans
from tenfold_core.dtypes import as_dtype

if TYPE_CHECKING:
    from collections.abc import Callable

_MODES = ("FAN_IN", "FAN_OUT", "FAN_AVG")
#: The variance of a normal is about 1.3 times that of one whose values beyond two deviations are drawn again.
_OF_TRUNCATED = 1.3


def variance_scaling_initializer(
    factor: float = 2.0, mode: str = "FAN_IN", uniform: bool = False, seed: int | None = None, dtype: Any = "float32"
) -> Callable[..., Any]:
    """Random with variance `factor / n`, where n is the fan in, the fan out or their mean (`mode`).

    Raises TypeError for an unknown mode and for a type that is not floating.
    """
    if mode not in _MODES:
        raise TypeError(f"Unknown mode {mode} [FAN_IN, FAN_OUT, FAN_AVG]")

    def floating(given: Any) -> Any:
        if not as_dtype(given).is_floating:
            raise TypeError("Cannot create initializer for non-floating point type.")
        return as_dtype(given)

    kind = floating(dtype)

    def initialize(shape: Any, dtype: Any = kind, partition_info: Any = None) -> Any:
        wanted = floating(dtype)
        fan_in, fan_out = compute_fans(shape)
        n = {"FAN_IN": fan_in, "FAN_OUT": fan_out, "FAN_AVG": (fan_in + fan_out) / 2.0}[mode]
        if uniform:
            limit = math.sqrt(3.0 * factor / n)
            return random_ops.random_uniform(shape, -limit, limit, wanted, seed=seed)
        return random_ops.truncated_normal(shape, 0.0, math.sqrt(_OF_TRUNCATED * factor / n), wanted, seed=seed)

    return initialize


def xavier_initializer(uniform: bool = True, seed: int | None = None, dtype: Any = "float32") -> Callable[..., Any]:
    """Random with a variance that keeps the scale of gradients about the same in all layers (Glorot and Bengio)."""
    return variance_scaling_initializer(factor=1.0, mode="FAN_AVG", uniform=uniform, seed=seed, dtype=dtype)


xavier_initializer_conv2d = xavier_initializer
