"""Random numbers without a state: the same seed gives the same numbers, call after call. Outputs are fresh.

The first version of each op takes a seed, which is scrambled into Philox's key and counter; the second takes key and
counter themselves, which StatelessRandomGetKeyCounter makes of a seed. Distributions are those of random.py. Follows
stateless_random_ops.cc and stateless_random_ops_v2.cc.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core import dtypes
from tenfold_kernels.arrays import Array, as_shape, invalid, output_type, shape_text
from tenfold_kernels.cpu import random
from tenfold_kernels.cpu.random_rejection import gamma, poisson
from tenfold_kernels.philox import Philox
from tenfold_kernels.registry import Compute, KernelNode, kernel, no_kernel
from tenfold_kernels.typesets import FLOATING, INDEX

if TYPE_CHECKING:
    from collections.abc import Callable

no_kernel("StatelessParameterizedTruncatedNormal", device="CPU", why="no program of the op census uses it")

#: The key that seeds are scrambled with.
_SCRAMBLER = 0x02461E29_3EC8F720
_MASK64 = (1 << 64) - 1
#: Numbers of generators: Philox, ThreeFry, and any that the device likes best.
_PHILOX, _AUTO = 1, 3
_FULL_INTS = (dtypes.int32, dtypes.int64, dtypes.uint32, dtypes.uint64)

_DISTRIBUTIONS: dict[str, Callable[[Philox, int, Any], Array]] = {
    "StatelessRandomUniform": random.uniform,
    "StatelessRandomNormal": random.normal,
    "StatelessTruncatedNormal": random.truncated_normal,
}


def _scrambled(seed: Array) -> tuple[int, int]:
    """Key and counter of a seed."""
    if seed.shape != (2,):
        raise invalid(f"seed must have shape [2], not {shape_text(seed.shape)}")
    first, second = (int(part) & _MASK64 for part in seed.tolist())
    mix = Philox(_SCRAMBLER, first | second << 64).blocks(np.zeros(1, np.uint64))[0].tolist()
    return mix[0] | mix[1] << 32, (mix[2] | mix[3] << 32) << 64


def position_of_seed(seed: Array) -> Philox:
    return Philox(*_scrambled(seed))


def position_of_key(key: Array, counter: Array, algorithm: Array) -> Philox:
    """Raises InvalidArgumentError for another generator than Philox, or other shapes."""
    if algorithm.ndim:
        raise invalid(f"input 3 (0-based) must have shape [], not {shape_text(algorithm.shape)}")
    if int(algorithm) not in (_PHILOX, _AUTO):
        raise invalid(f"Unsupported algorithm id: {int(algorithm)}")
    if key.shape != (1,):
        raise invalid(f"key must have shape [1], not {shape_text(key.shape)}")
    if counter.ndim != 1 or counter.size < 2:
        raise invalid(f"counter must be a vector with length at least 2; got shape: {shape_text(counter.shape)}")
    words = counter.tolist()
    return Philox(int(key[0]), words[0] | words[1] << 64)


@kernel(*_DISTRIBUTIONS, dtype=FLOATING | {dtypes.bfloat16})
def build_stateless(node: KernelNode) -> Compute:
    distribution, dtype = _DISTRIBUTIONS[node.op], output_type(node)

    def compute(shape: Array, seed: Array) -> Array:
        dims = as_shape(shape, dtype=dtype, times=random.WORK)
        return distribution(position_of_seed(seed), math.prod(dims), dtype).reshape(dims)

    return compute


@kernel(*(f"{op}V2" for op in _DISTRIBUTIONS), dtype=FLOATING | {dtypes.bfloat16})
def build_stateless_v2(node: KernelNode) -> Compute:
    distribution, dtype = _DISTRIBUTIONS[node.op.removesuffix("V2")], output_type(node)

    def compute(shape: Array, key: Array, counter: Array, algorithm: Array) -> Array:
        dims = as_shape(shape, dtype=dtype, times=random.WORK)
        return distribution(position_of_key(key, counter, algorithm), math.prod(dims), dtype).reshape(dims)

    return compute


@kernel("StatelessRandomUniformInt", dtype=INDEX)
@kernel("StatelessRandomUniformIntV2", dtype=INDEX)
def build_stateless_int(node: KernelNode) -> Compute:
    """Integers in [minval, maxval)."""
    dtype = output_type(node)

    def fill(shape: Array, position: Philox, low: Array, high: Array) -> Array:
        dims = as_shape(shape, dtype=dtype, times=random.WORK)
        size = math.prod(dims)
        if not size:
            return np.empty(dims, dtype)
        return random.ints(position, size, dtype, *random.int_limits(low, high)).reshape(dims)

    if node.op.endswith("V2"):
        return lambda shape, key, counter, algorithm, low, high: fill(
            shape, position_of_key(key, counter, algorithm), low, high
        )
    return lambda shape, seed, low, high: fill(shape, position_of_seed(seed), low, high)


@kernel("StatelessRandomUniformFullInt", dtype=_FULL_INTS)
@kernel("StatelessRandomUniformFullIntV2", dtype=_FULL_INTS)
def build_stateless_full_int(node: KernelNode) -> Compute:
    """Integers over the whole range of the type."""
    dtype = output_type(node)

    def fill(shape: Array, position: Philox) -> Array:
        dims = as_shape(shape, dtype=dtype, times=random.WORK)
        return random.full_ints(position, math.prod(dims), dtype).reshape(dims)

    if node.op.endswith("V2"):
        return lambda shape, key, counter, algorithm: fill(shape, position_of_key(key, counter, algorithm))
    return lambda shape, seed: fill(shape, position_of_seed(seed))


@kernel("StatelessMultinomial")
def build_stateless_multinomial(node: KernelNode) -> Compute:
    dtype = output_type(node)

    def compute(logits: Array, num_samples: Array, seed: Array) -> Array:
        return random.multinomial(logits, num_samples, dtype, lambda outputs: position_of_seed(seed))

    return compute


@kernel("StatelessShuffle")
def build_stateless_shuffle(node: KernelNode) -> Compute:
    """The rows in another order."""
    from tenfold_kernels.cpu._compiled import rows

    rows.shuffle()  # compiled here, and not in a step
    return lambda x, *begin: random.shuffled(x, lambda blocks: position_of_key(*begin))


def _samples_per(shape: tuple[int, ...], parameters: Array) -> int:
    if shape[len(shape) - parameters.ndim :] != parameters.shape:
        raise invalid("Shape passed in must end with broadcasted shape.")
    return math.prod(shape) // max(parameters.size, 1)


@kernel("StatelessRandomGammaV2")
def build_stateless_gamma(node: KernelNode) -> Compute:
    def compute(shape: Array, seed: Array, alpha: Array) -> Array:
        dims = as_shape(shape, dtype=np.float64, times=random.WORK)
        return gamma(position_of_seed(seed), _samples_per(dims, alpha), alpha).reshape(dims)

    return compute


@kernel("StatelessRandomGammaV3")
def build_stateless_gamma_v3(node: KernelNode) -> Compute:
    def compute(shape: Array, key: Array, counter: Array, algorithm: Array, alpha: Array) -> Array:
        dims = as_shape(shape, dtype=np.float64, times=random.WORK)
        return gamma(position_of_key(key, counter, algorithm), _samples_per(dims, alpha), alpha).reshape(dims)

    return compute


@kernel("StatelessRandomPoisson")
def build_stateless_poisson(node: KernelNode) -> Compute:
    dtype = output_type(node)

    def compute(shape: Array, seed: Array, rate: Array) -> Array:
        dims = as_shape(shape, dtype=np.float64, times=random.WORK)
        return poisson(position_of_seed(seed), _samples_per(dims, rate), rate, dtype).reshape(dims)

    return compute


@kernel("StatelessRandomGetKeyCounter")
def build_get_key_counter(node: KernelNode) -> Compute:
    def compute(seed: Array) -> tuple[Array, Array]:
        key, counter = _scrambled(seed)
        return np.array([key], np.uint64), np.array([counter & _MASK64, counter >> 64], np.uint64)

    return compute


@kernel("StatelessRandomGetKeyCounterAlg")
def build_get_key_counter_alg(node: KernelNode) -> Compute:
    def compute(seed: Array) -> tuple[Array, Array, Array]:
        key, counter = _scrambled(seed)
        words = np.array([counter & _MASK64, counter >> 64], np.uint64)
        return np.array([key], np.uint64), words, np.array(_PHILOX, np.int32)

    return compute


@kernel("StatelessRandomGetAlg")
def build_get_alg(node: KernelNode) -> Compute:
    return lambda: np.array(_PHILOX, np.int32)
