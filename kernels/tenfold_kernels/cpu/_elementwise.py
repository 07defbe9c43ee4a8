"""Compiled loops over vectors whose elements do not depend on each other, large ones in parts for several threads.

No bit changes with the number of threads. Used by math.py and nn.py for ops that run by themselves; runs of them are
fused (tenfold_kernels/fusion), which does the same. Helpers: tenfold_kernels/parallel.py.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_kernels.arrays import Array, contiguous
from tenfold_kernels.parallel import in_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

#: Elements that are worth a part of their own, 50 to 100 µs.
_PART = 1 << 16
#: Elements below which NumPy is as fast, and a program of nothing else need not load Numba.
_OWN_LEAST = 1 << 12


def run(loop: Callable[..., None], vectors: Sequence[Array], *scalars: Any) -> None:
    """`loop(*vectors, *scalars)`."""

    def part(first: int, last: int) -> None:
        # what stands in for a loop is NumPy's; its settings belong to a thread
        with np.errstate(all="ignore"):
            loop(*[vector[first:last] for vector in vectors], *scalars)

    size = vectors[0].size
    if size < 2 * _PART:
        loop(*vectors, *scalars)
    else:
        in_parts(part, size, _PART)


def of_singles(find: Callable[[], Callable[..., None]], plain: Callable[[Array], Any]) -> Callable[[Array], Array]:
    """A function of a float32 array by the loop (x_N, out_N) that `find` gives; `plain` for a small one."""
    loop_of = functools.cache(find)

    def compute(x: Array) -> Any:
        if x.size < _OWN_LEAST:
            return plain(x)
        x = contiguous(x)
        out = np.empty_like(x)
        run(loop_of(), (x.reshape(-1), out.reshape(-1)))
        return out

    return compute
