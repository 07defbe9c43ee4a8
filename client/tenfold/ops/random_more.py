"""Random numbers, second part: gamma, Poisson, crops, categories, and the stateless ones. See ops/random.py.

Stateless operations give the same numbers for the same seed, a pair of integers, ever again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import control_dependencies, name_scope
from tenfold.ops import array, math, slicing
from tenfold.ops.op_builder import tensor_op
from tenfold.ops.random import _seeds, _shape_tensor
from tenfold_core import dtypes
from tenfold_core.dtypes import as_dtype

if TYPE_CHECKING:
    from tenfold.graph.tensor import Tensor


def random_gamma(
    shape: Any, alpha: Any, beta: Any = None, dtype: Any = dtypes.float32, seed: int | None = None,
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
    lam: Any, shape: Any, dtype: Any = dtypes.float32, seed: int | None = None, name: str | None = None
) -> Tensor:
    """Poisson distributed numbers with rate `lam`, `shape` of them for each rate."""
    with name_scope(name, "random_poisson", [lam, shape]):
        sizes = convert_to_tensor(shape, name="shape", dtype=dtypes.int32)
        return tensor_op("RandomPoissonV2", None, shape=sizes, rate=lam, dtype=as_dtype(dtype), **_seeds(seed))


def random_crop(value: Any, size: Any, seed: int | None = None, name: str | None = None) -> Tensor:
    """A slice of `size` at a random place. Fails in a step if the value is smaller."""
    from tenfold.ops.control_flow import Assert
    from tenfold.ops.random import random_uniform

    with name_scope(name, "random_crop", [value, size]) as scope:
        value = convert_to_tensor(value, name="value")
        size = convert_to_tensor(size, dtype=dtypes.int32, name="size")
        shape = array.shape(value)
        fits = Assert(
            math.reduce_all(shape >= size), ["Need value.shape >= size, got ", shape, size], summarize=1000
        )
        with control_dependencies([fits]):
            shape = array.identity(shape)
        limit = shape - size + 1
        drawn = random_uniform(array.shape(shape), dtype=size.dtype, maxval=size.dtype.max, seed=seed)
        return slicing.slice(value, drawn % limit, size, name=scope)


def categorical(
    logits: Any, num_samples: Any, dtype: Any = None, seed: int | None = None, name: str | None = None
) -> Tensor:
    """Draws `num_samples` classes for each row of `logits` (unnormalized log probabilities)."""
    with name_scope(name, "categorical", [logits]):
        kind = as_dtype(dtype) if dtype is not None else dtypes.int64
        return tensor_op(
            "Multinomial", None, logits=logits, num_samples=num_samples, output_dtype=kind, **_seeds(seed)
        )


# --- stateless ---


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
