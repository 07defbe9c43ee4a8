"""Blocks of Philox 4x32-10 one after the other: what philox.py computes with NumPy, for calls that need few of them.

Used by random_candidates.py, whose samplers draw some hundred words a step: NumPy's forty calls a round of blocks take
longer than all of the sampling.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tenfold_kernels import scalar_philox
from tenfold_kernels.cpu._compiled.compiling import compile_loop, inline
from tenfold_kernels.philox import Philox

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_kernels.arrays import Array


block = inline(scalar_philox.block)


@inline
def to_double(words):  # type: ignore[no-untyped-def]
    # What philox.py's to_double makes of two words of a block: a float64 in [0, 1).
    bits = (words & np.uint64(0xFFFFF)) << np.uint64(32) | words >> np.uint64(32)
    return np.float64(bits) / 4503599627370496.0


def _fill(key, low, high, out_G4):  # type: ignore[no-untyped-def]
    # `low` and `high` are the halves of the first block's counter.
    for g in range(out_G4.shape[0]):
        first, second = block(key, low, high, g)
        out_G4[g, 0] = np.uint32(first)
        out_G4[g, 1] = np.uint32(first >> np.uint64(32))
        out_G4[g, 2] = np.uint32(second)
        out_G4[g, 3] = np.uint32(second >> np.uint64(32))


def _fill_in_numpy(key: int, low: int, high: int, out_G4: Array) -> None:
    out_G4[:] = Philox.of_signed(key, low, high).blocks(np.arange(out_G4.shape[0], dtype=np.uint64))


def fill() -> Callable[..., None]:
    """(key, low, high, out_G4 uint32): the blocks from counter `high`·2⁶⁴ + `low` on; each number a signed int64."""
    return compile_loop(_fill, "n n n w2", np.uint32, stand_in=_fill_in_numpy)
