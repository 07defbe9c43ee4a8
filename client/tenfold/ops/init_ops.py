"""Initializers: callables that make the initial value of a variable from its shape and type.

`tf.zeros_initializer`, `tf.random_normal_initializer`, … ; `tf.get_variable` calls them as
`initializer(shape, dtype=…, partition_info=…)`. Follows TensorFlow's ops/init_ops.py (version 1).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold.graph.op_builder import apply_op
from tenfold.ops import array as array_ops
from tenfold.ops import random as random_ops
from tenfold_core import dtypes
from tenfold_core.dtypes import DType, as_dtype

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold.graph.argument_types import DTypeLike, TensorLike


class Initializer:
    """Base class. `partition_info` is given when only a part of a partitioned variable is made."""

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        """A tensor of `shape` and `dtype` (default: the one given to the constructor)."""
        raise NotImplementedError

    def get_config(self) -> dict[str, Any]:
        """The arguments of the constructor, types as strings."""
        return {}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Initializer:
        """The initializer that `get_config` described."""
        return cls(**config)


def _floating(dtype: Any) -> DType:
    """`dtype`. Raises ValueError unless it is a floating type."""
    result = as_dtype(dtype)
    if not result.is_floating:
        raise ValueError(f"Expected floating point type, got {result}.")
    return result


class Zeros(Initializer):
    """All zeros (empty strings, False)."""

    def __init__(self, dtype: DTypeLike = dtypes.float32) -> None:
        self.dtype = as_dtype(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        """Zeros of `shape`."""
        return array_ops.zeros(shape, self.dtype if dtype is None else dtype)

    def get_config(self) -> dict[str, Any]:
        """The arguments of the constructor."""
        return {"dtype": self.dtype.name}


class Ones(Initializer):
    """All ones."""

    def __init__(self, dtype: DTypeLike = dtypes.float32) -> None:
        self.dtype = as_dtype(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        """Ones of `shape`."""
        return array_ops.ones(shape, self.dtype if dtype is None else dtype)

    def get_config(self) -> dict[str, Any]:
        """The arguments of the constructor."""
        return {"dtype": self.dtype.name}


class Constant(Initializer):
    """A scalar repeated, or a list or array laid out in the shape of the variable.

    With fewer elements than the shape, the last one is repeated; with `verify_shape` the shapes must be equal.
    """

    def __init__(self, value: TensorLike = 0, dtype: DTypeLike = dtypes.float32, verify_shape: bool = False) -> None:
        if not (np.isscalar(value) or isinstance(value, (list, tuple, np.ndarray))):
            raise TypeError(
                f"Invalid type for initial value: {type(value)} (expected Python scalar, list or tuple of values, or "
                "numpy.ndarray)."
            )
        self.value = value
        self.dtype = as_dtype(dtype)
        self._verify_shape = verify_shape

    def __call__(
        self, shape: Any, dtype: Any = None, partition_info: Any = None, verify_shape: bool | None = None
    ) -> Any:
        """A constant of `shape`. Raises ValueError or TypeError if the value does not fit."""
        verify = self._verify_shape if verify_shape is None else verify_shape
        return array_ops.constant(
            self.value, dtype=self.dtype if dtype is None else dtype, shape=shape, verify_shape=verify
        )

    def get_config(self) -> dict[str, Any]:
        """The arguments of the constructor."""
        return {"value": self.value, "dtype": self.dtype.name}


class RandomUniform(Initializer):
    """Uniform in [minval, maxval); `maxval` defaults to 1 for floating types."""

    def __init__(
        self,
        minval: TensorLike = 0,
        maxval: TensorLike | None = None,
        seed: int | None = None,
        dtype: DTypeLike = dtypes.float32,
    ) -> None:
        self.minval = minval
        self.maxval = maxval
        self.seed = seed
        self.dtype = as_dtype(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        """Random values of `shape`."""
        dtype = self.dtype if dtype is None else dtype
        return random_ops.random_uniform(shape, self.minval, self.maxval, dtype, seed=self.seed)

    def get_config(self) -> dict[str, Any]:
        """The arguments of the constructor."""
        return {"minval": self.minval, "maxval": self.maxval, "seed": self.seed, "dtype": self.dtype.name}


class _Normal(Initializer):
    def __init__(
        self, mean: Any = 0.0, stddev: Any = 1.0, seed: int | None = None, dtype: Any = dtypes.float32
    ) -> None:
        self.mean = mean
        self.stddev = stddev
        self.seed = seed
        self.dtype = _floating(dtype)

    def get_config(self) -> dict[str, Any]:
        """The arguments of the constructor."""
        return {"mean": self.mean, "stddev": self.stddev, "seed": self.seed, "dtype": self.dtype.name}


class RandomNormal(_Normal):
    """Normal with `mean` and `stddev`."""

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        """Random values of `shape`."""
        dtype = self.dtype if dtype is None else dtype
        return random_ops.random_normal(shape, self.mean, self.stddev, dtype, seed=self.seed)


class TruncatedNormal(_Normal):
    """Normal, with values beyond two standard deviations drawn again."""

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        """Random values of `shape`."""
        dtype = self.dtype if dtype is None else dtype
        return random_ops.truncated_normal(shape, self.mean, self.stddev, dtype, seed=self.seed)


class VarianceScaling(Initializer):
    """Random with variance `scale / n`, where n is the fan in, the fan out or their mean.

    `mode` is one of "fan_in", "fan_out", "fan_avg"; `distribution` one of "truncated_normal" ("normal"),
    "untruncated_normal", "uniform".
    """

    def __init__(
        self,
        scale: float = 1.0,
        mode: str = "fan_in",
        distribution: str = "truncated_normal",
        seed: int | None = None,
        dtype: DTypeLike = dtypes.float32,
    ) -> None:
        if scale <= 0.0:
            raise ValueError("`scale` must be positive float.")
        if mode not in {"fan_in", "fan_out", "fan_avg"}:
            raise ValueError(f"Invalid `mode` argument: {mode}")
        distribution = distribution.lower()
        if distribution not in {"normal", "uniform", "truncated_normal", "untruncated_normal"}:
            raise ValueError(f"Invalid `distribution` argument: {distribution}")
        self.scale = scale
        self.mode = mode
        self.distribution = distribution
        self.seed = seed
        self.dtype = _floating(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        """Random values of `shape`; fans are those of the whole variable when it is partitioned."""
        dtype = self.dtype if dtype is None else dtype
        fan_in, fan_out = compute_fans(shape if partition_info is None else partition_info.full_shape)
        fan = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2.0}[self.mode]
        scale = self.scale / max(1.0, fan)
        if self.distribution in ("normal", "truncated_normal"):
            # The standard deviation of a standard normal truncated at ±2.
            stddev = math.sqrt(scale) / 0.87962566103423978
            return random_ops.truncated_normal(shape, 0.0, stddev, dtype, seed=self.seed)
        if self.distribution == "untruncated_normal":
            return random_ops.random_normal(shape, 0.0, math.sqrt(scale), dtype, seed=self.seed)
        limit = math.sqrt(3.0 * scale)
        return random_ops.random_uniform(shape, -limit, limit, dtype, seed=self.seed)

    def get_config(self) -> dict[str, Any]:
        """The arguments of the constructor."""
        return {
            "scale": self.scale,
            "mode": self.mode,
            "distribution": self.distribution,
            "seed": self.seed,
            "dtype": self.dtype.name,
        }


class GlorotUniform(VarianceScaling):
    """Uniform within ±sqrt(6 / (fan_in + fan_out)); what `tf.get_variable` uses by default."""

    def __init__(self, seed: int | None = None, dtype: DTypeLike = dtypes.float32) -> None:
        super().__init__(scale=1.0, mode="fan_avg", distribution="uniform", seed=seed, dtype=dtype)

    def get_config(self) -> dict[str, Any]:
        """The arguments of the constructor."""
        return {"seed": self.seed, "dtype": self.dtype.name}


class GlorotNormal(VarianceScaling):
    """Truncated normal with standard deviation sqrt(2 / (fan_in + fan_out))."""

    def __init__(self, seed: int | None = None, dtype: DTypeLike = dtypes.float32) -> None:
        super().__init__(scale=1.0, mode="fan_avg", distribution="truncated_normal", seed=seed, dtype=dtype)

    def get_config(self) -> dict[str, Any]:
        """The arguments of the constructor."""
        return {"seed": self.seed, "dtype": self.dtype.name}


class Identity(Initializer):
    """`gain` times the identity matrix; two-dimensional shapes only."""

    def __init__(self, gain: float = 1.0, dtype: DTypeLike = dtypes.float32) -> None:
        self.gain = gain
        self.dtype = _floating(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        """A matrix of `shape`. Raises ValueError for another rank."""
        full = list(shape if partition_info is None else partition_info.full_shape)
        if len(full) != 2:
            raise ValueError("Identity matrix initializer can only be used for 2D matrices.")
        dtype = as_dtype(self.dtype if dtype is None else dtype)
        matrix = self.gain * np.eye(*full, dtype=dtype.as_numpy_dtype)
        value = array_ops.constant(matrix.astype(dtype.as_numpy_dtype), dtype=dtype)
        if partition_info is not None:
            value = apply_op("Slice", input=value, begin=partition_info.var_offset, size=shape)
        return value

    def get_config(self) -> dict[str, Any]:
        """The arguments of the constructor."""
        return {"gain": self.gain, "dtype": self.dtype.name}


class Orthogonal(Initializer):
    """An orthogonal matrix times `gain`: of the shape's last dimension by the product of the others."""

    def __init__(self, gain: float = 1.0, seed: int | None = None, dtype: DTypeLike = dtypes.float32) -> None:
        self.gain = gain
        self.dtype = _floating(dtype)
        self.seed = seed

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        """Random values of `shape`. Raises ValueError for fewer than two dimensions."""
        dims = [int(dim) for dim in shape]
        if len(dims) < 2:
            raise ValueError("The tensor to initialize must be at least two-dimensional")
        rows, columns = math.prod(dims[:-1]), dims[-1]
        flat = [max(rows, columns), min(rows, columns)]
        drawn = random_ops.random_normal(flat, dtype=self.dtype if dtype is None else dtype, seed=self.seed)
        q, r = apply_op("Qr", input=drawn, full_matrices=False)
        # The signs of r make the distribution uniform.
        q = q * apply_op("Sign", x=apply_op("MatrixDiagPart", input=r))
        if rows < columns:
            q = array_ops.transpose(q)
        return self.gain * array_ops.reshape(q, dims)

    def get_config(self) -> dict[str, Any]:
        """The arguments of the constructor."""
        return {"gain": self.gain, "seed": self.seed, "dtype": self.dtype.name}


class UniformUnitScaling(Initializer):
    """Uniform within ±sqrt(3 / fan in) * factor, which keeps the scale of the input."""

    def __init__(self, factor: float = 1.0, seed: int | None = None, dtype: DTypeLike = dtypes.float32) -> None:
        self.factor = factor
        self.seed = seed
        self.dtype = _floating(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        """Random values of `shape`; the fan in is that of the whole variable when it is partitioned."""
        full = shape if partition_info is None else partition_info.full_shape
        fan_in = max(1.0, float(math.prod(int(dim) for dim in list(full)[:-1])))
        limit = math.sqrt(3 / fan_in) * self.factor
        dtype = self.dtype if dtype is None else dtype
        return random_ops.random_uniform(shape, -limit, limit, dtype, seed=self.seed)

    def get_config(self) -> dict[str, Any]:
        """The arguments of the constructor."""
        return {"factor": self.factor, "seed": self.seed, "dtype": self.dtype.name}


def compute_fans(shape: Any) -> tuple[float, float]:
    """Fan in and fan out of a weight of `shape`: the last two dimensions, times the receptive field before them."""
    dims: Sequence[float] = [float(dim) for dim in shape]
    match len(dims):
        case 0:
            return 1.0, 1.0
        case 1:
            return dims[0], dims[0]
        case _:
            field = math.prod(dims[:-2])
            return dims[-2] * field, dims[-1] * field


zeros_initializer = Zeros
ones_initializer = Ones
constant_initializer = Constant
random_uniform_initializer = RandomUniform
random_normal_initializer = RandomNormal
truncated_normal_initializer = TruncatedNormal
variance_scaling_initializer = VarianceScaling
glorot_uniform_initializer = GlorotUniform
glorot_normal_initializer = GlorotNormal
identity_initializer = Identity
orthogonal_initializer = Orthogonal
uniform_unit_scaling_initializer = UniformUnitScaling


def xavier_initializer(
    uniform: bool = True, seed: int | None = None, dtype: DTypeLike = dtypes.float32
) -> VarianceScaling:
    """Glorot's initializer under its other name, as in `tf.contrib.layers`."""
    return GlorotUniform(seed=seed, dtype=dtype) if uniform else GlorotNormal(seed=seed, dtype=dtype)


def he_normal(seed: int | None = None) -> VarianceScaling:
    """Truncated normal with standard deviation sqrt(2 / fan_in)."""
    return VarianceScaling(scale=2.0, mode="fan_in", distribution="truncated_normal", seed=seed)


def he_uniform(seed: int | None = None) -> VarianceScaling:
    """Uniform within ±sqrt(6 / fan_in)."""
    return VarianceScaling(scale=2.0, mode="fan_in", distribution="uniform", seed=seed)


def lecun_normal(seed: int | None = None) -> VarianceScaling:
    """Truncated normal with standard deviation sqrt(1 / fan_in)."""
    return VarianceScaling(scale=1.0, mode="fan_in", distribution="truncated_normal", seed=seed)


def lecun_uniform(seed: int | None = None) -> VarianceScaling:
    """Uniform within ±sqrt(3 / fan_in)."""
    return VarianceScaling(scale=1.0, mode="fan_in", distribution="uniform", seed=seed)


# The names of `tf.initializers`.
zeros = Zeros
ones = Ones
constant = Constant
random_uniform = RandomUniform
random_normal = RandomNormal
truncated_normal = TruncatedNormal
variance_scaling = VarianceScaling
glorot_uniform = GlorotUniform
glorot_normal = GlorotNormal
identity = Identity
orthogonal = Orthogonal
uniform_unit_scaling = UniformUnitScaling
