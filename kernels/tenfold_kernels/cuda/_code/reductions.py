"""Bodies of what reduces or accumulates along one axis and is no plain reduction: the largest's place, running sums.

[outer, reduced, inner] elements. `worst` and `neutral` are of what is computed with, of half float32. See
cuda/math_reduction.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numba import cuda, types

from tenfold_kernels.cuda._code.device import element_of, number_of

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np


def arg_by_thread(dtype: np.dtype[Any], is_max: bool, worst: Any) -> Callable[..., None]:
    """(count, inner, reduced, x, out): a thread a result. The first of equals; a nan never wins."""
    number = number_of(dtype)

    def run(count, inner, reduced, x, out):  # type: ignore[no-untyped-def]
        for i in range(cuda.grid(1), count, cuda.gridsize(1)):
            start = i // inner * reduced * inner + i % inner
            best = worst
            at = 0
            for r in range(reduced):
                value = number(x[start + r * inner])
                if (value > best) if is_max else (value < best):
                    best = value
                    at = r
            out[i] = at

    return run


def arg_by_block(dtype: np.dtype[Any], is_max: bool, worst: Any) -> Callable[..., None]:
    """(count, reduced, x, out): a block a row. Its threads hand on places, and look elements up again."""
    number = number_of(dtype)

    def run(count, reduced, x, out):  # type: ignore[no-untyped-def]
        places = cuda.shared.array(0, types.int64)
        t = cuda.threadIdx.x
        for i in range(cuda.blockIdx.x, count, cuda.gridDim.x):
            start = i * reduced
            best = worst
            at = t if t < reduced else -1
            for r in range(t, reduced, cuda.blockDim.x):
                value = number(x[start + r])
                if (value > best) if is_max else (value < best):
                    best = value
                    at = r
            places[t] = at
            cuda.syncthreads()
            half = cuda.blockDim.x // 2
            while half > 0:
                if t < half:
                    mine = places[t]
                    other = places[t + half]
                    if other >= 0:
                        # a nan is as bad as can be
                        a = number(x[start + mine])
                        b = number(x[start + other])
                        a = a if a == a else worst
                        b = b if b == b else worst
                        is_better = (b > a) if is_max else (b < a)
                        if is_better or (b == a and other < mine):
                            places[t] = other
                cuda.syncthreads()
                half = half // 2
            if t == 0:
                out[i] = places[0]
            cuda.syncthreads()

    return run


def scan(dtype: np.dtype[Any], is_sum: bool, exclusive: bool, reverse: bool, neutral: Any) -> Callable[..., None]:
    """(count, inner, length, x, out): a thread a line, from one end to the other."""
    kind, number, element = type(neutral), number_of(dtype), element_of(dtype)

    def run(count, inner, length, x, out):  # type: ignore[no-untyped-def]
        for i in range(cuda.grid(1), count, cuda.gridsize(1)):
            start = i // inner * length * inner + i % inner
            total = neutral
            for r in range(length):
                at = start + ((length - 1 - r) if reverse else r) * inner
                value = number(x[at])
                if exclusive:
                    out[at] = element(total)
                total = kind(total + value) if is_sum else kind(total * value)
                if not exclusive:
                    out[at] = element(total)

    return run
