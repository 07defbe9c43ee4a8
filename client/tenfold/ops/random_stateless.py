"""Random numbers without a state: the same seed, a pair of integers, always gives the same numbers. See ops/random.py.

Node names follow TensorFlow 1.15.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold.graph.op_builder import tensor_op
from tenfold.ops import math
from tenfold.ops.random import _shape_tensor
from tenfold_core import dtypes
from tenfold_core.dtypes import as_dtype

if TYPE_CHECKING:
    from tenfold.graph.tensor import Tensor


def _stateless(op_type: str, shape: Any, seed: Any, dtype: Any) -> Tensor:
    return tensor_op(op_type, None, shape=shape, seed=seed, dtype=as_dtype(dtype))


def stateless_random_normal(
    shape: Any, seed: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = dtypes.float32, name: str | None = None
) -> Tensor:
    """Normally distributed numbers, the same for the same seed."""
    with name_scope(name, "stateless_random_normal", [shape, seed, mean, stddev]) as scope:
        shape = _shape_tensor(shape)
        mean = convert_to_tensor(mean, dtype=as_dtype(dtype), name="mean")
        stddev = convert_to_tensor(stddev, dtype=as_dtype(dtype), name="stddev")
        drawn = _stateless("StatelessRandomNormal", shape, seed, dtype)
        return math.add(drawn * stddev, mean, name=scope)


def stateless_truncated_normal(
    shape: Any, seed: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = dtypes.float32, name: str | None = None
) -> Tensor:
    """Normally distributed numbers within two standard deviations, the same for the same seed."""
    with name_scope(name, "stateless_truncated_normal", [shape, seed, mean, stddev]) as scope:
        shape = _shape_tensor(shape)
        mean = convert_to_tensor(mean, dtype=as_dtype(dtype), name="mean")
        stddev = convert_to_tensor(stddev, dtype=as_dtype(dtype), name="stddev")
        drawn = _stateless("StatelessTruncatedNormal", shape, seed, dtype)
        return math.add(drawn * stddev, mean, name=scope)


def stateless_random_uniform(
    shape: Any, seed: Any, minval: Any = 0, maxval: Any = None, dtype: Any = dtypes.float32, name: str | None = None
) -> Tensor:
    """Uniform numbers in [minval, maxval), the same for the same seed. Integers need `maxval`."""
    kind = as_dtype(dtype)
    if maxval is None:
        if kind.is_integer:
            raise ValueError(f"Must specify maxval for integer dtype {kind!r}")
        maxval = 1
    with name_scope(name, "stateless_random_uniform", [shape, seed, minval, maxval]) as scope:
        shape = _shape_tensor(shape)
        low = convert_to_tensor(minval, dtype=kind, name="min")
        high = convert_to_tensor(maxval, dtype=kind, name="max")
        if kind.is_integer:
            return tensor_op("StatelessRandomUniformInt", scope, shape=shape, seed=seed, minval=low, maxval=high)
        drawn = _stateless("StatelessRandomUniform", shape, seed, kind)
        return math.add(drawn * (high - low), low, name=scope)


def stateless_categorical(
    logits: Any, num_samples: Any, seed: Any, dtype: Any = dtypes.int64, name: str | None = None
) -> Tensor:
    """`categorical`, the same for the same seed."""
    with name_scope(name, "stateless_categorical", [logits, seed]):
        return tensor_op(
            "StatelessMultinomial", None, logits=logits, num_samples=num_samples, seed=seed,
            output_dtype=as_dtype(dtype),
        )  # fmt: skip


stateless_multinomial = stateless_categorical
