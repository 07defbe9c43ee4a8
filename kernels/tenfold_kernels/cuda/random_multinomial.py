"""Classes drawn by their logits on a GPU: what the CPU draws from the same seeds, see cpu/random.py.

A thread sums up the weights of a row, in double, from the first class to the last, as the CPU does; then there is one
for each sample. A sample that falls on the last place of a sum may be another class than the CPU's.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_kernels.arrays import Array, output_type
from tenfold_kernels.cpu.random import generator_of, outputs_of_samples, samples_of
from tenfold_kernels.cpu.random_stateless import position_of_seed
from tenfold_kernels.cuda import _random
from tenfold_kernels.cuda._launch import Kernel, launch_over, pointer
from tenfold_kernels.cuda._types import FLOATS
from tenfold_kernels.registry import Compute, KernelNode, kernel

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_kernels.cuda._arrays import DeviceArray
    from tenfold_kernels.philox import Philox

_FLOAT64 = np.dtype(np.float64)


@kernel("Multinomial", device="GPU", host=("num_samples",), replays=False, T=FLOATS)
def build_multinomial(node: KernelNode) -> Compute:
    """logits_BC → num_samples class numbers a row."""
    generator, dtype = generator_of(node), np.dtype(output_type(node))
    return lambda logits, num_samples: _samples(logits, num_samples, dtype, generator.reserve_outputs)


@kernel("StatelessMultinomial", device="GPU", host=("num_samples", "seed"), T=FLOATS)
def build_stateless_multinomial(node: KernelNode) -> Compute:
    dtype = np.dtype(output_type(node))
    return lambda logits, num_samples, seed: _samples(logits, num_samples, dtype, lambda _: position_of_seed(seed))


def _samples(
    logits: DeviceArray, num_samples: Array, dtype: np.dtype[Any], reserve: Callable[[int], Philox]
) -> DeviceArray:
    count = samples_of(logits, num_samples)
    rows, classes = logits.shape
    out = logits.runtime.empty((rows, count), dtype)
    if rows * count:
        sums = logits.runtime.empty(logits.shape, _FLOAT64)
        launch_over(_weigh(logits.dtype), rows, (classes,), (logits, sums))
        words = _random.words_of(reserve(outputs_of_samples(rows, count)))
        launch_over(_pick(dtype), rows * count, (count, classes, *words), (sums, out))
    return out


@functools.cache
def _weigh(dtype: np.dtype[Any]) -> Kernel:
    from tenfold_kernels.cuda._code import random

    return Kernel(random.weigh, ("int64", "int64", pointer(dtype), "float64*"))


@functools.cache
def _pick(dtype: np.dtype[Any]) -> Kernel:
    from tenfold_kernels.cuda._code import random

    return Kernel(random.pick, (*("int64",) * 3, *("uint64",) * 3, "float64*", pointer(dtype)))
