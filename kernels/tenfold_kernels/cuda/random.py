"""Random numbers on a GPU: the CPU's, number for number, from the same seeds (see cpu/random.py).

A node's generator stays on the host and moves on with every call; so do the shapes. float32 normals are the CPU's but
for the last place now and then, of what a GPU's logarithm, sine and cosine differ.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tenfold_core import dtypes
from tenfold_kernels.arrays import Array, as_shape, output_type
from tenfold_kernels.cpu.random import check_limits, generator_of, int_limits
from tenfold_kernels.cuda import _random
from tenfold_kernels.cuda._runtime import runtime_of
from tenfold_kernels.cuda._types import FLOATS, ON_HOST
from tenfold_kernels.registry import EVERYTHING, Compute, KernelNode, kernel, no_kernel, shared_kernel

if TYPE_CHECKING:
    from tenfold_kernels.cuda._arrays import DeviceArray

_DISTRIBUTIONS = {
    "RandomUniform": _random.UNIFORM,
    "RandomStandardNormal": _random.NORMAL,
    "TruncatedNormal": _random.TRUNCATED,
}


@kernel(*_DISTRIBUTIONS, device="GPU", host=("shape",), dtype=FLOATS)
def build_random(node: KernelNode) -> Compute:
    """An array of the given shape: uniform in [0, 1), standard normal, or normal cut off at ±2."""
    kind, dtype = _DISTRIBUTIONS[node.op], output_type(node)
    generator, runtime = generator_of(node), runtime_of(node.device)

    def compute(shape: Array) -> DeviceArray:
        return _random.draw_on(runtime, kind, generator, as_shape(shape), dtype)

    return compute


_LIMITS = ("shape", "minval", "maxval")


@kernel("RandomUniformInt", device="GPU", host=_LIMITS, replays=False, Tout=dtypes.int64)
def build_random_uniform_int(node: KernelNode) -> Compute:
    """Integers in [minval, maxval)."""
    generator, runtime = generator_of(node), runtime_of(node.device)

    def compute(shape: Array, low: Array, high: Array) -> DeviceArray:
        check_limits(low, high)
        dims = as_shape(shape)
        size = math.prod(dims)
        if not size:
            # limits that leave no number are no error where none is asked for
            return runtime.empty(dims, np.dtype(np.int64))
        limits = int_limits(low, high)
        return _random.draw_ints(runtime, generator.reserve_outputs(size), dims, *limits)

    return compute


shared_kernel("RandomUniformInt", host=(EVERYTHING,), Tout=ON_HOST)

no_kernel(
    "RandomShuffle",
    "RandomCrop",
    "RandomGamma",
    "RandomGammaGrad",
    "RandomPoisson",
    "RandomPoissonV2",
    device="GPU",
    why="TensorFlow has none either; they read words one after the other",
)
no_kernel("ParameterizedTruncatedNormal", device="GPU", why="it reads words one after the other, until one fits")
no_kernel(
    "ComputeAccidentalHits",
    "AllCandidateSampler",
    "FixedUnigramCandidateSampler",
    "LearnedUnigramCandidateSampler",
    "LogUniformCandidateSampler",
    "ThreadUnsafeUnigramCandidateSampler",
    "UniformCandidateSampler",
    device="GPU",
    why="they draw candidates one after the other, on the host, as TensorFlow's do",
)
