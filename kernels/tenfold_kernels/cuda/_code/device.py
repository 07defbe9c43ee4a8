"""What bodies of kernels share: functions that only kernels call, and functions of numbers, see elementwise.py.

Functions of numbers that the CPU has too are made into a kernel's by bodies.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numba import cuda

from tenfold_kernels.cuda._code.elementwise import NAMES

if TYPE_CHECKING:
    import numpy as np

exp, log, sqrt = NAMES["exp"], NAMES["log"], NAMES["sqrt"]


def device(function: Any) -> Any:
    """Makes a function one that kernels call. One that asks `cuda` for something must lie in its kernels' own module:
    that is where the simulator puts its `cuda`.
    """
    return cuda.jit(device=True)(function)


def number_of(dtype: np.dtype[Any]) -> Any:
    """A function that makes an element of the type a number to compute with, of narrow_text.wide(dtype)."""
    return NAMES.get(f"from_{dtype.name}", dtype.type)


def element_of(dtype: np.dtype[Any]) -> Any:
    """A function that makes such a number an element of the type."""
    return NAMES.get(f"to_{dtype.name}", dtype.type)
