"""Random numbers: normal, truncated normal, uniform, shuffling, sampling.

Each execution draws anew; see ops/random_seed.py for what the seeds mean. Node names follow TensorFlow 1.15.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.constant_value import constant_value_as_shape
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold.ops.candidate_sampling import (
    all_candidate_sampler,
    fixed_unigram_candidate_sampler,
    learned_unigram_candidate_sampler,
    log_uniform_candidate_sampler,
    uniform_candidate_sampler,
)
from tenfold.ops.elementwise import add, multiply, subtract
from tenfold.ops.op_builder import apply_op, tensor_op
from tenfold.ops.random_seed import get_seed, set_random_seed
from tenfold_core import dtypes
from tenfold_core.dtypes import as_dtype

if TYPE_CHECKING:
    from tenfold.graph.tensor import Tensor

__all__ = [
    "all_candidate_sampler",
    "fixed_unigram_candidate_sampler",
    "get_seed",
    "learned_unigram_candidate_sampler",
    "log_uniform_candidate_sampler",
    "multinomial",
    "normal",
    "random_normal",
    "random_shuffle",
    "random_uniform",
    "set_random_seed",
    "shuffle",
    "truncated_normal",
    "uniform",
    "uniform_candidate_sampler",
]


def _shape_tensor(shape: Any) -> Tensor:
    return convert_to_tensor(shape, preferred_dtype=dtypes.int32, name="shape")


def _seeds(seed: int | None) -> dict[str, int | None]:
    first, second = get_seed(seed)
    return {"seed": first, "seed2": second}


def _scaled(op_type: str, shape: Any, mean: Any, stddev: Any, dtype: Any, seed: int | None, scope: str) -> Tensor:
    wanted = as_dtype(dtype).base_dtype
    sizes = _shape_tensor(shape)
    mean = convert_to_tensor(mean, dtype=wanted, name="mean")
    stddev = convert_to_tensor(stddev, dtype=wanted, name="stddev")
    drawn = apply_op(op_type, None, shape=sizes, dtype=wanted, **_seeds(seed))
    result = add(multiply(drawn, stddev, name="mul"), mean, name=scope)
    result.set_shape(constant_value_as_shape(sizes))
    return result


def random_normal(
    shape: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Normally distributed numbers."""
    with name_scope(name, "random_normal", [shape, mean, stddev]) as scope:
        return _scaled("RandomStandardNormal", shape, mean, stddev, dtype, seed, scope)


def truncated_normal(
    shape: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Normally distributed numbers within two standard deviations of the mean; others are drawn again."""
    with name_scope(name, "truncated_normal", [shape, mean, stddev]) as scope:
        return _scaled("TruncatedNormal", shape, mean, stddev, dtype, seed, scope)


def random_uniform(
    shape: Any,
    minval: Any = 0,
    maxval: Any = None,
    dtype: Any = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Uniformly distributed numbers in [minval, maxval). Raises ValueError for integers without `maxval`."""
    wanted = as_dtype(dtype).base_dtype
    if wanted not in (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64):
        raise ValueError(f"Invalid dtype {wanted!r}; a float, int32 or int64 would be right")
    if maxval is None:
        if wanted.is_integer:
            raise ValueError(f"Must specify maxval for integer dtype {wanted!r}")
        maxval = 1
    with name_scope(name, "random_uniform", [shape, minval, maxval]) as scope:
        sizes = _shape_tensor(shape)
        low = convert_to_tensor(minval, dtype=wanted, name="min")
        high = convert_to_tensor(maxval, dtype=wanted, name="max")
        if wanted.is_integer:
            result: Tensor = apply_op("RandomUniformInt", scope, shape=sizes, minval=low, maxval=high, **_seeds(seed))
        else:
            drawn = apply_op("RandomUniform", None, shape=sizes, dtype=wanted, **_seeds(seed))
            result = add(multiply(drawn, subtract(high, low, name="sub"), name="mul"), low, name=scope)
        result.set_shape(constant_value_as_shape(sizes))
        return result


def random_shuffle(value: Any, seed: int | None = None, name: str | None = None) -> Tensor:
    """The slices of `value` along dimension 0 in a random order."""
    return tensor_op("RandomShuffle", name, value=value, **_seeds(seed))


def multinomial(
    logits: Any, num_samples: Any, seed: int | None = None, name: str | None = None, output_dtype: Any = dtypes.int64
) -> Tensor:
    """Draws `num_samples` classes for each row of `logits` (unnormalized log probabilities)."""
    return tensor_op(
        "Multinomial", name, logits=logits, num_samples=num_samples, output_dtype=output_dtype, **_seeds(seed)
    )


# The names of `tf.random`.
normal = random_normal
uniform = random_uniform
shuffle = random_shuffle
