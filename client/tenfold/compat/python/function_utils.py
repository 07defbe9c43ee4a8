"""`tensorflow.python.util.function_utils`: the names of a function's arguments, and its own."""

from __future__ import annotations

import functools
import inspect
from typing import Any


def fn_args(fn: Any) -> tuple[str, ...]:
    """The arguments of a function, method, partial or callable object, without `self` and those that are bound."""
    return tuple(
        name
        for name, parameter in inspect.signature(fn).parameters.items()
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        and not (isinstance(fn, functools.partial) and name in fn.keywords)
    )


def has_kwargs(fn: Any) -> bool:
    """Whether a function takes any further arguments by name."""
    return any(each.kind is each.VAR_KEYWORD for each in inspect.signature(fn).parameters.values())


def get_func_name(func: Any) -> str:
    """Its qualified name; of a partial that of its function, of an object that of its class."""
    if isinstance(func, functools.partial):
        return get_func_name(func.func)
    return getattr(func, "__qualname__", None) or type(func).__qualname__
