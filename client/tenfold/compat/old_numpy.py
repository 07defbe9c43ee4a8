"""Names that NumPy had in the days of TensorFlow 1 and has no more, for programs that run unchanged.

`np.int`, `np.float` and their like were Python's own types, others were second names. as_tensorflow.py puts them back
in processes in which `import tensorflow` gives Tenfold, and only there.
"""

from __future__ import annotations

import builtins
import functools
import inspect
import sys
from typing import Any

import numpy as np

#: Python's types, which NumPy 1.24 stopped to repeat. `np.bool` is NumPy's own again.
_BUILTINS = ("int", "float", "complex", "object", "str")
#: Old name → the name that is left.
_RENAMED = {
    **{"bool": "bool_", "bool8": "bool_", "float_": "float64", "complex_": "complex128"},
    **{"unicode_": "str_", "string_": "bytes_", "unicode": "str_"},
    **{"Inf": "inf", "Infinity": "inf", "infty": "inf", "PINF": "inf", "NaN": "nan", "NAN": "nan"},
    **{"product": "prod", "cumproduct": "cumprod", "alltrue": "all", "sometrue": "any", "row_stack": "vstack"},
    **{"round_": "round", "in1d": "isin", "trapz": "trapezoid", "mat": "asmatrix", "singlecomplex": "complex64"},
    **{"longfloat": "longdouble", "cfloat": "complex128", "longcomplex": "clongdouble", "clongfloat": "clongdouble"},
}
#: Old name → the module that has it now.
_MOVED = {
    **dict.fromkeys(("AxisError", "ComplexWarning", "RankWarning", "VisibleDeprecationWarning"), np.exceptions),
}


def restore() -> None:
    """Gives NumPy's module the names that it lacks. What it has stays as it is."""
    for name in _BUILTINS:
        _give(name, getattr(builtins, name))
    _give("NINF", -np.inf)
    _give("PZERO", 0.0)
    _give("NZERO", -0.0)
    _give("asscalar", lambda a: a.item())
    _give("alen", lambda a: len(np.atleast_1d(a)))
    _give("asfarray", _asfarray)
    _give("find_common_type", lambda arrays, scalars: np.result_type(*arrays, *scalars))
    _give("issubclass_", lambda a, b: isinstance(a, type) and issubclass(a, b))
    _give("issctype", lambda a: isinstance(a, np.dtype) or (isinstance(a, type) and issubclass(a, np.generic)))
    _give("msort", lambda a: np.sort(a, axis=0))
    _give("rank", np.ndim)
    _give("typeDict", np.sctypeDict)
    for old, module in _MOVED.items():
        _give(old, getattr(module, old, None))
    for old, new in _RENAMED.items():
        _give(old, getattr(np, new, None))
    if not hasattr(np.lib, "pad"):
        setattr(np.lib, "pad", np.pad)  # noqa: B010 - no annotation knows it
    if "newshape" not in inspect.signature(np.reshape).parameters:
        np.reshape = _with_newshape(np.reshape)
    np.array = _with_ragged_rows(np.array)


def _asfarray(a: Any, dtype: Any = np.float64) -> Any:
    """`a` as an array of `dtype`; of float64 where that is no inexact type."""
    return np.asarray(a, dtype if np.issubdtype(dtype, np.inexact) else np.float64)


def _give(name: str, value: Any) -> None:
    if value is not None and name not in vars(np):
        setattr(np, name, value)


def _with_newshape(reshape: Any) -> Any:
    """`np.reshape` that takes its shape by its old name, too."""

    @functools.wraps(reshape)
    def with_newshape(*args: Any, newshape: Any = None, **more: Any) -> Any:
        return reshape(*args, **more) if newshape is None else reshape(*args, shape=newshape, **more)

    return with_newshape


def _with_ragged_rows(array: Any) -> Any:
    """`np.array` that makes an array of objects of rows that differ in length, which NumPy 1.24 began to refuse.

    For the program only: what Tenfold itself calls is refused as before, or `tf.constant` would take such rows.
    """

    @functools.wraps(array)
    def with_ragged_rows(*args: Any, **more: Any) -> Any:
        try:
            return array(*args, **more)
        except ValueError as error:
            caller = sys._getframe(1).f_globals.get("__name__", "")
            if "inhomogeneous shape" not in str(error) or caller.partition(".")[0].startswith("tenfold"):
                raise
            if len(args) > 1 or more.get("dtype") is not None:
                raise
            return array(*args, **{**more, "dtype": object})

    return with_ragged_rows
