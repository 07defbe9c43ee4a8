"""Random numbers without a state on a GPU: the CPU's, see cpu/random_stateless.py. Seeds and keys are on the host."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tenfold_core import dtypes
from tenfold_kernels.arrays import Array, as_shape, output_type
from tenfold_kernels.cpu.random import int_limits
from tenfold_kernels.cpu.random_stateless import position_of_key, position_of_seed
from tenfold_kernels.cuda import _random
from tenfold_kernels.cuda._runtime import runtime_of
from tenfold_kernels.cuda._types import FLOATS, ON_HOST
from tenfold_kernels.registry import EVERYTHING, Compute, KernelNode, kernel, no_kernel, shared_kernel

if TYPE_CHECKING:
    from tenfold_kernels.cuda._arrays import DeviceArray
    from tenfold_kernels.philox import Philox

_DISTRIBUTIONS = {
    "StatelessRandomUniform": _random.UNIFORM,
    "StatelessRandomNormal": _random.NORMAL,
    "StatelessTruncatedNormal": _random.TRUNCATED,
}
#: Where a stream begins: the inputs of the first version of an op, of the second.
_SEED, _KEY = ("seed",), ("key", "counter", "alg")


@kernel(*_DISTRIBUTIONS, device="GPU", host=("shape", *_SEED), dtype=FLOATS)
@kernel(*(f"{op}V2" for op in _DISTRIBUTIONS), device="GPU", host=("shape", *_KEY), dtype=FLOATS)
def build_stateless(node: KernelNode) -> Compute:
    """An array of the given shape."""
    kind, dtype, runtime = _DISTRIBUTIONS[node.op.removesuffix("V2")], output_type(node), runtime_of(node.device)
    position_of = position_of_key if node.op.endswith("V2") else position_of_seed
    return lambda shape, *begin: _random.draw(runtime, kind, position_of(*begin), as_shape(shape), dtype)


@kernel("StatelessRandomUniformInt", device="GPU", host=("shape", *_SEED, "minval", "maxval"), dtype=dtypes.int64)
@kernel("StatelessRandomUniformIntV2", device="GPU", host=("shape", *_KEY, "minval", "maxval"), dtype=dtypes.int64)
def build_stateless_int(node: KernelNode) -> Compute:
    """Integers in [minval, maxval)."""
    runtime = runtime_of(node.device)

    def fill(shape: Array, position: Philox, low: Array, high: Array) -> DeviceArray:
        dims = as_shape(shape)
        if not math.prod(dims):
            return runtime.empty(dims, np.dtype(np.int64))
        return _random.draw_ints(runtime, position, dims, *int_limits(low, high))

    if node.op.endswith("V2"):
        return lambda shape, key, counter, alg, low, high: fill(shape, position_of_key(key, counter, alg), low, high)
    return lambda shape, seed, low, high: fill(shape, position_of_seed(seed), low, high)


@kernel("StatelessRandomUniformFullInt", device="GPU", host=("shape", *_SEED), dtype=dtypes.int64)
@kernel("StatelessRandomUniformFullIntV2", device="GPU", host=("shape", *_KEY), dtype=dtypes.int64)
def build_stateless_full_int(node: KernelNode) -> Compute:
    """Integers over the whole range of the type."""
    runtime = runtime_of(node.device)
    position_of = position_of_key if node.op.endswith("V2") else position_of_seed
    return lambda shape, *begin: _random.draw_ints(runtime, position_of(*begin), as_shape(shape))


_HOST_INTS = (dtypes.int32, dtypes.uint32, dtypes.uint64)
shared_kernel("StatelessRandomUniformInt", "StatelessRandomUniformIntV2", host=(EVERYTHING,), dtype=ON_HOST)
shared_kernel("StatelessRandomUniformFullInt", "StatelessRandomUniformFullIntV2", host=(EVERYTHING,), dtype=_HOST_INTS)
shared_kernel(
    "StatelessRandomGetKeyCounter", "StatelessRandomGetKeyCounterAlg", "StatelessRandomGetAlg", host=(EVERYTHING,)
)
no_kernel(
    "StatelessShuffle",
    "StatelessRandomGammaV2",
    "StatelessRandomGammaV3",
    "StatelessRandomPoisson",
    "StatelessParameterizedTruncatedNormal",
    device="GPU",
    why="as those with a state, which have none",
)
