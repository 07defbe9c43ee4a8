"""Random numbers: normal, truncated normal, uniform, gamma, Poisson, shuffling, crops, sampling.

Each execution draws new numbers; ops/random_seed.py explains the seeds. Node names follow TensorFlow 1.15.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.constant_value import constant_value_as_shape
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import control_dependencies, name_scope
from tenfold.graph.op_builder import apply_op, tensor_op
from tenfold.ops import array, math, slicing
from tenfold.ops.candidate_sampling import (
    all_candidate_sampler,
    fixed_unigram_candidate_sampler,
    learned_unigram_candidate_sampler,
    log_uniform_candidate_sampler,
    uniform_candidate_sampler,
)
from tenfold.ops.control_flow import Assert
from tenfold.ops.elementwise import add, multiply, subtract
from tenfold.ops.random_seed import get_seed, set_random_seed
from tenfold_core import dtypes
from tenfold_core.dtypes import as_dtype

if TYPE_CHECKING:
    from tenfold.graph.argument_types import DTypeLike, TensorLike
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
    # A tensor among the sizes has the say.
    preferred = None if array.holds_tensor(shape) else dtypes.int32
    return convert_to_tensor(shape, preferred_dtype=preferred, name="shape")


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
    shape: TensorLike,
    mean: TensorLike = 0.0,
    stddev: TensorLike = 1.0,
    dtype: DTypeLike = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Normally distributed numbers."""
    with name_scope(name, "random_normal", [shape, mean, stddev]) as scope:
        return _scaled("RandomStandardNormal", shape, mean, stddev, dtype, seed, scope)


def truncated_normal(
    shape: Any,
    mean: TensorLike = 0.0,
    stddev: Any = 1.0,
    dtype: DTypeLike = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Normally distributed numbers within two standard deviations of the mean; others are drawn again."""
    with name_scope(name, "truncated_normal", [shape, mean, stddev]) as scope:
        return _scaled("TruncatedNormal", shape, mean, stddev, dtype, seed, scope)


def random_uniform(
    shape: TensorLike,
    minval: TensorLike = 0,
    maxval: TensorLike | None = None,
    dtype: DTypeLike = dtypes.float32,
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


def random_shuffle(value: TensorLike, seed: int | None = None, name: str | None = None) -> Tensor:
    """The slices of `value` along dimension 0 in a random order."""
    return tensor_op("RandomShuffle", name, value=value, **_seeds(seed))


def multinomial(
    logits: TensorLike,
    num_samples: Any,
    seed: int | None = None,
    name: str | None = None,
    output_dtype: Any = dtypes.int64,
) -> Tensor:
    """Draws `num_samples` classes for each row of `logits` (unnormalized log probabilities)."""
    return tensor_op(
        "Multinomial", name, logits=logits, num_samples=num_samples, output_dtype=output_dtype, **_seeds(seed)
    )


# The names of `tf.random`.
normal = random_normal
uniform = random_uniform
shuffle = random_shuffle


def random_gamma(
    shape: TensorLike, alpha: Any, beta: Any = None, dtype: DTypeLike = dtypes.float32, seed: int | None = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Gamma distributed numbers, `shape` of them for each of the parameters.

    # shape (S…), alpha and beta (P…) → (S…, P…)
    """
    with name_scope(name, "random_gamma", [shape, alpha, beta]):
        sizes = convert_to_tensor(shape, name="shape", dtype=dtypes.int32)
        alpha = convert_to_tensor(alpha, name="alpha", dtype=as_dtype(dtype))
        beta = convert_to_tensor(1 if beta is None else beta, name="beta", dtype=as_dtype(dtype))
        full = array.broadcast_dynamic_shape(array.shape(alpha), array.shape(beta))
        drawn = tensor_op("RandomGamma", None, shape=sizes, alpha=array.broadcast_to(alpha, full), **_seeds(seed))
        smallest = array.constant(as_dtype(dtype).as_numpy_dtype(_TINY[as_dtype(dtype)]), as_dtype(dtype))
        return math.maximum(smallest, drawn / beta)


#: The smallest normal numbers: a gamma variate is never zero.
_TINY = {dtypes.float16: 6.104e-05, dtypes.float32: 1.1754944e-38, dtypes.float64: 2.2250738585072014e-308}


def random_poisson(
    lam: TensorLike,
    shape: TensorLike,
    dtype: DTypeLike = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Poisson distributed numbers with rate `lam`, `shape` of them for each rate."""
    with name_scope(name, "random_poisson", [lam, shape]):
        sizes = convert_to_tensor(shape, name="shape", dtype=dtypes.int32)
        return tensor_op("RandomPoissonV2", None, shape=sizes, rate=lam, dtype=as_dtype(dtype), **_seeds(seed))


def random_crop(value: TensorLike, size: TensorLike, seed: int | None = None, name: str | None = None) -> Tensor:
    """A slice of `size` at a random place. Fails in a step if the value is smaller."""
    with name_scope(name, "random_crop", [value, size]) as scope:
        value = convert_to_tensor(value, name="value")
        size = convert_to_tensor(size, dtype=dtypes.int32, name="size")
        shape = array.shape(value)
        fits = Assert(math.reduce_all(shape >= size), ["Need value.shape >= size, got ", shape, size], summarize=1000)
        with control_dependencies([fits]):
            shape = array.identity(shape)
        limit = shape - size + 1
        drawn = random_uniform(array.shape(shape), dtype=size.dtype, maxval=size.dtype.max, seed=seed)
        return slicing.slice(value, drawn % limit, size, name=scope)


def categorical(
    logits: TensorLike,
    num_samples: Any,
    dtype: DTypeLike | None = None,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Draws `num_samples` classes for each row of `logits` (unnormalized log probabilities)."""
    with name_scope(name, "categorical", [logits]):
        kind = as_dtype(dtype) if dtype is not None else dtypes.int64
        return tensor_op("Multinomial", None, logits=logits, num_samples=num_samples, output_dtype=kind, **_seeds(seed))
