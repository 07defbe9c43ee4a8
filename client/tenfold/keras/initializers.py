"""`tf.keras.initializers`: those of `tf.initializers`; the random ones draw narrower by default than TensorFlow's."""

from __future__ import annotations

from typing import Any

from tenfold.keras.named_objects import by_name
from tenfold.ops import init_ops
from tenfold.ops.init_ops import constant_initializer as constant
from tenfold.ops.init_ops import (
    glorot_normal_initializer,
    glorot_uniform_initializer,
    he_normal,
    he_uniform,
    lecun_normal,
    lecun_uniform,
)
from tenfold.ops.init_ops import ones_initializer as ones
from tenfold.ops.init_ops import orthogonal_initializer as orthogonal
from tenfold.ops.init_ops import variance_scaling_initializer as VarianceScaling
from tenfold.ops.init_ops import zeros_initializer as zeros

__all__ = [
    "Constant",
    "Ones",
    "Orthogonal",
    "RandomNormal",
    "RandomUniform",
    "TruncatedNormal",
    "VarianceScaling",
    "Zeros",
    "constant",
    "get",
    "glorot_normal",
    "glorot_uniform",
    "he_normal",
    "he_uniform",
    "lecun_normal",
    "lecun_uniform",
    "normal",
    "ones",
    "orthogonal",
    "random_normal",
    "random_uniform",
    "truncated_normal",
    "uniform",
    "zeros",
]

Constant, Ones, Orthogonal, Zeros = constant, ones, orthogonal, zeros
glorot_normal, glorot_uniform = glorot_normal_initializer, glorot_uniform_initializer


class RandomNormal(init_ops.RandomNormal):
    """Normal values around `mean`."""

    def __init__(self, mean: Any = 0.0, stddev: Any = 0.05, seed: int | None = None, dtype: Any = "float32") -> None:
        super().__init__(mean, stddev, seed, dtype)


class TruncatedNormal(init_ops.TruncatedNormal):
    """Normal values within two deviations of `mean`."""

    def __init__(self, mean: Any = 0.0, stddev: Any = 0.05, seed: int | None = None, dtype: Any = "float32") -> None:
        super().__init__(mean, stddev, seed, dtype)


class RandomUniform(init_ops.RandomUniform):
    """Values from `minval` to `maxval`."""

    def __init__(
        self, minval: Any = -0.05, maxval: Any = 0.05, seed: int | None = None, dtype: Any = "float32"
    ) -> None:
        super().__init__(minval, maxval, seed, dtype)


normal = random_normal = RandomNormal
truncated_normal = TruncatedNormal
uniform = random_uniform = RandomUniform


def get(identifier: Any) -> Any:
    """The initializer of a name; a function or None as it is. Raises ValueError for an unknown name."""
    return by_name("initializer", identifier, {name: globals()[name] for name in __all__ if name != "get"})
