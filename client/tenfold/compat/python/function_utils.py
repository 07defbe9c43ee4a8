"""`tensorflow.python.util.function_utils`: the names of a function's arguments, and its own."""

from __future__ import annotations

import functools
import inspect
from typing import Any

from tenfold.estimator.util import fn_args

__all__ = ["fn_args", "get_func_name", "has_kwargs"]


def has_kwargs(fn: Any) -> bool:
    """Whether a function takes any further arguments by name."""
    return any(each.kind is each.VAR_KEYWORD for each in inspect.signature(fn).parameters.values())


def get_func_name(func: Any) -> str:
    """Its qualified name; of a partial that of its function, of an object that of its class."""
    if isinstance(func, functools.partial):
        return get_func_name(func.func)
    return getattr(func, "__qualname__", None) or type(func).__qualname__
