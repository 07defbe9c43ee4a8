"""Scalar bodies that are written once for all devices, as functions that a kernel calls.

On a GPU Numba compiles them into the kernel (device.py). In the simulator they run as they are, with functions of
NumPy in place of Python's, which raise where a GPU gives infinity or NaN.
"""

from __future__ import annotations

import functools
import inspect
from types import FunctionType, SimpleNamespace
from typing import TYPE_CHECKING, Any

from tenfold_kernels.cuda._code import elementwise
from tenfold_kernels.cuda._code.device import device
from tenfold_kernels.cuda._runtime import is_simulated

if TYPE_CHECKING:
    from collections.abc import Callable


@functools.cache
def device_function(body: Callable[..., Any]) -> Any:
    """A plain function of numbers, for kernels to call; the same object for the same body."""
    if is_simulated():
        code: Any = body
        return FunctionType(code.__code__, {**code.__globals__, "math": SimpleNamespace(**elementwise.NAMES)})
    return device(body)


def text_of(*bodies: Callable[..., Any]) -> str:
    """What kernels that call them are made of, besides their own text."""
    return "".join(map(inspect.getsource, bodies))
