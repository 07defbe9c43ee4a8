"""Numbers of a Philox stream in a GPU's memory: the CPU's, from the same position. One launch each.

Where a stream is stays on the host: a launch gets key and counter as numbers, one that is recorded finds them in the
GPU's memory, where they are other ones each time. A group of outputs is made of one block:
four float32, two float64 or int64. Used by random.py and random_stateless.py.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_kernels.cuda._launch import Kernel, launch_over, pointer

if TYPE_CHECKING:
    from tenfold_kernels.cuda._arrays import DeviceArray
    from tenfold_kernels.cuda._runtime import Runtime
    from tenfold_kernels.philox import Generator, Philox

#: What `draw` draws: in [0, 1), standard normal, normal cut off at ±2.
UNIFORM, NORMAL, TRUNCATED = "uniform", "normal", "truncated"
_MASK64 = (1 << 64) - 1
_POSITION = ("int64", "int64", "uint64", "uint64", "uint64")


def draw(runtime: Runtime, kind: str, position: Philox, shape: tuple[int, ...], dtype: Any) -> DeviceArray:
    """An array of float32 or float64. What lies behind the last group's block is left out."""
    out = runtime.empty(shape, np.dtype(dtype))
    count, group = math.prod(shape), 16 // out.dtype.itemsize
    groups = -(-count // group)
    launch_over(_kernel(kind, out.dtype.name), groups, (count, *words_of(position)), (out,))
    return out


def draw_on(runtime: Runtime, kind: str, generator: Generator, shape: tuple[int, ...], dtype: Any) -> DeviceArray:
    """As `draw`, the next numbers of a generator: of a recording, those of each launch."""
    count = math.prod(shape)
    recording = runtime.recording()
    if recording is None:
        return draw(runtime, kind, generator.reserve_outputs(count), shape, dtype)
    out = runtime.empty(shape, np.dtype(dtype))
    position = recording.numbers(3, lambda: words_of(generator.reserve_outputs(count)))
    groups = -(-count // (16 // out.dtype.itemsize))
    launch_over(_recorded_kernel(kind, out.dtype.name), groups, (count,), (position, out))
    return out


def draw_ints(runtime: Runtime, position: Philox, shape: tuple[int, ...], low: int = 0, high: int = 0) -> DeviceArray:
    """int64 in [low, high); of the whole range where both are the same."""
    out = runtime.empty(shape, np.dtype(np.int64))
    count = math.prod(shape)
    groups = -(-count // 2)
    limits = (high - low, low & _MASK64)
    unsigned = out.view(np.dtype(np.uint64))
    launch_over(_int_kernel(), groups, (count, *words_of(position), *limits), (unsigned,))
    return out


def words_of(position: Philox) -> tuple[int, int, int]:
    """Key, and the halves of the counter."""
    return position.key & _MASK64, position.counter & _MASK64, position.counter >> 64


@functools.cache
def _kernel(kind: str, dtype: str) -> Kernel:
    from tenfold_kernels.cuda._code import random

    return Kernel(random.KERNELS[kind, dtype], (*_POSITION, pointer(np.dtype(dtype))))


@functools.cache
def _recorded_kernel(kind: str, dtype: str) -> Kernel:
    from tenfold_kernels.cuda._code import random

    return Kernel(random.RECORDED[kind, dtype], ("int64", "int64", "uint64*", pointer(np.dtype(dtype))))


@functools.cache
def _int_kernel() -> Kernel:
    from tenfold_kernels.cuda._code import random

    return Kernel(random.ints, (*_POSITION, "uint64", "uint64", "uint64*"))
