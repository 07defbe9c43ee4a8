"""Functions of generated elementwise loops, from their text.

Functions of numbers go by bare names: on a GPU they are CUDA's, in the simulator NumPy's, which know infinities and NaN
where Python's raise. A bfloat16 is its bits on a GPU.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import cuda, types

from tenfold_core import dtypes
from tenfold_kernels.cuda._runtime import is_simulated

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


#: Those that have one name everywhere.
_SAME = (
    *("exp", "expm1", "log", "log1p", "sqrt", "tanh", "sin", "cos", "tan", "sinh", "cosh"),
    *("floor", "ceil", "isfinite", "isinf"),
)
_INVERSE = ("asin", "acos", "atan", "asinh", "acosh", "atanh")


def _of_numpy() -> dict[str, Any]:
    names = {name: getattr(np, name) for name in (*_SAME, "rint")}
    names |= {short: getattr(np, f"arc{short[1:]}") for short in _INVERSE}
    names |= {"atan2": np.arctan2, "rintf": np.rint}
    names |= {name: _plain(getattr(math, name)) for name in ("erf", "erfc", "lgamma")}
    return names | {"from_bfloat16": np.float32, "to_bfloat16": dtypes.bfloat16.as_numpy_dtype}


def _plain(function: Callable[[float], float]) -> Callable[[Any], Any]:
    """A function of Python's that has no NumPy twin, for one NumPy number."""

    def call(x: Any) -> Any:
        if np.isnan(x):
            return x
        try:
            return type(x)(function(float(x)))
        except (ValueError, OverflowError):
            return type(x)(np.inf)

    return call


def _of_cuda() -> dict[str, Any]:
    names = {name: getattr(math, name) for name in (*_SAME, *_INVERSE, "atan2", "erf", "erfc", "lgamma")}
    from numba.cuda import libdevice

    names |= {"rint": libdevice.rint, "rintf": libdevice.rintf}

    def from_bfloat16(bits: Any) -> Any:
        return libdevice.int_as_float(np.int32(np.uint32(bits) << np.uint32(16)))

    def to_bfloat16(x: Any) -> Any:
        # to the nearest, of two the even one; of a nan the bits that are left might be an infinity's
        if x != x:
            return np.uint16(0x7FC0)
        bits = np.uint32(libdevice.float_as_int(x))
        return np.uint16((bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16))

    device = cuda.jit(device=True)
    return names | {"from_bfloat16": device(from_bfloat16), "to_bfloat16": device(to_bfloat16)}


#: Functions of numbers, by the names that kernels use.
NAMES = _of_numpy() if is_simulated() else _of_cuda()
NAMES |= {"from_float16": np.float32, "to_float16": np.float16}


def function(text: str, names: Mapping[str, Any] | None = None, made_of: str = "") -> Callable[..., None]:
    """The function `run` of that text, which may use `names` too; `made_of` is the text of what those are."""
    namespace: dict[str, Any] = {"cuda": cuda, "np": np, "math": math, "types": types, **NAMES, **(names or {})}
    exec(compile(text, "<tenfold CUDA loop>", "exec", dont_inherit=True), namespace)
    run: Any = namespace["run"]
    # what its compiled form is kept under
    run.generated_text = text + made_of
    return run  # type: ignore[no-any-return]
